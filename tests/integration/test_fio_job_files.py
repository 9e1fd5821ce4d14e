"""Job files by fio itself and by leadline: as many bytes in each direction, and as many operations."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support import Command

# Jobs of a MiB are over at once and come from caches: 3 says that leadline calls them INVALID, rightly.
MEASURED = (0, 3)
GLOBAL = "[global]\nsize=1m\n"
JOBS = {
    "sequential": "[a]\nrw=read\nbs=64k\n",
    "several files": "[a]\nrw=write\nbs=16k\nnrfiles=4\n",
    "numjobs": "[a]\nrw=randread\nbs=4k\nnumjobs=3\n",
    "one file for all": "[a]\nrw=randread\nbs=4k\nnumjobs=2\nfilename=common\n",
    "queued": "[a]\nrw=randwrite\nbs=8k\nioengine=libaio\niodepth=8\ndirect=1\n",
    "less than its file": "[a]\nrw=read\nio_size=256k\n",
    "more than its file": "[a]\nrw=randread\nio_size=3m\n",
    "loops": "[a]\nrw=write\nbs=64k\nloops=3\n",
    "so many operations": "[a]\nrw=randread\nnumber_ios=100\n",
    "offset": "[a]\nrw=read\noffset=256k\n",
    "offsets": "[a]\nrw=read\nnumjobs=2\noffset_increment=256k\n",
    "parts of one file": "[a]\nrw=write\nbs=64k\nnumjobs=2\nfilename=common\noffset_increment=1m\n",
    "not whole blocks": "[a]\nrw=read\nbs=4k\nsize=10000\n",
    "partly random": "[a]\nrw=randread\npercentage_random=30\n",
    "one after the other": "[a]\nrw=write\nbs=64k\n[b]\nstonewall\nrw=read\nbs=4k\nsize=512k\n",
    "of this direction": "[a]\nrw=write\nbs=4k,32k\n",
}


def _by_fio(job: Path, directory: Path) -> list[dict[str, tuple[int, int]]]:
    """(bytes, operations) of each direction, a job of the file each (its clones added up)."""
    done = subprocess.run(
        ["fio", f"--directory={directory}", "--group_reporting", "--output-format=json", str(job)],
        capture_output=True,
        text=True,
        check=True,
        cwd=directory,
        timeout=60,
    )
    return [
        {way: (found[way]["io_bytes"], found[way]["total_ios"]) for way in ("read", "write")}
        for found in json.loads(done.stdout)["jobs"]
    ]


def _by_leadline(leadline: Command, job: Path, directory: Path, out: Path) -> list[dict[str, Any]]:
    done = leadline(
        *("run", str(job), "--target", f"here={directory}", "--blocks", "1", "--no-ceph", "--out", str(out))
    )
    assert done.returncode in MEASURED, done.stderr
    columns = "read_bytes, read_operations, write_bytes, write_operations"
    query = f"SELECT {columns} FROM read_parquet(?) ORDER BY work"  # noqa: S608 - names of columns
    rows = duckdb.execute(query, [f"{out}/trials/*.parquet"]).fetchall()
    return [{"read": row[:2], "write": row[2:]} for row in rows]


@pytest.mark.parametrize("name", JOBS)
def test_a_job_file_moves_what_fio_moves(leadline: Command, tmp_path: Path, name: str) -> None:
    job = tmp_path / "job.fio"
    job.write_text(GLOBAL + JOBS[name])
    for place in ("fio", "ours"):
        (tmp_path / place).mkdir()
    theirs = _by_fio(job, tmp_path / "fio")
    ours = _by_leadline(leadline, job, tmp_path / "ours", tmp_path / "result")
    assert ours == theirs


def test_what_is_otherwise_than_in_fio_is_said_before_it_runs(leadline: Command, tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text(GLOBAL + "[a]\nfilename=/somewhere/else\nwrite_bw_log=a\n")
    for words in (("plan",), ("run", "--blocks", "1", "--out", str(tmp_path / "r"))):
        done = leadline(words[0], str(job), "--target", f"here={tmp_path}", *words[1:])
        said = " ".join((done.stdout + done.stderr).split())
        assert done.returncode in MEASURED, done.stderr
        assert "otherwise than in fio: write_bw_log" in said
        assert "otherwise than in fio: filename" in said


def test_an_option_that_is_not_supported_is_named_with_its_line_unless_it_is_ignored(
    leadline: Command, tmp_path: Path
) -> None:
    job = tmp_path / "job.fio"
    job.write_text(GLOBAL + "[a]\nbsrange=4k-8k\n")
    refused = leadline("plan", str(job), "--target", f"here={tmp_path}")
    assert refused.returncode == 2
    assert "job.fio, line 4: bsrange" in " ".join(refused.stderr.split())
    taken = leadline("plan", str(job), "--target", f"here={tmp_path}", "--ignore", "bsrange")
    assert taken.returncode == 0
    assert "bsrange: left out" in taken.stdout
