"""What is said of a trace: losses first, nothing unseen reported as nothing done, every report readable."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from builders import clock
from trace_tables import SECOND, file_row, files_table, process, segment, segments_table, tables

from findings_examples import HOSTILE
from leadline.errors import ResultError, UsageError
from leadline.report import render
from leadline.report.redact import redacted
from leadline.store.reader import Result, open_result
from leadline.tracing.findings import trace_views
from leadline.tracing.store import create_trace_result
from leadline.tracing.tables import TraceTables
from leadline.verdict.comparisons.two_results import compare_results
from leadline.verdict.findings import build_findings
from leadline.verdict.sections.charts import HeatMap, ShareBars
from leadline.verdict.sections.section import Panels

SCHEMA = Path(__file__).parents[1] / "data" / "report" / "show-v1.schema.json"


def store(path: Path, *contents: TraceTables, **details: Any) -> Result:
    named = {f"t{number:04d}": content for number, content in enumerate(contents, start=1)}
    create_trace_result(path, named, title="tar", details=details, now_ns=clock())
    return open_result(path)


def shown(result: Result) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(render(build_findings(result), "json"))
    return value


def test_json_is_the_contract(tmp_path: Path) -> None:
    calls = {"pread64": 3, "openat": 1}
    content = tables(processes=(process(0, calls=calls), process(1, parent=0, calls={"pread64": 1})))
    found = shown(store(tmp_path / "r", content))
    jsonschema.validate(found, json.loads(SCHEMA.read_text()), cls=jsonschema.Draft202012Validator)
    assert (found["kind"], found["trace"]["mode"], found["state"]) == ("trace", "preload", "VALID")
    files = {"processes": 2, "files": 1, "files_looked_at": 0, "other_files": {}}
    moved = {"bytes_read": 8192, "bytes_written": 0, "calls": {"pread64": 4, "openat": 1}}
    assert found["trace"]["totals"] == moved | files
    assert found["trace"]["lost"] == {"records": 0}
    assert [item["pid"] for item in found["trace"]["processes"]] == [100, 101]
    assert found["cells"][0]["metrics"]["read_share"]["value"] == pytest.approx(0.2 / 1.1)


def test_what_was_lost_is_said_first_and_makes_it_doubtful(tmp_path: Path) -> None:
    content = tables(processes=(process(lost={"files": 7, "segments": 3}),))
    findings = build_findings(store(tmp_path / "r", content))
    assert findings.state == "DOUBTFUL"
    assert findings.statements[0].text.startswith("10 records were lost")
    assert findings.cells[0].validity.codes[0].code == "events_lost"
    assert shown(open_result(tmp_path / "r"))["trace"]["lost"] == {"records": 10, "files": 7, "segments": 3}


def test_of_a_program_that_was_not_counted_no_share_and_no_advice_is_claimed(tmp_path: Path) -> None:
    """As of a 32-bit program in the kernel's tracer: what its shell did is all that is known."""
    unknown = dict.fromkeys(("read", "write", "meta", "sync"))
    shell = process(mode="bpf", seconds={"read": 0.0, "write": 0.0, "meta": 0.3, "sync": 0.0})
    foreign = process(
        1, mode="bpf", seconds=unknown, calls={}, notes=["32-bit program: its calls were not counted"]
    )
    row = file_row(OPENS=1, STATS=1, READS=0, BYTES_READ=0, F_META_TIME=0.3)
    content = tables(mode="bpf", processes=(shell, foreign), files=files_table([row]))
    findings = build_findings(store(tmp_path / "r", content))
    assert [code.code for code in findings.cells[0].validity.codes] == ["partly_seen"]
    metrics = findings.cells[0].metrics
    assert [metrics[f"{kind}_share"].value for kind in ("read", "meta", "compute")] == [None] * 3
    assert "rule_mostly_metadata" not in {one.says for one in findings.statements}


def test_what_the_kernels_tracer_counted_of_io_uring_is_not_doubted(tmp_path: Path) -> None:
    content = tables(mode="bpf", processes=(process(mode="bpf", notes=["io_uring"]),))
    assert build_findings(store(tmp_path / "r", content)).state == "VALID"


