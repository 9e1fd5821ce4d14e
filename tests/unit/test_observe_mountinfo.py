"""The mount table: escapes, optional fields, the mount that holds a path, the device below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.observe.mounts.mountinfo import (
    backing_file,
    device_of_mount,
    mount_by_id,
    mount_of,
    parse_mountinfo,
)

TABLE = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:1 / / rw,relatime shared:1 master:2 - ext4 /dev/vda1 rw,discard
30 27 0:40 / /mnt/with\040space\011and\134tab rw - fuse.ceph-fuse ceph-fuse rw,user_id=0
31 27 0:41 / /mnt/nfs rw shared:7 - nfs4 server:/export rw,vers=4.2,addr=10.0.0.9
32 27 0:42 / /merged rw - overlay overlay rw,lowerdir=/l,upperdir=/var/up,workdir=/w
33 27 7:0 / /mnt/loop rw - xfs /dev/loop0 rw
34 31 0:43 / /mnt/nfs rw - tmpfs tmpfs rw
35 27 0:44 / /mnt/nfs2 rw - nfs4 server:/two rw
this line is broken
36 27 bad:device / /x rw - ext4 /dev/x rw
"""


@pytest.fixture
def sys_root(tmp_path: Path) -> Path:
    for number, name in (("254:1", "vda1"), ("7:0", "loop0")):
        block = tmp_path / "class" / "block" / name
        block.mkdir(parents=True)
        link = tmp_path / "dev" / "block" / number
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(block)
    loop = tmp_path / "class" / "block" / "loop0" / "loop"
    loop.mkdir()
    (loop / "backing_file").write_text("/images/a b.img\n")
    return tmp_path


def test_escapes_are_undone_and_broken_lines_left_out() -> None:
    mounts = parse_mountinfo(TABLE)
    assert [mount.mount_id for mount in mounts] == [22, 27, 30, 31, 32, 33, 34, 35]
    assert mounts[2].mount_point == "/mnt/with space\tand\\tab"
    assert mounts[1].source == "/dev/vda1"
    assert mounts[3].option("addr") == "10.0.0.9"
    assert mounts[3].option("absent") is None


@pytest.mark.parametrize(
    ("path", "mount_id"),
    [
        ("/mnt/loop/a/b", 33),
        ("/mnt/loop", 33),
        ("/mnt/loopy", 27),
        ("/mnt/nfs/x", 34),
        ("/mnt/nfs2", 35),
        ("/", 27),
    ],
)
def test_longest_and_latest_mount_point_holds_a_path(path: str, mount_id: int) -> None:
    found = mount_of(path, parse_mountinfo(TABLE))
    assert found is not None
    assert found.mount_id == mount_id


def test_mount_by_the_kernels_number() -> None:
    mounts = parse_mountinfo(TABLE)
    assert mount_by_id(31, mounts) == mounts[3]
    assert mount_by_id(None, mounts) is None


@pytest.mark.parametrize(
    ("path", "device"),
    [("/home", "vda1"), ("/merged/x", "vda1"), ("/mnt/loop/x", "loop0"), ("/mnt/nfs2/x", None)],
)
def test_device_is_the_partition_and_an_overlays_is_its_upper_directorys(
    sys_root: Path, path: str, device: str | None
) -> None:
    mounts = parse_mountinfo(TABLE)
    mount = mount_of(path, mounts)
    assert mount is not None
    assert device_of_mount(mount, mounts, sys_root) == device


def test_loop_device_names_its_file(sys_root: Path) -> None:
    assert backing_file("loop0", sys_root) == "/images/a b.img"
    assert backing_file("vda1", sys_root) is None
