"""A lab's control groups hold what they are told to, of both versions, and nothing of them stays.

Version 2 on made directory trees; version 1 on the kernel's own, where it has it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.errors import LabError
from leadline.lab.cgroups import ControlGroups, Controller
from leadline.lab.cluster.process import poll
from leadline.lab.network.topology import MachineLimits

LIMITS = MachineLimits(cpu=0.05, memory_bytes=1 << 30, disk_read_bytes_s=1000, disk_write_bytes_s=2000)
BUSY = [sys.executable, "-c", "while True: pass"]


class Tree:
    """A made tree of version 2 that behaves as far as rmdir goes: files of groups vanish with them."""

    def __init__(self, path: Path) -> None:
        self.root = path / "cgroup"
        (path / "proc/self").mkdir(parents=True)
        self.root.mkdir()
        (self.root / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
        (self.root / "cgroup.subtree_control").write_text("")
        (self.root / "cgroup.procs").write_text("")
        line = f"30 20 0:26 / {self.root} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
        (path / "proc/self/mountinfo").write_text(f"20 1 8:1 / / rw - ext4 /dev/sda rw\n{line}")
        self.groups = ControlGroups("0123456789abcdef", proc=path / "proc")

    def text(self, name: str) -> str:
        return (self.root / "leadline-01234567" / name).read_text()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_limits_of_version_2_are_written_and_delegated(tree: Tree) -> None:
    tree.groups.limit("host1", LIMITS, "8:0")
    assert tree.text("host1/cpu.max") == "5000 100000"
    assert tree.text("host1/memory.max") == str(1 << 30)
    assert tree.text("host1/io.max") == "8:0 rbps=1000 wbps=2000"
    assert (tree.root / "cgroup.subtree_control").read_text() == "+memory"  # the last of three


def test_what_is_limited_in_two_ways_stays_in_its_group_until_the_last(tree: Tree) -> None:
    tree.groups.limit("osd.1", MachineLimits(cpu=0.5, memory_bytes=4096))
    group = tree.root / "leadline-01234567/osd.1"
    tree.groups.leave("osd.1", "cpu", "/")
    assert (tree.text("osd.1/cpu.max"), tree.text("osd.1/memory.max")) == ("max", "4096")
    for name in ("cpu.max", "memory.max"):  # as the kernel's rmdir does
        (group / name).unlink()
    (group / "memory.max").write_text("4096")
    with pytest.raises(OSError, match="not empty"):  # a made tree's files do not vanish by themselves
        tree.groups.leave("osd.1", "memory", "/")
    assert tree.text("osd.1/memory.max") == "max"


def test_what_goes_back_goes_where_it_was(tree: Tree) -> None:
    (tree.root / "system.slice").mkdir()
    (tree.root / "system.slice/cgroup.procs").write_text("")
    group = tree.root / "leadline-01234567/osd.1"
    group.mkdir(parents=True)
    (group / "cgroup.procs").write_text("4711\n")
    with pytest.raises(OSError, match="not empty"):
        tree.groups.leave("osd.1", "memory", "/system.slice")
    assert (tree.root / "system.slice/cgroup.procs").read_text() == "4711"


@pytest.mark.parametrize("back", ["/gone", "/leadline-01234567/osd.1", "/../../etc"])
def test_what_cannot_go_back_goes_to_the_root(tree: Tree, back: str) -> None:
    group = tree.root / "leadline-01234567/osd.1"
    group.mkdir(parents=True)
    (group / "cgroup.procs").write_text("4711\n")
    with pytest.raises(OSError, match="not empty"):
        tree.groups.leave("osd.1", "memory", back)
    assert (tree.root / "cgroup.procs").read_text() == "4711"


def test_where_the_kernel_has_no_controller_it_says_so(tree: Tree) -> None:
    (tree.root / "cgroup.controllers").write_text("cpu\n")
    assert "no control group has the controller blkio (v1) or io (v2)" in tree.groups.lacking("disk")
    with pytest.raises(LabError, match="disk cannot be limited"):
        tree.groups.limit("host1", MachineLimits(disk_read_bytes_s=1), "8:0")
    assert list(tree.root.glob("leadline*")) == []


def test_a_partition_is_limited_by_its_disk(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    disk = tmp_path / "devices/sda"
    (disk / "sda1").mkdir(parents=True)
    (disk / "dev").write_text("8:0\n")
    (disk / "sda1/partition").write_text("1\n")
    (tmp_path / "blocks").mkdir()
    groups = ControlGroups("x", blocks=tmp_path / "blocks")
    with pytest.raises(LabError, match="not on a block device"):
        groups.device_of(tmp_path)
    (tmp_path / f"blocks/{os.major(number)}:{os.minor(number)}").symlink_to(disk / "sda1")
    assert groups.device_of(tmp_path) == "8:0"


@pytest.fixture
def kernel() -> Iterator[ControlGroups]:
    groups = ControlGroups(uuid.uuid4().hex)
    if reason := groups.lacking("cpu"):
        pytest.skip(f"NOT RUN: {reason}")
    yield groups
    groups.remove_all()


@pytest.fixture
def busy() -> Iterator[int]:
    with subprocess.Popen(BUSY) as process:
        yield process.pid
        process.kill()


def throttled(groups: ControlGroups, name: str) -> int:
    hierarchy = groups.hierarchy("cpu")
    assert hierarchy is not None
    text = (hierarchy.root / f"leadline-{groups.fsid[:8]}" / name / "cpu.stat").read_text()
    return int(dict(line.split() for line in text.splitlines())["nr_throttled"])


def left(groups: ControlGroups) -> list[str]:
    controllers: tuple[Controller, ...] = ("cpu", "memory", "disk")
    found = [groups.hierarchy(controller) for controller in controllers]
    return [str(path) for item in found if item for path in item.root.glob(f"leadline-{groups.fsid[:8]}*")]


def test_a_busy_process_is_throttled_and_goes_back(kernel: ControlGroups, busy: int) -> None:
    before = kernel.place_of("cpu", busy)
    kernel.limit("osd.1", MachineLimits(cpu=0.05))
    kernel.enter("osd.1", busy)
    assert kernel.place_of("cpu", busy) == f"/leadline-{kernel.fsid[:8]}/osd.1"
    assert poll(lambda: throttled(kernel, "osd.1") > 2, 20.0)
    kernel.leave("osd.1", "cpu", before)
    kernel.leave("osd.1", "cpu", before)
    assert kernel.place_of("cpu", busy) == before
    assert left(kernel) == []


def test_all_groups_of_a_lab_go_with_processes_in_them(kernel: ControlGroups, busy: int) -> None:
    for name in ("host1", "client1"):
        kernel.limit(name, MachineLimits(cpu=0.5))
    kernel.enter("host1", busy)
    assert left(kernel) != []
    kernel.remove_all()
    assert left(kernel) == []
    assert poll(lambda: kernel.place_of("cpu", busy) == "/", 5.0)


def test_what_cannot_be_limited_here_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_text("")
    with pytest.raises(LabError, match="memory cannot be limited: no control group has"):
        ControlGroups("f", proc=tmp_path).require([MachineLimits(memory_bytes=1 << 20)], tmp_path)
