"""The synthetic job nearest to a trace: its mix, sizes, order, pauses and files; fio and `plan` take it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from builders import facts
from hypothesis import given
from hypothesis import strategies as st
from trace_tables import file_row, files_table, segment, segments_table, tables

from leadline.errors import ResultError
from leadline.plan.make import Host, make_plan
from leadline.study.study import parse_study
from leadline.study.target import Target
from leadline.study.yaml_source import read_study
from leadline.workloads.replay.nearest import NearestJob, nearest_job, to_fio_job, to_study
from leadline.workloads.replay.script import make_script

MS = 1_000_000


def nearest(*rows: dict[str, Any]) -> NearestJob:
    timed = [{"start_ns": n * 2 * MS, "duration_ns": MS} | row for n, row in enumerate(rows)]
    files = files_table([file_row(n, path=f"/data/{n}") for n in range(4)])
    segments = segments_table([segment(**row) for row in timed])
    return nearest_job(make_script(tables(files=files, segments=segments)))


def moved(call: str, offset: int, size: int, **changes: Any) -> dict[str, Any]:
    return {"call": call, "offset": offset, "length": size, "result": size, **changes}


def plain(call: str, **changes: Any) -> dict[str, Any]:
    return {"call": call, "offset": None, "length": None, "result": 0, **changes}


def test_a_sequential_reader_is_one_and_its_pauses_are_the_mean() -> None:
    found = nearest(plain("openat"), *(moved("pread64", n * 65536, 65536) for n in range(20)))
    assert (found.rw, found.random_share, found.numjobs) == ("read", 0.0, 1)
    assert found.read_split is not None
    assert (found.read_split.parts, found.read_split.exact_share) == (((65536, 100),), 1.0)
    assert found.thinktime_ns == MS
    assert found.size == found.io_bytes == 20 * 65536


def test_mix_sizes_and_syncs_are_those_of_the_trace() -> None:
    reads = [moved("pread64", 4096 * (n * 7 % 30), 4096 if n % 4 else 16384) for n in range(30)]
    writes = [moved("pwrite64", 4096 * n, 4096, file=1) for n in range(10)]
    found = nearest(*reads, *writes[:5], plain("fsync", file=1), *writes[5:], plain("fsync", file=1))
    assert (found.rw, found.read_percent, found.fsync, found.nrfiles) == ("randrw", 75, 5, 2)
    assert found.read_split is not None
    assert dict(found.read_split.parts) == {4096: 73, 16384: 27}
    assert found.metadata_calls == 0


def test_threads_become_numjobs_and_their_imbalance_is_said() -> None:
    rows = [moved("pread64", n * 4096, 4096, thread=1 if n < 30 else 2) for n in range(40)]
    found = nearest(*rows)
    assert (found.numjobs, found.busiest_thread_share) == (2, 0.75)
    assert "the busiest did 75 %" in to_fio_job(found, "x")


def test_a_trace_without_data_has_no_such_job() -> None:
    with pytest.raises(ResultError, match="no read and no write"):
        nearest(plain("openat"), plain("close"))


def test_a_title_is_no_way_into_a_job_file() -> None:
    text = to_fio_job(nearest(moved("pread64", 0, 4096)), "x\nexec_prerun=reboot")
    assert "\nexec_prerun" not in text


sizes = st.lists(
    st.tuples(st.sampled_from(("pread64", "pwrite64")), st.integers(0, 2**30), st.integers(1, 3_000_000)),
    min_size=1,
    max_size=30,
)


@given(sizes)
def test_every_nearest_study_can_be_planned(rows: list[tuple[str, int, int]]) -> None:
    found = nearest(*(moved(call, offset, size) for call, offset, size in rows))
    study = parse_study(read_study(to_study(found, "prog"), "nearest.yaml", {}), "nearest")
    plan = make_plan(study, {"a": Target("a", "/x")}, {"a": facts()}, Host(1 << 33), 1)
    assert len(plan.trials) == 3


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_takes_the_job(tmp_path: Path) -> None:
    reads = [moved("pread64", 4096 * (n * 7 % 30), 1000 + n) for n in range(30)]
    writes = [moved("write", 100 * n, 100, file=1) for n in range(10)]
    path = tmp_path / "nearest.fio"
    path.write_text(to_fio_job(nearest(*reads, *writes, plain("fsync", file=1)), "prog"))
    done = subprocess.run(["fio", "--parse-only", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
