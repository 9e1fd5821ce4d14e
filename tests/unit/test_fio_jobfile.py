"""fio as the generator: its job file says all of the planned job, and what it cannot do is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import job
from test_imported_fio import direction, document, latency, row
from test_plan import EXT4

from leadline.errors import SpecError
from leadline.imported.fio import read_fio
from leadline.plan.make import Host, make_plan
from leadline.plan.model import Plan
from leadline.study.kind.lookups import FioLook
from leadline.study.study import parse_study
from leadline.study.target import Target
from leadline.workloads.io.fio import HISTOGRAMS, job_file, record_of, summary_of
from leadline.yamlio.yaml_source import read_yaml

HERE = FioLook(lambda _: ("fio 3.33", ""))
MISSING = FioLook(lambda name: (None, f"there is no program {name} on PATH"))


def written(**changes: Any) -> list[str]:
    told = job(**changes).as_json() | {"prefix": "a-data", "seed": 7}
    return job_file(told).splitlines()


def planned(url: str = "/a", look: FioLook = HERE, more: str = "", **options: str) -> Plan:
    said = {"rw": "randread", "bs": "4k", "size": "1M", "generator": "fio", **options}
    work = ", ".join(f"{key}: {value}" for key, value in said.items())
    text = f"format: leadline.study/1\nworks:\n  w: {{{work}}}\n{more}"
    study = parse_study(read_yaml(text, "s.yaml", {}))
    host = Host(1 << 33, lookups=(look,))
    return make_plan(study, {"a": Target("a", url)}, {"a": EXT4}, host, 1)


def test_the_job_file_names_the_files_that_the_engine_laid_out() -> None:
    assert "filename_format=a-data.$jobnum.$filenum" in written(numjobs=3)
    assert "filename=a-data.0.0" in written(numjobs=3, shared="whole")
    divided = written(numjobs=3, shared="segmented", size=1 << 20)
    assert {"filesize=3145728", "size=1048576", "offset_increment=1048576"} <= set(divided)


def test_a_ramp_is_a_job_of_its_own_so_that_its_bytes_are_counted() -> None:
    lines = written(ramp_time_ns=10**9, runtime_ns=2 * 10**9, time_based=True, end_fsync=True)
    ramp, measured = lines.index("[ramp]"), lines.index("[measured]")
    assert "runtime=1000ms" in lines[ramp:measured]
    assert {"stonewall", "runtime=2000ms", "end_fsync=1"} <= set(lines[measured:])
    assert "[ramp]" not in written()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"random_distribution": "zipf:1.2"}, "random_distribution=zipf:1.2"),
        ({"random_distribution": "random"}, "norandommap=1"),
        ({"thinktime_ns": 5_000}, "thinktime=5us"),
        ({"dedupe_percentage": 30, "incompressible": False}, "dedupe_percentage=30"),
        ({"incompressible": True}, "refill_buffers=1"),
        ({"incompressible": False}, "zero_buffers=1"),
        ({"fdatasync": 4}, "fdatasync=4"),
        ({"percentage_random": 40}, "percentage_random=40"),
        ({"io_size": 8192}, "io_size=8192"),
        ({"direct": True}, "direct=1"),
    ],
)
def test_each_option_of_the_job_is_in_the_job_file(changes: dict[str, Any], line: str) -> None:
    assert line in written(**{"rw": "randwrite", **changes})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rw": "randwrite", "verify": "true"}, "verify"),
        ({"rate_iops": "100"}, "schedule"),
        ({"rate": "1M"}, "schedule"),
        ({"shared": "strided", "numjobs": "2", "rw": "read"}, "strided"),
        ({"shared": "whole", "nrfiles": "2"}, "nrfiles"),
        ({"offset": "4k", "nrfiles": "2"}, "another place"),
        ({"steady_state": "{window: 1s}", "time_based": "true", "runtime": "60s"}, "steady_state"),
        ({"search": "{bound: 5ms}", "time_based": "true", "runtime": "2s"}, "schedule"),
    ],
)
def test_what_fio_cannot_do_as_planned_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        planned(**options)
    planned(
        **{key: value for key, value in options.items() if key in ("rw", "time_based", "runtime", "nrfiles")}
    )


def test_a_target_without_files_and_a_host_without_fio_are_refused() -> None:
    with pytest.raises(SpecError, match="files of a directory"):
        planned(url="null://")
    with pytest.raises(SpecError, match="no program fio on PATH"):
        planned(look=MISSING)
    with pytest.raises(SpecError, match="max_rate"):
        planned(more="limits: {max_rate: 1M}\n")


def test_the_plan_says_which_fio_makes_the_load() -> None:
    (cell,) = planned().cells
    assert any("fio 3.33 makes the load" in note for note in cell.notes)


def test_the_ramp_counts_in_the_totals_alone_and_histograms_leave_the_summary() -> None:
    rows = [row("ramp"), row("measured"), row("measured", read=direction(clat_ns=latency({"5000": 1000})))]
    summary = summary_of(read_fio(json.dumps(document(*rows))), 5)
    assert summary["directions"]["read"]["operations"] == 2000
    assert summary["total"]["read"]["operations"] == 3000
    assert summary["ramp_ns"] == 2 * 10**9
    assert len(summary["threads"]) == 2
    (interval,) = record_of(summary)["intervals"]
    assert (interval["start_ns"], interval["end_ns"]) == (2 * 10**9, 4 * 10**9)
    assert set(interval["histograms"]) == {"completion"}
    assert HISTOGRAMS not in summary


def test_an_error_of_fio_is_one_of_the_trial() -> None:
    summary = summary_of(read_fio(json.dumps(document(row("measured", error=28)))), 5)
    assert summary["state"] == "error"
    assert "error 28" in summary["error"]["message"]
