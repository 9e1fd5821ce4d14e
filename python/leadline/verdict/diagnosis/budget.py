"""Where the time of a mean request goes: its latency, split into segments that were measured and sum to it.

A segment that nothing observed has no seconds and is no zero: its time is in the unexplained rest, or in the
segment that holds it. What overlaps is counted once, for the part that is nearer to the data: the commits of
other OSDs run beside the primary's own commit, so that peers have only what goes beyond it. A part that was
measured longer than what it lies in is cut to it; means of counters and of clients are not of the same
requests.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from leadline.analysis.statistics.means import Estimate, arithmetic_mean
from leadline.units import format_latency
from leadline.verdict.diagnosis.samples import ONE_EACH, Figure, Figures, one_each

_NOT_WAITED = 1.2  # an OSD's time that is that many times the request's is of something nobody waits for
_FEW = 0.05  # of the operations: a direction that has fewer is left out
REST = "unexplained"
_LETTERS = "abcdefghij"
BAR_LETTERS = 50


@dataclass(frozen=True)
class BudgetPart:
    """A segment of the time: by which formula, from which counters, in seconds; what else would show it."""

    name: str
    title: str
    formula: str
    source: str
    shown_by: str
    on: str = ""


_OSD_TELL = "a key for which `ceph tell osd.0 perf dump` answers, and one OSD operation for each request"
PARTS = (
    BudgetPart(
        "client",
        "client queue and daemon",
        "latency_s - client_in_flight / client_operations_per_s (Little's law)",
        "the engine's histogram; objecter of ceph-fuse's admin socket",
        "the admin socket of ceph-fuse; a library in the program has none",
        "osd",
    ),
    BudgetPart(
        "wire",
        "network, both ways",
        "round_trip_least_s; queues on the way, and what a large request needs beyond, are in the rest",
        "TCP_INFO of this host's connections to the servers: tcpi_min_rtt",
        "root, who can read round trips from TCP_INFO",
        "network",
    ),
    BudgetPart(
        "gateway",
        "gateway",
        "none",
        "no counter of leadline",
        "the gateway's own counters of its requests' time",
        "proxy",
    ),
    BudgetPart(
        "mds",
        "metadata server",
        "mds_reply_s * mds_requests_per_s / metadata_operations_per_s",
        "reply_latency and handle_client_request of the perf dump, for metadata operations alone",
        "a key for which `ceph tell mds.0 perf dump` answers, and no other client of that server",
        "mds",
    ),
    BudgetPart(
        "osd_dispatch",
        "OSD, dispatch queue",
        "osd_dispatch_s of reads from copies: of any other load it counts operations of peers, too",
        "op_before_queue_op_lat of the perf dump",
        "a load of reads only, from copies; of other loads the queue includes it",
        "osd",
    ),
    BudgetPart(
        "osd_queue",
        "OSD, before its work",
        "osd_write_queue_s or osd_read_queue_s, less the dispatch queue where that is known",
        "op_w_latency - op_w_process_latency, op_r_latency - op_r_process_latency",
        _OSD_TELL,
        "osd",
    ),
    BudgetPart(
        "osd_work",
        "OSD, own work",
        "what is left of the operation: its preparation, and the store without waits",
        "op_w_process_latency, op_w_prepare_latency, op_r_process_latency, bluestore commit_lat",
        _OSD_TELL,
        "osd",
    ),
    BudgetPart(
        "store_data",
        "store, data device",
        "osd_aio_wait_s of writes, osd_store_read_s of reads",
        "bluestore state_aio_wait_lat, read_lat",
        _OSD_TELL,
        "osd",
    ),
    BudgetPart(
        "store_log",
        "store, log (kv commit)",
        "osd_kv_queued_s + osd_kv_sync_s",
        "bluestore state_kv_queued_lat, kv_sync_lat (its flush and its commit)",
        _OSD_TELL,
        "osd",
    ),
    BudgetPart(
        "peers",
        "other OSDs (copies or shards)",
        "op_w_process - op_w_prepare - commit of writes; of coded reads op_r_process - store's read",
        "op_w_process_latency, op_w_prepare_latency, bluestore commit_lat",
        _OSD_TELL,
        "osd",
    ),
    BudgetPart(
        "device",
        "block device here",
        "device_request_s, where requests reach the device as they are",
        "/proc/diskstats: queue / (operations read and written)",
        "a block device of the target's own that carries its requests one by one",
        "device",
    ),
)
# The parts of a metadata operation: the client's own time is in the rest, and the server waits for the OSDs.
_OF_METADATA = ("wire", "gateway", "mds")
TITLES = {**{part.name: part.title for part in PARTS}, REST: "unexplained rest"}


@dataclass(frozen=True)
class BudgetSegment:
    """A part's mean seconds with its interval over trials, and its share; None where it was not observed."""

    name: str
    title: str
    seconds: Estimate | None
    share: float | None
    shown_by: str = ""


