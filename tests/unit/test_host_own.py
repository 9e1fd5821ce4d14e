"""What a host of a study has by itself: where it keeps it, which attempts it refuses, when it begins one."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from builders import cell, clock, manifest

from leadline.errors import LeadlineError, ResultError, UsageError
from leadline.hosts import directory
from leadline.hosts.directory import (
    BEGUN,
    ENDED,
    FORGOTTEN,
    HELD_MAX,
    Attempts,
    files_of,
    host_id,
    make_private,
    place_of,
    read_piece,
    remove_trials,
    state_home,
)
from leadline.hosts.host_study import reopened
from leadline.hosts.session import PREPARED, CurrentAttempt, HostSession
from leadline.interpreter import module_command, module_environment
from leadline.plan.model import Plan, Trial
from leadline.run.child import Answer
from leadline.run.group import CommonStart, Halt, Member, run_jobs
from leadline.run.local import Jobs
from leadline.run.model import RunOptions, RunRequest
from leadline.run.places import Places
from leadline.run.workspace import name_of
from leadline.store.files import checked_id
from leadline.store.journal import Event
from leadline.store.writer import HeldResultError, create_result
from leadline.study.target import Target

ID = "0badcafe"


def test_hosts_have_workspaces_of_their_own_by_ids_that_a_workspace_may_have() -> None:
    ids = {host_id(ID, number) for number in (0, 1, 15, 16, 255, 256, 0xFFFF)}
    assert len(ids) == 7
    assert all(name_of(checked_id(one)).startswith(f"leadline-{ID}") for one in ids)
    assert ID not in ids
    for number in (-1, 0x10000):
        with pytest.raises(UsageError, match="no number of a host"):
            host_id(ID, number)
    with pytest.raises(ResultError):
        host_id("../etc", 1)


def test_a_host_keeps_studies_below_the_state_directory_of_its_account(tmp_path: Path) -> None:
    assert state_home({"XDG_STATE_HOME": "/s"}) == Path("/s/leadline/hosts")
    assert state_home({"XDG_STATE_HOME": "s", "HOME": "/h"}) == Path("/h/.local/state/leadline/hosts")
    assert state_home({"XDG_STATE_HOME": "/s"}, "/given") == Path("/given")
    with pytest.raises(UsageError, match="not absolute"):
        state_home({}, "given")
    with pytest.raises(LeadlineError):
        place_of(tmp_path, ID, "../other")


def test_what_a_host_keeps_is_for_its_account_alone(tmp_path: Path) -> None:
    make_private(tmp_path / "state", ID)
    study = tmp_path / "state" / ID
    assert {oct(path.stat().st_mode & 0o777) for path in (study, study.parent)} == {"0o700"}
    make_private(tmp_path / "state", ID)
    for mode in (0o750, 0o777):
        study.chmod(mode)
        with pytest.raises(UsageError, match="not safe"):
            make_private(tmp_path / "state", ID)
    study.chmod(0o700)
    study.parent.chmod(0o777)
    with pytest.raises(UsageError, match="others may write"):
        make_private(tmp_path / "state", ID)


@pytest.mark.skipif(os.geteuid() != 0, reason="another account needs root")
def test_a_directory_of_another_account_is_refused(tmp_path: Path) -> None:
    (tmp_path / ID).mkdir(mode=0o700)
    os.chown(tmp_path / ID, 65534, 65534)
    with pytest.raises(UsageError, match="belongs to uid 65534"):
        make_private(tmp_path, ID)


def events(*found: tuple[str, Mapping[str, Any]]) -> Attempts:
    return Attempts([Event(0, name, dict(details)) for name, details in found])


BEGAN = (BEGUN, {"attempt": "x", "trials": ["t0001"]})
STORED = ("trial_finished", {"trial": "t0001"})


def test_an_attempt_is_begun_once_and_a_trial_that_is_held_not_again() -> None:
    assert events().why_not("x", ["t0001"]) == ""
    assert "not begun twice" in events(BEGAN).why_not("x", ["t0001"])
    assert events(BEGAN).why_not("y", ["t0001"]) == ""  # it was not finished
    found = events(BEGAN, STORED, (ENDED, {"attempt": "x"}))
    assert "still held" in found.why_not("y", ["t0002", "t0001"])
    assert found.why_not("y", ["t0002"]) == ""
    assert (found.held(), found.unended()) == ({"x": ("t0001",)}, ())
    found = events(BEGAN, STORED, (FORGOTTEN, {"attempt": "x"}))
    assert found.why_not("y", ["t0001"]) == ""
    assert "not begun twice" in found.why_not("x", ["t0001"])
    assert found.held() == {}


def test_an_attempt_whose_session_was_killed_is_known() -> None:
    assert events(BEGAN).unended() == ("x",)
    assert not events(BEGAN).has_finished("x")
    assert events(BEGAN, STORED).has_finished("x")


def test_what_nobody_fetches_does_not_fill_a_host() -> None:
    found = events()
    for number in range(HELD_MAX):
        trial = f"t{number:04d}"
        assert found.why_not(f"x{number}", [trial]) == ""
        found.take(Event(0, BEGUN, {"attempt": f"x{number}", "trials": [trial]}))
        found.take(Event(0, "trial_finished", {"trial": trial}))
    assert "nobody has fetched" in found.why_not("more", ["t9999"])
    found.take(Event(0, FORGOTTEN, {"attempt": "x0"}))
    assert found.why_not("more", ["t9999"]) == ""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A result with tables of two trials."""
    path = tmp_path / "r"
    create_result(path, manifest(), clock()).close()
    names = ("trials/t0001.parquet", "trials/t0002.parquet", "trials/t00011.parquet", "stages/t0001.parquet")
    for name in (*names, "output/t0001/a/0.out", "output/t0001-1.err", "records/t0001.llrec"):
        (path / name).parent.mkdir(exist_ok=True, parents=True)
        (path / name).write_bytes(b"12345")
    (path / "output/t0001/link").symlink_to("/etc/passwd")
    (path / "linked").symlink_to(path / "trials")
    return path


