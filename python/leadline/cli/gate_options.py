"""`--require` and `--fail-if` as several verbs share them: read early, judged late, said on standard error.

What intervals do not decide is no pass, as in `leadline gate`: `--allow-inconclusive` makes it one.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from leadline.cli.console import echo
from leadline.cli.main import EXIT_GATE, EXIT_GOOD, EXIT_INVALID, EXIT_UNDECIDED
from leadline.cli.options import AskedPath, RenamedOption
from leadline.errors import SpecError, UsageError

if TYPE_CHECKING:
    from leadline.plan.model import Plan
    from leadline.verdict.gates import Gate, GateOutcome
    from leadline.verdict.model import Findings, JudgedRequirement, State
    from leadline.verdict.requirements import Requirements
    from leadline.yamlio.yaml_source import Document


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
    from leadline.verdict.requirements import read_with_places
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
        raise UsageError(f"--require: {absent[0]}", f"cells are {cells}: change `target` and `workload`")
    for line in absent:
        say(f"{line}: it will be inconclusive")


def say_required(found: Iterable[JudgedRequirement]) -> None:
    """Each that is not met or undecided, on standard error, as gates are."""
    from leadline.units import printable
    from leadline.verdict.limits import deciding

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


_OK_LINES_MAX = 3  # values that are printed of a gate that did not fail
_Function = TypeVar("_Function", bound=Callable[..., Any])


def allow_undecided_option(function: _Function) -> _Function:
    """The option that lets pass what the intervals do not decide."""
    return click.option(
        "--allow-inconclusive",
        "allow_undecided",
        cls=RenamedOption,
        former=("--allow-undecided",),
        is_flag=True,
        help=f"Inconclusive gates pass: no exit code {EXIT_UNDECIDED}.",
    )(function)


def fail_if_option(function: _Function) -> _Function:
    """`--fail-if`, repeatable: any of several fails; and what becomes of those that are undecided.

    The command gets both as its parameter `gates`, parsed before it begins.
    """

    @functools.wraps(function)
    def with_gates(*words: Any, fail_if: tuple[str, ...], allow_undecided: bool, **options: Any) -> Any:
        return function(*words, gates=parse_gates(fail_if, allow_undecided=allow_undecided), **options)

    option = click.option(
        "--fail-if",
        "fail_if",
        multiple=True,
        metavar="CONDITION",
        help="Exit with 4 if this is true, for example 'any.latency_p99 > 20ms'. Repeat for several.",
    )
    return cast("_Function", option(allow_undecided_option(with_gates)))


@dataclass(frozen=True)
class AskedGates:
    """The conditions of a command line, and whether those that the intervals do not decide may pass."""

    gates: tuple[Gate, ...] = ()
    allow_undecided: bool = False

    def judge(self, findings: Findings) -> list[GateOutcome]:
        """What the result says to each."""
        if not self.gates:
            return []
        from leadline.verdict.gates import judge_gate

        return [judge_gate(gate, findings) for gate in self.gates]

    def conclude(
        self, outcomes: Sequence[GateOutcome], state: State, required: Sequence[JudgedRequirement] = ()
    ) -> int:
        """Say each with its evidence on standard error; the exit code, for a result of that state.

        A requirement that is not met fails as a gate does.

        4 where a gate failed, else 3 where the result cannot be used, else 5 where one is undecided.
        """
        allowed = "allowed" if self.allow_undecided else "not allowed"
        for outcome in outcomes:
            if outcome.fails is None:
                echo(f"gate inconclusive ({allowed}): {outcome.text} is neither true nor false", err=True)
            elif outcome.fails:
                echo(f"gate FAILED: {outcome.text} is true", err=True)
            else:
                echo(f"gate ok: {outcome.text} is false", err=True)
            if outcome.fails is not False or len(outcome.evidence) <= _OK_LINES_MAX:
                for line in outcome.evidence:
                    echo(f"  {line}", err=True)
        say_required(required)
        truths = [*(outcome.fails for outcome in outcomes), *verdicts_of(required)]
        if True in truths:
            return EXIT_GATE
        if state in ("INVALID", "NOT_RUN"):
            return EXIT_INVALID
        return EXIT_UNDECIDED if None in truths and not self.allow_undecided else EXIT_GOOD


def parse_gates(texts: Sequence[str], *, allow_undecided: bool) -> AskedGates:
    """Every condition; nothing is loaded when there is none."""
    if not texts:
        return AskedGates(allow_undecided=allow_undecided)
    from leadline.verdict.gates import parse_gate

    return AskedGates(tuple(parse_gate(text) for text in texts), allow_undecided)
