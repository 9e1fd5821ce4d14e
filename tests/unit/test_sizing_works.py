"""Clients whose workload comes from a file: each figure held against arithmetic done here by hand."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from made_studies import random_pipeline, store
from trace_tables import SECOND, file_row, files_table, process, tables

from leadline.cli.gate_options import read_required_with_places
from leadline.cli.main import leadline
from leadline.cli.predict.sources import with_works
from leadline.errors import SpecError, UsageError
from leadline.sizing.request import AskedSizing, WorkedOut, shown_works
from leadline.tracing.store import create_trace_result
from leadline.verdict.requirements import Requirements

_HEAD = (
    "format: leadline.requirements/1\nsizing:\n  capacity: 100 TB\n  protection: ['3']\n  clients:\n    a:\n"
)
_STUDY = """format: leadline.study/1
works:
  paced: {rw: randrw, rwmixread: 75, bs: "4k,12k", size: 48m, numjobs: 4, iodepth: 8, rate_iops: 1000}
  free: {rw: read, bs: 1m, size: 64m, numjobs: 4}
  timed: {rw: write, bs: 1m, size: 64m, numjobs: 4, time_based: true, runtime: 10s}
  auto: {rw: write, bs: 1m, size: auto}
  streams: {transfer: duplex, streams: 4, readers: 3, size: 100m, buffer: 1m, in_flight: 2}
  hosts: {transfer: write, clients: 4, rate: 400m, size: 1g}
  copied: {transfer: copy, source: "root://a//b", size: 1g}
  program: {command: [cat, a]}
  both:
    order: start_together
    jobs: {in: {rw: write, bs: 1m, size: 30m}, out: {rw: read, bs: 1m, size: 10m, iodepth: 3}}
  turns:
    order: sequence
    jobs: {in: {rw: write, bs: 1m, size: 30m, rate: 1m}, out: {rw: read, bs: 1m, size: 10m, rate: 1m}}
"""
_JOBS = "[global]\nsize=64m\nbs=64k\n[in]\nrw=write\nrate=10m\nnumjobs=2\n[out]\nrw=read\nrate=5m\n"
MIB = 2**20


def _read(tmp_path: Path, population: str) -> tuple[AskedSizing, tuple[WorkedOut, ...]]:
    file = tmp_path / "asked.yaml"
    file.write_text(_HEAD + population)
    (tmp_path / "study.yaml").write_text(_STUDY)
    (tmp_path / "job.fio").write_text(_JOBS)
    required, lines = read_required_with_places(file)
    assert required.sizing is not None
    return with_works(required.sizing, lines, tmp_path)


def _one(tmp_path: Path, population: str) -> tuple[float, float, WorkedOut]:
    asked, (work,) = _read(tmp_path, f"      {{clients: 10, {population}}}\n")
    one = asked.clients["a"]
    assert (one.read_bytes_s, one.write_bytes_s) == pytest.approx((work.read_bytes_s, work.write_bytes_s))
    return one.read_bytes_s, one.write_bytes_s, work


def test_the_pace_of_a_study_is_divided_by_the_bytes_of_its_operations(tmp_path: Path) -> None:
    """Of 1,000 operations 750 read 4 KiB and 250 write 12 KiB, by four jobs of eight in flight."""
    read, write, work = _one(tmp_path, "work: {study: study.yaml, name: paced}")
    assert (read, write) == pytest.approx((750 * 4096, 250 * 12288), abs=0.01)
    assert (work.at_once, work.why) == (32, "the pace of the workload")


def test_what_runs_as_fast_as_it_can_needs_a_rate_that_is_asked(tmp_path: Path) -> None:
    read, write, work = _one(tmp_path, "work: {study: study.yaml, name: free}, rate: 66 MB/s")
    assert (read, write, work.at_once) == (66e6, 0, 4)
    with pytest.raises(SpecError, match="as fast as it can"):
        _one(tmp_path, "work: {study: study.yaml, name: free}")


def test_all_bytes_of_a_work_within_a_time_are_a_rate(tmp_path: Path) -> None:
    """Four jobs of 64 MiB in 10 minutes."""
    read, _, work = _one(tmp_path, "work: {study: study.yaml, name: free}, within: 10 min")
    assert read == pytest.approx(4 * 64 * MIB / 600, abs=0.01)
    assert work.why == "its 256 MiB within 10 min"


def test_three_of_four_streams_read(tmp_path: Path) -> None:
    read, write, work = _one(tmp_path, "work: {study: study.yaml, name: streams}, within: 100 s")
    assert (read, write, work.at_once) == (pytest.approx(3 * MIB), pytest.approx(MIB), 8)


def test_the_rate_of_a_transfer_is_of_all_its_clients(tmp_path: Path) -> None:
    """400 MiB/s over four hosts, of which one is one client here."""
    assert _one(tmp_path, "work: {study: study.yaml, name: hosts}")[1] == pytest.approx(100 * MIB)


def test_jobs_that_run_together_share_by_their_bytes(tmp_path: Path) -> None:
    """30 MiB written and 10 read within 10 s; one in flight and three. One after the other: three at most."""
    read, write, work = _one(tmp_path, "work: {study: study.yaml, name: both}, within: 10 s")
    assert (read, write, work.at_once) == (pytest.approx(MIB), pytest.approx(3 * MIB), 4)


def test_paces_of_jobs_in_turn_are_not_added(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="one after the other"):
        _one(tmp_path, "work: {study: study.yaml, name: turns}")
    read, write, _ = _one(tmp_path, "work: {study: study.yaml, name: turns}, within: 10 s")
    assert (read, write) == (pytest.approx(MIB), pytest.approx(3 * MIB))


def test_a_job_file_of_fio_is_read_as_run_reads_it(tmp_path: Path) -> None:
    """fio's rate is of each job: twice 10 MiB/s written, 5 MiB/s read."""
    read, write, work = _one(tmp_path, "work: {study: job.fio}")
    assert (read, write) == (pytest.approx(5 * MIB), pytest.approx(20 * MIB))
    assert "job.fio" in work.source


