"""What strace itself costs a call, as its log tells: calls with nothing to do take as long as strace does.

`-T` measures from the stop before a call to the stop behind it, and two switches between processes lie in
between. What a call on a file took beyond that is the file's; less cannot be told from strace.
"""

from __future__ import annotations

from collections.abc import Sequence

# The kernel answers these from what it has in memory, in less than a microsecond, and no storage is asked.
REFERENCE_CALLS = frozenset(
    (
        *("arch_prctl", "brk", "dup", "dup2", "dup3", "fcntl", "getegid", "geteuid", "getgid", "getpgrp"),
        *("getpid", "getppid", "getrandom", "gettid", "getuid", "prlimit64", "rseq", "rt_sigaction"),
        *("rt_sigprocmask", "set_robust_list", "set_tid_address", "sigaltstack", "umask", "uname"),
    )
)
REFERENCES_MIN = 8
_OWN_MIN = 20  # of a process alone; below, all of the log's count
_ERRORS = 3.0  # standard errors above the mean: one finding in seven hundred is strace's own


def cost_of_call(durations: Sequence[int]) -> float | None:
    """The most ns a call that strace's own cost explains: the mean and three standard errors of it.

    None of fewer than REFERENCES_MIN. The mean, as costs of many calls add up, their rare long stops too.
    """
    count = len(durations)
    if count < REFERENCES_MIN:
        return None
    mean = sum(durations) / count
    variance = sum((value - mean) ** 2 for value in durations) / (count - 1)
    return float(mean + _ERRORS * (variance / count) ** 0.5)


def costs_of_processes(durations: Sequence[Sequence[int]]) -> list[float] | None:
    """For each process ns a call, from its own reference calls and from all; None where all are too few."""
    whole = cost_of_call([value for part in durations for value in part])
    if whole is None:
        return None
    return [max(whole, (cost_of_call(part) or 0.0) if len(part) >= _OWN_MIN else 0.0) for part in durations]
