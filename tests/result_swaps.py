"""`make result-swaps`: another account exchanges what lies on the way to results while root writes them.

The account owns one directory and shares a sticky one with root. All the time it puts links, directories and
files under the names that root writes by. Root makes results, reports and logs below these names and in a
directory of its own. After each try nothing outside may have changed, and nothing of root's may lie in a
directory of that account. `--seed` makes the choices again. Needs root.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import shutil
import signal
import stat
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from builders import clock, manifest, trial_row

from leadline.cli.files import write_file
from leadline.errors import UsageError
from leadline.store.files import make_parents
from leadline.store.index import write_index
from leadline.store.making import making
from leadline.store.reader import open_result
from leadline.store.writer import create_result, reopen_result

OTHER = 65534
PRECIOUS = "precious"
_TOP = str(Path(tempfile.gettempdir()) / "leadline-swaps-")
_CALLS = frozenset({"os.mkdir", "open", "os.rename", "os.link", "os.remove", "os.rmdir"})
NAMES = ("r", "report.html", "manifest.json", "events.jsonl", "cells-2.parquet", "way", "new", "deeper")
Snapshot = dict[str, tuple[int, ...] | bytes]


@dataclass(frozen=True)
class Ground:
    """Where both work: `theirs` is the other account's, everything else is root's."""

    top: Path

    @property
    def theirs(self) -> Path:
        return self.top / "theirs"

    @property
    def sticky(self) -> Path:
        return self.top / "sticky"

    @property
    def own(self) -> Path:
        return self.top / "own"

    @property
    def outside(self) -> Path:
        """What nobody may change: files of root, and a result of its own."""
        return self.top / "outside"

    def places(self) -> tuple[Path, ...]:
        """Where root is asked to write, a name to be added."""
        theirs = (self.theirs, self.theirs / "way", self.theirs / "way/new", self.top / "link")
        return (*theirs, self.sticky, self.sticky / "way", self.sticky / "way/new", self.own)


@dataclass
class Tally:
    """What came of it."""

    swaps: int = 0
    tries: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


@contextmanager
def ground() -> Iterator[Ground]:
    """A new one, gone afterwards."""
    found = Ground(Path(tempfile.mkdtemp(prefix=Path(_TOP).name)))
    try:
        found.top.chmod(0o755)
        for place, mode in ((found.theirs, 0o755), (found.sticky, 0o1777), (found.own, 0o700)):
            place.mkdir()
            place.chmod(mode)
        os.chown(found.theirs, OTHER, OTHER)
        (found.top / "link").symlink_to(found.theirs / "way")
        found.outside.mkdir()
        for name in NAMES[:-2]:
            (found.outside / name).write_text(PRECIOUS)
        (found.outside / "new").mkdir()
        create_result(found.outside / "result", manifest(), clock()).close()
        yield found
    finally:
        shutil.rmtree(found.top)


def snapshot(place: Path) -> Snapshot:
    """Every file below, with its bytes, rights and times."""
    found: Snapshot = {}
    for path in (place, *sorted(place.rglob("*"))):
        now = path.lstat()
        found[f"{path} is"] = (now.st_ino, now.st_mode, now.st_uid, now.st_gid, now.st_nlink, now.st_mtime_ns)
        if stat.S_ISREG(now.st_mode):
            found[f"{path} holds"] = path.read_bytes()
    return found


def planted(found: Ground) -> list[str]:
    """What of root's lies in a directory of the other account, which goes on swapping meanwhile."""
    bad = []
    for top in (found.theirs, found.sticky):
        with suppress(OSError):
            for path, directories, files, opened in os.fwalk(top):
                if os.fstat(opened).st_uid != OTHER:
                    continue
                for name in (*directories, *files):
                    with suppress(OSError):
                        if os.stat(name, dir_fd=opened, follow_symlinks=False).st_uid != OTHER:
                            bad.append(f"{path}/{name} is root's, in a directory of the other account")
    return bad


def _entries(directory: Path) -> list[Path]:
    with suppress(OSError):
        return list(directory.iterdir())
    return []


