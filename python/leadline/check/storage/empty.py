"""May a block device be overwritten? Only where nothing at all is known to be on it or to use it.

Each question that cannot be asked is a refusal: nobody's data are worth a guess.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from leadline.foreign import read_plain

_PROBE_S = 30.0
_NOTHING_FOUND = 2  # blkid's exit code
_MOUNTS_MAX = 64 << 20


def why_not_empty(device: Path, sys: Path = Path("/sys"), proc: Path = Path("/proc")) -> str | None:
    """What is on `device` or uses it, in words; None where it is a block device that nothing is known of."""
    return next(_reasons(device, sys, proc), None)


def _reasons(device: Path, sys: Path, proc: Path) -> Iterator[str]:
    found = device.stat()
    if not stat.S_ISBLK(found.st_mode):
        yield "it is no block device"
        return
    number = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    place = (sys / "dev/block" / number).resolve()
    if not place.is_dir():
        yield f"the kernel shows nothing of it in {sys}/dev/block/{number}"
        return
    if (place / "ro").read_text().strip() != "0":
        yield "it is read-only"
    if parts := sorted(one.parent.name for one in place.glob("*/partition")):
        yield f"it has partitions: {', '.join(parts)}"
    if holders := sorted(one.name for one in (place / "holders").iterdir()):
        yield f"it is a part of {', '.join(holders)}"
    for line in read_plain(proc / "self/mountinfo", _MOUNTS_MAX).decode(errors="replace").splitlines():
        fields = line.split()
        if len(fields) > 4 and fields[2] == number:
            yield f"it is mounted on {fields[4]}"
    for line in (proc / "swaps").read_text().splitlines()[1:]:
        if _is_device(Path(line.split()[0]), found.st_rdev):
            yield "it is swap space"
    yield from _used(found.st_rdev, proc)
    yield from _signature(device)


def _is_device(path: Path, number: int) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISBLK(found.st_mode) and found.st_rdev == number


def _used(number: int, proc: Path) -> Iterator[str]:
    """Processes that have it open, as a virtual machine has its disk; who ends meanwhile does not count."""
    for process in sorted(proc.glob("[0-9]*")):
        try:
            opened = list((process / "fd").iterdir())
            name = (process / "comm").read_text().strip()
        except PermissionError:
            yield f"who has it open cannot be seen: process {process.name} may not be looked at; be root"
            return
        except OSError:
            continue
        if any(_is_device(one, number) for one in opened):
            yield f"process {process.name} ({name}) has it open"


def _signature(device: Path) -> Iterator[str]:
    """What libblkid sees on it: file systems, partition tables, LVM, RAID, LUKS, Ceph's labels and more."""
    if shutil.which("blkid") is None:
        yield "there is no blkid to look for file systems and labels with; install util-linux"
        return
    asked = ["blkid", "--probe", "--output", "export", "--", str(device)]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=_PROBE_S)
    except subprocess.TimeoutExpired:
        yield f"it did not answer blkid for {_PROBE_S:.0f} s"
        return
    values = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    if done.returncode == 0 and (kind := values.get("TYPE") or values.get("PTTYPE")):
        yield f"it has {kind} on it"
    elif done.returncode != _NOTHING_FOUND:
        yield f"blkid cannot tell what is on it (exit code {done.returncode}) {done.stderr.strip()}".rstrip()
