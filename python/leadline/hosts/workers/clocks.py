"""By how much each host's clock is ahead of this one's: before a study, between its trials, and after it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from leadline.hosts.model import ClockOffset
from leadline.hosts.workers.calls import QUICK_S, Crew
from leadline.observe.clock import closest
from leadline.store.writer import ResultWriter

ROUNDS = 12


def offset_of(rounds: Iterable[tuple[int, int, int]]) -> ClockOffset | None:
    """The offset from rounds of (sent, the host's time, received), ns of a time of day; None for none."""
    found = list(rounds)
    return ClockOffset(*closest(found)) if found else None


class Clocks:
    """The clocks of the hosts that are there; each comparison is journalled."""

    def __init__(self, crew: Crew, clock: Callable[[], int]) -> None:
        self._crew, self._clock = crew, clock
        self._found: dict[str, ClockOffset] = {}

    def compare(
        self, hosts: Iterable[str], rounds: int = ROUNDS, timeout_s: float = QUICK_S
    ) -> Mapping[str, ClockOffset]:
        """Ask these hosts, one after another so that none waits for another; those that answered.

        Each answer may take `timeout_s`.
        """
        found = {}
        for host in hosts:
            offset = offset_of(self._crew.rounds(self._clock, host, rounds, time.time_ns, timeout_s))
            if offset is not None:
                found[host] = self._found[host] = offset
        return found

    def journal(self, writer: ResultWriter, when: str) -> None:
        """Say in the journal what was found last."""
        for host, one in self._found.items():
            writer.journal(
                "clock_compared",
                host=host,
                when=when,
                offset_ns=one.offset_ns,
                error_ns=one.error_ns,
                measured_unix_ns=one.measured_unix_ns,
            )

    def of(self, host: str) -> ClockOffset:
        """What was found last of a host; KeyError where it was never asked."""
        return self._found[host]

    @property
    def way_ns(self) -> int:
        """The longest way to a host and back."""
        return 2 * max((one.error_ns for one in self._found.values()), default=0)
