"""Runs a command in one or several copies under a tracer, as if nobody stood between it and its caller.

Standard streams are the caller's; signals sent to us are passed on; what the terminal sends reaches the whole
process group by itself and is not passed on twice. Each copy waits before it becomes the command, so that the
tracer sees its first call and all copies start together.

The preloaded library writes its logs through shared mappings: they outlive a killed `leadline trace`, and are
whole up to the last call of each process. How the command ended, and for what it waited, is lost then.
"""

from __future__ import annotations

import errno
import math
import os
import secrets
import signal
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from leadline.errors import CommandError, ResultError, TargetError, UsageError
from leadline.foreign import parse_json, read_plain, reading
from leadline.observe.hang_guard import in_fork
from leadline.tracing.paths import questions, renamed, told
from leadline.tracing.sources.lives import MARK_VARIABLE, PATIENCE, SurvivorWait, wait_for_survivors
from leadline.tracing.sources.preload import LOG_SUFFIX, read_logs
from leadline.tracing.sources.sources import Source, join_copies
from leadline.tracing.sources.waits import WaitWatch
from leadline.tracing.tables import LAST_SEEN, ProcessRow, TraceTables

WARNING = (
    "recovered from the records of a trace that was not stored as it ended: how the command ended, and what"
    " it waited for, is not known; time 0 is the first record"
)


def recovered_tables(logs: Path, copies: int) -> TraceTables:
    """The tables of one trial from the logs below `logs`, in `copy-N` of each copy.

    Raises ResultError where nothing was recorded.
    """
    with reading(logs, "trace the command again"):
        directories = {copy: logs / f"copy-{copy}" for copy in range(copies)}
        starts = [
            start for directory in directories.values() if directory.is_dir() for start in _starts(directory)
        ]
        if not starts:
            raise ResultError(f"{logs} holds no record: the command had not begun", "trace the command again")
        parts = [
            read_logs(directory, started_unix_ns=min(starts), copy=copy)
            for copy, directory in directories.items()
            if directory.is_dir()
        ]
    tables = known_here(join_copies(parts))
    ends = [row.ended_ns for row in tables.processes if row.ended_ns is not None]
    known: dict[str, Any] = {"wall_s": max(ends, default=0) / 1e9}
    return replace(tables, extra={**tables.extra, **known}, warnings=(WARNING, *tables.warnings))


_AGENT_FORMAT = "leadline.tracelogs/1"
_NOTE_BYTES_MAX = 4 << 20  # a command line may have two


def read_agent_logs(place: Path) -> TraceTables:
    """What `leadline-agent trace --out PLACE` recorded, perhaps on another machine. Raises UsageError."""
    with reading(place, "name the directory that leadline-agent trace --out made", UsageError):
        noted = parse_json(read_plain(place / "trace.json", _NOTE_BYTES_MAX))
        if not isinstance(noted, dict) or noted.get("format") != _AGENT_FORMAT:
            raise ValueError("trace.json is none of leadline-agent")
        started_unix_ns, wall_s = noted.get("started_unix_ns"), noted.get("wall_s")
        if not isinstance(started_unix_ns, int) or not isinstance(wall_s, int | float):
            raise ValueError("trace.json lacks started_unix_ns or wall_s")
        tables = read_logs(place / "copy-0", started_unix_ns=started_unix_ns)
    return replace(tables, extra={**tables.extra, "wall_s": float(wall_s)})


def _starts(directory: Path) -> list[int]:
    """When the processes of a copy began to record (unix, ns): their logs are named PID-NS."""
    ends = (path.stem.partition("-")[2] for path in directory.iterdir() if path.suffix == LOG_SUFFIX)
    return [int(text) for text in ends if text.isascii() and text.isdigit()]


COPY_VARIABLE = "LEADLINE_COPY"
FORWARDED = frozenset(
    {
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
        signal.SIGWINCH,
    }
)
_EXIT_FAILED, _EXIT_NOT_EXECUTABLE, _EXIT_NOT_FOUND = 125, 126, 127
# The locales that Python puts into its own environment where it finds "C" (PEP 538).
_COERCED = frozenset({"C.UTF-8", "C.utf8", "UTF-8"})
_GRACE_S = 5.0  # for what was asked to end
_SAME_S = 0.05  # an end that is seen so much later than the command's is one of the same moment
_POLL_S = 1.0  # a child that ended is announced by SIGCHLD; this is for a SIGCHLD that was lost


