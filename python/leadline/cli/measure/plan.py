"""`leadline plan`: every trial with all its defaults, the time and space, and what is written where."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.console import echo_text, make_console
from leadline.cli.measure.hosts_options import HostsOptions, hosts_options, planned_on
from leadline.cli.measure.study_options import (
    KnownServers,
    StudyRequest,
    application_options,
    load_plan,
    study_options,
)
from leadline.cli.options import AskedPath, complete_study
from leadline.errors import UsageError
from leadline.units import format_count, format_duration, printable

if TYPE_CHECKING:
    from rich.console import Console

    from leadline.analysis.cells import CellTable
    from leadline.plan.model import Plan, PlannedCell, Trial
    from leadline.study.study import Study
    from leadline.study.target import TargetFacts
    from leadline.verdict.comparisons.stopping import PlannedLevel


# Stated, not measured: about what ratios on memory, of random and of sequential disk I/O vary by.
ASSUMED_VARIATIONS = (0.02, 0.10, 0.25)
_WANTED = 0.1  # a difference that many would want to find
_NO_USE_ABOVE = 10.0  # a difference by more than ten times is no finding of statistics


def power_lines(plan: Plan, like: Path | None, metrics: tuple[str, ...]) -> tuple[str, ...]:
    """Sentences on the smallest difference, from assumed variations or those of the result `like`."""
    if plan.blocks < 2:
        return ("one block finds no difference: there is no confidence interval",)
    from leadline.verdict.comparisons.stopping import planned_level

    asked = planned_level(plan, metrics)
    count = asked.comparisons
    half = ", with half of them different" if count > 1 else ""
    blocks = f"{format_count(plan.blocks, 'block')}, {format_count(count, 'comparison')}{half}"
    if like is None:
        found = [
            f"{_difference(plan, v, asked)} where ratios vary by {v:.0%} from block to block"
            for v in ASSUMED_VARIATIONS
        ]
        return (
            f"minimum detectable difference (80 % power; {blocks}): {'; '.join(found)}"
            " (assumed; --like RESULT takes measured variation)",
        )
    measured = _measured(plan, like, metrics)
    return (
        f"minimum detectable difference (80 % power; {blocks}), with the variation of {like}:",
        *(
            f"  {work}: {_difference(plan, variation, asked)} (ratios vary by {variation:.1%};"
            f" {_blocks_for(variation, asked.level)})"
            for work, variation in measured.items()
        ),
    )


def enough_lines(study: Study, plan: Plan) -> tuple[str, ...]:
    """When blocks are added to those that are planned, or why they are as few as they are."""
    if study.enough is None:
        return ()
    if plan.blocks != study.blocks:
        return (
            f"{plan.blocks} blocks and not {study.blocks}: a single target leaves nothing to compare;"
            f" --blocks {study.blocks} runs {study.blocks}",
        )
    tells, within = study.enough.tells, format_duration(study.enough.within / 1e9)
    return (
        f"blocks are added where {study.blocks} would not detect a difference of {tells:.0%} in most"
        f" comparisons, and as many as can end within {within}; --blocks {study.blocks} keeps it at these",
    )


def _difference(plan: Plan, variation: float, asked: PlannedLevel) -> str:
    from leadline.analysis.statistics.moderated import (
        BLOCKS,
        smallest_difference,
        smallest_learned_difference,
    )

    found = None
    if plan.blocks in BLOCKS:
        targets = len(plan.targets)
        found = smallest_learned_difference(plan.blocks, variation, asked.level, targets, asked.ratios)
    found = found or smallest_difference(plan.blocks, variation, asked.level)
    if found is None or found > _NO_USE_ABOVE:
        return f"none below {_NO_USE_ABOVE:.0f} times"
    return f"{found:.1%}" if found < 0.1 else f"{found:.0%}"


def _blocks_for(variation: float, level: float) -> str:
    from leadline.analysis.statistics.moderated import blocks_for

    found = blocks_for(_WANTED, variation, level)
    return f"{_WANTED:.0%} takes {found} blocks" if found else f"{_WANTED:.0%} takes more than 100 blocks"


def _measured(plan: Plan, like: Path, metrics: tuple[str, ...]) -> Mapping[str, float]:
    """By work: the largest variation of the ratios of what it is asked for, or of the figures themselves
    where the result has one target.
    """
    from leadline.analysis.statistics.moderated import block_variation
    from leadline.plan.model import Plan as StoredPlan
    from leadline.store.reader import open_result, require_cells

    result = open_result(like)
    require_cells(like, result.manifest)
    stored = StoredPlan.from_json(result.manifest["plan"])
    works = dict.fromkeys(cell.work for cell in plan.cells)
    found: dict[str, float] = {}
    for work, logarithms in _series(stored, like, metrics):
        variation = block_variation(logarithms)
        if work in works and variation is not None:
            found[work] = max(variation, found.get(work, 0.0))
    if not found:
        raise UsageError(
            f"--like {like}: it has no workload of this study in two blocks or more",
            f"name a result with some of: {', '.join(works)}",
        )
    return found


def _series(stored: Plan, like: Path, metrics: tuple[str, ...]) -> Iterator[tuple[str, list[float]]]:
    from leadline.store.reader import open_result
    from leadline.verdict.comparisons.comparisons import asked_metrics
    from leadline.verdict.inputs import tables_of

    tables = tables_of(open_result(like), stored)
    base = stored.targets[0].name
    alone = len(stored.targets) == 1
    anchors = {cell.work: cell for cell in stored.cells if cell.target == base}
    for cell in stored.cells:
        if cell.id not in tables or (cell.target == base and not alone):
            continue
        anchor = tables.get(anchors[cell.work].id)
        for metric in asked_metrics(cell, metrics):
            own = _positive(tables[cell.id], metric)
            if alone or anchor is None:
                # Two targets that vary alike and apart from each other: their ratio varies more, by root two.
                yield cell.work, [math.sqrt(2) * math.log(value) for _, value in sorted(own.items())]
                continue
            others = _positive(anchor, metric)
            yield (
                cell.work,
                [math.log(own[block] / others[block]) for block in sorted(own) if block in others],
            )


def _positive(table: CellTable, metric: str) -> dict[int, float]:
    """By block, where there is a value to take the logarithm of."""
    found = {block: measured.values.get(metric, 0.0) for block, measured in table.by_block.items()}
    return {block: value for block, value in found.items() if value > 0}


@click.command(name="plan")
@click.argument("study", metavar="STUDY", shell_complete=complete_study)
@study_options
@application_options
@click.option(
    "--like",
    type=AskedPath(),
    metavar="RESULT",
    help="Compute the minimum detectable difference from the variation in this result.",
)
@hosts_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    study: str,
    targets: tuple[str, ...],
    sets: tuple[str, ...],
    blocks: int | None,
    seed: int | None,
    lab: str | None,
    servers: KnownServers,
    ignored: tuple[str, ...],
    input_path: str | None,
    program: tuple[str, ...],
    like: Path | None,
    hosts: HostsOptions,
    as_json: bool,
) -> None:
    """Print every trial of STUDY, a built-in name, a YAML file or fio's job file, before anything runs.

    Nothing is measured or written. With --hosts or --scheduler, targets are looked up on this host; the hosts
    are asked only for targets that are not here, and for a lab's clients.
    """
    from leadline.plan.check import check_space

    request = StudyRequest(study, targets, sets, blocks, seed, program, input_path, lab, servers, ignored)
    asked, plan, facts = planned_on(hosts, lab, functools.partial(load_plan, request))
    if as_json:
        if like is not None:
            raise UsageError("--like changes nothing in the JSON", "leave out --like or --json")
        echo_text(json.dumps(plan.as_json(), indent=2))
    else:
        power = (*power_lines(plan, like, tuple(asked.compare.metrics)), *enough_lines(asked, plan))
        _print_plan(make_console(), plan, facts, power)
    check_space(plan, asked, facts)


def _print_plan(console: Console, plan: Plan, facts: dict[str, TargetFacts], power: tuple[str, ...]) -> None:
    from leadline import units
    from leadline.plan.make import most_seconds

    console.print(_plain(plan.title, "bold"))
    if plan.about:
        console.print(_plain(plan.about))
    blocks = f"{plan.blocks} block{'' if plan.blocks == 1 else 's'}"
    longest_s = most_seconds(plan)
    most = f", {units.format_duration(longest_s)} with all of them" if longest_s > plan.seconds else ""
    console.print(
        f"\n{format_count(len(plan.trials), 'trial')}: {_cells_words(plan, blocks)}, seed {plan.seed}; "
        f"about {units.format_duration(plan.seconds)}{most}\n"
    )
    _print_targets(console, plan, facts)
    for target in plan.targets:
        cells = [cell for cell in plan.cells if cell.target == target.name]
        _print_cells(console, target.name, cells)
    _print_trials(console, plan)
    _print_files(console, plan)
    console.print("Notes", style="bold")
    for note in (*plan.notes, *power):
        console.print(_plain(f"  {note}"))


def _cells_words(plan: Plan, blocks: str) -> str:
    """`6 cells x 3 blocks and the start of 2 sweeps over 270 more`."""
    from leadline.plan.make import sweep_trials, sweeps_of

    sweeps = sweeps_of(plan.cells)
    grid = sum(map(len, sweeps.values()))
    plain = len(plan.cells) - grid
    most = sum(map(sweep_trials, sweeps.values()))
    parts = [f"{plain} cell{'' if plain == 1 else 's'} x {blocks}"] if plain else []
    if sweeps:
        count = f"{len(sweeps)} sweep{'' if len(sweeps) == 1 else 's'}"
        parts.append(f"the start of {count} over {grid} cells, which may have {most} trials in all")
    return " and ".join(parts)


def _plain(text: str, style: str = "") -> object:
    """Text that comes from a user: no markup in it is obeyed, no control character is sent on."""
    from rich.text import Text

    return Text("".join(c if c == "\n" else printable(c) for c in text), style=style)


def _print_targets(console: Console, plan: Plan, facts: dict[str, TargetFacts]) -> None:
    from rich import box
    from rich.table import Table

    from leadline import units

    table = Table("target", "address", "what it is", "free", "needed", box=box.SIMPLE, title_justify="left")
    for target in plan.targets:
        fact = facts[target.name]
        free = "" if fact.free_bytes is None else units.format_size(fact.free_bytes)
        needed = units.format_size(plan.bytes_needed[target.name])
        table.add_row(*(_plain(text) for text in (target.name, target.url, fact.words, free, needed)))  # type: ignore[arg-type]
    console.print(table)


def _print_cells(console: Console, target: str, cells: list[PlannedCell]) -> None:
    """What all workloads share on one line, what they differ in on one line each, then the reasons."""
    console.print(_plain(f"Jobs on {target}", "bold"))
    rows = _rows(cells)
    width = max(len(work) for work, _, _ in rows)
    options = [words for _, words, _ in rows]
    shared = {n: text for n, text in options[0].items() if all(one.get(n) == text for one in options)}
    own = shared if len(rows) > 1 else {}
    reasons: dict[str, list[str]] = {}
    for work, words, cell in rows:
        mark = "  measures caches" if cell.measures_caches else ""
        line = " ".join(f"{name}={text}" for name, text in words.items() if name not in own)
        console.print(_plain(f"  {work:<{width}}  {line}{mark}"))
        for note in cell.notes:
            reasons.setdefault(note, []).append(work)
    if own:
        line = " ".join(f"{name}={text}" for name, text in own.items())
        console.print(_plain(f"  {'all of them':<{width}}  {line}"))
    for note, works in reasons.items():
        where = "all workloads" if len(works) == len(rows) else ", ".join(works)
        console.print(_plain(f"    - {note} [{where}]"))
    console.print()


def _rows(cells: list[PlannedCell]) -> list[tuple[str, dict[str, str], PlannedCell]]:
    """A line for each cell, and one for the whole grid of a sweep, whose levels are from one to another."""
    from leadline.study.kinds import job_words

    grouped: dict[str, list[PlannedCell]] = {}
    for cell in cells:
        grouped.setdefault(f"sweep {cell.swept.name}" if cell.swept else cell.work, []).append(cell)
    rows = []
    for name, own in grouped.items():
        words = [job_words(cell.job) for cell in own]
        ends = {
            option: text if words[-1][option] == text else f"{text}..{words[-1][option]}"
            for option, text in words[0].items()
        }
        rows.append((name, ends, own[0]))
    return rows


def _print_trials(console: Console, plan: Plan) -> None:
    console.print("Order", style="bold")
    for block in dict.fromkeys(trial.block for trial in plan.trials):
        slots = [slot for slot in plan.slots() if slot[0].block == block]
        console.print(f"  block {block}: " + ", ".join(_slot_words(plan, slot) for slot in slots))
    console.print()


def _slot_words(plan: Plan, slot: tuple[Trial, ...]) -> str:
    """What runs at the same time is joined by `+`, what follows in one slot by `then`."""
    joint = " then " if len(slot) == 1 or plan.cell(slot[0].cell).order == "sequence" else " + "
    return joint.join(f"{trial.id} {trial.cell}" for trial in slot)


def _print_files(console: Console, plan: Plan) -> None:
    from leadline import units
    from leadline.study.kinds import planned

    console.print("What is written", style="bold")
    for target in plan.targets:
        if not target.is_path:
            console.print(_plain(f"  {target.name}: nothing"))
            continue
        console.print(_plain(f"  {target.name}: below {target.url}/leadline-<id>/, removed at the end"))
        own = [c for c in plan.cells if c.target == target.name]
        layouts = {c.layout.key: planned(c.job).layout_words(c.layout) for c in own if c.layout is not None}
        for words in layouts.values():
            console.print(f"    {words}")
        for words in dict.fromkeys(filter(None, (planned(cell.job).unsized for cell in own))):
            console.print(f"    {words}")
        fresh = [c for c in own if c.layout is None and planned(c.job).unsized is None]
        if fresh:
            largest = max(cell.job.data_set_bytes for cell in fresh)
            console.print(
                f"    fresh files of up to {units.format_size(largest)} in each trial that makes its own"
            )
    console.print()
