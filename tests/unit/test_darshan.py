"""Logs of Darshan: our tables hold what PyDarshan itself says, and damaged logs are refused."""

from __future__ import annotations

import bz2
import gzip
import json
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

pytest.importorskip("darshan", reason="PyDarshan is not installed (leadline[darshan])")

from builders import clock

from darshan_logs import (
    HEATMAP,
    POSIX,
    STDIO,
    brought,
    heat_record,
    make_log,
    posix_record,
    stdio_record,
    with_posix,
)
from leadline.errors import UsageError
from leadline.store.reader import open_result
from leadline.tracing.findings import trace_views
from leadline.tracing.paths import STREAM
from leadline.tracing.sources.darshan_tables import read_darshan
from leadline.tracing.store import create_trace_result
from leadline.tracing.tables import ALL_RANKS, COUNTERS, TraceTables
from leadline.verdict.findings import build_findings

MIB = 1 << 20


@pytest.mark.parametrize("name", with_posix())
def test_speed_by_slowest_is_the_one_that_darshan_computes(name: str) -> None:
    import darshan
    from darshan.backend.cffi_backend import accumulate_records

    path = brought(name)
    report = darshan.DarshanReport(str(path), read_all=False)
    report.mod_read_all_records("POSIX", dtype="pandas")
    records = report.records["POSIX"][0]
    theirs = accumulate_records(records, "POSIX", report.metadata["job"]["nprocs"]).derived_metrics
    tables = read_darshan([path])
    assert tables.extra["agg_perf_by_slowest"] == pytest.approx(theirs.agg_perf_by_slowest * MIB, rel=1e-9)
    assert tables.extra["agg_time_by_slowest"] == pytest.approx(theirs.agg_time_by_slowest, rel=1e-9)
    rows = tables.files.to_pylist()
    for ours in COUNTERS:
        column = records["counters"].get(f"POSIX_{ours}")
        if column is not None and (column >= 0).all():
            assert sum(row[ours] for row in rows if row["module"] in ("POSIX", STREAM)) == column.sum(), ours


def test_bytes_of_processes_are_those_below_and_of_stdio_but_not_of_mpi_again() -> None:
    tables = read_darshan([brought("ior_hdf5_example.darshan")])
    rows = tables.files.to_pylist()
    below = sum(row["BYTES_WRITTEN"] for row in rows if row["module"] in ("POSIX", "STDIO"))
    assert {row["module"] for row in rows} == {"POSIX", "STDIO", "MPI-IO"}
    assert sum(process.bytes_written for process in tables.processes) == below


def test_traced_accesses_become_segments_whose_bytes_are_the_counters() -> None:
    tables = read_darshan([brought("dxt.darshan")])
    assert tables.segments is not None
    segments = tables.segments.to_pylist()
    for call, counter in (("read", "BYTES_READ"), ("write", "BYTES_WRITTEN")):
        moved: dict[int, int] = {}
        for row in segments:
            if row["call"] == call:
                moved[row["file"]] = moved.get(row["file"], 0) + row["result"]
        rows = {row["file"]: row for row in tables.files.to_pylist() if row["file"] in moved}
        assert moved
        assert {file: rows[file][counter] for file in moved} == moved
    assert sum(row.operations for row in tables.latency) == len(segments)
    starts = [row["start_ns"] for row in segments]
    assert starts == sorted(starts)


def test_what_ranks_share_is_a_process_of_its_own() -> None:
    tables = read_darshan([brought("example.darshan")])
    assert len(tables.processes) == 2049
    assert [row.command for row in tables.processes].count(ALL_RANKS) == 1
    assert tables.processes[-1].bytes_written > 0


