"""The list of causes, which of them hold for the figures of trials, and these figures in words.

docs/diagnosis.md is made from them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal

from leadline.errors import SpecError
from leadline.knowledge.evaluator import Answered, RuleCondition, answered
from leadline.knowledge.formats import ShownFigures
from leadline.knowledge.tables import entries, text_of

if TYPE_CHECKING:
    from leadline.study.target import TargetFacts
    from leadline.verdict.diagnosis.samples import Figures


_DAEMONS = {"osd": "OSD", "mds": "metadata server", "mon": "monitor", "mgr": "manager", "proxy": "gateway"}

FIGURES: dict[str, str] = {
    "seconds": "the measured interval",
    "operations_per_s": "reads and writes a second",
    "bytes_per_s": "bytes read and written a second",
    "request_bytes": "mean bytes of an operation",
    "write_share": "writes of all operations",
    "syncs_per_write": "syncs for each write",
    "latency_s": "mean latency of reads and writes, from their actual start",
    "metadata_latency_s": "mean latency of metadata operations, of a trial that neither reads nor writes",
    "metadata_operations_per_s": "their number a second",
    "submission_share": "of it what the call of submission took",
    "sync_latency_s": "mean latency of syncs",
    "asked": "outstanding operations that the workload asks for, on all hosts",
    "in_flight": "outstanding operations on average: rate times latency (Little's law)",
    "engine_share": "the load generator's busiest thread, of a core",
    "no_room": "1 where an operation failed for lack of room or by a quota",
    "unfinished": "1 where the trial did not end as it should",
    "pool_groups": "placement groups of the target's pool",
    "read_ahead_bytes": "the most that ceph-fuse fetches ahead (client_readahead_max_bytes, _max_periods)",
    "coded": "1 where the target's pool is erasure-coded, 0 where it keeps copies",
    "streamed": "1 where all jobs read in order through the caches",
    "pause_s": "how long the jobs pause between requests (thinktime)",
    "cut_into": "operations of the client daemon for each of the program",
    "operation_s": "time of a request, or of one piece where the client cuts it",
    "client_operations_per_s": "operations that the client daemon sent",
    "half_duplex": "links of this host with half duplex",
    "half_duplex_at": "which",
    "faster_link_factor": "the fastest link of this host, times the one towards the servers",
    "mclock_waiting": "operations of clients in the queues of OSDs' mClock",
    "mds_ranks": "metadata servers that are active",
    "osds": "OSDs of the cluster",
    "groups_per_osd": "placement groups of the cluster for each OSD",
    "transfer_bytes": "the most that a mount asks its server for at once (rsize, wsize)",
    "server_connections": "TCP connections of an NFS mount (nconnect)",
    "behind_server": "1 where a gateway answers, whose own time no metric has",
    "cpu_share": "all CPUs of this host, busy; of several hosts the busiest",
    "core_share": "its busiest CPU",
    "steal_share": "CPU time that the hypervisor withheld",
    "other_cpu_share": "CPU time of processes that are neither of this run nor of the target's servers",
    "throttled_per_s": "periods a second in which this run's control group was stopped",
    "throttled_part": "of the periods of that group the part in which it was stopped",
    "memory_stalled_share": "time in which all tasks waited for memory (PSI)",
    "io_stalled_share": "time in which all tasks waited for I/O (PSI)",
    "memory_available": "least memory that was available, bytes",
    "governor": "how this host sets its CPUs' frequency",
    "wake_s": "the longest that an idle CPU may take to wake",
    "memory_nodes": "NUMA nodes",
    "addresses_translated": "1 where an IOMMU translates the addresses of devices",
    "device_share": "the target's own block device, busy; where it has none the busiest that may bear it",
    "device_request_s": "how long each request was at the target's own block device (await of iostat)",
    "device_request_bytes": "mean bytes of these requests",
    "device_carried": "bytes that passed it, for each that was read or written",
    "client_thread": "busiest thread of ceph-fuse",
    "client_thread_share": "what it used of a core",
    "client_cores": "cores that ceph-fuse used",
    "client_in_flight": "operations that ceph-fuse had sent and that were not answered",
    "client_in_flight_bytes": "their bytes",
    "client_blocked_per_s": "bytes a second that writes waited for room in ceph-fuse's cache",
    "client_resent_per_s": "operations a second that it sent again",
    "client_reply_s": "mean time of its requests to the metadata server",
    "port": "the fullest port of a lab's switches",
    "port_share": "what it carried of its rate at the median moment, headers taken into account",
    "port_rate": "its rate, bytes a second",
    "port_own_share": "of what it carried the part that this trial moved, where it is a client's",
    "slowest_port": "of the hosts with OSDs the one with the slowest link",
    "slowest_port_factor": "how many times less than the median port",
    "ports_share": "how full the fullest port of each moment was, the median of all moments",
    "link_share": "what the interface towards the servers carried of its link",
    "link_own_share": "of that what this trial's own connections moved",
    "link_faults_per_s": "errors and drops of this host's interfaces",
    "resent_per_s": "TCP segments sent again on hosts of the servers",
    "resent_at": "the daemon on whose host most were",
    "resent_share": "their part of all that passed the lab's ports",
    "round_trip_s": "median round trip of this host's connections to the servers (TCP); it has what servers"
    " wait before they answer, up to 40 ms",
    "round_trip_least_s": "the same of the least in five minutes of each connection",
    "unanswered_share": "samples in which a connection had sent two times or more in a row without an answer",
    "unanswered_at": "where that was most: here, or the network of this daemon",
    "connections_per_s": "connections a second that the OSD with the most made anew, without those that a"
    " trial opens; where OSDs are elsewhere the least of that and of what this host made",
    "receiver_full_share": "time in which the receiver's window was full",
    "receiver_full_at": "where that was most",
    "osd_operations_per_s": "writes a second that all OSDs had from clients",
    "osd_write_s": "mean time of a write in its primary OSD, peers included",
    "osd_write_queue_s": "of it in the queue",
    "osd_write_prepare_s": "of it until it was prepared",
    "osd_peers_s": "of it neither in the queue nor in its own store: waiting for peers",
    "osd_read_s": "mean time of a read in an OSD",
    "osd_each": "reads and writes of clients at all OSDs, for each of the program",
    "osd_dispatch_s": "mean time of an operation in an OSD before it is queued, those of peers included",
    "osd_store_read_s": "mean time of a read in an OSD's store",
    "osd_store_commit_s": "mean time until a store has made a write durable",
    "osd_aio_wait_s": "of it waiting for the data device",
    "osd_kv_queued_s": "of it in the queue of the store's log",
    "osd_kv_sync_s": "of it in the log's flush",
    "osd_store_throttle_s": "back pressure of the store",
    "osd_deferred_share": "writes of all copies that went through a store's log first, for each of a client",
    "osd_penalty_reads": "reads before each write",
    "osd_queue_share": "of the time of a write the part in the queue",
    "osd_read_queue_s": "time of a read in the queue",
    "osd_queue_part": "of the slowest operations' time the part in a queue (op tracker)",
    "osd_peers_part": "of it waiting for peers",
    "recovery_per_s": "bytes a second of recovery",
    "slow_osd": "the OSD that is slowest compared with the others",
    "slow_osd_factor": "how many times the median of the others",
    "slow_osd_commit_s": "its mean time to make a write durable",
    "slow_osd_kv_sync_s": "of it in its log's flush",
    "slow_osd_aio_wait_s": "of it waiting for its data device",
    "slow_osd_kv_commit_s": "of it in the commit of its log",
    "loaded_osd": "the OSD with the most reads and writes of clients",
    "loaded_osd_factor": "how many times its even part",
    "chance_factor": "what chance alone may give one OSD, by the number of the workload's objects",
    "last_osd": "the OSD that writes most often wait for when all others have done their part",
    "last_osd_share": "in which share of the writes",
    "last_others_share": "the same of the median other OSD",
    "operations_joined": "outstanding writes whose parts were found by their request id, in all samples",
    **{
        name.format(daemon): words.format(title)
        for daemon, title in _DAEMONS.items()
        for name, words in {
            "{}_throttled": "the {} whose control group was stopped most",
            "{}_throttled_per_s": "in how many periods a second",
            "{}_throttled_part": "of the periods of its group the part in which it was stopped",
            "{}_stopped": "the {} that stood still most",
            "{}_stopped_share": "the share of samples in which its process was stopped",
            "{}_thread": "busiest thread of a {}",
            "{}_thread_share": "what it used of a core",
            "{}_cores": "cores that all of them used",
        }.items()
    },
    "blocked_osd": "the OSD that waited for its device most",
    "blocked_osd_share": "the share of samples in which one of its threads did",
    "blocked_others_share": "the same of the median other OSD",
    "logging_osd": "the OSD that spends most on its own log",
    "logging_share": "of its CPU time what the thread of its log took",
    "mds_requests_per_s": "requests of clients a second, all metadata servers",
    "mds_reply_s": "mean time of a reply of the busiest one",
    "mds_journal_s": "mean time of its journal's flush",
    "mds_caps": "capabilities that it has handed out",
    "mds_lock_part": "of its slowest requests' time the part waiting for locks (op tracker)",
    "mds_inodes": "inodes in its cache",
    "metadata_per_operation": "requests to metadata servers for each read or write, without those by which a"
    " trial opens its files",
    "health_checks": "codes of `ceph health` at either end of the trial",
    "flags": "flags of the cluster",
    "osds_down": "OSDs that were down, the most",
    "osds_down_part": "the part of the time in which one was",
    "pgs_not_clean": "placement groups that were not active and clean, the most",
    "pgs_scrubbing": "placement groups that were scrubbed, the most",
    "pgs_snaptrim": "placement groups that removed snapshots, the most",
    "paused": "1 where the cluster had the flag pauserd or pausewr",
    "scrubbing_part": "the part of the time in which some were",
    "recovering_part": "the part of the time in which the OSD that recovered most did",
    "recovering": "1 where the cluster recovered at either end",
    "full_checks": "checks that say nearly full, or full",
    "full_count": "how many of these",
    "slow_ops": "operations that the cluster calls slow, the most",
    "cache_oversized": "1 where MDS_CACHE_OVERSIZED was raised",
    "monitors_down": "1 where MON_DOWN was raised",
    "managers_down": "1 where MGR_DOWN was raised",
    "caps_recalled": "1 where a client did not give capabilities back in time",
    "journal_behind": "1 where MDS_TRIM was raised",
    "clocks_apart": "1 where MON_CLOCK_SKEW was raised",
    "pings_slow": "1 where pings between OSDs were slow",
    "versions_differ": "1 where daemons are of different versions",
    "store_amplification": "bytes that all stores wrote for each that OSDs had from clients",
    "osd_s": "mean of `osd_write_s` and `osd_read_s`, by the share of writes",
    "outside_osd_share": "of the latency what is not within an OSD, where a request is about one operation",
}


Place = Literal["load", "client", "host", "network", "proxy", "osd", "mds", "cluster"]
EXPERIMENTS = ("depth", "jobs", "block", "syncs", "way")  # see experiments.py
_MANUAL = "docs/diagnosis.md"
# What a share is of; one kind is never compared with another.
SHARE_KINDS = {"time": "of the time", "part": "of the measured time", "full": "full"}
PLACES: tuple[Place, ...] = ("load", "client", "host", "network", "proxy", "osd", "mds", "cluster")


@dataclass(frozen=True)
class CauseEntry:
    """One entry of `table/PLACE.yaml`; each is judged on each trial's figures (docs/diagnosis.md lists them).

    - `place`: where on the way it is, the name of its file.
    - `told`: direct, where a counter says it by itself; full, where something is used up; rest, what is left
      where neither holds, and named only then; aside, a state for which nothing says that requests wait.
    - `title`: in a few words, as it reads after "bottleneck:"; `means`: what goes on.
    - `needs`: figures without which nobody can tell: where one was not observable the cause is left open.
    - `seen`: a condition in SQL on the figures, with `$thresholds`; `against`: words and a condition each.
    - `share`: an expression without constants, 0 to 1; `share_kind`: `time`, the part of a request's time;
      `full`, how full what is full is; `part`, the part of the time in which an event held. A cause that
      nothing measures has none: it is present, and `measured_by` says what would measure it. Nor has a wait
      that is longer than the request.
    - `evidence`: what was seen; figures print as count, size, share, percent, latency, decimal, rate.
    - `experiment`: what decides where it is not sure; `predicts`: by how much the rate would change in those
      that `--active` makes, or `rest`: to what the time is without this part.
    - `remedy`: what to change, and its trade-off (`price`); `source`: where that is known from.
    - `which`: the figure that names what it is, such as an OSD: trials must name the same.
    - `every_device`: the devices of all OSDs are used up alike, so that more of them give more.
    """

    name: str
    place: Place
    told: Literal["direct", "full", "rest", "aside"]
    title: str
    means: str
    needs: tuple[str, ...]
    seen: str
    evidence: str
    experiment: str
    remedy: str
    price: str
    source: str
    share: str = ""
    share_kind: str = ""
    measured_by: str = ""
    which: str = ""
    against: tuple[Mapping[str, str], ...] = ()
    thresholds: Mapping[str, int | float] = field(default_factory=dict)
    predicts: Mapping[str, float | str] = field(default_factory=dict)
    every_device: bool = False
    setting: str = ""
    shared: tuple[str, ...] = ()

    @property
    def plain_title(self) -> str:
        """Its title without what a trial's figures say."""
        return re.sub(r"(, \w+| \(|,)? ?\{[\w:]+\}\)?", "", self.title)