def test_only_the_files_on_the_storage_may_count(tmp_path: Path) -> None:
    """Of 300 MB that each of two copies read 200 were of its data: of libraries nobody asks the storage."""
    files = [
        file_row(0, path="/data/in", BYTES_READ=200_000_000),
        file_row(1, path="/data/out", BYTES_WRITTEN=100_000_000),
        file_row(2, path="/usr/lib/libc.so", BYTES_READ=100_000_000),
    ]
    rows = [row | {"copy": copy, "process": copy} for copy in (0, 1) for row in files]
    _trace(tmp_path / "t", files_table(rows))
    read, write, work = _one(tmp_path, "work: {trace: t, only: '/data/*'}")
    assert (read, write) == pytest.approx((10e6, 5e6))
    assert any("of files like /data/* only" in doubt for doubt in work.doubts)
    with pytest.raises(SpecError, match="nothing in files like /nix"):
        _one(tmp_path, "work: {trace: t, only: /nix}")


def _trace(place: Path, files: pa.Table | None = None, **changes: object) -> None:
    copies = [{"copy": 0, "wall_s": 10.0}, {"copy": 1, "wall_s": 30.0}]
    rows = tuple(
        process(
            number,
            copy=number,
            ended_ns=copy["wall_s"] * SECOND,
            bytes_read=300_000_000,
            bytes_written=100_000_000,
            seconds={"read": 4.0, "write": 1.0, "meta": 0.0, "sync": 0.0},
            **changes,
        )
        for number, copy in enumerate(copies)
    )
    extra = {"wall_s": 30.0, "copies": copies}
    content = tables(processes=rows, extra=extra, **({} if files is None else {"files": files}))
    create_trace_result(place, {"t0001": content}, title="prog", details={}, now_ns=lambda: SECOND)


def test_a_trace_gives_what_its_copies_moved_in_the_time_that_they_ran(tmp_path: Path) -> None:
    """Two copies of 300 MB read and 100 MB written, in 10 s and 30 s; of 40 s ten in reads and writes."""
    _trace(tmp_path / "t")
    read, write, work = _one(tmp_path, "work: {trace: t}")
    assert (read, write) == pytest.approx((300e6 / 20, 100e6 / 20))
    assert work.at_once == pytest.approx(0.25)
    assert "381 MiB in the 20 seconds that it took there" in work.why
    read, write, _ = _one(tmp_path, "work: {trace: t}, within: 100 s")
    assert (read, write) == pytest.approx((3e6, 1e6))


def test_what_a_trace_lost_is_said_with_its_figures(tmp_path: Path) -> None:
    _trace(tmp_path / "t", lost={"segments": 5})
    _, _, work = _one(tmp_path, "work: {trace: t}")
    assert any("events_lost" in doubt for doubt in work.doubts)


def test_a_pipeline_that_was_run_gives_what_it_moved_on_its_target(tmp_path: Path) -> None:
    """The mean of clients and blocks of one cell, from the table of its stages."""
    made = random_pipeline(random.Random(3))  # noqa: S311
    store(made, tmp_path / "r")
    cell = made.plan.cells[0].id
    trials = [row.trial for row in made.rows if row.cell == cell and row.state == "complete"]
    rows = [row for trial in trials for row in made.stages[trial]]
    runs = {(row.trial, row.client) for row in rows}
    read = sum(row.target_read_bytes or 0 for row in rows)
    written = sum(row.target_written_bytes or 0 for row in rows)
    found = _one(tmp_path, f"work: {{result: r, name: {cell}}}, within: 100 s")
    assert found[:2] == pytest.approx((read / len(runs) / 100, written / len(runs) / 100), abs=0.01)


def test_a_trace_of_nothing_is_no_figure(tmp_path: Path) -> None:
    content = tables(processes=(), extra={"wall_s": 1.0, "copies": []})
    create_trace_result(tmp_path / "t", {"t0001": content}, title="prog", details={}, now_ns=lambda: SECOND)
    with pytest.raises(SpecError, match="no value to size by"):
        _one(tmp_path, "work: {trace: t}")