# PyDarshan takes long for all records of logs with thousands of files, which differ in nothing else.
@pytest.mark.parametrize("name", [name for name in with_posix() if "ost.darshan" not in name])
def test_what_is_said_of_a_log_is_in_its_records_and_no_longer_than_its_job(
    name: str, tmp_path: Path
) -> None:
    """Held against PyDarshan's own records and job, not against our tables."""
    import darshan

    report = darshan.DarshanReport(str(brought(name)), read_all=False)
    job = report.metadata["job"]
    create_trace_result(
        tmp_path / "r", {"t0001": read_darshan([brought(name)])}, title=name, details={}, now_ns=clock()
    )
    result = open_result(tmp_path / "r")
    view = trace_views(result, with_charts=False)[0]
    assert view.processes_count == job["nprocs"]
    for item in view.findings:
        assert item.saves_s is None or item.saves_s <= job["run_time"]
        assert item.cost_s is None or item.cost_s <= job["run_time"] * job["nprocs"]
    for layer in ("POSIX", "STDIO"):
        if layer in report.modules:
            report.mod_read_all_records(layer, dtype="pandas")
            names = report.name_records
            table = report.records[layer][0]["counters"]
            paths = table["id"].map(names)
            for file in (one for one in view.files if one.module == layer):
                rows = table[paths == file.path]
                assert file.opens == rows[f"{layer}_OPENS"].sum()
                assert file.processes == (
                    job["nprocs"] if (rows["rank"] < 0).any() else rows["rank"].nunique()
                )
    shares = [getattr(view.whole, kind) for kind in ("read", "write", "meta")]
    same_second = job["start_time_sec"] == job["end_time_sec"]
    assert all((share is None) == same_second for share in shares)


def test_waiting_at_fifos_is_not_said_to_be_metadata(tmp_path: Path) -> None:
    content = read_darshan([brought("dxt.darshan")])
    create_trace_result(tmp_path / "r", {"t0001": content}, title="dxt", details={}, now_ns=clock())
    findings = build_findings(open_result(tmp_path / "r"), with_charts=False)
    text = " ".join(one.text for one in findings.statements)
    assert "Mostly metadata" not in text
    assert "100 % metadata" not in text
    assert [code.code for code in findings.cells[0].validity.codes] == ["inexact_times"]
    assert findings.cells[0].metrics["agg_perf_by_slowest"].reason == "FIFOs were waited for within it"


def test_a_job_within_one_second_has_no_run_time_and_no_shares(tmp_path: Path) -> None:
    content = read_darshan([brought("ior_hdf5_example.darshan")])
    assert (content.extra["wall_s"], content.extra["wall_most_s"]) == (None, 1.0)
    create_trace_result(tmp_path / "r", {"t0001": content}, title="ior", details={}, now_ns=clock())
    findings = build_findings(open_result(tmp_path / "r"), with_charts=False)
    metrics = findings.cells[0].metrics
    assert [metrics[f"{kind}_share"].value for kind in ("read", "write", "meta", "compute")] == [None] * 4
    heads = [one.text for one in findings.statements if one.says == "trace_time"]
    assert "for at most 1 second" in heads[0]
    assert "%" not in heads[0]


def test_modules_without_counters_here_are_named() -> None:
    tables = read_darshan([brought("noposix.darshan")])
    assert any("no POSIX module" in warning for warning in tables.warnings)
    assert "LUSTRE" in tables.source


def test_a_program_that_used_stdio_alone_is_seen_whole(tmp_path: Path) -> None:
    log = make_log(tmp_path / "stdio.darshan", {STDIO: stdio_record(1, 0, WRITES=3, BYTES_WRITTEN=30)})
    tables = read_darshan([log])
    assert sum(row.bytes_written for row in tables.processes) == 30
    assert tables.warnings == ()


def test_modules_that_are_not_read_make_no_count_doubtful() -> None:
    tables = read_darshan([brought("sample-goodost.darshan")])
    assert "modules that are not read here: " in tables.source
    assert tables.warnings == ()


def test_several_logs_are_copies_that_began_at_their_own_times(tmp_path: Path) -> None:
    record = posix_record(9, 0, OPENS=1, READS=2, BYTES_READ=100, F_READ_TIME=0.5, F_READ_START_TIMESTAMP=1)
    one = make_log(tmp_path / "one.darshan", {POSIX: record}, ranks=1)
    two = make_log(tmp_path / "two.darshan", {POSIX: record}, ranks=1)
    tables = read_darshan([one, two])
    assert [row.copy for row in tables.processes] == [0, 1]
    assert len({row["file"] for row in tables.files.to_pylist()}) == 2
    assert tables.extra["agg_perf_by_slowest"] == pytest.approx(200 / 0.5)


