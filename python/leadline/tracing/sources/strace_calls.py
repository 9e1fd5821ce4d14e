"""What each system call of a log does to processes, descriptors and counters: a method a word."""

from __future__ import annotations

import errno
import re

from leadline.tracing.counters import FileCounters, is_reference
from leadline.tracing.sources.strace_lines import Call, c_number, descriptor, first_descriptor, split, text
from leadline.tracing.sources.strace_world import (
    BIRTHS,
    EXECS,
    CallKind,
    Description,
    Process,
    Submitted,
    World,
    call_kinds,
    is_file,
)

_IOV_LENGTH = re.compile(r"iov_len=(\d+)")
_FILE_SIZE = re.compile(r"\bst_size=(\d+)")
_SUBMITTED = re.compile(
    r"aio_data=(0x[0-9a-f]+|\d+).*?aio_lio_opcode=(?:IOCB_CMD_)?(\w+), (?:aio_reqprio=\d+, )?"
    r"aio_fildes=(\d+(?:<(?:[^<>]|->)*>(?:\(deleted\))?)?)"
    r"(?:, aio_buf=(.*?)(?:, aio_nbytes=(\d+))?, aio_offset=(-?\d+))?[,}]",
    re.DOTALL,
)
_REAPED = re.compile(r"\{data=(0x[0-9a-f]+|\d+), obj=[^,]*, res=(-?\d+)")
_DIRECTIONS = {"read": "READ", "write": "WRITE"}
_ASYNCHRONOUS = {"PREAD": "READ", "PREADV": "READ", "PWRITE": "WRITE", "PWRITEV": "WRITE"}
_SYNCS = {"FSYNC": "FSYNCS", "FDSYNC": "FDSYNCS"}


class Interpreter:
    """Takes calls in the order of their ends. Times count from the trial's start."""

    def __init__(self, directory: str | None = None) -> None:
        self.world = World()
        self.world.family.directory = directory
        self._kinds = call_kinds()

    def call(self, thread: int, start_ns: int, call: Call) -> None:
        """Everything that one call changes."""
        process = self.world.family.by_thread.get(thread)
        if process is None:
            process = self.world.family.stranger(thread, start_ns)
        self.world.seen[call.name] = self.world.seen.get(call.name, 0) + 1
        if call.duration_ns is not None and is_reference(call.name, call.arguments):
            process.reference.append(call.duration_ns)
        kind = self._kinds.get(call.name)
        if kind is not None:
            _One(self.world, process, thread, start_ns, call, kind).interpret()
        elif call.name in BIRTHS:
            self.world.family.born(process, call, start_ns)
        elif call.name in EXECS and call.result == 0:
            self.world.family.executed(thread, process, call, start_ns)


