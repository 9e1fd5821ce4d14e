"""Counts bytes on the wire of the worker itself, by its TCP sockets: exact for what a library reaches."""

from __future__ import annotations

import contextlib

from leadline.observe.network.socket_table import EndedSockets, SocketBytes, sockets_of, tcp_sockets
from leadline.observe.network.wire import WIRE
from leadline.observe.reading import Counters, Request, Row, missing

PERIOD_S = 0.2
_LAST_WAIT_S = 0.05  # the kernel tells of a socket's end a moment after it
_LOOKS_MIN = 5  # in a trial that is shorter, a socket may have come and gone between two looks


class SocketReader:
    """The worker's sockets as a source. Those that live for less than a period may be missed."""

    name = "the worker's sockets"

    def __init__(self) -> None:
        self._pid: int | None = None
        self._seen: dict[int, SocketBytes] = {}
        self._ended: EndedSockets | None = None
        self._why: str | None = None
        self._looks, self._strangers = 0, 0
        self._others: set[int] = set()
        try:
            self._ended = EndedSockets()
        except OSError as error:
            self._why = f"sockets cannot be followed to their end: {error.strerror}"

    def sample(self, _now_ns: int, /) -> list[Row]:
        """No rows: it only keeps up with sockets that come and go."""
        if self._pid is not None:
            with contextlib.suppress(OSError):
                self._look(0.0)
        return []

    def counters(self, request: Request) -> Counters:
        """Bytes of every socket that the worker has had since its first mark."""
        if request.pid is None:
            return missing(WIRE, "no worker process was named")
        if request.pid != self._pid:
            if self._ended is not None:
                self._ended.take()  # of sockets that ended before
            self._pid, self._seen, self._looks, self._strangers = request.pid, {}, 0, 0
            self._others = set()
        if self._why is None:
            try:
                self._look(_LAST_WAIT_S)
            except OSError as error:
                return missing(WIRE, f"the kernel's table of sockets cannot be read: {error.strerror}")
        if self._ended is not None and self._ended.overrun:
            self._why = "sockets ended faster than they could be counted"
        why = self._why or self._too_few_looks()
        if why is not None:
            return missing(WIRE, why)
        totals = self._seen.values()
        values = {
            WIRE[0]: sum(one.sent_bytes for one in totals),
            WIRE[1]: sum(one.received_bytes for one in totals),
        }
        source = f"TCP sockets of process {self._pid} (of one that was reset up to the last look)"
        return Counters(values, dict.fromkeys(WIRE, source))

    def _too_few_looks(self) -> str | None:
        """Why a count would be too low: sockets ended that no look had seen, and few looks were taken.

        The first mark is a look, too, and comes before the worker connects.
        """
        if self._looks == 1 or self._looks > _LOOKS_MIN or (self._seen and not self._strangers):
            return None
        return f"too short: {self._looks - 1} looks at the worker's sockets, which may live for less than one"

    def _look(self, wait_s: float) -> None:
        self._looks += 1
        living = {one.cookie: one for one in tcp_sockets()}
        self._others &= living.keys()
        new = living.keys() - self._seen.keys() - self._others
        # A library has sixty threads, each with a table of open files: read for new sockets only, and
        # after these were found, so that none of the worker's is taken for another's.
        own = sockets_of(self._pid or 0) if new else set()
        self._others |= {cookie for cookie in new if living[cookie].inode not in own}
        self._seen.update({cookie: one for cookie, one in living.items() if cookie not in self._others})
        gone = set(self._seen) - set(living)
        while self._ended is not None:
            ended = self._ended.take(wait_s if gone else 0.0)
            for one in ended:
                before = self._seen.get(one.cookie)
                if before is None:
                    self._strangers += 1
                    continue
                gone.discard(one.cookie)
                if one.sent_bytes >= before.sent_bytes:
                    self._seen[one.cookie] = one
                # A connection that was reset has lost its counts: those of the last look stand.
            if not ended:
                return
