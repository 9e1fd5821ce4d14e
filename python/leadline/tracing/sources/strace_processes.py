"""Processes as strace shows them: births, execs, ends, and what their descriptors stand for."""

from __future__ import annotations

import os.path
import signal
from array import array
from dataclasses import dataclass

from leadline.tracing.counters import FileCounters
from leadline.tracing.sources.strace_lines import DELETED, Call, c_number, split, text, unescape
from leadline.tracing.tables import KINDS

BIRTHS = frozenset(("clone", "clone3", "fork", "vfork"))
EXECS = {"execve": 0, "execveat": 1}  # where their path stands
_MEMORY = "/dev/shm/"  # noqa: S108 - recognised, not used


class Description:
    """An open file: several descriptors, also of several processes, may share it. No file: `path` None."""

    __slots__ = ("append", "offset", "path")

    def __init__(self, path: str | None, offset: int | None, append: bool = False) -> None:
        self.path = path
        self.offset = offset
        self.append = append


@dataclass(frozen=True, slots=True)
class Submitted:
    """An asynchronous request that is under way: `direction` is READ or WRITE."""

    direction: str
    row: FileCounters
    offset: int | None
    asked: int
    began_ns: int


class Process:
    """One process image and what was counted of it."""

    def __init__(self, number: int, pid: int, parent: Process | None, started_ns: int) -> None:
        self.number = number
        self.pid = pid
        self.parent: int | None = None if parent is None else parent.number
        self.executable: str = "" if parent is None else parent.executable
        self.command: list[str] = [] if parent is None else parent.command
        self.started_ns = started_ns
        self.ended_ns: int | None = None
        self.end = "unknown"
        self.status: int | None = None
        self.leaving: tuple[int | None, int] | None = None  # what exit_group was called with, and when
        self.alive: set[int] = {pid}
        self.threads = 1
        self.descriptors: dict[int, Description] = {} if parent is None else dict(parent.descriptors)
        self.closed_by_exec: set[int] = set() if parent is None else set(parent.closed_by_exec)
        self.directory: list[str | None] = [None] if parent is None else list(parent.directory)
        self.rows: dict[str, FileCounters] = {}
        self.calls: dict[str, int] = {}
        self.spent_ns = dict.fromkeys(KINDS, 0)
        self.latencies = {kind: array("Q") for kind in KINDS}
        self.bytes = {"READ": 0, "WRITE": 0}
        self.reference = array("Q")  # ns of calls that only strace made long
        self.notes: set[str] = set()
        self.mapped: dict[str, bool] = {}  # path -> mapped for execution at least once
        self.submitted: dict[str, list[Submitted]] = {}

    def share(self, parent: Process, flags: str) -> None:
        """What a clone shares instead of copying."""
        if "CLONE_FILES" in flags:
            self.descriptors, self.closed_by_exec = parent.descriptors, parent.closed_by_exec
        if "CLONE_FS" in flags:
            self.directory = parent.directory

    def finish(self, end: str, status: int | None, at_ns: int) -> None:
        """The end of this image."""
        self.end, self.status, self.ended_ns = end, status, at_ns
        waiting = sum(len(rest) for rest in self.submitted.values())
        if waiting:
            self.notes.add(f"io_submit: the end of {waiting} operations is not in the log")


