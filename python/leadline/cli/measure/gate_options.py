"""`--fail-if` as `run` and `show` share it: parsed early, judged late, said on standard error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leadline.cli.console import echo
from leadline.cli.main import EXIT_GATE

if TYPE_CHECKING:
    from leadline.verdict.gates import Gate, GateOutcome
    from leadline.verdict.model import Findings

_Function = TypeVar("_Function", bound=Callable[..., Any])


def fail_if_option(function: _Function) -> _Function:
    """The option, repeatable: any of several fails."""
    return click.option(
        "--fail-if",
        "fail_if",
        multiple=True,
        metavar="CONDITION",
        help="Exit with 4 when it is true, for example 'any.latency_p99 > 20ms'; again for more.",
    )(function)


def parse_gates(texts: Sequence[str]) -> list[Gate]:
    """Every condition; nothing is loaded when there is none."""
    if not texts:
        return []
    from leadline.verdict.gates import parse_gate

    return [parse_gate(text) for text in texts]


def judge_gates(gates: Sequence[Gate], findings: Findings) -> list[GateOutcome]:
    """What the result says to each."""
    if not gates:
        return []
    from leadline.verdict.gates import judge_gate

    return [judge_gate(gate, findings) for gate in gates]


def say_gates(outcomes: Sequence[GateOutcome]) -> None:
    """One line a gate, with its evidence, on standard error."""

    words = {True: "gate FAILED", False: "gate holds", None: "gate undecided, not failed"}
    for outcome in outcomes:
        echo(f"{words[outcome.fails]}: {outcome.text}", err=True)
        for line in outcome.evidence if outcome.fails is not False else ():
            echo(f"  {line}", err=True)


def gate_code(outcomes: Sequence[GateOutcome], otherwise: int) -> int:
    """4 when a gate failed, else the code that the result has without gates."""
    return EXIT_GATE if any(outcome.fails for outcome in outcomes) else otherwise
