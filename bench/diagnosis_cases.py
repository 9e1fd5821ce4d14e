"""What is broken for bench/diagnosis.py: causes in three strengths, and the work that shows each."""

from __future__ import annotations

from dataclasses import dataclass

Fault = tuple[str, str, dict[str, str]]


@dataclass(frozen=True)
class Strength:
    """Faults of a lab, and one of `WORKS`; `held` stops a process for that share of each 4 s, by its name."""

    work: str
    faults: tuple[Fault, ...] = ()
    held: tuple[str, float] | None = None


@dataclass(frozen=True)
class DiagnosisCase:
    """A cause by `LEVELS`. `right` are the names that are true of it; `limits` why weak ones are not seen."""

    name: str
    strengths: tuple[Strength, ...]
    right: frozenset[str]
    limits: str = ""


LEVELS = ("weak", "middle", "strong")
# Tried with seed 1, and not part of what is counted.
LEFT_OUT = {
    "a cluster on hold (`pause`)": "no trial begins, so that there is no result; `diagnose --live` names it",
    "a debug log": "a lab lets it last only for a time that is named before: its disk would fill",
    "scrubs": "the lab's pools hold so little that a scrub ends before anybody sees it",
    "backfill": "as recovery, of which it is a kind",
    "a host cut off": "after half a minute its OSD is marked down, and that is a case of its own",
}


_DIRECT = "direct: true, time_based: true"
WORKS = {
    # One client of 200 Mbit: its link is full in what streams, and nothing is in what waits.
    "stream": ("rados", f"{{rw: write, bs: 4M, size: 64M, iodepth: 4, {_DIRECT}}}"),
    "small": ("rados", f"{{rw: randwrite, bs: 4k, size: 32M, iodepth: 4, {_DIRECT}}}"),
    "many": ("rados", f"{{rw: randwrite, bs: 4k, size: 32M, iodepth: 16, {_DIRECT}}}"),
    "one": ("rados", f"{{rw: randwrite, bs: 4k, size: 32M, iodepth: 1, {_DIRECT}}}"),
    "read": ("rados", f"{{rw: randread, bs: 64k, size: 32M, iodepth: 4, {_DIRECT}}}"),
    "read 4": ("rados", f"{{rw: randread, bs: 4k, size: 16M, iodepth: 4, {_DIRECT}}}"),
    "read 2": ("rados", f"{{rw: randread, bs: 4k, size: 16M, iodepth: 2, {_DIRECT}}}"),
    "read 1": ("rados", f"{{rw: randread, bs: 4k, size: 16M, iodepth: 1, {_DIRECT}}}"),
    "files": ("ceph-fuse", "{operations: [create, stat, unlink], files: 400, numjobs: 2, time_based: true}"),
    "sync 16": ("ceph-fuse", "{rw: randwrite, bs: 4k, size: 32M, fsync: 16, time_based: true}"),
    "sync 4": ("ceph-fuse", "{rw: randwrite, bs: 4k, size: 32M, fsync: 4, time_based: true}"),
    "sync 1": ("ceph-fuse", "{rw: randwrite, bs: 4k, size: 32M, fsync: 1, time_based: true}"),
    # Stripes are of 8 KiB: each of these writes has one that it touches in part, and the others whole.
    "parts 20k": ("libcephfs-ec", f"{{rw: randwrite, bs: 20k, size: 20M, iodepth: 2, {_DIRECT}}}"),
    "parts 12k": ("libcephfs-ec", f"{{rw: randwrite, bs: 12k, size: 24M, iodepth: 2, {_DIRECT}}}"),
    "parts 4k": ("libcephfs-ec", f"{{rw: randwrite, bs: 4k, size: 32M, iodepth: 2, {_DIRECT}}}"),
    "gate small": ("xrootd", "{rw: randread, bs: 64k, size: 32M, iodepth: 2, time_based: true}"),
}


def _each(work: str, kind: str, on: str, option: str, *values: str) -> tuple[Strength, ...]:
    return tuple(Strength(work, ((kind, on, {option: value}),)) for value in values)


def _under(kind: str, on: str, *works: str, **options: str) -> tuple[Strength, ...]:
    """One fault that is there or is not: its strength is how much there is for it to hold up."""
    return tuple(Strength(work, ((kind, on, options),)) for work in works)


def _held(work: str, name: str) -> tuple[Strength, ...]:
    return tuple(Strength(work, held=(name, share)) for share in (0.25, 0.5, 0.9))


def _of(*causes: str) -> frozenset[str]:
    return frozenset(causes)


