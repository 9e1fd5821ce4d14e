"""Faults of metadata servers."""

from __future__ import annotations

from leadline.errors import SpecError, UsageError
from leadline.lab.inject import daemons
from leadline.lab.inject.fault import FaultKind, FaultOption, FaultScene, nothing, processes, setting
from leadline.lab.inject.injection import Deed, FaultPlan, FaultStep
from leadline.lab.record import LabRecord
from leadline.units import format_size, parse_size

_ON, _SERVERS = "a metadata server, such as mds.a", processes("mds.")
_CACHE = "mds_cache_memory_limit"


def _fail_over(scene: FaultScene) -> FaultPlan:
    ranks = scene.ask("status")["fsmap"]["by_rank"]
    active = next((rank["name"] for rank in ranks if rank["status"] == "up:active"), "")
    if not active:
        raise UsageError("no metadata server is active", "Wait until one is: see `leadline lab status`.")
    step = FaultStep(Deed("fail-over", (active,)))
    return FaultPlan(f"another metadata server takes over from mds.{active}", (step,), ("mds",))


def _no_stand_in(record: LabRecord) -> str:
    if len(_SERVERS(record)) > 1:
        return ""
    return "the lab has one metadata server; with --hosts 2 or more it has another that stands by"


def _cache_bytes(text: str) -> int:
    size = parse_size(text)
    if not 64 << 10 <= size <= 1 << 32:
        raise SpecError(f"{text!r}: a metadata cache is given 64 KiB to 4 GiB", "For example: size=1M")
    return size


def _tiny_cache(scene: FaultScene) -> FaultPlan:
    size = _cache_bytes(scene.options["size"])
    step = setting(scene, scene.on, _CACHE, str(size))
    return FaultPlan(f"{scene.on} may cache {format_size(size)}", (step,), (f"{scene.on}/cache",))


_SIZE = FaultOption("size", "1M", _cache_bytes, "of the cache")

KINDS = (
    FaultKind("mds-down", "A metadata server that ended", _ON, _SERVERS, daemons.down),
    FaultKind("mds-paused", "A metadata server that hangs", _ON, _SERVERS, daemons.paused),
    FaultKind(
        "mds-slow-cpu", "A metadata server with too little CPU", _ON, _SERVERS, daemons.slow_cpu,
        (daemons.CPU,), daemons.no_cpu_limit,
    ),
    FaultKind("mds-tiny-cache", "A metadata server that forgets", _ON, _SERVERS, _tiny_cache, (_SIZE,)),
    FaultKind(
        "mds-failover", "The active metadata server fails, another takes over", "", nothing, _fail_over,
        lacking=_no_stand_in, lasting=False,
    ),
)  # fmt: skip