class Shared:
    """What both processes see: how many swaps there were, and what root is about to write."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 16)

    @property
    def swaps(self) -> int:
        """So far."""
        return int(struct.unpack_from("q", self._memory, 0)[0])

    def swapped(self, count: int) -> None:
        """Called by the other account."""
        struct.pack_into("q", self._memory, 0, count)

    def aim(self, place: int, name: int) -> None:
        """Called by root: the numbers of a place and of a name in it."""
        struct.pack_into("ii", self._memory, 8, place, name)

    def aimed(self, found: Ground) -> Path:
        """The path that root is about to write."""
        place, name = struct.unpack_from("ii", self._memory, 8)
        return found.places()[place] / list(MAKE)[name]


def swap(found: Ground, choice: random.Random, aimed: Path) -> None:
    """Put something else in the place of a part of the path that root writes, as the other account."""
    parts = [part for part in (aimed, *aimed.parents) if {found.theirs, found.sticky} & set(part.parents)]
    place = choice.choice(parts or [found.theirs / "way"])
    beside = [one for one in _entries(place.parent) if one.name.startswith(".leadline-")]
    if beside and choice.randrange(2):
        place = choice.choice(beside)
    aside = found.theirs / f"aside-{choice.getrandbits(32)}"
    with suppress(OSError):
        place.rename(aside)
    put = choice.randrange(6)
    with suppress(OSError):
        if put == 0:
            place.symlink_to(found.outside)
        elif put == 1:
            place.symlink_to(found.outside / choice.choice((*NAMES, "result")))
        elif put == 2:
            place.mkdir()
            (place / "new").mkdir()
        elif put == 3:
            place.write_text("theirs")
    if aside.is_dir() and not aside.is_symlink():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.unlink(missing_ok=True)


@contextmanager
def swapping(found: Ground, seed: int) -> Iterator[Shared]:
    """The other account at work, in a process of its own."""
    shared, parent = Shared(), os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(OTHER, OTHER, OTHER)
            os.setresuid(OTHER, OTHER, OTHER)
            choice, count = random.Random(seed), 0  # noqa: S311 - moments, not secrets
            while os.getppid() == parent:
                with suppress(OSError):
                    swap(found, choice, shared.aimed(found))
                count += 1
                shared.swapped(count)
        finally:
            os._exit(1)
    try:
        yield shared
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


class Between:
    """Lets swaps happen before each call by which root makes something: after the look at the path."""

    def __init__(self) -> None:
        self._shared: Shared | None = None
        sys.addaudithook(self._heard)  # nothing takes a hook away again

    @contextmanager
    def calls(self, shared: Shared) -> Iterator[None]:
        """As long as this lasts."""
        self._shared = shared
        try:
            yield
        finally:
            self._shared = None

    def _heard(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._shared is None or event not in _CALLS or not str(arguments[0]).startswith(_TOP):
            return
        shared, self._shared = self._shared, None
        before, until = shared.swaps, time.monotonic() + 10
        while shared.swaps < before + 2 and time.monotonic() < until:
            os.sched_yield()
        self._shared = shared


def make_result(place: Path) -> None:
    """A result with a trial and its summary, opened again as by `--resume`. It is whole, and gone then."""
    writer = create_result(place, manifest(), clock())
    writer.write_trial(trial_row(), [], [])
    writer.close()
    again = reopen_result(place, clock())
    try:
        write_index(place, [])
        if len(open_result(place).trials()) != 1 or place.lstat().st_uid != 0:
            raise AssertionError(f"{place} is not the result that was made")
    finally:
        again.discard_all()
        again.close()


def make_report(place: Path) -> None:
    """A report, twice; the second replaces the first."""
    for text in (b"first", b"second"):
        write_file(place, text, "-o")
    if place.read_bytes() != b"second" or place.lstat().st_uid != 0:
        raise AssertionError(f"{place} is not the report that was written")
    place.unlink()


def make_logs(place: Path) -> None:
    """The directory for a trace's logs, as `leadline trace` makes it."""
    make_parents(place)
    with making(place, 0o700) as (logs, _):
        (logs / "log").write_text("log")


MAKE: dict[str, Callable[[Path], None]] = {"r": make_result, "report.html": make_report, "logs": make_logs}


def one_try(found: Ground, place: Path, make: Callable[[Path], None], tally: Tally) -> None:
    """Root writes something somewhere: it is refused, or made where nobody else could exchange it."""
    try:
        make(place)
        tally.tries["made"] += 1
        if found.theirs in place.parents or place.parent.name == "link":
            tally.failures.append(f"{place} was made in a directory of the other account")
    except UsageError:
        tally.tries["refused"] += 1
    except OSError as error:
        tally.tries["refused"] += 1
        if make is not make_logs:  # every other one has words of its own
            tally.failures.append(f"{place}: {error}")
    except AssertionError as error:
        tally.failures.append(str(error))


def clear(found: Ground) -> None:
    """Remove what root made, so that the names are free again."""
    for place in (*_entries(found.sticky), *_entries(found.own)):
        with suppress(OSError):
            if place.lstat().st_uid == 0:
                shutil.rmtree(place) if place.is_dir() else place.unlink()


def run(swaps: int, seed: int) -> Tally:
    """Try until there were so many swaps, and as many tries."""
    tally, choice, between = Tally(), random.Random(seed), Between()  # noqa: S311 - moments, not secrets
    with ground() as found:
        before = snapshot(found.outside)
        with swapping(found, seed) as shared:
            while tally.swaps < swaps or tally.tries.total() < swaps:
                number, name = choice.randrange(len(found.places())), choice.randrange(len(MAKE))
                shared.aim(number, name)
                with between.calls(shared):
                    word, make = list(MAKE.items())[name]
                    one_try(found, found.places()[number] / word, make, tally)
                tally.failures += planted(found)
                if snapshot(found.outside) != before:
                    tally.failures.append("what lies outside was changed")
                tally.swaps = shared.swaps
                if tally.failures:
                    break
                clear(found)
    return tally


def main() -> int:
    """`--swaps` as an option, for `make result-swaps`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--swaps", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    asked = parser.parse_args()
    if os.geteuid() != 0:
        print("another account needs root: nothing was done", file=sys.stderr)
        return 2
    print(f"seed {asked.seed}", flush=True)
    tally = run(asked.swaps, asked.seed)
    for failure in tally.failures[:20]:
        print(failure, file=sys.stderr)
    made, refused = tally.tries["made"], tally.tries["refused"]
    print(f"{tally.swaps} swaps, {made} files and directories made, {refused} refused")
    print("something went wrong" if tally.failures else "nothing outside was changed, nothing was followed")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
