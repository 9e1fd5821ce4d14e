"""`leadline diagnose` of a trace: what of the program's way of I/O costs it, on a screen or as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from leadline.cli.console import echo, echo_text
from leadline.cli.explain.paragraphs import bar, say
from leadline.errors import UsageError

if TYPE_CHECKING:
    from leadline.store.reader import Result
    from leadline.tracing.diagnosed import TraceCause, TraceDiagnosed

_WHY_NOT = {
    "--cell": "a trace has no cells to choose from",
    "--active": "the experiment varies the load of a study, and a trace has none",
    "--all": "what its source did not record is printed anyway",
}


def refuse_for_trace(asked: Mapping[str, object]) -> None:
    """Options that say nothing about a trace, before any of it is read."""
    for option, value in asked.items():
        if value:
            why = _WHY_NOT.get(option, "it is for --live and --active")
            raise UsageError(f"{option} is not for a trace: {why}", "leave it out")


def of_trace(result: Result, *, figures: bool, as_json: bool) -> None:
    """Print the diagnosis of each of its trials."""
    from leadline.tracing.diagnosed import diagnose_trace

    found = diagnose_trace(result)
    if as_json:
        cells = [_as_json(one) for one in found]
        text = {"format": "leadline.diagnosis/1", "kind": "trace", "cells": cells}
        echo_text(json.dumps(text, indent=1, allow_nan=False))
        return
    for one in found:
        _print(one)
        if figures:
            _print_figures(one)


def _print(one: TraceDiagnosed) -> None:
    echo(f"{one.cell.id}: {one.cell.validity.state}")
    if one.outcome == "unusable":
        _print_notes(one)
        return
    if one.named:
        say(f"Costs it: {', '.join(f'{cause.finding.title} ({_share(cause)})' for cause in one.named)}.")
    else:
        say("Nothing in its way of I/O costs a notable part of its time: no rule of traces holds.")
    for cause in one.named:
        _print_cause(cause)
    for cause in one.behind[:2]:
        say(f"Behind it: {cause.finding.title} ({_share(cause)}): {cause.evidence}.")
    echo()
    for what, use in one.uses:
        echo(f"  {'program':<8} {what:<32} {bar(use)}")
    echo()
    _print_notes(one)
    if one.open:
        names = ", ".join(rule.rule for rule in one.open)
        lacks = ", ".join(sorted({name for rule in one.open for name in rule.lacks}))
        say(f"Not recorded here, so not ruled out: {names}. It lacks: {lacks} (docs/trace.md).")
        echo()


def _print_notes(one: TraceDiagnosed) -> None:
    for words in one.notes:
        say(words)
    echo()


def _share(cause: TraceCause) -> str:
    return "cost not known" if cause.share is None else f"{100 * cause.share:.0f} %"


def _print_cause(cause: TraceCause) -> None:
    finding = cause.finding
    where = "" if finding.count == 1 else f" in {finding.count:,} places"
    say(f"  {finding.title[:1].upper()}{finding.title[1:]}{where}: {cause.words}.")
    if cause.evidence:
        say(f"  Seen: {cause.evidence}.")
    say(f"  Remedy: {finding.change}")


def _print_figures(one: TraceDiagnosed) -> None:
    for name, value in _figures(one).items():
        echo(f"  {name:<24} {'-' if value is None else format(value, '.4g')}")


def _figures(one: TraceDiagnosed) -> dict[str, float | None]:
    return {name: quantity.value for name, quantity in one.cell.metrics.items()}


def _as_json(one: TraceDiagnosed) -> dict[str, Any]:
    """The keys of a study's cell; what only a study has is null or empty."""
    return {
        "cell": one.cell.id,
        "target": one.cell.target,
        "work": one.cell.work,
        "factors": one.cell.factors,
        "validity": one.cell.validity.state,
        "should": None,
        "notes": list(one.notes),
        "outcome": one.outcome,
        "named": [_cause_json(cause) for cause in one.named],
        "behind": [_cause_json(cause) for cause in one.behind],
        "open": [{"cause": rule.rule, "lacks": list(rule.lacks)} for rule in one.open],
        "places": [{"place": "program", "what": what, "use": use} for what, use in one.uses],
        "budget": None,
        "figures": [_figures(one)],
    }


def _cause_json(cause: TraceCause) -> dict[str, Any]:
    finding = cause.finding
    return {
        "cause": finding.rule,
        "place": "program",
        "title": finding.title,
        "share": cause.share,
        "share_low": cause.share,
        "share_high": cause.share,
        "held": 1,
        "trials": 1,
        "evidence": cause.evidence,
        "experiment": None,
        "remedy": finding.change,
        "price": None,
        "source": "docs/trace.md",
        "count": finding.count,
        "cost_s": finding.cost_s,
        "saves_s": finding.saves_s,
        "words": cause.words,
        "subjects": list(finding.subjects),
    }
