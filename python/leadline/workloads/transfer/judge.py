"""Transfers as verdicts see them: bandwidth, and what their acknowledgements did, in sentences and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leadline import units
from leadline.analysis.metrics import COST_METRICS, LATENCY_METRICS, Measured, MetricKind
from leadline.store.tables import LatencyRow, TrialRow
from leadline.study import schemes
from leadline.verdict.interface import JudgedWork, KindAnswer, Limits, OwnCells
from leadline.verdict.model import UNUSABLE, Cell, CellShown, FigureRow, FigureTable, Quantity, Statement
from leadline.verdict.sections.charts import AmountLine, AmountLines, ShadedSpan
from leadline.verdict.sections.section import Panels, Part, Section, TextTable
from leadline.workloads.transfer.acks import (
    Stall,
    StreamFigures,
    TrialAcks,
    read_trial_acks,
    transfer_metrics,
)
from leadline.workloads.transfer.job import TransferJob

if TYPE_CHECKING:
    from leadline.store.reader import Result
    from leadline.verdict.codes.case import Case


_SAID_MAX = 8  # pieces of evidence below a sentence


@dataclass(frozen=True)
class TransferSeries:
    """A transfer on a target: its cell, and what the acknowledgements of its complete trials did."""

    cell: Cell
    job: TransferJob
    trials: tuple[TrialAcks, ...]

    @property
    def name(self) -> str:
        """How sentences call it."""
        return f"{self.cell.work} on {self.cell.target}"

    @property
    def said(self) -> tuple[TrialAcks, ...]:
        """The trials that something may be said of."""
        return () if self.cell.validity.state in UNUSABLE else self.trials


def transfer_statements(lines: Sequence[TransferSeries]) -> Iterator[Statement]:
    """Everything that acknowledgements say."""
    for line in lines:
        yield from _stalls(line)
        yield from _ends(line)
        yield from _bursts(line)
        yield from _late(line)
        yield from _lost(line)


def last_acks(lines: Sequence[TransferSeries]) -> str:
    """When the last acknowledgement came, of a work of whole files on several targets; else nothing."""
    works: dict[str, list[str]] = {}
    for line in lines:
        drain = line.cell.metrics.get("drain")
        if line.job.time_based or not line.said or drain is None or drain.value is None:
            continue
        works.setdefault(line.cell.work, []).append(f"{seconds(drain.value)} on {line.cell.target}")
    told = [(work, own) for work, own in works.items() if len(own) > 1]
    if len(told) != 1:  # of several works the table has it
        return ""
    work, own = told[0]
    return f"Last ack after the last request of {work}: {_listed(own)}."


def seconds(value: float) -> str:
    """`3.1 s`, `412 ms`."""
    return units.format_latency(value * 1e9)


def stall_words(stall: Stall) -> str:
    """`acks of 12 of 16 streams stopped for 3.1 s at 41 s`, and on which hosts."""
    streams = f"{len(stall.streams)} of {stall.under_way} streams"
    hosts = f" on {_listed(stall.hosts)}" if stall.hosts else ""
    return f"acks of {streams}{hosts} stopped for {seconds(stall.seconds)} at {seconds(stall.start_s)}"


def ack_words(job: TransferJob) -> str:
    """What the acknowledgement of a write means; empty where nothing is written, or it is not known."""
    means = schemes.ack_means(job.engine, direct=job.direct) if job.writes and not job.copies else ""
    return f"An acknowledged write is {means}." if means else ""


def _stalls(line: TransferSeries) -> Iterator[Statement]:
    found = [(stall, trial) for trial in line.said for stall in trial.stalls]
    if not found:
        return
    longest, trial = max(found, key=lambda one: (len(one[0].streams), one[0].seconds))
    text = f"{line.name}: {stall_words(longest)} of {trial.trial}"
    if found[1:]:
        trials = len({one.trial for _, one in found})
        text += f"; {len(found)} stalls in {trials} of {len(line.said)} trials"
    evidence = [f"{one.trial}: {stall_words(stall)}" for stall, one in found]
    more = [f"{len(evidence) - _SAID_MAX} more"] if evidence[_SAID_MAX:] else []
    yield Statement(
        "finding",
        f"{text}.",
        (*evidence[:_SAID_MAX], *more),
        says="transfer_stalls",
        cells=(line.cell.id,),
    )


def _ends(line: TransferSeries) -> Iterator[Statement]:
    found = [(one.ends, one.trial) for one in line.said if one.ends is not None and one.ends.together]
    if not found:
        return
    ends, trial = min(found, key=lambda one: one[0].within_s)
    text = (
        f"{line.name}: all {ends.streams} files ended within {seconds(ends.within_s)} of each other in"
        f" {trial}; the pace of each by itself would have spread them over {seconds(ends.paced_s or 0.0)}"
    )
    if found[1:]:
        text += f"; together in {len(found)} of {len(line.said)} trials"
    evidence = tuple(
        f"{name}: {one.streams} files within {seconds(one.within_s)}, by their pace"
        f" {seconds(one.paced_s or 0.0)}; independent ones do so with a chance of {one.chance or 0.0:.1g}"
        for one, name in found[:_SAID_MAX]
    )
    yield Statement("finding", f"{text}.", evidence, says="transfer_ended_together", cells=(line.cell.id,))


def _bursts(line: TransferSeries) -> Iterator[Statement]:
    found = [(one.bursts, one.trial) for one in line.said if one.bursts is not None and one.bursts.together]
    if not found or 2 * len(found) < len(line.said):
        return
    bursts, trial = max(found, key=lambda one: one[0].times)
    text = (
        f"{line.name}: acks of {bursts.streams} streams come in bursts at the same moments: their number in"
        f" {seconds(bursts.bin_s)} varies {units.format_number(bursts.times)}x as much as that of"
        f" independent streams, in {trial}"
    )
    if found[1:]:
        text += f"; so in {len(found)} of {len(line.said)} trials"
    evidence = tuple(f"{name}: {units.format_number(one.times)}x" for one, name in found[:_SAID_MAX])
    yield Statement("finding", f"{text}.", evidence, says="transfer_bursts", cells=(line.cell.id,))


def _late(line: TransferSeries) -> Iterator[Statement]:
    found = [(one.late, one.trial) for one in line.said if one.late is not None and one.late.late]
    if not found:
        return
    late, trial = max(found, key=lambda one: one[0].drain_s)
    text = (
        f"{line.name}: acks came up to {seconds(late.drain_s)} after the last request of {trial}: half of"
        f" {late.after:,} took {seconds(late.half_s)} or longer, nine of ten before them at most"
        f" {seconds(late.usual_s)}"
    )
    if found[1:]:
        text += f"; late in {len(found)} of {len(line.said)} trials"
    means = ack_words(line.job)
    evidence = [f"{name}: {seconds(one.drain_s)} for {one.after:,} acks" for one, name in found[:_SAID_MAX]]
    yield Statement(
        "finding",
        f"{text}.",
        (*evidence, *([means] if means else [])),
        says="transfer_acks_late",
        cells=(line.cell.id,),
    )


def _lost(line: TransferSeries) -> Iterator[Statement]:
    found = [one for one in line.said if one.lost]
    if found:
        lost = sum(one.lost for one in found)
        kept = sum(one.requests for one in found)
        yield Statement(
            "caution",
            f"{line.name}: {lost:,} acks of {lost + kept:,} exceeded what a trial stores. Stalls and drains"
            " are of the others.",
            says="transfer_acks_lost",
            cells=(line.cell.id,),
        )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


_COLUMNS = {
    "bandwidth": "bandwidth",
    "bytes_in_flight": "most outstanding",
    "ack_p99": "ack p99",
    "drain": "drain",
    "ack_longest_silence": "longest silence",
    "ended_within": "ended within",
}
_CHARTS_MAX = 12
_STREAMS_MAX = 20
_NOTABLE_TIMES = 3.0  # a stream stands out by so many times the median of its trial
_NOTABLE_S = 0.1


def transfer_section(lines: Sequence[TransferSeries]) -> Section | None:
    """None where nothing was measured."""
    if not lines:
        return None
    means = dict.fromkeys(filter(None, (ack_words(line.job) for line in lines)))
    note = " ".join(("Drain: from the last request to the last acknowledgement.", *means))
    table = FigureTable(
        "transfers",
        "Transfers",
        ("target", "work"),
        tuple(_COLUMNS.values()),
        tuple(
            FigureRow(
                (line.cell.target, line.cell.work),
                tuple(line.cell.metrics.get(name, Quantity(None, "s", reason="none")) for name in _COLUMNS),
                line.cell.validity.state,
            )
            for line in lines
        ),
        note,
    )
    charts = tuple(_chart(line) for line in lines if line.said)[:_CHARTS_MAX]
    panels = Panels(
        tuple((chart,) for chart in charts),
        title="Bytes outstanding",
        note="Submitted and not yet acknowledged, all streams together; shaded: stalls.",
    )
    streams = _streams(lines)
    parts: tuple[Part, ...] = (table, *([panels] if charts else []), *([streams] if streams else []))
    return Section("transfers", "Transfers", parts)


def _shown(line: TransferSeries) -> TrialAcks:
    """The trial that a chart is of: the one with most stalls, else the one that drained longest."""
    return max(line.said, key=lambda one: (len(one.stalls), one.late.drain_s if one.late else 0.0))


def _chart(line: TransferSeries) -> AmountLines:
    trial = _shown(line)
    points = tuple(((place + 0.5) * trial.bin_s, value) for place, value in enumerate(trial.outstanding))
    spans = tuple(ShadedSpan(stall.start_s, stall.end_s, stall_words(stall)) for stall in trial.stalls)
    title = f"{line.cell.work}, {line.cell.target}: {trial.trial}"
    return AmountLines(f"outstanding-{line.cell.id}", title, "B", (AmountLine("outstanding", points),), spans)


def _streams(lines: Sequence[TransferSeries]) -> TextTable | None:
    """Streams that drained or were silent for much longer than others of their trial."""
    rows = [row for line in lines for trial in line.said for row in _notable(line, trial)]
    if not rows:
        return None
    headings = ("target", "work", "trial", "stream", "moved", "rate", "drain", "longest silence")
    return TextTable(
        "Streams that stand out",
        headings,
        tuple(rows[:_STREAMS_MAX]),
        right=frozenset(range(4, 8)),
        note=f"Drained or silent {_NOTABLE_TIMES:g} times as long as the median stream of their trial.",
        total=len(rows),
    )


def _notable(line: TransferSeries, trial: TrialAcks) -> Iterator[tuple[str, ...]]:
    if len(trial.streams) < 3:
        return
    drains = _median([one.drain_s for one in trial.streams])
    silences = _median([one.longest_silence_s for one in trial.streams])
    for one in trial.streams:
        stands_out = one.drain_s >= max(_NOTABLE_S, _NOTABLE_TIMES * drains)
        stands_out |= one.longest_silence_s >= max(_NOTABLE_S, _NOTABLE_TIMES * silences)
        if stands_out:
            yield (line.cell.target, line.cell.work, trial.trial, *_stream_words(one))


def _stream_words(one: StreamFigures) -> tuple[str, ...]:
    name = str(one.number) if one.host is None else f"{one.number} of {one.host}"
    took_s = one.ended_s - one.first_s
    rate = units.format_rate(one.bytes / took_s) if took_s > 0 else "\u2013"
    return (name, units.format_size(one.bytes), rate, seconds(one.drain_s), seconds(one.longest_silence_s))


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


_ACKS = {
    "drain": MetricKind("s", False, "time from the last request to the last acknowledgement", asked=False),
    "ack_p99": MetricKind("s", False, "time of a request, p99", asked=False),
    "ack_longest_silence": MetricKind(
        "s", False, "longest time of a stream without an acknowledgement", asked=False, leads=False
    ),
    "ended_within": MetricKind(
        "s", False, "time from the first stream's end to the last one's", asked=False, leads=False
    ),
    "bytes_in_flight": MetricKind("B", False, "most bytes outstanding", asked=False, leads=False),
}
_METRICS = {**_ACKS, **COST_METRICS}


class JudgedTransfer(JudgedWork[TransferJob]):
    """Asked for bandwidth; its acknowledgements explain it."""

    kind = TransferJob.kind
    metric_kinds = _METRICS

    def known_metrics(self) -> tuple[str, ...]:
        """All names that a cell can have."""
        plain = ("bandwidth", "iops", *LATENCY_METRICS)
        both = (f"{direction}_{name}" for direction in ("read", "write") for name in plain)
        return (*plain, "cpu_per_operation", *self.metric_kinds, *both)

    def read(self, result: Result) -> Any:
        """What the acknowledgements of each trial did."""
        return read_trial_acks(result)

    def metrics(
        self, trial: TrialRow, latency: Sequence[LatencyRow], *, open_loop: bool, extra: Any
    ) -> Measured:
        """Rates, latencies, costs, and what acknowledgements did."""
        return transfer_metrics(trial, latency, (extra or {}).get(trial.trial), open_loop=open_loop)

    def default_metrics(self, job: TransferJob) -> tuple[str, ...]:
        """The bandwidth, which is what streams are for."""
        return ("bandwidth",)

    def expected_metrics(self, job: TransferJob) -> tuple[str, ...]:
        """The columns of the table that everybody reads."""
        return ("bandwidth",) if job.copies else ("bandwidth", "drain", "ack_p99", "ack_longest_silence")

    def explaining_metrics(self, job: TransferJob) -> tuple[str, ...]:
        """How long acknowledgements take, and the last ones."""
        return () if job.copies else ("ack_p99", "drain")

    def shown(self, job: TransferJob) -> CellShown:
        """In both directions where it is duplex."""
        one = "read" if job.reads_only else "write"
        return CellShown(
            directions=("read", "write") if job.reads and job.writes else (one,),
            asked=(("", "bandwidth"),),
            in_flight=None if job.copies else job.in_flight * job.streams,
        )

    def few_operations(self, case: Case, limits: Limits) -> str | None:
        """A copy has no requests of this client: its time alone tells.

        In a sweep neighbours and repetitions tell how far rates scatter: few large requests are enough.
        """
        if isinstance(case.cell.job, TransferJob) and case.cell.job.copies:
            return None
        if case.cell.swept is None:
            return super().few_operations(case, limits)
        requests = sum(trial.read_operations + trial.write_operations for trial in case.good)
        few = requests < limits["swept_requests"]
        return f"{requests} requests in {len(case.good)} trials" if few else None

    def compressible(self, job: TransferJob) -> str | None:
        """Generated data that a study wanted so; of files nobody knows."""
        return "all of it" if not job.incompressible and not job.sources else None

    def write_sizes(self, job: TransferJob) -> tuple[tuple[int, float], ...]:
        """Whole buffers."""
        return ((job.buffer, 1.0),)

    def statements(self, own: OwnCells) -> Iterable[Statement]:
        """Stalls, ends, bursts and late acknowledgements."""
        return transfer_statements(_lines(own))

    def answer(self, own: OwnCells) -> KindAnswer:
        """How late the last acknowledgements of whole files were, target by target."""
        plain = {cell.id for cell in own.planned if cell.swept is None}
        return KindAnswer(last_acks([line for line in _lines(own) if line.cell.id in plain]), adds=True)

    def section(self, own: OwnCells) -> Section | None:
        """What acknowledgements did, and bytes outstanding."""
        return transfer_section(_lines(own))


def _lines(own: OwnCells) -> list[TransferSeries]:
    """The cells that were measured, with the acknowledgements of their complete trials."""
    judged = {cell.id: cell for cell in own.cells}
    found = own.extra or {}
    lines = []
    for planned in own.planned:
        table = own.tables.get(planned.id)
        if planned.id not in judged or table is None or not isinstance(planned.job, TransferJob):
            continue
        complete = (row.trial for row in table.trials if row.state == "complete")
        acks = tuple(found[trial] for trial in complete if trial in found)
        lines.append(TransferSeries(judged[planned.id], planned.job, acks))
    return lines