@dataclass(frozen=True)
class CopyEnd:
    """How one copy ended: `end` is `exit` with a code or `signal` with a number. Times are its own and its
    waited-for children's; `wall_s` runs from its release to its end; `faults_major` counts page faults that
    had to read."""

    copy: int
    pid: int
    wall_s: float
    end: str
    status: int
    cpu_user_ns: int
    cpu_system_ns: int
    memory_bytes_max: int
    faults_major: int | None = None


@dataclass(frozen=True)
class Traced:
    """What came of a command: each copy's end, the tables, and which signals we were sent meanwhile."""

    ends: tuple[CopyEnd, ...]
    tables: TraceTables
    heard: tuple[int, ...] = ()


def resolve(
    name: str, search: Sequence[str] | None = None, doing: Callable[[str], None] = lambda _: None
) -> Path:
    """The file that a command's name stands for, as a shell finds it. Raises CommandError (126, 127).

    Any of the places may hang, so a fork is asked; `doing` is told each before it is touched.
    """
    if "/" in name:
        candidates = [Path(name)]
    else:
        candidates = [Path(directory or ".") / name for directory in search or os.get_exec_path()]
    refused = None
    for path in candidates:
        doing(str(path))
        # A directory of PATH that this account cannot search has nothing for it, as for a shell.
        is_file = os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises where a directory is closed
        if is_file and os.access(path, os.X_OK):
            return path
        if refused is None and ("/" in name or is_file):
            refused = _why_not(path)
    if refused is not None:
        raise CommandError(refused, "name a program", exit_code=_EXIT_NOT_EXECUTABLE)
    raise CommandError(
        f"the command {name!a} was not found", "check its name and PATH", exit_code=_EXIT_NOT_FOUND
    )


def _why_not(path: Path) -> str | None:
    """Why a file that is there cannot be run; None where there is none."""
    try:
        is_directory = stat.S_ISDIR(path.stat().st_mode)
    except PermissionError as error:
        return f"{path} cannot be reached: {error.strerror}"
    except (OSError, ValueError):
        return None
    return f"{path} is a directory" if is_directory else f"{path} is not executable"


def given_environment(given: Path = Path("/proc/self/environ")) -> dict[str, str]:
    """Our environment as our caller gave it: a locale that Python added would have the command load it."""
    found = dict(os.environ)
    with suppress(OSError):
        names = {entry.partition(b"=")[0] for entry in given.read_bytes().split(b"\0")}
        if b"LC_CTYPE" not in names and found.get("LC_CTYPE") in _COERCED:
            del found["LC_CTYPE"]
    return found


def run_traced(
    command: Sequence[str],
    executable: Path,
    source: Source,
    copies: int = 1,
    inherited: Mapping[str, str] | None = None,
    now_ns: Callable[[], int] = time.time_ns,
    until_s: float = math.inf,
    patience: SurvivorWait = PATIENCE,
) -> Traced:
    """Start the copies, wait for them while passing signals on, and read what the tracer recorded.

    At `until_s` (monotonic) what still runs of them is asked to end, and killed where it does not. What the
    command left running is waited for with `patience`, but not beyond `until_s`. Raises CommandError where
    the command could not be started at all.
    """
    environment = given_environment() if inherited is None else inherited
    mark = patience.mark or secrets.token_hex(8)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED | {signal.SIGCHLD})
    waiting: list[_Waiting] = []
    heard: list[int] = []
    waits = WaitWatch()
    try:
        for copy in range(copies):
            variables = source.environment(
                copy, {**environment, COPY_VARIABLE: str(copy), MARK_VARIABLE: mark}
            )
            waiting.append(_fork(copy, command, executable, variables, before))
            source.follow(waiting[-1].pid, copy)
        started_unix_ns, origin = now_ns(), time.monotonic_ns()
        starts = {item.pid: item.release() for item in waiting}
        waits.begin({item.pid: item.copy for item in waiting})
        ends = _wait(waiting, starts, until_s, heard)
        for item in waiting:
            item.check(executable)
        bounded = replace(patience, seconds=max(0.0, min(patience.seconds, until_s - time.monotonic())))
        left = wait_for_survivors(mark, bounded, heard, FORWARDED)
    except BaseException:
        for item in waiting:
            item.abandon()
        raise
    finally:
        waited = waits.close()
        for item in waiting:
            item.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    wall_s = (max(end for _, end in ends) - origin) / 1e9
    tables = known_here(source.finish(started_unix_ns))
    rows = (_with_start(_with_end(row, ends, origin), starts, origin) for row in tables.processes)
    tables = replace(tables, processes=tuple(rows))
    copies_known = [{**asdict(end), "waits": asdict(waited[end.copy])} for end, _ in ends]
    known = {"wall_s": wall_s, "copies": copies_known, **_outlived(tables, wall_s)}
    tables = replace(
        tables, extra={**tables.extra, **known}, warnings=(*tables.warnings, *_still_running(tables, left))
    )
    return Traced(tuple(end for end, _ in ends), tables, tuple(heard))


