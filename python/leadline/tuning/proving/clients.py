"""What clients of a cluster have in force: a client daemon says it itself; of clients that each trial starts
anew, one that is started now stands for them."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.observe.ceph.client import NotObservableError, ask_socket, connect


@dataclass(frozen=True)
class TargetClient:
    """How to ask the client of a target: by the `socket` of process `pid`, or as a new one of `conf`."""

    conf: str | None = None
    name: str | None = None
    keyring: str | None = None
    socket: str | None = None
    pid: int | None = None

    @property
    def anew(self) -> bool:
        """Whether each trial has a client of its own."""
        return self.socket is None

    @property
    def words(self) -> str:
        """Where a value was read."""
        return "a new client" if self.anew else f"ceph-fuse.{self.pid}"

    def option(self, name: str) -> tuple[str | None, str]:
        """The value, or None and why."""
        try:
            if self.socket is not None and self.pid is not None:
                return str(ask_socket(self.socket, self.pid, "config get", var=name)[name]), ""
            cluster = connect(self.conf, self.name, self.keyring)
            try:
                return cluster.option(name), ""
            finally:
                cluster.close()
        except (NotObservableError, KeyError, TypeError) as error:
            return None, str(error)
