"""What storage loses or spoils of acknowledged writes is found, told apart and counted: all that was done.

The faults are those of a FUSE file system of the tests' own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from core_jobs import MIB, job

import slow_fuse
from leadline import _core
from leadline.store.reader import open_result
from leadline.store.tables import TrialRow
from slow_fuse import SlowMount
from support import Command, show

pytestmark = pytest.mark.skipif(slow_fuse.missing() is not None, reason=str(slow_fuse.missing()))

BLOCK = 4096
KINDS = {
    "drop": "lost",
    "tear": "torn",
    "swap": "misplaced",
    "zero": "zeroed",
    "flip": "flipped",
    "foreign": "foreign",
    "delay": "stale",
}
ENGINES = [one["name"] for one in _core.engines() if one["available"] and "file" in one["schemes"]]


@pytest.fixture(scope="module")
def program() -> Path:
    return slow_fuse.build()


@pytest.fixture
def faulty(program: Path, tmp_path: Path) -> Iterator[SlowMount]:
    with slow_fuse.mounted(program, tmp_path, cached=True) as mount:
        yield mount


def ours(mount: SlowMount, name: str) -> Path:
    path = mount.path / name
    path.mkdir(mode=0o755)
    return path


def trial(place: Path, tmp_path: Path, **changes: Any) -> dict[str, Any]:
    """A trial on the files of a place; its summary."""
    return _core.run_trial(job(place, **changes), tmp_path / "trial.llrec")


def counts(checked: dict[str, Any]) -> dict[str, int]:
    found = {**checked["wrong_blocks"], "stale": checked["stale_blocks"]}
    return {kind: blocks for kind, blocks in found.items() if blocks}


@pytest.mark.parametrize("engine", ENGINES)
def test_as_many_blocks_of_each_kind_are_found_as_suffered(
    faulty: SlowMount, tmp_path: Path, engine: str
) -> None:
    place = ours(faulty, "own")
    changes: dict[str, Any] = {
        "rw": "randwrite", "engine": engine, "iodepth": 8 if engine == "io_uring" else 1, "verify": True,
        "size": 2 * MIB, "end_fsync": True, "ledger": str(tmp_path / "ledger"),
    }  # fmt: skip
    _core.layout(job(place, **changes))
    faulty.faults(list(KINDS), every=7)
    summary = trial(place, tmp_path, **changes)
    assert summary["state"] == "complete", summary["error"]
    checked = _core.check(job(place, **changes))
    injected = Counter(kind for kind, _ in faulty.injected())
    assert min(injected[kind] for kind in KINDS) >= 9
    assert counts(checked) == {KINDS[kind]: blocks for kind, blocks in injected.items()}
    assert checked["good_blocks"] == 512 - injected.total() + injected["delay"]
    named = {(one["kind"], one["offset"]) for one in checked["mismatches"]}
    assert named == {(KINDS[kind], offset) for kind, offset in faulty.injected() if kind != "delay"}


def test_a_file_of_which_all_writes_were_undone_is_lost_whole(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"rw": "randwrite", "verify": True, "ledger": str(tmp_path / "ledger")}
    _core.layout(job(tmp_path, **changes))
    file = tmp_path / "data.0.0"
    before = file.read_bytes()
    summary = trial(tmp_path, tmp_path, **changes)
    assert summary["state"] == "complete"
    file.write_bytes(before)
    checked = _core.check(job(tmp_path, **changes))
    assert counts(checked) == {"lost": 256}
    assert "writing 0; writing 1 was acknowledged" in checked["mismatches"][0]["reason"]
    summary = trial(tmp_path, tmp_path, **{**changes, "rw": "randread"})
    assert summary["state"] == "complete", "the trial that wrote it has answered for it"


def test_reads_of_a_trial_find_each_block_once_and_tell_a_stale_cache_from_a_loss(
    faulty: SlowMount, tmp_path: Path
) -> None:
    """Several passes of a mixture read what was lost many times; the page cache hides what is behind it."""
    place = ours(faulty, "own")
    changes: dict[str, Any] = {"verify": True, "ledger": str(tmp_path / "ledger"), "engine": "psync"}
    _core.layout(job(place, **changes))
    file = faulty.backing / "own" / "data.0.0"
    before = file.read_bytes()
    trial(place, tmp_path, **changes, rw="randwrite", end_fsync=True)
    after = file.read_bytes()
    file.write_bytes(before[: 8 * BLOCK] + after[8 * BLOCK :])
    timed = {"time_based": True, "runtime_ns": 300_000_000}
    summary = trial(place, tmp_path, **changes, **timed)
    assert summary["state"] == "error"
    assert (summary["error"]["kind"], summary["wrong_blocks"]["lost"]) == ("verify", 8)
    assert summary["passes"] > 2
    file.write_bytes(before[: 2 * BLOCK] + after[2 * BLOCK :])
    checked = _core.check(job(place, **changes))
    assert counts(checked) == {}
    assert checked["recovered_blocks"]["lost"] == 6


@pytest.mark.parametrize("engine", ENGINES)
def test_blocks_that_are_written_again_and_again_verify(tmp_path: Path, engine: str) -> None:
    """Two writes of one block are never in flight at once: nobody could say which of them is the last."""
    changes: dict[str, Any] = {
        "rw": "randwrite", "engine": engine, "iodepth": 32 if engine == "io_uring" else 1, "verify": True,
        "size": 16 * BLOCK, "time_based": True, "runtime_ns": 200_000_000, "random_distribution": "zipf:1.2",
        "ledger": str(tmp_path / "ledger"),
    }  # fmt: skip
    _core.layout(job(tmp_path, **changes))
    summary = trial(tmp_path, tmp_path, **changes)
    assert summary["state"] == "complete"
    assert summary["passes"] > 10
    checked = _core.check(job(tmp_path, **changes))
    assert (counts(checked), checked["good_blocks"]) == ({}, 16)
    mixed = {**changes, "rw": "randrw", "random_distribution": "map"}
    summary = trial(tmp_path, tmp_path, **mixed)
    assert summary["state"] == "complete", summary["error"]
    assert summary["verified_blocks"] == summary["total"]["read"]["operations"] > 100


def test_what_was_in_flight_when_a_trial_failed_may_be_either(faulty: SlowMount, tmp_path: Path) -> None:
    place = ours(faulty, "own")
    changes: dict[str, Any] = {
        "rw": "randwrite", "engine": "psync", "verify": True, "direct": True,
        "ledger": str(tmp_path / "ledger"),
    }  # fmt: skip
    _core.layout(job(place, **changes))
    faulty.rules(error=5, fails=range(64 * BLOCK, 65 * BLOCK))
    summary = trial(place, tmp_path, **changes)
    assert (summary["state"], summary["error"]["errno"]) == ("error", 5)
    faulty.rules()
    checked = _core.check(job(place, **changes))
    assert counts(checked) == {}
    assert checked["good_blocks"] == 256


def test_a_trial_that_did_not_end_leaves_no_ledger(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"rw": "randwrite", "verify": True, "ledger": str(tmp_path / "ledger")}
    _core.layout(job(tmp_path, **changes))
    timed = {"time_based": True, "runtime_ns": 30_000_000_000}
    code = "import sys; from leadline import _core; _core.run_trial(sys.argv[1], sys.argv[2])"
    words = [sys.executable, "-c", code, job(tmp_path, **changes, **timed), str(tmp_path / "killed.llrec")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the first word of its progress: it is running
        process.kill()
    assert not (tmp_path / "ledger").exists()
    with pytest.raises(RuntimeError, match="lay the files out anew"):
        trial(tmp_path, tmp_path, **changes)


def test_what_checks_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="name a file for ledger"):
        trial(tmp_path, tmp_path, rw="randwrite", verify=True)
    with pytest.raises(ValueError, match="moves no data"):
        trial(tmp_path, tmp_path, engine="null", verify=True)
    with pytest.raises(ValueError, match="use a smaller size"):
        trial(tmp_path, tmp_path, verify=True, size=(1 << 40) + MIB)
    with pytest.raises(ValueError, match="all writings are alike"):
        trial(tmp_path, tmp_path, verify=True, incompressible=False, dedupe_percentage=100)
    with pytest.raises(ValueError, match="use verify: true"):
        trial(tmp_path, tmp_path, ledger=str(tmp_path / "ledger"))


STUDY = """
format: leadline.study/1
blocks: 1
limits: {reserve: 1M}
defaults: {bs: 4k, size: 1M, engine: psync}
works:
"""


def run_study(
    leadline: Command, tmp_path: Path, verify: str, targets: dict[str, Path], *patterns: str
) -> tuple[list[TrialRow], subprocess.CompletedProcess[str]]:
    study, out = tmp_path / "study.yaml", tmp_path / "r"
    works = [f"  {rw}: {{rw: {rw}, verify: {verify}}}\n" for rw in patterns or ("randwrite",)]
    study.write_text(STUDY + "".join(works))
    words = [word for name, path in targets.items() for word in ("--target", f"{name}={path}")]
    ran = leadline("run", str(study), *words, "--out", str(out), "--quiet")
    assert not list(out.glob("records/*")), "ledgers are gone with the run"
    return (open_result(out).trials() if out.exists() else []), ran


def test_a_verified_study_reads_back_what_it_wrote(leadline: Command, tmp_path: Path) -> None:
    place = tmp_path / "files"
    place.mkdir()
    patterns = ("randwrite", "write", "randrw")
    rows, _ = run_study(leadline, tmp_path, "true", {"t": place}, *patterns)
    assert {row.work for row in rows} == set(patterns)
    table = show(leadline, tmp_path / "r")["verification"]["parts"][0]["rows"]
    shown = {line[0]: line[1:4] for line in table}
    for row in rows:
        assert row.state == "complete", row.error
        found = json.loads(row.summary)["verification"]
        (look,) = found.pop("looks")
        assert set(found.values()) == {0}
        assert (look["target"], look["good_blocks"]) == ("t", 256)
        assert look["past"] in ("by direct I/O", "after its pages were dropped from the page cache")
        assert row.verified_blocks == 256 + row.read_operations
        right = f"{row.verified_blocks} of {row.verified_blocks} blocks"
        assert shown[row.cell] == [right, f"through t {look['past']}", "nothing"]


def test_lost_writes_make_a_cell_invalid_in_words(
    faulty: SlowMount, leadline: Command, tmp_path: Path
) -> None:
    faulty.faults(["drop"], every=10, first=256)
    (row,), _ = run_study(leadline, tmp_path, "true", {"t": faulty.path})
    lost = len(faulty.injected())
    assert lost == 25
    assert row.state == "error"
    assert f"{lost} lost (what was there before an acknowledged write is still there)" in str(row.error)
    shown = show(leadline, tmp_path / "r")
    (cell,) = shown["cells"]
    assert shown["verification"]["parts"][0]["rows"][0][3] == f"{lost} lost"
    assert cell["validity"]["state"] == "INVALID"
    (code,) = [one for one in cell["validity"]["codes"] if one["code"] == "verification_failed"]
    assert f"{lost} lost" in code["evidence"]


def test_another_way_that_shows_old_data_is_a_stale_cache(
    program: Path, leadline: Command, tmp_path: Path
) -> None:
    """The writer's mount shows what it has not passed on: nothing is lost by its own way."""
    with (
        slow_fuse.mounted(program, tmp_path) as writer,
        slow_fuse.mounted(program, tmp_path, name="other") as other,
    ):
        writer.faults(["cache"], every=10, first=256)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        targets = {"writer": writer.path, "other": other.path, "elsewhere": elsewhere}
        rows, _ = run_study(leadline, tmp_path, "other", targets)
        rows.sort(key=lambda row: list(targets).index(row.target))
        assert len(writer.injected()) == 50, "each of the two loses 25 of its own"
        for row, ways in ((rows[0], ["writer", "other"]), (rows[1], ["other", "writer"])):
            found = json.loads(row.summary)["verification"]
            assert [look["target"] for look in found.pop("looks")] == ways
            assert found == {**dict.fromkeys(found, 0), "stale": 25}
        lonely = next(row for row in rows if row.target == "elsewhere")
        assert (lonely.state, "none of the others shows its files" in str(lonely.error)) == ("error", True)


def test_another_way_needs_another_target(leadline: Command, tmp_path: Path) -> None:
    place = tmp_path / "files"
    place.mkdir()
    _, ran = run_study(leadline, tmp_path, "other", {"t": place})
    assert ran.returncode != 0
    assert "verify: other reads back through other targets" in ran.stderr
