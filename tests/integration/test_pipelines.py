"""Pipelines of the user's own on real directories: what is measured, kept and said, and what goes wrong."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from leadline.store.own import StageRow, read_stages
from leadline.store.reader import open_result
from measured import assert_measured
from support import Command, Start, show

DOCUMENT = Path(__file__).parents[2] / "docs" / "pipelines.md"
ODD_NAME = "a \"b\" 'c'\nd.txt"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / ODD_NAME
    path.write_text("".join(f"{n * 7919 % 10007}\n" for n in range(50_000)))
    return path


def study(tmp_path: Path, stages: str, more: str = "") -> Path:
    """A study of one pipeline, written in flow style."""
    path = tmp_path / "p.yaml"
    path.write_text(
        f"format: leadline.study/1\nblocks: 1\nworks:\n  p: {{trace: off, {more} pipeline: [{stages}]}}\n"
    )
    return path


def stages(out: Path) -> list[StageRow]:
    return read_stages(open_result(out))


def document_example() -> str:
    """The study that docs/pipelines.md begins with, as a reader would copy it."""
    text = DOCUMENT.read_text()
    block = re.search(r"\n((?:    .*\n)+)", text[text.index("    format: leadline.study/1") - 1 :])
    assert block is not None
    return "".join(line[4:] for line in block[1].splitlines(keepends=True))


def test_a_pipeline_written_from_its_document_alone_runs_and_is_compared(
    leadline: Command, target: Path, source: Path, tmp_path: Path
) -> None:
    path, out, second = tmp_path / "reads.yaml", tmp_path / "r", tmp_path / "second"
    path.write_text(document_example())
    second.mkdir()
    done = leadline(
        *("run", str(path), "--target", f"a={target}", "--target", f"b={second}", "--source", str(source)),
        *("--clients", "2", "--blocks", "2", "--out", str(out)),
        timeout=400,
    )
    assert_measured(done, out)
    assert list(target.iterdir()) == list(second.iterdir()) == []
    rows = stages(out)
    names = ["take", "sorted", "checked", "packed", "publish"]
    assert [row.stage for row in rows if row.trial == "t0001" and row.client == 2] == names
    assert {row.state for row in rows} == {"complete"}
    assert len(rows) == 4 * 2 * len(names)
    for row in rows:
        assert row.ended_ns >= row.started_ns
    shown = show(leadline, out)
    compared = next(table for table in shown["application"]["tables"] if table["name"] == "comparison_reads")
    assert compared["columns"] == ["a", "b", "b \u2212 a"]
    assert [row["keys"][0] for row in compared["rows"]] == [*names, "the whole"]
    assert all(value["value"] is not None for row in compared["rows"] for value in row["values"])


def test_the_whole_is_the_sum_of_its_stages_by_their_timestamps(
    leadline: Command, target: Path, source: Path, tmp_path: Path
) -> None:
    path = study(tmp_path, "{stage: one, step: ingest}, {stage: two, command: [sleep, '0.3']}")
    leadline(
        "run", str(path), "--target", f"a={target}", "--source", str(source), "--out", str(tmp_path / "r")
    )
    rows = stages(tmp_path / "r")
    trial = open_result(tmp_path / "r").trials()[0]
    assert rows[0].started_ns == 0
    assert rows[-1].ended_ns == trial.measured_ns
    assert trial.started_unix_ns == rows[0].started_unix_ns
    assert rows[1].started_ns >= rows[0].ended_ns + rows[0].settle_ns
    assert rows[1].seconds >= 0.3


def test_passes_over_the_input_are_counted_by_the_trace_and_its_bytes_are_right(
    leadline: Command, target: Path, source: Path, tmp_path: Path
) -> None:
    twice = "{stage: twice, do: [{step: checksum}, {step: checksum, buffer: 4k}]}"
    path = study(tmp_path, f"{{stage: taken, step: ingest, buffer: 8k}}, {twice}")
    path.write_text(path.read_text().replace("trace: off", "trace: auto"))
    done = leadline(
        "run", str(path), "--target", f"a={target}", "--source", str(source), "--out", str(tmp_path / "r")
    )
    assert_measured(done, tmp_path / "r")
    size = source.stat().st_size
    taken, read_twice = stages(tmp_path / "r")
    assert (taken.passes, taken.passes_by) == (1.0, "trace")
    assert (taken.target_read_bytes, taken.target_written_bytes, taken.output_bytes) == (size, size, size)
    assert (read_twice.passes, read_twice.target_read_bytes) == (2.0, 2 * size)
    digests = {said["digest"] for row in (taken, read_twice) for said in json.loads(row.details)}
    assert len(digests) == 1


def test_variants_choose_their_stages_and_are_a_factor(
    leadline: Command, target: Path, source: Path, tmp_path: Path
) -> None:
    made = "{stage: linked, step: link_or_copy, variant: link}, {stage: copied, step: copy, variant: plain}"
    path = study(tmp_path, made)
    with path.open("a") as file:
        file.write("factors: {variant: [link, plain]}\n")
    out = tmp_path / "r"
    done = leadline("run", str(path), "--target", f"a={target}", "--source", str(source), "--out", str(out))
    assert_measured(done, out)
    rows = {row.stage: row for row in stages(out)}
    assert set(rows) == {"linked", "copied"}
    (said,) = json.loads(rows["linked"].details)
    assert (said["how"], said["links"]) == ("link", 2)


def test_links_are_looked_at_through_a_second_client_and_copied_where_it_does_not_see_them(
    leadline: Command, target: Path, source: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for second, how in ((target, "link"), (elsewhere, "copy")):
        path = study(tmp_path, f"{{stage: one, step: link_or_copy, seen_from: {{a: '{second}'}}}}")
        out = tmp_path / f"r-{how}"
        done = leadline(
            "run", str(path), "--target", f"a={target}", "--source", str(source), "--out", str(out)
        )
        assert_measured(done, out)
        (said,) = json.loads(stages(out)[0].details)
        assert said["how"] == how
        if how == "copy":
            assert "second client" in said["why"]
            assert "links do not work" in leadline("show", "--all", str(out)).stdout


def test_what_was_measured_before_a_stage_failed_is_kept_and_said(
    leadline: Command, target: Path, source: Path, tmp_path: Path
) -> None:
    failing = "{stage: bad, command: [sh, -c, 'echo the disk ate it >&2; exit 4']}"
    path, out = (
        study(tmp_path, f"{{stage: good, step: ingest}}, {failing}, {{stage: never, step: checksum}}"),
        tmp_path / "r",
    )
    done = leadline("run", str(path), "--target", f"a={target}", "--source", str(source), "--out", str(out))
    assert done.returncode == 3
    assert [(row.stage, row.state) for row in stages(out)] == [("good", "complete"), ("bad", "error")]
    assert "stage bad: exit code 4: the disk ate it" in (open_result(out).trials()[0].error or "")
    text = leadline("show", "--all", str(out)).stdout
    assert "good had been measured before" in " ".join(text.split())
    assert list(target.iterdir()) == []


def test_a_command_that_leaves_no_output_has_failed(
    leadline: Command, target: Path, source: Path, tmp_path: Path
) -> None:
    path = study(tmp_path, "{stage: empty, command: [touch, '{output}'], output: x}")
    leadline(
        "run", str(path), "--target", f"a={target}", "--source", str(source), "--out", str(tmp_path / "r")
    )
    assert "left nothing in its output x" in (open_result(tmp_path / "r").trials()[0].error or "")


@pytest.fixture
def small_file_system(tmp_path: Path) -> Iterator[Path]:
    """A file system that is soon full."""
    path = tmp_path / "small"
    path.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "small", str(path)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("tmpfs cannot be mounted here")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def test_a_target_that_fills_up_in_the_middle_is_said_and_left_clean(
    leadline: Command, small_file_system: Path, source: Path, tmp_path: Path
) -> None:
    fill = "{stage: fill, command: [dd, if=/dev/zero, 'of={output}', bs=64k, count=100], output: big}"
    path = study(tmp_path, f"{{stage: taken, step: ingest}}, {fill}", more="cache: warm,")
    with path.open("a") as file:
        file.write("limits: {reserve: 0}\n")
    out = tmp_path / "r"
    done = leadline(
        *("run", str(path), "--target", f"a={small_file_system}", "--source", str(source), "--out", str(out))
    )
    assert done.returncode == 3
    assert "No space left on device" in (open_result(out).trials()[0].error or "")
    assert [row.state for row in stages(out)] == ["complete", "error"]
    assert list(small_file_system.iterdir()) == []


@pytest.fixture
def stalling_server() -> Iterator[str]:
    """Promises a megabyte, sends a part of it, and then nothing."""
    listening = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            held.append(connection)
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000)

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/film.mov"
    listening.close()
    for connection in held:
        connection.close()


def test_a_server_that_stalls_is_given_up_and_its_part_removed(
    leadline: Command, target: Path, tmp_path: Path, stalling_server: str
) -> None:
    path = study(tmp_path, f"{{stage: get, step: download, url: '{stalling_server}', timeout: 1s}}")
    done = leadline("run", str(path), "--target", f"a={target}", "--out", str(tmp_path / "r"))
    assert done.returncode == 3
    assert "the server sent nothing for 1 s" in (open_result(tmp_path / "r").trials()[0].error or "")
    assert list(target.iterdir()) == []


SPY = """#!/bin/sh
tr '\\0' '\\n' < /proc/$PPID/environ | sed -n 's/^LEADLINE_SOURCE_URL=//p' > "$1/url"
env > "$1/environment"
cat /proc/[0-9]*/cmdline > "$1/command_lines" 2> /dev/null || true
"""


def test_the_address_of_the_source_is_in_no_result_no_command_line_and_no_program_of_the_users(
    leadline: Command, target: Path, source: Path, tmp_path: Path
) -> None:
    spy, seen, out = tmp_path / "spy.sh", tmp_path / "seen", tmp_path / "r"
    spy.write_text(SPY)
    seen.mkdir()
    path = study(tmp_path, f"{{stage: get, step: download}}, {{stage: spy, command: [sh, {spy}, {seen}]}}")
    path.write_text(path.read_text().replace("trace: off", "trace: auto"))
    done = leadline("run", str(path), "--target", f"a={target}", "--source", str(source), "--out", str(out))
    assert_measured(done, out)
    assert stages(out)[0].output_bytes == source.stat().st_size
    secret = (seen / "url").read_text().strip().split("/")[3]
    assert len(secret) >= 22  # 128 bits in base 64
    assert secret not in (seen / "environment").read_text()
    assert secret.encode() not in (seen / "command_lines").read_bytes()
    files = [file for file in out.rglob("*") if file.is_file()]
    tables = [
        str(pyarrow.parquet.read_table(file).to_pylist()) for file in files if file.suffix == ".parquet"
    ]
    assert any("steps.py" in table for table in tables)  # the command line of the step itself
    kept = "".join([done.stdout, done.stderr, *tables])
    assert secret not in kept
    assert not [file for file in files if secret.encode() in file.read_bytes()]


def children_of(pid: int) -> list[int]:
    """All processes that come from one, by asking the system for every process's parent."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = dict((int(part) for part in line.split()) for line in listed.splitlines())
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        own = [child for child, of in parents.items() if of == parent]
        found += own
        waiting += own
    return found


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_ctrl_c_ends_clients_server_and_programs_and_the_run_can_go_on(
    start: Start, leadline: Command, target: Path, source: Path, tmp_path: Path
) -> None:
    out, flag = tmp_path / "r", tmp_path / "go"
    waiting = (
        f"{{stage: wait, command: [sh, -c, 'touch {tmp_path}/there; test -e {flag} || exec sleep 600']}}"
    )
    path = study(tmp_path, f"{{stage: get, step: download}}, {waiting}", more="clients: 2,")
    process = start("run", str(path), "--target", f"a={target}", "--source", str(source), "--out", str(out))
    wait_for((tmp_path / "there").exists)
    all_of_them = children_of(process.pid)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    wait_for(lambda: not any(is_running(pid) for pid in all_of_them))
    assert list(target.iterdir()) == []
    flag.touch()
    assert_measured(leadline("run", "--resume", str(out)), out)
    assert {row.state for row in stages(out)} == {"complete"}


