"""Sessions of hosts, as workers start them: one start, nothing twice, and nothing left whoever is killed."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from host_workers import (
    STUDY_ID,
    HostWorker,
    children,
    host_worker,
    slots,
    study_manifest,
    wait_gone,
)
from leadline.hosts.directory import attempts_of
from support import wait_for_event

LEASE_S = 30.0
SHORT_S = 3.0
LONG = ("defaults.runtime=60s",)
SOON_NS = 150_000_000
KEPT = (STUDY_ID, "h0")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def worker() -> Iterator[HostWorker]:
    with host_worker() as found:
        yield found


def opened(worker: HostWorker, manifest: dict[str, Any], state: Path, number: int = 0, **host: Any) -> Any:
    """The answer of a session that was opened; the lease is long unless `lease_s` says otherwise."""
    lease_s = host.pop("lease_s", LEASE_S)
    found = worker.call(
        "open_session", manifest, {"name": f"h{number}", "number": number, **host}, str(state), lease_s
    )
    assert "refused" not in found, found
    return found


def measured(worker: HostWorker, attempt: str, trials: list[str], **more: Any) -> dict[str, Any]:
    """How an attempt ended that was begun as soon as it was prepared."""
    found = worker.call("prepare", {"id": attempt, "trials": trials, **more})
    while found.get("prepared"):
        found = worker.call("begin", attempt, time.time_ns() + SOON_NS)
    return dict(found)


def begun(worker: HostWorker, place: Path, attempt: str, trials: list[str]) -> Any:
    """What will answer how an attempt ended, whose trial runs by now."""
    assert worker.call("prepare", {"id": attempt, "trials": trials}) == {"prepared": True}
    records = place / "records"

    def written() -> int:
        return sum(file.stat().st_size for file in records.glob("*.llrec"))

    prepared = written()  # the record is there before the start; what runs adds intervals to it
    ending = worker.start("begin", attempt, time.time_ns())
    until = time.monotonic() + 30
    while written() <= prepared:
        assert time.monotonic() < until
        time.sleep(0.01)
    return ending


def row(worker: HostWorker, attempt: str, trial: str) -> dict[str, Any]:
    table = pq.read_table(io.BytesIO(worker.fetch(attempt, f"trials/{trial}.parquet")))
    found: dict[str, Any] = table.to_pylist()[0]
    return found


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_two_hosts_on_one_directory_start_at_one_instant_and_meet_nowhere(
    study: Path, target: Path, state: Path, worker: HostWorker
) -> None:
    manifest = study_manifest(study, {"a": target}, "blocks=1")
    with host_worker() as other:
        both = (worker, other)
        for number, one in enumerate(both):
            assert opened(one, manifest, state, number)["facts"]["a"]["access"] == "local"
        for attempt, trials in enumerate(slots(manifest)):
            prepared = [one.start("prepare", {"id": f"x{attempt}", "trials": trials}) for one in both]
            assert [one.result(60) for one in prepared] == [{"prepared": True}] * 2
            assert names(target) == [f"leadline-{STUDY_ID}0000", f"leadline-{STUDY_ID}0001"]
            at_ns = time.time_ns() + SOON_NS
            ends = [one.start("begin", f"x{attempt}", at_ns) for one in both]
            assert [end.result(60)["state"] for end in ends] == ["finished"] * 2
            started = [row(one, f"x{attempt}", trials[0])["started_unix_ns"] for one in both]
            assert all(at_ns <= one < at_ns + 2_000_000_000 for one in started)  # none waits for the other
        assert [one.call("close_session") for one in both] == [{"left": []}] * 2
    assert names(target) == []


def test_an_attempt_is_not_begun_twice_nor_a_trial_that_is_held_whoever_asks(
    study: Path, target: Path, state: Path, worker: HostWorker
) -> None:
    manifest = study_manifest(study, {"a": target}, "blocks=1")
    first, second = slots(manifest)
    opened(worker, manifest, state)
    end = measured(worker, "x", first)
    assert (end["state"], end["host"]) == ("finished", "h0")
    assert set(end["files"]) == {f"{table}/{first[0]}.parquet" for table in ("trials", "latency", "series")}
    journal = (state / STUDY_ID / "h0" / "events.jsonl").read_text()
    assert journal.index("attempt_begun") < journal.index("workspace_intended")
    for again in (("prepare", {"id": "x", "trials": second}), ("prepare", {"id": "y", "trials": first})):
        assert worker.call(*again)["state"] == "refused"
    assert worker.call("begin", "x", time.time_ns())["state"] == "refused"
    assert "no slot" in worker.call("prepare", {"id": "z", "trials": ["t0009"]})["reason"]
    assert worker.call("close_session") == {"left": []}
    opened(worker, manifest, state)  # the study goes on: the host remembers
    for again in (("prepare", {"id": "x", "trials": second}), ("prepare", {"id": "y", "trials": first})):
        assert worker.call(*again)["state"] == "refused"
    assert attempts_of(state / STUDY_ID / "h0").ended["x"]["state"] == end["state"]
    assert worker.call("held") == {"x": end["files"]}
    assert "ResultError" in worker.call("fetch", "x", "../h0/manifest.json")["raised"]
    assert worker.call("forget", "x") == {}
    assert worker.call("held") == {}
    assert "ResultError" in worker.call("fetch", "x", f"trials/{first[0]}.parquet")["raised"]
    assert worker.call("prepare", {"id": "x", "trials": first})["state"] == "refused"
    assert measured(worker, "y", first)["state"] == "finished"  # a new try at what was thrown away
    # The result is complete, and the word to forget did not arrive: the host says what stays.
    assert worker.call("close_session", discard=True) == {"left": [str(state / STUDY_ID / "h0")]}
    opened(worker, manifest, state)
    worker.call("forget", "y")
    assert worker.call("close_session", discard=True) == {"left": []}
    assert not (state / STUDY_ID).exists()
    assert names(target) == []


def test_a_worker_that_is_killed_takes_its_trial_along_and_leaves_nothing_on_the_target(
    study: Path, target: Path, state: Path, worker: HostWorker
) -> None:
    manifest = study_manifest(study, {"a": target}, "blocks=1", *LONG)
    place = Path(opened(worker, manifest, state)["directory"])
    begun(worker, place, "x", slots(manifest)[0])
    sessions = children(worker.process.pid)
    workers = [pid for session in sessions for pid in children(session)]
    assert (len(sessions), len(workers)) == (1, 2)  # the observers, and what does the trial
    worker.process.kill()
    worker.process.wait()
    wait_gone(*sessions, *workers)
    assert names(target) == []
    with host_worker() as after:
        assert attempts_of(place).ended["x"]["state"] == "interrupted"
        assert after.call("held", *KEPT, str(state)) == {"x": {}}
        opened(after, manifest, state)
        assert after.call("prepare", {"id": "x", "trials": slots(manifest)[0]})["state"] == "refused"


@pytest.mark.parametrize("stored", [False, True], ids=["forgotten", "stored"])
def test_what_a_killed_session_left_is_removed_by_undo_and_its_tables_stay(
    study: Path, target: Path, state: Path, worker: HostWorker, stored: bool
) -> None:
    manifest = study_manifest(study, {"a": target}, "blocks=1")
    first, second = slots(manifest)
    opened(worker, manifest, state)
    files = measured(worker, "x", first)["files"]
    assert worker.call("prepare", {"id": "y", "trials": second}) == {"prepared": True}
    (session,) = children(worker.process.pid)
    workers = children(session)
    ending = worker.start("begin", "y", time.time_ns() + 60_000_000_000)
    held = worker.call("undo", STUDY_ID)
    assert "being written by another" in held["left"][str(state / STUDY_ID / "h0")]
    assert names(target) == [f"leadline-{STUDY_ID}0000"]
    os.kill(session, signal.SIGKILL)
    assert ending.result(30)["state"] == "lost"
    wait_gone(*workers)
    assert "refused" in worker.call("renew", STUDY_ID)
    assert "name the study and the host" in worker.call("held", "1badcafe")["remedy"]
    assert names(target) == [f"leadline-{STUDY_ID}0000"]
    removed = worker.call("undo", STUDY_ID, directory=str(state))
    assert removed == {"removed": [str(target / f"leadline-{STUDY_ID}0000")], "left": {}, "damage": ""}
    assert names(target) == []
    assert children(worker.process.pid) == []  # what removed it has ended, too
    assert worker.call("held") == {"x": files, "y": {}}
    assert worker.fetch("x", f"trials/{first[0]}.parquet")[:4] == b"PAR1"
    other = worker.call("undo", STUDY_ID, directory=str(state), stored=["t0099"])
    assert (other["removed"], worker.call("held")) == ([], {"x": files, "y": {}})
    if stored:  # the result has them already: the host was lost before it was told so
        worker.call("undo", STUDY_ID, directory=str(state), stored=list(first))
    else:
        assert worker.call("forget", "x") == {}
        assert worker.call("undo", STUDY_ID, directory=str(state))["removed"] == []
    assert not (state / STUDY_ID).exists()


def test_a_study_goes_on_after_its_session_was_killed_and_what_that_left_goes_first(
    study: Path, target: Path, state: Path, worker: HostWorker
) -> None:
    manifest = study_manifest(study, {"a": target}, "blocks=1")
    (trials, _) = slots(manifest)
    opened(worker, manifest, state)
    assert worker.call("prepare", {"id": "x", "trials": trials}) == {"prepared": True}
    workspace = target / f"leadline-{STUDY_ID}0000"
    (session,) = children(worker.process.pid)
    workers = children(session)
    mark = (workspace / ".leadline").stat().st_mtime_ns
    os.kill(session, signal.SIGKILL)
    wait_gone(*workers)
    opened(worker, manifest, state)
    assert names(target) == []
    assert attempts_of(state / STUDY_ID / "h0").ended["x"]["reason"] == "its session was killed"
    assert measured(worker, "y", trials)["state"] == "finished"
    assert (workspace / ".leadline").stat().st_mtime_ns > mark


def test_a_session_ends_with_its_lease_and_not_before(
    study: Path, target: Path, state: Path, worker: HostWorker
) -> None:
    manifest = study_manifest(study, {"a": target}, "blocks=1", *LONG)
    over, began_s = threading.Event(), time.monotonic()

    def renew() -> None:
        while not over.wait(0.1):
            worker.call("renew", STUDY_ID)

    renewing = threading.Thread(target=renew)
    renewing.start()
    place = Path(opened(worker, manifest, state, lease_s=SHORT_S)["directory"])
    ending = begun(worker, place, "x", slots(manifest)[0])
    time.sleep(max(0.0, began_s + 1.2 * SHORT_S - time.monotonic()))
    assert not ending.done()
    over.set()
    renewing.join()
    end = ending.result(30)
    assert (end["state"], end["files"]) == ("interrupted", {})
    wait_gone(*children(worker.process.pid))
    assert names(target) == []


def test_a_parent_keeps_no_session_of_another_study(
    study: Path, target: Path, state: Path, worker: HostWorker
) -> None:
    """One that finds the host taken asks again and again: what is alone there ends all the same, and goes."""
    opened(worker, study_manifest(study, {"a": target}, "blocks=1"), state, lease_s=SHORT_S)
    (session,) = children(worker.process.pid)
    over = threading.Event()

    def renew() -> None:
        while not over.wait(0.1):
            worker.call("renew", "1badcafe")

    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        wait_gone(session)
    finally:
        over.set()
        renewing.join()
    assert names(state) == []


@pytest.mark.parametrize("how", ["close", "killed", "while made", "refused"])
def test_of_a_study_that_began_nothing_a_host_keeps_nothing(
    study: Path, target: Path, state: Path, worker: HostWorker, how: str
) -> None:
    manifest = study_manifest(study, {"a": target}, "blocks=1")
    place = Path(opened(worker, manifest, state)["directory"])
    if how == "close":
        assert worker.call("close_session") == {"left": []}
    elif how == "refused":  # another result holds the target, found out once the directory is made
        with host_worker() as other:
            told = {"name": "h0", "number": 0}
            elsewhere = state.parent / "elsewhere"
            found = other.call("open_session", manifest, told, str(elsewhere), LEASE_S)
            assert "is being run or undone by process" in found["refused"]
            assert names(elsewhere) == []
        worker.call("close_session")
    else:
        (session,) = children(worker.process.pid)
        if how == "while made":
            killed = "with making(pathlib.Path(sys.argv[1]), 0o700): os.kill(os.getpid(), signal.SIGKILL)"
            imports = "import os, pathlib, signal, sys; from leadline.store.making import making"
            subprocess.run([sys.executable, "-c", f"{imports}\n{killed}", place], check=False, timeout=30)
            assert len(names(place.parent)) == 2
        os.kill(session, signal.SIGKILL)
        assert "ended (exit code -9)" in worker.call("renew", STUDY_ID)["refused"]
    assert names(state) == []


def test_what_was_killed_with_its_worker_goes_when_another_study_opens(
    study: Path, target: Path, state: Path, worker: HostWorker
) -> None:
    """Unless it began something, which somebody may ask for."""
    manifest = study_manifest(study, {"a": target}, "blocks=1")
    for number, begins in enumerate((True, False)):
        with host_worker() as other:
            opened(other, {**manifest, "id": f"{number}badcafe"}, state, number)
            (session,) = children(other.process.pid)
            if begins:
                measured(other, "x", slots(manifest)[0])
            workers = children(session)
            os.kill(session, signal.SIGSTOP)
            other.process.kill()
            other.process.wait()
            os.kill(session, signal.SIGKILL)
            wait_gone(session, *workers)
    assert names(state) == ["0badcafe", "1badcafe"]
    opened(worker, {**manifest, "id": "2badcafe"}, state)
    assert names(state) == ["0badcafe", "2badcafe"]


@pytest.mark.parametrize("how", ["cancel", "term"])
def test_a_trial_is_ended_by_whoever_may_and_only_a_cancelled_one_leaves_the_session(
    study: Path, target: Path, state: Path, worker: HostWorker, how: str
) -> None:
    manifest = study_manifest(study, {"a": target}, "blocks=1", *LONG)
    first, second = slots(manifest)
    place = Path(opened(worker, manifest, state)["directory"])
    (session,) = children(worker.process.pid)
    ending = begun(worker, place, "x", first)
    if how == "term":
        os.kill(session, signal.SIGTERM)
    else:
        assert worker.call("cancel", "x") == {}
    answer = ending.result(30)
    assert answer["state"] == "interrupted", answer
    if how == "cancel":  # another attempt at it, called off while it waits for its start
        assert worker.call("prepare", {"id": "y", "trials": first}) == {"prepared": True}
        worker.call("cancel", "y")
        wait_for_event(place, "attempt_ended")
        assert worker.call("prepare", {"id": "z", "trials": second}) == {"prepared": True}
        assert attempts_of(place).ended["y"]["state"] == "interrupted"
    began_s = time.monotonic()
    worker.call("close_session")  # what waits for its start does not keep it waiting
    assert time.monotonic() - began_s < LEASE_S
    wait_gone(session)
    assert names(target) == []


def test_jobs_of_a_sequence_each_have_a_start_and_rates_are_the_parents(
    tmp_path: Path, target: Path, state: Path, worker: HostWorker
) -> None:
    (tmp_path / "s.yaml").write_text(
        "format: leadline.study/1\nblocks: 1\nlimits: {reserve: 1M}\n"
        "defaults: {size: 1M, runtime: 200ms, time_based: true, engine: psync, direct: false}\n"
        "works:\n"
        "  after: {order: sequence, jobs: {x: {rw: write, bs: 64k}, y: {rw: randread, bs: 4k}}}\n"
        "  beside: {jobs: {x: {rw: write, bs: 64k}, y: {rw: randread, bs: 4k}}}\n"
    )
    manifest = study_manifest(tmp_path / "s.yaml", {"a": target})
    opened(worker, manifest, state)
    cells = {trial["id"]: trial["cell"] for trial in manifest["plan"]["trials"]}
    for attempt, trials in enumerate(slots(manifest)):
        instants, name = [], f"x{attempt}"
        found = worker.call("prepare", {"id": name, "trials": trials, "rates": {trials[-1]: 50.0}})
        while found.get("prepared"):
            instants.append(time.time_ns() + SOON_NS)
            found = worker.call("begin", name, instants[-1])
        assert found["state"] == "finished"
        rows = [row(worker, name, trial) for trial in trials]
        assert len(instants) == (2 if cells[trials[0]].startswith("a.after") else 1)
        for one, at_ns in zip(rows, instants * 2 if len(instants) == 1 else instants, strict=True):
            assert one["started_unix_ns"] >= at_ns
        assert json.loads(rows[-1]["job"])["rate_iops"] == 50
        assert json.loads(rows[0]["job"])["rate_iops"] is None


def test_a_kind_that_conducts_its_trials_itself_waits_for_the_start_too(
    tmp_path: Path, target: Path, state: Path, worker: HostWorker
) -> None:
    other = tmp_path / "other"
    other.symlink_to(target)
    (tmp_path / "s.yaml").write_text(
        "format: leadline.study/1\nblocks: 1\n"
        "works: {seen: {questions: [name], repetitions: 1, give_up: 5s}}\n"
    )
    manifest = study_manifest(tmp_path / "s.yaml", {"a": target, "b": other})
    elsewhere = {"b": str(target)}
    place = Path(opened(worker, manifest, state, targets=elsewhere)["directory"])
    kept = json.loads((place / "manifest.json").read_text())
    assert {one["name"]: one["url"] for one in kept["plan"]["targets"]} == {
        "a": str(target),
        "b": str(target),
    }
    trials = slots(manifest)[0]
    assert worker.call("prepare", {"id": "x", "trials": trials}) == {"prepared": True}
    at_ns = time.time_ns() + 2_000_000_000
    assert worker.call("begin", "x", at_ns)["state"] == "finished"
    assert row(worker, "x", trials[0])["started_unix_ns"] >= at_ns


def test_a_plan_that_grows_is_known_by_the_cells_of_its_blocks(
    study: Path, target: Path, state: Path, worker: HostWorker
) -> None:
    manifest = study_manifest(study, {"a": target}, "blocks=1")
    opened(worker, manifest, state)
    asked = {"id": "x", "trials": ["t0003"]}
    assert worker.call("prepare", asked)["state"] == "refused"
    assert measured(worker, "x", ["t0003"], grown=[["a.randread_4k"]])["state"] == "finished"
    assert row(worker, "x", "t0003")["block"] == 2


def test_a_host_that_is_not_able_says_so_and_begins_nothing(
    study: Path, target: Path, state: Path, worker: HostWorker
) -> None:
    manifest = study_manifest(study, {"a": target}, "blocks=1")
    assert (
        worker.call("prepare", {"id": "x", "trials": ["t0001"]})["reason"]
        == "no session is open on this host"
    )
    state.mkdir()
    state.chmod(0o777)
    host = {"name": "h0", "number": 0}
    assert "others may write" in worker.call("open_session", manifest, host, str(state), 9.0)["refused"]
    state.chmod(0o700)
    lost = {**host, "targets": {"a": str(target / "missing")}}
    assert "missing" in worker.call("open_session", manifest, lost, str(state), 9.0)["refused"]
    assert children(worker.process.pid) == []
    opened(worker, manifest, state)
    found = worker.call("open_session", {**manifest, "id": "1badcafe"}, host, str(state), 9.0)
    assert "works for the study 0badcafe already" in found["refused"]
    probed = worker.call(
        "probe", {"directory": str(state), "programs": ["sh", "no-such"], "modules": ["json"]}
    )
    assert probed["programs"]["sh"]
    assert (probed["programs"]["no-such"], probed["modules"]) == (None, {"json": True})
    assert abs(worker.call("clock") - time.time_ns()) < 5_000_000_000