def apart(tmp_path: Path, jobs: Sequence[int], starts_s: Sequence[int]) -> TraceTables:
    """Logs of ten seconds each that began so many seconds after the first."""
    record = posix_record(9, 0, OPENS=1, READS=2, BYTES_READ=100, F_READ_TIME=0.5, F_READ_START_TIMESTAMP=1)
    return read_darshan(
        [
            make_log(tmp_path / f"{place}.darshan", {POSIX: record}, ranks=1, job=job, after_s=start_s)
            for place, (job, start_s) in enumerate(zip(jobs, starts_s, strict=True))
        ]
    )


def test_logs_of_jobs_that_did_not_run_at_the_same_time_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"0\.darshan \(job 1\) had ended before 1\.darshan \(job 2\)"):
        apart(tmp_path, (1, 2, 3), (0, 1000, 2000))


@pytest.mark.parametrize(
    ("jobs", "starts_s", "words"),
    [
        ((1, 2), (0, 5), "2 copies ran at once for"),
        ((1, 1), (0, 1000), "2 copies ran one after another, or in part at once, for"),
        ((1, 2, 3), (0, 8, 16), "3 copies ran one after another, or in part at once, for"),
    ],
)
def test_copies_are_said_to_run_at_once_only_where_they_did(
    tmp_path: Path, jobs: tuple[int, ...], starts_s: tuple[int, ...], words: str
) -> None:
    content = apart(tmp_path, jobs, starts_s)
    create_trace_result(tmp_path / "r", {"t0001": content}, title="jobs", details={}, now_ns=clock())
    findings = build_findings(open_result(tmp_path / "r"), with_charts=False)
    heads = [one.text for one in findings.statements if one.says == "trace_time"]
    assert heads[0].startswith(words)


def pipeline(tmp_path: Path, *other: bytes) -> TraceTables:
    """Logs of `sh -c 'dd ... | wc'`: the shell made no call on a file, dd wrote for 9 of 10 seconds."""
    written = posix_record(
        9, 0, OPENS=1, WRITES=32, BYTES_WRITTEN=4 * MIB, MAX_BYTE_WRITTEN=4 * MIB - 1, F_WRITE_TIME=9.0
    )
    modules: dict[str, dict[int, bytes]] = {
        "sh -c dd of=out bs=128k": {},
        "dd of=out bs=128k": {POSIX: written},
        "wc -c": {STDIO: other[0]} if other else {},
    }
    names = enumerate(modules.items())
    return read_darshan(
        [
            make_log(tmp_path / f"{place}.darshan", content, ranks=1, job=place, command=command)
            for place, (command, content) in names
        ]
    )


def test_logs_of_a_pipeline_are_processes_of_one_run(tmp_path: Path) -> None:
    tables = pipeline(tmp_path)
    assert [(row.copy, row.process, row.executable) for row in tables.processes] == [
        (0, 0, "sh"),
        (0, 1, "dd"),
        (0, 2, "wc"),
    ]
    assert tables.files.to_pylist()[0]["process"] == 1
    assert tables.warnings == ()
    create_trace_result(tmp_path / "r", {"t0001": tables}, title="pipeline", details={}, now_ns=clock())
    found = build_findings(open_result(tmp_path / "r"))
    said = {one.says: one.text for one in found.statements}
    assert found.answer is not None
    assert found.answer.question.startswith("Where did the time of sh -c dd of=out bs=128k go")
    assert said["trace_time"].startswith("The command ran for 10 seconds: 90.0 % writing")
    assert "up to 9" in said["rule_mostly_writes"]
    assert "rule_imbalance_processes" not in said


def test_a_process_of_a_pipeline_that_touched_a_file_is_one_that_counts(tmp_path: Path) -> None:
    tables = pipeline(tmp_path, stdio_record(1, 0, WRITES=1, BYTES_WRITTEN=6, F_WRITE_TIME=0.01))
    create_trace_result(tmp_path / "r", {"t0001": tables}, title="pipeline", details={}, now_ns=clock())
    (view,) = trace_views(open_result(tmp_path / "r"))
    assert view.whole.base_s == pytest.approx(20.0)
    assert view.slowest is not None
    assert (view.slowest.name, view.slowest.processes) == ("process dd", 1)


