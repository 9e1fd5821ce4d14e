"""The lab while it is being changed: each change is on disk before it is acted upon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leadline.errors import LabError
from leadline.lab import logs, process
from leadline.lab.record import LabRecord, write_record


@dataclass
class Journal:
    """The current record of one lab whose lock is held, and the environment of its processes."""

    record: LabRecord
    variables: Mapping[str, str]

    def update(self, **changes: Any) -> None:
        """Writes the record with these fields changed."""
        self.record = replace(self.record, **changes)
        write_record(self.record)

    def start(self, name: str, command: Sequence[str]) -> process.ProcessIdentity:
        """Starts a process of the lab: its name is recorded before, its identity after.

        Where this program is killed between the two, the process carries the lab's mark and is found by it.
        """
        self.update(starting_process=name)
        identity = process.start(name, command, self.variables, self.record.paths.log(name))
        others = tuple(item for item in self.record.processes if item.name != name)
        self.update(starting_process="", processes=(*others, identity))
        return identity

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
        quoted = "".join(f"\n    {line}" for line in logs.last_lines(log)) or "\n    (its log is empty)"
        return LabError(
            f"lab {self.record.name}: {what}{quoted}",
            f"See {log}; `leadline lab down {self.record.directory}` removes what is left.",
        )
