"""`leadline diagnose`: what bounds each cell of a result, with the evidence and what comes next behind it."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import echo, echo_text
from leadline.cli.paths import AskedPath

if TYPE_CHECKING:
    from leadline.verdict.diagnosed.judge import CauseNamed, Diagnosed
    from leadline.verdict.diagnosed.of_result import CellDiagnosed

_WIDTH = 100
_BAR = 20


@click.command(short_help="Say what bounds each cell of a result, and why")
@click.argument("directory", type=AskedPath())
@click.option("--cell", "wanted", metavar="TEXT", help="Only cells with this in TARGET.WORK or their id.")
@click.option("--figures", is_flag=True, help="Print all figures that the causes were judged by, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.diagnosis/1.")
def command(directory: Path, wanted: str | None, figures: bool, as_json: bool) -> None:
    """Say why the cells of the result in DIRECTORY are not faster.

    Nothing is run. Causes are judged by what the trials' observers saw; what nobody could tell is said.
    """
    from leadline.store.reader import open_result
    from leadline.verdict.diagnosed.of_result import diagnose_result

    found = diagnose_result(open_result(directory), wanted)
    if as_json:
        cells = [_as_json(one) for one in found]
        echo_text(json.dumps({"format": "leadline.diagnosis/1", "cells": cells}, indent=1, allow_nan=False))
        return
    if len(found) > 1 and wanted is None:
        _print_table(found)
    for one in found if len(found) == 1 or wanted is not None else ():
        _print_cell(one)
        if figures:
            _print_figures(one.found)


def _print_table(found: tuple[CellDiagnosed, ...]) -> None:
    """One line a cell; the rest with --cell."""
    width = max(len(_name(one)) for one in found)
    for one in found:
        echo(f"{_name(one):<{width}}  {_summary(one.found)}"[:_WIDTH])
    echo()
    echo("Evidence, the way as a picture and what to do: leadline diagnose DIR --cell TARGET.WORK")


def _name(one: CellDiagnosed) -> str:
    cell = one.cell
    levels = " ".join(f"{name}={value}" for name, value in cell.factors.items())
    return f"{cell.target}.{cell.work} {levels}".strip()


def _summary(found: Diagnosed) -> str:
    if found.outcome == "unusable":
        return "no trial to judge by"
    if not found.named:
        return "cannot tell"
    return " and ".join(f"{one.title} ({100 * one.share:.0f} %)" for one in found.named)


def _print_cell(one: CellDiagnosed) -> None:
    cell, found = one.cell, one.found
    echo(f"{_name(one)}: {cell.validity.state}, {len(found.figures)} trials")
    if found.outcome == "unusable":
        _say("  No trial of it can be judged.")
        echo()
        return
    if found.named:
        _say(f"Bound by: {_summary(found)}.")
        for cause in found.named:
            _print_cause(cause)
    else:
        _say("I cannot tell what bounds it: nothing that was observed was full, and no cause holds.")
    for cause in found.behind[:2]:
        _say(f"Behind it: {cause.title} ({100 * cause.share:.0f} %): {cause.evidence}.")
    _print_way(found)
    _print_open(found)
    echo()


def _print_cause(cause: CauseNamed) -> None:
    entry = cause.entry
    low, high = (f"{100 * share:.0f}" for share in cause.shares)
    span = f"{low} %" if low == high else f"{low} to {high} %"
    _say(f"  {entry.means}")
    _say(f"  Seen in {cause.held} of {cause.trials} trials, {span}: {cause.evidence}.")
    for words in cause.against:
        _say(f"  Against it: {words}.")
    _say(f"  To be sure: {entry.experiment}")
    _say(f"  Remedy: {entry.remedy} (price: {entry.price})")


def _print_way(found: Diagnosed) -> None:
    echo()
    for part in found.uses:
        if part.use is None:
            echo(f"  {part.place:<8} {part.what:<32} {'not observed':>{_BAR + 6}}")
            continue
        filled = round(min(part.use, 1.0) * _BAR)
        mark = " <" if part.bounds and part.use >= 0.5 else ""
        echo(f"  {part.place:<8} {part.what:<32} {'#' * filled:.<{_BAR}} {100 * part.use:3.0f} %{mark}")
    echo()


def _print_open(found: Diagnosed) -> None:
    lacks = sorted({name for one in found.open for name in one.lacks})
    if not lacks or (found.named and found.named[0].share >= 0.5):
        return
    _say(f"Not observable here, so not ruled out: {', '.join(one.entry.name for one in found.open)}.")
    _say(f"  It lacks: {', '.join(lacks)} (docs/diagnosis.md says what each needs).")


def _print_figures(found: Diagnosed) -> None:
    for name in found.figures[0] if found.figures else ():
        values = [one[name] for one in found.figures]
        shown = ", ".join(
            "-" if one is None else one if isinstance(one, str) else f"{one:.4g}" for one in values
        )
        echo(f"  {name:<24} {shown}")


def _as_json(one: CellDiagnosed) -> dict[str, Any]:
    cell, found = one.cell, one.found
    return {
        "cell": cell.id,
        "target": cell.target,
        "work": cell.work,
        "factors": cell.factors,
        "validity": cell.validity.state,
        "outcome": found.outcome,
        "named": [_cause_json(cause) for cause in found.named],
        "behind": [_cause_json(cause) for cause in found.behind],
        "open": [{"cause": part.entry.name, "lacks": list(part.lacks)} for part in found.open],
        "places": [{"place": part.place, "what": part.what, "use": part.use} for part in found.uses],
        "figures": [dict(figures) for figures in found.figures],
    }


def _cause_json(cause: CauseNamed) -> dict[str, Any]:
    entry = cause.entry
    return {
        "cause": entry.name,
        "place": entry.place,
        "title": cause.title,
        "share": cause.share,
        "share_low": cause.shares[0],
        "share_high": cause.shares[1],
        "held": cause.held,
        "trials": cause.trials,
        "evidence": cause.evidence,
        "experiment": entry.experiment,
        "remedy": entry.remedy,
        "price": entry.price,
        "source": entry.source,
    }


def _say(words: str) -> None:
    """One line, or more where it is a long one: what follows is indented."""
    indent = words[: len(words) - len(words.lstrip())] + "  "
    for line in textwrap.wrap(words, _WIDTH, subsequent_indent=indent, break_long_words=False):
        echo(line)