@dataclass(frozen=True)
class CauseInTrial:
    """What one trial says of a cause.

    `holds` is None where a figure that it needs was not observable: `lacks` has them. `share` is 0 to 1, and
    None where nothing measures it here: `lacks` has what its share would need. `title` and `evidence` have
    the trial's figures; `against` is what speaks against it here.
    """

    name: str
    holds: bool | None
    share: float | None = None
    title: str = ""
    evidence: str = ""
    against: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


@cache
def causes() -> tuple[CauseEntry, ...]:
    """Every cause, place by place along the way."""
    texts = ((place, text_of("leadline.verdict.diagnosis", _file_of(place))) for place in PLACES)
    return tuple(one for place, text in texts for one in read_causes(text, place))


def applying(facts: TargetFacts) -> tuple[CauseEntry, ...]:
    """The causes that there can be on the way to a target: a local file system has no link and no OSD, and
    what no ceph-fuse serves is not held up by one.
    """
    clustered = facts.ceph is not None or facts.on_cluster or facts.behind_server
    on_the_way: dict[Place, bool] = {
        **{"network": facts.is_remote, "proxy": facts.behind_server},
        **{"osd": clustered, "mds": clustered, "cluster": clustered},
    }
    absent = set() if facts.through_ceph_fuse else set(_OF_CEPH_FUSE)
    absent |= set() if clustered else set(_OF_CLUSTER)
    absent |= set() if facts.host_caches or facts.behind_server else set(_OF_CACHES)
    return tuple(
        cause for cause in causes() if on_the_way.get(cause.place, True) and not absent & set(cause.needs)
    )