def test_the_files_of_a_trial_are_those_that_carry_its_name(place: Path) -> None:
    wanted = {"trials/t0001.parquet", "stages/t0001.parquet", "output/t0001/a/0.out", "output/t0001-1.err"}
    assert files_of(place, ["t0001"]) == dict.fromkeys(wanted, 5)
    remove_trials(place, ["t0001"])
    assert files_of(place, ["t0001"]) == {}
    assert set(files_of(place, ["t0002", "t00011"])) == {"trials/t0002.parquet", "trials/t00011.parquet"}
    assert Path("/etc/passwd").exists()


def test_what_is_moved_is_bounded(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "PIECE_BYTES_MAX", 3)
    pieces = [read_piece(place, "trials/t0001.parquet", offset) for offset in (0, 3, 5)]
    assert pieces == [b"123", b"45", b""]
    monkeypatch.setattr(directory, "FILES_MAX", 3)
    with pytest.raises(ResultError, match="more than 3 files"):
        files_of(place, ["t0001"])


class Told:
    """What a turn answered, by request."""

    def __init__(self) -> None:
        self.answers: dict[int, Mapping[str, Any]] = {}

    def __call__(self, asker: int, answer: Mapping[str, Any]) -> None:
        self.answers[asker] = answer


def begin_when_prepared(turn: CurrentAttempt, told: Told, start_unix_ns: int) -> list[str]:
    """Have a turn begin from another thread, twice."""
    said: list[str] = []

    def ask() -> None:
        while not told.answers:
            time.sleep(0.001)
        said.append(turn.begin("x", start_unix_ns, 2))
        said.append(turn.begin("x", start_unix_ns, 3))

    turn.take("x", 1)
    thread = threading.Thread(target=ask)
    thread.start()
    start_ns = turn.wait()
    thread.join()
    assert start_ns is not None
    assert abs(start_ns - time.monotonic_ns() - (start_unix_ns - time.time_ns())) < 50_000_000
    return said


def test_an_attempt_begins_once_at_the_instant_of_the_hosts_own_clock() -> None:
    told = Told()
    turn = CurrentAttempt(told, lambda: False)
    said = begin_when_prepared(turn, told, time.time_ns() + 5_000_000_000)
    assert said[0] == ""
    assert "not prepared here" in said[1]
    assert told.answers == {1: PREPARED}
    turn.end({"state": "finished"})
    assert told.answers == {1: PREPARED, 2: {"state": "finished"}}
    assert "not prepared here" in turn.begin("x", time.time_ns(), 4)


def test_a_start_that_nobody_agreed_on_is_refused() -> None:
    told, refused = Told(), threading.Event()
    turn = CurrentAttempt(told, refused.is_set)
    turn.take("x", 1)
    waiting = threading.Thread(target=turn.wait)
    waiting.start()
    while not told.answers:
        time.sleep(0.001)
    assert "not prepared here" in turn.begin("y", time.time_ns(), 2)
    assert "3,600 s away" in turn.begin("x", time.time_ns() + 3_600_000_000_000, 2)
    refused.set()
    waiting.join(10)
    assert not waiting.is_alive()


def test_an_attempt_that_is_called_off_before_or_after_it_was_prepared_does_not_begin() -> None:
    turn = CurrentAttempt(Told(), lambda: False)
    turn.call_off("x")
    assert not turn.is_off()
    turn.take("x", 1)
    assert turn.is_off()
    assert turn.wait() is None
    turn.end({})
    turn.take("y", 2)
    assert not turn.is_off()


class Forgets:
    """A worker that is asked for nothing but to forget caches."""

    def __init__(self, told: list[str]) -> None:
        self._told = told

    def call(self, command: str, *_: object, **__: object) -> Answer:
        self._told.append(command)
        return Answer("done")


