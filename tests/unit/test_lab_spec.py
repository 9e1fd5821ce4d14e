"""What a lab may be asked to be, and the ceph.conf and paths that follow from it."""

from __future__ import annotations

import configparser
import random
import socket
from pathlib import Path

import pytest

from leadline.errors import LabError, UsageError
from leadline.lab import requirements
from leadline.lab.cluster import config
from leadline.lab.cluster.command import parse_state
from leadline.lab.cluster.process import PORT_MAX, PORT_MIN, choose_port, is_free_port
from leadline.lab.paths import SOCKET_PATH_BYTES_MAX, LabPaths, choose_run_directory, labs_home
from leadline.lab.record import LabRecord
from leadline.lab.spec import LabSpec, check_spec, parse_erasure, parse_size_bytes


@pytest.mark.parametrize(("text", "pair"), [("2+1", (2, 1)), ("6+3", (6, 3)), ("8+3", (8, 3))])
def test_erasure_is_read_as_k_and_m(text: str, pair: tuple[int, int]) -> None:
    assert parse_erasure(text) == pair


@pytest.mark.parametrize("text", ["", "2", "2+", "+1", "1+1", "2+0", "-2+1", "2+1+1", "two+one", "2 1"])
def test_what_is_no_erasure_code_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--ec"):
        parse_erasure(text)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("10G", 10 << 30), ("10GiB", 10 << 30), ("2 t", 2 << 40), ("2147483648", 2 << 30)],
)
def test_sizes_are_powers_of_1024(text: str, size_bytes: int) -> None:
    assert parse_size_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "G", "1.5G", "-1G", "10X", "10 Gi G"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--osd-size"):
        parse_size_bytes(text)


@pytest.mark.parametrize(("k", "m", "osds"), [(2, 1, 4), (6, 3, 9), (8, 3, 11)])
def test_osds_default_to_what_the_pools_need(k: int, m: int, osds: int) -> None:
    spec = LabSpec(erasure_k=k, erasure_m=m)
    check_spec(spec)
    assert spec.osd_count == osds


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (LabSpec(osds=8, erasure_k=6, erasure_m=3), "too few"),
        (LabSpec(osds=2), "too few"),
        (LabSpec(osds=65), "more than one host"),
        (LabSpec(osd_size_bytes=1 << 20), "cannot be made"),
        (LabSpec(name="../evil"), "no name for a lab"),
        (LabSpec(name="a b"), "no name for a lab"),
        (LabSpec(directory=Path("/")), "cannot have /"),
        (LabSpec(directory=Path("/tmp/with space")), "cannot be a lab's directory"),
        (LabSpec(directory=Path("/tmp/$name;x\n[mon]")), "cannot be a lab's directory"),
        (LabSpec(address="localhost"), "no IP address"),
    ],
)
def test_a_lab_that_could_not_work_is_refused(spec: LabSpec, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_spec(spec)


def read_conf(spec: LabSpec, *, uid: int = 0) -> configparser.ConfigParser:
    record = LabRecord(
        name="x",
        fsid="f",
        spec=spec,
        directory=Path("/srv/lab"),
        run_directory=Path("/srv/lab/run"),
        made_directory=True,
        owner_uid=uid,
        created_unix_s=1.0,
        mon_port=12345,
    )
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(config.conf_text(record, uid=uid, gid=uid))
    return parser


def test_conf_keeps_every_file_below_the_lab() -> None:
    for section in read_conf(LabSpec()).values():
        for key, value in section.items():
            assert not value.startswith("/") or value.startswith("/srv/lab/"), key


def test_conf_names_the_chosen_port_and_authentication() -> None:
    conf = read_conf(LabSpec(auth="cephx"))
    assert conf["global"]["mon_host"] == "[v2:127.0.0.1:12345]"
    assert {conf["global"][f"auth_{kind}_required"] for kind in ("cluster", "service", "client")} == {"cephx"}


def test_conf_bounds_the_memory_of_an_osd() -> None:
    osd = read_conf(LabSpec(osd_size_bytes=3 << 30))["osd"]
    assert osd["bluestore_block_size"] == str(3 << 30)
    assert osd["bluestore_cache_autotune"] == "false"
    assert osd["bluestore_rocksdb_options_annex"] == "write_buffer_size=16777216"


def test_what_a_lab_says_of_itself_is_a_second_old() -> None:
    conf = read_conf(LabSpec())
    periods = conf["global"]["mgr_stats_period"], conf["global"]["mon_mgr_digest_period"]
    assert (*periods, conf["mgr"]["mgr_tick_period"]) == ("1", "1", "1")


def test_ordinary_user_owns_the_root_directory_and_does_without_allow_other() -> None:
    conf = read_conf(LabSpec(), uid=1000)
    assert conf["mds"]["mds_root_ino_uid"] == "1000"
    assert conf["client"]["fuse_allow_other"] == "false"
    assert "fuse_allow_other" not in read_conf(LabSpec())["client"]


def test_sockets_stay_in_the_lab_where_they_fit() -> None:
    assert choose_run_directory(Path("/srv/lab"), "t", {}) == Path("/srv/lab/run")


@pytest.mark.parametrize("length", [60, 90, 200])
def test_no_socket_path_is_longer_than_the_kernel_takes(length: int) -> None:
    run = choose_run_directory(Path("/" + "d" * length), "0123abcd", {"XDG_RUNTIME_DIR": "/" + "r" * 300})
    longest = LabPaths(Path("/x"), run).socket("client.admin.4194304")
    assert len(str(longest)) <= SOCKET_PATH_BYTES_MAX


def test_labs_home_follows_xdg_only_where_it_is_absolute() -> None:
    assert labs_home({"XDG_STATE_HOME": "/s", "HOME": "/h"}) == Path("/s/leadline/labs")
    assert labs_home({"XDG_STATE_HOME": "s", "HOME": "/h"}) == Path("/h/.local/state/leadline/labs")


def test_a_listening_port_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not is_free_port("127.0.0.1", server.getsockname()[1])


def test_chosen_port_is_outside_the_ephemeral_range() -> None:
    assert PORT_MIN <= choose_port("127.0.0.1", random.Random(1)) <= PORT_MAX  # noqa: S311


def test_foreign_address_is_an_error_that_names_it() -> None:
    with pytest.raises(LabError, match=r"192\.0\.2\.1"):
        choose_port("192.0.2.1", random.Random(1))  # noqa: S311


def test_missing_programs_are_named_by_their_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert requirements.missing_packages() == [
        "ceph-common",
        "ceph-fuse",
        "ceph-mds",
        "ceph-mgr",
        "ceph-mon",
        "ceph-osd",
        "fuse3",
    ]
    assert "ceph-fuse" not in requirements.missing_packages(mount=False)
    with pytest.raises(LabError, match="ceph-osd") as refused:
        requirements.require_packages(mount=True)
    assert "apt-get install" in refused.value.remedy


def test_state_is_clean_only_where_all_groups_are() -> None:
    def state(*pairs: tuple[str, int]) -> bool:
        groups = [{"state_name": name, "count": count} for name, count in pairs]
        return parse_state({"pgmap": {"pgs_by_state": groups}}).clean

    assert state(("active+clean", 8), ("active+clean+scrubbing", 1))
    assert not state(("active+clean", 8), ("active+undersized", 1))
    assert not state()


def test_state_of_nautilus_has_its_osd_map_nested() -> None:
    assert parse_state({"osdmap": {"osdmap": {"num_osds": 3, "num_up_osds": 2}}}).osds_up == 2
