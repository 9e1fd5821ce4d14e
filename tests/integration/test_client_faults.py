"""Faults of a lab's clients: what runs there gets less, has neighbours, or another time; then no more."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bare_network import GIGABIT, asked, clear, ended, inject, made_lab, rate_bit_s, started

from leadline.lab.cgroups import ControlGroups, Controller
from leadline.lab.cluster import process
from leadline.lab.cluster.process import poll
from leadline.lab.inject import actions, engine, kinds
from leadline.lab.journal import LabJournal
from leadline.lab.record import LabRecord, read_record
from support import Command

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: namespaces need root")

BURN, SLEEP = "while True: pass", "import time; time.sleep(600)"
SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabRecord]:
    """A network whose links carry 1 Gbit/s."""
    with made_lab(tmp_path_factory.mktemp("clients") / "lab", GIGABIT) as made:
        yield made


@pytest.fixture(autouse=True)
def as_it_was(lab: LabRecord) -> Iterator[None]:
    """After each test no process, no group and no shared memory of the lab's is left."""
    yield
    assert engine.clear(lab.directory, os.environ)[1] == []
    assert process.find_marked(lab.fsid) == []
    assert [group for controller in ("cpu", "memory") if (group := group_of(lab, controller)).exists()] == []
    assert [item.name for item in SHARED_MEMORY.iterdir() if lab.fsid[:8] in item.name] == []


def group_of(lab: LabRecord, controller: Controller) -> Path:
    hierarchy = ControlGroups(lab.fsid).hierarchy(controller)
    assert hierarchy is not None
    return hierarchy.root / f"leadline-{lab.fsid[:8]}" / "client1"


def throttled(lab: LabRecord) -> int:
    words = (group_of(lab, "cpu") / "cpu.stat").read_text().split()
    return int(words[words.index("nr_throttled") + 1])


def members(lab: LabRecord, controller: Controller) -> list[int]:
    return [int(pid) for pid in (group_of(lab, controller) / "cgroup.procs").read_text().split()]


def require(lab: LabRecord, kind: str) -> None:
    reason = kinds.find(kind).lacking(lab)
    if reason:
        pytest.skip(f"NOT RUN: {reason}")


