"""Mounts that a proof makes for its states: like the one in use, and refused where that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.errors import RefusedChangeError, ResultError
from leadline.observe.mounts.fuse_client import arguments_again
from leadline.observe.mounts.mountinfo import parse_mountinfo
from leadline.tuning.proving import mounts
from leadline.tuning.proving.mounts import ProofMounts, new_directory, proof_mounts
from leadline.tuning.proving.request import client_option, design_of, needs_mounts
from leadline.tuning.settings import settings

PLACE = "/tmp/leadline-mounts-0123456789ab"
LINE = "40 30 0:50 / /mnt/ceph rw,nosuid - fuse.ceph-fuse ceph-fuse rw,user_id=0\n"


def process(proc: Path, *words: str) -> None:
    (proc / "7").mkdir()
    (proc / "7" / "cmdline").write_bytes(b"\0".join(word.encode() for word in ("ceph-fuse", *words)) + b"\0")
    (proc / "7" / "cwd").symlink_to("/mnt")


def test_another_mount_takes_all_but_what_is_the_first_one_s_own(tmp_path: Path) -> None:
    process(
        tmp_path,
        *("-f", "-c", "/etc/ceph/ceph.conf", "-n", "client.media", "--admin-socket=/run/a.asok"),
        *("--log-file", "/var/log/a.log", "--client_mountpoint=/films", "--client_oc_size=1M", "ceph"),
    )
    assert arguments_again(7, "/mnt/ceph", tmp_path) == (
        *("-c", "/etc/ceph/ceph.conf", "-n", "client.media"),
        *("--client_mountpoint=/films", "--client_oc_size=1M"),
    )


def test_of_a_process_that_ended_nothing_is_taken(tmp_path: Path) -> None:
    assert arguments_again(7, "/mnt/ceph", tmp_path) == ()


def test_only_what_a_mount_has_for_life_needs_one() -> None:
    known = settings()
    assert needs_mounts(["client_readahead_max_bytes"], known)
    assert needs_mounts(["client_of_no_table"], known)
    assert not needs_mounts(
        ["client_oc_size", "osd_max_backfills", "vm.swappiness", "osd_of_no_table"], known
    )


def test_what_is_no_option_of_a_client_is_refused_before_anything_is_mounted() -> None:
    known = settings()
    assert client_option("client_oc", known["client_oc"]) == "client_oc"
    assert client_option("client_of_no_table", None) == "client_of_no_table"
    for name, setting in (("vm.swappiness", known["vm.swappiness"]), ("osd_of_no_table", None)):
        with pytest.raises(RefusedChangeError, match="is no option of a client"):
            client_option(name, setting)


def test_each_state_is_a_place_below_its_mount_with_its_own_options() -> None:
    (mount,) = parse_mountinfo(LINE)
    design = design_of("together", ("client_oc",))
    found = proof_mounts("/mnt/ceph/films/new", mount, PLACE, design, {"client_oc": "false"})
    assert found.options == {"without": {}, "with": {"client_oc": "false"}}
    assert (found.path("without"), found.path("with")) == (
        f"{PLACE}/without/films/new",
        f"{PLACE}/with/films/new",
    )
    assert ProofMounts.from_json(found.as_json()) == found
    top = proof_mounts("/mnt/ceph", mount, PLACE, design, {"client_oc": "false"})
    assert top.path("with") == f"{PLACE}/with"


def test_more_states_than_mounts_are_refused() -> None:
    (mount,) = parse_mountinfo(LINE)
    names = tuple(f"client_{number}" for number in range(5))
    design = design_of("factorial", names)
    with pytest.raises(RefusedChangeError, match="16 states are 16 mounts, more than 8"):
        proof_mounts("/mnt/ceph", mount, PLACE, design, dict.fromkeys(names, "1"))


@pytest.mark.parametrize(
    "damage",
    [
        {"options": None},
        {"options": {"../x": {}}},
        {"options": {"..": {}}},
        {"options": {"with": {"a b": "1"}}},
        {"below": ...},
        {"directory": "/var/log"},
        {"directory": "leadline-mounts-0123456789ab"},
        {"directory": f"{PLACE}/.."},
    ],
)
def test_a_damaged_word_of_mounts_is_refused(damage: dict[str, object]) -> None:
    whole: dict[str, object] = {
        "present": "/mnt",
        "below": "",
        "directory": PLACE,
        "options": {"with": {}},
    }
    whole.update(damage)
    if damage.get("below") is ...:
        del whole["below"]
    with pytest.raises(ResultError):
        ProofMounts.from_json(whole)


def test_a_new_directory_of_mounts_is_one_that_a_stored_proof_may_name() -> None:
    whole = {"present": "/mnt", "below": "", "directory": new_directory(), "options": {"with": {}}}
    assert ProofMounts.from_json(whole).as_json() == whole


def test_only_what_a_proof_made_beside_its_mounts_is_removed(tmp_path: Path) -> None:
    directory = tmp_path / Path(PLACE).name
    (directory / "with").mkdir(parents=True)
    (directory / "theirs").mkdir()
    for name in ("with.asok", "with.log", "other.log"):
        (directory / name).touch()
    wanted = ProofMounts("/mnt", "", str(directory), {"with": {}})
    mounts._remove(wanted)
    assert sorted(path.name for path in directory.iterdir()) == ["other.log", "theirs"]
