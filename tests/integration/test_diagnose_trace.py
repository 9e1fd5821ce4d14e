"""`leadline diagnose` of a traced program: what costs it is named, what says nothing about it refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from darshan_logs import POSIX, make_log, posix_record
from support import Command, show

PIECES = """
import os
out = os.open("pieces", os.O_CREAT | os.O_RDWR)
for _ in range(40_000):  # far more than the opens cost, whoever else has the processors
    os.write(out, b"x" * 512)
for number in range(300):
    os.close(os.open("pieces", os.O_RDONLY))
"""
WHOLE = """
import os
out = os.open("whole", os.O_CREAT | os.O_RDWR)
for _ in range(16):
    os.write(out, bytes(1 << 20))
"""


def traced(leadline: Command, program: str, place: Path) -> Path:
    done = leadline("trace", "-o", str(place / "t"), "--", sys.executable, "-S", "-c", program, cwd=place)
    assert done.returncode == 0, done.stderr
    return place / "t"


def diagnosed(leadline: Command, trace: Path) -> dict[str, Any]:
    done = leadline("diagnose", str(trace), "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert (document["format"], document["kind"]) == ("leadline.diagnosis/1", "trace")
    cell: dict[str, Any] = document["cells"][0]
    return cell


def test_what_costs_a_program_is_named_as_show_has_it(leadline: Command, place: Path) -> None:
    trace = traced(leadline, PIECES, place)
    cell = diagnosed(leadline, trace)
    causes = {cause["cause"]: cause for cause in (*cell["named"], *cell["behind"])}
    found = {item["rule"]: item for item in show(leadline, trace)["trace"]["findings"]}
    assert {"small_writes", "repeated_opens"} <= set(causes)
    assert set(causes) == set(found)
    small = causes["small_writes"]
    assert cell["named"][0] == small
    assert small["cost_s"] == found["small_writes"]["cost_s"]
    assert 0 < small["share"] <= 1
    assert "40,000 writes of 512 B" in small["evidence"]
    assert small["remedy"].startswith("Write through a larger buffer")
    assert cell["open"] == []
    printed = leadline("diagnose", str(trace), "--figures").stdout
    assert "Costs it: many small writes in a row (" in printed
    assert "Remedy: Write through a larger buffer" in " ".join(printed.split())
    assert "wall_throughput" in printed
    assert max(map(len, printed.splitlines())) <= 100


def test_of_a_program_that_writes_well_nothing_is_named(leadline: Command, place: Path) -> None:
    cell = diagnosed(leadline, traced(leadline, WHOLE, place))
    # The interpreter looks for its modules, too: on a slow machine that, or writing, is most of its I/O.
    general = {"bound_by_compute", "mostly_metadata", "mostly_writes", "library_cost", "waiting_for_cpus"}
    assert {cause["cause"] for cause in cell["named"]} <= general


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--cell", "a"), "--cell is not for a trace: a trace has no cells"),
        (("--active",), "--active is not for a trace: the experiment varies the load"),
        (("--active", "--yes", "--beside", "rados=rados://p"), "--active is not for a trace"),
        (("--for", "3s"), "--for is not for a trace"),
        (("--no-bpf",), "--no-bpf is not for a trace"),
        (("--live", "/tmp"), "a result's directory, or --live"),
    ],
)
def test_what_says_nothing_about_a_trace_is_refused(
    leadline: Command, place: Path, words: tuple[str, ...], complaint: str
) -> None:
    done = leadline("diagnose", str(traced(leadline, WHOLE, place)), *words)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert done.stdout == ""


def test_an_imported_log_of_darshan_says_what_it_has_no_record_of(leadline: Command, tmp_path: Path) -> None:
    counters = {"OPENS": 1, "READS": 2000, "BYTES_READ": 2000 * 512, "CONSEC_READS": 1999, "SEQ_READS": 1999}
    record = posix_record(1, 0, **counters, F_READ_TIME=4.0, FILE_ALIGNMENT=4096)
    log = make_log(tmp_path / "one.darshan", {POSIX: record}, ranks=1)
    trace = tmp_path / "t"
    assert leadline("import", "darshan", str(log), "-o", str(trace)).returncode == 0
    cell = diagnosed(leadline, trace)
    assert [cause["cause"] for cause in cell["named"]] == ["small_reads"]
    # The job took ten seconds; by large reads nearly all of four were spared.
    assert cell["named"][0]["share"] == pytest.approx(0.4, abs=0.001)
    lacks = {one["cause"]: one["lacks"] for one in cell["open"]}
    assert lacks["failed_lookups"] == ["failed"]
    assert "misaligned" not in lacks
    assert "Not recorded here, so not ruled out:" in leadline("diagnose", str(trace)).stdout
