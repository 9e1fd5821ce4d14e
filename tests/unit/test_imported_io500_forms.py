"""The summaries of IO500 of all years: every form is read, and no correct one is accused."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.cli.main import run_command_line
from leadline.imported.io500 import io500_document
from leadline.published.checks import tested as recomputed
from leadline.published.document import Published, read_published

PHASES = (  # name, rate, seconds: of what each wrote the deletion took longer, as it removed trees, too
    *(("ior_easy_write", 2.0, 300), ("mdtest_easy_write", 20.0, 300), ("ior_hard_write", 1.0, 300)),
    *(("mdtest_hard_write", 10.0, 300), ("find", 500.0, 18), ("ior_easy_read", 2.0, 300)),
    *(("mdtest_easy_stat", 40.0, 150), ("ior_hard_read", 1.0, 300), ("mdtest_hard_stat", 20.0, 150)),
    *(("mdtest_easy_delete", 30.0, 200), ("mdtest_hard_read", 20.0, 150), ("mdtest_hard_delete", 20.0, 700)),
)
SCORES = (1.414214, 31.461824, 6.670363)


def program(**changes: float) -> str:
    """As the program prints it."""
    lines = ["IO500 version io500-sc23_v1 (standard)"]
    for name, rate, seconds in PHASES:
        value, unit = changes.get(name, rate), "GiB/s" if name.startswith("ior") else "kIOPS"
        lines.append(
            f"[RESULT] {name.replace('_', '-'):>20} {value:15.6f} {unit} : time {seconds:.3f} seconds"
        )
    bandwidth, rates, total = SCORES
    lines.append(f"[SCORE ] Bandwidth {bandwidth} GiB/s : IOPS {rates} kiops : TOTAL {total}")
    return "\n".join(lines)


def script(unit: str = "GB/s", total: float = SCORES[2]) -> str:
    """As the script of 2017 to 2019 prints it."""
    lines = []
    for number, (name, rate, seconds) in enumerate(PHASES, start=1):
        kind, own = ("BW  ", unit) if name.startswith("ior") else ("IOPS", "kiops")
        lines.append(
            f"[RESULT] {kind} phase {number} {name:>25} {rate:20.3f} {own} : time {seconds:6.2f} seconds"
        )
    lines.append(f"[SCORE] Bandwidth {SCORES[0]} {unit} : IOPS {SCORES[1]} kiops : TOTAL {total}")
    return "\n".join(lines)


def read(text: str, logs: dict[str, str] | None = None) -> Published:
    return read_published(io500_document(text, "x", None, logs), "x")


def doubts(text: str, logs: dict[str, str] | None = None) -> list[str]:
    return [one.doubt.text for one in recomputed(read(text, logs)) if one.doubt]


def mdtest(operation: str, rate: float) -> str:
    return f"SUMMARY rate: (of 1 iterations)\n   {operation}     :      {rate:.3f}      {rate:.3f}  0.000\n"


@pytest.mark.parametrize("text", [program(), script(), script("GiB/s")])
def test_a_correct_run_whose_deletion_removed_trees_is_not_doubted(text: str) -> None:
    assert doubts(text) == []


def test_the_script_and_the_program_have_the_same_rates_and_scores() -> None:
    old, new = read(script()), read(program())
    assert [table.name for table in old.tables] == [table.name for table in new.tables]
    for mine, other in zip(old.tables, new.tables, strict=True):
        for own, theirs in zip(mine.rows, other.rows, strict=True):
            assert own.keys == theirs.keys
            values = [[one.value for one in row.figures.values()] for row in (own, theirs)]
            assert values[0] == pytest.approx(values[1])


def test_the_scripts_whole_output_which_has_each_line_twice_is_the_same_run() -> None:
    lines = script().splitlines()
    whole = [f"[Starting] phase\n{line}\n" for line in lines[:-1]]
    output = "\n".join(["System:  client1", *whole, "[Skipping] mdreal", *lines])
    assert io500_document(output, "x") == io500_document(script(), "x")


@pytest.mark.parametrize(
    "tag", ["[SCORE]", "[SCORE ]", "[SCORE-valid]", "[SCORE INVALID]", "[SCORE-invalid]"]
)
@pytest.mark.parametrize("unit", ["GB/s", "GiB/s"])
def test_the_score_line_of_every_release_is_read(tag: str, unit: str) -> None:
    text = program().replace("[SCORE ]", tag).replace("1.414214 GiB/s", f"1.414214 {unit}")
    found = read(text)
    assert "scores" in {table.name for table in found.tables}
    assert ("INVALID" in found.about) == ("INVALID" in tag.upper())


def test_the_extended_score_is_not_taken_for_the_score() -> None:
    text = program() + "\n[SCOREX] Bandwidth 9.0 GiB/s : IOPS 9.0 kiops : TOTAL 9.0"
    assert doubts(text) == []


def test_a_total_that_an_early_script_left_as_a_product_is_explained_and_not_doubted() -> None:
    text = script(total=44.4938)
    assert doubts(text) == []
    assert "its root is 6.670" in read(text).about


def test_a_phase_that_its_own_tag_calls_invalid_is_named() -> None:
    text = program().replace("[RESULT]                 find", "[RESULT-invalid]         find")
    assert "calls find INVALID" in read(text).about


def test_a_misprint_that_no_score_shows_is_still_found() -> None:
    text = "\n".join(program(mdtest_hard_stat=20_000.0).splitlines()[:-1])  # without its score
    assert any("mdtest_hard_stat goes over what mdtest_hard_write wrote" in one for one in doubts(text))


def test_what_the_log_of_a_phase_does_not_have_is_doubted_and_what_it_has_is_not() -> None:
    right = {"mdtest_hard_stat": mdtest("File stat", 20_000.0), "ior_easy_read": "read      2048     64\n"}
    assert doubts(program(), right) == []
    wrong = {"mdtest_hard_stat": mdtest("File stat", 15_000.0)}
    found = doubts(program(), wrong)
    assert found
    assert all("IO500 takes mdtest_hard_stat from its log" in one for one in found)


def test_a_log_without_a_rate_confirms_and_refutes_nothing() -> None:
    assert doubts(program(), {"mdtest_hard_stat": mdtest("File stat", 0.0), "ior_easy_read": "killed"}) == []


def test_the_import_reads_the_logs_that_lie_beside_the_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "result_summary.txt").write_text(program())
    (tmp_path / "mdtest-easy-write.txt").write_text(mdtest("File creation", 12_000.0))
    made = str(tmp_path / "made")
    assert run_command_line(["import", "io500", str(tmp_path), "-o", made]) == 0
    assert "IO500 takes mdtest_easy_write from its log" in " ".join(capsys.readouterr().err.split())


def test_logs_beside_a_summary_of_another_name_may_be_of_another_run_and_accuse_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "result_summary.txt").write_text("of a later run")
    older = tmp_path / "io-500-summary.2018.11.10-20.09.41.txt"
    older.write_text(script())
    (tmp_path / "mdtest_easy_write.txt").write_text(mdtest("File creation", 12_000.0))
    assert run_command_line(["import", "io500", str(older), "-o", str(tmp_path / "made")]) == 0
    assert "DOUBTFUL" not in capsys.readouterr().err