def _outlived(tables: TraceTables, wall_s: float) -> dict[str, Any]:
    """How many processes ran on after the command, and until when: the time of all that was counted."""
    after_ns = int((wall_s + _SAME_S) * 1e9)
    later = {row.pid: row.ended_ns for row in tables.processes if (row.ended_ns or 0) > after_ns}
    if not later:
        return {}
    return {"outlived": len(later), "wall_s": max(end_ns or 0 for end_ns in later.values()) / 1e9}


def _still_running(tables: TraceTables, left: Sequence[int]) -> tuple[str, ...]:
    """What is to be said where the trace ended before the processes of the command did."""
    count = len({row.pid for row in tables.processes if row.end == "running"} | set(left))
    if not count:
        return ()
    who = (
        "1 process of the command still runs" if count == 1 else f"{count} processes of the command still run"
    )
    return (f"{who}: the trace ends here, and counts nothing that follows (--wait TIME waits longer)",)


def known_here(tables: TraceTables) -> TraceTables:
    """The tables with one name for each file, and without FIFOs, as far as this machine tells right now."""
    dotted, slowest = questions(tables.files)
    if not dotted and not slowest:
        return tables
    try:
        names = in_fork(lambda doing: told(dotted, slowest, doing), "the files of the trace")
    except TargetError as error:
        doubt = f"FIFOs and names of one file are unknown: {error.message}"
        doubts = [*tables.extra.get("time_doubts", ()), doubt]
        return replace(tables, extra={**tables.extra, "time_doubts": doubts})
    return renamed(tables, names)


def _with_end(row: ProcessRow, ends: Sequence[tuple[CopyEnd, int]], origin_ns: int) -> ProcessRow:
    """What we saw ourselves of a command's own process, where its record could not say it (a kill)."""
    if row.end not in ("unknown", "running", LAST_SEEN):
        return row
    known = next((pair for pair in ends if (pair[0].copy, pair[0].pid) == (row.copy, row.pid)), None)
    if known is None:
        return row
    end, at_ns = known
    return replace(row, ended_ns=at_ns - origin_ns, end=end.end, status=end.status)


def _with_start(row: ProcessRow, starts: Mapping[int, int], origin_ns: int) -> ProcessRow:
    """A copy's first image begins with its exec, not where its libraries were loaded and the tracer began."""
    if row.parent is not None or row.pid not in starts:
        return row
    return replace(row, started_ns=min(row.started_ns, max(0, starts[row.pid] - origin_ns)))


class _Waiting:
    """A forked copy of us that becomes the command once it is released."""

    def __init__(self, copy: int, pid: int, gate: int, errors: int) -> None:
        self.copy, self.pid = copy, pid
        self._gate, self._errors = gate, errors

    def release(self) -> int:
        """Let it go on; returns the time (monotonic, ns)."""
        now = time.monotonic_ns()
        os.write(self._gate, b"+")
        return now

    def check(self, executable: Path) -> None:
        """Raise CommandError where it could not become the command."""
        data = os.read(self._errors, 16)
        if data:
            raise _refusal(executable, int(data))

    def abandon(self) -> None:
        """End one that was never released: at a closed gate it gives up."""
        self.close()
        with suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)

    def close(self) -> None:
        """Close our ends of its pipes."""
        for name in ("_gate", "_errors"):
            descriptor = getattr(self, name)
            if descriptor >= 0:
                os.close(descriptor)
                setattr(self, name, -1)


