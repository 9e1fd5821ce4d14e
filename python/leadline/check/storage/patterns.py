"""What is asked of each device, and the engine's job for it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from leadline import _core
from leadline.transfer import lone_transfer

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
