"""The one place that knows about the terminal: colours and width only where a person looks on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_UNBOUNDED_WIDTH = 100_000  # a pipe has no right margin: nothing is wrapped or cut there


def make_console(*, stderr: bool = False) -> Console:
    """A rich console; where the stream is no terminal: no colour codes, no wrapping, no truncation."""
    from rich.console import Console  # 37 ms, which `--help` need not pay

    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return Console(stderr=stderr, highlight=False)
    return Console(
        stderr=stderr,
        highlight=False,
        no_color=True,
        force_terminal=False,
        width=_UNBOUNDED_WIDTH,
        soft_wrap=True,
    )
