"""A study from the command line to every report, on a real directory."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
from pathlib import Path

import pytest

from leadline.store.reader import open_result
from measured import CACHED, assert_measured
from support import Command, Start, show, wait_for_event


def test_the_first_study_of_a_new_user(leadline: Command, tmp_path: Path) -> None:
    first, second, out = tmp_path / "one", tmp_path / "two", tmp_path / "r"
    first.mkdir()
    second.mkdir()
    done = leadline(
        *("run", "quick", "--target", f"a={first}", "--target", f"b={second}"),
        *(
            "--set",
            "size=8M",
            "--set",
            "runtime=300ms",
            "--set",
            "ramp_time=0",
            "--blocks",
            "2",
            "--out",
            str(out),
        ),
    )
    assert_measured(done, out, CACHED)
    assert list(first.iterdir()) == list(second.iterdir()) == []
    shown = show(leadline, out)
    assert {cell["target"] for cell in shown["cells"]} == {"a", "b"}
    for cell in shown["cells"]:
        assert cell["validity"]["state"] in ("VALID", "DOUBTFUL", "INVALID")
        for name in ("iops", "bandwidth"):
            metric = cell["metrics"][name]
            assert metric["low"] <= metric["value"] <= metric["high"]
            assert metric["unit"]
            assert metric["blocks"] == 2
    works = {cell["work"] for cell in shown["cells"]}
    assert "randread_4k" in works
    assert {c["work"] for c in shown["comparisons"]} == works
    assert {(c["base"], c["other"]) for c in shown["comparisons"]} == {("a", "b")}


def test_what_is_printed_into_a_pipe_has_no_colour_and_no_cut(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    done = leadline("run", str(study), "--target", f"a={target}", "--out", str(tmp_path / "r"))
    shown = leadline("show", str(tmp_path / "r"), env={"COLUMNS": "40"})
    for text in (done.stdout, done.stderr, shown.stdout):
        assert "\x1b" not in text
        assert "…" not in text
    assert "randread_4k" in shown.stdout
    assert str((tmp_path / "r").resolve()) in done.stdout


def test_every_report_is_made_from_the_directory_alone(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    leadline("run", str(study), "--target", f"a={target}", "--out", str(tmp_path / "r"))
    target.rmdir()
    (tmp_path / "r").rename(tmp_path / "moved")
    for form in ("html", "md", "csv", "json", "fio"):
        made = leadline(
            "report", str(tmp_path / "moved"), "--format", form, "-o", str(tmp_path / f"x.{form}")
        )
        assert made.returncode == 0, made.stderr
    assert json.loads((tmp_path / "x.fio").read_text())["jobs"]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "x.csv").read_text())))
    assert {(row["target"], row["work"]) for row in rows} == {("a", "randread_4k"), ("a", "seqwrite_64k")}


def test_a_target_compared_with_itself_keeps_its_files_apart(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    done = leadline(
        "run", str(study), "--target", f"a={target}", "--target", f"b={target}", "--out", str(out)
    )
    assert_measured(done, out, CACHED)
    assert list(target.iterdir()) == []
    assert all(trial.state == "complete" for trial in open_result(out).trials())


def test_an_existing_out_is_refused_and_kept(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "thesis.txt").write_text("mine")
    done = leadline("run", str(study), "--target", f"a={target}", "--out", str(tmp_path / "r"))
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert (tmp_path / "r" / "thesis.txt").read_text() == "mine"


def test_redaction_leaves_no_path_and_no_host(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    place = target / "Vermögen of zqacme's" / "zqplan b"
    place.mkdir(parents=True)
    leadline("run", str(study), "--target", f"a={place}", "--out", str(tmp_path / "r"))
    for form in ("json", "md", "html", "csv", "fio", "openmetrics"):
        text = leadline("report", str(tmp_path / "r"), "--format", form, "--redact").stdout
        assert str(tmp_path) not in text
        assert "verm" not in text.lower()
        assert "zq" not in text
        assert os.uname().nodename not in text or len(os.uname().nodename) <= 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_cleanly_and_resume_completes_it(
    start: Start, leadline: Command, study: Path, target: Path, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "r"
    process = start("run", str(study), "--target", f"a={target}", "--out", str(out), "--set", "runtime=5s")
    wait_for_event(out, "trial_started")
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert f"--resume {out}" in errors
    assert list(target.iterdir()) == []
    assert leadline("undo", str(out)).stdout == "nothing to undo\n"


def test_resume_goes_on_where_the_run_ended(
    start: Start, leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    process = start("run", str(study), "--target", f"a={target}", "--out", str(out), "--quiet")
    wait_for_event(out, "trial_finished")
    process.kill()
    process.wait()
    before = {trial.trial: trial.started_unix_ns for trial in open_result(out).trials()}
    assert_measured(leadline("run", "--resume", str(out)), out, CACHED)
    trials = open_result(out).trials()
    assert [trial.trial for trial in trials] == ["t0001", "t0002", "t0003", "t0004"]
    assert before.items() <= {trial.trial: trial.started_unix_ns for trial in trials}.items()
    assert list(target.iterdir()) == []
    again = leadline("run", "--resume", str(out))
    assert again.returncode == 2
    assert "complete" in again.stderr


def test_undo_removes_what_a_killed_run_left(
    start: Start, leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    process = start("run", str(study), "--target", f"a={target}", "--out", str(out), "--quiet")
    wait_for_event(out, "trial_started")
    process.kill()
    process.wait()
    (target / "leadline-notours").mkdir()
    (target / "leadline-notours" / "film.mov").write_text("mine")
    done = leadline("undo", str(out))
    assert done.returncode == 0, done.stderr
    assert [path.name for path in target.iterdir()] == ["leadline-notours"]


def test_compare_two_results(leadline: Command, study: Path, target: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        leadline("run", str(study), "--target", f"x={target}", "--out", str(tmp_path / name))
    done = leadline("compare", str(tmp_path / "a"), str(tmp_path / "b"), "--metric", "iops", "--json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert [c["metric"] for c in value["comparisons"]] == ["iops", "iops"]
    assert all(c["low"] <= c["ratio"] <= c["high"] for c in value["comparisons"])
    assert leadline("compare", str(tmp_path / "a"), str(tmp_path / "b")).returncode == 0


def test_list_shows_complete_and_broken_results(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    leadline("run", str(study), "--target", f"x={target}", "--out", str(tmp_path / "good"))
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "manifest.json").write_text("{")
    rows = json.loads(leadline("list", str(tmp_path), "--json").stdout)
    states = {Path(row["path"]).name: row["state"] for row in rows}
    assert states["good"] == "complete"
    assert states["bad"].startswith("unreadable")


def test_the_null_target_needs_no_storage(leadline: Command, study: Path, tmp_path: Path) -> None:
    done = leadline(
        "run", str(study), "--target", "n=null://", "--out", str(tmp_path / "r"), "--set", "engine=auto"
    )
    assert_measured(done, tmp_path / "r")
    assert {t["access"] for t in show(leadline, tmp_path / "r")["targets"]} == {"null"}
