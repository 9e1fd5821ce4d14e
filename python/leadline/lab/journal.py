"""The lab while it is being changed: each change is on disk before it is acted upon."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leadline.errors import LabError, UsageError
from leadline.lab import record as own
from leadline.lab.cgroups import ControlGroups
from leadline.lab.cluster import process
from leadline.lab.cluster.command import CephCommand
from leadline.lab.network.make import entered
from leadline.lab.record import LabRecord, write_record

_RESTART_GRACE_S, _TOOL_DEADLINE_S = 30.0, 120.0


@dataclass
class LabJournal:
    """The current record of one lab whose lock is held, and the environment of its processes.

    Threads may share it: gateways are started side by side.
    """

    record: LabRecord
    variables: Mapping[str, str]
    _changing: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def update(self, **changes: Any) -> None:
        """Writes the record with these fields changed."""
        with self._changing:
            self.record = replace(self.record, **changes)
            write_record(self.record)

    def start(
        self, name: str, command: Sequence[str], extra: Mapping[str, str] | None = None, host: str = ""
    ) -> process.ProcessIdentity:
        """Starts a process of the lab: its name is recorded before, its identity after.

        Where this program is killed between the two, the process carries the lab's mark and is found by it.
        `extra` is added to its environment. In a lab with hosts it runs on `host`, or where it was placed.
        """
        with self._changing:
            self.require_own_sockets()
            self.update(starting_process=name)
            variables = {**self.variables, **(extra or {})}
            command = [*self._entered(name, host), *command]
            identity = process.start(name, command, variables, self.record.paths.log(name))
            self._limited(identity, host)
            others = tuple(item for item in self.record.processes if item.name != name)
            self.update(starting_process="", processes=(*others, identity))
        return identity

    def start_daemon(self, name: str) -> None:
        """Starts a daemon of Ceph such as osd.1 in the foreground of a session of its own."""
        kind, _, identity = name.partition(".")
        self.start(name, [f"ceph-{kind}", "-f", "-c", str(self.record.paths.conf), "-i", identity])

    @property
    def ceph(self) -> CephCommand:
        """The `ceph` command of this lab."""
        return CephCommand(self.record.paths.conf, self.variables)

    def tool(self, *command: str) -> str:
        """Runs a short program to its end."""
        return process.run_tool(command, self.variables, deadline_s=_TOOL_DEADLINE_S)

    def restart(self, name: str) -> None:
        """Ends a daemon such as osd.1, if it runs, and starts it anew, as an administrator its unit."""
        kind = name.partition(".")[0]
        if kind not in ("mon", "mgr", "mds", "osd") or name not in self.record.daemons(kind):
            raise UsageError(f"lab {self.record.name} has no daemon {name}", "See `leadline lab status`.")
        running = [one for one in self.record.processes if one.name == name and process.is_own(one)]
        if process.end(running, grace_s=_RESTART_GRACE_S):
            raise LabError(f"{name} does not end", "It waits in the kernel for I/O.")
        self.start_daemon(name)

    def require_own_sockets(self) -> None:
        """Raises UsageError where their directory is gone, as in /tmp it may, or another account's now."""
        run = self.record.run_directory
        if run.parent != self.record.directory:
            with own.own_directory(run):
                pass

    def _entered(self, name: str, host: str) -> list[str]:
        """What puts a process on its host."""
        if self.record.network is None:
            return []
        return entered(self.record.paths, host or self.record.network.host_of(name))

    def _limited(self, identity: process.ProcessIdentity, host: str) -> None:
        """Puts a process into its host's control group, where the host is limited, or held by a fault."""
        found = self.record.network
        member = found.topology.member(host or found.host_of(identity.name)) if found else None
        if member is not None:
            ControlGroups(self.record.fsid).enter(member.name, identity.pid)

    def forget(self, names: Sequence[str]) -> None:
        """Takes processes that have ended for good out of the record."""
        with self._changing:
            self.update(processes=tuple(item for item in self.record.processes if item.name not in names))

    def ended(self) -> list[process.ProcessIdentity]:
        """Recorded processes that run no more."""
        return [item for item in self.record.processes if not process.is_running(item)]

    def require_running(self) -> None:
        """Raises LabError with the last words of the first process that has ended."""
        for item in self.ended():
            raise self.failure(f"{item.name} has ended", item.name)

    def failure(self, what: str, daemon: str) -> LabError:
        """An error that quotes the daemon's last log lines and names its log and how to clean up."""
        log = self.record.paths.log(daemon)
        quoted = (
            "".join(f"\n    {line}" for line in process.last_log_lines(log)) or "\n    (its log is empty)"
        )
        return LabError(
            f"lab {self.record.name}: {what}{quoted}",
            f"See {log}; `leadline lab down {self.record.directory}` removes what is left.",
        )
