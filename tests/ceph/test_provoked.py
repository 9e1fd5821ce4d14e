"""Validity codes that need a cluster, provoked on the lab; each test leaves it as it was, even failing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from healthy import wait_until_healthy

from leadline import lab as leadline_lab
from leadline.store.reader import open_result
from leadline.verdict.findings import build_findings
from measured import MOVING, Expected
from provoking import Codes, codes_of, running, wait_until, write_study
from support import Start

pytestmark = pytest.mark.ceph

READ = "w: {rw: randread, bs: 64k, iodepth: 4, engine: auto, direct: true}"
OBJECTS = 200
CLEAN = Expected("cluster_not_degraded", "a degraded cluster is asked for, and this one is clean")
# Longer than the 5 s in which OSDs report their states: so long each object's scrub takes.
SLOW_SCRUB = {"osd_scrub_sleep": "8", "osd_scrub_chunk_min": "1", "osd_scrub_chunk_max": "1"}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "study.yaml"


@pytest.fixture
def run(start: Start, lab: leadline_lab.Lab, study: Path, tmp_path: Path) -> Callable[..., Codes]:
    """Run one work on the replicated mount; the codes of its cell."""

    def execute(work: str = READ, *expected: Expected, words: tuple[str, ...] = ()) -> Codes:
        write_study(study, work)
        place = Path(lab.status().targets["replicated"])
        with running(start, study, place, tmp_path / "r", "--ignore-health", *words) as started:
            started.end(*expected)
        return codes_of(tmp_path / "r")["a.w"]

    return execute


def state_of(lab: leadline_lab.Lab) -> list[str]:
    return [item["name"] for item in lab.ceph.json("pg", "stat")["pg_summary"]["num_pg_by_state"]]


def is_clean(lab: leadline_lab.Lab) -> bool:
    return state_of(lab) == ["active+clean"]


def is_served_degraded(lab: leadline_lab.Lab) -> bool:
    """Not clean, and a block is written within seconds: while a group peers, a mount may not answer in time.

    What `pg stat` says of groups is some seconds old, so that it cannot be asked for that.
    """
    probe = Path(lab.status().targets["replicated"]) / "probe"
    words = ("dd", "if=/dev/zero", f"of={probe}", "bs=4096", "count=1", "oflag=direct")
    try:
        subprocess.run(words, check=True, capture_output=True, timeout=3)
        probe.unlink()
    except (subprocess.SubprocessError, OSError):
        return False
    return not is_clean(lab)


def checks_of(lab: leadline_lab.Lab) -> set[str]:
    return set(lab.ceph.json("health")["checks"])


def rados(lab: leadline_lab.Lab, *words: str) -> list[str]:
    return ["rados", "-c", str(lab.record.paths.conf), "--id", "admin", *words]


def test_a_healthy_cluster_used_by_nobody_else_is_not_accused(run: Callable[..., Codes]) -> None:
    found = run("w: {rw: randrw, rwmixread: 50, bs: 64k, engine: psync, direct: true}")
    assert "OSDs" not in found.get("other_load", ("", ""))[1]
    assert not {"cluster_not_clean", "nearly_full", "scrub_or_recovery", "implausible"} & found.keys()


@pytest.mark.provokes("nearly_full")
def test_a_cluster_above_its_nearfull_ratio(lab: leadline_lab.Lab, run: Callable[..., Codes]) -> None:
    before = lab.ceph.json("osd", "dump")["nearfull_ratio"]
    try:
        lab.ceph.run("osd", "set-nearfull-ratio", "0.0001")
        wait_until(lambda: "OSD_NEARFULL" in checks_of(lab), 60)
        found = run()
    finally:
        lab.ceph.run("osd", "set-nearfull-ratio", f"{before:.4f}")
        wait_until(lambda: not {"OSD_NEARFULL", "POOL_NEARFULL"} & checks_of(lab), 60)
    assert found["nearly_full"][0] == "DOUBTFUL"
    assert "OSD_NEARFULL" in found["nearly_full"][1]


@contextmanager
def objects(lab: leadline_lab.Lab, pool: str) -> Iterator[None]:
    """Small objects in a pool, gone at the end."""
    bench = ("bench", "-p", pool, "30", "write", "-b", "4096", "-t", "16", "--max-objects", str(OBJECTS))
    try:
        made = rados(lab, *bench, "--no-cleanup", "--run-name", "leadline-test")
        subprocess.run(made, env=lab.variables, check=True, capture_output=True, timeout=100)
        yield
    finally:
        gone = rados(lab, "-p", pool, "cleanup", "--run-name", "leadline-test")
        subprocess.run(gone, env=lab.variables, check=True, capture_output=True, timeout=100)


@pytest.mark.provokes("scrub_or_recovery")
def test_a_deep_scrub_that_runs_during_a_trial(lab: leadline_lab.Lab, run: Callable[..., Codes]) -> None:
    pool = data_pool(lab)
    with objects(lab, pool):
        try:
            for name, value in SLOW_SCRUB.items():
                lab.ceph.run("config", "set", "osd", name, value)
            lab.ceph.run("osd", "pool", "deep-scrub", pool)
            wait_until(lambda: any("scrubbing" in name for name in state_of(lab)), 60)
            found = run()
        finally:
            for name in SLOW_SCRUB:
                lab.ceph.run("config", "rm", "osd", name)
            wait_until(lambda: is_clean(lab), 90)  # no group is scrubbed any more
    assert found["scrub_or_recovery"][0] == "DOUBTFUL"
    assert "scrubbing" in found["scrub_or_recovery"][1]
    assert "cluster_not_clean" not in found


def data_pool(lab: leadline_lab.Lab) -> str:
    layout = os.getxattr(lab.status().targets["replicated"], "ceph.dir.layout").decode()
    return layout.partition(" pool=")[2].split()[0]


@pytest.mark.provokes("cluster_not_clean")
def test_an_osd_that_is_down(lab: leadline_lab.Lab, run: Callable[..., Codes]) -> None:
    try:
        lab.ceph.run("osd", "set", "noup")
        lab.ceph.run("osd", "down", "3")
        wait_until(lambda: is_served_degraded(lab), 60)
        found = run(READ, MOVING)
    finally:
        lab.ceph.run("osd", "unset", "noup")
        wait_until_healthy(lab)
    assert found["cluster_not_clean"][0] == "INVALID"


def test_an_osd_that_is_down_where_that_is_to_be_measured(
    lab: leadline_lab.Lab, run: Callable[..., Codes], tmp_path: Path
) -> None:
    try:
        lab.ceph.run("osd", "set", "noup")
        lab.ceph.run("osd", "down", "3")
        wait_until(lambda: is_served_degraded(lab), 60)
        found = run(words=("--degraded",))
    finally:
        lab.ceph.run("osd", "unset", "noup")
        wait_until_healthy(lab)
    assert not {"cluster_not_clean", "cluster_not_degraded"} & found.keys()
    assert any(
        one.says == "cluster_unclean_as_asked"
        for one in build_findings(open_result(tmp_path / "r")).statements
    )


@pytest.mark.provokes("cluster_not_degraded")
def test_a_clean_cluster_where_a_degraded_one_is_to_be_measured(run: Callable[..., Codes]) -> None:
    assert run(READ, CLEAN, words=("--degraded",))["cluster_not_degraded"][0] == "INVALID"


@pytest.mark.provokes("other_load")
def test_another_client_that_writes_to_the_cluster(lab: leadline_lab.Lab, run: Callable[..., Codes]) -> None:
    pool = data_pool(lab)
    words = rados(
        lab, "bench", "-p", pool, "100", "write", "-b", "1M", "-t", "4", "--run-name", "leadline-test"
    )
    other = subprocess.Popen([*words, "--no-cleanup"], env=lab.variables, stdout=subprocess.DEVNULL)
    try:
        found = run()
    finally:
        other.kill()
        other.wait()
        gone = rados(lab, "-p", pool, "cleanup", "--run-name", "leadline-test")
        subprocess.run(gone, env=lab.variables, check=True, capture_output=True, timeout=100)
    assert found["other_load"][0] == "DOUBTFUL"
    assert "written to the OSDs was not this run's" in found["other_load"][1]
