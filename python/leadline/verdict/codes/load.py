"""The code `other_load`: somebody else used this host, the device, the network or the cluster.

Everybody's counters are held against what the run itself can have caused at most; what may be its own (dirty
pages from before, a journal, protocol headers) is never held against others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from leadline.store.tables import TrialRow
from leadline.units import format_rate, format_size
from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import Code

_Limits = Mapping[str, float]


@dataclass(frozen=True)
class _Seen:
    """Bytes that everybody moved in a trial, and of these what the run can have caused at most."""

    everybody: int
    own: float
    words: str

    @property
    def others(self) -> float:
        return max(self.everybody - self.own, 0.0)


def other_load(case: Case) -> Iterator[Code]:
    """One code, with the worst trial's evidence for each of CPU, device, network and cluster."""
    if not case.good:
        return
    kind = catalogue()["other_load"]
    said = [
        text
        for find in (_cpu, _device, _network, _cluster)
        if (text := _worst(case, kind.thresholds, find)) is not None
    ]
    if said:
        yield kind.fire("; ".join(said))


_Find = Callable[[Case, TrialRow, _Limits], Iterator[tuple[float, str]]]


def _worst(case: Case, limits: _Limits, find: _Find) -> str | None:
    """The evidence of the trial where others' share was largest, and in how many trials there was one."""
    found = []
    for trial in case.good:
        worst = max(find(case, trial, limits), default=None)
        if worst is not None:
            found.append((worst[0], trial.trial, worst[1]))
    if not found:
        return None
    _, trial_id, words = max(found)
    return f"{words} in {trial_id} ({len(found)} of {len(case.good)} trials)"


def _cpu(_case: Case, trial: TrialRow, limits: _Limits) -> Iterator[tuple[float, str]]:
    share = trial.other_cpu_share
    if share is not None and share >= limits["cpu_share"]:
        busiest = json.loads(trial.sources).get("busiest_other")
        yield (
            share,
            f"other processes used {100 * share:.0f} % of this host's CPUs"
            f"{f', most of it {busiest}' if busiest else ''}",
        )


def _device(case: Case, trial: TrialRow, limits: _Limits) -> Iterator[tuple[float, str]]:
    own_read, own_written = trial.own_read_bytes, trial.own_written_bytes
    if trial.device_read_bytes is not None and own_read is not None:
        seen = _Seen(trial.device_read_bytes, own_read, "read from the device")
        yield from _judge(trial, seen, limits)
    if case.work.unbounded_writes:
        return  # a file system's journal of operations on files has no known bound
    if trial.device_written_bytes is not None and own_written is not None:
        before = trial.dirty_at_start_bytes
        if before is None:
            return
        journal = _whole(trial, trial.sync_operations) * limits["sync_bytes"]
        own = own_written * limits["write_factor"] + before + journal
        yield from _judge(trial, _Seen(trial.device_written_bytes, own, "written to the device"), limits)


def _network(case: Case, trial: TrialRow, limits: _Limits) -> Iterator[tuple[float, str]]:
    own = _own_wire(case, trial)
    if own is None:
        return
    sent, received = own
    operations = trial.read_operations + trial.write_operations + trial.sync_operations
    headers = _whole(trial, operations) * limits["operation_bytes"]
    for everybody, mine, back, words in (
        (trial.interface_received_bytes, received, sent, "received by the network interface"),
        (trial.interface_sent_bytes, sent, received, "sent by the network interface"),
    ):
        if everybody is not None:
            allowed = (mine + limits["acknowledged"] * back) * (1 + limits["overhead"]) + headers
            yield from _judge(trial, _Seen(everybody, allowed, words), limits)


def _cluster(case: Case, trial: TrialRow, limits: _Limits) -> Iterator[tuple[float, str]]:
    own = _own_wire(case, trial)
    if own is None or case.work.unbounded_writes or case.facts.behind_server:
        return  # metadata servers write their journal to the same OSDs, and a gateway reads ahead
    sent, received = own
    for everybody, mine, words in (
        (trial.osd_read_bytes, received, "read from the OSDs"),
        (trial.osd_written_bytes, sent, "written to the OSDs"),
    ):
        if everybody is not None:
            yield from _judge(trial, _Seen(everybody, mine * (1 + limits["overhead"]), words), limits)


def _own_wire(case: Case, trial: TrialRow) -> tuple[float, float] | None:
    """Bytes (sent, received) of the run: the client daemon's own count, or of direct I/O what it moved."""
    source = json.loads(trial.sources).get("wire_received_bytes", "")
    if source.startswith("messengers of"):
        if trial.wire_sent_bytes is None or trial.wire_received_bytes is None:
            return None
        return float(trial.wire_sent_bytes), float(trial.wire_received_bytes)
    if not case.facts.is_remote or case.work.unbounded_writes or not case.cell.job.direct:
        return None
    if trial.group_read_bytes is not None:
        return None  # the job beside it may be buffered
    return float(trial.total_write_bytes), float(trial.total_read_bytes)


