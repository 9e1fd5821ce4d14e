"""Whether the machine is quiet enough to be measured on: what others use of its processors.

The load average is told but decides nothing: it remembers for minutes what this run itself did before.
"""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

BUSY_MAX, STEAL_MAX = 0.05, 0.01  # shares of all processors
LOOK_S, LOOKS = 2.0, 3  # quiet for so many looks on end
WAIT_S = 600.0


@dataclass(frozen=True)
class Ticks:
    """What processors did since they were started, in seconds; `own` is of this program and its children."""

    all_s: float
    idle_s: float
    steal_s: float
    own_s: float


def ticks() -> Ticks:
    """From /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal (proc(5))."""
    values = [int(word) / os.sysconf("SC_CLK_TCK") for word in Path("/proc/stat").read_text().split()[1:9]]
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own_s = sum(usage.ru_utime + usage.ru_stime for usage in own)
    return Ticks(sum(values), values[3] + values[4], values[7], own_s)


@dataclass(frozen=True)
class Noise:
    """Shares of all processors: what others used, and what the hypervisor gave to other machines."""

    others: float
    steal: float

    def words(self) -> str:
        """For a sentence."""
        return f"{self.others:.1%} used by others, {self.steal:.1%} stolen by the hypervisor"

    @property
    def is_low(self) -> bool:
        """Whether it may be measured beside it."""
        return self.others <= BUSY_MAX and self.steal <= STEAL_MAX


def between(before: Ticks, after: Ticks) -> Noise:
    """What went on beside this program; children that were not waited for yet count as others."""
    all_s = max(after.all_s - before.all_s, 1e-9)
    busy_s = all_s - (after.idle_s - before.idle_s) - (after.steal_s - before.steal_s)
    others_s = max(busy_s - (after.own_s - before.own_s), 0.0)
    return Noise(others_s / all_s, (after.steal_s - before.steal_s) / all_s)


def wait_until_quiet(limit_s: float = WAIT_S) -> str:
    """Return when nothing else ran for some looks on end, or the limit is over; what was seen, in words."""
    begun, quiet = time.monotonic(), 0
    while True:
        before = ticks()
        time.sleep(LOOK_S)
        seen = between(before, ticks())
        quiet = quiet + 1 if seen.is_low else 0
        waited = time.monotonic() - begun
        if quiet == LOOKS:
            return f"quiet after {waited:.0f} s: {seen.words()}"
        if waited > limit_s:
            return f"**not quiet within {limit_s:.0f} s**: {seen.words()}"
