"""What a target is, tried on this machine's own directories."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from leadline.errors import TargetError
from leadline.observe import probe
from leadline.observe.hang_guard import Doing, ask_child
from leadline.observe.mounts import mounts
from leadline.observe.mounts.fuse_client import parse_arguments
from leadline.observe.mounts.mountinfo import Mount, parse_mountinfo
from leadline.observe.mounts.mounts import words_of
from leadline.observe.probe import parse_layout
from leadline.study import schemes
from leadline.study.target import CephAccess, TargetFacts


def test_directory_is_described_and_nothing_is_left_in_it(tmp_path: Path) -> None:
    before = list(tmp_path.iterdir())
    facts = mounts.inspect(str(tmp_path))
    assert list(tmp_path.iterdir()) == before
    assert facts.access == "local"
    assert facts.words
    assert facts.free_bytes
    assert facts.total_bytes
    assert facts.total_bytes >= facts.free_bytes
    assert TargetFacts.from_json(facts.as_json()) == facts


def test_symbolic_link_is_followed(tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        pytest.skip("/dev/shm cannot be written here")
    link = tmp_path / "link"
    link.symlink_to(memory)
    facts = mounts.inspect(str(link))
    assert facts.in_memory
    assert facts.device is None
    assert facts.mount_point == "/dev/shm"


@pytest.mark.parametrize("kind", ["symlink", "link"])
def test_what_another_user_puts_in_the_place_of_the_probes_file_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As on a file system without O_TMPFILE, in a directory that others may write."""
    kept, real = tmp_path / "kept", os.open
    kept.write_bytes(b"the user's own")

    def attacked(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        if not flags & os.O_CREAT:
            Path(path).unlink()
            getattr(os, kind)(kept, path)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", attacked)
    assert not probe._direct(str(tmp_path))["direct_io"]
    assert kept.read_bytes() == b"the user's own"
    assert list(tmp_path.iterdir()) == [kept]


def test_null_is_no_storage() -> None:
    facts = mounts.inspect("null://")
    assert facts.access == "null"
    assert facts.free_bytes is None


@pytest.mark.parametrize(
    "url", ["", "with\0zero", "s3://bucket", "/", "/dev/null", "/etc/passwd", "/no/such/place"]
)
def test_what_cannot_be_a_target_is_refused_with_a_remedy(url: str) -> None:
    with pytest.raises(TargetError) as error:
        mounts.inspect(url)
    assert error.value.remedy


def test_hostile_name_stays_on_one_line(tmp_path: Path) -> None:
    with pytest.raises(TargetError) as error:
        mounts.inspect(str(tmp_path / "a\nb\x1b[31m<script>"))
    assert "\n" not in error.value.message
    assert "\x1b" not in error.value.message
    assert "a\\nb\\x1b[31m<script>" in error.value.message


def test_name_that_is_no_text_can_be_measured(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"\xff'\"\n<script>")
    odd.mkdir()
    assert mounts.inspect(str(odd)).free_bytes
    assert mounts.printable(str(odd)).endswith("\\udcff'\"\\n<script>")


def test_a_chroot_whose_root_is_no_mount_is_told_what_to_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc = "22 1 0:20 / /proc rw - proc proc rw"
    monkeypatch.setattr(mounts, "read_mounts", lambda: parse_mountinfo(proc))
    for ask in (mounts.inspect, mounts.look):
        with pytest.raises(TargetError, match="the root of this chroot is no mount") as error:
            ask(str(tmp_path))
        assert "mount --bind ROOT ROOT" in error.value.remedy


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_directory_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(TargetError, match="no permission"):
        mounts.inspect(str(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting needs root")
def test_read_only_and_full_file_systems_are_refused(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path)], check=True)
    try:
        with pytest.raises(OSError, match="space"), (tmp_path / "fill").open("wb") as file:
            file.write(bytes(1 << 20))
        with pytest.raises(TargetError, match="full"):
            mounts.inspect(str(tmp_path))
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        with pytest.raises(TargetError, match="read-only"):
            mounts.inspect(str(tmp_path))
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_mount_that_hangs_is_reported_with_the_process_that_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def hung(_path: str, doing: Doing, **_: bool) -> dict[str, Any]:
        doing("/proc/self", "asking for free space")
        time.sleep(60)
        return {}

    monkeypatch.setattr(mounts, "probe_path", hung)
    with pytest.raises(
        TargetError, match=r"proc at /proc.*while asking for free space; process \d+ was ended"
    ):
        mounts.inspect("/proc", deadline_s=0.1)


def test_child_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    # Opening a FIFO without a writer blocks as a hung mount does: this module reads the file it is named.
    answer = ask_child("tokenize", [str(fifo)], deadline_s=0.5)
    assert answer.stuck_pid is not None
    assert answer.exit_code is None


def _mount(file_system: str, source: str, *options: str) -> Mount:
    return Mount(1, 0, 0, 99, "/", "/m", ("rw",), file_system, source, options)


@pytest.mark.parametrize(
    ("mount", "ceph", "words"),
    [
        (_mount("nfs4", "server:/export", "vers=4.2"), None, "NFS 4.2 from server:/export"),
        (_mount("cifs", "//server/share"), None, "SMB from //server/share"),
        (_mount("fuse.sshfs", "host:"), None, "fuse.sshfs from host: (a FUSE file system)"),
        (
            _mount("fuse.ceph-fuse", "ceph-fuse"),
            CephAccess(pool="data", protection="replicated", size=3),
            "CephFS through ceph-fuse, pool data (3 replicas)",
        ),
        (
            _mount("ceph", "10.0.0.1:/"),
            CephAccess(pool="ec", protection="erasure", size=9, k=6, m=3),
            "CephFS through the kernel client, pool ec (erasure-coded 6+3)",
        ),
        (
            _mount("fuse.ceph-fuse", "ceph-fuse"),
            CephAccess(
                pool="data",
                client_version="16.2.15",
                namespace="team",
                layout={"object_size": 4 << 20, "stripe_unit": 4 << 20, "stripe_count": 1},
                quota_bytes=10 << 30,
                quota_files=5000,
                snapshots=2,
            ),
            "CephFS through ceph-fuse 16.2.15, pool data, namespace team, objects of 4 MiB,"
            " quota 10 GiB and 5,000 files, 2 snapshots",
        ),
        (
            _mount("fuse.ceph-fuse", "ceph-fuse"),
            CephAccess(
                layout={"object_size": 4 << 20, "stripe_unit": 65536, "stripe_count": 4},
                quota_bytes=0,
                quota_files=0,
                snapshots=0,
            ),
            "CephFS through ceph-fuse, objects of 4 MiB striped 64 KiB x 4, no quota",
        ),
    ],
)
def test_words_say_what_a_target_is(mount: Mount, ceph: CephAccess | None, words: str) -> None:
    access = schemes.OF_FILE_SYSTEM.get(mount.file_system, schemes.LOCAL).name
    facts = TargetFacts(access=access, file_system=mount.file_system, words="", ceph=ceph)
    assert words_of(facts, mount) == words


_KERNEL_MOUNTS = [
    (
        "41 30 0:52 / /mnt/c rw,relatime - ceph 10.0.0.1:6789:/ rw,name=admin,secret=<hidden>,"
        "ms_mode=prefer-crc,acl,wsync",
        "CephFS through the kernel client, ms_mode prefer-crc, wsync",
    ),
    (
        "42 30 0:53 / /mnt/n rw,relatime - nfs4 10.0.0.1:/ceph rw,vers=4.2,rsize=1048576,wsize=524288,"
        "namlen=255,hard,proto=tcp,port=2049,timeo=600,sec=sys,clientaddr=10.0.0.2,local_lock=none,addr=10.0.0.1",
        "NFS 4.2 from 10.0.0.1:/ceph, rsize 1 MiB, wsize 512 KiB, sec sys, local_lock none",
    ),
    (
        "43 30 0:54 / /mnt/s rw,relatime - cifs //10.0.0.1/ceph rw,vers=3.1.1,cache=strict,username=u,"
        "rsize=4194304,wsize=4194304,actimeo=1,nobrl",
        "SMB 3.1.1 from //10.0.0.1/ceph, cache strict, rsize 4 MiB, wsize 4 MiB, actimeo 1, nobrl",
    ),
]


@pytest.mark.parametrize(("line", "words"), _KERNEL_MOUNTS)
def test_words_of_a_kernel_mount_give_the_options_in_force(line: str, words: str) -> None:
    (mount,) = parse_mountinfo(line)
    access = schemes.OF_FILE_SYSTEM[mount.file_system].name
    ceph = CephAccess() if access == "ceph-kernel" else None
    facts = TargetFacts(access=access, file_system=mount.file_system, words="", ceph=ceph)
    assert words_of(facts, mount) == words


def test_secrets_of_mount_options_are_left_out() -> None:
    row = "36 1 0:40 / /mnt/c rw,noatime - ceph 10.0.0.1:/ rw,name=admin,secret=AQD==,password=x,key=y\n"
    (mount,) = parse_mountinfo(row)
    assert mounts.shown_options(mount) == ("rw", "noatime", "name=admin")


def test_layout_of_a_directory() -> None:
    text = "stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=cephfs data pool_namespace=n"
    assert parse_layout(text) == {
        "pool": "cephfs data",
        "namespace": "n",
        "layout": {"stripe_unit": 4194304, "stripe_count": 1, "object_size": 4194304},
    }


def test_arguments_of_ceph_fuse_without_its_key() -> None:
    arguments = parse_arguments(
        [
            "-c",
            "/l/ceph.conf",
            "--id=lab",
            "--key",
            "AQD==",
            "--client_mountpoint=/",
            "-o",
            "allow_other",
            "/mnt/a",
        ]
    )
    assert arguments.conf == "/l/ceph.conf"
    assert arguments.name == "client.lab"
    assert arguments.positional == ("/mnt/a",)
    assert "AQD" not in repr(arguments)
    assert parse_arguments(["--admin_socket", "/r/$name.asok", "m"]).positional == ("m",)


@pytest.mark.parametrize("odd", ["\x0b", "\x1c", "\x85", "\u2028"])
def test_only_a_line_feed_ends_a_row_of_the_mount_table(odd: str) -> None:
    row = f"36 1 0:40 / /mnt/a{odd}b rw - tmpfs none rw\n37 1 0:41 / /mnt/c rw - tmpfs none rw\n"
    assert [mount.mount_point for mount in parse_mountinfo(row)] == [f"/mnt/a{odd}b", "/mnt/c"]
