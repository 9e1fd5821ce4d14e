"""What counts as one process, as one file and as the user's, and that a trace's first screen says it so."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from builders import clock
from trace_tables import SECOND, file_row, files_table, process, tables

from leadline.report import render
from leadline.report.first_screen import lines_of, screen_of
from leadline.report.redact import redacted
from leadline.store.reader import open_result
from leadline.tracing.findings import trace_views
from leadline.tracing.mapped import named_places
from leadline.tracing.model import TraceView
from leadline.tracing.paths import (
    STREAM,
    is_stream_by_name,
    questions,
    renamed,
    tidied,
    told,
)
from leadline.tracing.store import create_trace_result
from leadline.tracing.tables import ALL_RANKS, TraceTables, by_life, lives, ranks_behind
from leadline.verdict.findings import build_findings
from leadline.verdict.model import Findings


def findings_of(path: Path, content: TraceTables) -> tuple[TraceView, Findings]:
    create_trace_result(path, {"t0001": content}, title="tar", details={}, now_ns=clock())
    result = open_result(path)
    return trace_views(result, with_charts=False)[0], build_findings(result, with_charts=False)


def screen(findings: Findings) -> str:
    found = screen_of(findings)
    assert found is not None
    return "\n".join(text for text, _ in lines_of(found))


def test_a_process_that_execs_is_one_process_and_a_number_used_again_another() -> None:
    rows = [
        process(0, pid=7, end="exec"),
        process(1, pid=7, end="exec"),
        process(2, pid=7, end="exit"),
        process(3, pid=7, end="exit"),
        process(0, pid=7, end="exit", copy=1),
    ]
    assert lives(rows) == {(0, 0): 0, (0, 1): 0, (0, 2): 0, (0, 3): 3, (1, 0): 0}
    assert [[row.process for row in images] for images in by_life(rows)] == [[0, 1, 2], [3], [0]]


def test_images_are_counted_and_listed_as_their_process(tmp_path: Path) -> None:
    sh = process(0, pid=7, end="exec", command="sh -c x", ended_ns=SECOND // 2, bytes_read=1, notes=["mmap"])
    cat = process(1, pid=7, parent=0, command="cat f", started_ns=SECOND // 2, bytes_read=2, notes=["mmap"])
    view, findings = findings_of(tmp_path / "r", tables(processes=(sh, cat, process(2, parent=1))))
    assert view.processes_count == 2
    assert view.notes == {"mmap": 1}
    assert "by 2 processes" in screen(findings)
    document = json.loads(render(findings, "json"))
    assert document["trace"]["totals"]["processes"] == 2
    assert [one["life"] for one in document["trace"]["processes"]] == [0, 0, 2]
    whole = render(findings, "md")
    assert "cat f" in whole
    assert "sh -c x" not in whole


def test_copies_that_number_their_processes_alike_stay_apart(tmp_path: Path) -> None:
    rows = [file_row(n, copy=n, path=f"/data/{n}", WRITES=1, BYTES_WRITTEN=1000, OPENS=1) for n in range(3)]
    content = tables(processes=tuple(process(0, copy=n) for n in range(3)), files=files_table(rows))
    view, _ = findings_of(tmp_path / "r", content)
    assert [item.bytes_written for item in view.files] == [1000] * 3
    assert (view.processes_count, view.counted.own) == (3, 3)


def test_what_all_ranks_share_stands_for_each_of_them_and_is_no_process() -> None:
    rows = [process(n, pid=n) for n in range(8)] + [process(8, pid=-1, command=ALL_RANKS)]
    assert len(by_life(rows)) == 8
    assert ranks_behind(rows)[0, 8] == 8


def test_a_shared_record_is_not_one_process_that_opens_again_and_again(tmp_path: Path) -> None:
    ranks = tuple(process(n, pid=n, seconds={}) for n in range(200))
    shared = process(200, pid=-1, command=ALL_RANKS, seconds={})
    times: dict[str, Any] = {"F_READ_TIME": 1.0, "F_WRITE_TIME": 0.0, "F_META_TIME": 50.0}
    row = file_row(process=200, OPENS=201, STATS=0, **times)
    view, _ = findings_of(tmp_path / "r", tables(processes=(*ranks, shared), files=files_table([row])))
    assert view.files[0].processes == 200
    assert "repeated_opens" not in {item.rule for item in view.findings}


DONE: dict[str, int] = {"OPENS": 1, "READS": 2, "BYTES_READ": 100}


BELONGS: list[tuple[str, dict[str, int], str]] = [
    ("/data/run/events.root", DONE, "user"),
    ("/home/u/analysis.py", DONE, "user"),
    ("/dev/shm/block", DONE, "user"),
    ("/dev/shm/staged.bin", {**DONE, "MMAPS": 2, "write_mmaps": 0}, "user"),
    ("/dev/shm/vader_segment.n.1", {"OPENS": 2, "truncates": 1, "MMAPS": 2, "write_mmaps": 2}, "memory"),
    ("/dev/shm/psm_3f", {"OPENS": 1, "WRITES": 1, "BYTES_WRITTEN": 1, "MMAPS": 1}, "memory"),
    ("/dev/shm/sem.lock", {"links": 1}, "memory"),
    ("/memfd:scratch", {"WRITES": 32, "BYTES_WRITTEN": 2 << 20}, "memory"),
    ("/memfd:pool (deleted)", {"MMAPS": 1, "write_mmaps": 1, "mapped_bytes": 1 << 24}, "memory"),
    ("/var/lib/postgresql/base/1", DONE, "user"),
    ("/data/empty", {"OPENS": 1}, "user"),
    ("/data/gone", {"unlinks": 1}, "user"),
    ("/data/seen", {"STATS": 3}, "looked"),
    ("/usr/local/sbin/tool", {"failed": 1}, "missed"),
    ("/data/not-there", {"failed": 40}, "missed"),
    ("/usr/lib/x86_64-linux-gnu/libc.so.6", DONE, "library"),
    ("/home/u/venv/lib/python3.11/site-packages/numpy/__init__.py", DONE, "library"),
    ("/home/u/p/__pycache__/m.cpython-311.pyc", DONE, "library"),
    ("/opt/tool/lib/libz.so.1", DONE, "library"),
    ("/usr/bin/env", DONE, "library"),
    ("/proc/self/maps", DONE, "system"),
    ("/etc/ld.so.cache", DONE, "system"),
    ("/usr/share/locale/de/LC_MESSAGES/x.mo", DONE, "system"),
    ("/dev/null", DONE, "system"),
    ("/usr", {"STATS": 2}, "directory"),
    ("/data", {"STATS": 2}, "directory"),
    ("/data/listed", {"OPENS": 1, "readdirs": 2}, "directory"),
    ("<STDOUT>", {"WRITES": 4}, "stream"),
    ("/data/log", {}, "untouched"),
]


def test_whose_a_file_is(tmp_path: Path) -> None:
    rows = [file_row(n, path=path, F_META_TIME=0.01, **counts) for n, (path, counts, _) in enumerate(BELONGS)]
    view, _ = findings_of(tmp_path / "r", tables(files=files_table(rows)))
    assert {item.path: item.belongs for item in view.files} == {path: whose for path, _, whose in BELONGS}
    assert view.counted.own + view.counted.looked_at + sum(view.counted.others.values()) == len(BELONGS)


def test_what_the_command_names_is_the_users_wherever_it_is(tmp_path: Path) -> None:
    content = tables(
        processes=(process(command=json.dumps(["wc", "--files0-from=/etc/list", "/usr/share/dict/"])),),
        files=files_table(
            [file_row(0, path="/usr/share/dict/words", **DONE), file_row(1, path="/etc/list", **DONE)]
        ),
    )
    view, _ = findings_of(tmp_path / "r", content)
    assert view.counted.own == 2
    assert named_places([["/bin/sh", "/"]]) == ()


def test_one_data_file_among_misses_is_one_file_and_the_rest_is_one_line(tmp_path: Path) -> None:
    missed = [file_row(n, path=f"/usr/p{n}/bin/tool", failed=1, F_META_TIME=0.001) for n in range(50)]
    data = file_row(50, path="/data/events", F_READ_TIME=0.01, **DONE)
    view, findings = findings_of(tmp_path / "r", tables(files=files_table([*missed, data])))
    assert (view.counted.own, view.counted.others) == (1, {"missed": 50})
    text = screen(findings)
    assert "in 1 file by 1 process" in text
    assert "besides 50 others: 50 not found" in text
    assert "/usr/p1/bin/tool" not in text
    assert "/data/events" in text


def test_dots_go_only_behind_what_is_known_to_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    (tmp_path / "f").write_text("here")
    (tmp_path / "far" / "f").write_text("there")
    paths = [
        f"{tmp_path}/{name}"
        for name in ("real/../f", "link/../f", "gone/../f", ".//f", "real/./../link/../f")
    ]
    names = told(paths, [], lambda _: None)
    assert [names.get(path, path) for path in paths] == [
        f"{tmp_path}/f",
        f"{tmp_path}/link/../f",
        f"{tmp_path}/gone/../f",
        f"{tmp_path}/f",
        f"{tmp_path}/link/../f",
    ]
    for path, name in names.items():  # the kernel says the same
        assert name is not None
        assert Path(path).samefile(name)
    assert tidied("/../a/../../b", lambda _: True) == "/b"
    assert tidied("a/../b", lambda _: True) == "a/../b"


def test_two_names_of_one_file_are_one_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "f").write_text("x")
    rows = [file_row(n, path=f"{tmp_path}/{name}", **DONE) for n, name in enumerate(("f", "sub/../f", "./f"))]
    content = tables(files=files_table(rows))
    dotted, slowest = questions(content.files)
    view, _ = findings_of(tmp_path / "r", renamed(content, told(dotted, slowest, lambda _: None)))
    assert view.counted.own == 1
    assert [(item.path, item.reads) for item in view.files] == [(f"{tmp_path}/f", 6)]


def test_waiting_at_a_fifo_is_neither_metadata_nor_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "queue")
    rows = [
        file_row(0, path=f"{tmp_path}/queue", OPENS=1, F_META_TIME=0.9, F_READ_TIME=0.05, BYTES_READ=3),
        file_row(1, path="/data/x", F_META_TIME=0.001, **DONE),
    ]
    seconds = {"read": 0.06, "write": 0.0, "meta": 0.901, "sync": 0.0}
    content = tables(processes=(process(seconds=seconds),), files=files_table(rows))
    found = renamed(content, told(*questions(content.files), lambda _: None))
    assert found.files["module"].to_pylist() == [STREAM, "POSIX"]
    view, _ = findings_of(tmp_path / "r", found)
    assert view.counted.own == 1
    assert view.whole.meta == pytest.approx(0.001)
    assert view.whole.read == pytest.approx(0.01)
    assert "mostly_metadata" not in {item.rule for item in view.findings}


@pytest.mark.parametrize(
    ("path", "stream"),
    [
        ("/w/pipe_-617740252", True),
        ("/w/fifo.3", True),
        ("/w/named_pipe", True),
        ("/run/x.sock", True),
        ("<STDIN>", True),
        ("/w/pipe.dat", False),
        ("/w/pipeline.root", False),
        ("/w/fifolog", False),
    ],
)
def test_what_is_named_as_a_fifo(path: str, stream: bool) -> None:
    assert is_stream_by_name(path) == stream


def test_a_redacted_screen_tells_no_path_and_no_command(tmp_path: Path) -> None:
    secret = "/scratch/secretproject/" + "d" * 80 + "/events.root"
    content = tables(
        processes=(process(command=json.dumps(["tar", "xf", secret])),),
        files=files_table([file_row(0, path=secret, F_READ_TIME=0.1, **DONE)]),
    )
    create_trace_result(
        tmp_path / "r",
        {"t0001": content},
        title="tar",
        details={"program": ["tar", "xf", secret]},
        now_ns=clock(),
    )
    text = screen(redacted(build_findings(open_result(tmp_path / "r"), with_charts=False)))
    assert "secretproject" not in text
    assert "events.root" not in text


def wide(number: int) -> dict[str, Any]:
    path = f"/scratch/{'directory' * 9}{number}/{'n' * 60}-{number}"
    return file_row(number, path=path, F_READ_TIME=0.001 * number, F_META_TIME=0.001, **DONE)


def test_any_trace_fits_the_screen(tmp_path: Path) -> None:
    rows = [wide(number) for number in range(300)]
    rows += [file_row(300 + n, path=f"/data/s{n}", STATS=500, F_META_TIME=0.002) for n in range(100)]
    content = tables(
        processes=tuple(
            process(n, pid=50 + n % 20, lost={"files": 1}, notes=["io_uring"]) for n in range(40)
        ),
        files=files_table(rows),
        warnings=tuple(f"warning {n} " + "of many words " * 12 for n in range(6)),
    )
    _, findings = findings_of(tmp_path / "r", content)
    lines = screen(findings).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert any("of 400 rows" in line for line in lines)
    assert any("I/O time is that of all processes together." in line for line in lines)
    assert any("leadline trace --segments" in line for line in lines)


def test_an_import_is_not_told_to_be_traced_with_more(tmp_path: Path) -> None:
    view, findings = findings_of(tmp_path / "r", tables(mode="import", processes=(process(mode="import"),)))
    assert view.mode == "import"
    assert "--segments" not in screen(findings)