# Figures of what is not on every way; other causes of the client and the work do without them.
_OF_CEPH_FUSE = ("client_thread_share", "client_in_flight", "client_blocked_per_s", "read_ahead_bytes")
_OF_CLUSTER = ("metadata_per_operation",)
_OF_CACHES = ("streamed",)


def of_itself(table: tuple[CauseEntry, ...]) -> tuple[CauseEntry, ...]:
    """The causes that a counter says by itself, whatever a trial's own figures are."""
    return tuple(cause for cause in table if cause.told == "direct")


def read_causes(text: str, place: Place) -> tuple[CauseEntry, ...]:
    """The causes of a place. Raises SpecError where one lacks a part, or has one too many."""
    source = _file_of(place)
    found = entries(text, source, CauseEntry, place=place)
    for one in found:
        if (not one.share or one.share_kind not in SHARE_KINDS) and (one.share or not one.measured_by):
            words = f"give a share with a share_kind of {', '.join(SHARE_KINDS)}, or what would measure it"
            raise SpecError("its share is measured by nothing", words, source=source, key=one.name)
        for experiment in set(one.predicts) - set(EXPERIMENTS):
            words = f"use some of {', '.join(EXPERIMENTS)}"
            raise SpecError(f"{experiment!a} is no experiment", words, source=source, key=one.name)
    return found


