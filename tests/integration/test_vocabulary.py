"""Metadata works and shared files from the command line to the report; what a kill leaves is removable."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from leadline.store.reader import open_result
from measured import BRIEF, CACHED, assert_measured
from support import Command, Start, command_line, show

METADATA = (
    "format: leadline.study/1\n"
    "blocks: 2\n"
    "works:\n"
    "  tree: {operations: [mkdir, create, open, stat, readdir, rename, unlink, rmdir], files: 200,"
    " branch: 3, depth: 2, numjobs: 2}\n"
    "  together: {operations: [create, stat, unlink], files: 200, numjobs: 3, private: false}\n"
    "  cold: {operations: [first_byte], files: 30, file_size: 16k}\n"
)
SHARED = (
    "format: leadline.study/1\n"
    "blocks: 2\n"
    "defaults: {size: 2M, numjobs: 3, engine: psync, direct: false}\n"
    "works:\n"
    "  each: {rw: write, bs: 64k}\n"
    "  segmented: {rw: write, bs: 64k, shared: segmented}\n"
    "  strided: {rw: read, bs: 64k, shared: strided, verify: true}\n"
    "  mixed: {rw: randrw, bs: '4k,64k', thinktime: 1ms, thinktime_blocks: 32, fdatasync: 16}\n"
    "  skewed: {rw: randread, bssplit: 4k/70:64k/30, random_distribution: zipf:1.1}\n"
    "  soft: {rw: write, buffer_compress_percentage: 50, dedupe_percentage: 20}\n"
)
OPERATIONS = ("mkdir", "create", "open", "stat", "readdir", "rename", "unlink", "rmdir")


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_metadata_study_gives_a_rate_and_latencies_of_each_operation(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    study = write(tmp_path / "m.yaml", METADATA)
    done = leadline("run", str(study), "--target", f"a={target}", "--out", str(out))
    assert_measured(done, out, BRIEF)
    assert list(target.iterdir()) == []
    cells = {cell["work"]: cell for cell in show(leadline, out)["cells"]}
    for operation in OPERATIONS:
        assert cells["tree"]["metrics"][f"{operation}_iops"]["value"] > 0
        assert cells["tree"]["metrics"][f"{operation}_latency_mean"]["value"] > 0
    assert cells["together"]["metrics"]["create_latency_p50"]["blocks"] == 2
    assert cells["cold"]["metrics"]["first_byte_latency_p50"]["value"] > 0
    assert "iops" not in cells["tree"]["metrics"]
    codes = {code["code"] for cell in cells.values() for code in cell["validity"]["codes"]}
    assert not codes & {"errors", "buffered_writes", "generator_saturated", "not_run"}
    for form in ("html", "md", "csv", "json", "fio"):
        written = leadline("report", str(out), "--format", form, "-o", str(tmp_path / f"report.{form}"))
        assert written.returncode == 0, written.stderr
    assert "tree create" in leadline("show", str(out)).stdout


def test_first_bytes_were_read_from_the_device_or_memory_as_the_rows_say(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    study = write(tmp_path / "m.yaml", METADATA)
    options = ("--target", f"a={target}", "--out", str(out))
    assert_measured(leadline("run", str(study), *options), out, BRIEF)
    rows = [row for row in open_result(out).trials() if row.work == "cold"]
    assert [row.read_bytes for row in rows] == [30 * 4096] * 2


def test_shared_files_and_the_finer_options_run_from_a_study(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    study = write(tmp_path / "s.yaml", SHARED)
    done = leadline("run", str(study), "--target", f"a={target}", "--out", str(out))
    assert_measured(done, out, CACHED, BRIEF)
    assert list(target.iterdir()) == []
    cells = {cell["work"]: cell for cell in show(leadline, out)["cells"]}
    for work, cell in cells.items():
        codes = {code["code"] for code in cell["validity"]["codes"]}
        assert not codes & {"errors", "verification_failed", "unwritten_blocks", "not_run"}, work
        assert ("compressible_data" in codes) == (work == "soft")
    rows = {row.work: row for row in open_result(out).trials()}
    assert rows["strided"].verified_blocks == 3 * 2 * (1 << 20) // 4096
    assert rows["mixed"].sync_operations > 0


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_what_a_stopped_metadata_trial_leaves_is_removed(
    start: Start, leadline: Command, target: Path, tmp_path: Path, how: signal.Signals
) -> None:
    study = write(
        tmp_path / "m.yaml",
        "format: leadline.study/1\nblocks: 1\nworks:\n"
        "  many: {operations: [create], files: 200000, branch: 4, depth: 3, numjobs: 2}\n",
    )
    out = tmp_path / "r"
    running = start("run", str(study), "--target", f"a={target}", "--out", str(out))
    try:
        deadline = time.monotonic() + 60
        while not any(target.glob("leadline-*/a-fresh-*/f*")) and time.monotonic() < deadline:
            assert running.poll() is None
            time.sleep(0.02)
        running.send_signal(how)
        running.communicate(timeout=120)
    finally:
        running.kill()
    if how == signal.SIGKILL:
        undone = leadline("undo", str(out))
        assert undone.returncode == 0, undone.stderr
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("name", ["metadata", "shared"])
def test_a_built_in_study_runs(leadline: Command, target: Path, tmp_path: Path, name: str) -> None:
    quick = ("--set", "runtime=200ms") if name == "shared" else ()
    sizes = ("--set", "size=4M", "--set", "ramp_time=0") if name == "shared" else ()
    done = leadline(
        *("run", name, "--target", f"a={target}", "--blocks", "1", "--out", str(tmp_path / "r")),
        *quick,
        *sizes,
    )
    assert_measured(done, tmp_path / "r", CACHED, BRIEF)
    assert all(cell["validity"]["state"] != "NOT_RUN" for cell in show(leadline, tmp_path / "r")["cells"])


@pytest.mark.parametrize(("asked", "most"), [("", 4), (", iodepth_batch: 1", 1), (", iodepth_batch: 16", 16)])
def test_the_kernel_is_handed_batches_as_asked(target: Path, tmp_path: Path, asked: str, most: int) -> None:
    """Seen from beside: by the system calls of the run."""
    work = f"rw: randread, bs: 4k, size: 4M, iodepth: 16, engine: io_uring, direct: false{asked}"
    study = write(tmp_path / "b.yaml", f"format: leadline.study/1\nblocks: 1\nworks: {{w: {{{work}}}}}\n")
    log = tmp_path / "calls"
    command = command_line("run", str(study), "--target", f"a={target}", "--out", str(tmp_path / "r"))
    strace = ("strace", "-f", "-e", "trace=io_uring_enter", "-o", str(log), *command)
    subprocess.run(strace, stdout=subprocess.DEVNULL, timeout=120, check=False)  # too short for a verdict
    assert [row.state for row in open_result(tmp_path / "r").trials()] == ["complete"]
    handed = [int(number) for number in re.findall(r"io_uring_enter\(\d+, (\d+)", log.read_text())]
    assert sum(handed) >= (4 << 20) / 4096
    assert max(handed) == most
