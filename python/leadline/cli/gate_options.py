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
from leadline.cli.options import AskedUnlessCondition, RenamedOption
from leadline.errors import SpecError, UsageError

if TYPE_CHECKING:
    from leadline.plan.model import Plan
    from leadline.verdict.gates import Gate, GateOutcome
    from leadline.verdict.model import Findings, JudgedRequirement, State
    from leadline.verdict.requirements import Requirements
    from leadline.yamlio.yaml_source import Document


def require_option(words: str) -> Callable[[_Function], _Function]:
    """`--require`, repeatable (parameter `require`): a file or a condition; `words` say what comes of it."""

    def decorate(function: _Function) -> _Function:
        return click.option(
            "--require",
            type=AskedUnlessCondition(),
            multiple=True,
            metavar="FILE|CONDITION",
            help="Check the result against the requirements of a file, or against one, for example "
            f"'ceph.randread_4k.iops >= 500'. {words}",
        )(function)

    return decorate


def required_of(asked: Sequence[str]) -> Requirements | None:
    """What a file and conditions ask of a result, all of it. Raises SpecError that names its line and key."""
    if not asked:
        return None
    from leadline.verdict.requirements import (
        REQUIREMENTS_FORMAT,
        Requirements,
        is_condition,
        parse_requirement,
    )

    lines = {text.strip(): parse_requirement(text) for text in asked if is_condition(text)}
    files = [text for text in asked if not is_condition(text)]
    if len(files) > 1:
        raise UsageError("--require names two files", "put the requirements into one")
    if not files:
        return Requirements(format=REQUIREMENTS_FORMAT, requirements=lines)
    found = _required_file(Path(files[0]))
    return found.model_copy(update={"requirements": {**found.requirements, **lines}})


def _required_file(path: Path) -> Requirements:
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
    """Each with a mark and what was measured, on standard error, as gates are."""
    from leadline.units import printable
    from leadline.verdict.limits import deciding
    from leadline.verdict.requirements import is_condition

    for one in found:
        seen, why, decides = "", one.why, one.decides
        if one.figures:
            telling = deciding(one)
            seen, why, decides = telling.seen, telling.why, telling.decides
            if len(one.figures) > 1 or not is_condition(one.name):
                seen = f"{telling.figure} of {', '.join(telling.cells)} is {seen}" if seen else ""
        mark, words = {True: ("\u2713", "met"), False: ("\u2717", "NOT MET"), None: ("?", "inconclusive")}[
            one.met
        ]
        name = one.name if is_condition(one.name) else f"{one.name}, {one.asked}"
        echo(
            f"{mark} requirement {words}: {printable(name)}{f': {printable(seen)}' if seen else ''}", err=True
        )
        for text in (why, decides) if one.met is not True else ():
            if text:
                echo(f"  {printable(text)}", err=True)


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
                said = f"? inconclusive ({allowed}): {outcome.text} is neither true nor false"
            elif outcome.fails:
                said = f"\u2717 FAILED: {outcome.text} is true"
            else:
                said = f"\u2713 ok: {outcome.text} is false"
            _say_outcome(said, outcome)
        if required:  # to show them loads what sizing asks, too
            say_required(required)
        truths = [*(outcome.fails for outcome in outcomes), *verdicts_of(required)]
        if True in truths:
            return EXIT_GATE
        if state in ("INVALID", "NOT_RUN"):
            return EXIT_INVALID
        return EXIT_UNDECIDED if None in truths and not self.allow_undecided else EXIT_GOOD


def _say_outcome(said: str, outcome: GateOutcome) -> None:
    """In one line where one value is why, else each value in a line."""
    only = outcome.evidence[0].partition(": ") if len(outcome.evidence) == 1 else None
    if only and only[0] in outcome.text:
        echo(f"{said} ({only[2]})", err=True)
        return
    echo(said, err=True)
    if outcome.fails is not False or len(outcome.evidence) <= _OK_LINES_MAX:
        for line in outcome.evidence:
            echo(f"  {line}", err=True)


def parse_gates(texts: Sequence[str], *, allow_undecided: bool) -> AskedGates:
    """Every condition; nothing is loaded when there is none."""
    if not texts:
        return AskedGates(allow_undecided=allow_undecided)
    from leadline.verdict.gates import parse_gate

    return AskedGates(tuple(parse_gate(text) for text in texts), allow_undecided)
