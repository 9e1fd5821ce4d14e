"""Whom the observers believe: the process that holds a mount, and files that nobody else could write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

import slow_fuse
from leadline.observe.ceph.osds import local_osd_sockets
from leadline.observe.mounts import mounts
from leadline.observe.mounts.fuse_client import find_client, processes_named
from leadline.observe.mounts.mountinfo import Mount, read_mounts
from leadline.observe.mounts.mounts import words_of
from leadline.study.target import TargetFacts
from leadline.trusted import why_not_file

NOBODY = 65534
# Takes the name, holds a descriptor of FUSE that serves no mount, becomes the user, and waits.
IMPOSTOR = """
import os, sys
open("/proc/self/comm", "w").write("ceph-fuse")
held, user = open("/dev/fuse", "r+b", 0), int(sys.argv[1])
os.setgroups([]), os.setgid(user), os.setuid(user)
print("ready", flush=True)
sys.stdin.read()
"""
# Takes an OSD's name, and answers on an admin socket as an OSD of the cluster `f` does.
OSD = """
import json, os, socket, struct, sys
open("/proc/self/comm", "w").write("ceph-osd")
user, listening = int(sys.argv[1]), socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[2])
listening.listen()
os.setgroups([]), os.setgid(user), os.setuid(user)
print("ready", flush=True)
answer = json.dumps({"cluster_fsid": "f", "whoami": 7}).encode()
while True:
    asking = listening.accept()[0]
    asking.recv(1000)
    asking.sendall(struct.pack(">I", len(answer)) + answer)
"""
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="to be two users needs root"),
    pytest.mark.skipif(slow_fuse.missing() is not None, reason=str(slow_fuse.missing())),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory of root's that everybody may enter, as pytest's own is not."""
    for directory in (tmp_path, *tmp_path.parents[:2]):
        directory.chmod(0o755)
    return tmp_path


