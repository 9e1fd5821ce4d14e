"""What strace itself costs a call, as its log tells: calls with nothing to do take as long as strace does.

`-T` measures from the stop before a call to the stop behind it, and two switches between processes lie in
between. What a call on a file took beyond that is the file's; less cannot be told from strace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# The kernel answers these from what it has in memory, and no storage is asked.
REFERENCE_CALLS = frozenset(
    (
        *("arch_prctl", "brk", "dup", "dup2", "dup3", "fcntl", "getegid", "geteuid", "getgid", "getpgrp"),
        *("getpid", "getppid", "getrandom", "gettid", "getuid", "mprotect", "munmap", "prlimit64", "rseq"),
        *("rt_sigaction", "rt_sigprocmask", "set_robust_list", "set_tid_address", "sigaltstack", "umask"),
        "uname",
    )
)
REFERENCES_MIN = 8
_OWN_MIN = 20  # of a process alone; below, all of the log's count
_ERRORS = 3.0  # standard errors above the mean


@dataclass(frozen=True)
class StraceCost:
    """In ns: what strace's own cost explains of a call, and the longest stop that calls without work had."""

    call_ns: float
    stop_ns: float

    def left(self, spent_ns: float, calls: int) -> float:
        """What strace does not explain of the time of so many calls: their share, and one long stop more."""
        return max(0.0, spent_ns - calls * self.call_ns - self.stop_ns)


def cost_of_call(durations: Sequence[int]) -> float | None:
    """The most ns a call that strace's own cost explains; None of fewer than REFERENCES_MIN.

    The mean and three standard errors: costs of many calls add up, with the stops when another program had
    the processor.
    """
    count = len(durations)
    if count < REFERENCES_MIN:
        return None
    mean = sum(durations) / count
    variance = sum((value - mean) ** 2 for value in durations) / (count - 1)
    return float(mean + _ERRORS * (variance / count) ** 0.5)


def costs_of_processes(durations: Sequence[Sequence[int]]) -> list[StraceCost] | None:
    """For each process, by its own reference calls and by all of them; None where all are too few."""
    every = [value for part in durations for value in part]
    whole = cost_of_call(every)
    if whole is None:
        return None
    own = [(cost_of_call(part) or 0.0) if len(part) >= _OWN_MIN else 0.0 for part in durations]
    return [StraceCost(max(whole, cost), float(max(every))) for cost in own]


def is_reference(name: str, arguments: str) -> bool:
    """Whether a call's time is strace's alone."""
    return name in REFERENCE_CALLS or (name == "mmap" and "MAP_ANON" in arguments)
