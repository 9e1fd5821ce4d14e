"""Files striped over a pool by libradosstriper, on the session's lab."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_locations import job, wait_for_text

from leadline import _core
from leadline import lab as leadline_lab
from leadline.store.reader import open_result
from measured import assert_measured
from support import Command, command_line
from undoing import only_what_is_marked_goes

pytestmark = pytest.mark.ceph

# An operation of 1 MiB meets four units in two objects: one asynchronous call of the library reads it wrong.
LAYOUT = "stripe_unit=256K&stripe_count=2&object_size=512K"
STUDY = """
format: leadline.study/1
blocks: 1
limits: {reserve: 100M}
defaults: {size: 4M, runtime: 700ms, time_based: true, iodepth: 4, verify: true}
works:
  seqwrite_1m: {rw: write, bs: 1M}
  randrw_64k: {rw: randrw, bs: 64k}
  randread_1m: {rw: randread, bs: 1M}
"""


@pytest.fixture
def url(lab: leadline_lab.Lab) -> str:
    return f"radosstriper://data/striped?conf={lab.status().directory / 'ceph.conf'}&{LAYOUT}"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(STUDY)
    return path


def rados(lab: leadline_lab.Lab, *words: str) -> str:
    conf = lab.status().directory / "ceph.conf"
    done = subprocess.run(
        ["rados", "-c", str(conf), "-p", "data", "-N", "striped", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, (words, done.returncode, done.stderr)
    return done.stdout


def test_every_byte_read_back_is_right_by_either_kind_of_calls(
    lab: leadline_lab.Lab, leadline: Command, small: Path, tmp_path: Path, url: str
) -> None:
    out = tmp_path / "r"
    targets = ("--target", f"a={url}", "--target", f"t={url}&calls=threads")
    done = leadline("run", str(small), *targets, "--out", str(out))
    assert_measured(done, out)
    trials = open_result(out).trials()
    assert {trial.state for trial in trials} == {"complete"}, done.stdout
    assert all(trial.verified_blocks > 0 for trial in trials if trial.read_operations)
    assert rados(lab, "ls") == ""


def test_cephs_own_tool_reads_the_same_bytes_and_a_flipped_one_is_found(
    lab: leadline_lab.Lab, tmp_path: Path, url: str
) -> None:
    volume = _core.Volume(url)
    volume.make_directory("/flip")
    try:
        words = job("/flip", url, engine="radosstriper")
        _core.layout(words)
        rados(lab, "--striper", "get", "/flip/data.0.0", str(tmp_path / "data.0.0"))
        plain: dict[str, Any] = json.loads(job(str(tmp_path), url, engine="psync", iodepth=1))
        del plain["location"]
        assert _core.check(json.dumps({**plain, "direct": False}))["mismatches_total"] == 0
        # The second unit of the file is the beginning of its second object.
        name, part = "/flip/data.0.0.0000000000000001", tmp_path / "part"
        rados(lab, "get", name, str(part))
        harmed = bytearray(part.read_bytes())
        harmed[0] ^= 1
        part.write_bytes(harmed)
        rados(lab, "put", name, str(part))
        found = _core.check(words)
        assert found["mismatches_total"] == 1
        assert found["mismatches"][0]["offset"] == 256 << 10
    finally:
        volume.remove_files("/flip", "", 30.0)
        volume.remove_directory("/flip", ".leadline")
    assert rados(lab, "ls") == ""


def test_locks_of_a_run_that_was_killed_do_not_keep_its_files(
    lab: leadline_lab.Lab, leadline: Command, small: Path, tmp_path: Path, url: str
) -> None:
    out = tmp_path / "r"
    process = subprocess.Popen(
        command_line("run", str(small), "--target", f"s={url}", "--out", str(out), "--quiet"),
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
    assert rados(lab, "ls") == ""


def test_undo_removes_only_what_carries_the_mark(url: str, leadline: Command, tmp_path: Path) -> None:
    def at(name: str) -> str:
        return url.replace("data/striped", f"data/striped-{name}")

    only_what_is_marked_goes(leadline, tmp_path, at, makes_directories=False, keeps_lists=True)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("stripe_unit=100K", "multiple of 64K"),
        ("stripe_count=0", "from 1 to 1024"),
        ("calls=both", "aio or threads"),
    ],
)
def test_a_layout_that_the_library_refuses_is_one_clear_error(
    leadline: Command, small: Path, query: str, words: str
) -> None:
    done = leadline("plan", str(small), "--target", f"x=radosstriper://data?{query}")
    assert done.returncode == 2
    assert words in done.stderr