def test_a_copy_that_made_no_call_leaves_the_times_of_others_known(tmp_path: Path) -> None:
    record = posix_record(9, 0, OPENS=1, READS=2, BYTES_READ=100, F_READ_TIME=5.0)
    contents: list[dict[int, bytes]] = [{POSIX: record}, {}]
    logs = [make_log(tmp_path / f"{n}.darshan", content, ranks=1) for n, content in enumerate(contents)]
    create_trace_result(
        tmp_path / "r", {"t0001": read_darshan(logs)}, title="two", details={}, now_ns=clock()
    )
    (view,) = trace_views(open_result(tmp_path / "r"))
    assert (view.whole.seconds["read"], view.whole.base_s) == (5.0, pytest.approx(20.0))
    assert [copy.share.read for copy in view.copies] == [pytest.approx(0.5), 0.0]


def test_what_darshan_does_not_know_is_null(tmp_path: Path) -> None:
    record = posix_record(9, 0, OPENS=1, FDSYNCS=-1, CONSEC_READS=-1)
    row = read_darshan([make_log(tmp_path / "a.darshan", {POSIX: record})]).files.to_pylist()[0]
    assert (row["OPENS"], row["FDSYNCS"], row["CONSEC_READS"]) == (1, None, None)
    assert (row["F_READ_START_TIMESTAMP"], row["unlinks"]) == (None, None)


def test_a_partial_log_says_so_loudly(tmp_path: Path) -> None:
    record = posix_record(9, 0, OPENS=1)
    tables = read_darshan([make_log(tmp_path / "a.darshan", {POSIX: record}, partial=1 << POSIX)])
    assert any("PARTIAL" in warning and "POSIX" in warning for warning in tables.warnings)
    assert json.loads(tables.processes[0].notes) == ["record truncated: POSIX"]


def test_a_job_that_did_not_end_has_no_run_time(tmp_path: Path) -> None:
    log = make_log(tmp_path / "a.darshan", {POSIX: posix_record(9, 0, OPENS=1)}, ended=False)
    tables = read_darshan([log])
    assert tables.extra["wall_s"] is None
    assert any("when its job ended" in warning for warning in tables.warnings)


def test_heat_maps_keep_reads_and_writes_apart(tmp_path: Path) -> None:
    records = heat_record(5, 0, 0.1, [1, 2, 3], [0, 0, 7]) + heat_record(5, 1, 0.1, [4, 0, 0], [0, 8, 0])
    tables = read_darshan([make_log(tmp_path / "a.darshan", {HEATMAP: records})])
    assert [(row["process"], row["bytes_written"], row["bytes_read"]) for row in tables.extra["heat"]] == [
        (0, [1, 2, 3], [0, 0, 7]),
        (1, [4, 0, 0], [0, 8, 0]),
    ]
    assert any("nothing is known" in warning for warning in tables.warnings)


def _figures(tables: TraceTables) -> object:
    return [row for row in tables.files.to_pylist()], tables.extra["agg_perf_by_slowest"]


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_log_is_refused_or_says_the_same(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)  # noqa: S311 - damage, not secrets
    good = brought("ior_hdf5_example.darshan")
    content = bytearray(good.read_bytes())
    if seed % 2:
        content = content[: choose.randrange(len(content))]
    else:
        for _ in range(4):
            content[choose.randrange(1000, len(content))] ^= 1 << choose.randrange(8)
    path = tmp_path / good.name
    path.write_bytes(content)
    found, refused = None, None
    try:
        found = read_darshan([path])
    except UsageError as error:
        refused = error
    if found is not None:
        assert _figures(found) == _figures(read_darshan([good]))
    else:
        assert refused is not None
        assert str(path) in refused.message
        assert refused.remedy


