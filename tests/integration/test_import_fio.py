"""Real output of the real fio, imported: totals and rates are fio's own, percentiles within its bins."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from leadline.cli.main import run_command_line
from leadline.store.reader import open_result
from leadline.verdict.findings import build_findings
from leadline.verdict.model import Cell
from provoking import wait_until

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
_BIN = 0.017  # the width of fio's bins: 64 a power of two, and a little of ours
_COMMON = ("--size=2m", "--bs=4k", "--ioengine=psync")


def ran(tmp_path: Path, *words: str, form: str = "json+") -> tuple[Path, dict[str, Any]]:
    path = tmp_path / "fio.json"
    command = ["fio", f"--directory={tmp_path}", f"--output-format={form}", f"--output={path}", *words]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    text = path.read_text()
    return path, json.loads(text[text.index("{") :])


def cells(tmp_path: Path, *files: Path) -> dict[str, Cell]:
    assert run_command_line(["import", "fio", *map(str, files), "-o", str(tmp_path / "made")]) == 0
    return {cell.work: cell for cell in build_findings(open_result(tmp_path / "made")).cells}


def test_each_direction_has_fios_totals_rates_and_percentiles(tmp_path: Path) -> None:
    path, said = ran(tmp_path, "--name=mixed", "--rw=randrw", *_COMMON)
    (job,) = said["jobs"]
    cell = cells(tmp_path, path)["mixed"]
    for name in ("read", "write"):
        own = job[name]
        (trial,) = cell.trials
        assert trial.values[f"{name}_bytes"] == own["io_bytes"]
        assert trial.values[f"{name}_operations"] == own["total_ios"]
        assert cell.metrics[f"{name}_iops"].value == pytest.approx(own["iops"], rel=1e-6)
        assert cell.metrics[f"{name}_bandwidth"].value == pytest.approx(own["bw_bytes"], rel=1e-4)
        assert cell.metrics[f"{name}_latency_mean"].value == pytest.approx(own["clat_ns"]["mean"], rel=1e-6)
        printed = own["clat_ns"]["percentile"]
        for metric, key in (("p50", "50.000000"), ("p95", "95.000000")):
            found = cell.metrics[f"{name}_latency_{metric}"].value
            assert found == pytest.approx(printed[key], rel=_BIN), metric


def test_clones_give_what_group_reporting_of_the_same_run_would(tmp_path: Path) -> None:
    path, said = ran(tmp_path, "--name=four", "--rw=read", "--numjobs=4", *_COMMON)
    cell = cells(tmp_path, path)["four"]
    assert len(said["jobs"]) == 4
    moved = sum(job["read"]["io_bytes"] for job in said["jobs"])
    assert cell.trials[0].values["read_bytes"] == moved == 4 * (2 << 20)
    seconds = max(job["read"]["runtime"] for job in said["jobs"]) / 1000
    assert cell.metrics["bandwidth"].value == pytest.approx(moved / seconds)
    assert sum(count for curve in cell.curves for _, count in curve.buckets) == 4 * 512


def test_a_client_of_a_server_gives_the_jobs_without_their_sum(tmp_path: Path) -> None:
    job = tmp_path / "two.fio"
    job.write_text(
        f"[global]\ndirectory={tmp_path}\nsize=1m\n[one]\nrw=write\n[two]\nstonewall\nrw=write\nbs=64k\n"
    )
    socket, path = tmp_path / "s", tmp_path / "fio.json"
    server = subprocess.Popen(["fio", f"--server=sock:{socket}"], stdout=subprocess.DEVNULL)
    try:
        wait_until(socket.exists)
        command = ["fio", f"--client=sock:{socket}", str(job), "--output-format=json+", f"--output={path}"]
        subprocess.run(command, check=True, timeout=120, capture_output=True)
    finally:
        server.terminate()
        server.wait(30)
    found = cells(tmp_path, path)
    assert list(found) == ["one", "two"]
    assert found["two"].job["bs"] == 64 << 10
    assert found["one"].trials[0].values["write_bytes"] == 1 << 20


def test_plain_json_has_the_percentiles_that_fio_prints(tmp_path: Path) -> None:
    path, said = ran(tmp_path, "--name=plain", "--rw=write", *_COMMON, form="json")
    printed = said["jobs"][0]["write"]["clat_ns"]["percentile"]
    assert cells(tmp_path, path)["plain"].metrics["latency_p95"].value == pytest.approx(printed["95.000000"])
