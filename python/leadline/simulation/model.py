"""What is simulated: a cluster of links and OSDs, and works of clients, as a command line has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from leadline.analysis.models.simple import Protection
from leadline.errors import SpecError, UsageError
from leadline.units import parse_duration, parse_percent, parse_size
from leadline.yamlio.problems import suggest

_EXAMPLE = "for example: --workload rw=randwrite,bs=4k,iodepth=32,numjobs=16,protection=3,clients=17"
_SHARDS_MAX = 64
_COUNT_MAX = 1_000_000


def parse_work(text: str, number: int) -> SimulatedWork:
    """One `--workload`. Raises UsageError that names the key."""
    given: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not value:
            raise UsageError(f"--workload: {part!r} is not KEY=VALUE", _EXAMPLE)
        if key not in _READERS:
            raise UsageError(f"--workload: no key {key!r}", suggest(key, _READERS))
        if key in given:
            raise UsageError(f"--workload: {key} is given twice", "give each once")
        given[key] = value
    if "rw" not in given:
        raise UsageError("--workload has no rw", _EXAMPLE)
    found: dict[str, Any] = {}
    for key, value in given.items():
        try:
            found[key] = _READERS[key](value)
        except SpecError as error:
            raise UsageError(f"--workload: {key}={value}: {error.message}", error.remedy) from None
    _require_used(given)
    default = 4 * 1024**2 if found["rw"] in ("read", "write") else 4096
    return SimulatedWork(
        name=found.get("name", f"work{number}"),
        rw=found["rw"],
        protection=found.get("protection", Protection(copies=3)),
        bs_bytes=found.get("bs", default),
        depth=found.get("iodepth", 1) * found.get("numjobs", 1),
        jobs=found.get("numjobs", 1),
        clients=found.get("clients", 0),
        groups=found.get("groups", 0),
        through=found.get("through", ""),
        cached=found.get("cached", 0.0),
        think_s=found.get("thinktime", 0) / 1e9,
    )


def _require_used(given: dict[str, str]) -> None:
    """Raises UsageError for a key that would change nothing, as its user thinks it does."""
    kind = given["rw"]
    if "cached" in given and kind not in ("read", "randread"):
        raise UsageError(f"--workload: cached is a share of reads, and rw={kind} has none", "leave it out")
    if "bs" in given and kind == "metadata":
        raise UsageError("--workload: rw=metadata moves no data, so that bs means nothing", "leave bs out")


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,7}", text) or not 0 < int(text) <= _COUNT_MAX:
        raise SpecError("is no count", f"write a whole number from 1 to {_COUNT_MAX}")
    return int(text)


def _some_size(text: str) -> int:
    size = parse_size(text)
    if size == 0:
        raise SpecError("a size of 0 moves nothing", "for example: bs=4M")
    return size


def _kind(text: str) -> Kind:
    if text not in KINDS:
        raise SpecError("is not one of them", suggest(text, KINDS))
    return text


def _protection(text: str) -> Protection:
    coded = re.fullmatch(r"([1-9][0-9]?)\+([1-9][0-9]?)", text)
    if coded and int(coded[1]) + int(coded[2]) <= _SHARDS_MAX:
        return Protection(k=int(coded[1]), m=int(coded[2]))
    if re.fullmatch(r"[1-9]", text):
        return Protection(copies=int(text))
    raise SpecError("is no protection", "write copies (3) or data and coding shards (8+3)")


def _think_time(text: str) -> int:
    if text.strip("0.") and text.replace(".", "").isdigit():
        raise SpecError(
            "has no unit, and fio would take it as microseconds", f"write {text}us, {text}ms or {text}s"
        )
    return parse_duration(text)


def _share(text: str) -> float:
    return parse_percent(text) / 100


_READERS: dict[str, Callable[[str], Any]] = {
    "name": str,
    "rw": _kind,
    "bs": _some_size,
    "iodepth": _count,
    "numjobs": _count,
    "clients": _count,
    "protection": _protection,
    "groups": _count,
    "through": str,
    "cached": _share,
    "thinktime": _think_time,
}


Kind = Literal["read", "write", "randread", "randwrite", "metadata"]
KINDS: tuple[Kind, ...] = ("read", "write", "randread", "randwrite", "metadata")
OBJECT_BYTES = 4 * 1024**2
CLIENT_BYTES_MAX = 100 * 1024**2  # objecter_inflight_op_bytes
CLIENT_OPERATIONS_MAX = 1024  # objecter_inflight_ops


@dataclass(frozen=True)
class SimulatedCluster:
    """Machines and switches by what is above each, cables by bytes per second without headers, OSDs by host.

    `behind`: by which cable the OSDs of a host speak to others', where it is not the host's own. `cores` has
    the hosts whose processors are known; `machine_cores` above 0: all of it shares those of one machine.
    `disks`: bytes per second (read, write) that a host's OSDs have together.
    """

    above: Mapping[str, str]
    rates: Mapping[str, float]
    osd_hosts: tuple[str, ...]
    osd_classes: tuple[str, ...]
    clients: tuple[str, ...]
    behind: Mapping[str, str] = field(default_factory=dict)
    cores: Mapping[str, float] = field(default_factory=dict)
    disks: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    proxies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    machine_cores: float = 0.0
    metadata_servers: int = 1


@dataclass(frozen=True)
class SimulatedWork:
    """What each of `clients` clients (0: all of them) does, in fio's words; `through` names a proxy's role.

    `depth` is iodepth x numjobs, `jobs` numjobs alone: each has a
    thread of its own. `cached`: the share of reads that no device sees. `think_s` passes between
    an answer and the next request.
    """

    name: str
    rw: Kind
    protection: Protection
    bs_bytes: int = OBJECT_BYTES
    depth: int = 1
    jobs: int = 1
    clients: int = 0
    groups: int = 0
    through: str = ""
    cached: float = 0.0
    think_s: float = 0.0

    @property
    def piece_bytes(self) -> int:
        """What one request to an OSD moves: at most an object."""
        return min(self.bs_bytes, OBJECT_BYTES)

    @property
    def in_flight(self) -> float:
        """Pieces of one client at once, as far as the client's library lets it have."""
        pieces = self.depth * max(self.bs_bytes / OBJECT_BYTES, 1.0)
        if self.rw == "metadata":
            return float(self.depth)
        return min(pieces, max(CLIENT_BYTES_MAX / self.piece_bytes, 1.0), CLIENT_OPERATIONS_MAX)
