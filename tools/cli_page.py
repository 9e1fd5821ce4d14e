"""Writes docs/cli.md: every command with its arguments and options, as `--help` has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from leadline.cli.main import leadline

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
_HEAD = """\
# Commands

Every command, as `leadline COMMAND --help` shows it. `python tools/cli_page.py` makes this page.
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(_commands(leadline, "leadline"))


def _commands(command: click.Command, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, max_content_width=100, terminal_width=100)
    if not isinstance(command, click.Group):
        yield f"\n## {name}\n\n```text\n{_plain(command.get_help(context))}\n```\n"
        return
    if name != "leadline":
        yield f"\n## {name}\n\n{_sentence(command)}\n"
    for verb in command.list_commands(context):
        found = command.get_command(context, verb)
        if found is not None and not found.hidden:
            yield from _commands(found, f"{name} {verb}")


def _sentence(command: click.Command) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())


def _plain(text: str) -> str:
    """Without colours, and without blanks at the ends of lines."""
    return "\n".join(line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines())


if __name__ == "__main__":
    PAGE.write_text(page())