@dataclass(frozen=True)
class LatencyBudget:
    """The mean request of a cell's trials: the seconds of all segments with the rest are `whole_s`."""

    whole_s: float
    segments: tuple[BudgetSegment, ...]

    @property
    def seen(self) -> tuple[BudgetSegment, ...]:
        """Those that were observed, and the rest."""
        return tuple(one for one in self.segments if one.seconds is not None)

    @property
    def unseen(self) -> tuple[BudgetSegment, ...]:
        """Those that nothing observed by themselves: their time is in another, or in the rest."""
        return tuple(one for one in self.segments if one.seconds is None)


def budget_of(trials: Sequence[Figures], places: Collection[str]) -> LatencyBudget | None:
    """Of a cell, whose causes may lie in these places; None where nobody knows how long its requests took.

    If it neither reads nor writes, its requests are metadata operations.
    """
    metadata = "mds" in places and all(one["latency_s"] is None for one in trials)
    wholes = [one["metadata_latency_s" if metadata else "latency_s"] for one in trials]
    known = [float(whole) for whole in wholes if isinstance(whole, float) and whole > 0]
    if not trials or len(known) < len(wholes):
        return None
    local = "osd" not in places and "proxy" not in places
    on_the_way = {*places, *(["device"] if local else [])}
    names = _OF_METADATA if metadata else TITLES.keys() - {"mds"}
    parts = [part for part in PARTS if part.on in on_the_way and part.name in names]
    divide = _split_metadata if metadata else _split
    split = [divide(one, whole, on_the_way) for one, whole in zip(trials, known, strict=True)]
    whole_s = fmean(known)
    found, left = list[BudgetSegment](), known
    for part in parts:
        values = [one[part.name] for one in split if part.name in one]
        if len(values) < len(split):
            found.append(BudgetSegment(part.name, part.title, None, None, part.shown_by))
            continue
        left = [rest - value for rest, value in zip(left, values, strict=True)]
        found.append(_segment(part.name, values, whole_s))
    return LatencyBudget(whole_s, (*found, _segment(REST, [max(one, 0.0) for one in left], whole_s)))


def bar_of(budget: LatencyBudget, width: int = BAR_LETTERS) -> tuple[str, tuple[str, ...], str]:
    """One bar of letters, dots for the rest; what each letter is; what nothing observed."""
    bar, said, at = "", list[str](), 0.0
    for number, one in enumerate(budget.seen):
        letter = "." if one.name == REST else _LETTERS[number]
        at += one.share or 0.0
        bar += letter * (round(at * width) - len(bar))
        if one.seconds is not None and (one.seconds.value > 0 or one.name == REST):
            said.append(f"{letter} {one.title} {_words(one.seconds)}, {100 * (one.share or 0.0):.0f} %")
    unseen = f"Not observed separately: {', '.join(one.title for one in budget.unseen)}."
    return bar, tuple(said), unseen if budget.unseen else ""


def nothing_seen(budget: LatencyBudget) -> str:
    """What would show a part, where all of the time is unexplained and a bar says nothing; else ""."""
    if len(budget.seen) > 1:
        return ""
    return f"No part of it was observed separately. To see one, use {budget.unseen[0].shown_by}."


def _words(seconds: Estimate) -> str:
    text = format_latency(seconds.value * 1e9)
    if seconds.low is None or seconds.high is None:
        return text
    return f"{text} (CI {format_latency(seconds.low * 1e9)} to {format_latency(seconds.high * 1e9)})"


def _segment(name: str, values: Sequence[float], whole_s: float) -> BudgetSegment:
    seconds = arithmetic_mean(values)
    return BudgetSegment(name, TITLES[name], seconds, fmean(values) / whole_s)


def _split(figures: Figures, whole: float, on_the_way: Collection[str]) -> dict[str, float]:
    """The seconds of one trial's segments that were observed; their sum is never more than the whole."""
    found = _Shares(whole)
    if "osd" in on_the_way and one_each(figures["osd_each"]):
        for name, seconds in _of_osd(figures, whole).items():
            found.take(name, seconds)
    sent, rate = figures["client_in_flight"], figures["client_operations_per_s"]
    if "osd" in on_the_way and one_each(figures["cut_into"]) and _positive(rate) and isinstance(sent, float):
        found.take("client", whole - sent / _number(rate))
    trip = figures["round_trip_least_s"]
    if "network" in on_the_way and isinstance(trip, float):
        found.take("wire", trip)
    if "device" in on_the_way and _at_device(figures):
        found.take("device", _number(figures["device_request_s"]))
    return found.seconds