@pytest.mark.parametrize(
    ("population", "line", "key", "words"),
    [
        ("      clients: 1\n      work:\n        study: none.yaml\n", 9, "study", "no such file"),
        (
            "      clients: 1\n      work:\n        study: study.yaml\n        name: nix\n",
            10,
            "name",
            "no workload is called 'nix'",
        ),
        ("      {clients: 1, work: {study: study.yaml}}\n", 7, "work", "it has 10 workloads"),
        ("      {clients: 1, work: {study: bad.yaml}}\n", 7, "study", "bad.yaml, line 2: .*unknown key"),
        ("      {clients: 1, work: {study: study.yaml, name: program}}\n", 7, "study", "not in a study"),
        ("      {clients: 1, work: {study: study.yaml, name: copied}}\n", 7, "study", "two servers"),
        ("      {clients: 1, work: {study: metadata, name: tree}}\n", 7, "study", "of metadata"),
        ("      {clients: 1, work: {study: media}}\n", 7, "study", "programs"),
        (
            "      {clients: 1, work: {study: study.yaml, name: timed}, within: 9 s}\n",
            7,
            "study",
            "how much it moves",
        ),
        (
            "      {clients: 1, work: {study: study.yaml, name: auto}, within: 9 s}\n",
            7,
            "study",
            "how much it moves",
        ),
        (
            "      {clients: 1, work: {study: study.yaml, name: paced}, rate: 1 MB/s}\n",
            7,
            "study",
            "pace of its own",
        ),
        ("      {clients: 1, work: {trace: none}}\n", 7, "trace", "is not a directory"),
        ("      {clients: 1, work: {result: .}}\n", 7, "result", "no manifest.json"),
        ("      {clients: 1, work: {trace: t, name: t9}}\n", 7, "name", "no trial is called 't9'"),
        ("      {clients: 1, work: {result: t}}\n", 7, "result", "no stages"),
    ],
)
def test_a_file_that_says_nothing_is_refused_at_the_line_that_names_it(
    tmp_path: Path, population: str, line: int, key: str, words: str
) -> None:
    (tmp_path / "bad.yaml").write_text("format: leadline.study/1\nwork: {}\n")
    _trace(tmp_path / "t")
    with pytest.raises(SpecError, match=words) as refused:
        _read(tmp_path, population)
    assert (refused.value.source, refused.value.line) == (str(tmp_path / "asked.yaml"), line)
    assert key in refused.value.key


@pytest.mark.parametrize(
    ("population", "words"),
    [
        ("work: {}", "one file defines"),
        ("work: {study: a, trace: b}", "one file defines"),
        ("work: {study: a}, read: 1 MB/s", "same thing twice"),
        ("work: {study: a}, rate: 1 MB/s, within: 1 s", "two paces"),
        ("read: 1 MB/s, rate: 1 MB/s", "there is none"),
        ('work: {study: "a\\0b"}', "no path"),
        ("work: {study: 5}", "no path"),
        ("work: {fio: a}", "did you mean study"),
        ("work: {study: a, only: b}", "of a trace"),
    ],
)
def test_what_contradicts_itself_is_refused_before_a_file_is_touched(
    tmp_path: Path, population: str, words: str
) -> None:
    with pytest.raises(SpecError) as refused:
        _read(tmp_path, f"      {{clients: 1, {population}}}\n")
    assert words in f"{refused.value.message} {refused.value.remedy}"


def test_a_work_that_was_not_read_is_no_rate_of_0(tmp_path: Path) -> None:
    """And a file of requirements is stored as it was written."""
    file = tmp_path / "asked.yaml"
    file.write_text(_HEAD + "      {clients: 1, work: {study: render, name: read_4m}, rate: 1 MB/s}\n")
    required, _ = read_required_with_places(file)
    assert Requirements.from_json(required.as_json()) == required
    assert required.sizing is not None
    with pytest.raises(UsageError, match="was not read"):
        required.sizing.peak()


def test_how_many_are_at_once_is_of_the_busiest_hour(tmp_path: Path) -> None:
    """Half of ten clients with 32 in flight each, but for one hour."""
    hours = ", ".join(["0.5"] * 23 + ["1"])
    asked, works = _read(
        tmp_path, f"      {{clients: 10, work: {{study: study.yaml, name: paced}}, active: [{hours}]}}\n"
    )
    (line,) = shown_works(asked, works)
    assert "at 23:00 10 at work, with 320 outstanding requests (32 each)" in line


def test_the_command_says_where_figures_of_clients_are_from(tmp_path: Path) -> None:
    file = tmp_path / "asked.yaml"
    file.write_text(_HEAD + "      {clients: 100, work: {study: render, name: read_4m}, rate: 66 MB/s}\n")
    said = CliRunner().invoke(leadline, ["size", str(file)], standalone_mode=False)
    words = " ".join(said.output.split())
    assert (
        "a, from render, workload read_4m: each reads 62.9 MiB/s (the rate that is asked for here;" in words
    )
    found = CliRunner().invoke(leadline, ["size", str(file), "--json"], standalone_mode=False)
    (work,) = json.loads(found.output)["works"]
    assert (work["population"], work["read_bytes_s"], work["at_work"]) == ("a", 66e6, 100)
