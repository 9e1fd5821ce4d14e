"""The directory `leadline-<id>` on a target: marked as ours, and removed only with that mark."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

from leadline import _core
from leadline.errors import ResultError, TargetError
from leadline.run.storage import Mounted, Storage, open_storage, own_directory, require_mounted
from leadline.store.files import checked_id, checked_name
from leadline.study.target import Target
from leadline.trusted import believed_accounts

MARK = ".leadline"
_PREFIX = "leadline-"
_NAME = re.compile(rf"{_PREFIX}([0-9a-f]{{8,64}})(-[a-z0-9][a-z0-9_-]{{0,39}})?")
_FOREIGN = b"?"
_MARK_BYTES_MAX = 4096
_SLICE_S = 600.0
_LATE_S = 2.0  # so long after its maker was killed a directory may still come
_LOOK_S = 0.1


class Place(NamedTuple):
    """A directory of a mounted file system, or of what the URL `location` leads to."""

    directory: str
    location: str | None = None

    @property
    def engine(self) -> str:
        """What lays files out there."""
        if self.location is None:
            return "psync"
        engine: str = _core.parse_location(self.location)["engine"]
        return engine

    @property
    def words(self) -> str:
        """As a person would look for it."""
        return self.directory if self.location is None else f"{self.directory} of {self.location}"


class Workspace(Place):
    """Where a study works and what is removed after it: `leadline-<id>`, never any other directory.

    Below a path, or at the top of what a URL leads to. For a target with a pool of its own it is
    `leadline-<id>-<target>`, as another may have the same path.
    """

    __slots__ = ()

    def __new__(cls, directory: str, location: str | None = None) -> Self:
        """Refuses any other directory, wherever its name comes from."""
        top, _, name = directory.rpartition("/")
        if not directory.startswith("/") or not _NAME.fullmatch(name) or (location and top):
            raise TargetError(
                f"{directory!r} is no directory that a study works in",
                "nothing was done; the result was changed: restore it from a copy",
            )
        return super().__new__(cls, directory, location)

    @property
    def study_id(self) -> str:
        """Whose it is."""
        return Path(self.directory).name.removeprefix(_PREFIX).partition("-")[0]


def name_of(study_id: str) -> str:
    """What a study's directory is called wherever it works, or begins with."""
    return f"{_PREFIX}{checked_id(study_id)}"


def is_name_of(name: str, study_id: str) -> bool:
    """Whether a study of that id calls a directory of its own so."""
    own = name_of(study_id)
    return name == own or name.startswith(f"{own}-")


def workspace_of(target: Target, study_id: str) -> Workspace:
    """Where a study works on a target."""
    top = Path(target.url) if target.is_path else Path("/")
    name = name_of(study_id) if target.pool is None else f"{name_of(study_id)}-{target.name}"
    return Workspace(str(top / name), target.location)


def make_workspace(place: Workspace, study_id: str, pool: str | None = None) -> None:
    """Create and mark the directory; with a `pool`, its files are kept there, from the mark on.

    One that exists and is not ours is refused.
    """
    storage = open_storage(place.location)
    try:
        storage.make_directory(place.directory)
    except FileExistsError:
        mark = _mark_in(storage, place) if _may_be(storage, place, study_id) else _FOREIGN
        if mark == _mark(study_id):
            if pool is not None:
                _require_pool(place, pool)
            return
        if not _is_begun(storage, place, mark, _mark(study_id)):
            raise TargetError(
                f"{place.words} exists and leadline did not make it", storage.foreign_remedy
            ) from None
        # A server may carry out what a maker asked for long after that was ended.
        storage.remove_empty(place.directory, MARK)
        storage.make_directory(place.directory)
    if pool is None:
        storage.put(f"{place.directory}/{MARK}", _mark(study_id))
        return
    from leadline.observe.ceph.pools import set_pool

    try:
        with own_directory(Path(place.directory)) as own:
            set_pool(own, pool, place.words)
        storage.put(f"{place.directory}/{MARK}", _mark(study_id))
        _require_pool(place, pool)
    except BaseException:
        storage.remove_empty(place.directory, MARK)
        raise


def _require_pool(place: Workspace, pool: str) -> None:
    from leadline.observe.ceph.pools import require_pool

    require_pool(Path(place.directory, MARK), pool)


def _mark(study_id: str) -> bytes:
    """What stands in the mark, to the byte: as every version wrote it."""
    return json.dumps({"format": "leadline.workspace/1", "id": study_id}).encode()


def _mark_in(storage: Storage, place: Workspace) -> bytes | None:
    return storage.get(f"{place.directory}/{MARK}", _MARK_BYTES_MAX)


