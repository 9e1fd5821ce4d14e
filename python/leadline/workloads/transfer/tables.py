"""The section of transfers: acknowledgements by cell, bytes outstanding over time, streams that stand out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leadline import units
from leadline.verdict.model import FigureRow, FigureTable, Quantity
from leadline.verdict.sections.charts import AmountLine, AmountLines, ShadedSpan
from leadline.verdict.sections.section import Panels, Part, Section, TextTable
from leadline.workloads.transfer.figures import StreamFigures, TrialAcks
from leadline.workloads.transfer.words import TransferSeries, ack_words, seconds, stall_words

_COLUMNS = {
    "bandwidth": "bandwidth",
    "bytes_in_flight": "in flight at most",
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