def _file_of(place: Place) -> str:
    return f"table/{place}.yaml"


def judged(
    trials: Sequence[Figures], table: tuple[CauseEntry, ...] | None = None
) -> list[dict[str, CauseInTrial]]:
    """Each cause of the table, judged by the figures of each trial.

    All trials and causes in one question: a report has hundreds of trials. Raises SpecError where an entry
    names a figure that there is none of.
    """
    table = causes() if table is None else table
    answers = answered(trials, _TEXTS, [_condition(cause) for cause in table])
    found = []
    for figures, given in zip(trials, answers, strict=True):
        shown = ShownFigures(figures)
        found.append(
            {cause.name: _judged(cause, figures, shown, one) for cause, one in zip(table, given, strict=True)}
        )
    return found


# Figures that are names: everything else is a number.
_TEXTS = frozenset(
    {"client_thread", "port", "slowest_port", "resent_at", "slow_osd", "loaded_osd", "blocked_osd"}
    | {
        "health_checks",
        "flags",
        "full_checks",
        "unanswered_at",
        "receiver_full_at",
        "governor",
        "last_osd",
        "half_duplex_at",
        "logging_osd",
    }
    | {
        f"{kind}_{what}"
        for kind in ("osd", "mds", "mon", "mgr", "proxy")
        for what in ("throttled", "stopped", "thread")
    }
)