def test_the_number_of_what_was_lost_is_a_whole_one(tmp_path: Path) -> None:
    findings = build_findings(store(tmp_path / "r", tables(processes=(process(lost={"threads": 1}),))))
    assert findings.cells[0].validity.codes[0].evidence.startswith("dropped: 1 threads;")


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ({"files": 7, "segments": 3}, "bytes in totals still count them"),
        ({"files": 7, "calls": 3}, "what was moved by those of calls is in no total of bytes"),
    ],
)
def test_losses_are_said_to_be_in_totals_only_where_they_are(
    lost: dict[str, int], words: str, tmp_path: Path
) -> None:
    content = tables(processes=(process(lost=lost),))
    findings = build_findings(store(tmp_path / "r", content))
    assert words in findings.statements[0].text
    assert words in findings.cells[0].validity.codes[0].evidence


def test_a_command_that_was_not_seen_is_never_one_without_io(tmp_path: Path) -> None:
    content = tables(processes=(), files=files_table([]), warnings=("no process wrote a log",))
    findings = build_findings(store(tmp_path / "r", content))
    assert findings.state == "INVALID"
    assert findings.cells[0].validity.codes[0].code == "not_followed"
    assert all(metric.value is None for metric in findings.cells[0].metrics.values())
    for form in ("html", "md", "csv", "json", "openmetrics"):
        assert render(findings, form)


@pytest.mark.parametrize(
    ("note", "words"),
    [("io_uring", "use --via bpf"), ("static child /bin/busybox", "/bin/busybox is linked statically")],
)
def test_what_the_tracer_could_not_see_is_said(tmp_path: Path, note: str, words: str) -> None:
    findings = build_findings(store(tmp_path / "r", tables(processes=(process(notes=[note]),))))
    assert findings.state == "DOUBTFUL"
    assert words in findings.statements[0].text


def test_a_note_that_only_informs_casts_no_doubt(tmp_path: Path) -> None:
    assert (
        build_findings(store(tmp_path / "r", tables(processes=(process(notes=["mmap"]),)))).state == "VALID"
    )


def test_how_a_command_ended_is_said(tmp_path: Path) -> None:
    copies = [{"copy": 0, "wall_s": 1.0, "end": "signal", "status": 9}]
    findings = build_findings(store(tmp_path / "r", tables(extra={"copies": copies, "wall_s": 1.0})))
    assert "The command was killed by signal 9." in [item.text for item in findings.statements]


def test_each_of_several_trials_has_its_cell_and_its_trace(tmp_path: Path) -> None:
    found = shown(store(tmp_path / "r", tables(), tables(source="second")))
    assert [cell["id"] for cell in found["cells"]] == ["trace.tar.t0001", "trace.tar.t0002"]
    assert [item["source"] for item in found["traces"]] == ["", "second"]


