"""`leadline tune apply` on a real cluster: options, flags, pools, a client, a restart; all as before."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from printed_commands import told
from tuned_system import without_checksums

from leadline import lab as leadline_lab
from leadline.errors import TuningError
from leadline.tuning.changing.applying import Pace, apply
from leadline.tuning.changing.cluster_lock import ClusterLock
from leadline.tuning.changing.journal import TuningJournal
from leadline.tuning.changing.reverting import revert
from leadline.tuning.settings import SettingChange, SettingPlace
from leadline.tuning.system import TuningSystem
from support import Command

pytestmark = pytest.mark.ceph
QUICK = Pace(settle_s=30.0, hold_s=0.5, watch_s=0.0)


@pytest.fixture
def system(lab: leadline_lab.Lab) -> Iterator[TuningSystem]:
    """The session's lab."""
    with TuningSystem(conf=lab.record.paths.conf) as found:
        yield found


def _everything(lab: leadline_lab.Lab) -> Any:
    """What the monitors keep, and the client works with."""
    dump = lab.ceph.json("osd", "dump")
    config = [(row["section"], row["name"], row["value"]) for row in lab.ceph.json("config", "dump")]
    pools = {row["pool_name"]: row["options"] for row in dump["pools"]}
    mdsmap = lab.ceph.json("fs", "get", "fs")["mdsmap"]
    return sorted(config), dump["flags_set"], pools, mdsmap["session_timeout"], _client(lab)


def _client(lab: leadline_lab.Lab) -> dict[str, Any]:
    socket = lab.record.paths.socket("client.admin")
    words = ["ceph", "--admin-daemon", str(socket), "config", "diff"]
    printed = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
    found: dict[str, Any] = json.loads(printed)["diff"]
    return found


def test_everything_that_is_applied_is_in_force_and_all_is_as_before_after_revert(
    leadline: Command, lab: leadline_lab.Lab
) -> None:
    before = _everything(lab)
    own = ("--lab", lab.record.name)
    mount = str(lab.record.paths.mount)
    for words in (
        ("osd_max_backfills=3", "mds_bal_split_size=5000"),
        ("noscrub=true", "--accept", "integrity"),
        ("compression_mode=aggressive", "recovery_priority=2", "--on", "data"),
        ("session_timeout=90",),
        ("client_oc_size=104857600", "--on", mount),
    ):
        done = leadline("tune", "apply", *words, "--yes", "--watch", "0s", *own)
        assert done.returncode == 0, done.stderr

    assert json.loads(lab.ceph.run("tell", "osd.1", "config", "get", "osd_max_backfills")) == {
        "osd_max_backfills": "3"
    }
    dump = lab.ceph.json("osd", "dump")
    assert "noscrub" in dump["flags_set"]
    assert next(row["options"] for row in dump["pools"] if row["pool_name"] == "data") == {
        "compression_mode": "aggressive", "recovery_priority": 2,
    }  # fmt: skip
    assert _client(lab)["client_oc_size"]["final"] == "104857600"
    states = json.loads(leadline("tune", "status", "--json", *own).stdout)["changes"]
    assert {row["state"] for row in states} == {"in force"}
    assert leadline("tune", "revert", *own).returncode == 0
    assert _everything(lab) == before


def test_a_daemon_s_own_file_goes_before_what_is_set_and_all_is_put_back(
    lab: leadline_lab.Lab, system: TuningSystem, tmp_path: Path
) -> None:
    before = _everything(lab)
    place = SettingPlace("osd", cluster=lab.record.fsid)
    asked = [
        SettingChange("osd_max_backfills", place, "3"),
        SettingChange("osd_memory_target", place, str(2 << 30)),  # which the lab's ceph.conf sets
    ]

    with pytest.raises(TuningError, match=r"has 1073741824 from its own configuration file"):
        apply(system, asked, journal=TuningJournal(tmp_path / "state"), pace=Pace(2.0, 0.0, 0.0))
    assert _everything(lab) == before


def test_a_cluster_that_gets_worse_while_it_is_watched_gets_everything_back(
    lab: leadline_lab.Lab, system: TuningSystem, tmp_path: Path
) -> None:
    """A flag that somebody sets meanwhile is a warning that this change does not explain."""
    before = _everything(lab)
    place = SettingPlace("osd", cluster=lab.record.fsid)

    def interfere(_: str) -> None:
        lab.ceph.run("osd", "set", "noscrub")

    try:
        with pytest.raises(TuningError, match="the cluster is worse off since: OSDMAP_FLAGS"):
            apply(
                system, [SettingChange("osd_max_backfills", place, "3")],
                journal=TuningJournal(tmp_path / "state"), pace=Pace(30.0, 0.0, 30.0), say=interfere,
            )  # fmt: skip
    finally:
        lab.ceph.run("osd", "unset", "noscrub")
    assert _everything(lab) == before