def jobs_by(start_ns: int | None, *, opens: bool = True) -> tuple[list[Answer], list[object]]:
    told: list[Any] = []
    member = Member(None, None, Forgets(told), {}, shown=True)  # type: ignore[arg-type]

    def appointment() -> int | None:
        told.append("asked")
        return start_ns

    def call(_: Member, start: CommonStart | None) -> Answer:
        assert start is not None
        if not opens:
            return Answer("failed", message="no such pool")
        told.append("open")
        told.append(start.come())
        return Answer("done" if told[-1] else "interrupted", value={"state": "complete"})

    return run_jobs([member], call, Halt(lambda: False), 1.0, appointment), told


def test_who_keeps_an_appointment_is_asked_once_a_job_is_open_with_its_caches_forgotten() -> None:
    done = [Answer("done", value={"state": "complete"})]
    assert jobs_by(4711) == (done, ["forget_cached", "open", "asked", 4711])
    answers, told = jobs_by(None)
    assert [answer.outcome for answer in answers] == ["interrupted"]
    assert told == ["forget_cached", "open", "asked", None]


def test_who_keeps_an_appointment_hears_of_a_job_that_could_not_be_opened() -> None:
    answers, told = jobs_by(4711, opens=False)
    assert [answer.message for answer in answers] == ["no such pool"]
    assert told == ["forget_cached", "asked"]


class Spoken:
    """A session without a process, and what it said."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        self.session = HostSession(writing)

    def said(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(os.read(self._reading, 1 << 16))
        return found


def test_a_session_answers_each_request_by_its_number_and_refuses_in_words() -> None:
    spoken = Spoken()
    serving = threading.Thread(target=spoken.session.serve)
    serving.start()
    spoken.session.hear({"id": 7, "do": "renew"})
    assert spoken.said() == {"id": 7, "answer": {"lease_s": 60.0}}
    for number, words in (
        ("prepare", "no study is open"),
        ("forget", "no study is open"),
        ("x", "'x' is nothing"),
    ):
        asked = {"id": 8, "do": number, "attempt": {"id": "x", "trials": []}}
        spoken.session.hear(asked)
        found = spoken.said()
        assert (found["id"], words in found["answer"]["refused"]) == (8, True)
    spoken.session.hear({"id": 9, "do": "begin", "attempt": "x"})
    assert "internal error: KeyError" in spoken.said()["answer"]["refused"]
    spoken.session.hear({"id": 10, "do": "begin", "attempt": "x", "start_unix_ns": 1})
    assert spoken.said()["answer"]["state"] == "refused"
    spoken.session.hear({"id": 11, "do": "close"})
    assert spoken.said() == {"id": 11, "answer": {"left": []}}
    serving.join(10)
    assert not serving.is_alive()


@pytest.mark.parametrize("line", [b"", b"no request\n", b"[]\n"])
def test_a_session_ends_with_its_input_and_with_what_is_no_request(line: bytes) -> None:
    done = subprocess.run(
        module_command("leadline.hosts.session"),
        input=line,
        capture_output=True,
        env=module_environment(),
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_a_session_that_is_told_to_end_while_it_hears_ends_well() -> None:
    session = subprocess.Popen(
        module_command("leadline.hosts.session"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=module_environment(),
    )
    with session:
        assert session.stdin is not None
        assert session.stdout is not None
        assert session.stderr is not None
        session.stdin.write(b'{"id": 1, "do": "renew"}\n')
        session.stdin.flush()
        assert session.stdout.readline()
        session.terminate()
        assert (session.wait(60), session.stderr.read()) == (0, b"")


def seeds_of(tmp_path: Path, number: int) -> tuple[int, int]:
    """Those of a trial's job and of its layout on one host."""
    one, targets = cell(), (Target("a", str(tmp_path)),)
    plan = Plan("s", "", "", 5, 1, targets, (one,), (), 0.0, {})
    request = RunRequest(ID, plan, {}, RunOptions(host_number=number))
    with closing(create_result(tmp_path / f"r{number}", manifest(), clock())) as writer:
        jobs = Jobs(request, writer, Places(request, writer))
        trial = Trial("t0001", 1, 1, one.id, "a", 7)
        found = [jobs.worker_job(one, which, None)["seed"] for which in (trial, None)]
    return found[0], found[1]


def test_each_host_writes_bytes_of_its_own_the_first_those_of_a_study_on_one_host(tmp_path: Path) -> None:
    found = [seeds_of(tmp_path, number) for number in range(3)]
    assert found[0] == (7, 5)
    assert len({seed for pair in found for seed in pair}) == 6
    (tmp_path / "again").mkdir()
    assert seeds_of(tmp_path / "again", 2) == found[2]


def test_a_session_waits_for_the_one_before_it_unless_it_is_to_end(tmp_path: Path) -> None:
    before, looks = create_result(tmp_path / "r", manifest(), clock()), []

    def stopping() -> bool:
        looks.append(1)
        if len(looks) == 2:
            before.close()
        return False

    reopened(tmp_path / "r", stopping).close()
    assert len(looks) == 2
    with closing(reopened(tmp_path / "r", lambda: False)), pytest.raises(HeldResultError):
        reopened(tmp_path / "r", lambda: True)
