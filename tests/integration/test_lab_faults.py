"""Studies on a lab whose faults come and go: refused, marked, doubted, and said so, whatever else happens.

The lab is a made one: a directory with a lab's file and its file of faults, around a plain directory.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leadline import _core, faults
from leadline.faults import TrialFault
from leadline.store.reader import Result, open_result
from leadline.store.tables import TrialRow
from provoking import codes_of, wait_until, write_study
from support import Command, Process, Start, show, wait_for_event

LINK = ("link-rate", "host1", "link of host1 at 100 Mbit/s")
STOPPED = ("osd-stopped", "osd.0", "osd.0 stopped")
WORK = "w: {rw: randwrite, bs: 64k}"
CODE = "fault_in_force"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    place = tmp_path / "lab"
    (place / "mnt").mkdir(parents=True, mode=0o755)
    place.chmod(0o700)
    (place / "lab.json").write_text("{}")
    return place


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Three trials of one cell, long enough for something to happen meanwhile."""
    path = write_study(tmp_path / "s.yaml", WORK, blocks=3)
    path.write_text(path.read_text().replace("runtime: 1s", "runtime: 500ms, ramp_time: 100ms"))
    return path


QUICK = ("--set", "runtime=100ms", "--set", "blocks=1")


def asked(study: Path, target: object, out: Path, *more: str) -> tuple[str, ...]:
    return ("run", str(study), "--target", f"a={target}", "--out", str(out), "--quiet", *more)


def trials(out: Path) -> list[TrialRow]:
    return sorted(open_result(out).trials(), key=lambda row: row.order)


def marks(row: TrialRow) -> list[tuple[str, bool]]:
    """(id, from start to end) of what a trial is marked with."""
    found = [TrialFault.from_json(one) for one in json.loads(row.faults or "null")]
    return [(one.fault.id, one.whole) for one in found]


def said(result: Result) -> Iterator[tuple[str, str]]:
    """(begin or end, id) of the faults in a journal."""
    for event in result.events:
        if event.event in (faults.BEGAN, faults.ENDED):
            assert {"lab", "kind", "on", "words", "began_unix_s"} <= event.details.keys()
            yield event.event, event.details["id"]


def sentence(shown: dict[str, Any]) -> str:
    (found,) = (one["text"] for one in shown["statements"] if one["says"] == "trials_under_fault")
    return str(found)


def refused(done: subprocess.CompletedProcess[str], out: Path) -> None:
    assert done.returncode == 2, done.stderr
    assert "a fault is in force on the lab in" in done.stderr
    assert f"{LINK[2]} (link-rate on host1) since 20" in done.stderr
    assert "leadline lab inject --clear" in done.stderr
    assert "--under-fault" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize("way", ["path", "link", "conf", "client's conf", "CEPH_CONF", "environment"])
def test_a_study_is_refused_before_anything_is_made_where_a_fault_is_in_force(
    leadline: Command, small: Path, lab: Path, target: Path, tmp_path: Path, way: str
) -> None:
    faults.begin(lab, "1", *LINK)
    link = tmp_path / "elsewhere"
    link.symlink_to(lab / "mnt")
    places = {
        "link": str(link),
        "conf": f"cephfs:///x?conf={lab}/ceph.conf",
        "client's conf": f"rados://pool?conf={lab}/clients/client1/ceph.conf",
        "CEPH_CONF": "cephfs:///x",
        "environment": str(target),
    }
    variables = {
        "CEPH_CONF": {"CEPH_CONF": f"{lab}/ceph.conf"},
        "environment": {"LEADLINE_LAB_DIR": str(lab)},
    }
    out = tmp_path / "r"
    words = asked(small, places.get(way, lab / "mnt"), out)
    refused(leadline(*words, env=variables.get(way, {})), out)
    assert list((lab / "mnt").iterdir()) == []
    faults.end(lab, "1")
    if way == "environment":
        assert leadline(*words, *QUICK, env=variables[way]).returncode != 2
        assert [marks(row) for row in trials(out)] == [[]]


def test_a_replay_is_refused_too(leadline: Command, lab: Path, tmp_path: Path) -> None:
    trace, out = tmp_path / "t", tmp_path / "r"
    (tmp_path / "input").write_bytes(bytes(1 << 16))
    reader = ("cat", str(tmp_path / "input"))
    leadline("trace", "--segments", "-o", str(trace), "--", *reader)
    faults.begin(lab, "1", *LINK)
    words = (
        "replay",
        str(trace),
        "--target",
        f"a={lab / 'mnt'}",
        "--out",
        str(out),
        "--blocks",
        "1",
        "--quiet",
    )
    refused(leadline(*words), out)
    assert leadline(*words, "--under-fault").returncode != 2
    assert [marks(row) for row in trials(out)] == [[("1", True)]]


@pytest.mark.parametrize("make", ["another's place", "no lab"])
def test_what_others_could_have_put_there_is_no_lab(
    leadline: Command, small: Path, lab: Path, tmp_path: Path, make: str
) -> None:
    faults.begin(lab, "1", *LINK)
    if make == "no lab":
        (lab / "lab.json").unlink()
    else:
        lab.chmod(0o777)
    assert leadline(*asked(small, lab / "mnt", tmp_path / "r", *QUICK)).returncode != 2
    assert {row.faults for row in trials(tmp_path / "r")} == {None}


def test_faults_that_cannot_be_read_are_no_reason_to_go_on(
    leadline: Command, small: Path, lab: Path, tmp_path: Path
) -> None:
    (lab / faults.FILE).symlink_to("elsewhere")
    done = leadline(*asked(small, lab / "mnt", tmp_path / "r"))
    assert done.returncode == 2, done.stderr
    assert "which faults are in force on the lab cannot be read" in done.stderr
    assert leadline(*asked(small, lab / "mnt", tmp_path / "r", *QUICK, "--under-fault")).returncode != 2
    assert {row.faults for row in trials(tmp_path / "r")} == {None}
    state, evidence = codes_of(tmp_path / "r")["a.w"][CODE]
    assert (state, "is not known" in evidence) == ("DOUBTFUL", True)


