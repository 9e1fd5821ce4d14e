"""A mount that is slow and faulty by known amounts: what a trial on it must say can be computed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from built import PROGRAM, built

SOURCE = Path(__file__).parent / "programs" / "slow_fuse.c"
_MOUNT_DEADLINE_S = 10.0
# A daemon whose tests were killed ends too, also one that is stopped: so no mount hangs for ever.
_WITH_ITS_PARENT = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()


@dataclass(frozen=True)
class SlowMount:
    """`path` is the mount; its files lie in `backing`, where they can be made without delay."""

    path: Path
    backing: Path
    daemon: int = 0

    def rules(
        self,
        read_ms: float = 0,
        write_ms: float = 0,
        servers: int = 0,
        error: int = 0,
        fails: range = range(0),
    ) -> None:
        """What operations from now on meet: delays, how many are served at a time, which bytes fail."""
        words = (int(read_ms * 1000), int(write_ms * 1000), servers, error, fails.start, fails.stop)
        new = self.backing / ".slow.new"
        new.write_text(" ".join(str(word) for word in words) + "\n")
        new.rename(self.backing / ".slow")

    def faults(self, kinds: Sequence[str], every: int, first: int = 0) -> None:
        """What becomes, in turn, of each so manyth block of 4 KiB that is written: see `slow_fuse.c`."""
        (self.backing / ".injected").unlink(missing_ok=True)
        new = self.backing / ".faults.new"
        new.write_text(f"{','.join(kinds)} {every} {first}\n")
        new.rename(self.backing / ".faults")

    def injected(self) -> list[tuple[str, int]]:
        """The blocks that suffered: what, and their offset."""
        lines = (self.backing / ".injected").read_text().splitlines()
        return [(line.split()[0], int(line.split()[1])) for line in lines]


def missing() -> str | None:
    """Why the mount cannot be made here, if it cannot."""
    if shutil.which("cc") is None:
        return "no C compiler"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no /dev/fuse"
    if subprocess.run(["pkg-config", "--exists", "fuse3"], check=False).returncode != 0:
        return "no headers of libfuse3 (Debian: libfuse3-dev)"
    return None


def build() -> Path:
    """The program, compiled."""
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "fuse3"], check=True, capture_output=True, text=True
    ).stdout.split()
    warnings = ("-Wall", "-Wextra", "-Werror")
    command = ["cc", "-O2", *warnings, "-o", PROGRAM, str(SOURCE), *flags, "-lpthread"]
    return built("slow_fuse", [SOURCE], command)


def can_hold() -> bool:
    """Whether a daemon that is stopped can be left to end with the tests, however these end."""
    return shutil.which("strace") is not None and bool(_WITH_ITS_PARENT)


@contextmanager
def held(mount: SlowMount) -> Iterator[None]:
    """The daemon is stopped: whatever asks the mount waits."""
    os.kill(mount.daemon, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(mount.daemon, signal.SIGCONT)


@contextmanager
def mounted(
    program: Path,
    directory: Path,
    believed_s: int = 1,
    owner: int | None = None,
    name: str = "slow",
    *,
    cached: bool = False,
) -> Iterator[SlowMount]:
    """Mounts below `directory`; unmounted and ended at the end. Another `name`: another mount of the same.

    The kernel believes names and attributes for `believed_s`, and shows all files as those of `owner`; with
    `cached` files go through its page cache.
    """
    mount = SlowMount(directory / name, directory / "backing")
    mount.path.mkdir()
    mount.backing.mkdir(exist_ok=True)
    options = str(believed_s) if owner is None else f"{believed_s},uid={owner}"
    environment = {**os.environ, "SLOW_FUSE_CACHED": "1"} if cached else None
    process = subprocess.Popen(
        [*_WITH_ITS_PARENT, program, mount.backing, mount.path, options], env=environment
    )
    mount = replace(mount, daemon=process.pid)
    try:
        end = time.monotonic() + _MOUNT_DEADLINE_S
        while not mount.path.is_mount():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("slow_fuse did not mount")
            time.sleep(0.01)
        yield mount
    finally:
        fusermount = shutil.which("fusermount3") or "fusermount"
        subprocess.run([fusermount, "-u", "-z", mount.path], check=False)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
