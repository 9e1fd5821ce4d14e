"""Asks first where a verb would execute or delete by the words of a result that others may have written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import echo
from leadline.errors import UsageError

if TYPE_CHECKING:
    from leadline.store.acting import SeenManifest

_SHOWN = 20  # commands; who wants to see more of them opens the manifest


def trust_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The one answer to all of them."""
    return click.option(
        "--trust-result",
        "trusted",
        is_flag=True,
        help="Trust a result that another user may have written (docs/results.md).",
    )(command)


def require_trust(path: Path, deed: str, *, trusted: bool) -> SeenManifest:
    """What the result at `path` says, once it is certain that the caller wants `deed` done by its words.

    A result is trusted where nobody but the caller, or root, could write it. For any other a person is
    asked; where there is none, it is refused.
    """
    from leadline.store.acting import commands_of, look_at

    seen = look_at(path)
    if trusted or not seen.doubts:
        return seen
    remedy = f"read {path}/manifest.json; where you trust whoever wrote it, add: --trust-result"
    found = commands_of(seen.manifest)
    lines = [*seen.doubts, f"to {deed}" + (" executes these commands:" if found else " executes no command")]
    lines += [f"  {command}" for command in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"  and {len(found) - _SHOWN} more")
    for line in lines:
        echo(line, err=True)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("the result may be of another user's making: nothing was done", remedy)
    if not click.confirm(f"Do you trust it, and want to {deed}?", default=False, err=True):
        raise UsageError("nothing was done", remedy)
    return seen
