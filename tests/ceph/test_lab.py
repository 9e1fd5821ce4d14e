"""The lab against the real Ceph: it comes up, serves, and goes without a trace from every state."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from leadline import lab as leadline_lab
from leadline.errors import UsageError
from leadline.lab import mounts
from leadline.lab.cluster import process
from leadline.lab.cluster.process import poll
from leadline.lab.record import LabRecord, read_record
from leadline.store.reader import open_result
from measured import CACHED, assert_measured
from support import Command

pytestmark = pytest.mark.ceph


def assert_nothing_left(record: LabRecord) -> None:
    assert process.find_marked(record.fsid) == []
    assert [item for item in record.processes if process.is_running(item)] == []
    assert mounts.mounts_below(record.directory) == []
    assert not record.directory.exists()
    assert not record.run_directory.exists()
    assert not record.bridge or not (Path("/sys/class/net") / record.bridge).exists()


@pytest.fixture
def elsewhere(tmp_path: Path, leadline: Command) -> Iterator[Path]:
    """A directory for one more lab, which is removed even where the test fails."""
    directory = tmp_path / "lab"
    yield directory
    leadline("lab", "down", str(directory))


def test_status_as_json_tells_daemons_health_and_targets(lab: leadline_lab.Lab, leadline: Command) -> None:
    done = leadline("lab", "status", "session", "--json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert value["format"] == "leadline.lab-status/1"
    assert value["healthy"] is True
    assert value["cluster"]["osds_up"] == 4
    assert value["cluster"]["clean"] is True
    names = {daemon["name"] for daemon in value["daemons"] if daemon["running"]}
    cluster = {"mon.a", "mgr.x", "mds.a", "osd.0", "osd.1", "osd.2", "osd.3", "client.admin"}
    gateways = {gateway["name"] for gateway in value["gateways"] if gateway["running"]}
    assert names - {"rpcbind"} == cluster | gateways
    assert set(value["targets"]) == {"replicated", "erasure"}
    assert 0 < value["disk_bytes"] < 4 << 30  # sparse: 40 GiB were promised


@pytest.mark.parametrize("target", ["replicated", "erasure"])
def test_what_is_written_is_read_back(lab: leadline_lab.Lab, target: str) -> None:
    path = lab.status().targets[target] / "file"
    data = os.urandom(9 << 20)  # more than two objects
    with path.open("wb") as stream:
        stream.write(data)
        os.fsync(stream.fileno())
    assert path.read_bytes() == data
    path.unlink()


def test_directories_have_their_pools_as_layout(lab: leadline_lab.Lab) -> None:
    targets = lab.status().targets
    assert os.getxattr(targets["replicated"], "ceph.dir.layout.pool") == b"data"
    assert os.getxattr(targets["erasure"], "ceph.dir.layout.pool") == b"ecdata"
    assert lab.ceph.json("osd", "pool", "get", "data", "size")["size"] == 3
    profile = lab.ceph.json("osd", "pool", "get", "ecdata", "erasure_code_profile")["erasure_code_profile"]
    chunks = lab.ceph.json("osd", "erasure-code-profile", "get", profile)
    assert (chunks["k"], chunks["m"]) == ("2", "1")


def test_env_points_cephs_own_programs_at_the_lab(lab: leadline_lab.Lab, leadline: Command) -> None:
    lines = leadline("lab", "env", "session").stdout
    exports = dict(line.removeprefix("export ").split("=", 1) for line in lines.splitlines())
    variables = {name: shlex.split(value)[0] for name, value in exports.items()}
    answer = subprocess.run(
        ["ceph", "fsid"], env=os.environ | variables, capture_output=True, text=True, timeout=60, check=True
    )
    assert answer.stdout.strip() == lab.record.fsid


def test_daemons_do_not_hold_the_callers_directory(lab: leadline_lab.Lab) -> None:
    held = {Path(f"/proc/{item.pid}/cwd").readlink() for item in read_record(lab.directory).processes}
    assert all(path == Path("/") or lab.directory in path.parents for path in held)


def test_starting_a_lab_twice_is_refused_and_harms_nothing(lab: leadline_lab.Lab, leadline: Command) -> None:
    again = leadline("lab", "up", "--dir", str(lab.directory))
    assert again.returncode == 2
    assert "already a lab" in again.stderr
    assert lab.status().healthy


def test_second_lab_beside_the_first_is_removed_after_all_its_processes_were_killed(
    lab: leadline_lab.Lab, leadline: Command, elsewhere: Path
) -> None:
    started = leadline("lab", "up", "--dir", str(elsewhere), "--auth", "none", "--json")
    assert started.returncode == 0, started.stderr
    assert json.loads(started.stdout)["auth"] == "none"
    record = read_record(elsewhere)
    assert record.mon_port != lab.record.mon_port
    (elsewhere / "mnt/erasure/file").write_bytes(b"x" * 100_000)
    for item in record.processes:
        process.send(item, signal.SIGKILL)
    assert poll(lambda: not process.find_marked(record.fsid), 10.0)
    with pytest.raises(OSError, match=os.strerror(errno.ENOTCONN)):
        (elsewhere / "mnt/erasure").stat()
    seen = json.loads(leadline("lab", "status", str(elsewhere), "--json").stdout)
    assert (seen["healthy"], seen["cluster"]) == (False, None)
    ended = leadline("lab", "down", str(elsewhere))
    assert ended.returncode == 0, ended.stderr
    assert_nothing_left(record)
    assert leadline("lab", "down", str(elsewhere)).returncode == 0
    assert lab.status().healthy


def test_failure_half_way_names_the_daemon_its_last_words_and_log(
    leadline: Command, elsewhere: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "bin/ceph-mds"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho no luck today >&2\nexit 1\n")
    broken.chmod(0o755)
    path = f"{broken.parent}:{os.environ['PATH']}"
    failed = leadline("lab", "up", "--dir", str(elsewhere), PATH=path)
    assert failed.returncode == 1
    assert "mds.a has ended" in failed.stderr
    assert "no luck today" in failed.stderr
    assert str(elsewhere / "log/mds.a.log") in failed.stderr
    assert "Traceback" not in failed.stderr
    record = read_record(elsewhere)
    assert record.state == "failed"
    assert process.find_marked(record.fsid) == []
    assert leadline("lab", "down", str(elsewhere)).returncode == 0
    assert_nothing_left(record)


@pytest.mark.parametrize("daemon", ["mon.a", "osd.1"])
def test_lab_whose_start_was_killed_is_removed(leadline: Command, elsewhere: Path, daemon: str) -> None:
    command = [sys.executable, "-m", "leadline", "lab", "up", "--dir", str(elsewhere)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as starting:
        try:
            assert poll(lambda: _has_started(elsewhere, daemon), 60.0, interval_s=0.02)
        finally:
            starting.kill()
    record = read_record(elsewhere)
    assert process.find_marked(record.fsid)
    ended = leadline("lab", "down", str(elsewhere))
    assert ended.returncode == 0, ended.stderr
    assert_nothing_left(record)


def _has_started(directory: Path, daemon: str) -> bool:
    try:
        return any(item.name == daemon for item in read_record(directory).processes)
    except UsageError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_start_removes_the_lab(elsewhere: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "leadline", "lab", "up", "--dir", str(elsewhere)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as starting:
        try:
            assert poll(lambda: _has_started(elsewhere, "mgr.x"), 60.0, interval_s=0.02)
            record = read_record(elsewhere)
            starting.send_signal(number)
            assert starting.wait(60) == 128 + number
        finally:
            starting.kill()
    assert_nothing_left(record)


def test_a_study_runs_on_erasure_6_3_and_the_lab_goes_although_its_mount_is_busy(
    leadline: Command, tmp_path: Path
) -> None:
    """In a directory so deep that no socket's path fits below it."""
    study = tmp_path / "nine.yaml"
    study.write_text(
        "format: leadline.study/1\nblocks: 1\nlimits: {reserve: 10M}\n"
        "works: {write_1m: {rw: write, bs: 1M, size: 8M}, read_64k: {rw: randread, bs: 64k, size: 8M}}\n"
    )
    deep = tmp_path / ("d" * 40) / ("e" * 40)
    started = leadline("lab", "up", "--dir", str(deep), "--ec", "6+3", "--name", "nine")
    record = read_record(deep)
    try:
        assert started.returncode == 0, started.stderr
        assert record.run_directory.parent != deep  # sockets would not have fitted
        found = leadline_lab.open("nine")
        assert found.directory == deep
        assert found.status().cluster is not None
        assert found.ceph.json("osd", "pool", "get", "ecdata", "min_size")["min_size"] == 7
        data = os.urandom(5 << 20)
        (deep / "mnt/erasure/file").write_bytes(data)
        assert (deep / "mnt/erasure/file").read_bytes() == data
        target = f"nine={deep / 'mnt/erasure'}"
        done = leadline("run", str(study), "--target", target, "--out", str(tmp_path / "r"))
        assert_measured(done, tmp_path / "r", CACHED)
        trials = open_result(tmp_path / "r").trials()
        assert [trial.state for trial in trials] == ["complete", "complete"]
        written = next(trial for trial in trials if trial.work == "write_1m")
        assert written.store_written_bytes is not None
        assert written.store_written_bytes >= 1.45 * written.total_write_bytes  # (6 + 3) / 6
        found.inject("osd-down", "osd.8")
        assert not found.status().healthy
        busy = os.open(deep / "mnt/erasure/file", os.O_RDONLY)
    finally:
        before_s = time.monotonic()
        ended = leadline("lab", "down", "nine")
    with suppress(OSError):  # its file system is gone
        os.close(busy)
    assert ended.returncode == 0, ended.stderr
    assert time.monotonic() - before_s < 40
    assert_nothing_left(record)
