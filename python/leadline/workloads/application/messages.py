"""What a study of applications says in sentences; its thresholds are in `thresholds.yaml`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadline import units
from leadline.verdict.interface import KindAnswer
from leadline.verdict.model import UNUSABLE, Comparison, Quantity, Statement
from leadline.verdict.sections.numbers import ci
from leadline.workloads.application.figures import KINDS
from leadline.workloads.application.tables import (
    CopiesCell,
    by_series,
    cpus_of,
    model_of,
    processes_left,
    series_of,
    thresholds,
)

_WIDE = 10.0  # an interval that reaches ten times as far says nothing
_TWICE = 2.0  # below it a change is printed in percent


def application_statements(
    places: Sequence[CopiesCell], comparisons: Sequence[Comparison], within: Sequence[Comparison]
) -> tuple[Statement, ...]:
    """What the cells of applications say beyond the comparison of their run times.

    `comparisons` are of targets, `within` of numbers of copies on one target.
    """
    usable = [place for place in places if place.cell.validity.state not in UNUSABLE]
    found: list[Statement] = []
    if len({place.target for place in usable}) == 1:
        found.extend(_alone(usable))
    found.extend(_io_against_run_time(usable, comparisons))
    for series in series_of(usable):
        own = by_series(usable, series)
        found.extend(_growth(own, within))
        found.extend(_cpus(own))
        found.extend(_storage(own))
        found.extend(_model(own))
    found.extend(_same_work(usable))
    found.extend(_trace_gaps(usable))
    left = processes_left(usable)
    if left:
        found.append(
            Statement(
                "caution",
                f"{left} processes outlived the copies that started them, and were ended.",
                says="processes_left",
            )
        )
    return tuple(found)


def application_answer(places: Sequence[CopiesCell]) -> KindAnswer:
    """Where copies wait for CPUs and not for storage: there their times answer another question."""
    usable = [place for place in places if place.cell.validity.state not in UNUSABLE]
    cpus, said = cpus_of(usable), []
    for series in series_of(usable):
        full = [place for place in by_series(usable, series) if load_of(place, cpus).saturated]
        if full:
            said.append(f"on {series} from {_copies(full[0].copies)} on")
    return KindAnswer(f"Copies wait for CPUs, not for storage, {', '.join(said)}.") if said else KindAnswer()


def _alone(places: Sequence[CopiesCell]) -> Iterator[Statement]:
    """One target has nothing to be compared with: its run times."""
    for series in series_of(places):
        parts = [
            f"{_seconds(quantity)} with {_copies(place.copies)}{_between(quantity)}"
            for place in by_series(places, series)
            if (quantity := place.metric("run_time")).value is not None
        ]
        if parts:
            yield Statement(
                "headline",
                f"{series}: a copy took {', '.join(parts)}.",
                says="copies_took",
                cells=_ids(by_series(places, series)),
            )


def _io_against_run_time(
    places: Sequence[CopiesCell], comparisons: Sequence[Comparison]
) -> Iterator[Statement]:
    """Time in I/O and run time in one sentence, at the most copies that both have: they are easily mixed."""
    by_work = {(c.work, c.base, c.other, c.metric): c for c in comparisons}
    done: set[tuple[str, str]] = set()
    for place in sorted(places, key=lambda one: -one.copies):
        for (work, base, other, metric), read_write_time in by_work.items():
            if (work, other, metric) != (place.cell.work, place.target, "read_write_time") or (
                base,
                other,
            ) in done:
                continue
            anchor = next((p for p in places if p.target == base and p.cell.work == work), None)
            if anchor is None or read_write_time.ratio is None:
                continue
            done.add((base, other))
            run_time = by_work.get((work, base, other, "run_time"))
            yield _io_words(anchor, place, read_write_time, run_time)


def _io_words(
    base: CopiesCell, other: CopiesCell, read_write_time: Comparison, run_time: Comparison | None
) -> Statement:
    shares = [_share(place) for place in (base, other)]
    spent = [
        f"{_seconds(place.metric('read_write_time'))} of {_seconds(place.metric('run_time'))}"
        f" on {place.series}"
        for place in (other, base)
    ]
    text = (
        f"Reading and writing, {_copies(other.copies)}: {', '.join(spent)}; that is"
        f" {_change(read_write_time, ' time')}{_interval(read_write_time)}"
    )
    if None not in shares and read_write_time.verdict in ("faster", "slower"):
        apart = 100 * ((shares[1] or 0.0) - (shares[0] or 0.0))
        text += f", and a share of the run time that is {abs(apart):.1f} points {_way(apart)}"
    if run_time is not None and run_time.ratio is not None:
        text += f". The run time itself is {_change(run_time)}{_interval(run_time)}"
    evidence = tuple(
        f"{c.metric} of {c.other} / {c.base} = {units.format_number(c.ratio or 0)}: {c.verdict}"
        for c in (read_write_time, run_time)
        if c is not None
    )
    return Statement(
        "finding", f"{text}.", evidence, says="io_and_run_time", cells=(base.cell.id, other.cell.id)
    )


def _share(place: CopiesCell) -> float | None:
    parts = [place.metric(name).value for name in ("read_share", "write_share", "sync_share")]
    return None if None in parts else sum(part or 0.0 for part in parts)


def _way(value: float) -> str:
    return "higher" if value >= 0 else "lower"


def _change(comparison: Comparison, of: str = "") -> str:
    """A ratio as a change in percent, where there is one: a third is 67 % less, and twice is 100 % more."""
    if comparison.verdict == "undecided":
        return "inconclusive"
    if comparison.verdict == "same":
        return f"equivalent{of} within {100 * comparison.margin:.0f} %"
    ratio = comparison.ratio or 1.0
    if ratio >= _TWICE:
        return f"{units.format_times(ratio)} as much{of}"
    return f"{abs(100 * (ratio - 1)):.3g} % {'more' if ratio >= 1 else 'less'}{of}"


def _interval(comparison: Comparison) -> str:
    if comparison.low is None or comparison.high is None:
        return f" ({ci('', comparison.blocks)})"
    if comparison.high > _WIDE or comparison.low < 1 / _WIDE:
        return f" ({ci('unbounded', comparison.blocks)})"
    ends = units.format_ratio_interval(comparison.low, comparison.high)
    if (comparison.ratio or 1.0) < _TWICE:
        low, high = (f"{100 * (bound - 1):+.3g}" for bound in (comparison.low, comparison.high))
        ends = f"{low} to {high} %"
    return f" ({ci(ends, comparison.blocks, comparison.confidence)})"


def _growth(places: Sequence[CopiesCell], within: Sequence[Comparison]) -> Iterator[Statement]:
    """How much longer a copy takes next to others than with the fewest, as far as paired blocks show."""
    timed = [place for place in places if place.metric("run_time").value]
    if len(timed) < 2:
        return
    first, last = timed[0], timed[-1]
    ends = (first.cell.id, last.cell.id, "run_time")
    found = next((one for one in within if (one.base, one.other, one.metric) == ends), None)
    if found is None or found.ratio is None:
        return
    yield Statement(
        "finding",
        f"{first.series}: {_growth_words(found, first.copies, last.copies)}.",
        tuple(f"{_copies(p.copies)}: {_seconds(p.metric('run_time'))}" for p in timed),
        says="copies_growth",
        cells=_ids((first, last)),
    )


def _growth_words(found: Comparison, fewest: int, most: int) -> str:
    """Of a ratio of run times; work in the same time grows by the copies over that ratio."""
    ratio, low, high = found.ratio or 1.0, found.low, found.high
    fewer = _copies(fewest)
    if low is None or high is None:
        return (
            f"whether a copy takes longer with {_copies(most)} than with {fewer} is inconclusive"
            f" ({ci('', found.blocks)})"
        )
    interval = units.format_ratio_interval(low, high)
    sure = ci(interval, found.blocks, found.confidence)
    if found.verdict == "undecided":
        return f"whether a copy takes longer with {_copies(most)} than with {fewer} is inconclusive ({sure})"
    times = f"takes {units.format_times(ratio)} as long as with {fewer}"
    if found.verdict == "same":
        times = f"takes as long as with {fewer}, within {100 * found.margin:.0f} %"
    more = most / fewest
    ends = units.format_ratio_interval(more / high, more / low)
    does = f"{units.format_times(more / ratio)} the throughput (CI {ends})"
    return f"with {_copies(most)} a copy {times} ({sure}); all together have {does}"


def _cpus(places: Sequence[CopiesCell]) -> Iterator[Statement]:
    """From which number on copies wait for CPUs rather than for storage, and whether the CPUs were theirs."""
    cpus = cpus_of(places)
    loads = [(place, load_of(place, cpus)) for place in places]
    full = [(place, load) for place, load in loads if load.saturated]
    if full:
        yield Statement(
            "caution",
            f"{places[0].series}: from {_copies(full[0][0].copies)} on, this host's {cpus} CPUs and not the"
            " storage are what more copies saturate. Those run times say little about the storage.",
            tuple(f"{_copies(place.copies)}: {load.words}" for place, load in full),
            says="cpus_saturated",
        )
    others = [(place, load) for place, load in loads if load.others]
    if others:
        yield Statement(
            "caution",
            f"{places[0].series}: this host's CPUs were busy with something else than the copies. Their run"
            " times are longer than on a host of their own.",
            tuple(f"{_copies(place.copies)}: {load.words}" for place, load in others),
            says="cpus_of_others",
        )


def _storage(places: Sequence[CopiesCell]) -> Iterator[Statement]:
    """Where most of the run time of the most copies is in calls on files, and no CPU keeps them waiting."""
    traced = [place for place in places if all(place.metric(f"{k}_share").value is not None for k in KINDS)]
    if not traced or load_of(traced[-1], cpus_of(places)).saturated:
        return
    place = traced[-1]
    shares = {kind: place.metric(f"{kind}_share").value or 0.0 for kind in KINDS}
    compute = place.metric("compute_share").value
    if sum(shares.values()) < thresholds()["storage_share"]:
        return
    computing = "" if compute is None else f" and computing {units.format_percent(compute)}"
    yield Statement(
        "finding",
        f"{place.series}: with {_copies(place.copies)}, calls on files take"
        f" {units.format_percent(sum(shares.values()))} of the run time{computing}: the copies wait for"
        " the storage.",
        tuple(f"{kind}: {units.format_percent(share)}" for kind, share in shares.items() if share > 0),
        says="copies_bound",
        cells=_ids((place,)),
    )


@dataclass(frozen=True)
class Load:
    """How busy a cell's CPUs were: shares of all CPUs' time; `own` is of the copies and the client daemon."""

    busy: float | None
    own: float
    crowded: bool  # more copies than CPUs, which compute most of the time

    @property
    def saturated(self) -> bool:
        """The copies themselves keep the CPUs busy."""
        full = self.own >= thresholds()["cpu_busy_share"]
        with_rest = (self.busy or 0.0) >= thresholds()["cpu_busy_share"]
        return full or (self.own >= thresholds()["own_share"] and (with_rest or self.crowded))

    @property
    def others(self) -> bool:
        """Somebody else keeps them busy."""
        return not self.saturated and (self.busy or 0.0) - self.own >= thresholds()["others_share"]

    @property
    def words(self) -> str:
        """The shares, as evidence."""
        busy = "" if self.busy is None else f"all CPUs busy {100 * self.busy:.0f} % of the time, "
        return f"{busy}the copies with their client used {100 * min(self.own, 1):.0f} % of them"


def load_of(place: CopiesCell, cpus: int | None) -> Load:
    """Means over the trials of a cell."""
    seen = [trial.cpu_busy_share for trial in place.trials if trial.cpu_busy_share is not None]
    own = [
        (trial.cpu_user_ns + trial.cpu_system_ns + (trial.client_cpu_ns or 0)) / (trial.measured_ns * cpus)
        for trial in place.trials
        if cpus and trial.measured_ns
    ]
    # Copies that outnumber the CPUs wait for them, too: what of their I/O and computing is computing decides.
    compute = place.metric("compute_share").value or 0.0
    active = compute + sum(place.metric(f"{kind}_share").value or 0.0 for kind in KINDS)
    most = compute > 0 and compute >= thresholds()["compute_share"] * active
    crowded = bool(cpus and place.copies > cpus and most)
    return Load(sum(seen) / len(seen) if seen else None, sum(own) / len(own) if own else 0.0, crowded)


def _model(places: Sequence[CopiesCell]) -> Iterator[Statement]:
    model = model_of(places)
    if model is None:
        return
    off = [
        f"{_copies(copies)}: {units.format_duration(seconds)} by the model, measured"
        f" {round(100 * rest, 1) + 0.0:+.1f} %"
        for copies, seconds, rest in model.points
        if rest is not None
    ]
    beyond = [abs(rest) for copies, _, rest in model.points if rest is not None and copies > model.cpus]
    worst = f"; beyond that it is off by up to {100 * max(beyond):.1f} %" if beyond else ""
    yield Statement(
        "finding",
        f"{model.series}, a model and no measurement: T(N) = C max(1, N / {model.cpus}) +"
        f" s min(N, {model.cpus}) with C = {units.format_number(model.compute_s)} s of computing and s ="
        f" {units.format_number(model.shared_s)} s that copies spend one after the other, fitted to"
        f" N = {', '.join(str(copies) for copies in model.fitted_to)}{worst}.",
        tuple(off),
        says="copies_model",
        cells=_ids(places),
    )


def _trace_gaps(places: Sequence[CopiesCell]) -> Iterator[Statement]:
    """What the traces do not know, loudly: shares and bytes of these trials are too small or missing."""
    trials = [(trial, json.loads(trial.summary)) for place in places for trial in place.trials]
    failed = {trial.trial: found["trace_error"] for trial, found in trials if found.get("trace_error")}
    if failed:
        yield Statement(
            "caution",
            f"{len(failed)} of {len(trials)} trials have no trace, though one was asked for.",
            tuple(f"{trial}: {why}" for trial, why in failed.items()),
            says="copies_untraced",
        )
    lost = {trial.trial: found["trace_lost"] for trial, found in trials if found.get("trace_lost")}
    warned = {text: None for _, found in trials for text in found.get("trace_warnings") or ()}
    if lost or warned:
        yield Statement(
            "caution",
            "Traces are not whole, so that bytes and shares of reading and writing are too small.",
            (*(f"{trial}: {count} records lost" for trial, count in lost.items()), *warned),
            says="copies_trace_gaps",
        )


def _same_work(places: Sequence[CopiesCell]) -> Iterator[Statement]:
    """Run times compare only where the copies did the same: told by the bytes that they moved."""
    limit = thresholds()["bytes_apart"]
    for name, words in (("bytes_read", "read"), ("bytes_written", "wrote")):
        amounts = {
            place.cell.id: value for place in places if (value := place.metric(name).value) is not None
        }
        if len(amounts) < 2 or max(amounts.values()) <= 0:
            continue
        low, high = min(amounts, key=amounts.__getitem__), max(amounts, key=amounts.__getitem__)
        apart = 1 - amounts[low] / amounts[high]
        if apart > limit:
            yield Statement(
                "caution",
                f"Copies did not all do the same: one {words} {units.format_size(amounts[low])} in {low} and"
                f" {units.format_size(amounts[high])} in {high}.",
                says="copies_did_not_do_the_same",
            )


def _ids(places: Sequence[CopiesCell]) -> tuple[str, ...]:
    return tuple(place.cell.id for place in places)


def _copies(count: int) -> str:
    return "one copy" if count == 1 else f"{count} copies"


def _between(quantity: Quantity) -> str:
    if quantity.low is None or quantity.high is None:
        return f" ({ci('', quantity.blocks)})"
    if quantity.high > _WIDE * (quantity.value or 0.0):
        return f" ({ci('unbounded', quantity.blocks)})"
    low, high = units.format_duration(quantity.low), units.format_duration(quantity.high)
    return f" ({ci(f'{low} to {high}', quantity.blocks)})"


def _seconds(quantity: Quantity) -> str:
    if quantity.value is None:
        return "an unknown time"
    return units.format_duration(quantity.value)
