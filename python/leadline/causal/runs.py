"""One run of the program under the tracer, with the calls of one class delayed.

The program's standard input is empty and what it prints is not shown: it is run many times. The end of what
it said is kept for the run that fails.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from leadline.causal.model import CallSums, Condition
from leadline.causal.profiling import RanOnce
from leadline.errors import UsageError
from leadline.tracing.mapped import named_places
from leadline.tracing.sources.launch import CopyEnd, run_traced
from leadline.tracing.sources.preload import LOG_SUFFIX
from leadline.tracing.sources.sources import Bounds, PreloadSource
from leadline.tracing.tables import TraceTables, files_schema

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SAID_BYTES = 1000
_BESIDE = ("asynchronous I/O", "io_uring")
_EXIT_INTERRUPTED = 130


class DelayingSource(PreloadSource):
    """The preloaded tracer, which counts by class and delays; of its logs only the sums are read."""

    def __init__(self, directory: Path, bounds: Bounds, below: Sequence[str], condition: Condition) -> None:
        super().__init__(directory, bounds)
        self._place, self._below, self._condition = directory, below, condition

    def environment(self, copy: int, inherited: Mapping[str, str]) -> dict[str, str]:
        """As the tracer's, with what it delays."""
        variables = super().environment(copy, inherited)
        variables["LEADLINE_TRACE_BELOW"] = ":".join(self._below)
        if self._condition.delayed:
            variables["LEADLINE_TRACE_DELAY"] = f"{self._condition.delayed}:{self._condition.delay_ns}"
        return variables

    def finish(self, started_unix_ns: int) -> TraceTables:
        """The sums of all processes, in `extra`; no rows."""
        from leadline import _core

        self._watch.close()
        paths = sorted(str(path) for path in self._place.rglob(f"*{LOG_SUFFIX}"))
        read = _core.read_trace_logs(paths, started_unix_ns)
        return TraceTables(
            mode="preload",
            processes=(),
            files=files_schema().empty_table(),
            extra={"sums": _added(read["processes"]), "notes": _notes(read)},
        )


class DelayedProgram:
    """The program, to be run again and again; its logs lie in `logs` while it runs."""

    def __init__(self, words: Sequence[str], executable: Path, below: Sequence[str], logs: Path) -> None:
        self._words, self._executable, self._below, self._logs = words, executable, below, logs
        self._runs = 0
        self._bounds = Bounds(None, 64 << 20)

    def __call__(self, condition: Condition, until_s: float) -> RanOnce:
        """Run it once."""
        self._runs += 1
        place = self._logs / f"run-{self._runs}"
        place.mkdir(mode=0o700)
        said = place / "said"
        with DelayingSource(place, self._bounds, self._below, condition) as source, _streams_to(said):
            traced = run_traced(self._words, self._executable, source, until_s=until_s)
        end = traced.ends[0]
        ran = RanOnce(
            end.wall_s,
            traced.tables.extra["sums"],
            _how(end, said),
            _is_stopped(end, traced.heard),
            tuple(traced.tables.extra["notes"]),
        )
        _clear(place)
        return ran


def _is_stopped(end: CopyEnd, heard: Sequence[int]) -> bool:
    """Were we told to stop, or the command by the terminal, which tells both?"""
    killed = end.end == "signal" and end.status == signal.SIGINT
    return killed or end.status == _EXIT_INTERRUPTED or any(number in _STOPS for number in heard)


def _added(processes: Sequence[Mapping[str, Any]]) -> dict[str, CallSums]:
    found: dict[str, CallSums] = {}
    for process in processes:
        for name, (calls, own_ns, waited_ns) in process["classes"].items():
            known = found.get(name, CallSums(0, 0.0, 0.0))
            found[name] = CallSums(
                known.calls + calls, known.own_s + own_ns / 1e9, known.waited_s + waited_ns / 1e9
            )
    return found


def _notes(read: Mapping[str, Any]) -> list[str]:
    """What was not delayed, and so is in no slope."""
    found: dict[str, None] = {}
    for process in read["processes"]:
        for note in process["notes"]:
            if note.startswith("static child "):
                found[
                    f"{note.removeprefix('static child ')} is linked statically: its calls were not delayed"
                ] = None
            elif note in _BESIDE:
                found[f"requests of {note} were not delayed: no slope holds for them"] = None
        if process["lost"].get("children"):
            found["a child of the command could not be followed: its calls were not delayed"] = None
    for path, why in read["unreadable"]:
        found[f"a log could not be read ({Path(path).name}: {why})"] = None
    return list(found)


def _how(end: CopyEnd, said: Path) -> str:
    if end.end == "exit" and end.status == 0:
        return ""
    how = (
        f"was killed by signal {end.status}" if end.end == "signal" else f"ended with exit code {end.status}"
    )
    with suppress(OSError):
        lines = said.read_bytes()[-_SAID_BYTES:].decode(errors="replace").strip().splitlines()
        if lines:
            return f"{how} ({lines[-1].strip()})"
    return how


def _clear(place: Path) -> None:
    """Logs of a gigabyte each must not pile up; whatever stays goes with the directory that they are in."""
    for path in place.rglob("*"):
        if path.is_file():
            with suppress(OSError):
                path.unlink()


@contextmanager
def _streams_to(said: Path) -> Iterator[None]:
    """Our standard streams, which the program inherits: nothing to read, and what it prints goes into a
    file."""
    kept = [os.dup(number) for number in range(3)]
    nothing = os.open(os.devnull, os.O_RDWR)
    errors = os.open(said, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        for number, to in enumerate((nothing, nothing, errors)):
            os.dup2(to, number)
        yield
    finally:
        for number, before in enumerate(kept):
            os.dup2(before, number)
            os.close(before)
        os.close(nothing)
        os.close(errors)


def places_below(given: Sequence[str], words: Sequence[str], doing: Callable[[str], None]) -> tuple[str, ...]:
    """The directories to follow, under the names that programs may reach them by: those given, or else the
    working directory and absolute paths among the command's words. To be asked in a fork, as it touches them;
    `doing` is told each before.
    """
    places = list(given) or [".", *named_places([words])]
    found: dict[str, None] = {}
    for place in places:
        absolute = str(Path(place).absolute())
        doing(absolute)
        if ":" in absolute:
            raise UsageError(
                f"{absolute} has a colon in its name, which separates directories", "use a link to it"
            )
        if given and not Path(absolute).exists():
            raise UsageError(f"{absolute} does not exist", "name an existing directory with --below")
        for name in (os.path.normpath(absolute), os.path.realpath(absolute)):
            found[name] = None
    return tuple(found)
