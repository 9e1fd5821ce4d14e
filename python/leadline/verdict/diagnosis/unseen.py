"""What nobody could rule out, by what shows it. A screen has room for three steps, not for forty names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leadline.verdict.diagnosis.judge import CauseNamed, CauseOpen

MOST = 3

# Figures by the beginning of their names, and what shows them. The first that fits counts.
_STEPS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("osd_stopped", "osd_throttled", "osd_thread", "osd_cores", "blocked_", "logging_"),
        "On each OSD's host, look at `top -H -p PID` of ceph-osd and at cpu.stat of its control group.",
    ),
    (
        ("mds_stopped", "mds_throttled", "mds_thread", "mds_cores"),
        "On the metadata server's host, look at `top -H -p PID` and at cpu.stat of its control group.",
    ),
    (("proxy_",), "On the gateway's host, look at `top -H -p PID` and at cpu.stat of its control group."),
    (
        ("port_", "ports_", "slowest_port"),
        "Read the counters of the switches' ports. leadline reads those of a lab.",
    ),
    (
        ("resent_",),
        "On the servers' hosts, watch `nstat TcpRetransSegs`. leadline reads it where the servers run here.",
    ),
    (
        ("link_share", "faster_link_factor", "half_duplex"),
        "Run `ethtool` on the interface towards the servers. A virtual interface has no speed.",
    ),
    (("unanswered_", "receiver_full_"), "Run leadline as root, with trials of 10 s or more."),
    (
        ("connections_per_s",),
        "Run a job for 10 s or more, as root, with a key for which `ceph tell osd.0 perf dump` answers.",
    ),
    (
        ("client_", "cut_into", "read_ahead_bytes"),
        "Run leadline as root on the host of the mount, where ceph-fuse has an admin socket.",
    ),
    (
        ("mds_", "metadata_per_operation"),
        "Use a key for which `ceph tell mds.0 perf dump` answers, and trials of 10 s or more.",
    ),
    (
        (
            "pings_slow",
            "cache_oversized",
            "journal_behind",
            "caps_recalled",
            "osds",
            "recovering",
            "osds_down_part",
            "scrubbing_part",
            "pgs_",
            "full_count",
            "monitors_down",
            "paused",
            "managers_down",
            "clocks_apart",
            "versions_differ",
            "groups_per_osd",
            "pool_groups",
            "coded",
        ),
        "Use a key for which `ceph status` and `ceph osd dump` answer.",
    ),
    (
        (
            "osd_",
            "slow_osd",
            "loaded_osd",
            "chance_factor",
            "last_",
            "operations_joined",
            "mclock_",
            "outside_osd_share",
            "store_amplification",
        ),
        "Use a key for which `ceph tell osd.0 perf dump` answers.",
    ),
    (("transfer_bytes", "server_connections"), "Run `nfsstat -m`: this mount does not show its options."),
    (
        ("governor", "wake_s", "memory_nodes", "addresses_translated"),
        "Ask who runs the machine below: a virtual machine does not show it.",
    ),
    (("device_",), "Run `iostat -x` on the host that has the target's device."),
    (
        ("cpu_", "other_cpu_", "steal_", "throttled_", "memory_stalled_"),
        "Run leadline outside of a container, where /proc and the control group show the host.",
    ),
    (
        (
            "asked",
            "in_flight",
            "latency_s",
            "operation_s",
            "operations_per_s",
            "sync_latency_s",
            "pause_s",
            "streamed",
            "engine_share",
            "request_bytes",
            "syncs_per_write",
            "no_room",
        ),
        "Measure the work as a study of leadline: nobody sees what other programs ask for.",
    ),
)


@dataclass(frozen=True)
class UnseenStep:
    """Something to do, and the causes that it would name or rule out."""

    words: str
    causes: tuple[CauseOpen, ...]


def steps(open_causes: Sequence[CauseOpen]) -> tuple[UnseenStep, ...]:
    """What to do, that first which settles most causes; of as many that whose causes are told most surely."""
    found: dict[str, list[CauseOpen]] = {}
    for one in open_causes:
        found.setdefault(step_of(one.lacks[0]), []).append(one)
    made = [UnseenStep(words, tuple(causes)) for words, causes in found.items()]
    return tuple(sorted(made, key=lambda one: (-_surely(one), -len(one.causes))))


def measured_by(cause: CauseNamed) -> str:
    """What would measure how much a cause takes that is only present."""
    if cause.entry.measured_by or not cause.lacks:
        return cause.entry.measured_by or cause.entry.experiment
    return step_of(cause.lacks[0])


def step_of(figure: str) -> str:
    """What shows a figure. Raises LookupError where nobody said it."""
    for beginnings, words in _STEPS:
        if figure.startswith(beginnings):
            return words
    raise LookupError(figure)


def _surely(step: UnseenStep) -> int:
    """How many of its causes a counter tells, and not only what is left where nothing else holds."""
    return sum(one.entry.told != "rest" for one in step.causes)
