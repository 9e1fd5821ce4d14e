"""Writes docs/cli.md: every command with its arguments and options, as `--help` has them; `-` prints it.

click keeps a command's help option from its first use, so a page is right in a process of its own only.
"""

from __future__ import annotations

import re
import sys
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
    root = click.Context(leadline, info_name="leadline", terminal_width=100, **leadline.context_settings)
    return _HEAD + "".join(_verbs(leadline, root))


def _verbs(group: click.Group, context: click.Context) -> Iterator[str]:
    for verb in group.list_commands(context):
        found = group.get_command(context, verb)
        if found is None or found.hidden:
            continue
        own = click.Context(found, info_name=verb, parent=context)
        yield f"\n## {own.command_path}\n\n"
        if isinstance(found, click.Group):
            yield f"{_sentence(found)}\n"
            yield from _verbs(found, own)
        else:
            yield f"```text\n{_plain(found.get_help(own))}\n```\n"


def _sentence(command: click.Command) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())


def _plain(text: str) -> str:
    """Without colours, and without blanks at the ends of lines."""
    return "\n".join(line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines())


if __name__ == "__main__":
    if sys.argv[1:] == ["-"]:
        sys.stdout.write(page())
    else:
        PAGE.write_text(page())