class Family:
    """All processes of a log, by thread."""

    def __init__(self) -> None:
        self.processes: list[Process] = []
        self.by_thread: dict[int, Process] = {}
        self.directory: str | None = None  # where the first program was started
        self.strangers = 0  # processes whose beginning is not in the log
        self._known_paths: dict[str, str | None] = {}

    def stranger(self, thread: int, at_ns: int) -> Process:
        """A thread that nobody announced: the first, or one that strace was attached to."""
        process = self._add(thread, None, at_ns)
        if len(self.processes) > 1:
            self.strangers += 1
        else:
            process.directory[0] = self.directory
        return process

    def born(self, parent: Process, call: Call, at_ns: int) -> None:
        """A clone, fork or vfork returned in the parent."""
        thread = call.result
        if thread is None or thread <= 0:
            return
        if "CLONE_THREAD" in call.arguments:
            parent.alive.add(thread)
            parent.threads += 1
            self.by_thread[thread] = parent
        else:
            self._add(thread, parent, at_ns).share(parent, call.arguments)

    def executed(self, thread: int, process: Process, call: Call, at_ns: int) -> None:
        """An exec succeeded: the image ends and the next begins, with the descriptors that stay open."""
        first = EXECS[call.name]
        arguments = split(call.arguments)
        image = process
        if process.executable or process.calls or process.parent is not None:
            image = self._add(process.pid, process, at_ns)
            image.parent = process.parent
            for other in process.alive:
                self.by_thread.pop(other, None)
            process.finish("exec", None, at_ns)
        else:
            image.started_ns = min(image.started_ns, at_ns)
        for number in image.closed_by_exec:
            image.descriptors.pop(number, None)
        image.closed_by_exec = set()
        image.alive = {thread}
        self.by_thread[thread] = image
        image.executable = (text(arguments[first]) if len(arguments) > first else None) or ""
        image.command = _strings(arguments[first + 1]) if len(arguments) > first + 1 else []

    def ended(self, thread: int, code: int | None, killed_by: str | None, at_ns: int) -> None:
        """A thread's last line; the last thread's is the end of the process."""
        process = self.by_thread.pop(thread, None)
        if process is None:
            return
        process.alive.discard(thread)
        if process.alive:
            return
        if killed_by is None:
            process.finish("exit", code, at_ns)
        else:
            number = getattr(signal, killed_by, None)
            process.finish("signal", None if number is None else int(number), at_ns)

    def leaving(self, thread: int, arguments: str, at_ns: int) -> None:
        """A thread called exit_group, which never returns."""
        process = self.by_thread.get(thread)
        if process is not None:
            code = c_number(arguments)
            process.leaving = None if code is None else code & 255, at_ns

    def left(self) -> None:
        """Behind the last line: whoever called exit_group has ended, where -q left that line out, too."""
        for process in self.processes:
            if process.end == "unknown" and process.leaving is not None:
                process.finish("exit", *process.leaving)

    def _add(self, pid: int, parent: Process | None, at_ns: int) -> Process:
        process = Process(len(self.processes), pid, parent, at_ns)
        self.processes.append(process)
        self.by_thread[pid] = process
        return process

    def named(self, process: Process, path: str, base: str | None) -> str:
        """A path as the kernel would begin to read it; one whose directory is unknown stays relative."""
        if path.startswith("/"):
            whole = path
        else:
            whole = f"{base}/{path}" if base is not None else path
            if base is None:
                process.notes.add("relative paths: the current directory is not in the log")
        return whole if "//" not in whole and "/." not in whole else _tidy(whole)

    def file_path(self, annotated: str) -> str | None:
        """What -y says of a descriptor as a path; None when it is no file."""
        if annotated in self._known_paths:
            return self._known_paths[annotated]
        path: str | None = unescape(annotated)
        if path is not None:
            path = path.removesuffix(DELETED).split("<", 1)[0]
            path = path if is_file(path) else None
        self._known_paths[annotated] = path
        return path


def is_file(path: str) -> bool:
    """Files and directories; no pipes, sockets, terminals and devices."""
    if not path.startswith("/"):
        return ":" not in path.split("[", 1)[0]
    device = path.startswith("/dev/") and not path.startswith(_MEMORY)
    return not device and not path.startswith("/memfd:")


def _tidy(path: str) -> str:
    """Without `//` and `/./`. A `..` stays: behind a symbolic link it is not the parent in the text."""
    return path if "/.." in path else os.path.normpath(path)


def _strings(argument: str) -> list[str]:
    if not argument.startswith("["):
        return []
    words = []
    for word in split(argument.strip("[]")):
        cut = word.endswith('"...')
        clean = text(word.removesuffix("..."))
        words.append("..." if clean is None else clean + ("..." if cut else ""))
    return words
