"""The machine that this process works for, where that is another one: a host that runs the static agent.

A study's session for such a host runs here (`hosts/agent`), and asks the agent for all that touches the host.
Who asks the kernel elsewhere in the package asks `other()` first, which is None in every other process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from leadline.observe.mounts.mountinfo import Mount


class ObserverProcess(Protocol):
    """What samples a host: the part of `subprocess.Popen` that its client needs."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None
    pid: int

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""

    def kill(self) -> None:
        """End it at once."""


class OtherMachine(Protocol):
    """Another machine. Paths are its own; what is asked has a deadline, past which it raises TargetError."""

    name: str
    files: Path
    """Copies of its /proc, /sys and /etc, as far as they are needed: `files / "proc/meminfo"`."""
    workers: Any
    """What starts workers there: `run.prepared.Forks`."""

    def clock(self) -> int:
        """Its time of day now, unix ns."""

    def identity(self) -> dict[str, Any]:
        """Its names, numbers and libraries, as `hosts.procedures.probe` has them of this host."""

    def refresh(self) -> None:
        """Copy the files anew."""

    def mounts(self) -> tuple[Mount, ...]:
        """Its mount table, now."""

    def ask(self, place: str, deadline_s: float) -> Sequence[Mapping[str, Any]]:
        """What `observe.probe` says of a path or a URL, line by line."""

    def check_answers(self, path: str) -> None:
        """Raises TargetError where the file system of a path does not answer."""

    def facts(self) -> dict[str, str]:
        """What a manifest records about it: as `observe.host.host.facts`."""

    def offset_ns(self) -> int:
        """Its time of day minus this host's CLOCK_MONOTONIC, ns, as it was when last asked."""

    def observer(self) -> ObserverProcess:
        """Start the observers there."""


_other: OtherMachine | None = None


def other() -> OtherMachine | None:
    """The machine that this process works for; None where that is this one."""
    return _other


def work_for(machine: OtherMachine | None) -> None:
    """From here on this process works for that machine."""
    global _other  # noqa: PLW0603 - one for the whole process: it is what the process is for
    _other = machine