def test_segments_become_bytes_over_time_in_charts(tmp_path: Path) -> None:
    rows = [segment(start_ns=n * SECOND // 10, result=1 << 20) for n in range(10)]
    result = store(tmp_path / "r", tables(segments=segments_table(rows)))
    findings = build_findings(result)
    moved = trace_views(result)[0].over_time
    assert moved is not None
    assert sum(moved.read) == 10 << 20
    assert "time-0" in render(findings, "html")


def test_hostile_names_are_shown_as_text_everywhere(tmp_path: Path) -> None:
    content = tables(
        processes=(process(command=HOSTILE, executable=HOSTILE), process(1, command=HOSTILE)),
        files=files_table([file_row(path=HOSTILE, OPENS=500, F_META_TIME=0.1)]),
    )
    findings = build_findings(store(tmp_path / "r", content, program=[HOSTILE]))
    page = render(findings, "html")
    assert "<script>alert" not in page
    assert "<img src=http" not in page
    text = render(findings, "md")
    assert not {"\x1b", "\u202e"} & set(text + page)
    for row in csv.DictReader(io.StringIO(render(findings, "csv"), newline="")):
        assert row["target"] == "trace"


def test_redaction_takes_paths_and_command_lines(tmp_path: Path) -> None:
    content = tables(
        processes=(process(command="mysql --password=hunter2", notes=["static child /opt/secret/tool"]),),
        files=files_table([file_row(path="relative-secret.db", OPENS=500, F_META_TIME=0.1)]),
    )
    details = {"program": ["mysql", "--password=hunter2"], "command": ["leadline", "trace", "hunter2"]}
    findings = redacted(build_findings(store(tmp_path / "r", content, **details)))
    for form in ("html", "md", "json"):
        text = render(findings, form)
        for secret in ("hunter2", "/opt/secret", "relative-secret"):
            assert secret not in text, form


def test_redaction_leaves_what_a_trace_says_of_itself(tmp_path: Path) -> None:
    notes = ["asynchronous I/O", "io_uring", "mmap", "setuid child /opt/secret/su"]
    findings = redacted(build_findings(store(tmp_path / "r", tables(processes=(process(notes=notes),)))))
    (found,) = json.loads(render(findings, "json"))["trace"]["processes"]
    assert found["notes"] == [*notes[:3], "setuid child <file>"]
    assert any(text.text.startswith("What 1 process moved through io_uring") for text in findings.statements)


def test_two_traces_compare_as_ratios_without_intervals(tmp_path: Path) -> None:
    first = store(tmp_path / "a", tables(extra={"wall_s": 2.0}))
    second = store(tmp_path / "b", tables(extra={"wall_s": 3.0}))
    found = {item.metric: item for item in compare_results(first, second, (), 0.05)}
    assert (found["wall_throughput"].ratio, found["bytes_read"].ratio) == (pytest.approx(2 / 3), 1.0)
    assert {item.verdict for item in found.values()} == {"undecided"}
    assert [one.value for one in found["wall_throughput"].values] == [4096 / 2, 4096 / 3]
    assert [one.unit for one in found["bytes_read"].values] == ["B", "B"]
    assert all(item.low is None and "without a CI" in (item.assumption or "") for item in found.values())


def test_a_trace_has_no_base_and_is_no_fio_job(tmp_path: Path) -> None:
    result = store(tmp_path / "r", tables())
    with pytest.raises(UsageError, match="no base"):
        build_findings(result, base="x")
    with pytest.raises(UsageError, match="no fio job"):
        render(build_findings(result), "fio")


def test_an_interrupted_trace_is_no_empty_report(tmp_path: Path) -> None:
    path = store(tmp_path / "r", tables()).path
    (path / "events.jsonl").write_text("")
    with pytest.raises(ResultError, match="no trace that was stored whole"):
        build_findings(open_result(path))


def test_of_many_copies_and_ranks_a_page_has_those_that_matter(tmp_path: Path) -> None:
    """A page with all of thousands would be too large to open; the last here ran longest and moved most."""
    many = tuple(
        process(n, copy=n, ended_ns=(n + 1) * SECOND, bytes_read=n, command=f"tar {n}") for n in range(150)
    )
    slices = {"layer": "POSIX", "bin_s": 1.0, "bytes_read": [1], "bytes_written": [1]}
    heat = [{**slices, "copy": n, "process": n} for n in range(150)]
    findings = build_findings(store(tmp_path / "r", tables(processes=many, extra={"heat": heat})))
    parts = [part for section in findings.sections for part in section.parts]
    copies = next(one for one in parts if getattr(one, "title", "") == "Where the time went")
    assert [row[0] for row in copies.rows] == [*map(str, range(50, 150)), "all"]
    assert copies.note.startswith("the 100 of 150 copies that ran longest; ")
    drawn = [chart for part in parts if isinstance(part, Panels) for row in part.rows for chart in row]
    bars = next(chart for chart in drawn if isinstance(chart, ShareBars))
    assert [bar.label for bar in bars.bars] == [*(f"copy {n}" for n in range(50, 150)), "all"]
    maps = [chart for chart in drawn if isinstance(chart, HeatMap)]
    assert [[label.partition(" ")[0] for label, _ in one.rows] for one in maps] == [
        [*map(str, range(126, 150))]
    ] * 2
