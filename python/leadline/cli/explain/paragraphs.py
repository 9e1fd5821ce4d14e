"""What the diagnoses print alike: wrapped lines, and how much of a part was in use as a bar."""

from __future__ import annotations

import textwrap

from leadline.cli.console import echo, terminal_width

WIDTH = 100
_BAR = 20


def say(words: str) -> None:
    """One line, or more where it is a long one: what follows is indented."""
    indent = words[: len(words) - len(words.lstrip())] + "  "
    for line in textwrap.wrap(words, terminal_width(WIDTH), subsequent_indent=indent, break_long_words=False):
        echo(line)


def bar(use: float | None) -> str:
    """A bar and its percentage, or that nobody saw it."""
    if use is None:
        return f"{'not observed':>{_BAR + 6}}"
    filled = round(min(use, 1.0) * _BAR)
    return f"{'#' * filled:.<{_BAR}} {100 * use:3.0f} %"
