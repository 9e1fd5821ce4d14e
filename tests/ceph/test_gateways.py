"""The gateways of a lab: what one way writes, the other reads; what fails says why; nothing is left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from leadline import _core
from leadline import lab as leadline_lab
from leadline.lab.cluster import process
from leadline.lab.cluster.process import poll
from leadline.lab.gateways import kinds
from leadline.lab.gateways.kinds import KINDS
from leadline.lab.record import read_record
from support import Command, command_line
from undoing import MARK, OURS, PRECIOUS, crafted, intended

pytestmark = pytest.mark.ceph

DATA = os.urandom((5 << 20) + 17)  # more than an object, and no multiple of a page
Target = Callable[[str], leadline_lab.LabTarget]


def client(*words: str, **variables: str) -> bytes:
    """Runs one of Debian's clients; skips the test where it is not installed."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"NOT RUN: no program {words[0]}")
    quick = {"XRD_CONNECTIONRETRY": "1", "XRD_CONNECTIONWINDOW": "5", "XRD_REQUESTTIMEOUT": "20"}
    done = subprocess.run(
        words, env=os.environ | quick | variables, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(DATA)
    return path


def nfs_url(target: leadline_lab.LabTarget, name: str) -> str:
    """A URL in libnfs's own words."""
    parts = urlsplit(target.where)
    version, rest = ("3", f"&{parts.query}") if parts.query else ("4", "?version=4")
    query = rest.replace("&", "?", 1) + f"&nfsport={parts.port}"
    assert f"version={version}" in query
    return f"nfs://{parts.hostname}{parts.path}/{name}{query}"


def test_nfs_3_and_ceph_fuse_see_the_same_bytes(
    lab: leadline_lab.Lab, target: Target, source: Path, tmp_path: Path
) -> None:
    nfs, back = target("nfs3"), tmp_path / "back"
    mounted = lab.status().targets["replicated"]
    client("nfs-cp", str(source), nfs_url(nfs, "by-nfs"))
    assert (mounted / "by-nfs").read_bytes() == DATA
    (mounted / "by-fuse").write_bytes(DATA[::-1])
    client("nfs-cp", nfs_url(nfs, "by-fuse"), str(back))
    assert back.read_bytes() == DATA[::-1]
    for name in ("by-nfs", "by-fuse"):
        (mounted / name).unlink()


def test_nfs_4_reads_what_ceph_fuse_wrote_and_writes_at_once(
    lab: leadline_lab.Lab, target: Target, source: Path
) -> None:
    """No grace period. Small: this libnfs has a buffer of 4 KiB for a write of NFSv4."""
    nfs, mounted = target("nfs"), lab.status().targets["replicated"]
    source.write_bytes(DATA[:3000])
    client("nfs-cp", str(source), nfs_url(nfs, "small"))
    assert (mounted / "small").read_bytes() == DATA[:3000]
    (mounted / "large").write_bytes(DATA)
    assert client("nfs-cat", nfs_url(nfs, "large")) == DATA
    for name in ("small", "large"):
        (mounted / name).unlink()


def test_smb_and_ceph_fuse_see_the_same_bytes(
    lab: leadline_lab.Lab, target: Target, source: Path, tmp_path: Path
) -> None:
    smb, mounted = urlsplit(target("smb").where), lab.status().targets["replicated"]
    (mounted / "by-fuse").write_bytes(DATA[::-1])
    back = tmp_path / "back"
    words = rf"put {source} replicated\\by-smb; get replicated\\by-fuse {back}"
    client("smbclient", "-p", str(smb.port), "-N", f"//{smb.hostname}/ceph", "-c", words)
    assert (mounted / "by-smb").read_bytes() == DATA
    assert back.read_bytes() == DATA[::-1]
    for name in ("by-smb", "by-fuse"):
        (mounted / name).unlink()


def test_xrootd_stripes_over_objects_of_its_pool_and_reads_them_back(
    lab: leadline_lab.Lab, target: Target, source: Path, tmp_path: Path
) -> None:
    url, back, first = target("xrootd").where, tmp_path / "back", tmp_path / "first"
    client("xrdcp", str(source), f"{url}dir/file")
    rados = ("rados", "-c", str(lab.record.paths.conf), "-p", "striped")
    client(*rados, "get", "/dir/file.0000000000000000", str(first))
    assert first.read_bytes() == DATA[: 4 << 20]
    client("xrdcp", f"{url}dir/file", str(back))
    assert back.read_bytes() == DATA
    client("xrdfs", f"{urlsplit(url).hostname}:{urlsplit(url).port}", "rm", "/dir/file")
    assert client(*rados, "ls") == b""


def test_undo_removes_only_what_carries_the_mark_on_storage_without_directories(
    target: Target, leadline: Command, tmp_path: Path
) -> None:
    url = target("xrootd").where
    volume, notes, other = _core.Volume(url), f"{OURS}/notes", "/leadline-other/file"
    for path in (notes, other):
        volume.put(path, PRECIOUS)
    volume.put(f"{OURS}/.leadline-files.0", f"{notes}\n{OURS}/../leadline-other/file\n{other}\n".encode())
    result = crafted(tmp_path / "r", {"x": url}, intended({"x": url}))
    for mark in (b"", b'{"id": "1badc0de"}'):
        volume.put(f"{OURS}/.leadline", mark)
        refused = leadline("undo", str(result))
        assert refused.returncode == 1, refused.stdout
        assert volume.get(notes, 99) == PRECIOUS
    volume.put(f"{OURS}/.leadline", MARK)
    done = leadline("undo", str(result))
    assert done.returncode == 0, done.stderr
    assert volume.get(notes, 99) is None
    assert volume.get(other, 99) == PRECIOUS
    volume.unlink("/leadline-other", "file")


def test_s3_gives_back_what_was_put_with_the_keys_of_the_file(
    target: Target, source: Path, tmp_path: Path
) -> None:
    s3, back = target("s3"), tmp_path / "back"
    host = s3.where.partition("endpoint=http://")[2]
    keys = Path(s3.variables["AWS_SHARED_CREDENTIALS_FILE"])
    assert keys.stat().st_mode & 0o777 == 0o600
    _, access, secret = keys.read_text().splitlines()
    configuration = tmp_path / "s3cfg"
    configuration.write_text(
        f"[default]\naccess_key = {access.partition(' = ')[2]}\nsecret_key = {secret.partition(' = ')[2]}\n"
        f"host_base = {host}\nhost_bucket = {host}\nuse_https = False\n"
    )
    s3cmd = ("s3cmd", "-c", str(configuration))
    client(*s3cmd, "put", str(source), f"s3://{kinds.RGW_BUCKET}/file")
    client(*s3cmd, "get", f"s3://{kinds.RGW_BUCKET}/file", str(back))
    assert back.read_bytes() == DATA
    client(*s3cmd, "del", f"s3://{kinds.RGW_BUCKET}/file")


def secrets_of(directory: Path) -> set[str]:
    """Every key of the lab: of its daemons and clients, and of its S3 user."""
    files = [
        *directory.glob("**/keyring"),
        *directory.glob("clients/*"),
        *directory.glob("gateways/rgw/cred*"),
    ]
    lines = [line for file in files if "data" not in file.parts for line in file.read_text().splitlines()]
    return {value for line in lines for name, _, value in [line.strip().partition(" = ")] if "key" in name}


def test_no_command_prints_a_key(lab: leadline_lab.Lab, leadline: Command) -> None:
    secrets = secrets_of(lab.directory)
    assert len(secrets) >= 8  # of daemons and client.admin alone
    for words in (("status", "--json"), ("targets",), ("targets", "--json"), ("env",)):
        done = leadline("lab", words[0], "session", *words[1:])
        assert done.returncode == 0, done.stderr
        assert not [key for key in secrets if key in done.stdout + done.stderr]
    text = (lab.directory / "lab.json").read_text() + (lab.directory / "ceph.conf").read_text()
    assert not [key for key in secrets if key in text]


def test_every_way_is_a_target_or_has_its_reason(lab: leadline_lab.Lab, leadline: Command) -> None:
    value = json.loads(leadline("lab", "targets", "session", "--json").stdout)
    assert value["format"] == "leadline.lab-targets/1"
    ways = {item["way"] for item in value["targets"]}
    assert {"ceph-fuse", "libcephfs", "nfs", "smb", "xrootd", "radosstriper", "rados", "s3"} < ways
    assert {"kernel-ceph", "kernel-nfs", "kernel-smb"} < ways
    assert all(bool(item["where"]) != bool(item["reason"]) for item in value["targets"])


@pytest.mark.parametrize("name", ["nfs", "xrootd"])
def test_a_gateway_that_was_killed_is_missed_and_started_again_on_its_port(
    lab: leadline_lab.Lab, target: Target, name: str
) -> None:
    where = target(name).where
    (server,) = (item for item in read_record(lab.directory).processes if item.name == name)
    process.end([server], grace_s=0.0)
    found = lab.status()
    assert not found.healthy
    assert {item.name for item in found.gateways if not item.running} == {name}
    lab.restart_gateway(name)
    assert lab.status().healthy
    assert target(name).where == where


@pytest.fixture
def elsewhere(tmp_path: Path, leadline: Command) -> Iterator[Path]:
    """A directory for one more lab, which is removed even where the test fails."""
    directory = tmp_path / "lab"
    yield directory
    leadline("lab", "down", str(directory))


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: a bridge needs root")
@pytest.mark.skipif(bool(KINDS["nfs"].lacking() + KINDS["xrootd"].lacking()), reason="NOT RUN: no gateways")
def test_a_lab_with_everything_survives_a_gateway_that_fails_and_leaves_nothing_when_killed(
    leadline: Command, elsewhere: Path, tmp_path: Path
) -> None:
    """A bridge, a subvolume, gateways of which one only says no; killed whole, then taken down."""
    broken = tmp_path / "bin/smbd"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho no luck today >&2\nexit 1\n")
    broken.chmod(0o755)
    path = f"{broken.parent}:{os.environ['PATH']}"
    words = ("--gateways", "nfs,smb,xrootd", "--bridge", "--subvolume", "team/projects", "--osds", "3")
    started = leadline("lab", "up", "--dir", str(elsewhere), *words, PATH=path)
    assert started.returncode == 3, started.stderr
    assert "no luck today" in started.stderr
    record = read_record(elsewhere)
    found = leadline_lab.open(elsewhere)
    lacking = {item.name for item in found.targets() if item.reason and not item.way.startswith("kernel")}
    assert lacking - {"nfs3"} == {"smb", "s3"}
    assert "smb" not in {item.name for item in record.processes}
    reach_from_another_network(record.spec.address, [item.port for item in record.gateways if item.port])
    assert_subvolume_is_all_that_its_client_reaches(found, elsewhere)
    for item in process.find_marked(record.fsid):
        process.send(item, signal.SIGKILL)
    assert poll(lambda: not process.find_marked(record.fsid), 10.0)
    ended = leadline("lab", "down", str(elsewhere))
    assert ended.returncode == 0, ended.stderr
    assert_gone(elsewhere, record.bridge)


def assert_gone(directory: Path, bridge: str) -> None:
    assert not directory.exists()
    assert bridge
    assert not (Path("/sys/class/net") / bridge).exists()
    assert str(directory) not in Path("/proc/self/mountinfo").read_text()


def reach_from_another_network(address: str, ports: list[int]) -> None:
    """The servers listen on the bridge's address, and not on the loopback alone."""
    assert ports
    assert not address.startswith("127.")
    for port in ports:
        socket.create_connection((address, port), timeout=5).close()


def assert_subvolume_is_all_that_its_client_reaches(lab: leadline_lab.Lab, directory: Path) -> None:
    mounted = lab.status().targets["subvolume"]
    with (mounted / "file").open("wb") as stream:
        stream.write(DATA)
        os.fsync(stream.fileno())
    conf = str(lab.record.paths.conf)
    everywhere = ("rados", "-c", conf, "-p", "data")
    assert len(client(*everywhere, "-N", "fsvolumens_projects", "ls").split()) == 2
    denied = subprocess.run(
        ["rados", "-c", conf, "--id", "subvolume", "-p", "data", "get", "x", str(directory.parent / "x")],
        env=lab.variables, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert denied.returncode != 0
    assert b"not permitted" in denied.stderr


@pytest.mark.skipif(bool(KINDS["nfs"].lacking()), reason="NOT RUN: no Ganesha")
def test_a_lab_whose_start_was_killed_while_its_gateways_started_is_removed(
    leadline: Command, elsewhere: Path
) -> None:
    words = ("lab", "up", "--dir", str(elsewhere), "--gateways", "nfs,rgw", "--osds", "3", "--no-mount")
    with subprocess.Popen(
        command_line(*words), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as starting:
        try:
            assert poll(lambda: _processes(elsewhere) >= {"nfs"}, 120.0, interval_s=0.02)
        finally:
            starting.kill()
    record = read_record(elsewhere)
    ended = leadline("lab", "down", str(elsewhere))
    assert ended.returncode == 0, ended.stderr
    assert process.find_marked(record.fsid) == []
    assert not elsewhere.exists()


def _processes(directory: Path) -> set[str]:
    if not (directory / "lab.json").exists():
        return set()
    return {item.name for item in read_record(directory).processes}