@contextmanager
def impostor(place: Path, *words: str, user: int, does: str = IMPOSTOR) -> Iterator[int]:
    """A process that calls itself what it is not, with these words on its command line; its number."""
    script = place / "impostor.py"
    script.write_text(does)
    command = [sys.executable, "-I", "-S", str(script), str(user), *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


def command_line(pid: int) -> list[str]:
    """A process's command line; nothing of one that has ended, as another test's on this machine may."""
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []


@contextmanager
def mounted(place: Path, program: str) -> Iterator[tuple[Mount, int]]:
    """A real FUSE mount, and the process that serves it, called `program`."""
    place.mkdir(exist_ok=True)
    copy = place / program
    shutil.copy(slow_fuse.build(), copy)
    with slow_fuse.mounted(copy, place) as found:
        mount = next(mount for mount in read_mounts() if mount.mount_point == str(found.path))
        pids = [pid for pid in processes_named(program) if str(found.path) in command_line(pid)]
        assert len(pids) == 1
        yield mount, pids[0]


def test_the_process_that_holds_a_mount_is_found_among_others_that_claim_to(place: Path) -> None:
    with ExitStack() as stack:
        one, first = stack.enter_context(mounted(place / "one", "ceph-fuse"))
        two, second = stack.enter_context(mounted(place / "two", "ceph-fuse"))
        evil = str(place / "evil.conf")
        stack.enter_context(impostor(place, "--conf", evil, one.mount_point, user=NOBODY))
        for mount, pid in ((one, first), (two, second)):
            found = find_client(mount)
            assert (found.client_pid, found.conf, found.distrusted) == (pid, None, None)


def test_the_connection_decides_even_against_a_process_of_the_owners(place: Path) -> None:
    with ExitStack() as stack:
        mount, pid = stack.enter_context(mounted(place / "m", "ceph-fuse"))
        if not any("fuse_connection" in file.read_text() for file in Path(f"/proc/{pid}/fdinfo").iterdir()):
            pytest.skip("this kernel does not say which mount a descriptor serves")
        stack.enter_context(impostor(place, mount.mount_point, user=0))
        assert find_client(mount).client_pid == pid


def test_another_users_process_called_ceph_fuse_is_not_believed_and_that_is_said(place: Path) -> None:
    evil = place / "evil.conf"
    evil.write_text("[global]\n")
    os.chown(evil, NOBODY, NOBODY)
    with mounted(place / "m", "other") as (mount, _), impostor(
        place, "--conf", str(evil), "--admin-socket", str(place / "s"), mount.mount_point, user=NOBODY
    ) as pid:  # fmt: skip
        found = find_client(mount)
    assert (found.client_pid, found.conf, found.keyring, found.client_socket) == (None, None, None, None)
    assert found.distrusted == (
        f"process {pid} called ceph-fuse runs as uid {NOBODY}, and the mount belongs to uid 0"
    )
    words = words_of(TargetFacts("ceph-fuse", "fuse.ceph-fuse", "", ceph=found), mount)
    assert words == f"CephFS through ceph-fuse; its cluster is not asked: {found.distrusted}"


def test_where_the_kernel_does_not_tell_the_command_line_decides_or_nothing_does(place: Path) -> None:
    with ExitStack() as stack:
        mount, _ = stack.enter_context(mounted(place / "m", "other"))
        elsewhere = [stack.enter_context(impostor(place, "/elsewhere", user=0)) for _ in range(2)]
        found = find_client(mount)
        assert found.client_pid is None
        assert found.distrusted == (
            f"which of the processes {elsewhere[0]}, {elsewhere[1]} serves it is not known"
        )
        named = stack.enter_context(impostor(place, mount.mount_point, user=0))
        assert find_client(mount).client_pid == named


@pytest.mark.parametrize("option", ["--conf", "--keyring"])
def test_a_file_that_another_user_could_write_is_not_used(place: Path, option: str) -> None:
    file = place / "given"
    file.write_text("")
    with mounted(place / "m", "other") as (mount, _), impostor(
        place, option, str(file), mount.mount_point, user=0
    ) as pid:  # fmt: skip
        found = find_client(mount)
        assert (found.conf or found.keyring, found.distrusted) == (str(file), None)
        os.chown(file, NOBODY, 0)
        found = find_client(mount)
    assert (found.client_pid, found.conf, found.keyring) == (pid, None, None)
    assert found.distrusted == f"its process {pid} names {file}, and {file} belongs to uid {NOBODY}"


def test_a_file_that_a_mount_of_the_kernels_client_names_is_held_to_the_same(place: Path) -> None:
    file = place / "ceph.conf"
    file.write_text("")
    mount = Mount(1, 0, 0, 99, "/", "/m", ("rw",), "ceph", "10.0.0.1:/", ("name=a", f"conf={file}"))
    assert mounts._ceph_access(mount, {}).conf == str(file)
    file.chmod(0o666)
    access = mounts._ceph_access(mount, {})
    assert access.conf is None
    assert access.distrusted == f"the mount names {file}, and others may write {file}"


def test_another_users_process_called_ceph_osd_is_not_asked(place: Path) -> None:
    with impostor(place, str(place / "a.asok"), user=NOBODY, does=OSD):
        assert local_osd_sockets("f") == {}
    with impostor(place, str(place / "b.asok"), user=0, does=OSD) as pid:
        assert local_osd_sockets("f") == {7: (str(place / "b.asok"), pid)}


def test_a_file_is_believed_by_its_owner_its_mode_its_links_and_every_directory_above(place: Path) -> None:
    file, link, sticky, theirs = place / "file", place / "link", place / "sticky", place / "theirs"
    file.write_text("")
    link.symlink_to("sticky/../file")
    sticky.mkdir()
    sticky.chmod(0o1777)
    theirs.mkdir()
    for good in (file, link, sticky):
        assert why_not_file(str(good)) == ""
    (sticky / "planted").symlink_to(file)
    os.lchown(sticky / "planted", NOBODY, NOBODY)
    assert why_not_file(str(sticky / "planted")) == f"{sticky / 'planted'} belongs to uid {NOBODY}"
    (theirs / "file").write_text("")
    os.chown(theirs, NOBODY, NOBODY)
    assert why_not_file(str(theirs / "file")) == f"{theirs} belongs to uid {NOBODY}"
    (place / "through").symlink_to(theirs / "file")
    assert why_not_file(str(place / "through")) == f"{theirs} belongs to uid {NOBODY}"
    file.chmod(0o664)
    assert why_not_file(str(link)) == f"others may write {file}"
    sticky.chmod(0o777)
    assert why_not_file(str(sticky)) == f"others may write {sticky}"
    (place / "loop").symlink_to("loop")
    assert why_not_file(str(place / "loop")).endswith("is a loop of links")
    assert why_not_file(str(place / "gone")) == f"{place / 'gone'}: No such file or directory"