def _refusal(executable: Path, number: int) -> CommandError:
    missing = number == errno.ENOENT
    hint = "check the interpreter in its first line" if missing else "check its format and permissions"
    code = _EXIT_NOT_FOUND if missing else _EXIT_NOT_EXECUTABLE
    return CommandError(f"{executable} cannot be run: {os.strerror(number)}", hint, exit_code=code)


def _fork(
    copy: int,
    command: Sequence[str],
    executable: Path,
    environment: Mapping[str, str],
    mask: set[int | signal.Signals],
) -> _Waiting:
    gate_read, gate_write = os.pipe()
    errors_read, errors_write = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        raise UsageError(f"copy {copy} cannot be started: {error.strerror}", "ask for fewer copies") from None
    if pid == 0:
        os.close(gate_write)
        _become(command, executable, environment, mask, gate_read, errors_write)
    os.close(gate_read)
    os.close(errors_write)
    return _Waiting(copy, pid, gate_write, errors_read)


def _become(
    command: Sequence[str],
    executable: Path,
    environment: Mapping[str, str],
    mask: set[int | signal.Signals],
    gate: int,
    errors: int,
) -> NoReturn:
    """In the forked copy: wait, put back what Python changed, and become the command."""
    try:
        if os.read(gate, 1) != b"+":
            os._exit(_EXIT_FAILED)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
            if number != signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        try:
            os.execve(executable, list(command), environment)  # noqa: S606 - no shell is meant
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script without a first line that names its shell is run as shells and `env` run it.
            os.execve("/bin/sh", ["/bin/sh", str(executable), *command[1:]], environment)  # noqa: S606
    except OSError as error:
        with suppress(OSError):
            os.write(errors, str(error.errno).encode())
    finally:
        os._exit(_EXIT_FAILED)


def _wait(
    waiting: Sequence[_Waiting], starts: Mapping[int, int], until_s: float, heard: list[int]
) -> list[tuple[CopyEnd, int]]:
    """Wait for every copy, passing signals on; the ends in the order of copies, with their times."""
    alive = {item.pid: item.copy for item in waiting}
    found: list[tuple[CopyEnd, int]] = []
    while alive:
        for pid in list(alive):
            got, status, usage = os.wait4(pid, os.WNOHANG)
            if got:
                now = time.monotonic_ns()
                found.append((_end(alive.pop(pid), pid, now - starts[pid], status, usage), now))
        if not alive:
            break
        late_s = time.monotonic() - until_s
        if late_s >= 0:
            for pid in alive:
                os.kill(pid, signal.SIGTERM if late_s < _GRACE_S else signal.SIGKILL)
        wait_s = min(_POLL_S, -late_s) if late_s < 0 else _POLL_S
        info = signal.sigtimedwait(FORWARDED | {signal.SIGCHLD}, wait_s)
        if info is not None and info.si_signo != signal.SIGCHLD:
            heard.append(info.si_signo)
        # A positive code is the kernel's own: the terminal has sent it to the whole process group already.
        if info is not None and info.si_signo != signal.SIGCHLD and info.si_code <= 0:
            for pid in alive:
                os.kill(pid, info.si_signo)
    return sorted(found, key=lambda pair: pair[0].copy)


def _end(copy: int, pid: int, wall_ns: int, status: int, usage: object) -> CopyEnd:
    killed = os.WIFSIGNALED(status)
    return CopyEnd(
        copy=copy,
        pid=pid,
        wall_s=wall_ns / 1e9,
        end="signal" if killed else "exit",
        status=os.WTERMSIG(status) if killed else os.WEXITSTATUS(status),
        cpu_user_ns=int(getattr(usage, "ru_utime", 0.0) * 1e9),
        cpu_system_ns=int(getattr(usage, "ru_stime", 0.0) * 1e9),
        memory_bytes_max=int(getattr(usage, "ru_maxrss", 0)) * 1024,
        faults_major=int(getattr(usage, "ru_majflt", 0)),
    )
