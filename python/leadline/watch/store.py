"""What `leadline watch` saw, as plain values between who collects and who judges. Rates are per second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leadline.observe.mounts.mountinfo import Mount
from leadline.tracing.tables import TraceTables

WATCH_FORMAT = "leadline.watch/1"


@dataclass(frozen=True)
class SeenFile:
    """A file below the path that a process had open.

    `advanced_bytes` is by how much its positions went forward, as far as looks once a second can tell.
    """

    path: str
    writing: bool
    advanced_bytes: int


@dataclass(frozen=True)
class SeenProcess:
    """One process that had something open on the file system; `files` and `uses` are those below the path.

    `followed_s` is for how long its calls were counted, `open_elsewhere` how many files it had open on the
    rest of the file system. `moved` is the growth of /proc/PID/io (`rchar`, `wchar` bytes; `syscr`, `syscw`
    calls) and counts all its calls, wherever they went; None where that may not be read. `ended`: it was gone
    before the end, and `moved` lacks what it did after the last look.
    """

    pid: int
    name: str
    account: str
    files: tuple[SeenFile, ...]
    uses: tuple[str, ...]
    moved: Mapping[str, int] | None
    followed_s: float
    open_elsewhere: int = 0
    ended: bool = False

    @property
    def is_below(self) -> bool:
        """Whether it had anything below the path."""
        return bool(self.files or self.uses)


@dataclass(frozen=True)
class SeenWait:
    """A call on a file below the path in which a thread stood for so long, at the least.

    `uncounted_s` is the part that no source counts: of a call that began before the watch, or did not end.
    """

    pid: int
    call: str
    path: str
    stood_s: float
    uncounted_s: float


@dataclass(frozen=True)
class Seen:
    """Everything that was seen of a path, and of its file system, for a while.

    `path` is resolved; `mount` holds it, `mounts` are those of this process, `foreign` those of processes
    that have others, by pid. `change` is what the observers' counters did (`observe.model.Delta` as plain
    values); `samples` are rows (t_ns, source, subject, metric, value, unit). `calls` are the calls of the
    processes, None where no tracer could look (`calls_reason`). `client` holds the client daemon's perf dumps
    at the beginning and the end. `unseen` says which processes could not be looked into. `calls_s` is how
    long calls were counted, of those processes that were followed from the beginning on. `waits` are the
    calls in which threads stood from one look to the next.
    """

    path: str
    words: str
    access: str
    mount: Mount
    elapsed_s: float
    change: Mapping[str, Any]
    samples: tuple[tuple[int, str, str, str, float, str], ...]
    processes: tuple[SeenProcess, ...]
    unseen: tuple[str, ...]
    calls: TraceTables | None
    calls_reason: str
    client: tuple[Mapping[str, Any], Mapping[str, Any]] | None
    client_reason: str
    calls_s: float = 0.0
    mounts: tuple[Mount, ...] = ()
    foreign: Mapping[int, tuple[Mount, ...]] = field(default_factory=dict)
    waits: tuple[SeenWait, ...] = ()

    @property
    def place(self) -> str:
        """The path, counted from the root of its file system."""
        return self.mount.root.rstrip("/") + self.path[len(self.mount.mount_point.rstrip("/")) :] or "/"

    @property
    def is_whole(self) -> bool:
        """True where the path is all of the file system that is mounted there."""
        return self.path == self.mount.mount_point

    def below(self, place: str) -> str | None:
        """A place on the file system as a path below the watched one; None where it is not there."""
        top = self.place
        if place != top and not place.startswith(f"{top.rstrip('/')}/"):
            return None
        return f"{self.path.rstrip('/')}{place[len(top.rstrip('/')) :]}" or "/"
