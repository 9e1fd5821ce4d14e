"""Figures of elbencho and IO500: what cannot be is said, and what is wrong is refused with its reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leadline.cli.main import run_command_line
from leadline.imported.elbencho import elbencho_document
from leadline.imported.io500 import io500_document
from leadline.published.checks import tested as recomputed
from leadline.published.document import read_published

DATA = Path(__file__).parents[1] / "data" / "benchmarks"
SUMMARY = (DATA / "result_summary.txt").read_text()
RIGHT = SUMMARY.replace("7153.970000", "   7.153970")


def doubts(document: str) -> list[str]:
    return [one.doubt.text for one in recomputed(read_published(document, "x")) if one.doubt]


def test_a_figure_a_thousand_times_too_large_is_named_with_what_fits_the_score() -> None:
    found = doubts(io500_document(SUMMARY, "x"))
    assert any("fits with mdtest_hard_stat at 7.15397 in place of 7,153.97 kIOPS" in one for one in found)
    assert any("mdtest_hard_stat goes over what mdtest_hard_write wrote" in one for one in found)


def test_the_right_figure_raises_no_doubt() -> None:
    assert doubts(io500_document(RIGHT, "x")) == []


def test_a_score_that_no_thousand_explains_is_doubted_without_a_guess() -> None:
    found = doubts(io500_document(RIGHT.replace("find        1000.0", "find        1300.0"), "x"))
    assert any("geometric mean of 8" in one for one in found)
    assert not any("in place of" in one for one in found)


def test_random_reads_faster_than_sequential_ones_are_the_cache() -> None:
    line = "[      ]  ior-rnd4K-easy-read       25.000000 GiB/s : time 30.157 seconds\n"
    assert any("come from a cache" in one for one in doubts(io500_document(RIGHT + line, "x")))


def test_what_io500_calls_invalid_is_kept() -> None:
    text = RIGHT.replace("time 33.000 seconds", "time 33.000 seconds [INVALID]")
    assert "calls find INVALID" in read_published(io500_document(text, "x"), "x").about


@pytest.mark.parametrize("name", ["elbencho.csv", "elbencho.json"])
def test_elbenchos_figures_are_held_against_each_other(name: str) -> None:
    document = elbencho_document((DATA / name).read_text(), name, "20 Gb/s")
    found = doubts(document)
    assert any("random reads that are faster" in one for one in found)
    assert any("faster than the links" in one for one in doubts(document.replace("20 Gb/s", "10 Gb/s")))
    assert not any("faster than the links" in one for one in found)


def test_a_latency_of_nothing_is_doubted() -> None:
    assert any(
        "no I/O takes no time" in one
        for one in doubts(elbencho_document((DATA / "elbencho.csv").read_text(), "x"))
    )


def test_a_file_that_was_appended_to_has_its_heading_again() -> None:
    text = (DATA / "elbencho.csv").read_text()
    document = read_published(elbencho_document(text + text, "x"), "x")
    assert len(document.tables[0].rows) == 6


@pytest.mark.parametrize(
    ("program", "text", "words"),
    [
        ("io500", "", "no line such as"),
        ("io500", "[RESULT] find nan kIOPS : time 1 seconds", "no line such as"),
        ("io500", RIGHT + RIGHT.replace("7.153970", "7.253970"), "twice"),
        ("elbencho", "", "no heading"),
        ("elbencho", "a,b\n1,2\n", "no heading"),
        ("elbencho", "operation,time ms [last]\nREAD,-5\n", "no value"),
        ("elbencho", "operation,time ms [last]\nREAD\n", "a row has no"),
        ("elbencho", '{"phase_type": "READ"}', "no phase of elbencho"),
        ("elbencho", '{"phase_type": ', "cannot be read"),
    ],
)
def test_what_is_none_is_refused_and_nothing_is_written(
    tmp_path: Path, program: str, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text(text)
    assert run_command_line(["import", program, str(tmp_path / "file"), "-o", str(tmp_path / "made")]) == 2
    assert re.search(words, " ".join(capsys.readouterr().err.split()))
    assert not (tmp_path / "made").exists()


def test_a_directory_has_its_summary_and_the_import_says_what_does_not_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["import", "io500", str(DATA), "-o", str(tmp_path / "made")]) == 0
    said = capsys.readouterr()
    assert "in place of 7,153.97 kIOPS" in said.err
    assert run_command_line(["show", str(tmp_path / "made")]) == 0


_MIX = {
    "operation": "RWMIX75",
    "time ms [last]": "4096",
    "IOPS [last]": "250",
    "MiB/s [last]": "250",
    "IO lat us [avg]": "900",
    "rwmix read IOPS [last]": "750",
    "rwmix read MiB/s [last]": "750",
    "rwmix read IO lat us [avg]": "300",
}
_MIX_JSON = """{"phase_type": "RWMIX75", "config": {"threads": "4"}, "last_done": {"elapsed_time_ms": "4096",
 "iops": "250", "bytes/s": "262144000", "rwmix_read": {"iops": "750", "bytes/s": "786432000"},
 "latency": {"IO": {"avg_us": "900", "rwmix_read": {"avg_us": "300"}}}}}""".replace("\n", "")


@pytest.mark.parametrize("text", [f"{','.join(_MIX)}\n{','.join(_MIX.values())}\n", _MIX_JSON])
def test_a_mixed_phase_has_a_row_of_its_reads_and_one_of_its_writes(text: str) -> None:
    table = read_published(elbencho_document(text, "x"), "x").tables[0]
    found = {dict(row.keys)["operation"]: row.figures for row in table.rows}
    assert {name: row["operations"].value for name, row in found.items()} == {
        "rwmix75_writes": 250,
        "rwmix75_reads": 750,
    }
    assert found["rwmix75_reads"]["bandwidth"].value == 750 << 20
    assert found["rwmix75_reads"]["mean"].value < found["rwmix75_writes"]["mean"].value
    assert {dict(row.keys)["phase"] for row in table.rows} == {"p1"}


def test_a_mixed_phase_of_reads_alone_has_no_row_of_writes() -> None:
    plain = {**_MIX, "operation": "RWMIX100", "IOPS [last]": "0", "MiB/s [last]": "0", "IO lat us [avg]": ""}
    document = elbencho_document(f"{','.join(plain)}\n{','.join(plain.values())}\n", "x")
    table = read_published(document, "x").tables[0]
    assert [dict(row.keys)["operation"] for row in table.rows] == ["rwmix100_reads"]