def test_the_process_of_a_mount_that_ended_took_its_values_with_it(
    lab: leadline_lab.Lab, system: TuningSystem, tmp_path: Path
) -> None:
    """The journal says which process it was; another that serves the mount now was never changed."""
    place = SettingPlace(str(lab.record.paths.mount))
    journal = TuningJournal(tmp_path / "state")
    apply(system, [SettingChange("client_cache_size", place, "8192")], journal=journal, pace=QUICK)
    text = without_checksums(journal.path.read_bytes())
    pid = next(one.life for one in journal.state().changes).split(":")[1]
    journal.path.write_text(text.replace(f"process:{pid}:", f"process:{int(pid) + 1}:"))

    found = revert(system, journal)

    assert len(found.gone) == 1
    assert _client(lab)["client_cache_size"]["final"] == "8192"
    journal.path.write_text(text)
    assert not revert(system, journal).left
    assert "client_cache_size" not in _client(lab)


def test_daemons_that_need_it_are_restarted_one_after_the_other(
    lab: leadline_lab.Lab, tmp_path: Path
) -> None:
    journal = TuningJournal(tmp_path / "state")
    place = SettingPlace("osd.0", cluster=lab.record.fsid)
    before = _everything(lab), _osd_pid(lab)
    with TuningSystem(conf=lab.record.paths.conf, restart=lab.restart_daemon) as system:
        done = apply(system, [SettingChange("osd_op_num_shards", place, "3")], journal=journal, pace=QUICK)
        assert not done.pending
        assert _osd_pid(lab) != before[1]
        assert not revert(None, journal, restart=lab.restart_daemon).left
        _until_up(lab)
    assert _everything(lab) == before[0]


def test_the_lock_of_a_cluster_holds_for_another_journal_and_is_broken_by_name(
    leadline: Command, lab: leadline_lab.Lab, tmp_path: Path
) -> None:
    """Also the way back that is printed with --conf is the one that is needed."""
    before = _everything(lab)
    conf = ("--conf", str(lab.record.paths.conf))
    words = ("tune", "apply", "osd_max_backfills=3", "--yes", "--watch", "0s", *conf)
    with TuningSystem(conf=lab.record.paths.conf) as system:
        lock = ClusterLock(system.around)
        lock.take()
        refused = leadline(*words, "--state", str(tmp_path / "other"))
        assert refused.returncode == 2
        assert "is changing settings of this cluster: nothing was changed" in refused.stderr
        (breaking,) = told(refused.stderr)
        assert "is running on this host" in leadline(*shlex.split(breaking)).stderr
        ((key, text),) = lab.ceph.json("config-key", "dump", "leadline/tuning-lock/").items()
        elsewhere = json.dumps(json.loads(text) | {"process": "elsewhere 5"})
        lab.ceph.run("config-key", "set", key, elsewhere)
        assert "the cluster's lock: process" in leadline("tune", "status", *conf).stdout
        assert "removed: the lock of process" in leadline(*shlex.split(breaking)).stdout
    done = leadline(*words)
    assert done.returncode == 0, done.stderr
    assert not lab.ceph.json("config-key", "dump", "leadline/tuning-lock/")
    (back,) = told(done.stdout)
    assert "put back: osd_max_backfills" in leadline(*shlex.split(back)).stdout
    assert _everything(lab) == before


def test_a_cluster_in_health_err_is_changed_by_name_alone(
    leadline: Command, lab: leadline_lab.Lab, tmp_path: Path
) -> None:
    words = ("osd_max_backfills=3", "--yes", "--watch", "0s", "--lab", lab.record.name)
    lab.ceph.run("osd", "set-full-ratio", "0.00001")
    try:
        _until(lambda: lab.ceph.json("health")["status"] == "HEALTH_ERR")
        refused = leadline("tune", "apply", *words)
        assert refused.returncode == 2
        assert "the cluster is in HEALTH_ERR" in refused.stderr
        assert leadline("tune", "apply", *words, "--ignore-health").returncode == 0
    finally:
        lab.ceph.run("osd", "set-full-ratio", "0.95")
        leadline("tune", "revert", "--lab", lab.record.name)
    _until(lambda: lab.ceph.json("health")["status"] == "HEALTH_OK")


def _until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 120.0
    while not reached():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.2)


def _osd_pid(lab: leadline_lab.Lab) -> int:
    return next(one.pid for one in lab.status().daemons if one.name == "osd.0") or 0


def _until_up(lab: leadline_lab.Lab) -> None:
    end = time.monotonic() + 120.0
    while lab.ceph.json("health")["status"] != "HEALTH_OK" and time.monotonic() < end:
        time.sleep(0.2)
    assert os.path.exists(f"/proc/{_osd_pid(lab)}")  # noqa: PTH110
