"""fio's JSON as a result: what is added up, what cannot be, and what is refused with its place."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from leadline.cli.main import run_command_line
from leadline.imported.fio import read_fio
from leadline.imported.fio_jobs import fio_cells
from leadline.store.reader import open_result
from leadline.verdict.findings import build_findings
from leadline.verdict.model import Cell

BINS = {"1000": 500, "2008": 400, "1003520": 100}


def latency(bins: dict[str, int] | None = None, **changes: Any) -> dict[str, Any]:
    count = sum((BINS if bins is None else bins).values())
    plain = {"min": 990, "max": 1_010_000, "mean": 101_655.2, "stddev": 1.0, "N": count}
    percentile = {"50.000000": 1000, "95.000000": 1_003_520, "99.000000": 1_003_520}
    return plain | {"percentile": percentile, "bins": BINS if bins is None else bins} | changes


def direction(**changes: Any) -> dict[str, Any]:
    plain = {"io_bytes": 4_096_000, "bw_bytes": 2_048_000, "iops": 500.0, "runtime": 2000, "total_ios": 1000}
    return plain | {"clat_ns": latency()} | changes


def row(name: str = "one", **changes: Any) -> dict[str, Any]:
    options = {
        "name": name,
        "rw": "randread",
        "bs": "4k",
        "iodepth": "4",
        "ioengine": "libaio",
        "direct": "1",
    }
    idle = direction(io_bytes=0, bw_bytes=0, iops=0.0, runtime=0, total_ios=0, clat_ns=latency({}, N=0))
    plain = {"jobname": name, "groupid": 0, "error": 0, "job options": options, "job_runtime": 2000}
    return plain | {"usr_cpu": 10.0, "sys_cpu": 5.0, "read": direction(), "write": idle} | changes


def document(*rows: dict[str, Any], **changes: Any) -> dict[str, Any]:
    plain = {"fio version": "fio-3.33", "timestamp": 1_795_493_114, "jobs": list(rows or (row(),))}
    return plain | changes


def imported(tmp_path: Path, *documents: dict[str, Any]) -> dict[str, Cell]:
    """The cells of a result that the command made of these."""
    files = []
    for place, one in enumerate(documents):
        path = tmp_path / f"{place}.json"
        path.write_text(json.dumps(one))
        files.append(str(path))
    assert run_command_line(["import", "fio", *files, "-o", str(tmp_path / "made"), "--target", "a"]) == 0
    return {cell.work: cell for cell in build_findings(open_result(tmp_path / "made")).cells}


def value(cell: Cell, metric: str) -> float:
    found = cell.metrics[metric].value
    assert found is not None, cell.metrics[metric].reason
    return found


def notes(one: dict[str, Any]) -> str:
    (trial,) = fio_cells([read_fio(json.dumps(one))])[0].trials
    return "; ".join(trial.said["notes"])


def test_one_job_has_the_figures_that_fio_prints(tmp_path: Path) -> None:
    cell = imported(tmp_path, document())["one"]
    assert value(cell, "iops") == pytest.approx(500)
    assert value(cell, "bandwidth") == pytest.approx(2_048_000)
    assert value(cell, "latency_mean") == pytest.approx(101_655.2)
    assert value(cell, "latency_max") == pytest.approx(1_010_000)
    assert value(cell, "latency_p50") == pytest.approx(1000, rel=0.002)
    assert value(cell, "latency_p99") == pytest.approx(1_003_520, rel=0.002)
    assert value(cell, "cpu_per_operation") == pytest.approx(0.15 * 2e9 / 1000)
    assert cell.job["bs"] == 4096
    assert cell.job["engine"] == "libaio"


def test_clones_are_added_up_over_the_longest_time_and_their_bins_are_merged(tmp_path: Path) -> None:
    slow = direction(runtime=4000, bw_bytes=1_024_000, iops=250.0, clat_ns=latency({"5000": 1000}))
    cell = imported(tmp_path, document(row(), row(read=slow)))["one"]
    assert value(cell, "iops") == pytest.approx(500)
    assert value(cell, "latency_p50") == pytest.approx(5000, rel=0.002)
    assert cell.job["numjobs"] == 2
    evidence = next(code.evidence for code in cell.validity.codes if code.code == "imported")
    assert "after 2 s and its last after 4 s" in evidence


def test_several_files_are_blocks_and_other_names_are_cells(tmp_path: Path) -> None:
    files = [document(row(), row("two", groupid=1)) for _ in range(3)]
    cells = imported(tmp_path, *files)
    assert list(cells) == ["one", "two"]
    assert [trial.block for trial in cells["two"].trials] == [1, 2, 3]
    assert cells["one"].metrics["iops"].blocks == 3


def test_the_same_name_in_a_later_group_is_a_job_of_its_own(tmp_path: Path) -> None:
    assert list(imported(tmp_path, document(row(), row(groupid=1)))) == ["one", "one_2"]


def test_percentiles_of_clones_without_bins_are_none_with_the_reason(tmp_path: Path) -> None:
    plain = latency()
    del plain["bins"]
    one = row(read=direction(clat_ns=plain))
    cell = imported(tmp_path, document(one, one))["one"]
    assert cell.metrics["latency_p99"].value is None
    assert "json+" in str(cell.metrics["latency_p99"].reason)
    assert value(cell, "latency_mean") == pytest.approx(101_655.2)


def test_percentiles_of_one_job_without_bins_are_those_that_fio_printed(tmp_path: Path) -> None:
    plain = latency()
    del plain["bins"]
    cell = imported(tmp_path, document(row(read=direction(clat_ns=plain))))["one"]
    assert value(cell, "latency_p99") == pytest.approx(1_003_520)
    assert "not among the percentiles" in str(cell.metrics["latency_p99.9"].reason)


@pytest.mark.provokes("imported")
def test_every_cell_is_doubted_as_nobody_here_saw_it(tmp_path: Path) -> None:
    cell = imported(tmp_path, document())["one"]
    assert "imported" in {code.code for code in cell.validity.codes}
    assert cell.validity.state == "DOUBTFUL"


def test_a_job_with_an_error_has_no_figure_and_is_invalid(tmp_path: Path) -> None:
    cell = imported(tmp_path, document(row(error=5)))["one"]
    assert cell.validity.state == "INVALID"
    assert all(item.value is None for item in cell.metrics.values())
    assert "error 5" in str(cell.trials[0].error)


def test_no_rate_is_made_of_no_time(tmp_path: Path) -> None:
    cell = imported(tmp_path, document(row(read=direction(runtime=0))))["one"]
    assert cell.metrics["iops"].value is None
    assert "no time at all" in str(cell.metrics["iops"].reason)


def test_the_sum_of_all_clients_is_left_out_and_held_against_them() -> None:
    hosts = [row(hostname=name) for name in ("a", "b")]
    total = row("All clients", hostname="b", read=direction(io_bytes=1))
    found = document(client_stats=[*hosts, total])
    del found["jobs"]
    (cell,) = fio_cells([read_fio(json.dumps(found))])
    assert cell.name == "one"
    assert cell.trials[0].amounts["read"] == (8_192_000, 2000)
    assert "clients 8192000" in "; ".join(cell.trials[0].said["notes"])


def test_what_does_not_agree_with_itself_is_said() -> None:
    assert "iops 900" in notes(document(row(read=direction(iops=900.0))))
    assert "have 999 of 1000" in notes(document(row(read=direction(clat_ns=latency({"5": 999}, N=1000)))))
    assert "job_start" in notes(document(row(job_start=9_000_000_000_000)))
    disk = [{"name": "sda", "read_ios": 3, "write_ios": 0}]
    assert "3 reads reach" in notes(document(disk_util=disk))
    assert not notes(document())


def test_messages_around_the_json_and_earlier_reports_are_passed_over() -> None:
    first, last = (json.dumps(document(row(error=code)), indent=2) for code in (1, 0))
    found = read_fio(f"fio: a warning\n{first}\n{last}\n\nall done\n")
    assert found.rows[0].error == 0
    assert "1 reports" in found.notes[0]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_file_that_a_shell_of_windows_wrote_is_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.json").write_bytes(json.dumps(document(), indent=1).encode(encoding))
    assert run_command_line(["import", "fio", str(tmp_path / "a.json"), "-o", str(tmp_path / "made")]) == 0


def test_a_message_before_json_in_one_line_is_passed_over() -> None:
    text = f"fio: both iodepth >= 1 and a synchronous engine\n{json.dumps(document())}\n"
    assert read_fio(text).rows[0].name == "one"


def test_a_number_that_fio_printed_as_nan_hides_no_other() -> None:
    text = json.dumps(document()).replace('"stddev": 1.0', '"stddev": -nan').replace("500.0", "-nan")
    (found,) = read_fio(text).rows[0].directions
    assert found.operations == 1000


def test_a_file_that_is_whole_and_cannot_be_used_is_not_called_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = row()
    one["mixed"] = one.pop("read")
    del one["write"]
    one["job options"]["rw"] = "randrw"
    (tmp_path / "a.json").write_text(json.dumps(document(one)))
    assert run_command_line(["import", "fio", str(tmp_path / "a.json"), "-o", str(tmp_path / "made")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "a.json cannot be read: jobs[0] has reads and writes in one sum" in said
    assert "damaged" not in said


def test_unified_reporting_of_one_direction_is_that_direction() -> None:
    one = row()
    one["mixed"] = one.pop("read")
    del one["write"]
    assert [part.name for part in read_fio(json.dumps(document(one))).rows[0].directions] == ["read"]
    one["job options"]["rw"] = "randrw"
    with pytest.raises(ValueError, match="unified_rw_reporting=both"):
        read_fio(json.dumps(document(one)))


def test_text_that_is_no_text_and_sums_beyond_all_bounds_end_in_words(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(document(row("a\ud800b", error=5))))
    assert run_command_line(["import", "fio", str(tmp_path / "a.json"), "-o", str(tmp_path / "a")]) == 0
    huge = row(read=direction(io_bytes=1 << 62, total_ios=1, clat_ns=None))
    (tmp_path / "b.json").write_text(json.dumps(document(huge, huge)))
    assert run_command_line(["import", "fio", str(tmp_path / "b.json"), "-o", str(tmp_path / "b")]) == 2
    assert not (tmp_path / "b").exists()


def test_what_may_be_a_secret_is_not_kept() -> None:
    options = {"rw": "read", "http_s3_key": "hush"}
    assert "hush" not in repr(read_fio(json.dumps(document(row(**{"job options": options})))))


def _changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    found = copy.deepcopy(document())
    place: Any = found
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return found


@pytest.mark.parametrize(
    ("path", "wrong", "words"),
    [
        (("fio version",), "fio-2.21", "fio 3"),
        (("fio version",), "leadline-0.1", "fio 3"),
        (("jobs",), [], "no `jobs`"),
        (("jobs", 0), 3, r"jobs\[0\]"),
        (("jobs", 0, "read", "io_bytes"), -1, r"jobs\[0\].read.io_bytes"),
        (("jobs", 0, "read", "io_bytes"), 1 << 64, r"jobs\[0\].read.io_bytes"),
        (("jobs", 0, "read", "total_ios"), 1.5, "total_ios"),
        (("jobs", 0, "read", "runtime"), 1 << 62, "beyond all bounds"),
        (("jobs", 0, "read", "iops"), -2.0, "iops"),
        (("jobs", 0, "read", "clat_ns", "bins"), {"x": 1}, "no time"),
        (("jobs", 0, "read", "clat_ns", "bins"), {"5": -1}, "bins.5"),
        (("jobs", 0, "read", "clat_ns", "percentile"), {"101": 1}, "no percentile"),
        (("jobs", 0, "read", "clat_ns", "mean"), "much", "mean"),
        (("jobs", 0, "error"), "bad", "error"),
        (("jobs", 0, "job options"), [], "job options"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(path: tuple[Any, ...], wrong: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_fio(json.dumps(_changed(path, wrong)))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "fio: hello", '{"fio version": NaN}', "\0" * 50, "[" * 999]
)
def test_what_is_no_json_of_fio_is_refused_and_nothing_is_written(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text(text)
    assert run_command_line(["import", "fio", str(tmp_path / "a.json"), "-o", str(tmp_path / "made")]) == 2
    assert "a.json" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()
