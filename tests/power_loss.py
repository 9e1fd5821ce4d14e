"""What a disk may hold after the power went, made from the calls that `programs/damage.c` wrote down.

Only what was synced is sure to be there: the bytes of a file by its own sync, its name by that of its
directory. What was not may be there, in part or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

# What becomes of what was not synced: bytes and names are lost; the names stay without the bytes; the bytes
# have the length, as zeros; all is there but half of the last write.
Loss = Literal["all", "bytes", "zeros", "torn"]
LOSSES: tuple[Loss, ...] = ("all", "bytes", "zeros", "torn")


@dataclass(frozen=True)
class DiskCall:
    """One line of the log."""

    what: str
    path: str
    offset: int
    data: bytes


@dataclass(eq=False)
class _File:
    """A file by itself, whatever its names: what was written, and what of it is sure to be there."""

    data: bytearray = field(default_factory=bytearray)
    sure: bytes = b""
    last: int = 0  # where the last write began


@dataclass
class Disk:
    """Files and directories (None) by their paths: as programs see them, and as they are sure to be."""

    seen: dict[str, _File | None] = field(default_factory=dict)
    sure: dict[str, _File | None] = field(default_factory=dict)

    def apply(self, call: DiskCall) -> None:
        """One call that succeeded."""
        if call.what == "mkdir":
            self.seen[call.path] = None
        elif call.what in ("create", "truncate"):
            found = self.seen.setdefault(call.path, _File())
            if call.what == "truncate" and found is not None:
                found.data.clear()
        elif call.what == "write":
            written = self.seen[call.path]
            assert written is not None
            written.data[call.offset : call.offset + len(call.data)] = call.data
            written.last = call.offset
        elif call.what == "rename":
            self._rename(call.path, call.data.decode())
        elif call.what == "unlink":
            self.seen.pop(call.path, None)
        elif call.what == "sync":
            self._sync(call.path)

    def _rename(self, old: str, new: str) -> None:
        for path in [one for one in self.seen if one == old or one.startswith(f"{old}/")]:
            self.seen[new + path[len(old) :]] = self.seen.pop(path)
        for path in [one for one in self.sure if one.startswith(f"{old}/")]:  # below its directory all stays
            self.sure[new + path[len(old) :]] = self.sure[path]

    def _sync(self, path: str) -> None:
        found = self.seen.get(path)
        if found is not None:
            found.sure = bytes(found.data)
            return
        for names in (self.sure, self.seen):
            children = [one for one in names if one.rpartition("/")[0] == path]
            for child in children:
                if child not in self.seen:
                    del self.sure[child]
                else:
                    self.sure[child] = self.seen[child]

    def after(self, loss: Loss) -> Iterator[tuple[str, bytes | None]]:
        """Every path with its bytes (None: a directory), parents first."""
        names = self.sure if loss == "all" else self.seen
        gone: set[str] = set()
        for path in sorted({*names, *self.seen}):
            if path not in names or path.rpartition("/")[0] in gone:
                gone.add(path)  # without a name, or below a directory that has none
                continue
            found = names[path]
            yield path, None if found is None else _bytes(found, loss)


def _bytes(found: _File, loss: Loss) -> bytes:
    if bytes(found.data) == found.sure or loss in ("all", "bytes"):
        return found.sure
    if loss == "zeros":
        return found.sure + bytes(max(0, len(found.data) - len(found.sure)))
    return bytes(found.data[: (found.last + len(found.data)) // 2])


def read_calls(log: Path) -> list[DiskCall]:
    """All calls, in order."""
    found = []
    for line in log.read_text().splitlines():
        what, path, offset, data = line.split("\t")
        found.append(DiskCall(what, path, int(offset), bytes.fromhex(data)))
    return found


def lay_out(states: Iterator[tuple[str, bytes | None]], old: str, new: Path) -> None:
    """Make what was below `old` below `new`."""
    for path, data in states:
        place = new / path[len(old) :].lstrip("/")
        if data is None:
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