def exec_(leadline: Command, lab: LabRecord, *words: str) -> str:
    """What a command on client1 printed."""
    done = leadline("lab", "exec", "client1", "--dir", str(lab.directory), "--", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_runs_on_a_slow_client_is_throttled_and_so_is_what_comes(
    lab: LabRecord, leadline: Command
) -> None:
    require(lab, "client-slow-cpu")
    burner, other = started(lab, "client1", BURN), started(lab, "client2", SLEEP)
    try:
        identifier = inject(lab, "client-slow-cpu", "client1", cpu="10%")
        assert members(lab, "cpu") == [burner.pid]
        before = throttled(lab)
        assert poll(lambda: throttled(lab) >= before + 3, 20.0)
        assert burner.poll() is None
        ended(burner)  # what it has, nobody else gets
        place = exec_(leadline, lab, "cat", "/proc/self/cgroup")
        assert f"/leadline-{lab.fsid[:8]}/client1" in place
        clear(lab, identifier)
        assert not group_of(lab, "cpu").exists()
    finally:
        ended(burner, other)


def test_a_client_with_too_little_memory_loses_what_needs_more(lab: LabRecord, leadline: Command) -> None:
    require(lab, "client-low-memory")
    taker = (sys.executable, "-I", "-c", "x = bytearray(200 << 20); x[::4096] = b'x' * 51200")
    asked_for = ("lab", "exec", "client1", "--dir", str(lab.directory), "--")
    assert leadline(*asked_for, *taker).returncode == 0
    identifier = inject(lab, "client-low-memory", "client1", memory="64M")
    assert leadline(*asked_for, *taker).returncode == -9
    clear(lab, identifier)
    assert leadline(*asked_for, *taker).returncode == 0


def test_a_neighbour_computes(lab: LabRecord) -> None:
    identifier = inject(lab, "client-busy-cpu", "client1", cores="2")
    found = [item for item in read_record(lab.directory).processes if item.name.startswith("hog.")]
    assert len(found) == 2

    def ticks() -> int:
        texts = (Path(f"/proc/{item.pid}/stat").read_text() for item in found)
        return sum(int(text[text.rindex(")") + 1 :].split()[11]) for text in texts)

    assert poll(lambda: ticks() > 20, 20.0)
    clear(lab, identifier)
    assert [item for item in found if process.is_running(item)] == []
    assert read_record(lab.directory).processes == ()


def test_a_neighbour_sends_at_its_rate_from_a_client_or_to_it(lab: LabRecord) -> None:
    def unwanted(member: str) -> int:
        text = asked(lab, member, "nstat", "--json", "--noupdate", "--ignore", "--zeros")
        return int(json.loads(text)["kernel"]["UdpNoPorts"])

    identifier = inject(lab, "client-busy-link", "client1", rate="200Mbit")
    assert poll(lambda: 150e6 < rate_bit_s(lab, "p-client1", "rx") < 215e6, 10.0)
    assert unwanted("client2") > 0, "another client gets it, no host"
    clear(lab, identifier)
    assert poll(lambda: rate_bit_s(lab, "p-client1", "rx") < 1e6, 5.0)
    inject(lab, "client-busy-link", "client1", rate="50Mbit", direction="to")
    assert poll(lambda: 40e6 < rate_bit_s(lab, "p-client1") < 54e6, 10.0)


def test_a_neighbour_is_ended_that_was_never_recorded(lab: LabRecord) -> None:
    identifier = inject(lab, "client-busy-cpu", "client1")
    (hog,) = (item for item in read_record(lab.directory).processes if item.name == "hog.client1.cpu0")
    journal = LabJournal(read_record(lab.directory), process.environment(lab.fsid, lab.directory, os.environ))
    journal.forget([hog.name])
    clear(lab, identifier)
    assert not process.is_running(hog)


def test_a_process_that_only_looks_like_a_neighbour_is_left_alone(lab: LabRecord) -> None:
    """It has the command line, and not the lab's mark."""
    place = actions.ActionContext(LabJournal(lab, process.environment(lab.fsid, lab.directory, os.environ)))
    actions.do(place, actions.LabAction("hog", ("hog.client1.cpu0", "client1", "cpu")))
    (hog,) = process.find_marked(lab.fsid)
    assert poll(lambda: process.words_of(hog)[:1] == [sys.executable], 20.0)  # until then it is its starter
    words = process.words_of(hog)[:-1]
    pid = os.posix_spawn(words[0], words, dict(os.environ))
    try:
        actions.do(place, actions.LabAction("hog-end", ("hog.client1.cpu0",)))
        assert not process.is_running(hog)
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


@pytest.mark.parametrize(("offset", "seconds"), [("1h", 3600), ("-90s", -90)])
def test_a_clock_is_off_for_what_is_started_meanwhile(
    lab: LabRecord, leadline: Command, offset: str, seconds: int
) -> None:
    require(lab, "client-clock")

    def off() -> float:
        told = [int(line) for line in exec_(leadline, lab, "sh", "-c", "date +%s; date +%s").splitlines()]
        assert told[1] - told[0] < 20
        return told[0] - time.time()

    assert abs(off()) < 20
    identifier = inject(lab, "client-clock", "client1", offset=offset)
    assert abs(off() - seconds) < 20
    clear(lab, identifier)
    assert abs(off()) < 20


def test_a_clock_that_is_off_leaves_nothing_of_what_is_killed(lab: LabRecord, leadline: Command) -> None:
    require(lab, "client-clock")
    before = {item.name for item in SHARED_MEMORY.iterdir() if "faketime" in item.name}
    inject(lab, "client-clock", "client1", offset="5s")
    done = leadline("lab", "exec", "client1", "--dir", str(lab.directory), "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == -9
    exec_(leadline, lab, "bash", "-c", "date; exec date")
    assert {item.name for item in SHARED_MEMORY.iterdir() if "faketime" in item.name} <= before


def test_words_of_faults_say_what_they_do(lab: LabRecord) -> None:
    engine.inject(lab.directory, os.environ, "client-busy-link", "client2", {"rate": "10Mbit"})
    (found,) = engine.in_force(lab.directory)
    assert found.words == "other traffic of 10.0 Mbit/s goes from client2 to client1"
