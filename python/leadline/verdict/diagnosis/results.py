"""The diagnoses of a stored result and of a mount that is in use now.

Of a result: each cell, from the trials that its figures rest on, and what most cells of a target are bound
by. A diagnosis is limited by gaps in what was seen, daemons that began anew, a single trial. Of a mount all
users together are its work; what nobody asked of them, as how many operations are to be in flight, stays
open.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leadline.counters.catalogue import trial_figures
from leadline.errors import UsageError
from leadline.foreign import UNTOUCHED, reading
from leadline.store.by_host import sample_lines_by_host
from leadline.store.reader import Result, require_cells
from leadline.store.tables import SeriesRow, TrialRow
from leadline.study.target import TargetFacts
from leadline.units import format_count
from leadline.verdict.cells import judge_cells
from leadline.verdict.diagnosis.causes import CauseEntry, CauseInTrial, applying, judged, of_itself
from leadline.verdict.diagnosis.ceilings import RateCeilings, TrialSeen, ceilings, should_of
from leadline.verdict.diagnosis.judge import CauseNamed, Diagnosed, diagnose, without_others
from leadline.verdict.diagnosis.samples import Figures, Samples, ratio
from leadline.verdict.diagnosis.trial_figures import between, figures_of
from leadline.verdict.inputs import Material, read_material
from leadline.verdict.model import Cell

_TRIAL = "live"
_NS = 1_000_000_000


@dataclass(frozen=True)
class Watched:
    """A mount that was looked at for `elapsed_s`.

    `change` are the observers' figures between two marks, as `Delta.as_json` has them; `samples` their
    series: time in ns, source, subject, metric, value, unit; `values` what users did (`leadline watch`);
    `host` what a manifest says of the host.
    """

    elapsed_s: float
    change: Mapping[str, Any]
    samples: Sequence[tuple[int, str, str, str, float, str]]
    values: Mapping[str, float | str | None]
    facts: TargetFacts
    host: Mapping[str, str] = field(default_factory=dict)


def diagnose_live(watched: Watched) -> Diagnosed:
    """The causes that hold for what goes on."""
    return diagnose([figures_of_live(watched)], applying(watched.facts))


def figures_of_live(watched: Watched) -> Figures:
    """As of a trial that lasted as long."""
    row, series = _row(watched), _series(watched)
    samples = Samples.of_rows(row, series)
    found = figures_of(row, (), samples, None, target=watched.facts, host=watched.host)
    reads, writes = (watched.values.get(name) for name in ("reads_per_s", "writes_per_s"))
    times = (watched.values.get("mean_read_s"), watched.values.get("mean_write_s"))
    spent = [
        rate * time
        for rate, time in zip((reads, writes), times, strict=True)
        if isinstance(rate, float) and isinstance(time, float)
    ]
    if isinstance(reads, float) and isinstance(writes, float) and reads + writes > 0:
        in_flight = sum(spent)
        found |= {"in_flight": in_flight, "latency_s": in_flight / (reads + writes)}
    else:  # nobody's calls were seen, or there were none
        found |= dict.fromkeys(
            ("operations_per_s", "bytes_per_s", "request_bytes", "write_share", "in_flight", "latency_s")
        )
    found["metadata_per_operation"] = ratio(found["mds_requests_per_s"], found["operations_per_s"])
    return found | between(found)


def _row(watched: Watched) -> TrialRow:
    def count(name: str) -> int:
        value = watched.values.get(name)
        return round(value * watched.elapsed_s) if isinstance(value, float | int) else 0

    read, written = count("read_bytes_per_s"), count("written_bytes_per_s")
    observed = {figure.name: watched.change.get(figure.name) for figure in trial_figures()}
    return TrialRow(
        **observed,
        trial=_TRIAL,
        cell=_TRIAL,
        target=_TRIAL,
        work=_TRIAL,
        block=1,
        order=1,
        seed=0,
        state="complete",
        error=None,
        started_unix_ns=0,
        ramp_ns=0,
        measured_ns=round(watched.elapsed_s * _NS),
        first_done_ns=0,
        last_done_ns=round(watched.elapsed_s * _NS),
        read_bytes=read,
        read_operations=count("reads_per_s"),
        write_bytes=written,
        write_operations=count("writes_per_s"),
        sync_operations=count("syncs_per_s"),
        total_read_bytes=read,
        total_write_bytes=written,
        cpu_user_ns=0,
        cpu_system_ns=0,
        busy_share_max=None,
        late_ns_max=None,
        late_ns_mean=None,
        unwritten_blocks=0,
        verified_blocks=0,
        caches_dropped=False,
        job="{}",
        factors="{}",
        threads="[]",
        summary="{}",
        reasons=json.dumps(watched.change.get("reasons", {})),
        sources=json.dumps(watched.change.get("sources", {})),
        start_state=json.dumps(watched.change.get("state_start")),
        end_state=json.dumps(watched.change.get("state_end")),
    )


def _series(watched: Watched) -> list[SeriesRow]:
    """Times as of a trial: from its start on."""
    first = min((at for at, *_ in watched.samples), default=0)
    return [
        SeriesRow(_TRIAL, at - first + 1, source, subject, metric, value, unit)
        for at, source, subject, metric, value, unit in watched.samples
    ]


_GAPS = 0.2  # of the samples that were due
_BEGAN_ANEW = "its daemon restarted"
_OTHERS = "not observable: read from"


def notes_of(trials: Sequence[TrialRow], sampled: Sequence[int]) -> tuple[str, ...]:
    """In words, for who reads the diagnosis; `sampled` is how many samples each trial has."""
    return tuple(_notes(trials, sampled))


def _notes(trials: Sequence[TrialRow], sampled: Sequence[int]) -> Iterator[str]:
    if len(trials) == 1:
        yield "There is one trial only: the variation between trials is unknown."
    blind = [trial.trial for trial, count in zip(trials, sampled, strict=True) if not count]
    if blind:
        yield f"Observers have no samples of {_named(blind)}: only totals are used."
    gaps = [
        trial.trial
        for trial in trials
        if trial.samples_due and (trial.samples_missed or 0) >= _GAPS * trial.samples_due
    ]
    if gaps:
        yield f"20 % or more of the samples are missing in {_named(gaps)}."
    reasons = {trial.trial: list(json.loads(trial.reasons or "{}").values()) for trial in trials}
    anew = [name for name, said in reasons.items() if any(_BEGAN_ANEW in str(words) for words in said)]
    if anew:
        yield f"A daemon restarted in {_named(anew)}: its counters of that time are left out."
    others = [name for name, said in reasons.items() if any(str(words).startswith(_OTHERS) for words in said)]
    if others:
        words = "answered at its end than at its start: their counters are left out"
        yield f"In {_named(others)} other daemons {words}."


def _named(trials: Sequence[str]) -> str:
    shown = ", ".join(trials[:3])
    return shown if len(trials) <= 3 else f"{shown} and {format_count(len(trials) - 3, 'more trial')}"


# An INVALID cell's rate is not to be used; that does not make what was seen of it wrong, but for these.
_UNTRUE = frozenset({"data_errors", "cached_reads"})


@dataclass(frozen=True)
class CellDiagnosed:
    """A cell, what bounds it, and how much of what it should reach it reached."""

    cell: Cell
    found: Diagnosed
    should: RateCeilings | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Target and work, and what sets it apart from others of that name."""
        levels = " ".join(f"{name}={value}" for name, value in self.cell.factors.items())
        return f"{self.cell.target}.{self.cell.work} {levels}".strip()


