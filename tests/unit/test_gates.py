"""`--fail-if`: what is read, what is refused, and that an interval decides."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.cli.gate_options import parse_gates
from leadline.errors import LeadlineError, SpecError, UsageError
from leadline.verdict.gates import check_gates, judge_gate, parse_gate
from leadline.verdict.model import Cell, Code, Findings, Quantity, State, Validity


def cell(name: str, state: State = "VALID", **metrics: Quantity) -> Cell:
    target, work = name.split(".")
    codes = () if state == "VALID" else (Code("cached_reads", state, "cached", "seen", "do"),)
    return Cell(name, target, work, {}, {}, metrics, Validity(state, codes))


def findings(*cells: Cell) -> Findings:
    return Findings("1", "study", "t", "", "", "VALID", (), cells, (), ())


def iops(value: float | None, low: float | None = None, high: float | None = None) -> Quantity:
    return Quantity(value, "1/s", low, high, 3 if low else 1, None if value else "nothing was done")


RESULT = findings(
    cell(
        "fuse.randread_4k",
        iops=iops(4500, 4200, 4800),
        **{"latency_p99.9": Quantity(25e6, "ns", 22e6, 29e6, 3)},
    ),
    cell("local.randread_4k", iops=iops(9000, 8000, 10000), bandwidth=Quantity(2.0**30, "B/s", blocks=1)),
    cell("fuse.write", "DOUBTFUL", iops=iops(None)),
    cell("local.write", "INVALID", iops=iops(100, 90, 110)),
)


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("fuse.randread_4k.iops < 5000", True),
        ("fuse.randread_4k.iops < 4500", None),
        ("fuse.randread_4k.iops < 4000", False),
        ("fuse.randread_4k.iops > 4000", True),
        ("not fuse.randread_4k.iops >= 5000", True),
        ("*.latency_p99.9 > 20ms", True),
        ("*.latency_p99.9 > 0.03s", False),
        ("*.randread_4k.iops < 5000", True),
        ("all.iops < 20000", None),
        ("fuse*.iops < 5000 and local.randread_4k.iops < 5000", False),
        ("fuse.randread_4k.iops < 4500 or local.randread_4k.iops > 5000", True),
        ("fuse.randread_4k.iops < 4500 and local.randread_4k.iops > 5000", None),
        ("(fuse.randread_4k.iops < 1 or local.randread_4k.iops < 1) and any.blocks == 3", False),
        ("local.randread_4k.bandwidth < 2G", True),
        ("local.randread_4k.bandwidth < 1GiB/s", False),
        ("any.validity == INVALID", True),
        ("all.validity == VALID", False),
        ("fuse.randread_4k.validity != VALID", False),
        ("any.code == cached_reads", True),
        ("fuse.write.iops < 5000", None),
        ("local.write.iops < 5000", None),
        ("fuse.randread_4k.blocks < 6", True),
    ],
)
def test_a_gate_fails_only_where_the_whole_interval_does(text: str, fails: bool | None) -> None:
    assert judge_gate(parse_gate(text), RESULT).fails is fails


@pytest.mark.parametrize(
    ("texts", "state", "code", "allowed"),
    [
        ((), "VALID", 0, 0),
        (("any.blocks < 1",), "DOUBTFUL", 0, 0),
        (("fuse.randread_4k.iops < 4500",), "VALID", 5, 0),
        (("fuse.randread_4k.iops < 4500",), "DOUBTFUL", 5, 0),
        (("fuse.randread_4k.iops < 4500",), "INVALID", 3, 3),
        (("fuse.randread_4k.iops < 4500", "fuse.randread_4k.iops < 5000"), "INVALID", 4, 4),
        (("any.blocks < 1", "local.write.iops < 5000"), "VALID", 5, 0),
    ],
)
def test_what_is_undecided_is_no_pass(texts: tuple[str, ...], state: State, code: int, allowed: int) -> None:
    for allow, expected in ((False, code), (True, allowed)):
        gates = parse_gates(texts, allow_undecided=allow)
        assert gates.conclude(gates.judge(RESULT), state) == expected


def test_an_undecided_gate_shows_the_interval() -> None:
    outcome = judge_gate(parse_gate("fuse.randread_4k.iops < 4500"), RESULT)
    assert "4,200 IOPS to 4,800 IOPS, 3 blocks): the CI contains 4500" in outcome.evidence[0]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "empty", 1),
        ("iops < 5", "is no metric", 1),
        ("a.b.iops", "is needed, not the end", 9),
        ("a.b.iops <", "a quantity is needed", 11),
        ("a.b.iops < 5 a.b.iops", "does not belong here", 14),
        ("a.b.iops == 5", "never equal", 10),
        ("a.b.latency_p99 > 20", "has no unit", 19),
        ("a.b.latency_p99 > 20MiB", "not a time", 19),
        ("a.b.iops < 5k", "not a plain number", 12),
        ("a.b.bandwidth < fast", "a number with its unit", 17),
        ("any.validity < INVALID", "compared with == or !=", 14),
        ("any.validity == BAD", "is no validity", 17),
        ("any.code == nonsense", "is no code", 13),
        ("(a.b.iops < 5", "is needed, not the end", 14),
        ("a.b.iops < 5 and", "is needed, not the end", 17),
        ("a.b.iops < 5; import os", "';' does not belong here", 13),
        ("(" * 40, "nested deeper", 22),
        ("not " * 40, "nested deeper", 85),
        ("a" * 1001, "longer than 1000", 1001),
    ],
)
def test_a_bad_condition_names_the_character(text: str, message: str, place: int) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        parse_gate(text)
    assert f"(character {place} of" in str(caught.value)
    assert caught.value.remedy


def test_a_condition_on_nothing_is_refused_before_the_run() -> None:
    gate = parse_gate("fuze.randread_4k.iops < 5")
    with pytest.raises(UsageError, match=r"nothing is called 'fuze.randread_4k.iops'"):
        check_gates([gate], ["fuse.randread_4k"])
    with pytest.raises(UsageError, match="nothing is called"):
        judge_gate(gate, RESULT)
    check_gates([parse_gate("fuse.*.latency_p99.9 > 1s and any.code == errors")], ["fuse.randread_4k"])
    check_gates([parse_gate("fuse.small.rate_at_p99_20ms < 5")], ["fuse.small"], ["rate_at_p99_20ms"])


@given(st.text(alphabet='ab.*?<>=!()" andornt0159ms%/\x00\u202e', max_size=80))
def test_no_text_is_more_than_an_error(text: str) -> None:
    with contextlib.suppress(LeadlineError):
        judge_gate(parse_gate(text), RESULT)
