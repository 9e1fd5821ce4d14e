"""Rules as data: how they are read, asked and printed, and that what several tables ask has one threshold."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from leadline.errors import SpecError
from leadline.knowledge.evaluator import Answered, RuleCondition, answered
from leadline.knowledge.formats import ShownFigures
from leadline.knowledge.tables import entries, numbers, shared, with_numbers
from leadline.tracing.rules import rules as trace_rules
from leadline.verdict.diagnosis.causes import causes
from leadline.watch.causes import rules as watch_rules

SHARED = {name: one.bound for name, one in shared().items() if one.bound is not None}


@dataclass(frozen=True)
class Plain:
    """An entry as tables have it."""

    name: str
    kind: Literal["a", "b"]
    parts: tuple[str, ...] = ()
    limits: dict[str, float] = field(default_factory=dict)
    most: float | None = None


def test_entries_are_values_of_a_class_and_what_all_share_is_overwritten_by_one() -> None:
    found = entries("x: {parts: [p, q], limits: {at: 1}}\ny: {kind: b, most: 0.5}", "t.yaml", Plain, kind="a")
    assert found == (Plain("x", "a", ("p", "q"), {"at": 1.0}), Plain("y", "b", most=0.5))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x: {}", "x.kind: the key is missing"),
        ("x: {kind: c}", "x.kind: 'c' is not one of them"),
        ("x: {kind: a, kinds: b}", "did you mean kind"),
        ("x: {kind: a, most: many}", "x.most: "),
        ("x: {kind: a, limits: {at: no}}", "x.limits.at: "),
        ("x: {kind: a, parts: p}", "x.parts: a list is needed here, not 'p'"),
    ],
)
def test_a_wrong_entry_is_named_with_its_file_and_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(SpecError) as caught:
        entries(text, "t.yaml", Plain)
    assert complaint in str(caught.value)
    assert "t.yaml, line 1" in str(caught.value)


def test_a_rule_s_own_threshold_stands_before_one_of_all_rules() -> None:
    expression = "a >= $port_full AND b >= $mine"
    assert with_numbers(expression, {"mine": 2.0}) == f"a >= {SHARED['port_full']} AND b >= 2.0"
    assert with_numbers(expression, {"mine": 2.0, "port_full": 0.5}) == "a >= 0.5 AND b >= 2.0"


def test_a_division_by_a_threshold_has_a_fraction() -> None:
    assert with_numbers("1 / $calls", {"calls": 4}) == "1 / 4.0"


def asked(holds: str, share: str = "", *against: str, **facts: Any) -> Answered:
    question = RuleCondition("mine", holds, share, "t.yaml", "docs/t.md", against, {"least": 2.0})
    ((answer,),) = answered([facts], ["who"], [question])
    return answer


def test_what_was_not_seen_holds_for_nothing_and_has_no_share() -> None:
    assert asked("a >= $least", "a / b", "b > 1", "who = 'x'", a=3.0, b=4.0, who="x") == Answered(
        True, 0.75, (True, True)
    )
    assert asked("a >= $least", "a / b", "who = 'x'", a=None, b=4.0, who=None) == Answered(
        False, None, (False,)
    )
    assert asked("a >= $least", "a / b", a=3.0, b=None, who="") == Answered(True, None, ())
    assert asked("a >= $least", "a", a=1.0, who="") == Answered(False, None, ())
    assert asked("a >= $least", "", a=3.0, who="") == Answered(True, None, ())


@pytest.mark.parametrize(
    ("holds", "words"), [("none_such > 1", "none_such"), ("a > $none_such", "none_such")]
)
def test_a_rule_that_names_what_there_is_none_of_is_named(holds: str, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        asked(holds, a=1.0, who="")
    assert "mine" in str(caught.value)
    assert "docs/t.md" in str(caught.value)


def test_figures_are_printed_by_their_forms() -> None:
    shown = ShownFigures({"a": 1234.0, "b": 0.256, "c": None, "d": "osd.1", "e": 0.0042})
    words = "{a:count} {a:size} {b:share} {b:decimal} {a:decimal} {c:count} {c} {d} {e:latency} {e:seconds}"
    assert words.format_map(shown) == (
        "1,234 1.21 KiB 26 % 0.26 1,234 an unknown number one that is not known osd.1 4.20 ms"
        " 4.20 milliseconds"
    )


def test_what_is_full_has_one_threshold_in_all_tables() -> None:
    """A number in a condition on such a figure is no more than a part of being full: below all thresholds."""
    figures = ("port_share", "link_share", "wire_used_share", "slow_osd_factor", "slow_osd_commit_s")
    said = {one.name: one.seen for one in (*causes(), *watch_rules())}
    wrong = [
        f"{name}: {found.group()}"
        for name, seen in said.items()
        for figure in figures
        for found in re.finditer(rf"\b{figure}(?:, [01]\))? (?:>=|<) ([\d.]+)(?! \*)", seen)
        if float(found[1]) >= 0.7
    ]
    assert wrong == []


def test_every_threshold_of_all_rules_is_asked_for_and_no_rule_has_one_that_it_does_not_ask_for() -> None:
    texts: dict[str, tuple[str, Collection[str]]] = {}
    for cause in causes():
        conditions = [cause.seen, *(one["where"] for one in cause.against)]
        texts[f"cause {cause.name}"] = " ".join(conditions), cause.thresholds
    for rule in watch_rules():
        texts[f"watch {rule.name}"] = rule.seen, rule.thresholds
    for one in trace_rules():
        texts[f"trace {one.name}"] = " ".join((one.seen, one.cost, one.at_most)), one.thresholds
    names = {name: set(re.findall(r"\$(\w+)", text)) for name, (text, _) in texts.items()}
    idle = {
        name: idle
        for name, (_, own) in texts.items()
        if (idle := set(own) - names[name]) or (idle := set(own) & set(SHARED))
    }
    assert idle == {}


def test_every_package_s_table_of_numbers_is_read() -> None:
    package = Path(str(__import__("leadline").__file__)).parent
    for path in package.rglob("thresholds.yaml"):
        assert numbers(".".join(["leadline", *path.parent.relative_to(package).parts])), path


@dataclass(frozen=True)
class Shares:
    """An entry that may name what several tables share."""

    name: str
    remedy: str
    at_least: float | None = None
    shared: tuple[str, ...] = ()


def test_an_entry_has_what_the_shared_facts_say_that_it_names() -> None:
    (one,) = entries("x: {shared: osd_memory}", "t.yaml", Shares)
    told = shared()["osd_memory"]
    assert one == Shares("x", told.remedy, told.at_least, ("osd_memory",))
    (two,) = entries("x: {shared: [pgs_per_osd, nconnect]}", "t.yaml", Shares)
    assert two.remedy == shared()["nconnect"].remedy


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x: {shared: osd_memory, at_least: 5}", "it stands in shared.yaml already"),
        ("x: {shared: osd_memory, remedy: another}", "it stands in shared.yaml already"),
        ("x: {shared: osd_memoir}", "did you mean osd_memory"),
    ],
)
def test_what_is_shared_stands_in_one_place_and_under_one_name(text: str, complaint: str) -> None:
    with pytest.raises(SpecError) as caught:
        entries(text, "t.yaml", Shares)
    assert complaint in str(caught.value)