def diagnose_result(result: Result, wanted: str | None = None) -> tuple[CellDiagnosed, ...]:
    """Every cell whose id, work or target has `wanted` in it; all of them where it is None.

    Raises UsageError where there is none, or the result has no trials.
    """
    require_cells(result.path, result.manifest)
    with reading(result.path, UNTOUCHED):
        read = read_material(result, with_charts=False)
        every = judge_cells(read, with_charts=False)
        cells = [cell for cell in every if _is_wanted(cell, wanted)]
        if not cells:
            names = ", ".join(sorted({f"{cell.target}.{cell.work}" for cell in every}))
            raise UsageError(f"no cell has {wanted!r} in its name", f"the cells are: {names}")
        return diagnose_cells(result, read, cells)


def diagnose_cells(result: Result, read: Material, cells: Sequence[Cell]) -> tuple[CellDiagnosed, ...]:
    """What bounds each of these cells of a result that was read."""
    seen = [_seen(cell, result, read) for cell in cells]
    figures = [one for part in seen for one in part.judged]
    said = iter(judged(figures))
    return tuple(_found(part, said) for part in seen)


def _is_wanted(cell: Cell, wanted: str | None) -> bool:
    return wanted is None or any(wanted in name for name in (cell.id, f"{cell.target}.{cell.work}"))


