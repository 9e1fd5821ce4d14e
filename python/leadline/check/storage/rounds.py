"""All places in turns: each alone, then all at once, three times; the median of three is the figure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from leadline import _core
from leadline.check.rows import Fact, told
from leadline.check.storage.places import DeviceChild, DevicePlace, NotAnsweredError, link_bytes_s, shared_by
from leadline.knowledge.tables import Value, bound_of
from leadline.observe.host.proc_parse import parse_stat
from leadline.transfer import lone_transfer
from leadline.units import format_rate

RAMP_NS, RUNTIME_NS = 100_000_000, 500_000_000
_DEADLINE_NS = 20_000_000_000
_INTERVAL_NS = 100_000_000


@dataclass(frozen=True)
class DevicePattern:
    """One load. `fact` is the name of its figure: bytes a second, or operations a second of small blocks."""

    fact: str
    rw: str
    bs: int
    depth: int

    @property
    def writes(self) -> bool:
        """True where it changes what is stored."""
        return self.rw.endswith("write")

    @property
    def in_operations(self) -> bool:
        """True where the figure is operations, and not bytes."""
        return self.fact.endswith("_iops")

    @property
    def name(self) -> str:
        """Without its unit."""
        return self.fact.removesuffix("_bytes_s").removesuffix("_iops")

    def figure(self, answer: dict[str, int]) -> float:
        """Of a child's answer."""
        moved = answer["operations"] if self.in_operations else answer["bytes"]
        return moved / (answer["measured_ns"] / 1e9)


READS = (
    DevicePattern("read_1m_bytes_s", "read", 1 << 20, 8),
    DevicePattern("read_64k_bytes_s", "read", 64 << 10, 16),
    DevicePattern("randread_64k_bytes_s", "randread", 64 << 10, 16),
    DevicePattern("randread_4k_iops", "randread", 4 << 10, 32),
)
WRITES = (
    DevicePattern("write_1m_bytes_s", "write", 1 << 20, 8),
    DevicePattern("write_64k_bytes_s", "write", 64 << 10, 16),
    DevicePattern("randwrite_64k_bytes_s", "randwrite", 64 << 10, 16),
    DevicePattern("randwrite_4k_iops", "randwrite", 4 << 10, 32),
)


def job_of(pattern: DevicePattern, descriptor: int, size: int, parent_pid: int) -> str:
    """The engine's job on what is open already: of one thread; of many where there is no io_uring."""
    ring = next((engine for engine in _core.engines() if engine["name"] == "io_uring"), None)
    queued = ring is not None and ring["available"]
    threads = 1 if queued else pattern.depth
    apart = size // threads // pattern.bs * pattern.bs
    return json.dumps(
        lone_transfer(
            "device",
            rw=pattern.rw,
            rwmixread=0,
            bs=pattern.bs,
            size=size,
            numjobs=threads,
            shared="whole",
            offset_increment=0 if queued or apart == 0 else apart,
            iodepth=pattern.depth if queued else 1,
            iodepth_batch=1,  # as fio's command of the same check has it
            engine="io_uring" if queued else "psync",
            direct=True,
            overwrite=pattern.writes,
            time_based=True,
            runtime_ns=RUNTIME_NS,
            ramp_time_ns=RAMP_NS,
            interval_ns=_INTERVAL_NS,
            deadline_ns=_DEADLINE_NS,
            parent_pid=parent_pid,
            descriptor=descriptor,
        )
    )


ROUNDS = 3
_FLUSH = ("plain_us", "flush_us", "fua_us")
_START_S = 2.0  # a child, and an unnamed file
_STAT = Path("/proc/stat")


def seconds_for(places: Sequence[DevicePlace]) -> float:
    """About how long `storage_facts` takes."""
    each = (RAMP_NS + RUNTIME_NS) / 1e9 * ROUNDS
    together = len(places) > 1
    alone = sum(len(READS) + (len(WRITES) + 1 if place.writes else 0) for place in places)
    return each * (alone + together * (len(READS) + len(WRITES))) + _START_S * len(places)


def storage_facts(host: str, places: Sequence[DevicePlace]) -> list[Fact]:
    """What every place does alone, and what share of the sum all of them do at once.

    What cannot be measured is a fact without a value, and its reason.
    """
    with _children(places) as children:
        found = [fact for child in children for fact in _opened(host, child)]
        ready = [
            child for child in children if not any(fact.subject == _subject(host, child) for fact in found)
        ]
        for pattern in (*READS, *WRITES):
            asked = [child for child in ready if child.place.writes or not pattern.writes]
            found += _pattern_facts(host, pattern, asked)
        for child in ready:
            if child.place.writes:
                found += _flush_facts(host, child)
    return found


