"""The server of a target and the cluster behind it, found by what its process was told; files of our own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from builders import facts

from leadline.errors import UsageError
from leadline.observe.mounts.servers import addresses_of, cluster_of, with_server
from leadline.study.target import ServerAccess, TargetFacts

MEMORY = 1 << 34
NFS = facts(access="libnfs", mount_point=None)
URL = "nfs://127.0.0.1:20490/ceph"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "ceph.conf"
    path.write_text("[global]\nfsid = x\nmon_host = 10.0.0.1\n")
    path.chmod(0o600)
    return path


def process(
    tmp_path: Path, words: list[str], variables: list[str] | None = None, uid: int | None = None
) -> Path:
    """A /proc with one process, 10."""
    place = tmp_path / "proc" / "10"
    place.mkdir(parents=True)
    (place / "cmdline").write_bytes(b"\0".join(os.fsencode(word) for word in words) + b"\0")
    (place / "environ").write_bytes(b"\0".join(os.fsencode(one) for one in variables or ["A=b"]) + b"\0")
    own = os.geteuid() if uid is None else uid
    (place / "status").write_text(f"Name:\tx\nUid:\t{own}\t{own}\t{own}\t{own}\n")
    return place.parent


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("ganesha.conf", "NFS_CORE_PARAM {{ }}\n# Ceph_Conf = /other;\nCEPH {{ Ceph_Conf = {conf}; }}\n"),
        ("smb.conf", "[ceph]\nvfs objects = ceph\n  ceph:config_file = {conf}\n"),
    ],
)
def test_a_gateways_configuration_names_its_cluster(tmp_path: Path, conf: Path, file: str, text: str) -> None:
    own = tmp_path / file
    own.write_text(text.format(conf=conf))
    found = cluster_of(10, process(tmp_path, ["server", "-f", str(own), "-x"]))
    assert found is not None
    assert (found.conf, found.name) == (str(conf), "client.admin")


def test_a_gateway_may_be_told_by_its_words_or_its_environment(tmp_path: Path, conf: Path) -> None:
    by_word = cluster_of(10, process(tmp_path / "a", ["radosgw", f"--conf={conf}"]))
    by_variable = cluster_of(10, process(tmp_path / "b", ["xrootd"], [f"CEPH_CONF={conf}"]))
    assert by_word == by_variable
    assert by_word is not None


def test_what_others_could_have_written_is_not_believed(tmp_path: Path, conf: Path) -> None:
    assert cluster_of(10, process(tmp_path / "a", ["x", str(conf)], uid=65534)) is None
    conf.chmod(0o666)
    assert cluster_of(10, process(tmp_path / "b", ["x", str(conf)])) is None
    assert cluster_of(11, tmp_path / "b" / "proc") is None


def test_a_server_elsewhere_has_the_memory_that_the_user_says(conf: Path) -> None:
    far = with_server(NFS, "nfs://192.0.2.1/ceph", conf, MEMORY, 1 << 40)
    assert far.server == ServerAccess(here=False, memory_bytes=1 << 40)
    assert far.ceph is not None
    assert far.ceph.conf == str(conf)
    assert with_server(NFS, "nfs://192.0.2.1/ceph", None, MEMORY).server == ServerAccess()


def test_a_server_here_has_this_hosts_memory_and_may_be_of_no_cluster() -> None:
    found = with_server(
        NFS, URL, None, MEMORY, listening=lambda port: frozenset({os.getpid()} if port else ())
    )
    assert found.server is not None
    assert (found.server.here, found.server.port, found.server.memory_bytes) == (True, 20490, MEMORY)
    assert found.ceph is None


def test_what_is_behind_no_server_stays_as_it_is(conf: Path) -> None:
    for target in (facts(), facts(access="rados", mount_point=None)):
        assert with_server(target, "/x", conf, MEMORY) is target
        assert isinstance(target, TargetFacts)


def test_a_configuration_that_cannot_be_read_is_said() -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        with_server(NFS, URL, Path("/nonexistent/ceph.conf"), MEMORY)


@pytest.mark.parametrize(
    ("url", "options", "found"),
    [
        ("/mnt", ("addr=192.0.2.1", "port=2049"), ("192.0.2.1",)),
        ("root://127.0.0.1:1094//", (), ("127.0.0.1",)),
        ("smb://127.0.0.1:445/share", (), ("127.0.0.1",)),
        ("s3://bucket?endpoint=http://127.0.0.1:7480", (), ("127.0.0.1",)),
        ("root://no-such-name.invalid//", (), ()),
        ("/mnt", (), ()),
    ],
)
def test_the_addresses_of_a_server_are_those_of_its_mount_or_its_url(
    url: str, options: tuple[str, ...], found: tuple[str, ...]
) -> None:
    assert addresses_of(facts(access="libnfs", mount_point=None, options=options), url) == found