def _condition(cause: CauseEntry) -> RuleCondition:
    against = tuple(one["where"] for one in cause.against)
    source = _file_of(cause.place)
    return RuleCondition(cause.name, cause.seen, cause.share, source, _MANUAL, against, cause.thresholds)


def _judged(cause: CauseEntry, figures: Figures, shown: ShownFigures, said: Answered) -> CauseInTrial:
    """What one trial says of a cause."""
    try:
        lacks = tuple(name for name in cause.needs if figures[name] is None)
        if lacks or not said.holds:
            return CauseInTrial(cause.name, None if lacks else False, lacks=lacks)
        unmeasured = tuple(name for name in figures_in(cause.share) if figures[name] is None)
        title, evidence = cause.title.format_map(shown), cause.evidence.format_map(shown)
    except KeyError as error:
        raise _condition(cause).wrong(str(error)) from None
    words = tuple(one["words"] for one, speaks in zip(cause.against, said.against, strict=True) if speaks)
    share = _measured(cause, said.share)
    return CauseInTrial(cause.name, True, share, title, evidence, words, unmeasured)


def figures_in(share: str) -> tuple[str, ...]:
    """The figures of which a share is made."""
    return tuple(dict.fromkeys(re.findall(r"[a-z]\w*", share)))


def _measured(cause: CauseEntry, share: float | None) -> float | None:
    """0 to 1; None where nothing measured it: a part of nothing, or a wait that is longer than the request.

    Such a wait is none of the request's: a server or a cache had answered it before.
    """
    if share is None or not math.isfinite(share) or (cause.share_kind == "time" and share > _AT_MOST):
        return None
    return min(max(share, 0.0), 1.0)


_AT_MOST = 1.1  # of a request's time by two observers, whose samples differ a little