@dataclass(frozen=True)
class _CellSeen:
    """What was seen of a cell's trials: those that its figures rest on, and where many failed, these."""

    cell: Cell
    good: tuple[TrialSeen, ...] = ()
    failed: tuple[TrialSeen, ...] = ()
    applying: tuple[CauseEntry, ...] = ()

    @property
    def judged(self) -> tuple[Figures, ...]:
        """Figures of failed trials, of good ones, and of these without others where these load the host."""
        good = [one.figures for one in self.good]
        return (*(one.figures for one in self.failed), *good, *without_others(good))


def _seen(cell: Cell, result: Result, read: Material) -> _CellSeen:
    if any(code.code in _UNTRUE for code in cell.validity.codes):
        return _CellSeen(cell)
    table, good = read.tables.get(cell.id), read.good(cell.id)
    failed = [trial for trial in table.judged if trial.state != "complete"] if table is not None else []
    if 2 * len(failed) < len(good):
        failed = []
    return _CellSeen(
        cell,
        tuple(_trial_seen(trial, cell, result, read) for trial in good),
        tuple(_trial_seen(trial, cell, result, read) for trial in failed),
        applying(read.facts[cell.target]),
    )


def _trial_seen(trial: TrialRow, cell: Cell, result: Result, read: Material) -> TrialSeen:
    facts = read.facts[cell.target]
    # Of a trial on many hosts those of each, which have what the trial's own lacks.
    lines = {**sample_lines_by_host(result, trial.trial), **result.sample_lines(trial.trial)}
    samples = Samples(trial, lines)
    latency, asked = read.latency.get(trial.trial, ()), cell.shown.in_flight
    host = read.manifest.get("host", {})
    figures = figures_of(trial, latency, samples, asked, target=facts, host=host)
    return TrialSeen(trial, figures, tuple(ceilings(trial, samples, figures, facts)), samples.count)


def _found(seen: _CellSeen, said: Iterator[Mapping[str, CauseInTrial]]) -> CellDiagnosed:
    """Where half as many failed as came to their end, first by those.

    What did not come to its end says nothing by its own rate, but a counter may still say why.
    """
    of_failed = [next(said) for _ in seen.failed]
    of_good = [next(said) for _ in seen.good]
    of_quiet = [next(said) for _ in seen.judged[len(seen.failed) + len(seen.good) :]]
    if seen.failed:
        found = diagnose([one.figures for one in seen.failed], of_itself(seen.applying), of_failed)
        if found.named:
            return CellDiagnosed(seen.cell, found)
    if not seen.good:
        return CellDiagnosed(seen.cell, Diagnosed("unusable"))
    found = diagnose([one.figures for one in seen.good], seen.applying, of_good, of_quiet)
    notes = notes_of([one.trial for one in seen.good], [one.sampled for one in seen.good])
    return CellDiagnosed(seen.cell, found, should_of(seen.good), notes)


_CAUSES_MAX = 2
_PART = 0.3  # of a target's cells: less often is for the lines of single cells


def by_target(cells: Sequence[CellDiagnosed]) -> Iterator[str]:
    """A line for targets that are bound alike, in the order of the cells, and what to do below it.

    A cause counts for a cell where it is the first that is named.
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for target in dict.fromkeys(one.cell.target for one in cells):
        alike.setdefault(_often(_first(cells, (target,))), []).append(target)
    for causes, targets in alike.items():
        first = _first(cells, targets)
        found = [[one for one in first if one and one.entry.name == name] for name in causes]
        parts = [f"{_title(of_cause)} in {len(of_cause)}" for of_cause in found]
        unknown = first.count(None)
        parts += [f"unknown in {unknown}"] if unknown else []
        count = format_count(len(first), "cell")
        yield f"{' and '.join(targets)}, {count}. Bottleneck: {', '.join(parts) or 'different in each cell'}."
        for of_cause in found:
            yield f"  {of_cause[0].entry.means} Remedy: {of_cause[0].entry.remedy}"


def _first(cells: Sequence[CellDiagnosed], targets: Sequence[str]) -> list[CauseNamed | None]:
    """Of each cell of these targets the first cause that is named."""
    return [next(iter(one.found.named), None) for one in cells if one.cell.target in targets]


def _often(first: Sequence[CauseNamed | None]) -> tuple[str, ...]:
    names = Counter(one.entry.name for one in first if one is not None)
    return tuple(name for name, count in names.most_common(_CAUSES_MAX) if count >= _PART * len(first))


def _title(found: Sequence[CauseNamed]) -> str:
    """As most of the cells have it: the name of a link is in its title."""
    ((title, _),) = Counter(one.title for one in found).most_common(1)
    return title
