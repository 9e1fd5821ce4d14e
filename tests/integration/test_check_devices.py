"""`leadline check --on` and `--destroy`: the figures are so, the slow one is found, nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from leadline.check.storage.places import why_not_empty
from provoking import join, own_group, wait_until, why_no_disk
from support import Command, Start

MIB = 1 << 20
# Bytes and operations a second of a loop device that is held back; the slow one has a quarter.
RATE, IOPS = 40 * MIB, 2000
Make = Callable[..., str]


@pytest.fixture
def loops(tmp_path: Path) -> Iterator[Make]:
    """Makes loop devices on files in memory, as no disk's own pace shall be in their figures."""
    if reason := why_no_disk():
        pytest.skip(f"NO DEVICE OF ITS OWN: {reason}")
    place = Path("/dev/shm", f"leadline-test-{os.getpid()}-devices")
    place.mkdir()
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, place)

        def make(size: int = 64 * MIB) -> str:
            image = place / f"{len(list(place.iterdir()))}.img"
            with image.open("wb") as file:
                file.truncate(size)
            made = said("losetup", "--find", "--show", str(image)).strip()
            stack.callback(said, "losetup", "--detach", made)
            return made

        yield make


def said(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@contextmanager
def held_back(devices: list[str], slow: str) -> Iterator[Path]:
    """A group in which each device has its limit. Skips where this machine has no such groups."""
    controllers = {"blkio": 1, "io": 2}
    for controller in controllers:
        try:
            with own_group(controller, {1: {}, 2: {}}) as group:
                for device in devices:
                    limit(group, device, 4 if device == slow else 1)
                yield group
                return
        except FileNotFoundError:
            continue
    pytest.skip("no control group of block devices can be made here")


def limit(group: Path, device: str, parts: int) -> None:
    facts = Path(device).stat().st_rdev
    number = f"{os.major(facts)}:{os.minor(facts)}"
    if (group / "io.max").exists():
        (group / "io.max").write_text(f"{number} rbps={RATE // parts} riops={IOPS // parts}")
    else:
        (group / "blkio.throttle.read_bps_device").write_text(f"{number} {RATE // parts}")
        (group / "blkio.throttle.read_iops_device").write_text(f"{number} {IOPS // parts}")


def checked(leadline: Command, *words: str, **more: Any) -> dict[str, Any]:
    done = leadline("check", "--no-ceph", "--json", *words, timeout=200, **more)
    assert done.returncode in (0, 3), done.stderr  # 3: this machine's clock may be nobody's
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_slow_one_of_three_is_found_and_no_other(leadline: Command, loops: Make) -> None:
    devices = [loops() for _ in range(3)]
    slow = devices[1]
    with held_back(devices, slow) as group:
        found = checked(
            leadline, *(word for one in devices for word in ("--on", one)), preexec_fn=join(group)
        )
    measured = [one for one in found["checked"] if "of-others" in one["name"] or "read" in one["name"]]
    bad = {(one["name"], one["subject"]) for one in measured if one["state"] == "out_of_line"}
    assert {subject.partition(":")[2].partition("@")[0] for _, subject in bad} == {slow}
    assert {name for name, _ in bad} >= {"read-1m", "randread-64k", "randread-4k"}
    # As held back as the kernel holds them: the limit itself is the other means.
    figures = {
        fact["subject"].partition(":")[2].partition("@")[0]: fact["value"]
        for fact in found["facts"]
        if fact["name"] == "randread_4k_iops"
    }
    for device in devices:
        allowed = IOPS / (4 if device == slow else 1)
        assert 0.6 * allowed < figures[device] < 1.4 * allowed  # throttling hands out slices of 100 ms
    share = next(fact for fact in found["facts"] if fact["name"] == "read_1m_scaling")
    # Each is held back for itself. Where other programs take the processors, the answer is their share.
    assert (share["value"] or 0) > 0.7 or "processors were busy" in share["missing"]


def test_a_device_that_gives_errors_is_a_gap_with_its_reason(leadline: Command, loops: Make) -> None:
    device = loops()
    image = Path(said("losetup", "--noheadings", "--output", "BACK-FILE", device).strip())
    os.truncate(image, 2 * MIB)
    found = checked(leadline, "--on", device)
    facts = {fact["name"]: fact for fact in found["facts"] if device in fact["subject"]}
    assert facts["randread_4k_iops"]["value"] is None
    assert facts["randread_4k_iops"]["missing"] == os.strerror(5)


def test_a_directory_never_shows_a_file_and_a_kill_leaves_none(start: Start, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    process = start("check", "--no-ceph", "--on", str(place))
    wait_until(lambda: bool(measuring(process.pid)))
    (child, *_) = measuring(process.pid)
    wait_until(lambda: any(str(place) in words for words in open_files(child.pid)))
    assert list(place.iterdir()) == []
    process.kill()
    process.wait()
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    assert list(place.iterdir()) == []


def open_files(pid: int) -> Iterator[str]:
    """What its descriptors lead to; one that it closes meanwhile leads nowhere."""
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            yield str(one.readlink())


def measuring(pid: int) -> list[psutil.Process]:
    """Which processes below this one measure a place; others of them may end meanwhile."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):
            if "check.storage.child" in " ".join(child.cmdline()):
                found.append(child)
    return found


def test_what_carries_anything_is_never_written(leadline: Command, loops: Make, tmp_path: Path) -> None:
    """Each of its reasons; and the bytes of what was refused are the same afterwards."""
    device = loops()
    assert why_not_empty(Path(device)) is None
    said("mkfs.ext4", "-q", device)
    before = Path(device).read_bytes()
    done = leadline("check", "--no-ceph", "--destroy", device)
    assert done.returncode == 2
    assert "it has ext4 on it" in done.stderr
    assert "nothing was written" in done.stderr
    assert Path(device).read_bytes() == before
    (tmp_path / "mounted").mkdir()
    said("mount", device, str(tmp_path / "mounted"))
    try:
        assert "mounted on" in str(why_not_empty(Path(device)))
    finally:
        said("umount", str(tmp_path / "mounted"))
    swap = loops()
    said("mkswap", swap)
    assert why_not_empty(Path(swap)) == "it has swap on it"
    parts = loops()
    with Path(parts).open("r+b") as disk:  # a table of one partition of Linux's, from sector 2,048 on
        disk.seek(446)
        disk.write(
            struct.pack("<B3sB3sII", 0, bytes(3), 0x83, bytes(3), 2048, 16384) + bytes(48) + b"\x55\xaa"
        )
    assert why_not_empty(Path(parts)) == "it has dos on it"
    used = loops()
    with Path(used).open("rb"):
        assert f"process {os.getpid()}" in str(why_not_empty(Path(used)))
    assert why_not_empty(Path(used)) is None
    said("blockdev", "--setro", used)
    try:
        assert why_not_empty(Path(used)) == "it is read-only"
    finally:
        said("blockdev", "--setrw", used)  # the kernel keeps that for the number, whatever is attached next
    assert why_not_empty(tmp_path) == "it is no block device"


def test_an_empty_device_is_written_where_it_was_named(leadline: Command, loops: Make) -> None:
    device = loops()
    found = checked(leadline, "--destroy", device)
    facts = {fact["name"]: fact["value"] for fact in found["facts"] if device in fact["subject"]}
    assert facts["randwrite_4k_iops"] > 0
    assert facts["fua_us"] > 0
    assert Path(device).read_bytes().strip(b"\0")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--on", "{file}"), "neither a directory nor a block device"),
        (("--destroy", "{file}"), "neither a directory nor a block device"),
        (("--on", "{place}", "--on", "{place}"), "given twice"),
        (("--on", "{place}/none"), "does not exist"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    leadline: Command, tmp_path: Path, words: tuple[str, ...], complaint: str
) -> None:
    (tmp_path / "file").write_text("")
    made = [word.format(file=tmp_path / "file", place=tmp_path) for word in words]
    done = leadline("check", "--no-ceph", *made)
    assert done.returncode == 2
    assert complaint in done.stderr
