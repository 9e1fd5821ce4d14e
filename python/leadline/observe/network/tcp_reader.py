"""Samples TCP connections to the targets' servers: here, and in networks of servers here (a lab's hosts).

If the servers' addresses are unknown, there are no samples of this host.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from leadline.observe.network.endpoints import ServerEndpoint, ServerEndpoints
from leadline.observe.network.entered import OWN, entered
from leadline.observe.network.tcp_state import TcpConnection, connections, growth
from leadline.observe.reading import Counters, Request, Row

SOURCE = "tcp"
HERE = "here"
PERIOD_S = 2.0  # a look costs some 20 us a connection, and an OSD has dozens
_LOOK_AGAIN = 5  # samples until networks are looked for anew


class TcpReader:
    """Each network as a subject: `here`, or the first daemon in it. Without root only `here`.

    `daemons` are the servers' processes here, `endpoints` those of all servers. In a network of daemons every
    connection counts.
    """

    name = "the TCP connections"

    def __init__(
        self,
        daemons: Callable[[], Mapping[int, str]],
        endpoints: Callable[[], Iterable[ServerEndpoint]],
        proc: Path = Path("/proc"),
    ) -> None:
        self._daemons, self._endpoints, self._proc = daemons, endpoints, proc
        self._networks: dict[str, str] = {}
        self._before: dict[str, tuple[int, dict[int, TcpConnection]]] = {}
        self._known = ServerEndpoints()
        self._looks = 0

    def sample(self, now_ns: int, /) -> list[Row]:
        """Connections, new ones, round trip, segments sent again, and what senders waited for."""
        if (
            self._looks % _LOOK_AGAIN == 0 or self._known == ServerEndpoints()
        ):  # clusters answer a moment later
            self._networks = self._found()
        self._looks += 1
        rows: list[Row] = []
        for subject, network in self._networks.items():
            before = self._before.pop(subject, None)
            # A network may go while it is looked at, and without root no other can be entered.
            with suppress(OSError):
                now = self._look(network)
                self._before[subject] = (now_ns, now)
                if before is not None and now_ns > before[0]:
                    rows += self._rows(subject, before[1], now, (now_ns - before[0]) / 1e9)
        return rows

    def counters(self, _request: Request, /) -> Counters:
        """Nothing: no figure of a trial is made from it."""
        return Counters()

    def _found(self) -> dict[str, str]:
        own = os.stat(OWN).st_ino  # noqa: PTH116 - the kernel's own file
        self._known = ServerEndpoints.of(self._endpoints())
        networks, seen = {HERE: ""} if self._known != ServerEndpoints() else {}, {own}
        for pid, name in sorted(self._daemons().items(), key=lambda pair: pair[1]):
            path = self._proc / str(pid) / "ns" / "net"
            with suppress(OSError):
                inode = path.stat().st_ino
                if inode not in seen:
                    seen.add(inode)
                    networks[name] = str(path)
        return networks

    def _look(self, network: str) -> dict[int, TcpConnection]:
        if not network:
            return connections(self._known)
        with entered(network):
            return connections()

    @staticmethod
    def _rows(
        subject: str, before: Mapping[int, TcpConnection], now: Mapping[int, TcpConnection], elapsed_s: float
    ) -> Iterator[Row]:
        for metric, value, unit in growth(before, now.values(), elapsed_s):
            yield (SOURCE, subject, metric, value, unit)
