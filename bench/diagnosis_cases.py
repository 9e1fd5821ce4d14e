"""What is broken for bench/diagnosis.py: causes in three strengths, the work that shows them."""

from __future__ import annotations

from dataclasses import dataclass

Fault = tuple[str, str, dict[str, str]]


@dataclass(frozen=True)
class DiagnosisCase:
    """A cause, by three strengths (weak, middle, strong) of one fault or several.

    `right` are the names that are true of it, `work` is one of `WORKS`.
    """

    name: str
    work: str
    strengths: tuple[tuple[Fault, ...], ...]
    right: frozenset[str]


WORKS = {
    # One client of 200 Mbit: its link is full in what streams, and nothing is in what waits.
    "stream": ("rados", "{rw: write, bs: 4M, size: 256M, iodepth: 4, direct: true, time_based: true}"),
    "small": ("rados", "{rw: randwrite, bs: 4k, size: 64M, iodepth: 4, direct: true, time_based: true}"),
    "one": ("rados", "{rw: randwrite, bs: 4k, size: 64M, iodepth: 1, direct: true, time_based: true}"),
    "read": ("rados", "{rw: randread, bs: 64k, size: 128M, iodepth: 4, direct: true, time_based: true}"),
    "files": ("ceph-fuse", "{operations: [create, stat, unlink], files: 400, numjobs: 2, time_based: true}"),
}


def _each(kind: str, on: str, option: str, *values: str) -> tuple[tuple[Fault, ...], ...]:
    return tuple(((kind, on, {option: value}),) for value in values)


CASES = (
    DiagnosisCase(
        "link of the client",
        "stream",
        _each("link-rate", "client1", "rate", "100Mbit", "50Mbit", "20Mbit"),
        frozenset({"link_full"}),
    ),
    DiagnosisCase(
        "link of a host",
        "stream",
        _each("link-rate", "host2", "rate", "100Mbit", "50Mbit", "20Mbit"),
        frozenset({"link_full"}),
    ),
    DiagnosisCase(
        "loss at a host",
        "small",
        _each("link-loss", "host2", "share", "1%", "3%", "8%"),
        frozenset({"packets_lost"}),
    ),
    DiagnosisCase(
        "CPU of an OSD",
        "small",
        _each("osd-slow-cpu", "osd.1", "cpu", "20%", "10%", "5%"),
        frozenset({"osd_throttled"}),
    ),
    DiagnosisCase(
        "disk of an OSD",
        "stream",
        _each("osd-slow-disk", "osd.1", "rate", "4MB/s", "2MB/s", "1MB/s"),
        frozenset({"osd_slow_device", "osd_waits_for_device"}),
    ),
    DiagnosisCase(
        "CPU of the MDS",
        "files",
        _each("mds-slow-cpu", "mds.a", "cpu", "20%", "10%", "5%"),
        frozenset({"mds_throttled"}),
    ),
    DiagnosisCase(
        "late messages",
        "one",
        _each("message-delay", "osd.1", "max", "20ms", "60ms", "200ms"),
        frozenset({"on_the_way", "peers_late"}),
    ),
)
