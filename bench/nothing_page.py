"""What bench/nothing.py found, as a page: judged anew from the kept metrics by the causes as they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leadline.verdict.diagnosis.causes import FIGURES
from leadline.verdict.diagnosis.judge import Diagnosed, diagnose
from leadline.verdict.diagnosis.trial_figures import operation_s

# What can be true of a lab in which nothing is broken, with the reason. It was written before the first run,
# but for what says that it was not; every other cause that is named is false.
TRUE = {
    "latency_bound": "the load asks for that many at once, and nothing is full",
    "sync_each_write": "the load syncs",
    "own_computing": "the load pauses",
    "metadata_each": "the load opens and closes files",
    "read_ahead": "the load is one stream, and read-ahead is the client's default",
    "host_cpu": "clients, servers and OSDs share this host's CPUs",
    "others_here": "other processes use this host's CPUs",
    "stolen": "this host is a virtual machine",
    "load_generator": "the load's thread shares the CPUs with the servers",
    "client_thread": "ceph-fuse shares the CPUs with the servers",
    "client_in_turn": "requests of one file wait for each other in ceph-fuse: docs/diagnosis.md measures it",
    "fuse_requests": "FUSE cuts requests: its own size",
    "client_cache_full": "the load writes more than the client's cache holds",
    "device_here": "all OSDs, and the local target, are on this host's one device",
    "device_latency": "all OSDs, and the local target, are on this host's one device",
    "store_flush": "the OSDs' devices are files on that device: a flush of one is a flush of it",
    "store_device": "the OSDs' devices are files on that device",
    "store_throttle": "the OSDs' devices are files on that device, and the load is faster (added after runs)",
    "read_modify_write": "the load writes parts of stripes of an erasure-coded directory",
    "osd_cpu": "a thread of an OSD is what works for all of a small lab",
    "mds_cpu": "one metadata server works for all names",
    "proxy_cpu": "one gateway works for all",
    "proxy_pieces": "the gateway's protocol has requests of that size",
    "proxy_one_connection": "the library has one connection",
}
_WORDS = """
Studies run over every access method of labs in which nothing is broken (`make nothing-bench`), and each cell
is diagnosed: one run. **True**: the cause is of the load, of this host or of the access method, as listed
below. **False**: a cause is named that accuses equipment, software, the network or the state of the cluster,
also where it is only said to be next, apart from the load of other processes. The goal is 2 % at most.
"""


def page(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The page's lines."""
    found = [_judged_now(run) for run in runs]
    now = [[one.entry.name for one in each.named] for each in found]
    apart = [[one.entry.name for one in each.apart] for each in found]
    false = [sorted({*named, *others} - set(TRUE)) for named, others in zip(now, apart, strict=True)]
    then = [sorted({one["cause"] for one in run["named"]} - set(TRUE)) for run in runs]
    yield "# Diagnosis where nothing is broken"
    yield from _WORDS.splitlines()
    yield ""
    accused, accused_then = sum(map(bool, false)), sum(map(bool, then))
    yield f"{len(runs)} runs: {accused} have a false cause ({_percent(accused, len(runs))})."
    yield f"By the causes as they were when these runs were measured: {accused_then}."
    masked = sum("others_here" in named for named in now)
    yield f"In {masked} runs other processes are named: they had much of the CPUs, as the lab's daemons do."
    linked = sum("hosts and links" in run["round"] for run in runs)
    yield f"On a lab with hosts and links: {linked} runs; of several clients at once: {_several(runs)}."
    yield ""
    yield from _by("round", [run["round"] for run in runs], false)
    yield from _by("access method", [run["cell"].partition(".")[0] for run in runs], false)
    yield "## False causes"
    yield ""
    yield "| round | cell | now | when measured |"
    yield "|---|---|---|---|"
    for run, *causes in zip(runs, false, then, strict=True):
        if any(causes):
            yield f"| {run['round']} | {run['cell']} | {' | '.join(', '.join(some) for some in causes)} |"
    yield ""
    yield "## Causes that are true here"
    yield ""
    counted = Counter(cause for named in now for cause in named)
    yield "| cause | runs that name it | why it can be true |"
    yield "|---|--:|---|"
    for cause, why in TRUE.items():
        yield f"| `{cause}` | {counted[cause]} | {why} |"


def _judged_now(run: Mapping[str, Any]) -> Diagnosed:
    rows = [{name: one.get(name) for name in FIGURES} for one in run["figures"]]
    return diagnose([{**row, "operation_s": operation_s(row)} for row in rows])


def _several(runs: Sequence[Mapping[str, Any]]) -> int:
    return sum("clients: 1," not in run["round"] for run in runs)


def _by(title: str, keys: Sequence[str], false: Sequence[Sequence[str]]) -> Iterator[str]:
    by_key: dict[str, list[bool]] = defaultdict(list)
    for key, one in zip(keys, false, strict=True):
        by_key[key].append(bool(one))
    yield f"| {title} | runs | with a false cause |"
    yield "|---|--:|--:|"
    for key, which in sorted(by_key.items()):
        yield f"| {key} | {len(which)} | {sum(which)} |"
    yield ""


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "no run"
