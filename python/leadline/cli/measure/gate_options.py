"""`--fail-if` as `run` and `show` share it: parsed early, judged late, said on standard error.

What the intervals do not decide is no pass, here as in `leadline gate`: `--allow-undecided` makes it one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from leadline.cli.console import echo
from leadline.cli.main import EXIT_GATE, EXIT_GOOD, EXIT_INVALID, EXIT_UNDECIDED
from leadline.cli.requiring import say_required, verdicts_of

if TYPE_CHECKING:
    from leadline.verdict.gates import Gate, GateOutcome
    from leadline.verdict.model import Findings, JudgedRequirement, State

_OK_LINES_MAX = 3  # values that are printed of a gate that did not fail
_Function = TypeVar("_Function", bound=Callable[..., Any])


def allow_undecided_option(function: _Function) -> _Function:
    """The option that lets pass what the intervals do not decide."""
    return click.option(
        "--allow-undecided",
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