def _whole(trial: TrialRow, measured: int) -> float:
    """A count of the measured interval, for the whole trial with its ramp, which observers saw."""
    moved = trial.read_bytes + trial.write_bytes
    return (
        measured * max((trial.total_read_bytes + trial.total_write_bytes) / moved, 1.0) if moved else measured
    )


def _judge(trial: TrialRow, seen: _Seen, limits: _Limits) -> Iterator[tuple[float, str]]:
    seconds = max(trial.last_done_ns, trial.ramp_ns + trial.measured_ns, 1) / 1e9
    share = seen.others / seen.everybody if seen.everybody else 0.0
    if share < limits["share"] or seen.others < max(limits["bytes"], limits["bytes_per_s"] * seconds):
        return
    yield (
        share,
        f"{100 * share:.0f} % of what was {seen.words} was not this run's"
        f" ({format_rate(seen.others / seconds)})",
    )


@dataclass(frozen=True)
class _Shared:
    """A column that counts what everybody moved, columns that rest on it, and what of it the run can have
    caused in a trial at most; None: that is not known."""

    column: str
    words: str
    caused: Callable[[TrialRow, _Limits], float | None]
    also: tuple[str, ...] = ()


def unattributed(case: Case) -> dict[str, str]:
    """Counts over a cell's trials that hold more than this run can have caused, by column, with words: no
    ratio to this run's bytes may be made of them.

    Nobody is accused by that, and so nothing is allowed for what was dirty before, or for a journal whose
    size nobody knows.
    """
    limits = catalogue()["other_load"].thresholds
    found: dict[str, str] = {}
    for one in _SHARED:
        counts = [getattr(trial, one.column) for trial in case.good]
        if not counts or None in counts:
            continue
        reason = f"{format_size(sum(counts))} were {one.words} by all, "
        caused = [one.caused(trial, limits) for trial in case.good]
        own = [amount for amount in caused if amount is not None]
        if len(own) < len(counts):
            reason += "this run's part is not known"
        elif _excess(counts, own) > limits["share"] * sum(counts):
            reason += f"by this run {format_size(sum(own))} at most"
        else:
            continue
        found |= dict.fromkeys((one.column, *one.also), reason)
    return found


def _excess(counts: Sequence[int], own: Sequence[float]) -> float:
    return sum(max(count - mine, 0.0) for count, mine in zip(counts, own, strict=True))


def _moved(trial: TrialRow) -> tuple[float, float]:
    """Bytes (sent, received) that crossed the wire for the run: its client's own count, or what it moved."""
    source = json.loads(trial.sources).get("wire_received_bytes", "")
    if source.startswith(_OWN_WIRE) and None not in (trial.wire_sent_bytes, trial.wire_received_bytes):
        return float(trial.wire_sent_bytes or 0), float(trial.wire_received_bytes or 0)
    together = trial.group_written_bytes, trial.group_read_bytes
    own = trial.total_write_bytes, trial.total_read_bytes
    sent, received = (whole if whole is not None else part for whole, part in zip(together, own, strict=True))
    return float(sent), float(received)


def _to_device(trial: TrialRow, limits: _Limits) -> float | None:
    if trial.own_written_bytes is None:
        return None
    return trial.own_written_bytes + _whole(trial, trial.sync_operations) * limits["sync_bytes"]


def _on_wire(trial: TrialRow, limits: _Limits, *, sent: bool) -> float | None:
    """All that a client's own counter has; of an interface what the run's bytes need on it."""
    count = trial.wire_sent_bytes if sent else trial.wire_received_bytes
    if _EVERYBODY not in json.loads(trial.sources).get("wire_received_bytes", ""):
        return count
    forth, back = _moved(trial) if sent else _moved(trial)[::-1]
    operations = trial.read_operations + trial.write_operations + trial.sync_operations
    headers = _whole(trial, operations) * limits["operation_bytes"]
    return (forth + limits["acknowledged"] * back) * (1 + limits["overhead"]) + headers


_OWN_WIRE = ("messengers of", "TCP sockets of process")
_EVERYBODY = "everybody's traffic"
_SHARED = (
    _Shared("device_read_bytes", "read from the device", lambda trial, _: trial.own_read_bytes),
    _Shared("device_written_bytes", "written to the device", _to_device),
    _Shared("wire_received_bytes", "received by the interface", partial(_on_wire, sent=False)),
    _Shared("wire_sent_bytes", "sent by the interface", partial(_on_wire, sent=True)),
    _Shared(
        "osd_read_bytes",
        "read from the OSDs",
        lambda trial, limits: _moved(trial)[1] * (1 + limits["overhead"]),
        ("store_read_bytes",),
    ),
    _Shared(
        "osd_written_bytes",
        "written to the OSDs",
        lambda trial, limits: _moved(trial)[0] * (1 + limits["overhead"]),
        ("store_written_bytes",),
    ),
)
LOAD_RULES: tuple[Rule, ...] = (other_load,)
