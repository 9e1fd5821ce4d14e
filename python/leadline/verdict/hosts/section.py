"""The section of the hosts: a row for each in each cell; of many those that stand out, and how all lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from leadline.analysis.cells import CellTable
from leadline.analysis.stragglers import HostAway
from leadline.store.by_host import HostRow
from leadline.units import format_latency, format_quantity, format_ratio_interval
from leadline.verdict.hosts.seen import HostsSeen, is_straggler
from leadline.verdict.model import State
from leadline.verdict.sections.charts import Chart, CountBars
from leadline.verdict.sections.section import Marked, Panels, Section, TextTable

_ALL_SHOWN = 16  # hosts of a cell that each have a row
_EDGE = 3  # of more hosts, so many of the slowest and of the fastest have one
_CHARTS = 12
_BIN = 0.05
_HEADINGS = (
    "Cell",
    "Host",
    "Rate",
    "Share",
    "Of the others",
    "p99",
    "Begins after",
    "Done before",
    "Clock known to",
)
_NOTE = (
    "Means over blocks; p99 is the median of the blocks'. Of the others: this host's rate by the median of"
    " the others', with the interval at which it is decided, * where it is slower for certain and by enough."
    " Begins after the first host and is done before the last one, at most, by corrected clocks."
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
            "-" if one.share is None else f"{one.share:.1%}",
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
            counts = tuple((f"{step * _BIN:.0%}", steps[step]) for step in names)
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
