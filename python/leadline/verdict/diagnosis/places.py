"""The way from the work to the device: how full each part of it was, what waited there, and which bounds.

Utilisation and saturation, as in the USE method (B. Gregg, Communications of the ACM 56, 2013): a part that
is half in use may have a queue, and one that is stopped again and again is hardly in use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from leadline.knowledge.formats import ShownFigures
from leadline.verdict.diagnosis.causes import CauseEntry
from leadline.verdict.diagnosis.samples import Figures
from leadline.verdict.sections.charts import PlaceUse

NOTHING, UNSEEN = "nothing waits", "not observed"


@dataclass(frozen=True)
class _Wait:
    """A figure of what waits, from which value on it is said, and the words."""

    figure: str
    least: float
    words: str


@dataclass(frozen=True)
class _PartOfWay:
    """`use` is the figure of how full it is, empty where none says it; None where nothing of it can be full.

    `about` are further figures that a cause is told by which is one of this part. `on` is a place of causes
    without which this part is not on the way: a local file system has no link and no OSD.
    """

    place: str
    what: str
    use: str | None
    waits: tuple[_Wait, ...]
    about: tuple[str, ...] = ()
    on: str = ""

    @property
    def figures(self) -> tuple[str, ...]:
        """All that a cause of this part may be told by."""
        return (*([self.use] if self.use else []), *(one.figure for one in self.waits), *self.about)


_HERE = "device_share"
_LITTLE = 0.005  # of the time: half a percent is printed as one


def _of_process(kind: str) -> tuple[_Wait, ...]:
    return (
        _Wait(
            f"{kind}_throttled_per_s",
            0.05,
            f"{{{kind}_throttled}} without CPU in {{{kind}_throttled_per_s:decimal}} of 10 periods a second",
        ),
        _Wait(
            f"{kind}_stopped_share",
            _LITTLE,
            f"{{{kind}_stopped}} was stopped {{{kind}_stopped_share:share}} of the time",
        ),
    )


_PARTS = (
    _PartOfWay(
        "load",
        "the workload itself",
        None,
        (_Wait("in_flight", 0.0, "{in_flight:decimal} outstanding"),),
        ("asked",),
    ),
    _PartOfWay(
        "client",
        "load generator, busiest thread",
        "engine_share",
        (_Wait("throttled_per_s", 0.05, "without CPU in {throttled_per_s:decimal} of 10 periods a second"),),
    ),
    _PartOfWay(
        "client",
        "client daemon, busiest thread",
        "client_thread_share",
        (
            _Wait("client_in_flight", 0.0, "{client_in_flight:decimal} requests outstanding at the servers"),
            _Wait("client_blocked_per_s", 1.0, "{client_blocked_per_s:rate} waited for space in its cache"),
        ),
        on="osd",
    ),
    _PartOfWay(
        "host",
        "this host's CPUs",
        "cpu_share",
        (
            _Wait("steal_share", _LITTLE, "{steal_share:share} taken by the hypervisor"),
            _Wait(
                "memory_stalled_share",
                _LITTLE,
                "all tasks waited for memory {memory_stalled_share:share} of the time",
            ),
        ),
    ),
    _PartOfWay(
        "network",
        "fullest port",
        "port_share",
        (_Wait("resent_share", 0.0005, "{resent_share:percent} was retransmitted, at {resent_at}"),),
        ("ports_share",),
        on="network",
    ),
    _PartOfWay(
        "network",
        "link of this host",
        "link_share",
        (
            _Wait("unanswered_share", _LITTLE, "{unanswered_share:share} of the samples without an answer"),
            _Wait("receiver_full_share", _LITTLE, "receiver full {receiver_full_share:share} of the time"),
            _Wait("link_faults_per_s", 0.05, "{link_faults_per_s:decimal} errors and drops a second"),
        ),
        ("connections_per_s", "link_own_share"),
        on="network",
    ),
    _PartOfWay("proxy", "gateway, busiest thread", "proxy_thread_share", _of_process("proxy"), on="proxy"),
    _PartOfWay("mds", "metadata server, busiest thread", "mds_thread_share", _of_process("mds"), on="mds"),
    _PartOfWay(
        "osd",
        "OSDs, busiest thread",
        "osd_thread_share",
        (
            _Wait("osd_queue_share", 0.0, "{osd_queue_share:share} of a write's time in the queue"),
            *_of_process("osd"),
        ),
        on="osd",
    ),
    _PartOfWay(
        "device",
        "devices of the OSDs",
        "",
        (
            _Wait("osd_aio_wait_s", 0.0, "{osd_aio_wait_s:latency} of a write waits for the data device"),
            _Wait("osd_kv_sync_s", 0.0, "{osd_kv_sync_s:latency} for the log"),
            _Wait("blocked_osd_share", _LITTLE, "{blocked_osd} waits {blocked_osd_share:share} of the time"),
        ),
        ("slow_osd_factor", "osd_store_commit_s"),
        on="osd",
    ),
    _PartOfWay(
        "device",
        "block device here",
        _HERE,
        (_Wait("io_stalled_share", _LITTLE, "all waited for I/O {io_stalled_share:share} of the time"),),
        ("device_request_s", "device_carried"),
    ),
    _PartOfWay(
        "cluster",
        "the cluster as a whole",
        None,
        (
            _Wait("osds_down", 1.0, "{osds_down:count} OSDs down"),
            _Wait("recovery_per_s", 1.0, "{recovery_per_s:rate} of recovery"),
            _Wait("pgs_scrubbing", 1.0, "{pgs_scrubbing:count} groups scrubbed"),
            _Wait("pgs_snaptrim", 1.0, "{pgs_snaptrim:count} groups trimmed snapshots"),
        ),
    ),
)


def places(
    trials: Sequence[Figures], named: Iterable[tuple[CauseEntry, str]], table: Iterable[CauseEntry]
) -> tuple[PlaceUse, ...]:
    """Along the way, in its order: what was not observable is there, too; what is not there is not.

    `named` are the bottlenecks with their words, `table` the causes that there can be on this way.
    """
    on_the_way = {cause.place for cause in table}
    bounding: dict[str, list[str]] = {}
    for cause, said in named:
        bounding.setdefault(_part_of(cause).what, []).append(said)
    means = {name: _mean(trials, name) for name in trials[0]}
    found = []
    for part in _PARTS:
        bounds = part.what in bounding
        use = None if not part.use else means[part.use]
        seen = {one.figure: mean for one in part.waits if isinstance(mean := means[one.figure], float)}
        words = _words(part, seen, means)
        if not bounds and _is_absent(part, on_the_way, means, words):
            continue
        use = use if isinstance(use, float) else None
        by = " and ".join(bounding.get(part.what, ()))
        found.append(PlaceUse(part.place, part.what, use, bounds, words, seen, part.use is not None, by))
    return tuple(found)


def _is_absent(
    part: _PartOfWay, on_the_way: Collection[str], means: Mapping[str, float | str | None], words: str
) -> bool:
    """What cannot be there, a gateway where none answers, and what there is nothing to say of."""
    if part.on and part.on not in on_the_way:
        return True
    if part.place == "proxy":
        return means["behind_server"] == 0.0
    unsaid = words in (NOTHING, UNSEEN)
    if part.use == _HERE:  # of what is stored elsewhere this host has no device
        return unsaid and means[_HERE] is None and "network" in on_the_way
    return part.use is None and unsaid


def _words(part: _PartOfWay, seen: Mapping[str, float], means: Mapping[str, float | str | None]) -> str:
    if not seen:
        return UNSEEN
    shown = ShownFigures(means)
    said = [one.words.format_map(shown) for one in part.waits if seen.get(one.figure, -1.0) >= one.least]
    return "; ".join(said) or NOTHING


def _mean(trials: Sequence[Figures], name: str) -> float | str | None:
    """Of what is no number, such as which OSD it was, the first trial's."""
    known = [value for one in trials if (value := one[name]) is not None]
    numbers = [float(value) for value in known if not isinstance(value, str)]
    if numbers:
        return fmean(numbers)
    return known[0] if known else None


def _part_of(cause: CauseEntry) -> _PartOfWay:
    """By the first figure that it needs and its place or a device has; else the first part of its place."""
    own = [part for part in _PARTS if part.place == cause.place]
    for parts in (own, [part for part in _PARTS if part.place == "device"]):
        for figure in cause.needs:
            for part in parts:
                if figure in part.figures:
                    return part
    return own[0]
