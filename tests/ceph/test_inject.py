"""Every fault acts, and is gone once it was undone: seen by counters that the injector has no part in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from healthy import wait_until_healthy

from leadline import faults
from leadline import lab as leadline_lab
from leadline.errors import LabError, UsageError
from leadline.lab.cgroups import ControlGroups, Controller
from leadline.lab.cluster import process
from leadline.lab.cluster.process import poll
from leadline.lab.inject import actions, engine
from leadline.lab.record import read_record
from support import Command, Start

REACHED_S = 45.0
_WRITE = (
    "import os, sys; f = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY); "
    "os.write(f, b'x' * 65536); os.fsync(f)"
)
_CREATE = (
    "import os, sys\n"
    "for n in range(int(sys.argv[2])):\n"
    "    os.close(os.open(f'{sys.argv[1]}/{n}', os.O_CREAT | os.O_WRONLY))"
)


@pytest.fixture
def lab(network_lab: leadline_lab.Lab) -> Iterator[leadline_lab.Lab]:
    """The lab of three hosts; whatever a failing test left in it is undone."""
    yield network_lab
    if engine.in_force(network_lab.directory):
        assert engine.clear(network_lab.directory, os.environ)[1] == []


@contextmanager
def injected(lab: leadline_lab.Lab, kind: str, on: str = "", **options: str) -> Iterator[None]:
    made = engine.inject(lab.directory, os.environ, kind, on, options)
    yield
    assert engine.clear(lab.directory, os.environ, [made.id])[1] == []


@contextmanager
def several(lab: leadline_lab.Lab, *chosen: tuple[str, str]) -> Iterator[None]:
    for kind, on in chosen:
        engine.inject(lab.directory, os.environ, kind, on, for_s=60.0)
    assert len(engine.in_force(lab.directory)) == len(chosen)
    yield
    assert engine.clear(lab.directory, os.environ)[1] == []
    assert engine.in_force(lab.directory) == ()


def until(reached: Callable[[], bool], what: str) -> None:
    assert poll(reached, REACHED_S), f"waited {REACHED_S:.0f} s in vain for: {what}"


def pid_of(lab: leadline_lab.Lab, name: str) -> int:
    return next(item.pid for item in read_record(lab.directory).processes if item.name == name)


def state_of(pid: int) -> str:
    return process.parse_stat(Path(f"/proc/{pid}/stat").read_text())[0]


def osd(lab: leadline_lab.Lab, number: int) -> dict[str, Any]:
    rows: list[dict[str, Any]] = lab.ceph.json("osd", "dump")["osds"]
    return next(row for row in rows if row["osd"] == number)


def checks(lab: leadline_lab.Lab) -> set[str]:
    return set(lab.ceph.json("health")["checks"])


def written_bytes(pid: int) -> int:
    text = Path(f"/proc/{pid}/io").read_text()
    return int(dict(line.split(": ") for line in text.splitlines())["write_bytes"])


def cpu_stat(lab: leadline_lab.Lab, name: str, controller: Controller = "cpu") -> dict[str, int]:
    hierarchy = ControlGroups(lab.record.fsid).hierarchy(controller)
    assert hierarchy is not None
    group = hierarchy.root / f"leadline-{lab.record.fsid[:8]}" / f"fault:{name}"
    return {key: int(value) for key, value in map(str.split, (group / "cpu.stat").read_text().splitlines())}


@contextmanager
def load(lab: leadline_lab.Lab, size: str = "65536") -> Iterator[None]:
    """Writes into a pool until the block ends; what was written goes with it."""
    conf = ["rados", "-c", str(lab.record.paths.conf), "--id", "admin", "-p", "objects"]
    words = ["bench", "600", "write", "-b", size, "-t", "8", "--no-cleanup", "--run-name", "load"]
    with subprocess.Popen([*conf, *words], env=lab.variables, stdout=subprocess.DEVNULL) as bench:
        try:
            yield
        finally:
            bench.kill()
    subprocess.run(
        [*conf, "cleanup", "--run-name", "load"], env=lab.variables, capture_output=True, check=False
    )


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", *words], capture_output=True, text=True, timeout=60, check=False
    )


def write(lab: leadline_lab.Lab, directory: str = "replicated") -> str:
    """The last words of a program that writes 64 KiB into a new file and syncs; "" where it could."""
    done = python(_WRITE, str(lab.record.paths.mount / directory / f"written-{time.monotonic_ns()}"))
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def create(lab: leadline_lab.Lab, count: int) -> None:
    directory = lab.record.paths.mount / "replicated" / "created"
    directory.mkdir(exist_ok=True)
    assert python(_CREATE, str(directory), str(count)).returncode == 0


def outgrown(lab: leadline_lab.Lab) -> bool:
    """Whether the server tells of too large a cache: it looks every 4 s, and trims within 2 s of a load."""
    create(lab, 500)
    return "MDS_CACHE_OVERSIZED" in checks(lab)


def groups(lab: leadline_lab.Lab) -> str:
    return " ".join(item["state_name"] for item in lab.ceph.json("status")["pgmap"]["pgs_by_state"])


def pool_flags(lab: leadline_lab.Lab, name: str) -> str:
    pools = lab.ceph.json("osd", "dump")["pools"]
    return str(next(pool["flags_names"] for pool in pools if pool["pool_name"] == name))


def flags(lab: leadline_lab.Lab) -> set[str]:
    return set(lab.ceph.json("osd", "dump")["flags_set"])


def filler(lab: leadline_lab.Lab) -> list[str]:
    words = ["rados", "-c", str(lab.record.paths.conf), "--id", "admin", "-p", "objects", "ls"]
    done = subprocess.run(words, env=lab.variables, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if name.startswith("leadline-fault")]


def placed(lab: leadline_lab.Lab, number: int) -> int:
    rows = lab.ceph.json("osd", "df")["nodes"]
    return int(next(row["pgs"] for row in rows if row["id"] == number))


def every_group_is_placed(lab: leadline_lab.Lab) -> bool:
    """A manager that has just taken over knows of few groups at first: what it counts then is too little."""
    pools = lab.ceph.json("osd", "dump")["pools"]
    asked = sum(pool["pg_num"] * pool["size"] for pool in pools)
    return sum(int(row["pgs"]) for row in lab.ceph.json("osd", "df")["nodes"]) == asked


def active_mds(lab: leadline_lab.Lab) -> str:
    ranks = lab.ceph.json("status")["fsmap"]["by_rank"]
    return "mds." + next((rank["name"] for rank in ranks if rank["status"] == "up:active"), "")


def scrubbed(lab: leadline_lab.Lab) -> dict[str, str]:
    """When each group that osd.2 leads was scrubbed deeply; none while a new manager has not heard of any."""
    rows = lab.ceph.json("pg", "ls-by-primary", "osd.2").get("pg_stats", ())
    return {row["pgid"]: row["last_deep_scrub_stamp"] for row in rows}


def test_an_osd_that_is_down_is_down_for_the_cluster_and_comes_back(lab: leadline_lab.Lab) -> None:
    with injected(lab, "osd-down", "osd.1"):
        until(lambda: osd(lab, 1)["up"] == 0, "osd.1 to be down")
        with pytest.raises(UsageError, match="is held by a fault in force: osd-down on"):
            engine.inject(lab.directory, os.environ, "osd-slow-cpu", "osd.1")
    until(lambda: osd(lab, 1)["up"] == 1, "osd.1 to be up")


def test_an_osd_that_is_paused_stands_still(lab: leadline_lab.Lab) -> None:
    pid = pid_of(lab, "osd.1")
    with injected(lab, "osd-paused", "osd.1"):
        until(lambda: state_of(pid) == "T", "state T")
    until(lambda: state_of(pid) != "T", "another state")


def test_an_osd_short_of_cpu_is_throttled(lab: leadline_lab.Lab) -> None:
    pid = pid_of(lab, "osd.2")
    before = ControlGroups(lab.record.fsid).place_of("cpu", pid)
    with load(lab), injected(lab, "osd-slow-cpu", "osd.2", cpu="5%"):
        until(lambda: cpu_stat(lab, "osd.2")["nr_throttled"] > 5, "throttling")
    assert ControlGroups(lab.record.fsid).place_of("cpu", pid) == before


def test_an_osd_with_a_slow_disk_writes_at_that_rate(lab: leadline_lab.Lab) -> None:
    if reason := ControlGroups(lab.record.fsid).lacking("disk"):
        pytest.skip(f"NOT RUN: {reason}")
    pid = pid_of(lab, "osd.2")
    with load(lab), injected(lab, "osd-slow-disk", "osd.2", rate="1MB/s"):
        begin, begin_s = written_bytes(pid), time.monotonic()
        until(lambda: written_bytes(pid) > begin + (4 << 20), "4 MiB written")
        rate = (written_bytes(pid) - begin) / (time.monotonic() - begin_s)
    assert rate < 2 * (1 << 20), "the bound, with room for what was on its way"


def test_osds_and_the_cluster_are_in_many_states_at_once(lab: leadline_lab.Lab) -> None:
    log = lab.record.paths.log("osd.0")
    log_bytes, before = log.stat().st_size, scrubbed(lab)
    with several(
        lab,
        ("osd-nearfull", "osd.1"),
        ("osd-full", "osd.3"),
        ("osd-scrub", "osd.2"),
        ("mgr-down", "mgr.y"),
        ("cluster-flag", "noout"),
        ("osd-debug-log", "osd.0"),
    ):
        assert "noout" in flags(lab)
        until(lambda: log.stat().st_size > log_bytes + 100_000, "100 kB of log")
        until(lambda: {"OSD_NEARFULL", "OSD_FULL"} <= checks(lab), "OSD_NEARFULL and OSD_FULL")
        until(lambda: lab.ceph.json("mgr", "dump")["active_name"] == "x", "the other manager")
        until(lambda: sum(at != before.get(name) for name, at in scrubbed(lab).items()) > 2, "deep scrubs")
    assert "noout" not in flags(lab)
    until(lambda: not {"OSD_NEARFULL", "OSD_FULL"} & checks(lab), "OSDs with space")
    assert lab.ceph.json("tell", "osd.0", "config", "get", "debug_osd")["debug_osd"] == "0/0"
    assert lab.ceph.json("config", "dump") == []
    until(lambda: write(lab) == "", "a mount that takes data")


def test_pools_and_directories_are_short_at_once(lab: leadline_lab.Lab) -> None:
    until(lambda: every_group_is_placed(lab), "a manager that knows every group")
    server, before = active_mds(lab), placed(lab, 1)
    assert write(lab, "erasure") == ""
    with several(
        lab,
        ("pool-full", "objects"),
        ("osd-crowd", "osd.1"),
        ("mds-tiny-cache", server),
        ("quota-reached", "erasure"),
        ("cluster-flag", "noscrub"),
    ):
        until(lambda: outgrown(lab), "MDS_CACHE_OVERSIZED")
        until(lambda: "Disk quota exceeded" in write(lab, "erasure"), "EDQUOT")
        until(lambda: "full_quota" in pool_flags(lab, "objects"), "full_quota")
        until(lambda: placed(lab, 1) == before + 1, "one group more")
    until(lambda: write(lab, "erasure") == "", "a directory that takes data")
    until(lambda: "full_quota" not in pool_flags(lab, "objects"), "no full_quota")
    until(lambda: placed(lab, 1) == before, "as many groups as before")
    assert filler(lab) == []
    assert "noscrub" not in flags(lab)
    cache = lab.ceph.json("tell", server, "config", "get", "mds_cache_memory_limit")
    assert cache["mds_cache_memory_limit"] == str(4 << 30)


def test_a_metadata_server_short_of_cpu_is_throttled(lab: leadline_lab.Lab) -> None:
    server = active_mds(lab)

    def throttled() -> bool:
        """Where others have the CPUs, the client asks for less than the server may do at once."""
        create(lab, 200)
        return cpu_stat(lab, server)["nr_throttled"] > 3

    with injected(lab, "mds-slow-cpu", server):
        until(throttled, "throttling")


def test_a_monitor_that_is_down_is_out_of_the_quorum(lab: leadline_lab.Lab) -> None:
    def quorum() -> list[int]:
        """By its socket: who asks the monitors may wait for the one that is down. None while they elect."""
        words = ["ceph", "--admin-daemon", str(lab.record.paths.socket("mon.a")), "mon_status"]
        done = subprocess.run(words, env=lab.variables, capture_output=True, text=True, check=True)
        return list(json.loads(done.stdout)["quorum"])

    with injected(lab, "mon-down", "mon.b"):
        until(lambda: len(quorum()) == 2, "a quorum of two")
    until(lambda: len(quorum()) == 3, "a quorum of three")


def test_a_full_cluster_takes_no_data(lab: leadline_lab.Lab) -> None:
    assert write(lab) == ""
    with injected(lab, "cluster-full"):
        until(lambda: "No space left" in write(lab), "ENOSPC on the mount")
        assert "OSD_FULL" in checks(lab)
    until(lambda: write(lab) == "", "a mount that takes data")


def test_a_paused_cluster_takes_and_gives_no_data(lab: leadline_lab.Lab) -> None:
    with injected(lab, "cluster-flag", "pause"):
        assert {"pauserd", "pausewr"} <= flags(lab)
    assert not flags(lab) & {"pauserd", "pausewr"}


def test_backfill_is_in_flight_from_an_osd_that_is_out_and_its_data_go(lab: leadline_lab.Lab) -> None:
    with injected(lab, "osd-backfill", "osd.1", data="64M", sleep="2s"):
        assert osd(lab, 1)["in"] == 0
        until(lambda: "backfill" in groups(lab), "backfill")
    assert filler(lab) == []
    assert osd(lab, 1)["in"] == 1


def test_recovery_is_in_flight(lab: leadline_lab.Lab) -> None:
    with injected(lab, "osd-recovery", "osd.1", data="32M", sleep="2s"):
        until(lambda: "recover" in groups(lab), "recovery")
    assert filler(lab) == []
    until(lambda: osd(lab, 1)["up"] == 1, "osd.1 to be up")


def test_another_metadata_server_takes_over(lab: leadline_lab.Lab) -> None:
    before = active_mds(lab)
    made = engine.inject(lab.directory, os.environ, "mds-failover")
    assert active_mds(lab) not in ("mds.", before)
    assert engine.in_force(lab.directory) == ()
    (fault,) = [item for item in faults.read(lab.directory) if item.id == made.id]
    assert fault.ended_unix_s is not None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_whoever_waits_and_is_ended_leaves_nothing_that_cannot_be_undone(
    lab: leadline_lab.Lab, leadline: Command, start: Start, number: signal.Signals
) -> None:
    pid, place = pid_of(lab, "osd.1"), ("--dir", str(lab.directory))
    command = start("lab", "inject", *place, "osd-paused", "osd.1", "for", "60s")
    until(lambda: state_of(pid) == "T", "state T")
    command.send_signal(number)
    command.wait(30)
    if number == signal.SIGKILL:
        assert state_of(pid) == "T"
        (found,) = json.loads(leadline("lab", "inject", *place, "--list", "--json").stdout)["injections"]
        assert found["kind"] == "osd-paused"
        assert "osd-paused on osd.1" in leadline("lab", "status", *place).stdout
        assert leadline("lab", "inject", *place, "--clear").returncode == 0
    until(lambda: state_of(pid) != "T", "another state")
    assert engine.in_force(lab.directory) == ()


def test_where_the_cluster_does_not_answer_the_fault_stays_recorded(
    lab: leadline_lab.Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.inject(lab.directory, os.environ, "cluster-flag", "noout")
    monitors = [pid_of(lab, name) for name in ("mon.a", "mon.b", "mon.c")]
    for pid in monitors:
        os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(actions, "_CEPH_DEADLINE_S", 3.0)
    try:
        _, (failure,) = engine.clear(lab.directory, os.environ)
        assert isinstance(failure, LabError)
        assert "cluster-flag on noout" in failure.message
        assert "could not be undone" in failure.message
    finally:
        for pid in monitors:
            os.kill(pid, signal.SIGCONT)
        monkeypatch.undo()
    assert [item.kind for item in engine.in_force(lab.directory)] == ["cluster-flag"]
    wait_until_healthy(lab)
    assert engine.clear(lab.directory, os.environ)[1] == []
