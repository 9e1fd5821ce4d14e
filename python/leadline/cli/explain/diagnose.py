"""`leadline diagnose`: what bounds each cell of a result, or costs a traced program, with the evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import echo, echo_text, terminal_width
from leadline.cli.explain.active import AskedExperiment, decide_by_experiment
from leadline.cli.explain.paragraphs import WIDTH, bar, say
from leadline.cli.machine.lab_faults import under_fault_option
from leadline.cli.machine.watch import seconds_of
from leadline.cli.options import (
    AskedPath,
    RenamedOption,
    UntouchedPath,
    complete_result,
    ignore_health_option,
    out_option,
    trust_option,
)
from leadline.errors import UsageError
from leadline.report.format import plural
from leadline.units import quoted

if TYPE_CHECKING:
    from leadline.store.reader import Result
    from leadline.tracing.findings import TraceCause, TraceDiagnosed
    from leadline.verdict.diagnosis.ceilings import RateCeilings
    from leadline.verdict.diagnosis.judge import CauseNamed, Diagnosed
    from leadline.verdict.diagnosis.results import CellDiagnosed


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
    from leadline.tracing.findings import diagnose_trace

    found = diagnose_trace(result)
    if as_json:
        cells = [_as_json(one) for one in found]
        text = {"format": "leadline.diagnosis/1", "kind": "trace", "cells": cells}
        echo_text(json.dumps(text, indent=1, allow_nan=False))
        return
    for one in found:
        _print(one)
        if figures:
            _print_trace_figures(one)


def _print(one: TraceDiagnosed) -> None:
    echo(f"{one.cell.id}: {one.cell.validity.state}")
    if one.outcome == "unusable":
        _print_notes(one)
        return
    if one.named:
        say(f"Costs it: {', '.join(f'{cause.finding.title} ({_share(cause)})' for cause in one.named)}.")
    else:
        say("No I/O of it costs a notable part of its time: no rule of traces holds.")
    for cause in one.named:
        _print_trace_cause(cause)
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


def _print_trace_cause(cause: TraceCause) -> None:
    finding = cause.finding
    where = "" if finding.count == 1 else f" in {finding.count:,} places"
    say(f"  {finding.title[:1].upper()}{finding.title[1:]}{where}: {cause.words}.")
    if cause.evidence:
        say(f"  Seen: {cause.evidence}.")
    say(f"  Remedy: {finding.change}")


def _print_trace_figures(one: TraceDiagnosed) -> None:
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


_LOOK, _LONGEST = "30s", "2m"


@click.command(short_help="Show the bottleneck of each cell of a result, or of a traced program")
@click.argument("directory", type=AskedPath(), required=False, shell_complete=complete_result)
@click.option(
    "--cell", "wanted", metavar="TEXT", help="Only cells whose TARGET.WORKLOAD or id contains TEXT."
)
@click.option("--live", metavar="PATH", type=UntouchedPath(), help="Diagnose the mount at PATH now.")
@click.option(
    "--for",
    "duration",
    metavar="TIME",
    help="With --live: how long to observe (30s). With --active: time limit of the experiment (2m).",
)
@click.option("--no-bpf", is_flag=True, help="With --live: disable the eBPF tracer.")
@click.option(
    "--active", is_flag=True, help="Run the one experiment that decides between causes. It is shown first."
)
@click.option(
    "--alternative",
    "beside",
    cls=RenamedOption,
    former=("--beside",),
    metavar="NAME=ADDRESS",
    help="With --active: another access method to the same storage, such as rados=rados://POOL.",
)
@click.option("--yes", is_flag=True, help="With --active: run without asking.")
@ignore_health_option
@under_fault_option
@out_option()
@trust_option
@click.option("--all", "whole", is_flag=True, help="Also list everything that could not be observed.")
@click.option(
    "--values",
    "figures",
    cls=RenamedOption,
    former=("--figures",),
    is_flag=True,
    help="Also print all values that the causes were judged by.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.diagnosis/1.")
def command(
    directory: Path | None,
    wanted: str | None,
    live: str | None,
    duration: str | None,
    no_bpf: bool,
    active: bool,
    beside: str | None,
    yes: bool,
    ignore_health: bool,
    under_fault: bool,
    out: Path | None,
    trusted: bool,
    whole: bool,
    figures: bool,
    as_json: bool,
) -> int:
    """Show the bottleneck of each cell of the result in DIRECTORY, or with --live of a mount.

    For a trace, show which I/O of the program costs time.

    Nothing is run except with --active, and nothing is written to a mount. Causes are judged by recorded
    counters and samples; what could not be observed is listed.

    \b
    leadline diagnose leadline-quick-20260131-120000
    leadline diagnose leadline-quick-20260131-120000 --cell ceph.randread --active
    leadline diagnose leadline-trace-20260131-120000
    leadline diagnose --live /mnt/cephfs --for 1m
    """
    if (directory is None) == (live is None):
        raise UsageError(
            "it takes a result's directory, or --live with a path", "see leadline diagnose --help"
        )
    own = {"--alternative": beside, "--yes": yes, "--out": out}
    own |= {"--ignore-health": ignore_health, "--under-fault": under_fault}
    _refuse_beside(active=active, others=own, live=live)
    shown = _OnScreen(whole=whole, figures=figures)
    if live is not None:
        _live(live, duration or _LOOK, shown, as_json=as_json, use_bpf=not no_bpf)
    elif directory is not None:
        only_studies = {"--cell": wanted, "--active": active, "--for": duration, "--no-bpf": no_bpf}
        only_studies["--all"] = whole
        _of_result(directory, wanted, only_studies, shown, as_json=as_json)
        if active:
            asked = AskedExperiment(
                beside, seconds_of(duration or _LONGEST), out, yes, trusted, ignore_health, under_fault
            )
            return decide_by_experiment(directory, wanted, asked)
    return 0


def _refuse_beside(*, active: bool, others: Mapping[str, object], live: str | None) -> None:
    if active and live is not None:
        raise UsageError("--live adds no load, and --active would", "leave one of them out")
    asked = [name for name, value in others.items() if value]
    if asked and not active:
        raise UsageError(f"{asked[0]} is for an experiment", "add --active, or leave it out")


@dataclass(frozen=True)
class _OnScreen:
    """What is printed besides the answer."""

    whole: bool
    figures: bool


def _live(path: str, duration: str, shown: _OnScreen, *, as_json: bool, use_bpf: bool) -> None:
    from leadline.cli.machine.lab_faults import labs_of
    from leadline.cli.machine.watch import say_progress
    from leadline.cli.signals import StopRequest
    from leadline.observe.host.host import link_facts, power_facts
    from leadline.observe.mounts.mounts import look
    from leadline.verdict.diagnosis.results import Watched, diagnose_live
    from leadline.verdict.diagnosis.section import FORMAT, figures_json, found_json
    from leadline.watch.figures import watch_facts
    from leadline.watch.sampler import watch

    duration_s = seconds_of(duration)
    facts, mount, resolved = look(path)
    labs = labs_of((), {"mount": facts}, under_fault=True)
    progress = say_progress(duration_s)
    with StopRequest() as stop:
        seen = watch(
            resolved, facts, mount, duration_s, stop=stop, progress=progress, use_bpf=use_bpf, labs=labs
        )
    values = watch_facts(seen).values
    watched = Watched(
        seen.elapsed_s, seen.change, seen.samples, values, facts, {**power_facts(), **link_facts()}
    )
    found = diagnose_live(watched)
    if as_json:
        one = {"path": resolved, "seconds": seen.elapsed_s, **found_json(found), **figures_json(found)}
        echo_text(json.dumps({"format": FORMAT, "live": one}, indent=1, allow_nan=False))
        return
    echo(f"{resolved} ({facts.words}), {seen.elapsed_s:.0f} s")
    _print_found(found, None, whole=shown.whole)
    if shown.figures:
        _print_figures(found)


def _of_result(
    directory: Path,
    wanted: str | None,
    only_studies: Mapping[str, object],
    shown: _OnScreen,
    *,
    as_json: bool,
) -> None:
    """A trace has no trials: it is judged by rules of its own, and some options say nothing about it."""
    from leadline.store.reader import open_result

    result = open_result(directory)
    if result.traced:
        refuse_for_trace(only_studies)
        of_trace(result, figures=shown.figures, as_json=as_json)
    else:
        _of_study(result, wanted, shown, as_json=as_json)


def _of_study(result: Result, wanted: str | None, shown: _OnScreen, *, as_json: bool) -> None:
    from leadline.verdict.diagnosis.results import diagnose_result
    from leadline.verdict.diagnosis.section import FORMAT, cell_json, figures_json

    found = diagnose_result(result, wanted)
    if as_json:
        cells = [{**cell_json(one), **figures_json(one.found)} for one in found]
        echo_text(json.dumps({"format": FORMAT, "cells": cells}, indent=1, allow_nan=False))
        return
    if len(found) > 1 and wanted is None:
        _print_table(found, quoted(result.path))
    for one in found if len(found) == 1 or wanted is not None else ():
        _print_cell(one, whole=shown.whole)
        if shown.figures:
            _print_figures(one.found)


def _print_table(found: tuple[CellDiagnosed, ...], word: str) -> None:
    """By target first, then a line each cell; the rest with --cell. `word` names the result in a shell."""
    from leadline.verdict.diagnosis.results import by_target

    for words in by_target(found):
        say(words)
    echo()
    width = max(len(one.name) for one in found)
    echo(f"{'cell':<{width}}  {'% of limit':>10}  bottleneck")
    for one in found:
        line = f"{one.name:<{width}}  {_reached(one.should):>10}  {one.found.words}"
        for part in wrap(line, terminal_width(WIDTH), subsequent_indent=" " * (width + 14)):
            echo(part)
    echo()
    echo(
        "% of limit: measured, in percent of the lowest known limit of a link, the device or the queue depth."
    )
    echo("Evidence, the I/O path as a picture, and what to do:")
    echo(f"  leadline diagnose {word} --cell {quoted(_most_telling(found).name)}")


def _most_telling(found: tuple[CellDiagnosed, ...]) -> CellDiagnosed:
    """The cell that is furthest below its limit of those with a known bottleneck; else the first."""
    named = [one for one in found if one.found.named]
    return min(named or found, key=lambda one: one.should.share if one.should else 2.0)


def _reached(should: RateCeilings | None) -> str:
    return "?" if should is None else f"{100 * should.share:.0f} %"


def _print_cell(one: CellDiagnosed, *, whole: bool) -> None:
    cell, found = one.cell, one.found
    echo(f"{one.name}: {cell.validity.state}, {plural(len(found.figures), 'trial')}")
    if found.outcome == "unusable":
        say("  No trial of it can be judged.")
        echo()
        return
    for words in one.notes:
        say(f"  {words}")
    _print_found(found, one.should, whole=whole)


def _print_found(found: Diagnosed, should: RateCeilings | None, *, whole: bool) -> None:
    from leadline.verdict.diagnosis.judge import titled

    if found.named:
        say(f"Bottleneck: {titled(found.named)}.")
        for cause in found.named:
            _print_cause(cause)
    else:
        say("Bottleneck: unknown. Nothing that was observed was full, and no cause holds.")
    if found.apart:
        say(f"Apart from the load of other processes, the next limit is {titled(found.apart)}.")
        for cause in found.apart:
            _print_cause(cause)
    _print_should(should)
    for cause in found.behind[:2]:
        say(f"Behind it: {cause.words}: {cause.evidence}.")
    _print_budget(found)
    _print_way(found)
    _print_open(found, whole=whole)
    echo()


def _print_should(should: RateCeilings | None) -> None:
    from leadline.units import format_rate

    if should is None:
        say("% of limit: unknown. No limit of a link or device was observable.")
        return
    first, *others = should.ceilings
    say(
        f"% of limit: {100 * should.share:.0f} %, {format_rate(should.measured)} of"
        f" {format_rate(first.bytes_per_s)}, limited by {first.by}."
    )
    for other in others:
        say(f"  {other.by} would allow {format_rate(other.bytes_per_s)}.")


def _print_cause(cause: CauseNamed) -> None:
    from leadline.verdict.diagnosis.section import measured_by

    entry = cause.entry
    say(f"  {entry.means}")
    say(f"  Seen in {cause.held} of {cause.trials} trials, {_span(cause)}: {cause.evidence}.")
    if cause.share is None:
        say(f"  To measure how much it takes: {measured_by(cause)}")
    for words in cause.against:
        say(f"  Against it: {words}.")
    say(f"  To be sure: {entry.experiment}")
    say(f"  Remedy: {entry.remedy} (trade-off: {entry.price})")


def _span(cause: CauseNamed) -> str:
    """The shares of its trials, and of what they are."""
    from leadline.verdict.diagnosis.causes import SHARE_KINDS

    if cause.shares is None:
        return "how much it takes is not measured"
    low, high = (f"{100 * share:.0f}" for share in cause.shares)
    return f"{low if low == high else f'{low} to {high}'} % {SHARE_KINDS[cause.entry.share_kind]}"


def _print_way(found: Diagnosed) -> None:
    from leadline.report.section_parts import place_lines

    echo()
    for line in place_lines(found.uses, terminal_width(WIDTH)):
        echo(line)
    echo()


def _print_budget(found: Diagnosed) -> None:
    """One bar, and the segments that its letters are."""
    from leadline.units import format_latency
    from leadline.verdict.diagnosis.budget import bar_of, nothing_seen

    if found.budget is None:
        return
    whole = f"A request takes {format_latency(found.budget.whole_s * 1e9)}"
    if words := nothing_seen(found.budget):
        say(f"{whole}. {words}")
        return
    letters, said, unseen = bar_of(found.budget)
    say(f"{whole}: [{letters}]")
    say(f"  {'; '.join(said)}.")
    if unseen:
        say(f"  {unseen}")


def _print_open(found: Diagnosed, *, whole: bool) -> None:
    """The three steps that settle most causes, or all of them with the names of causes and metrics."""
    from leadline.verdict.diagnosis.section import MOST, steps

    if not found.open or (not whole and found.named and (found.named[0].share or 0.0) >= 0.5):
        return
    every = steps(found.open)
    shown = every if whole else every[:MOST]
    say("Not observable here, so not ruled out:")
    for step in shown:
        first, *others = [one.entry.plain_title for one in step.causes]
        more = f" and {len(others)} more" if others else ""
        say(f"  {first}{more}: {step.words}")
        if whole:
            names = (f"{one.entry.name} (lacks {', '.join(one.lacks)})" for one in step.causes)
            say(f"    {', '.join(names)}")
    left = sum(len(step.causes) for step in every[len(shown) :])
    if left:
        say(f"  {left} more causes: add --all.")


def _print_figures(found: Diagnosed) -> None:
    for name in found.figures[0] if found.figures else ():
        values = [one[name] for one in found.figures]
        shown = ", ".join(
            "-" if one is None else one if isinstance(one, str) else f"{one:.4g}" for one in values
        )
        echo(f"  {name:<24} {shown}")
