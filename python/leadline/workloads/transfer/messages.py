"""What is said of acknowledgements: stalls, files that end together, bursts, and what came late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadline import units
from leadline.study import schemes
from leadline.verdict.model import UNUSABLE, Cell, Statement
from leadline.workloads.transfer.acks import Stall
from leadline.workloads.transfer.figures import TrialAcks
from leadline.workloads.transfer.job import TransferJob

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
        f" {seconds(bursts.bin_s)} varies {units.format_number(bursts.times)} times as much as that of"
        f" independent streams, in {trial}"
    )
    if found[1:]:
        text += f"; so in {len(found)} of {len(line.said)} trials"
    evidence = tuple(f"{name}: {units.format_number(one.times)} times" for one, name in found[:_SAID_MAX])
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
            f"{line.name}: {lost:,} acks of {lost + kept:,} were beyond what a trial keeps: what is said of"
            " stalls and drains is of the others.",
            says="transfer_acks_lost",
            cells=(line.cell.id,),
        )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