def test_under_a_fault_that_was_asked_for_no_cell_is_doubted_for_it_and_all_reports_say_so(
    leadline: Command, small: Path, lab: Path, tmp_path: Path
) -> None:
    faults.begin(lab, "1", *LINK)
    out = tmp_path / "r"
    screen = leadline(*asked(small, lab / "mnt", out, "--set", "runtime=100ms", "--under-fault"))
    assert [marks(row) for row in trials(out)] == [[("1", True)]] * 3
    assert {row.under_fault for row in trials(out)} == {True}
    assert CODE not in codes_of(out)["a.w"]
    shown = show(leadline, out)
    words = f"3 of 3 trials ran while a fault was active, as requested: {LINK[2]}."
    assert sentence(shown) == words
    assert words in " ".join(screen.stdout.split())
    (one,) = shown["faults"]
    assert one["ended_unix_s"] is None
    assert {(name["cell"], name["whole"]) for name in one["trials"]} == {("a.w", True)}
    for kind in ("md", "csv", "html"):
        assert LINK[2] in leadline("report", str(out), "--format", kind).stdout
    assert list(said(open_result(out))) == [(faults.BEGAN, "1")]


def _started(start: Start, words: tuple[str, ...], out: Path, event: str) -> Process:
    process = start(*words)
    wait_for_event(out, event)
    return process


@pytest.mark.provokes("fault_in_force")
def test_a_fault_that_begins_in_the_middle_is_in_the_journal_and_the_cell_is_doubted(
    leadline: Command, start: Start, small: Path, lab: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    long = ("--set", "runtime=2s")  # so that the last trial begins after the fault
    process = _started(start, asked(small, lab / "mnt", out, *long), out, "trial_finished")
    faults.begin(lab, "1", *LINK)
    process.communicate(timeout=60)
    first, *others = [marks(row) for row in trials(out)]
    assert first == []
    assert others[-1] == [("1", True)]
    assert list(said(open_result(out))) == [(faults.BEGAN, "1")]
    state, evidence = codes_of(out)["a.w"][CODE]
    assert state == "DOUBTFUL"
    assert evidence.startswith("injected while it was measured")
    assert LINK[2] in evidence
    assert "as asked for" not in sentence(show(leadline, out))


@pytest.mark.parametrize("asked_for", [(), ("--under-fault",)])
def test_a_fault_within_one_trial_marks_that_trial_alone(
    start: Start, lab: Path, tmp_path: Path, asked_for: tuple[str, ...]
) -> None:
    study, out = write_study(tmp_path / "s.yaml", WORK, blocks=2), tmp_path / "r"
    long = ("--set", "runtime=3s")  # and it is in its middle once it has told of its first interval
    process = _started(start, asked(study, lab / "mnt", out, *long, *asked_for), out, "trial_started")
    record = out / "records" / "t0001.llrec"
    wait_until(lambda: record.exists() and bool(_core.read_record(str(record))["intervals"]))
    faults.begin(lab, "1", *STOPPED)
    faults.end(lab, "1")
    process.communicate(timeout=60)
    assert [marks(row) for row in trials(out)] == [[("1", False)], []]
    assert list(said(open_result(out))) == [(faults.BEGAN, "1"), (faults.ENDED, "1")]
    state, evidence = codes_of(out)["a.w"][CODE]
    words = "in a part of t0001 only" if asked_for else "injected while it was measured (1 of 2 trials"
    assert state == "DOUBTFUL"
    assert words in evidence


def test_trials_under_different_faults_that_were_asked_for_are_a_mixture(
    leadline: Command, start: Start, small: Path, lab: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    faults.begin(lab, "1", *LINK)
    process = _started(start, asked(small, lab / "mnt", out, "--under-fault"), out, "trial_finished")
    faults.end(lab, "1")
    process.communicate(timeout=60)
    assert codes_of(out)["a.w"][CODE][0] == "DOUBTFUL"
    assert "The trials ran under different faults" in sentence(show(leadline, out))


def test_a_killed_run_goes_on_with_what_happened_meanwhile(
    leadline: Command, start: Start, small: Path, lab: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    process = _started(start, asked(small, lab / "mnt", out), out, "trial_finished")
    faults.begin(lab, "1", *LINK)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    resume = ("run", "--resume", str(out), "--quiet")
    done = leadline(*resume)
    assert done.returncode == 2, done.stderr
    assert LINK[2] in done.stderr
    faults.end(lab, "1")
    faults.begin(lab, "2", *STOPPED)
    assert leadline(*resume, "--under-fault").returncode != 2
    result = open_result(out)
    assert result.complete
    assert {(faults.BEGAN, "1"), (faults.ENDED, "1"), (faults.BEGAN, "2")} == set(said(result))
    assert len(list(said(result))) == 3
    assert marks(trials(out)[-1]) == [("2", True)]


def test_a_fault_from_before_the_study_is_none_of_it(
    leadline: Command, small: Path, lab: Path, tmp_path: Path
) -> None:
    faults.begin(lab, "1", *LINK)
    faults.end(lab, "1")
    assert leadline(*asked(small, lab / "mnt", tmp_path / "r", *QUICK)).returncode != 2
    result = open_result(tmp_path / "r")
    assert list(said(result)) == []
    assert [marks(row) for row in trials(tmp_path / "r")] == [[]]
    assert "faults" not in show(leadline, tmp_path / "r")