def _is_begun(storage: Storage, place: Workspace, mark: bytes | None, whole: bytes) -> bool:
    """Whether there is nothing but the beginning of the mark."""
    return whole.startswith(mark or b"") and storage.holds(place.directory) <= {MARK}


def _may_be(storage: Storage, place: Workspace, study_id: str) -> bool:
    return place.study_id == study_id and storage.may_be_named(place.directory, Path(place.directory).name)


def remove_files(place: Workspace, prefix: str, slice_s: float = _SLICE_S) -> bool:
    """Remove what begins with `prefix` and a dot, for `slice_s` seconds at most; True when more is left."""
    begin = f"{checked_name(prefix)}."
    return open_storage(place.location).remove_files(place.directory, begin, slice_s)


def forget_cached(directory: Path, prefix: str) -> None:
    """Ask the kernel to drop these files' clean pages from its cache: ours alone, not the host's."""
    with own_directory(directory) as own:
        for name in os.listdir(own):  # noqa: PTH208 - of a descriptor
            if name.startswith(f"{prefix}."):
                descriptor = _core.open_beneath(own, name, os.O_RDONLY | os.O_NONBLOCK)
                try:
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(descriptor)


def remove_workspace(
    place: Workspace,
    study_id: str,
    begins: Sequence[str],
    was: Mounted | None,
    slice_s: float = _SLICE_S,
    *,
    late: bool = False,
) -> bool:
    """Remove the directory with what is ours in it, for `slice_s` seconds at most; True when more is left.

    Names of ours begin with one of `begins`: any other stays, and the directory with it. Where the directory
    is not there it counts as removed only if the target lies on what it lay on: `was`, None if not noted.

    Only where its mark is this study's, to the byte. The mark goes last, so that what is left at any moment
    can be removed later. A maker may have died before its mark was whole, and a remover after it was gone:
    such a directory holds nothing else, and is removed only then. A server can carry out later what a maker
    asked for that is dead now: with `late` a directory that is not there is looked for again for `_LATE_S`.
    """
    storage, end_s = open_storage(place.location), time.monotonic() + _LATE_S
    while (more := _removed(storage, place, study_id, begins, was, slice_s)) is None:
        if not late or time.monotonic() > end_s:
            return False
        time.sleep(_LOOK_S)
    return more


def _removed(
    storage: Storage,
    place: Workspace,
    study_id: str,
    begins: Sequence[str],
    was: Mounted | None,
    slice_s: float,
) -> bool | None:
    """Whether more is left; None where the directory is not there."""
    whole = _mark(study_id)
    if storage.is_absent(place.directory):
        if place.location is None:
            require_mounted(Path(place.directory).parent, was)
        return None
    try:
        mark = _mark_in(storage, place) if _may_be(storage, place, study_id) else _FOREIGN
        if mark != whole and _is_begun(storage, place, mark, whole):
            storage.remove_empty(place.directory, MARK)
            return False
    except FileNotFoundError:
        return None  # removed through another way to the same directory, which this one still shows
    if mark == whole:
        return storage.remove_directory(place.directory, begins, MARK, slice_s)
    raise TargetError(
        f"{place.words} does not carry this study's mark and was not removed", "look into it by hand"
    )


_QUEUE = 4096  # of those who ask; nobody is answered


@contextmanager
def held(study_id: str, targets: Iterable[Target], result: Path) -> Iterator[None]:
    """Hold a study's places for as long as the block lasts. ResultError where another process does.

    What an account without a say in this result holds is passed over: it could keep everybody waiting.
    """
    places = sorted(tuple(map(str, workspace_of(target, study_id))) for target in targets)
    name = f"\0leadline-{hashlib.sha256(json.dumps(places).encode()).hexdigest()[:32]}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as own:
        try:
            own.bind(name)
            own.listen(_QUEUE)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                _refuse(name, study_id, result)
        yield


def _refuse(name: str, study_id: str, result: Path) -> None:
    accounts = set(believed_accounts())
    with suppress(OSError):
        accounts.add(result.stat().st_uid)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(name)
            found = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:  # it has just ended, or does not even listen, as a run does
            return
    pid, uid, _ = struct.unpack("3i", found)
    if uid in accounts:
        who = f"process {pid}" if os.path.exists(f"/proc/{pid}") else "another process"  # noqa: PTH110
        raise ResultError(
            f"the study {study_id} of {result} is being run or undone by {who}, perhaps from a copy of it",
            "nothing was done; wait for that process to end, or end it first",
        )