def test_a_reader_that_dies_is_an_error_that_names_the_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stands for a crash of the library: the reading process kills itself."""
    script = tmp_path / "dies"
    script.write_text("#!/bin/sh\nkill -SEGV $$\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    with pytest.raises(UsageError, match="SIGSEGV"):
        read_darshan([brought("dxt.darshan")])


def test_without_pydarshan_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UsageError) as raised:
        read_darshan([Path("any")])
    assert "leadline[darshan]" in raised.value.remedy


def test_a_log_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_darshan([tmp_path / "absent"])


@pytest.mark.parametrize("version", ["1.24", "2.06"])
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress], ids=["gzip", "bzip2"])
def test_a_log_of_an_old_darshan_is_not_called_damaged(
    tmp_path: Path, version: str, compress: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "log").write_bytes(compress(version.encode().ljust(8, b"\0") + bytes(4096)))
    with pytest.raises(UsageError, match=f"Darshan {version} wrote") as caught:
        read_darshan([tmp_path / "log"])
    assert "damaged" not in caught.value.message
    assert "darshan-util 2.3" in caught.value.remedy


@pytest.mark.parametrize(
    "data",
    [gzip.compress(b"a table", mtime=0), b"\x1f\x8bcut", b"BZhcut", b""],
    ids=["gzip", "gzip, cut", "bzip2, cut", "empty"],
)
def test_a_file_of_nothing_that_darshan_wrote_is_refused_as_before(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "log").write_bytes(data)
    with pytest.raises(UsageError, match="no log of Darshan"):
        read_darshan([tmp_path / "log"])


def ranks_log(path: Path, *records: bytes, ranks: int = 8) -> Path:
    return make_log(path, {POSIX: b"".join(records)}, ranks=ranks)


@pytest.mark.parametrize("shared", [True, False])
def test_a_rank_that_all_wait_for_is_named_and_nothing_is_said_of_computing(
    tmp_path: Path, shared: bool
) -> None:
    """Rank 5 reads for nine of ten seconds while seven others do next to nothing: the mean is an eighth."""
    read = {"READS": 9, "BYTES_READ": 9 * MIB, "OPENS": 1, "MAX_BYTE_READ": 9 * MIB - 1}
    one = posix_record(1, 5, F_READ_TIME=9.0, **read)
    if shared:
        one = posix_record(1, -1, F_READ_TIME=9.07, SLOWEST_RANK=5, F_SLOWEST_RANK_TIME=9.0, **read)
    log = ranks_log(tmp_path / "x.darshan", one, posix_record(2, 1, F_READ_TIME=0.01, **read))
    tables = read_darshan([log])
    (slowest,) = tables.extra["slowest_ranks"]
    assert (slowest["rank"], slowest["ranks"]) == (5, 8)
    assert sum(slowest["seconds"].values()) == pytest.approx(9.0, abs=0.02)
    create_trace_result(tmp_path / "r", {"t0001": tables}, title="ior", details={}, now_ns=clock())
    statements = build_findings(open_result(tmp_path / "r")).statements
    said = {one.says: one.text for one in statements}
    assert said["trace_slowest"].startswith("The slowest of 8 processes, rank 5, was in I/O for 9")
    assert "up to 7.8" in said["rule_imbalance_processes"]
    assert "up to 9" in said["rule_mostly_reads"]  # all of it, and not an eighth
    assert "rule_bound_by_compute" not in said
    assert not any("% computing" in text for text in said.values())
    assert "outside of file calls (computing or waiting: not known)" in said["trace_time"]


def test_the_time_of_a_job_by_mpi_io_is_that_of_its_calls_and_not_of_the_posix_calls_below(
    tmp_path: Path,
) -> None:
    tables = read_darshan([brought("ior_hdf5_example.darshan")])
    rows = tables.files.to_pylist()
    spent = {
        module: sum(row["F_WRITE_TIME"] or 0.0 for row in rows if row["module"] == module)
        for module in ("POSIX", "STDIO", "MPI-IO")
    }
    assert spent["MPI-IO"] > spent["POSIX"]
    create_trace_result(tmp_path / "r", {"t0001": tables}, title="ior", details={}, now_ns=clock())
    (view,) = trace_views(open_result(tmp_path / "r"))
    written = view.whole.seconds["write"]
    assert written is not None
    assert written >= spent["MPI-IO"] + spent["STDIO"]
