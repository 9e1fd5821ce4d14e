"""Asks the figures of a watch the questions of `causes.yaml`: what goes on, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal

from leadline.knowledge.evaluator import RuleCondition, answered
from leadline.knowledge.findings import Finding
from leadline.knowledge.formats import ShownFigures
from leadline.knowledge.tables import entries, text_of

if TYPE_CHECKING:
    from leadline.watch.figures import WatchFacts

_SOURCE = "causes.yaml"
_TEXTS = frozenset({"client_thread", "health", "checks", "slowest_osd", "longest_wait"})


@dataclass(frozen=True)
class CauseRule:
    """One entry of the table; see the head of the file."""

    name: str
    asks: Literal["load", "limit"]
    title: str
    seen: str
    evidence: str
    remedy: str
    share: str = ""
    direct: bool = False
    thresholds: dict[str, int | float] = field(default_factory=dict)
    setting: str = ""
    shared: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """What goes on (`load`) and what it waits for (`limit`), the likeliest first."""

    load: tuple[Finding, ...]
    limit: tuple[Finding, ...]


@cache
def rules() -> tuple[CauseRule, ...]:
    """Every rule, in the order of the file."""
    return read_rules(text_of("leadline.watch", _SOURCE))


def read_rules(text: str) -> tuple[CauseRule, ...]:
    """The rules of a table. Raises SpecError where one lacks a part, or has one too many."""
    return entries(text, _SOURCE, CauseRule)


def judge(facts: WatchFacts, table: tuple[CauseRule, ...] | None = None) -> Judgement:
    """The rules that hold for what was seen."""
    asked = rules() if table is None else table
    conditions = [_condition(rule) for rule in asked]
    shown = ShownFigures(facts.values)
    held = [
        (rule, _finding(rule, answer.share, shown))
        for rule, answer in zip(asked, answered([facts.values], _TEXTS, conditions)[0], strict=True)
        if answer.holds
    ]
    ordered = sorted(held, key=lambda pair: pair[1].order)
    return Judgement(
        load=tuple(found for rule, found in ordered if rule.asks == "load"),
        limit=tuple(found for rule, found in ordered if rule.asks == "limit"),
    )


def _condition(rule: CauseRule) -> RuleCondition:
    return RuleCondition(
        rule.name, rule.seen, rule.share, _SOURCE, "docs/watch.md", thresholds=rule.thresholds
    )


def _finding(rule: CauseRule, share: float | None, shown: ShownFigures) -> Finding:
    return Finding(
        rule.name,
        rule.title,
        rule.evidence.format_map(shown),
        rule.remedy,
        share=share,
        direct=rule.direct,
        setting=rule.setting,
        shared=rule.shared,
    )