@contextmanager
def _children(places: Sequence[DevicePlace]) -> Iterator[list[DeviceChild]]:
    with ExitStack() as stack:
        children = []
        for place in places:
            child = DeviceChild(place)
            stack.callback(child.end)
            children.append(child)
        yield children


def _subject(host: str, child: DeviceChild) -> str:
    return f"{host}:{child.place.title}"


def _opened(host: str, child: DeviceChild) -> list[Fact]:
    """Nothing where it is ready; else each of its figures is missing."""
    try:
        child.answer()
    except NotAnsweredError as error:
        names = [one.fact for one in READS]
        return told("device", _subject(host, child), dict.fromkeys(names), dict.fromkeys(names, str(error)))
    return []


def _pattern_facts(host: str, pattern: DevicePattern, children: Sequence[DeviceChild]) -> Iterator[Fact]:
    alone: dict[DeviceChild, list[float]] = {child: [] for child in children}
    reasons: dict[DeviceChild, str] = {}
    shares: list[float] = []
    busy = 0.0
    for _ in range(ROUNDS):
        for child in children:
            if child not in reasons:
                child.tell(measure=pattern.fact)
                _take(pattern, child, alone[child], reasons)
        if len(children) > 1 and not reasons:
            before = parse_stat(_STAT.read_text())["cpu"]
            together = _at_once(pattern, children, reasons)
            after = parse_stat(_STAT.read_text())["cpu"]
            busy = max(busy, (after.busy - before.busy) / max(1, after.total - before.total))
            if not reasons:
                shares.append(sum(together) / sum(values[-1] for values in alone.values()))
    for child, values in alone.items():
        value = None if child in reasons else _rounded(median(values))
        yield Fact("device", _subject(host, child), pattern.fact, value, reasons.get(child, ""))
    measured = {child: values for child, values in alone.items() if child not in reasons}
    for child, values in measured.items():
        others = [median(other) for one, other in measured.items() if _comparable(one.place, child.place)]
        if others:
            share = max(values) / median(
                others
            )  # its best: what else a host does makes one slow, never quick
            yield Fact("device", _subject(host, child), f"{pattern.name}_of_others", round(share, 3))
    places = [child.place for child in children]
    if len(places) > 1 and not _one_device(places):
        yield _scaling(host, pattern, places, shares, busy)


def _comparable(one: DevicePlace, other: DevicePlace) -> bool:
    """Two devices of a kind; two directories of one device are one."""
    return one.media == other.media and one.device != other.device


def _one_device(places: Sequence[DevicePlace]) -> bool:
    """What they do at once is then what that device does, and says nothing of what it hangs on."""
    return ":" not in (shared_by(places) or ":")


def _take(
    pattern: DevicePattern, child: DeviceChild, values: list[float], reasons: dict[DeviceChild, str]
) -> None:
    try:
        values.append(pattern.figure(child.answer()))
    except NotAnsweredError as error:
        reasons[child] = str(error)


def _at_once(
    pattern: DevicePattern, children: Sequence[DeviceChild], reasons: dict[DeviceChild, str]
) -> list[float]:
    for child in children:
        child.tell(measure=pattern.fact)
    found: list[float] = []
    for child in children:
        _take(pattern, child, found, reasons)
    return found


def _scaling(
    host: str, pattern: DevicePattern, places: Sequence[DevicePlace], shares: Sequence[float], busy: float
) -> Fact:
    """All at once, of what each did alone; not known where they are one device, or processors bind."""
    shared = shared_by(places)
    devices = {place.device for place in places}
    through = f", all through {shared}{_carried(shared)}" if shared else ""
    subject = f"{host}: {len(places)} at once{through}"
    why = ""
    if not shares:
        why = "not all of them gave a value"
    elif "" in devices:
        why = "what is below one of them is not known"
    elif busy >= bound_of("cpus_full") and median(shares) < 1:
        why = f"this host's processors were busy {min(busy, 1):.0%} of the time"
    return Fact("device", subject, f"{pattern.name}_scaling", None if why else round(median(shares), 3), why)


def _carried(function: str) -> str:
    carried = link_bytes_s(function) if ":" in function else None
    return f" ({format_rate(carried)})" if carried else ""


def _flush_facts(host: str, child: DeviceChild) -> list[Fact]:
    child.tell(flush=True)
    try:
        values: dict[str, Value] = {name: _rounded(value) for name, value in child.answer().items()}
    except NotAnsweredError as error:
        return told("device", _subject(host, child), dict.fromkeys(_FLUSH), dict.fromkeys(_FLUSH, str(error)))
    turns = child.place.media == "hdd"
    own: dict[str, Value] = {
        "media": child.place.media,
        **({"turning_fua_us": values["fua_us"]} if turns else {}),
    }
    return told("device", _subject(host, child), values | own, {})


def _rounded(value: float) -> float | int:
    return round(value) if value >= 100 else round(value, 1)
