"""How fast each host of a study is beside the others, and its clock: read once, said in sentences and in a
section.

Empty where a study ran on one host.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from leadline.analysis.cells import CellTable
from leadline.analysis.stragglers import HostAway, hosts_away
from leadline.store.by_host import HostRow, read_by_host
from leadline.store.journal import Event
from leadline.store.reader import Result
from leadline.store.tables import TrialRow
from leadline.units import (
    format_duration,
    format_latency,
    format_quantity,
    format_ratio_interval,
    format_times,
)
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import UNUSABLE, State, Statement
from leadline.verdict.sections.charts import Chart, CountBars
from leadline.verdict.sections.numbers import ci
from leadline.verdict.sections.section import Marked, Panels, Section, TextTable

_RATES = ("rate_iops", "rate_bytes_per_s")
_COMPARED = "clock_compared"  # the event that says how far a host's clock was off


@dataclass(frozen=True)
class ClockMove:
    """By how much a host's clock moved against this one's while the study ran.

    `least_ns` is that less what each comparison may be off: so much it moved for certain.
    """

    moved_ns: int
    least_ns: int


@dataclass(frozen=True)
class HostsSeen:
    """`rows` by trial, `away` by cell, `moved` by host; `facts` are what a host says of itself, by name."""

    rows: Mapping[str, tuple[HostRow, ...]] = field(default_factory=dict)
    away: Mapping[str, tuple[HostAway, ...]] = field(default_factory=dict)
    moved: Mapping[str, ClockMove] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rows)


ONE_HOST = HostsSeen()


def hosts_seen(result: Result, tables: Mapping[str, CellTable], alpha: float) -> HostsSeen:
    """Raises ResultError where a table is damaged."""
    rows = read_by_host(result)
    if not rows:
        return ONE_HOST
    speeds = {
        cell: {
            trial.block: _speeds(rows[trial.trial], trial.job) for trial in table.good if trial.trial in rows
        }
        for cell, table in tables.items()
    }
    away: dict[str, list[HostAway]] = {}
    for one in hosts_away(speeds, alpha):
        away.setdefault(one.cell, []).append(one)
    return HostsSeen(
        rows=rows,
        away={cell: tuple(found) for cell, found in away.items()},
        moved=clock_moves(result.events),
        facts=_facts(result.manifest),
    )


def _speeds(rows: Sequence[HostRow], job: str) -> dict[str, float]:
    """Bytes a second, or operations, or how often it could be done; of a rate that was asked for how quick
    its operations were."""
    asked = json.loads(job)
    at_rate = any(asked.get(name) is not None for name in _RATES)
    found = {}
    for row in rows:
        done = row.bytes or row.operations or 1
        if at_rate and row.mean_ns:
            found[row.host] = 1e9 / row.mean_ns
        elif row.measured_ns > 0:
            found[row.host] = done * 1e9 / row.measured_ns
    return found


def clock_moves(events: Sequence[Event]) -> dict[str, ClockMove]:
    """Host -> how far apart its offsets were at most."""
    offsets: dict[str, list[tuple[int, int]]] = {}
    for event in events:
        if event.event == _COMPARED:
            details = event.details
            offsets.setdefault(str(details["host"]), []).append(
                (int(details["offset_ns"]), int(details["error_ns"]))
            )
    found = {}
    for host, seen in offsets.items():
        (low, low_error), (high, high_error) = min(seen), max(seen)
        found[host] = ClockMove(high - low, max(high - low - low_error - high_error, 0))
    return found


def _facts(manifest: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    listed = manifest.get("hosts")
    rows = listed if isinstance(listed, list) else []
    return {str(one["name"]): one for one in rows if isinstance(one, dict) and "name" in one}


def is_straggler(one: HostAway) -> bool:
    """Slower than the others for certain, and by enough to matter."""
    return one.found and one.ratio <= 1 - catalogue()["straggler"].thresholds["share"]


def stragglers(away: Sequence[HostAway]) -> list[HostAway]:
    """The slowest first."""
    return sorted(filter(is_straggler, away), key=lambda one: one.ratio)


_NAMED = 4


def host_statements(seen: HostsSeen, states: Mapping[str, State]) -> Iterator[Statement]:
    """A sentence for each straggler, the slowest first; of many the slowest few, and how many more."""
    found = _by_host(seen, states)
    for host, slow in list(found.items())[:_NAMED]:
        worst = slow[0]
        cells = [cell for cell in _cells_of(seen, host) if states.get(cell) not in UNUSABLE]
        where = (
            f" in {worst.cell}"
            if len(slow) == 1
            else f" in {len(slow)} of {len(cells)} cells; in {worst.cell}"
        )
        yield Statement(
            "caution",
            f"Host {host} is slower than the others{where}: {format_times(1 / worst.ratio)} slower than their"
            f" median ({interval_words(worst)}).",
            tuple(
                f"{one.cell}: {format_times(1 / one.ratio)} slower ({interval_words(one)})" for one in slow
            ),
            says="host_slower",
            cells=tuple(one.cell for one in slow),
        )
    more = list(found)[_NAMED:]
    if more:
        rest = [one for host in more for one in found[host]]
        yield Statement(
            "caution",
            f"{len(more)} more hosts are slower than the others. The slowest of them, {rest[0].host}, is"
            f" {format_times(1 / rest[0].ratio)} slower than their median.",
            tuple(
                f"{host}: {format_times(1 / found[host][0].ratio)} slower in {found[host][0].cell}"
                for host in more
            ),
            says="hosts_slower_more",
            cells=tuple(dict.fromkeys(one.cell for one in rest)),
        )


def host_line(seen: HostsSeen, trials: Sequence[TrialRow]) -> tuple[str, ...]:
    """The hosts in one line: how many, how far apart they began, which are slow."""
    joint = [trial for trial in trials if trial.hosts]
    if not seen or not joint:
        return ()
    most = max(trial.hosts or 0 for trial in joint)
    skew_ns = max(trial.start_skew_ns or 0 for trial in joint)
    slow = sorted({one.host for away in seen.away.values() for one in away if is_straggler(one)})
    named = ", ".join(slow[:_NAMED]) + (f" and {len(slow) - _NAMED} more" if len(slow) > _NAMED else "")
    blocks = max((one.blocks for away in seen.away.values() for one in away), default=0)
    if slow:
        words = f"slower than the others: {named}"
    else:
        words = (
            "none is known to be slower than the others"
            if blocks > 1
            else "one block cannot show whether a host is slow"
        )
    return (f"{most} hosts, started within {format_duration(skew_ns / 1e9)}: {words}.",)


def interval_words(one: HostAway) -> str:
    """Its CI as a slowdown, at the confidence of the decision."""
    if one.low is None or one.high is None:
        return ci("", one.blocks)
    ends = format_ratio_interval(1 / one.high, 1 / max(one.low, 1e-300))
    return ci(ends, one.blocks, one.confidence)


def _by_host(seen: HostsSeen, states: Mapping[str, State]) -> dict[str, list[HostAway]]:
    """Host -> the cells where it is slow, the slowest first; hosts in the order of their slowest."""
    every = [
        one
        for cell, away in seen.away.items()
        if states.get(cell) not in UNUSABLE
        for one in stragglers(away)
    ]
    found: dict[str, list[HostAway]] = {}
    for one in sorted(every, key=lambda one: one.ratio):
        found.setdefault(one.host, []).append(one)
    return found


def _cells_of(seen: HostsSeen, host: str) -> list[str]:
    return [cell for cell, away in seen.away.items() if any(one.host == host for one in away)]


_ALL_SHOWN = 16  # hosts of a cell that each have a row
_EDGE = 3  # of more hosts, so many of the slowest and of the fastest have one
_CHARTS = 12
_BIN = 0.05
_HEADINGS = (
    "Cell",
    "Host",
    "Rate",
    "Share",
    "Ratio to others",
    "p99",
    "Starts after",
    "Ends before",
    "Clock error",
)
_NOTE = (
    "Means over blocks; p99 is the median of the blocks. The ratio is this host's rate over the median of the"
    " others, with its CI; * marks a host that is significantly slower, by more than the threshold. Starts"
    " after the first host and ends before the last one: at most, by corrected clocks."
)


@dataclass(frozen=True)
class HostFigures:
    """One host in one cell, over its blocks. `share` is of the bytes (or operations) of all hosts."""

    cell: str
    host: str
    rate: float | None
    unit: str
    share: float | None
    p99_ns: float | None
    begins_ns: int | None
    done_before_ns: int | None
    clock_error_ns: int | None
    away: HostAway | None


def hosts_section(
    seen: HostsSeen, tables: Mapping[str, CellTable], states: Mapping[str, State]
) -> Section | None:
    """None where the study ran on one host."""
    if not seen:
        return None
    found = {
        cell: figures
        for cell, table in tables.items()
        if (figures := _figures(cell, [seen.rows[t.trial] for t in table.good if t.trial in seen.rows], seen))
    }
    rows = [row for cell, figures in found.items() for row in _rows(figures, states.get(cell, "VALID"))]
    table = TextTable(
        "Hosts",
        _HEADINGS,
        tuple(rows),
        right=frozenset(range(2, len(_HEADINGS))),
        note=_NOTE,
        total=sum(map(len, found.values())),
        brief=2 * _ALL_SHOWN,
    )
    charts = tuple(_charts(found))
    panels = (
        (Panels((charts,), title="Hosts by their rate, in % of the median of the others"),) if charts else ()
    )
    return Section(
        "hosts",
        "Host by host",
        (table, *panels),
        "Hosts",
        json={"hosts": [_document(one) for figures in found.values() for one in figures]},
        in_csv=True,
    )


def _figures(cell: str, trials: Sequence[tuple[HostRow, ...]], seen: HostsSeen) -> list[HostFigures]:
    """The hosts of one cell, in order of their names."""
    by_host: dict[str, list[HostRow]] = {}
    begun: dict[str, int] = {}
    ended: dict[str, int] = {}
    for rows in trials:
        last_ns = max((row.ended_ns for row in rows if row.ended_ns is not None), default=0)
        for row in rows:
            by_host.setdefault(row.host, []).append(row)
            if row.began_ns is not None and row.ended_ns is not None:
                begun[row.host] = max(begun.get(row.host, 0), row.began_ns)
                ended[row.host] = max(ended.get(row.host, 0), last_ns - row.ended_ns)
    in_bytes = any(row.bytes for rows in by_host.values() for row in rows)
    done = {host: sum(_done(row, in_bytes=in_bytes) for row in rows) for host, rows in by_host.items()}
    every = sum(done.values())
    away = {one.host: one for one in seen.away.get(cell, ())}
    found = []
    for host in sorted(by_host):
        own = by_host[host]
        rates = [_done(row, in_bytes=in_bytes) * 1e9 / row.measured_ns for row in own if row.measured_ns > 0]
        tails = [row.p99_ns for row in own if row.p99_ns is not None]
        errors = [row.clock_error_ns for row in own if row.clock_error_ns is not None]
        found.append(
            HostFigures(
                cell=cell,
                host=host,
                rate=fmean(rates) if rates else None,
                unit="B/s" if in_bytes else "1/s",
                share=done[host] / every if every else None,
                p99_ns=median(tails) if tails else None,
                begins_ns=begun.get(host),
                done_before_ns=ended.get(host),
                clock_error_ns=max(errors, default=None),
                away=away.get(host),
            )
        )
    return found


def _done(row: HostRow, *, in_bytes: bool) -> int:
    return row.bytes if in_bytes else row.operations


def _rows(figures: Sequence[HostFigures], state: State) -> Iterator[tuple[str | Marked, ...]]:
    for one in _shown(figures):
        yield (
            one.cell if state == "VALID" else f"{one.cell} ({state})",
            f"{one.host} *" if one.away is not None and is_straggler(one.away) else one.host,
            "-" if one.rate is None else format_quantity(one.rate, one.unit),
            "-" if one.share is None else f"{100 * one.share:.1f} %",
            _away_words(one.away),
            "-" if one.p99_ns is None else format_latency(one.p99_ns),
            _time(one.begins_ns),
            _time(one.done_before_ns),
            _time(one.clock_error_ns),
        )


def _shown(figures: Sequence[HostFigures]) -> Sequence[HostFigures]:
    """All of few; of many the stragglers, the slowest, the fastest, and those that began or ended far off."""
    if len(figures) <= _ALL_SHOWN:
        return figures
    ranked = sorted(figures, key=lambda one: one.away.ratio if one.away else one.rate or 0.0)
    slow = [one for one in ranked if one.away is not None and is_straggler(one.away)][:_ALL_SHOWN]
    late = max(figures, key=lambda one: one.begins_ns or 0)
    tail = max(figures, key=lambda one: one.p99_ns or 0.0)
    chosen = {one.host for one in (*slow, *ranked[:_EDGE], *ranked[-_EDGE:], late, tail)}
    return [one for one in ranked if one.host in chosen]


def _away_words(away: HostAway | None) -> str:
    if away is None:
        return "-"
    if away.low is None or away.high is None:
        return f"{away.ratio:.2f}"
    return f"{away.ratio:.2f} ({format_ratio_interval(away.low, away.high)})"


def _time(ns: int | None) -> str:
    return "-" if ns is None else format_latency(ns)


def _charts(found: Mapping[str, Sequence[HostFigures]]) -> Iterator[Chart]:
    """How all hosts of a cell lie: how many in each step of five per cent."""
    for cell, figures in list(found.items())[:_CHARTS]:
        steps = Counter(round(one.away.ratio / _BIN) for one in figures if one.away is not None)
        if steps:
            names = range(min(steps), max(steps) + 1)
            counts = tuple((f"{100 * (step * _BIN):.0f} %", steps[step]) for step in names)
            if len(counts) > 60:  # one that hardly moved: the empty steps before the others say nothing
                counts = tuple((name, count) for name, count in counts if count)
            yield CountBars(f"hosts-{cell}", cell, "hosts", "reading", counts)


def _document(one: HostFigures) -> dict[str, object]:
    away = one.away
    return {
        "cell": one.cell,
        "host": one.host,
        "rate": one.rate,
        "unit": one.unit,
        "share": one.share,
        "p99_ns": one.p99_ns,
        "begins_ns": one.begins_ns,
        "done_before_ns": one.done_before_ns,
        "clock_error_ns": one.clock_error_ns,
        "of_the_others": None if away is None else away.ratio,
        "low": None if away is None else away.low,
        "high": None if away is None else away.high,
        "confidence": None if away is None else away.confidence,
        "straggler": away is not None and is_straggler(away),
    }
