"""How far bytes travelled, between application, wire, OSDs and device: what each cache on the way answered
or kept.

A chain is a list of places from the application to the device with what was counted on the way into each.
What did not come out of (or go into) the next place stayed in this one. Counts are volumes, so read-ahead
that was not used hides as many bytes that came from a cache: shares of caches are lower bounds.

All counts cover the whole trial, ramp included, so that they can be held against each other. Jobs that ran
together share what was observed, and so it is held against what all of them moved; `reasons` says so under
`application`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from leadline.store.tables import TrialRow
from leadline.study.schemes import PAGE_CACHE
from leadline.study.target import TargetFacts

NOBODY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Bytes:
    """Bytes of one or more trials, both directions; None with its reason is "not observable".

    `device` is the target's own block device, or behind Ceph what the OSDs' stores read and wrote; `own` is
    what the run's own processes fetched from and sent to block devices.
    """

    application: int
    wire: int | None
    osd: int | None
    device: int | None
    reasons: dict[str, str]
    own: int | None = None


def bytes_read(trials: Sequence[TrialRow], others: Mapping[str, str] = NOBODY) -> Bytes:
    """Reads: what applications got, what came over the wire, from OSDs, from devices.

    `others` are columns whose counts are not this run's, with the reason: these are not in it.
    """
    return _collect(
        trials,
        others,
        {
            "application": ("group_read_bytes", "total_read_bytes"),
            "wire": ("wire_received_bytes",),
            "osd": ("osd_read_bytes",),
            "device": ("device_read_bytes", "store_read_bytes"),
            "own": ("own_read_bytes",),
        },
    )


def bytes_written(trials: Sequence[TrialRow], others: Mapping[str, str] = NOBODY) -> Bytes:
    """Writes: what applications gave, what went over the wire, to OSDs, to devices."""
    return _collect(
        trials,
        others,
        {
            "application": ("group_written_bytes", "total_write_bytes"),
            "wire": ("wire_sent_bytes",),
            "osd": ("osd_written_bytes",),
            "device": ("device_written_bytes", "store_written_bytes"),
            "own": ("own_written_bytes",),
        },
    )


def _collect(
    trials: Sequence[TrialRow], others: Mapping[str, str], columns: dict[str, tuple[str, ...]]
) -> Bytes:
    reasons: dict[str, str] = {}
    sums: dict[str, int | None] = {}
    for name, candidates in columns.items():
        found = next((c for c in candidates if all(getattr(t, c) is not None for t in trials)), None)
        if found is None or not trials or found in others:
            sums[name] = None
            reasons[name] = others.get(found or "") or _first_reason(trials, candidates)
        else:
            sums[name] = sum(getattr(trial, found) for trial in trials)
    if trials and all(trial.group_read_bytes is not None for trial in trials):
        reasons["application"] = _first_reason(trials, ("group",))
    return Bytes(sums["application"] or 0, sums["wire"], sums["osd"], sums["device"], reasons, sums["own"])


def _first_reason(trials: Sequence[TrialRow], candidates: tuple[str, ...]) -> str:
    for trial in trials:
        given = json.loads(trial.reasons)
        for candidate in candidates:
            if candidate in given:
                return str(given[candidate])
    return "not observable on this kind of target"


JOINED = "+"  # between the names of places that nothing tells apart


@dataclass(frozen=True)
class TravelPlace:
    """One place, or several that nothing tells apart.

    `entered` is what was counted on the way into it, `share` the part of the application's bytes that stayed
    there (writes) or came from there (reads). None is "not observable", and `reason` says why.
    """

    name: str
    entered: int | None
    share: float | None
    reason: str | None = None


@dataclass(frozen=True)
class Travel:
    """The bytes of one direction; the shares of `places` add up to 1 wherever one is known."""

    application: int
    places: tuple[TravelPlace, ...]
    together: str | None = None


@dataclass(frozen=True)
class _Step:
    """A way into `name`: what was counted there, and the part of it that counts once (`copies`)."""

    name: str
    amount: int | None
    reason: str | None = None
    copies: float = 1.0


def travel_read(
    trials: Sequence[TrialRow], facts: TargetFacts, direct: bool, others: Mapping[str, str] = NOBODY
) -> Travel | None:
    """Where the bytes that were read came from; None where nothing was read or there is no storage.

    `others` are columns whose counts are not this run's, with the reason: these are as good as not counted.
    """
    counts = _Counts(trials, others)
    own = sum(trial.total_read_bytes for trial in trials)
    shared = counts.sum("group_read_bytes", "")
    application = own if facts.is_local or shared.amount is None else shared.amount
    return _travel(trials, facts, application, _read_steps(counts, facts, direct))


def travel_written(
    trials: Sequence[TrialRow],
    facts: TargetFacts,
    direct: bool,
    copies: float | None,
    others: Mapping[str, str] = NOBODY,
) -> Travel | None:
    """How far the bytes that were written had got at the end; the model stores `copies` bytes for each."""
    counts = _Counts(trials, others)
    shared = counts.sum("group_written_bytes", "")
    application = sum(t.total_write_bytes for t in trials) if shared.amount is None else shared.amount
    return _travel(trials, facts, application, _write_steps(counts, facts, direct, copies))


def _travel(
    trials: Sequence[TrialRow], facts: TargetFacts, application: int, steps: list[_Step]
) -> Travel | None:
    if not trials or application <= 0 or not facts.has_storage:
        return None
    together = None
    if not facts.is_local and any(trial.group for trial in trials):
        together = "counted for all jobs that ran together"
    return Travel(application, tuple(_places(application, steps)), together)


@dataclass(frozen=True)
class _Counts:
    """What was counted over some trials, by column; `others` has reasons why a count is not this run's."""

    trials: Sequence[TrialRow]
    others: Mapping[str, str]

    def sum(self, column: str, name: str) -> _Step:
        """The way into `name`, by this column."""
        if column in self.others:
            return _Step(name, None, self.others[column])
        values = [getattr(trial, column) for trial in self.trials]
        if values and all(value is not None for value in values):
            return _Step(name, sum(values))
        return _Step(name, None, _reason(self.trials, column))