class _One:
    """One call while it is interpreted. A method for each word of `does`."""

    __slots__ = ("_call", "_kind", "_process", "_start", "_thread", "_world")

    def __init__(
        self, world: World, process: Process, thread: int, start: int, call: Call, kind: CallKind
    ) -> None:
        self._world, self._process, self._thread = world, process, thread
        self._start, self._call, self._kind = start, call, kind

    def interpret(self) -> None:
        """Do what the table says that the call does."""
        _METHODS[self._kind.does](self)

    def read_or_write(self) -> None:
        """One buffer or several, at the file's offset or at a given one."""
        direction = _DIRECTIONS[self._kind.does]
        description = self._first()
        moved = self._call.result
        if description is None or description.path is None:
            self._apart({direction: moved or 0})
            return
        row = self._world.row(self._process, description.path)
        explicit = self._from_end(self._kind.offset)
        if explicit is not None and explicit < 0:  # preadv2 with -1 means the file's offset
            explicit = None
        offset = self._advance(description, direction, explicit, moved or 0)
        if moved is not None and moved >= 0:
            row.access(direction, offset, moved)
            self._process.bytes[direction] += moved
        self._note(row, (offset, self._asked()), direction)

    def _advance(
        self, description: Description, direction: str, explicit: int | None, moved: int
    ) -> int | None:
        """The offset of this access; the description's own moves on unless it was given."""
        path = description.path or ""
        offset = explicit if explicit is not None else description.offset
        if description.append and direction == "WRITE":
            offset = self._world.size(path)
        end = None if offset is None else offset + max(moved, 0)
        if explicit is None:
            description.offset = end
        size = self._world.size(path)
        if direction == "WRITE" and end is not None and size is not None and end > size:
            self._world.resized(path, end)
        return offset

    def copy(self) -> None:
        """Bytes from one file to another inside the kernel: read from one, written to the other."""
        arguments = split(self._call.arguments)
        kind, moved = self._kind, self._call.result
        ends = []
        for direction, place, offset_place in (
            ("READ", kind.source, kind.source_offset),
            ("WRITE", kind.target, kind.target_offset),
        ):
            description = self._at(arguments, place)
            if description is None or description.path is None:
                continue
            explicit = _bracketed(arguments, offset_place)
            offset = self._advance(description, direction, explicit, moved or 0)
            ends.append((direction, self._world.row(self._process, description.path), offset))
        sides = {direction for direction, _, _ in ends}
        self._apart({side: moved or 0 for side in ("READ", "WRITE") if side not in sides}, called=not ends)
        for direction, row, offset in ends:
            if moved is not None and moved >= 0:
                row.access(direction, offset, moved)
                row.add("copied_out_bytes" if direction == "READ" else "copied_in_bytes", moved)
                self._process.bytes[direction] += moved
            self._time_row(row, direction)
        if ends:
            asked = c_number(arguments[kind.asked]) if len(arguments) > kind.asked else None
            kind_of_time = "write" if "WRITE" in sides else "read"
            self._note(ends[-1][1], (ends[-1][2], asked), None, kind_of_time)

    def open(self) -> None:
        """open, openat, openat2, creat."""
        arguments = split(self._call.arguments)
        asked = self._path(arguments, self._kind.directory, self._kind.path)
        flags = "O_TRUNC" if self._call.name == "creat" else _argument(arguments, self._kind.flags)
        returned = self._call.path
        path = self._world.family.file_path(returned) if returned is not None else asked
        if returned is None and path is not None and not is_file(path):
            path = None
        number = self._call.result
        if number is not None and number >= 0:
            self._process.descriptors[number] = Description(path, 0, "O_APPEND" in flags)
            self._closes_by_exec(number, "O_CLOEXEC" in flags)
        if path is None:
            self._apart({})
            return
        row = self._world.row(self._process, path)
        if number is not None and number >= 0:
            row.add("OPENS")
            row.seen("OPEN", self._start, self._call.duration_ns)
            if "O_TRUNC" in flags or "O_EXCL" in flags:
                self._world.resized(path, 0)
        self._note(row, (None, None), "META")

    def close(self) -> None:
        """close: the descriptor's number is free again."""
        description = self._first()
        found = first_descriptor(self._call.arguments)
        if found is not None and self._call.error != "EBADF":
            self._process.descriptors.pop(found[0], None)
            self._process.closed_by_exec.discard(found[0])
        if description is None or description.path is None:
            self._apart({})
            return
        row = self._world.row(self._process, description.path)
        row.add("closes")
        row.seen("CLOSE", self._start, self._call.duration_ns)
        self._note(row, (None, None), "META")

    def close_range(self) -> None:
        """All descriptors from one number to another."""
        arguments = split(self._call.arguments)
        first, last = c_number(_argument(arguments, 0)), c_number(_argument(arguments, 1))
        self._note(None, (None, None), None)
        if self._call.result != 0 or first is None or last is None:
            return
        for number in [n for n in self._process.descriptors if first <= n <= last]:
            if "CLOSE_RANGE_CLOEXEC" in _argument(arguments, 2):
                self._closes_by_exec(number, True)
                continue
            description = self._process.descriptors.pop(number)
            if description.path is not None:
                self._world.row(self._process, description.path).add("closes")

    def duplicate(self) -> None:
        """dup, dup2, dup3, and fcntl that does the same: two numbers, one offset."""
        description = self._first()
        number = self._call.result
        if description is None or description.path is None:
            if number is not None and number >= 0:
                self._process.descriptors[number] = description or Description(None, None)
            self._apart({})
            return
        row = self._world.row(self._process, description.path)
        if number is not None and number >= 0:
            self._process.descriptors[number] = description
            self._closes_by_exec(number, "CLOEXEC" in self._call.arguments)
            row.add("DUPS")
        self._note(row, (None, None), "META")

    def control(self) -> None:
        """fcntl: a duplicate, or a flag."""
        arguments = self._call.arguments
        if "F_DUPFD" in arguments:
            self.duplicate()
            return
        found = first_descriptor(arguments)
        if found is not None and "F_SETFD" in arguments:
            self._closes_by_exec(found[0], "FD_CLOEXEC" in arguments)
        description = self._first()
        if description is not None and "F_SETFL" in arguments:
            description.append = "O_APPEND" in arguments
        self._counted(description, None)

    def seek(self) -> None:
        """lseek tells the offset, and with SEEK_END the file's size."""
        description = self._first()
        result, arguments = self._call.result, self._call.arguments
        if description is not None and description.path is not None and result is not None and result >= 0:
            description.offset = result if self._call.name == "lseek" else None
            from_end = c_number(arguments.split(", ")[1]) if arguments.endswith("SEEK_END") else None
            if from_end is not None and description.offset is not None:
                self._world.resized(description.path, result - from_end)
        self._counted(description, "SEEKS")

    def map(self) -> None:
        """mmap of a file: what is then read and written by touching memory is in no log of calls."""
        if "MAP_ANON" in self._call.arguments:
            return
        arguments = split(self._call.arguments)
        description = self._at(arguments, self._kind.descriptor or 0)
        self._counted(description, "MMAPS")
        if description is None or description.path is None or self._call.error is not None:
            return
        length, how = c_number(_argument(arguments, 1)), " ".join(arguments[2:4])
        executable = "PROT_EXEC" in how or "MAP_DENYWRITE" in how
        row = self._world.row(self._process, description.path)
        if length is not None and not executable:
            row.add("mapped_bytes", length)
        row.add("write_mmaps", int("PROT_WRITE" in how and "MAP_SHARED" in how))
        mapped = self._process.mapped
        mapped[description.path] = mapped.get(description.path, False) or executable

    def rename(self) -> None:
        """rename, renameat, renameat2."""
        arguments = split(self._call.arguments)
        old = self._path(arguments, self._kind.directory, self._kind.path)
        new = self._path(arguments, self._kind.to_directory, self._kind.to_path)
        row = None if old is None else self._world.row(self._process, old)
        if self._call.result == 0 and old is not None and new is not None and row is not None:
            row.add("RENAME_SOURCES")
            self._world.row(self._process, new).add("RENAME_TARGETS")
            self._world.moved(old, new)
        self._note(row, (None, None), "META")

    def count(self) -> None:
        """What only counts, on a descriptor, on a path, or on neither."""
        kind = self._kind
        if kind.descriptor is not None:
            self._counted(self._first(), kind.counter)
            return
        arguments = split(self._call.arguments)
        path = self._path(arguments, kind.directory, kind.path)
        if path is None and kind.directory is not None and _argument(arguments, kind.path) == '""':
            self._counted(self._at(arguments, kind.directory), kind.counter)
            return
        if path is not None and not is_file(path):
            self._apart({})
            return
        row = None if path is None else self._world.row(self._process, path)
        counter = kind.counter
        for flag, other in kind.when.items():
            counter = other if flag in self._call.arguments else counter
        if row is not None and counter is not None and self._call.result == 0:
            row.add(counter)
            if counter == "truncates":
                self._truncated(row.path, arguments)
        self._note(row, (None, None), "META")

    def directory(self) -> None:
        """chdir, fchdir."""
        arguments = split(self._call.arguments)
        if self._kind.path is not None:
            path = self._path(arguments, None, self._kind.path)
        else:
            description = self._at(arguments, 0)
            path = None if description is None else description.path
        if self._call.result == 0:
            self._process.directory[0] = path
        row = None if path is None else self._world.row(self._process, path)
        self._note(row, (None, None), "META")

    def submit(self) -> None:
        """io_submit: operations begin; what they moved is known when they are reaped."""
        accepted = self._call.result or 0
        for found in _SUBMITTED.findall(self._call.arguments)[: max(accepted, 0)]:
            tag, operation, place, vector, length, offset = found
            parsed = descriptor(place)
            description = (
                None if parsed is None else self._world.described(self._process, parsed[0] or 0, parsed[1])
            )
            if description is None or description.path is None:
                continue
            row = self._world.row(self._process, description.path)
            if operation in _SYNCS:
                row.add(_SYNCS[operation])
            elif operation in _ASYNCHRONOUS:
                asked = int(length) if length else sum(int(n) for n in _IOV_LENGTH.findall(vector))
                request = Submitted(_ASYNCHRONOUS[operation], row, c_number(offset), asked, self._start)
                self._process.submitted.setdefault(str(c_number(tag)), []).append(request)
        self._note(None, (None, None), None)

    def reap(self) -> None:
        """io_getevents: what asynchronous operations moved."""
        for tag, result in _REAPED.findall(self._call.arguments):
            if waiting := self._process.submitted.get(str(c_number(tag))):
                self._arrived(waiting.pop(0), int(result))
        self._note(None, (None, None), None)

    def _arrived(self, request: Submitted, result: int) -> None:
        """A request has ended by now; its time is from its submission."""
        process, row, name = self._process, request.row, f"io_submit:{request.direction.lower()}"
        process.calls[name] = process.calls.get(name, 0) + 1
        process.notes.add("asynchronous I/O")
        if result >= 0:
            row.access(request.direction, request.offset, result)
            process.bytes[request.direction] += result
        else:
            row.add("failed")
        if self._call.duration_ns is None:
            return
        kind, span = request.direction.lower(), self._start + self._call.duration_ns - request.began_ns
        row.seen(request.direction, request.began_ns, span)
        process.spent_ns[kind] += row.spend(request.direction, request.began_ns, span)
        process.latencies[kind].append(span)
        place = (process.number, self._thread, row.number)
        asked = (request.offset, request.asked)
        self._world.segments.append(place, name, asked, result, (request.began_ns, span))

    def ring(self) -> None:
        """io_uring: its queues are memory that no log of calls shows."""
        self._process.notes.add("io_uring")
        if self._call.name == "io_uring_setup":
            self.other()
        self._process.calls[self._call.name] = self._process.calls.get(self._call.name, 0) + 1

    def other(self) -> None:
        """A descriptor of no file was made."""
        if self._call.result is not None and self._call.result >= 0:
            self._process.descriptors[self._call.result] = Description(None, None)

    def pair(self) -> None:
        """Two of them."""
        listed = re.sub(r"<[^>]*>", "", self._call.arguments).partition("[")[2].partition("]")[0]
        if self._call.result == 0:
            for number in re.findall(r"\d+", listed):
                self._process.descriptors[int(number)] = Description(None, None)

    def _counted(self, description: Description | None, counter: str | None) -> None:
        if description is None or description.path is None:
            self._apart({})
            return
        row = self._world.row(self._process, description.path)
        if counter is not None and self._call.error is None and self._call.result is not None:
            row.add(counter)
            if counter == "truncates":
                self._truncated(description.path, split(self._call.arguments))
        size = _FILE_SIZE.search(self._call.arguments) if counter == "STATS" else None
        if size is not None:
            self._world.resized(description.path, int(size[1]))
        self._note(row, (None, None), "WRITE" if counter in _SYNCS.values() else "META")

    def _truncated(self, path: str, arguments: list[str]) -> None:
        size = c_number(_argument(arguments, 1))
        if size is not None:
            self._world.resized(path, size)

    def _first(self) -> Description | None:
        found = first_descriptor(self._call.arguments)
        return None if found is None else self._world.described(self._process, *found)

    def _at(self, arguments: list[str], place: int) -> Description | None:
        found = descriptor(_argument(arguments, place))
        if found is None or found[0] is None:
            return None
        return self._world.described(self._process, found[0], found[1])

    def _path(self, arguments: list[str], directory: int | None, place: int | None) -> str | None:
        """The path of an argument, from the directory it starts in; None when it is none or empty."""
        path = text(_argument(arguments, place))
        if not path:
            return None
        base = self._process.directory[0]
        if directory is not None and not path.startswith("/"):
            found = descriptor(_argument(arguments, directory))
            number, annotated = found if found is not None else (-1, None)
            if annotated is not None:
                base = self._world.family.file_path(annotated)
                if number is None:
                    self._process.directory[0] = base
            elif number is not None:
                known = self._process.descriptors.get(number)
                base = None if known is None else known.path
        return self._world.family.named(self._process, path, base)

    def _closes_by_exec(self, number: int, closes: bool) -> None:
        if closes:
            self._process.closed_by_exec.add(number)
        else:
            self._process.closed_by_exec.discard(number)

    def _from_end(self, place: int | None) -> int | None:
        if place is None:
            return None
        parts = self._call.arguments.rsplit(", ", -place)
        return c_number(parts[place]) if len(parts) > -place else None

    def _asked(self) -> int | None:
        if self._kind.vector is None:
            return self._from_end(self._kind.length)
        lengths = _IOV_LENGTH.findall(self._call.arguments)
        return None if "}, ...]" in self._call.arguments else sum(int(length) for length in lengths)

    def _apart(self, moved: dict[str, int], *, called: bool = True) -> None:
        other = self._world.other
        if called:
            other.calls[self._call.name] = other.calls.get(self._call.name, 0) + 1
        for direction, count in moved.items():
            other.bytes[direction] += max(count, 0)
        found = first_descriptor(self._call.arguments) if moved and called else None
        if found is not None and found[1] is None and found[0] not in self._process.descriptors:
            other.unknown_descriptors += 1

    def _time_row(self, row: FileCounters, what: str) -> None:
        duration = self._call.duration_ns
        if what != "META":
            row.seen(what, self._start, duration)
        if duration is not None:
            row.spend(what, self._start, duration)

    def _note(
        self,
        row: FileCounters | None,
        span: tuple[int | None, int | None],
        row_time: str | None,
        kind: str | None = None,
    ) -> None:
        """Count the call, its time by kind, and its segment."""
        process, call = self._process, self._call
        process.calls[call.name] = process.calls.get(call.name, 0) + 1
        if row is not None:
            if row_time is not None:
                self._time_row(row, row_time)
            if call.error is not None:
                row.add("failed")
            if call.error == "ESPIPE" or any(mode in call.arguments for mode in ("S_IFIFO", "S_IFSOCK")):
                self._world.streams.add(row.path)
        if call.duration_ns is None:
            self._world.untimed = self._world.untimed or call.result is not None
            return
        kind = kind or self._kind.kind or "meta"
        if kind != "none":
            process.spent_ns[kind] += call.duration_ns
            process.latencies[kind].append(call.duration_ns)
        if call.result is not None:
            place = (process.number, self._thread, -1 if row is None else row.number)
            result = call.result if call.error is None else -_errno(call.error)
            self._world.segments.append(place, call.name, span, result, (self._start, call.duration_ns))


_METHODS = {
    **dict.fromkeys(("read", "write"), _One.read_or_write),
    **{
        name: getattr(_One, name)
        for name in (
            *("copy", "open", "close", "close_range", "duplicate", "control", "seek", "map", "rename"),
            *("count", "directory", "submit", "reap", "ring", "other", "pair"),
        )
    },
}


def _argument(arguments: list[str], place: int | None) -> str:
    return arguments[place] if place is not None and place < len(arguments) else ""


def _bracketed(arguments: list[str], place: int | None) -> int | None:
    found = re.match(r"\[(\d+)\]", _argument(arguments, place))
    return int(found[1]) if found else None


def _errno(name: str) -> int:
    return int(getattr(errno, name, errno.EIO))