@pytest.mark.parametrize(
    ("stages_text", "more", "words"),
    [
        ("{stage: one, step: ingest}", "", "no source"),
        ("{stage: one, command: [no-such-program]}", "", "no program no-such-program on PATH"),
        ("{stage: one, command: [cat, '{inpt}']}", "", "did you mean {input}?"),
        ("{stage: one, command: ['true'], step: copy}", "", "both a step and a command"),
        ("{stage: one, command: ['true']}, {stage: one, command: ['true']}", "", "name is taken"),
        (
            "{stage: one, input: later, command: ['true']}, {stage: later, command: ['true']}",
            "",
            "no stage before",
        ),
        ("{stage: one, command: ['true'], digest: md5}", "", "digest means nothing here"),
        ("{stage: one, command: ['true']}", "needs: {sort: '99.0'},", "99.0 is the oldest that will do"),
        ("{stage: one, command: ['true'], variant: x}", "", "none is chosen"),
    ],
)
def test_a_pipeline_that_cannot_be_is_refused_before_anything_starts(
    leadline: Command, target: Path, tmp_path: Path, stages_text: str, more: str, words: str
) -> None:
    done = leadline("plan", str(study(tmp_path, stages_text, more)), "--target", f"a={target}")
    assert done.returncode == 2
    assert words in done.stderr
    assert list(target.iterdir()) == []
    assert os.path.lexists(target)
