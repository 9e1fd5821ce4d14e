"""What a job moves and where, on real files: `io_size`, files that are whole to all, partly random orders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import core_jobs
import pytest

from leadline import _core


def _moved(summary: dict[str, Any]) -> int:
    return sum(int(way["bytes"]) for way in summary["directions"].values())


@pytest.mark.parametrize("rw", ["read", "randread", "write", "randwrite"])
@pytest.mark.parametrize("io_size", [64 << 10, 3 << 20])
def test_each_numjob_moves_io_size_less_or_more_than_its_files(tmp_path: Path, rw: str, io_size: int) -> None:
    """Of two numjobs with a MiB each."""
    changes = {"rw": rw, "io_size": io_size, "numjobs": 2, "overwrite": "write" in rw}
    _core.layout(core_jobs.job(tmp_path, **changes))
    summary, _ = core_jobs.run(tmp_path, **changes)
    assert _moved(summary) == 2 * io_size


def test_what_is_whole_to_all_is_one_file_that_each_reads_to_its_end(tmp_path: Path) -> None:
    changes = {"rw": "read", "shared": "whole", "numjobs": 3}
    _core.layout(core_jobs.job(tmp_path, **changes))
    assert [path.stat().st_size for path in tmp_path.glob("data.*")] == [core_jobs.MIB]
    summary, _ = core_jobs.run(tmp_path, **changes)
    assert _moved(summary) == 3 * core_jobs.MIB


def test_latencies_counted_elsewhere_become_a_histogram_of_the_same_counts() -> None:
    blob = _core.histogram_of_counts([(1_000, 90), (2_000_000, 9), (4_000_000_000_000, 1)])
    assert _core.histogram_summary(blob)["count"] == 100
    low, high = _core.histogram_percentiles(blob, [90, 99])
    assert low == pytest.approx(1_000, rel=1e-3)
    assert high == pytest.approx(2_000_000, rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"io_size": 4096, "time_based": True, "runtime_ns": 1}, "io_size"),
        ({"rw": "read", "percentage_random": 50}, "percentage_random"),
        ({"percentage_random": 101}, "percentage_random"),
        ({"rw": "randwrite", "shared": "whole", "numjobs": 2, "verify": True}, "verify"),
        ({"generator": "ior"}, "generator|variant"),
    ],
)
def test_what_contradicts_itself_is_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], key: str
) -> None:
    job = json.loads(core_jobs.job(tmp_path)) | changes
    with pytest.raises(ValueError, match=key):
        _core.check_job(json.dumps(job))
