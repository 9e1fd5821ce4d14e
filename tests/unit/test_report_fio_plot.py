"""A directory for fio-plot: every key that it asks for, in fio's units, and none that nobody knows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_imported_fio import document, row

from findings_examples import typical
from leadline.cli.main import run_command_line
from leadline.errors import UsageError
from leadline.report.renderers.fio import fio_files, latency_shares, rate_samples, shares_of_cpu, to_fio
from leadline.verdict.model import Cell, Curve, Line, TrialView

# What fio-plot 1.1.21 takes of a job, by jsonparsing_support.py.
_JOB = ("usr_cpu", "sys_cpu", "latency_ns", "latency_us", "latency_ms")
_OPTIONS = ("rw", "bs", "iodepth", "numjobs")


def cell(**changes: Any) -> Cell:
    found = next(one for one in typical().cells if one.shown.directions == ("read",))
    values: dict[str, float | None] = {"cpu_user_s": 1.0, "cpu_system_s": 0.5, "measured_s": 10.0}
    buckets = ((900, 10), (2_000, 70), (2_001, 15), (3 * 10**9, 5))
    points = ((1.0, 9_000.0), (2.0, 4_096.0), (3.0, 8_192.0))
    plain: dict[str, Any] = {
        "job": {"rw": "read", "bs": 4096, "iodepth": 1, "numjobs": 2},
        "trials": (TrialView("t0001", 1, 1, "complete", None, values),),
        "lines": (Line("t0001", 1, "bandwidth", "B/s", points, measured_from_s=1.0),),
        "curves": (Curve("read", "total", 100, (), buckets=buckets),),
    }
    return replace(found, **{**plain, **changes})


def test_cpu_is_percent_of_the_time_of_all_jobs() -> None:
    assert shares_of_cpu(cell()) == {"usr_cpu": 5.0, "sys_cpu": 2.5}


def test_samples_are_of_the_measured_intervals() -> None:
    found = rate_samples(cell(), "read")
    assert (found["iops_min"], found["iops_max"], found["iops_samples"]) == (1, 2, 2)
    assert found["iops_mean"] == 1.5
    assert found["iops_stddev"] == pytest.approx(0.5**0.5)


def test_latency_classes_are_fios_and_add_up_to_all() -> None:
    found = latency_shares(cell())
    assert found["latency_ns"]["1000"] == 10
    assert found["latency_us"]["2"] == 70
    assert found["latency_us"]["4"] == 15
    assert found["latency_ms"][">=2000"] == 5
    assert sum(sum(one.values()) for one in found.values()) == pytest.approx(100)


def test_what_is_not_known_is_absent() -> None:
    unknown = TrialView("t0001", 1, 1, "complete", None, {"measured_s": 10.0})
    assert shares_of_cpu(cell(trials=(unknown,))) == {}
    assert latency_shares(cell(curves=())) == {}
    assert rate_samples(cell(lines=()), "read") == {}
    assert rate_samples(cell(job={"bs": 4096, "bssplit": {"read": []}}), "read") == {}


def test_each_file_has_one_job_with_all_that_fio_plot_takes() -> None:
    files = fio_files(replace(typical(), cells=(cell(),)))
    ((name, text),) = files.items()
    assert name == f"{cell().target}/{cell().work}.json"
    found = json.loads(text)
    assert "fio version" in found
    (job,) = found["jobs"]
    assert set(_JOB) <= job.keys()
    assert set(_OPTIONS) <= job["job options"].keys()
    assert {"bw", "iops", "iops_stddev", "lat_ns"} <= job["read"].keys()


# What fio 3.33 prints of each direction, of a job and on top (`fio --output-format=json`).
_LATENCIES = ("slat_ns", "clat_ns", "lat_ns")
_DIRECTION = {
    *("io_bytes", "io_kbytes", "bw_bytes", "bw", "iops", "runtime", "total_ios", *_LATENCIES),
    *("bw_min", "bw_max", "bw_agg", "bw_mean", "bw_dev", "bw_samples"),
    *("iops_min", "iops_max", "iops_mean", "iops_stddev", "iops_samples"),
}
_TOP = {"fio version", "timestamp", "timestamp_ms", "time", "global options", "jobs", "disk_util"}


@pytest.mark.parametrize("mix", [None, 0, 50, 100])
def test_every_job_has_reads_writes_and_trims_with_all_keys_of_fio(mix: int | None) -> None:
    one = cell()
    if mix is not None:
        own = {"rw": "rw", "bs": 4096, "iodepth": 1, "numjobs": 2, "rwmixread": mix}
        one = replace(one, job=own, shown=replace(one.shown, directions=("read", "write")))
    (text,) = fio_files(replace(typical(), cells=(one,))).values()
    found = json.loads(text)
    assert found.keys() >= _TOP
    (job,) = found["jobs"]
    for name in ("read", "write", "trim"):
        idle = name == "trim" or mix == {"read": 0, "write": 100}[name] or (mix is None and name == "write")
        assert not idle or (job[name].keys() >= _DIRECTION and job[name]["total_ios"] == 0)
        assert all(job[name][clock]["N"] == 0 for clock in _LATENCIES if idle)
        assert {"iops_stddev", "iops_samples", "bw_dev", *_LATENCIES} <= job[name].keys()
        assert job[name]["runtime"] == (0 if idle else 10_000)
    assert (job["sync"]["total_ios"], job["job_runtime"]) == (0, 10_000)


def test_a_direction_that_moved_and_has_no_number_does_not_say_0() -> None:
    one = replace(cell(), metrics={"latency_p99": cell().metrics["latency_p99"]}, trials=())
    (text,) = fio_files(replace(typical(), cells=(one,))).values()
    (job,) = json.loads(text)["jobs"]
    assert not {"iops", "bw", "io_bytes", "runtime"} & job["read"].keys()
    assert job["write"]["iops"] == 0


def test_no_name_of_a_cell_leads_out_of_the_directory() -> None:
    (name,) = fio_files(replace(typical(), cells=(replace(cell(), target="../..", work="a/../b"),)))
    assert ".." not in name
    assert name.count("/") == 1


def test_a_result_without_reads_and_writes_is_refused() -> None:
    with pytest.raises(UsageError, match="no cell of reads and writes"):
        fio_files(replace(typical(), cells=()))


def test_the_command_writes_a_directory_and_never_into_a_result(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(document(row())))
    made, plots = str(tmp_path / "made"), tmp_path / "plots"
    assert run_command_line(["import", "fio", str(tmp_path / "a.json"), "-o", made]) == 0
    assert run_command_line(["report", made, "--format", "fio-plot", "-o", str(plots)]) == 0
    assert [path.name for path in plots.rglob("*.json")] == ["one.json"]
    assert run_command_line(["report", made, "--format", "fio-plot", "-o", made]) == 2
    assert run_command_line(["report", made, "--format", "fio-plot"]) == 2


@pytest.mark.parametrize("state", ["error", "hung"])
def test_a_job_that_failed_has_an_error_and_all_of_fios_keys_with_nothing_moved(state: str) -> None:
    failed = cell(trials=(TrialView("t0001", 1, 1, state, None, {}),), lines=(), curves=())
    (job,) = json.loads(to_fio(replace(typical(), cells=(failed,))))["jobs"]
    assert job["error"] == 1
    moved = job["read"]
    assert (moved["iops"], moved["bw"], moved["io_bytes"], moved["lat_ns"]["N"]) == (0, 0, 0, 0)


def test_a_cell_that_was_not_run_is_no_job() -> None:
    left_out = cell(validity=replace(cell().validity, state="NOT_RUN"))
    found = json.loads(to_fio(replace(typical(), cells=(cell(), left_out))))["jobs"]
    assert [job["jobname"] for job in found] == [cell().id]