def _split_metadata(figures: Figures, whole: float, on_the_way: Collection[str]) -> dict[str, float]:
    """The same for metadata operations: each sends one request to the metadata server, or none."""
    found = _Shares(whole)
    asked, rate = figures["mds_requests_per_s"], figures["metadata_operations_per_s"]
    each = asked / _number(rate) if isinstance(asked, float) and _positive(rate) else None
    if each is None or each > ONE_EACH:
        return found.seconds
    reply, trip = figures["mds_reply_s"], figures["round_trip_least_s"]
    found.take("mds", reply * each if isinstance(reply, float) else None)
    if "network" in on_the_way and isinstance(trip, float):
        found.take("wire", trip * each)
    return found.seconds


class _Shares:
    """Hands out a time, part by part, until nothing of it is left."""

    def __init__(self, whole: float) -> None:
        self.left, self.seconds = whole, dict[str, float]()

    def take(self, name: str, seconds: float | None) -> None:
        """What was measured, as far as it goes; nothing where it was not."""
        if seconds is not None:
            self.seconds[name] = min(max(seconds, 0.0), self.left)
            self.left -= self.seconds[name]


def _of_osd(figures: Figures, whole: float) -> dict[str, float]:
    """Of reads, of writes, or of both by how many there are; nothing of what nobody waits for."""
    writes = figures["write_share"]
    if not isinstance(writes, float):
        return {}
    ways = []
    if writes > _FEW:
        ways.append((writes, figures["osd_write_s"], _of_write(figures)))
    if writes < 1 - _FEW:
        alone = not ways and figures["coded"] == 0.0
        ways.append((1 - writes, figures["osd_read_s"], _of_read(figures, alone=alone)))
    total = sum(weight for weight, _, _ in ways)
    osd_s = [weight / total * time for weight, time, _ in ways if isinstance(time, float)]
    if len(osd_s) < len(ways) or sum(osd_s) > _NOT_WAITED * whole:
        return {}
    common = [name for name in ways[0][2] if all(name in parts for _, _, parts in ways)]
    return {name: sum(weight / total * parts[name] for weight, _, parts in ways) for name in common}


def _queued(queue: Figure, found: _Shares, dispatch: Figure = None) -> bool:
    """The time before an OSD works on it. False where that cannot be told from the rest."""
    if not isinstance(queue, float):
        return False
    before = min(dispatch, queue) if isinstance(dispatch, float) else None
    found.take("osd_dispatch", before)
    found.take("osd_queue", queue - (before or 0.0))
    return True


def _of_write(figures: Figures) -> dict[str, float]:
    found, commit = _Shares(_number(figures["osd_write_s"])), figures["osd_store_commit_s"]
    prepared = figures["osd_write_prepare_s"]
    if not _queued(figures["osd_write_queue_s"], found) or not isinstance(commit, float):
        return found.seconds
    if isinstance(prepared, float):
        found.take("peers", found.left - commit - prepared)
    store = _Shares(min(commit, found.left))
    store.take("store_data", _known(figures["osd_aio_wait_s"]))
    log = [_known(figures["osd_kv_queued_s"]), _known(figures["osd_kv_sync_s"])]
    store.take("store_log", None if None in log else sum(one or 0.0 for one in log))
    for name, seconds in store.seconds.items():
        found.take(name, seconds)
    if isinstance(prepared, float) and len(store.seconds) == 2:
        found.take("osd_work", found.left)
    return found.seconds


def _of_read(figures: Figures, *, alone: bool) -> dict[str, float]:
    """Where OSDs have nothing but reads from copies, all that their dispatch queues hold is of these."""
    found = _Shares(_number(figures["osd_read_s"]))
    stored, dispatch = figures["osd_store_read_s"], figures["osd_dispatch_s"] if alone else None
    if not _queued(figures["osd_read_queue_s"], found, dispatch) or not isinstance(stored, float):
        return found.seconds
    found.take("store_data", stored)
    found.take("store_log", 0.0)
    coded = figures["coded"] == 1.0
    found.take("osd_work", 0.0 if coded else found.left)
    found.take("peers", found.left)
    return found.seconds


def _at_device(figures: Mapping[str, Figure]) -> bool:
    """Whether the requests reach the device as they are: neither cached, nor cut, nor put together."""
    size, carried = figures["request_bytes"], figures["device_carried"]
    each = figures["device_request_bytes"]
    if not (_positive(size) and isinstance(carried, float) and isinstance(each, float)):
        return False
    return one_each(each / _number(size)) and one_each(carried) and _positive(figures["device_request_s"])


def _positive(figure: Figure) -> bool:
    return isinstance(figure, float) and figure > 0


def _number(figure: Figure) -> float:
    return figure if isinstance(figure, float) else 0.0


def _known(figure: Figure) -> float | None:
    return figure if isinstance(figure, float) else None
