"""The two tracers behind one seam, which of them follows a command, and its copies' traces joined into one.

A program that a tracer cannot see is refused, never reported as doing no I/O. Process and file numbers count
through the whole trial.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from leadline.errors import UsageError
from leadline.tracing.tables import TraceTables

if TYPE_CHECKING:
    import pyarrow as pa

    from leadline.tracing.sources.bpf import Session


def join_copies(parts: Sequence[TraceTables]) -> TraceTables:
    """One trial's tables from those of its copies, which each count from 0. There is at least one."""
    if len(parts) == 1:
        return parts[0]
    import pyarrow as pa

    processes, latency, files, segments = [], [], [], []
    first_process = first_file = 0
    for part in parts:
        shift = first_process
        processes += [
            replace(
                row,
                process=row.process + shift,
                parent=None if row.parent is None else row.parent + shift,
            )
            for row in part.processes
        ]
        latency += [replace(row, process=row.process + shift) for row in part.latency]
        files.append(_shifted(part.files, {"process": shift, "file": first_file}))
        if part.segments is not None:
            segments.append(_shifted(part.segments, {"process": shift, "file": first_file}))
        first_process += 1 + max((row.process for row in part.processes), default=-1)
        first_file += 1 + _highest(part.files)
    return replace(
        parts[0],
        processes=tuple(processes),
        latency=tuple(latency),
        files=pa.concat_tables(files),
        segments=pa.concat_tables(segments).unify_dictionaries() if segments else None,
        source="; ".join(dict.fromkeys(part.source for part in parts if part.source)),
        warnings=tuple(dict.fromkeys(text for part in parts for text in part.warnings)),
        extra={name: value for part in parts for name, value in part.extra.items()},
    )


def _shifted(table: Any, shifts: Mapping[str, int]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, shift in shifts.items():
        place = table.schema.get_field_index(name)
        column = pc.add(table.column(name), pa.scalar(shift, pa.int32()))
        table = table.set_column(place, table.schema.field(name), column)
    return table


def _highest(files: Any) -> int:
    import pyarrow.compute as pc

    value = pc.max(files["file"]).as_py()
    return -1 if value is None else int(value)


Via = Literal["preload", "bpf", "auto"]


@dataclass(frozen=True)
class Choice:
    """Which tracer, and why where it was not asked for."""

    mode: Literal["preload", "bpf"]
    reason: str = ""


@dataclass(frozen=True)
class Bounds:
    """Most bytes of segments a process may record (None: calls are only counted), and of its memory."""

    segments_bytes: int | None
    memory_bytes: int


class Source(Protocol):
    """One tracer while it follows one command, in one or several copies."""

    def environment(self, copy: int, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment that a copy starts with."""

    def follow(self, pid: int, copy: int) -> None:
        """Begin with a process that waits to become the command."""

    def finish(self, started_unix_ns: int) -> TraceTables:
        """What was recorded, once every copy has ended."""


def choose(via: Via, executable: Path) -> Choice:
    """The tracer for a command. Raises UsageError where none can follow it."""
    from leadline.tracing.sources.preload import cannot_follow

    if via == "bpf":
        why_not = _without_bpf()
        if why_not:
            raise UsageError(f"--via bpf cannot be used: {why_not}", "try --via preload")
        return Choice("bpf")
    unseen = cannot_follow(executable)
    if unseen is None:
        return Choice("preload")
    if via == "preload":
        raise UsageError(
            f"--via preload cannot follow {executable}: {unseen}", "try --via bpf, which needs root"
        )
    why_not = _without_bpf()
    if why_not:
        raise UsageError(
            f"no tracer can follow {executable}: preload not, since {unseen}; bpf not, since {why_not}",
            "make bpf work (usually: run as root), or trace a program that is linked dynamically",
        )
    return Choice("bpf", f"preload cannot follow it: {unseen}")


def _without_bpf() -> str | None:
    from leadline.tracing.sources.bpf import unavailable

    return unavailable()


class PreloadSource(AbstractContextManager["PreloadSource"]):
    """The preloaded library: each copy writes its logs into a directory of its own, which is watched."""

    def __init__(self, directory: Path, bounds: Bounds) -> None:
        from leadline.tracing.sources.lives import EndWatch
        from leadline.tracing.sources.preload import LOG_SUFFIX

        self._directory = directory
        self._bounds = bounds
        self._copies: list[int] = []
        self._watch = EndWatch(LOG_SUFFIX)

    def __exit__(self, *_: object) -> None:
        self._watch.close()

    def environment(self, copy: int, inherited: Mapping[str, str]) -> dict[str, str]:
        """The inherited environment with what makes the loader load the library."""
        from leadline.tracing.sources.preload import environment

        logs = self._logs(copy)
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._watch.add(logs)
        self._copies.append(copy)
        return environment(
            logs,
            segments_bytes=self._bounds.segments_bytes,
            memory_bytes=self._bounds.memory_bytes,
            inherited=inherited,
        )

    def follow(self, pid: int, copy: int) -> None:
        """See from outside how processes end: the library follows by itself, to its own process's end."""
        del pid, copy
        self._watch.begin()

    def finish(self, started_unix_ns: int) -> TraceTables:
        """Read every copy's logs."""
        from leadline.tracing.sources.preload import read_logs

        self._watch.close()
        ends = self._watch.ends
        return join_copies(
            [
                read_logs(self._logs(copy), started_unix_ns=started_unix_ns, copy=copy, ends=ends)
                for copy in self._copies
            ]
        )

    def _logs(self, copy: int) -> Path:
        return self._directory / f"copy-{copy}"


class BpfSource(AbstractContextManager["BpfSource"]):
    """Programs in the kernel: attached while this is open, gone with it."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._stack = ExitStack()
        self._session: Session | None = None

    def __enter__(self) -> BpfSource:
        from leadline.tracing.sources.bpf import Session

        session = Session(segments_bytes=self._bounds.segments_bytes, memory_bytes=self._bounds.memory_bytes)
        self._session = self._stack.enter_context(session)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def environment(self, copy: int, inherited: Mapping[str, str]) -> dict[str, str]:
        """As inherited, for every copy: the program is not touched."""
        del copy
        return dict(inherited)

    def follow(self, pid: int, copy: int) -> None:
        """Follow a process and all its descendants."""
        assert self._session is not None, "the source is used inside its context"  # noqa: S101
        self._session.follow(pid, copy=copy)

    def finish(self, started_unix_ns: int) -> TraceTables:
        """Read the maps in the kernel."""
        assert self._session is not None, "the source is used inside its context"  # noqa: S101
        return self._session.finish(started_unix_ns=started_unix_ns)


def check_space(directory: Path, bytes_min: int) -> None:
    """A trace that cannot be kept is refused before the command runs. Raises UsageError."""
    try:
        found = os.statvfs(directory)
    except OSError as error:
        raise UsageError(f"{directory} cannot be used: {error.strerror}", "name another -o") from None
    free = found.f_bavail * found.f_frsize
    if free < bytes_min:
        raise UsageError(
            f"{directory} has {free >> 20} MiB left; a trace needs {bytes_min >> 20} MiB at least",
            "free space, or name a directory elsewhere with -o",
        )