def _read_steps(counts: _Counts, facts: TargetFacts, direct: bool) -> list[_Step]:
    if facts.in_memory:
        return [_Step("memory", None)]
    host = _host(counts, facts, direct, "client_read_bytes")
    if facts.is_local:
        return [*host, _local_read(counts, facts)]
    wire = "wire_received_bytes"
    if facts.behind_server and facts.ceph is None:
        return [*host, counts.sum(wire, "server")]
    if facts.behind_server:
        osds = counts.sum("osd_read_bytes", "osd_cache")
        return [*host, counts.sum(wire, "gateway"), osds, counts.sum("store_read_bytes", "store")]
    near = _least(counts.sum(wire, "osd_cache"), counts.sum("osd_read_bytes", "osd_cache"))
    return [*host, near, counts.sum("store_read_bytes", "store")]


def _write_steps(counts: _Counts, facts: TargetFacts, direct: bool, copies: float | None) -> list[_Step]:
    if facts.in_memory:
        return [_Step("memory", None)]
    host = _host(counts, facts, direct, "client_written_bytes")
    if facts.is_local:
        return [*host, counts.sum("device_written_bytes", "device")]
    if facts.behind_server and facts.ceph is None:
        return [*host, counts.sum("wire_sent_bytes", "server")]
    osd = counts.sum("osd_written_bytes", "osd")
    # What OSDs were given has crossed the wire, whatever the client daemon counted.
    name = "gateway" if facts.behind_server else "wire"
    sent = [s.amount for s in (counts.sum("wire_sent_bytes", name), osd) if s.amount is not None]
    wire = _Step(name, max(sent)) if sent else counts.sum("wire_sent_bytes", name)
    store = counts.sum("store_written_bytes", "store")
    if copies is None and store.amount is not None:
        store = _Step("store", None, "how the pool protects its data is not known")
    elif copies is not None:
        store = _Step("store", store.amount, store.reason, copies)
    return [*host, wire, osd, store]


def _host(counts: _Counts, facts: TargetFacts, direct: bool, column: str) -> list[_Step]:
    """The caches of this host that can exist for the target; what has none begins at the storage's own place.

    `column` is what the client's own cache was asked for.
    """
    steps = []
    for name in facts.host_caches:
        if name == PAGE_CACHE:
            steps.append(_Step(name, None))
        elif direct:
            steps.append(_Step(name, None, "direct I/O asks to pass it"))
        else:
            steps.append(counts.sum(column, name))
    return steps


def _local_read(counts: _Counts, facts: TargetFacts) -> _Step:
    """The process's own count where there is a device: the device's counter holds everybody's I/O."""
    own = counts.sum("process_read_bytes", "device")
    return counts.sum("device_read_bytes", "device") if facts.device is None or own.amount is None else own


def _reason(trials: Sequence[TrialRow], column: str) -> str:
    for trial in trials:
        given = json.loads(trial.reasons)
        if column in given:
            return str(given[column])
    return "this result does not have it"


def _least(first: _Step, second: _Step) -> _Step:
    """The smaller of two counts of the same bytes: either may hold what others moved."""
    known = [step for step in (first, second) if step.amount is not None]
    return min(known, key=lambda step: step.amount or 0) if known else first


def _places(application: int, steps: list[_Step]) -> list[TravelPlace]:
    """Places with their shares; a place whose way in was not counted is joined with the one before it."""
    joined: list[list[_Step]] = []
    for step in steps:
        if joined and step.amount is None:
            joined[-1].append(step)
        else:
            joined.append([step])
    arrived = [1.0] + [_arrived(group[0], application) for group in joined[1:]] + [0.0]
    for index in range(1, len(arrived)):
        arrived[index] = min(arrived[index], arrived[index - 1])
    places = []
    for index, group in enumerate(joined):
        name = JOINED.join(step.name for step in group)
        entered = application if index == 0 else group[0].amount
        reason = next((step.reason for step in group[1:] if step.reason), None)
        # One place that holds all the others is no knowledge of where the bytes were.
        known = len(joined) > 1 or len(steps) == 1
        places.append(
            TravelPlace(name, entered, arrived[index] - arrived[index + 1] if known else None, reason)
        )
    return places


def _arrived(step: _Step, application: int) -> float:
    return (step.amount or 0) / step.copies / application