CASES = (
    DiagnosisCase(
        "link of the client",
        _each("stream", "link-rate", "client1", "rate", "100Mbit", "50Mbit", "20Mbit"),
        _of("link_full"),
    ),
    DiagnosisCase(
        "link of a host",
        _each("stream", "link-rate", "host2", "rate", "100Mbit", "50Mbit", "20Mbit"),
        _of("link_full", "links_in_turn", "slow_port"),
    ),
    DiagnosisCase(
        "uplink",
        _each("stream", "link-rate", "rack", "rate", "150Mbit", "80Mbit", "30Mbit"),
        _of("link_full"),
    ),
    DiagnosisCase(
        "others on the link",
        _each("stream", "client-busy-link", "client1", "rate", "60Mbit", "120Mbit", "170Mbit"),
        _of("link_shared", "packets_lost"),
    ),
    DiagnosisCase(
        "loss at a host",
        _each("small", "link-loss", "host2", "share", "1%", "3%", "8%"),
        _of("packets_lost"),
        limits="TCP sends again quickly, and most of a request's time is elsewhere",
    ),
    DiagnosisCase(
        "MTU",
        _each("stream", "mtu-mismatch", "host2", "mtu", "1400", "1000", "600"),
        # Heartbeats are large, too: after a while the host is marked down, and that is seen instead.
        _of("packets_vanish", "osds_lost"),
    ),
    DiagnosisCase(
        "connections",
        _each("small", "connection-resets", "osd.1", "one-in", "1000", "200", "50"),
        _of("connections_break"),
        limits="one message in 1,000 or 200 breaks less than one connection a second",
    ),
    DiagnosisCase(
        "late messages",
        _each("one", "message-delay", "osd.1", "max", "20ms", "60ms", "200ms"),
        _of("on_the_way", "peers_late", "osd_last"),
    ),
    DiagnosisCase(
        "CPU of an OSD",
        _each("small", "osd-slow-cpu", "osd.1", "cpu", "20%", "10%", "5%"),
        _of("osd_throttled"),
    ),
    DiagnosisCase(
        "disk of an OSD",
        _each("stream", "osd-slow-disk", "osd.1", "rate", "4MB/s", "2MB/s", "1MB/s"),
        _of("osd_slow_device", "osd_waits_for_device"),
    ),
    DiagnosisCase("an OSD that hangs", _held("small", "osd.1"), _of("osd_stopped")),
    DiagnosisCase("an OSD down", _under("osd-down", "osd.1", "one", "small", "many"), _of("osds_lost")),
    DiagnosisCase(
        "parts of stripes",
        tuple(Strength(work) for work in ("parts 20k", "parts 12k", "parts 4k")),
        _of("read_modify_write"),
    ),
    DiagnosisCase(
        "recovery",
        tuple(
            Strength("small", (("osd-recovery", "osd.1", {"data": data, "sleep": "200ms"}),))
            for data in ("64M", "128M", "256M")
        ),
        _of("recovery"),
        limits="the lab recovers so little data before the trials end",
    ),
    DiagnosisCase(
        "nearly full",
        _under("osd-nearfull", "osd.1", "one", "small", "many"),
        _of("nearly_full"),
    ),
    DiagnosisCase(
        "CPU of the MDS",
        _each("files", "mds-slow-cpu", "mds.a", "cpu", "20%", "10%", "5%"),
        _of("mds_throttled"),
    ),
    DiagnosisCase("an MDS that hangs", _held("files", "mds.a"), _of("mds_stopped")),
    DiagnosisCase(
        "cache of the MDS",
        _each("files", "mds-tiny-cache", "mds.a", "size", "1M", "256K", "64K"),
        _of("mds_cache"),
    ),
    DiagnosisCase(
        "CPU of the client",
        _each("small", "client-slow-cpu", "client1", "cpu", "20%", "10%", "5%"),
        _of("client_throttled"),
    ),
    DiagnosisCase(
        "others on the host",
        tuple(
            Strength(work, (("client-busy-cpu", "client1", {"cores": cores}),))
            for work, cores in (("small", "1"), ("small", "2"), ("many", "2"))
        ),
        _of("others_here"),
        limits="the lab's own OSDs use the same two processors, and leave the others a quarter of them",
    ),
    DiagnosisCase(
        "CPU of a gateway",
        _each("gate small", "gateway-slow-cpu", "xrootd", "cpu", "6%", "3%", "1%"),
        _of("proxy_throttled"),
    ),
    DiagnosisCase("a gateway that hangs", _held("gate small", "xrootd"), _of("proxy_stopped")),
    DiagnosisCase(
        "sync each write",
        tuple(Strength(work) for work in ("sync 16", "sync 4", "sync 1")),
        _of("sync_each_write"),
        limits="one sync in 16 or 4 writes takes less than 30 % of the time",
    ),
    DiagnosisCase(
        "one at a time",
        tuple(Strength(work) for work in ("read 4", "read 2", "read 1")),
        _of("latency_bound", "on_the_way"),
        limits="with more at once the lab's two processors are busy, and something is full",
    ),
)
# Both are there; each alone is among the cases above.
PAIRS = (
    DiagnosisCase(
        "CPU of an OSD, recovery",
        (
            Strength(
                "small",
                (
                    ("osd-recovery", "osd.2", {"data": "256M", "sleep": "200ms"}),
                    ("osd-slow-cpu", "osd.1", {"cpu": "8%"}),
                ),
            ),
        ),
        _of("osd_throttled", "recovery"),
    ),
    DiagnosisCase(
        "CPU of an OSD, of the client",
        (
            Strength(
                "small",
                (("osd-slow-cpu", "osd.1", {"cpu": "4%"}), ("client-slow-cpu", "client1", {"cpu": "12%"})),
            ),
        ),
        _of("osd_throttled", "client_throttled"),
    ),
    DiagnosisCase(
        "cache and CPU of the MDS",
        (
            Strength(
                "files",
                (("mds-slow-cpu", "mds.a", {"cpu": "8%"}), ("mds-tiny-cache", "mds.a", {"size": "64K"})),
            ),
        ),
        _of("mds_throttled", "mds_cache"),
    ),
    DiagnosisCase(
        "others on the link, an OSD down",
        (
            Strength(
                "stream",
                (("client-busy-link", "client1", {"rate": "120Mbit"}), ("osd-down", "osd.1", {})),
            ),
        ),
        _of("link_shared", "osds_lost"),
    ),
)
