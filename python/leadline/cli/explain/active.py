"""`leadline diagnose DIR --cell … --active`: the one experiment that decides, shown before it is run."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import echo
from leadline.cli.options import require_trust
from leadline.errors import UsageError
from leadline.units import format_count, quoted

if TYPE_CHECKING:
    from leadline.cli.measure.run import RunChoices
    from leadline.plan.model import Plan, PlannedCell
    from leadline.store.reader import Result
    from leadline.study.study import Study
    from leadline.verdict.diagnosis.experiments import ChosenExperiment, Decided, Prediction
    from leadline.verdict.diagnosis.results import CellDiagnosed

_BEFORE, _CHANGED = "as_it_was", "changed"
_BLOCKS, _BLOCKS_MIN = 4, 2
_RUNTIME_MAX_NS = 8_000_000_000


@dataclass(frozen=True)
class AskedExperiment:
    """What was asked for: `beside` is NAME=ADDRESS of another way, `limit_s` the longest that it may take.

    A cluster in trouble ends it, and a lab's fault keeps it from beginning, as any run, unless told by name.
    """

    beside: str | None
    limit_s: float
    out: Path | None
    yes: bool
    trusted: bool
    ignore_health: bool = False
    under_fault: bool = False

    @property
    def choices(self) -> RunChoices:
        """How the experiment is run."""
        from leadline.cli.measure.run import RunChoices

        return RunChoices(ignore_health=self.ignore_health, under_fault=self.under_fault)


def decide_by_experiment(directory: Path, wanted: str | None, asked: AskedExperiment) -> int:
    """Choose, show, ask, run, say. Returns the exit code of the run where it did not end."""
    from leadline.observe.hang_guard import temporary_directory
    from leadline.store.making import temporary
    from leadline.store.reader import open_result
    from leadline.verdict.diagnosis.experiments import choose, possible
    from leadline.verdict.diagnosis.results import diagnose_result

    require_trust(directory, "make an experiment by it", trusted=asked.trusted)
    result = open_result(directory)
    found = diagnose_result(result, wanted)
    if len(found) != 1:
        names = ", ".join(f"{one.cell.target}.{one.cell.work}" for one in found[:8])
        raise UsageError("--active decides of one cell", f"name it with --cell: {names}")
    planned = _planned(result, found[0])
    chosen = choose(found[0].found, tuple(possible(planned.job.as_json(), planned.kind, asked.beside)))
    if chosen is None:
        echo("No experiment that can run here distinguishes the likely causes.")
        return 0
    with temporary(Path(temporary_directory())) as place:
        study = _write_study(place, result, planned, chosen)
        return _make(study, result, planned, chosen, asked)


def _planned(result: Result, one: CellDiagnosed) -> PlannedCell:
    from leadline.plan.model import Plan

    plan = Plan.from_json(result.manifest["plan"])
    planned = next(cell for cell in plan.cells if cell.id == one.cell.id)
    if planned.group is not None:
        raise UsageError(
            f"{planned.id} is a job of several that run together: no single option of it can be changed",
            "diagnose the job by itself, in a study of its own",
        )
    return planned


def _write_study(place: Path, result: Result, planned: PlannedCell, chosen: ChosenExperiment) -> Path:
    """The work as it was and with one option changed, in the words of a study."""
    from leadline.study.study import STUDY_FORMAT, Study, expand

    study = Study.from_json(result.manifest["study"])
    work = next(one for one in expand(study) if one.name == planned.work)
    before: dict[str, Any] = work.options.model_dump(mode="json", exclude_none=True)
    if planned.job.time_based:
        before["runtime"] = f"{min(planned.job.runtime_ns, _RUNTIME_MAX_NS) / 1e9:g}s"
    works = {_BEFORE: before}
    if chosen.experiment.url is None:
        works[_CHANGED] = {**before, **chosen.experiment.changes}
    written = {
        "format": STUDY_FORMAT,
        "name": "experiment",
        "blocks": _BLOCKS,
        "works": works,
        "limits": _limits(study),
        "compare": {"metrics": [chosen.experiment.metric]},
    }
    path = place / "experiment.yaml"
    path.write_text(json.dumps(written))
    return path


def _limits(study: Study) -> dict[str, Any]:
    found: dict[str, Any] = study.limits.model_dump(mode="json", exclude_none=True)
    return found


def _make(
    study: Path, result: Result, planned: PlannedCell, chosen: ChosenExperiment, asked: AskedExperiment
) -> int:
    from leadline.cli.measure.run import start_here
    from leadline.cli.measure.study_options import StudyRequest, load_plan
    from leadline.cli.options import place_for
    from leadline.cli.signals import StopRequest
    from leadline.plan.model import Plan

    urls = {target.name: target.url for target in Plan.from_json(result.manifest["plan"]).targets}
    targets: tuple[str, ...] = (f"{planned.target}={urls[planned.target]}",)
    if chosen.experiment.url is not None:
        targets += (chosen.experiment.url,)
    blocks = _BLOCKS
    while True:
        request = StudyRequest(str(study), targets, blocks=blocks)
        _, plan, _ = load_plan(request)
        if plan.seconds <= asked.limit_s or blocks == _BLOCKS_MIN:
            break
        blocks -= 1
    _show(plan, planned, chosen, asked.limit_s)
    _confirm(asked.yes)
    out = place_for(asked.out, "experiment")
    with StopRequest() as stop:
        outcome = start_here(request, out, asked.choices, stop, quiet=False)
        if outcome.stopped:
            raise UsageError(
                f"the experiment was stopped: {outcome.stopped}; it is in {out}",
                "make it again when that is over; --ignore-health goes on all the same",
            )
        if outcome.interrupted:
            raise UsageError(f"the experiment did not come to its end; it is in {out}", "make it again")
    _say(_decided(out, plan, chosen), chosen, out)
    return 0


def _show(plan: Plan, planned: PlannedCell, chosen: ChosenExperiment, limit_s: float) -> None:
    from leadline.units import format_duration, format_size

    if plan.seconds > limit_s:
        raise UsageError(
            f"the experiment would take about {format_duration(plan.seconds)}",
            f"give it that time with --for, which is {format_duration(limit_s)}",
        )
    needed = format_size(max(plan.bytes_needed.values()))
    echo(f"Experiment: {planned.id} with {chosen.experiment.words}, in turns with what it was,")
    trials, took = format_count(len(plan.trials), "trial"), format_duration(plan.seconds)
    echo(f"  {trials}, about {took}, {needed} of files at a time.")
    for one in chosen.predictions:
        echo(f"  {one.cause.name:<20} predicts {one.ratio:.2f} times the rate")


def _confirm(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nothing was run: there is nobody to ask", "add --yes to run it")
    if not click.confirm("Run it?", default=False, err=True):
        raise UsageError("nothing was run", "add --yes to run it without a question")


def _decided(out: Path, plan: Plan, chosen: ChosenExperiment) -> Decided:
    from leadline.analysis.cells import compare_cells
    from leadline.store.reader import open_result
    from leadline.verdict.diagnosis.experiments import decide
    from leadline.verdict.inputs import read_material

    tables = read_material(open_result(out), with_charts=False).tables
    before, changed = (tables[cell.id] for cell in plan.cells)
    ratio = compare_cells(before, changed, chosen.experiment.metric)
    if ratio is None:
        raise UsageError("the experiment's trials failed", f"see: leadline show {quoted(out)}")
    estimate = ratio.estimate()
    low, high = estimate.low or estimate.value, estimate.high or estimate.value
    return decide(chosen, estimate.value, low, high)


def _say(decided: Decided, chosen: ChosenExperiment, out: Path) -> None:
    low, high = f"{decided.low:.2f}", f"{decided.high:.2f}"
    echo(f"With {chosen.experiment.words}: {decided.ratio:.2f} times the rate ({low} to {high}).")
    if not decided.tells:
        echo("That is inconclusive: it scattered too much. Repeat it on a quiet machine.")
    elif not decided.for_it:
        echo("None of the likely causes predicts that: it is something else, or several of them.")
    else:
        echo(f"For: {_names(decided.for_it)}.")
        echo(f"  {decided.for_it[0].cause.remedy}")
    if decided.tells and decided.against:
        echo(f"Against: {_names(decided.against)}.")
    echo(f"Result: {out}")


def _names(ones: tuple[Prediction, ...]) -> str:
    return ", ".join(f"{one.cause.name} ({one.ratio:.2f})" for one in ones)
