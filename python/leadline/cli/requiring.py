"""`--require` as `run`, `show` and `report` share it: a file read before anything is done."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leadline.cli.console import echo
from leadline.cli.paths import AskedPath
from leadline.errors import SpecError, UsageError

if TYPE_CHECKING:
    from leadline.plan.model import Plan
    from leadline.verdict.model import JudgedRequirement
    from leadline.verdict.requirements.requirements import Requirements
    from leadline.yamlio.yaml_source import Document

_Function = TypeVar("_Function", bound=Callable[..., Any])


def require_option(words: str) -> Callable[[_Function], _Function]:
    """`--require FILE` (parameter `require`); `words` say what comes of it."""

    def decorate(function: _Function) -> _Function:
        return click.option(
            "--require",
            type=AskedPath(dir_okay=False),
            metavar="FILE",
            help=f"Check the result against these requirements. {words}",
        )(function)

    return decorate


def required_of(path: Path | None) -> Requirements | None:
    """What a file asks of a result. Raises SpecError that names its line and key."""
    if path is None:
        return None
    found = read_required(path)
    if not found.requirements:
        raise SpecError(
            "it asks nothing of a result: it has the part `sizing` only",
            f"add requirements: a name with what it asks, or: leadline size {path}",
            source=str(path),
        )
    return found


def read_required(path: Path) -> Requirements:
    """The file itself, which may have no more than what is to be bought."""
    return read_required_with_places(path)[0]


def read_required_with_places(path: Path) -> tuple[Requirements, Document]:
    """The same with its lines."""
    from leadline.verdict.requirements.requirements import read_with_places
    from leadline.yamlio.yaml_source import SOURCE_MAX_BYTES

    try:
        with path.open("rb") as file:
            text = file.read(SOURCE_MAX_BYTES + 1).decode("utf-8")
    except OSError as error:
        raise SpecError(
            f"cannot be read: {error.strerror}", "give a YAML file of requirements", source=str(path)
        ) from None
    except UnicodeDecodeError:
        raise SpecError(
            "it is not UTF-8 text", "give a YAML file of requirements", source=str(path)
        ) from None
    return read_with_places(text, str(path), os.environ)


def check_required(asked: Requirements | None, plan: Plan, say: Callable[[str], None]) -> None:
    """Before anything runs: say which requirements no cell can meet. Raises UsageError where that is all."""
    if asked is None:
        return
    absent = [
        f"requirement {name}: no cell of this study is called {one.target}.{one.work}"
        for name, one in asked.requirements.items()
        if not any(one.is_of(cell.target, cell.work) for cell in plan.cells)
    ]
    if len(absent) == len(asked.requirements):
        cells = ", ".join(cell.id for cell in plan.cells[:6])
        raise UsageError(f"--require: {absent[0]}", f"cells are {cells}: change `target` and `work`")
    for line in absent:
        say(f"{line}: it will be inconclusive")


def say_required(found: Iterable[JudgedRequirement]) -> None:
    """Each that is not met or undecided, on standard error, as gates are."""
    from leadline.units import printable
    from leadline.verdict.requirements.messages import deciding

    for one in found:
        why, decides = one.why, one.decides
        if one.met is not True and one.figures:
            telling = deciding(one)
            why = f"{telling.figure} of {', '.join(telling.cells)}: {telling.why or telling.seen}"
            decides = telling.decides
        words = {True: "met", False: "NOT MET", None: "inconclusive"}[one.met]
        echo(f"requirement {words}: {one.name}, {printable(one.asked)}", err=True)
        if one.met is not True:
            echo(f"  {printable(why)}", err=True)
            if decides:
                echo(f"  {printable(decides)}", err=True)


def verdicts_of(found: Sequence[JudgedRequirement]) -> list[bool | None]:
    """As gates have them: True where one fails."""
    return [None if one.met is None else not one.met for one in found]
