"""Targets that need no mount: RADOS and CephFS by their libraries, on the session's lab."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from leadline import _core
from leadline import lab as leadline_lab
from leadline.store.reader import Result, open_result
from measured import assert_measured
from support import Command, command_line
from undoing import OURS, links_are_not_followed, only_what_is_marked_goes

pytestmark = pytest.mark.ceph

STUDY = """
format: leadline.study/1
blocks: 1
limits: {reserve: 100M}
defaults: {size: 8M, runtime: 1s, time_based: true, iodepth: 8, verify: true}
works:
  seqwrite_1m: {rw: write, bs: 1M}
  randrw_64k: {rw: randrw, bs: 64k}
  randread_2m: {rw: randread, bs: 2M, iodepth: 2}
"""
BOTH = "works:\n  randwrite_64k: {rw: randwrite, bs: 64k}\n"


def urls(lab: leadline_lab.Lab) -> dict[str, str]:
    conf = lab.status().directory / "ceph.conf"
    return {
        "rados": f"rados://data/leadline?conf={conf}&object_size=1M",
        "library": f"cephfs:///replicated?conf={conf}",
    }


def options(found: dict[str, str]) -> tuple[str, ...]:
    return tuple(word for name in found for word in ("--target", f"{name}={found[name]}"))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "small.yaml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def result(
    lab: leadline_lab.Lab, leadline: Command, study: Path, tmp_path_factory: pytest.TempPathFactory
) -> Result:
    out = tmp_path_factory.mktemp("run") / "r"
    done = leadline("run", str(study), *options(urls(lab)), "--out", str(out))
    assert_measured(done, out)
    return open_result(out)


def test_every_byte_read_back_is_the_byte_that_was_written(result: Result) -> None:
    trials = result.trials()
    assert {trial.state for trial in trials} == {"complete"}
    assert len(trials) == 2 * 3
    assert all(trial.verified_blocks > 0 for trial in trials)


def test_what_a_library_wrote_is_read_back_through_the_mount_too(
    lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    path, out = tmp_path / "both.yaml", tmp_path / "r"
    path.write_text(STUDY.partition("works:")[0].replace("verify: true", "verify: other") + BOTH)
    ways = {"library": urls(lab)["library"], "mount": str(lab.status().targets["replicated"])}
    done = leadline("run", str(path), *options(ways), "--out", str(out))
    assert_measured(done, out)
    for trial in open_result(out).trials():
        assert trial.state == "complete", trial.error
        found = json.loads(trial.summary)["verification"]
        looks = {look["target"]: look["good_blocks"] for look in found.pop("looks")}
        assert looks == dict.fromkeys(ways, (8 << 20) // 4096)
        assert set(found.values()) == {0}


def test_bytes_are_followed_to_the_osds(result: Result) -> None:
    for trial in result.trials():
        if trial.work == "seqwrite_1m":
            assert trial.osd_written_bytes is not None
            assert trial.osd_written_bytes >= 0.95 * trial.total_write_bytes


def test_the_targets_know_what_they_are_on(result: Result, leadline: Command) -> None:
    shown = json.loads(leadline("show", str(result.path), "--json").stdout)
    words = {target["name"]: (target["access"], target["words"]) for target in shown["targets"]}
    assert words["rados"][0] == "rados"
    assert words["library"][0] == "libcephfs"
    for phrase in ("pool data (3 replicas)", "namespace leadline", "objects of 1 MiB"):
        assert phrase in words["rados"][1]


def objects_left(lab: leadline_lab.Lab) -> list[str]:
    conf = lab.status().directory / "ceph.conf"
    listed = subprocess.run(
        ["rados", "-c", str(conf), "-p", "data", "-N", "leadline", "ls"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return listed.stdout.split()


def test_nothing_stays_in_the_pool_or_the_file_system(result: Result, lab: leadline_lab.Lab) -> None:
    assert result.complete
    assert objects_left(lab) == []
    assert not list(lab.status().targets["replicated"].glob("leadline-*"))


def job(directory: str, location: str, **changes: Any) -> str:
    plain: dict[str, Any] = {
        "format": "leadline.job/1", "trial": "t1", "directory": directory, "prefix": "data",
        "rw": "randread", "rwmixread": 50, "bs": 65536, "size": 4 << 20, "nrfiles": 1, "numjobs": 1,
        "iodepth": 4, "engine": "libcephfs", "direct": True, "overwrite": False, "fsync": 0,
        "end_fsync": False, "time_based": False, "runtime_ns": 0, "ramp_time_ns": 0,
        "rate_bytes_per_s": None, "rate_iops": None, "arrival": "constant", "verify": True,
        "incompressible": True, "sqthread_poll": False, "seed": 7, "generation": 1,
        "interval_ns": 1_000_000_000, "deadline_ns": 60_000_000_000, "parent_pid": None,
        "location": location,
    }  # fmt: skip
    return json.dumps({**plain, **changes})


def test_a_byte_flipped_through_the_mount_is_found_through_the_library(lab: leadline_lab.Lab) -> None:
    """The same file by two ways: written by libcephfs, harmed by ceph-fuse."""
    url = urls(lab)["library"]
    volume = _core.Volume(url)
    volume.make_directory("/flip")
    try:
        words = job("/flip", url)
        _core.layout(words)
        assert _core.check(words)["mismatches_total"] == 0
        with (lab.status().targets["replicated"] / "flip" / "data.0.0").open("r+b") as file:
            file.seek(1 << 20)
            old = file.read(1)
            file.seek(1 << 20)
            file.write(bytes([old[0] ^ 1]))
            file.flush()
            os.fsync(file.fileno())
        found = _core.check(words)
        assert found["mismatches_total"] == 1
        assert found["mismatches"][0]["offset"] == 1 << 20
    finally:
        volume.remove_files("/flip", "", 30.0)
        volume.remove_directory("/flip", ".leadline")


def test_several_threads_use_the_library_at_once(lab: leadline_lab.Lab, tmp_path: Path) -> None:
    """It hands descriptors from one thread to another, so that they must share them."""
    url = urls(lab)["library"]
    volume = _core.Volume(url)
    volume.make_directory("/threads")
    try:
        words = job("/threads", url, rw="write", numjobs=4, verify=False)
        command = [
            sys.executable,
            "-c",
            "import sys; from leadline import _core; _core.run_trial(*sys.argv[1:])",
        ]
        subprocess.run([*command, words, str(tmp_path / "record")], check=True, timeout=60)
        summary = _core.read_record(tmp_path / "record")["summary"]
        assert summary["state"] == "complete", summary["error"]
    finally:
        volume.remove_files("/threads", "", 30.0)
        volume.remove_directory("/threads", ".leadline")


def test_a_run_that_is_killed_leaves_what_undo_removes(
    lab: leadline_lab.Lab, leadline: Command, study: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    process = subprocess.Popen(
        command_line("run", str(study), *options(urls(lab)), "--out", str(out), "--quiet"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_text(out / "events.jsonl", '"trial_started"')
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    undone = leadline("undo", str(out))
    assert undone.returncode == 0, undone.stderr
    assert objects_left(lab) == []


def test_undo_removes_only_what_carries_the_mark_in_a_pool(
    lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    conf = lab.status().directory / "ceph.conf"

    def at(name: str) -> str:
        return f"rados://data/undo-{name}?conf={conf}&object_size=1M"

    only_what_is_marked_goes(leadline, tmp_path, at, makes_directories=False, keeps_lists=True)


def test_a_list_of_more_files_than_a_reader_takes_at_once_is_known_to_its_end(
    lab: leadline_lab.Lab,
) -> None:
    conf = lab.status().directory / "ceph.conf"
    volume = _core.Volume(f"rados://data/long?conf={conf}&object_size=1M")
    line = f"4096 4096 {OURS}/{'a' * 1000}\n".encode()
    volume.put(f"{OURS}/.leadline-files", line * ((66 << 20) // len(line)) + f"4096 1 {OURS}/last\n".encode())
    assert sorted(volume.names_in(OURS, 9)) == ["a" * 1000, "last"]
    assert not volume.remove_files(OURS, "", 60.0)
    volume.remove_directory(OURS, ".leadline")


def test_undo_removes_only_what_carries_the_mark_in_a_file_system(
    lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    top = lab.status().targets["replicated"] / "undoing"

    def at(name: str) -> str:
        _core.Volume(urls(lab)["library"]).make_directory(f"/undoing/{name}")
        return urls(lab)["library"].replace("/replicated", f"/replicated/undoing/{name}")

    top.mkdir()
    try:
        only_what_is_marked_goes(leadline, tmp_path, at)
    finally:
        shutil.rmtree(top)


def test_links_in_a_workspace_are_removed_and_not_followed(
    lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    top = lab.status().targets["replicated"] / "linked"
    top.mkdir()
    try:
        url = urls(lab)["library"].replace("/replicated", "/replicated/linked")
        links_are_not_followed(leadline, tmp_path, url, top)
    finally:
        shutil.rmtree(top)


def wait_for_text(file: Path, text: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if file.exists() and text in file.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(f"{file} had no {text!r} within {seconds} s")


def test_osds_that_stop_answering_end_the_trial_by_its_deadline(
    lab: leadline_lab.Lab,
    leadline: Command,
    study: Path,
    tmp_path: Path,
    stopped_osds: Callable[[], AbstractContextManager[None]],
) -> None:
    out = tmp_path / "r"
    process = subprocess.Popen(
        [
            *command_line("run", str(study), *options(urls(lab))[:2], "--out", str(out), "--quiet"),
            *("--set", "runtime=6s", "--grace", "2s", "--ignore-health"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_text(out / "events.jsonl", '"trial_started"')
    with stopped_osds():
        _, errors = process.communicate(timeout=150)
    assert process.returncode == 3, errors
    assert "deadline" in errors, errors
    undone = leadline("undo", str(out))
    assert undone.returncode == 0, undone.stderr
    assert objects_left(lab) == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("rados://nopool?conf={conf}", "there is no pool nopool"),
        ("rados://data?conf=/nowhere/ceph.conf", "check conf="),
        ("cephfs:///nowhere?conf={conf}", "No such file or directory"),
        ("cephfs:///?conf={conf}&fs=other", "fs="),
        ("rados://data?size=4M", "has no option"),
    ],
)
def test_a_url_that_leads_nowhere_is_one_clear_error(
    lab: leadline_lab.Lab, leadline: Command, study: Path, url: str, words: str
) -> None:
    target = url.format(conf=lab.status().directory / "ceph.conf")
    done = leadline("plan", str(study), "--target", f"x={target}", deadline_s=60)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
