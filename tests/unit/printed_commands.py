"""The commands that texts tell a user to run, and whether the command line takes them as they are printed."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import click

from leadline.cli.main import leadline

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "leadline"
_HOLE = "HOLE"  # what a text is filled in with
_PLACEHOLDER = re.compile(r"[A-Z|]")  # of a verb: none of ours has one
_VERBS = frozenset(leadline.list_commands(click.Context(leadline)))
# Behind one of these a text tells a command; elsewhere it may be about the program: "leadline works there".
_TOLD = re.compile(r"(?:^|[`:(]\s?|\n\s+|or |and |try |use |Run |Do\S*: )leadline ([^`;\n]*)")
_OF_RESULT = re.compile(r"leadline (?:undo|show|(?:run|tune prove|tune search) --resume) $| --resume $")
_WORDS = "and|or|then|on|with|does|has|lists|shows|there|says|tries|in|where|again|of"
_ENDS = re.compile(rf"\)(?=\W|$)|, (?![-\w]+=)|\. |: |\.$| (?:{_WORDS}) ")


def told(text: str) -> Iterator[str]:
    """Each command that a text tells, without the program's name.

    Prose has no such thing in backticks: there and where it has a hyphen even a word that is no verb counts.
    """
    for found in _TOLD.finditer(text):
        command = _ENDS.split(found[1])[0].strip(" \\.,…)")
        command = command.strip("\"'") if command.count("'") % 2 or command.count('"') % 2 else command
        first = command.partition(" ")[0]
        if not first or _PLACEHOLDER.search(first):
            continue
        if first in _VERBS or "`" in found[0] or "-" in first.strip("-"):
            yield command


def wrong(command: str) -> str:
    """What the command line does not know of it, by names alone; "" where it knows all."""
    words = _split(command)
    context, verb = click.Context(leadline), ""
    at: click.Command = leadline
    while isinstance(at, click.Group):
        if not words:
            return "" if verb else "no verb"
        if words[0].startswith("-") and words[0] in _options(at):
            return ""
        if _PLACEHOLDER.search(words[0]):
            return ""
        found = at.get_command(context, words[0])
        if found is None:
            return f"leadline{verb} has no verb {words[0]!r}"
        at, verb = found, f"{verb} {words.pop(0)}"
    for word in words:
        if word == "--":
            break
        name = word.partition("=")[0]
        if re.match(r"--?[a-zA-Z]", name) and name not in _options(at):
            return f"leadline{verb} has no option {name}"
    return ""


def texts() -> Iterator[tuple[str, str]]:
    """(place, text) of everything in the package that may tell a command."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.JoinedStr):
                yield place, "".join(_part(one) for one in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield place, node.value
    for path in sorted([*PACKAGE.rglob("*.yaml"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]):
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            yield f"{path.relative_to(ROOT)}:{number}", line


def unquoted() -> Iterator[str]:
    """Places of the package where a result's path is put into a command as a shell would split it."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.JoinedStr):
                continue
            for before, hole in pairwise(node.values):
                if _OF_RESULT.search(_part(before)) and "quote" not in ast.dump(hole):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}"


def _part(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else _HOLE


def _options(command: click.Command) -> set[str]:
    every = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    return every | {"--help", "-h"}


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()
