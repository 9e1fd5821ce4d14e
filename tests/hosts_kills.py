"""`make hosts-kills`: a study on the clients of a lab's network, of which something is killed or cut off.

Each round begins a short study on Dask's workers, each in a client's network namespace, and kills at a random
moment a worker, a host's session, the scheduler or the command itself, or takes a client's cable out. Then
what is lacking is started anew, and the study is gone on with until it is complete, or undone. No finished
trial may be lost, no host may have executed an attempt twice, and nothing may be left: on the target, in the
hosts' own directories, among the processes. `--seed` makes the rounds again; what failed stays to be seen.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lab_networks import why_none
from leadline.hosts.directory import BEGUN
from leadline.lab.inject import engine
from leadline.lab.network import make
from leadline.lab.network.placement import LabNetwork, place
from leadline.lab.network.topology import Link, simple
from leadline.lab.record import LOCK, LabRecord, write_record
from leadline.lab.spec import LabSpec
from leadline.store.journal import read_journal
from measured import BRIEF, CACHED, MOVING, SERVED, Expected
from support import command_line
from whole import assert_complete

STUDY = """
format: leadline.study/1
blocks: 3
limits: {reserve: 1M}
works:
  data: {rw: randrw, bs: 64k, size: 1M, iodepth: 2, verify: true}
  names: {operations: [create, stat, unlink], files: 10}
"""
HOSTS, PORT = 3, 18786
KINDS = ("worker", "nanny", "session", "scheduler", "parent", "partition")
LOST = Expected("errors", "a host was lost in the middle of a trial, more often than it is tried again")
AWAY = Expected("host_lost", "a host was not there again before its trial's last try")
SKEWED = Expected(
    "clock_skew", "hosts that share a busy machine do not begin within a small part of so short a trial"
)
EXPECTED = (CACHED, SERVED, BRIEF, MOVING, LOST, AWAY, SKEWED)  # what a busy machine does to so small a study
TRIES, DEADLINE_S, GONE_S = 8, 240.0, 60.0
LEASE_S = 12  # as soon as a host is to find out that it is alone
MARK = "LEADLINE_HOSTS_KILLS"  # in the environment of all that a round starts
_CONFIGURATION = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
    "LEADLINE_LEASE_S": str(LEASE_S),
}


@dataclass
class Site:
    """Dask on some hosts: `lab` is the network that they are in, None on the loopback."""

    directory: Path
    mark: str
    lab: LabRecord | None
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Of the hosts."""
        return [f"client{number + 1}" for number in range(HOSTS)]

    @property
    def scheduler(self) -> str:
        """Its address, the same for ever."""
        address = self.lab.network.console_address if self.lab and self.lab.network else "127.0.0.1"
        return f"tcp://{address}:{PORT}"

    @property
    def variables(self) -> dict[str, str]:
        """Of all that is started here."""
        own = {MARK: self.mark, "XDG_STATE_HOME": str(self.directory / "state")}
        return os.environ | _CONFIGURATION | own

    def mend(self) -> None:
        """Start what is not there."""
        if not self._runs("scheduler"):
            host, port = self.scheduler.removeprefix("tcp://").split(":")
            self._start("scheduler", [], _dask("scheduler", "--host", host, "--port", port))
        for name in self.names:
            if self._runs(name):
                continue
            entered, address = [], "127.0.0.1"
            if self.lab is not None and self.lab.network is not None:
                entered = make.entered(self.lab.paths, name)
                address = self.lab.network.address(name)
            place = self.directory / f"dask-{name}"
            words = ("--name", name, "--host", address, "--nthreads", "2", "--memory-limit", "0")
            words += ("--local-directory", str(place), "--death-timeout", "20")
            self._start(name, entered, _dask("worker", self.scheduler, *words))

    def end(self) -> None:
        """All of it."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for child in self.running.values():
                if child.poll() is None:
                    child.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                for child in self.running.values():
                    child.wait(10)

    def processes(self) -> dict[int, str]:
        """Command lines of all that runs of this round, by pid; not of this program."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal() or int(entry.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                if f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found[int(entry.name)] = words
        return found

    def _runs(self, name: str) -> bool:
        return name in self.running and self.running[name].poll() is None

    def _start(self, name: str, entered: Sequence[str], words: Sequence[str]) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [*entered, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.variables,
                start_new_session=True,
            )  # fmt: skip


def _dask(kind: str, *words: str) -> list[str]:
    pages = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
    return [sys.executable, "-P", "-m", f"distributed.cli.dask_{kind}", *words, *pages]


@contextlib.contextmanager
def network(directory: Path) -> Iterator[LabRecord]:
    """The network of a lab without a cluster: a host, and a client for each of the study's hosts."""
    shape = simple(hosts=1, clients=HOSTS, switches=1, osds=1, link=Link(10**9), uplink=Link())
    fsid = uuid.uuid4().hex
    found = LabNetwork(shape, "10.197.8.0/23", make.console_for(fsid), place(shape))
    made = LabRecord(
        name="kills", fsid=fsid, spec=replace(LabSpec(directory=directory, mount=False), topology=shape),
        directory=directory, run_directory=directory / "run", made_directory=True, owner_uid=os.geteuid(),
        created_unix_s=time.time(), state="up", network=found,
    )  # fmt: skip
    made.paths.logs.mkdir()
    (directory / LOCK).touch()
    write_record(made)
    try:
        make.make(found, made.paths, os.environ)
        yield made
    finally:
        make.remove(fsid, made.paths, os.environ)


@dataclass
class Round:
    """One study from its beginning to its end."""

    site: Site
    place: Path
    chance: random.Random
    did: list[str] = field(default_factory=list)
    finished: set[str] = field(default_factory=set)
    said: str = ""

    @property
    def out(self) -> Path:
        """The result."""
        return self.place / "r"

    @property
    def target(self) -> Path:
        """Where the hosts write."""
        return self.place / "t"

    def run(self, kinds: Sequence[str], longest_s: float) -> None:
        """Raises AssertionError for what was lost, done twice or left."""
        self.target.mkdir()
        study = self.place / "s.yaml"
        study.write_text(STUDY)
        many = ("--scheduler", self.site.scheduler, "--plain-tcp", "--same-machine")
        new = ("run", str(study), "--target", f"a={self.target}", "--out", str(self.out), "--quiet")
        new += ("--seed", "1", "--workers", str(HOSTS), "--lost", "retry", *many)
        resume = ("run", "--resume", str(self.out), "--quiet")
        for _ in range(self.chance.randint(1, 2)):
            self.site.mend()
            whole = not (self.out / "manifest.json").exists()
            if whole and self.out.exists():
                shutil.rmtree(self.out)  # killed before it was a result
            process = subprocess.Popen(
                command_line(*(new if whole else resume)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                env=self.site.variables, start_new_session=True,
            )  # fmt: skip
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self.chance.uniform(0, longest_s))
            self._harm(self.chance.choice(kinds), process)
            self._note()
        self._end(new, resume, undone=self.chance.random() < 0.25)

    def _harm(self, kind: str, process: subprocess.Popen[bytes]) -> None:
        ended = process.poll() is not None
        self.did.append(f"{kind}{' after its end' if ended else ''}")
        if kind == "parent":
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        elif kind == "partition" and self.site.lab is not None:
            client = self.chance.choice(self.site.names)
            fault = engine.inject(self.site.lab.directory, os.environ, "link-down", client)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self.chance.uniform(2, 20))
            engine.clear(self.site.lab.directory, os.environ, [fault.id])
        else:
            pids = self._victims(kind)
            if pids:
                os.kill(self.chance.choice(pids), signal.SIGKILL)
        try:
            self.said += process.communicate(timeout=DEADLINE_S)[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise AssertionError(f"{kind}: the command did not end within {DEADLINE_S:.0f} s") from None

    def _victims(self, kind: str) -> list[int]:
        there = self.site.processes()
        if kind == "scheduler":
            return [pid for pid, words in there.items() if "dask_scheduler" in words]
        if kind == "session":
            return [pid for pid, words in there.items() if "leadline.hosts.session" in words]
        nannies = [pid for pid, words in there.items() if "dask_worker" in words]
        if kind == "nanny":
            return nannies
        return [pid for pid, words in there.items() if "spawn_main" in words and _parent(pid) in nannies]

    def _note(self) -> None:
        """What is finished, which must not be lost; and what each host says that it began."""
        if not (self.out / "events.jsonl").exists():
            return
        for event in read_journal(self.out / "events.jsonl"):
            if event.event in ("trial_finished", "trials_finished"):
                named = event.details.get("trials") or [event.details.get("trial")]
                self.finished |= {str(one) for one in named}
        for journal in (self.site.directory / "state").glob("leadline/hosts/*/*/events.jsonl"):
            with contextlib.suppress(FileNotFoundError):  # the session has just ended
                events = read_journal(journal)
                seen = Counter(str(one.details["attempt"]) for one in events if one.event == BEGUN)
                twice = [attempt for attempt, count in seen.items() if count > 1]
                assert not twice, f"{journal.parent.name} began {twice} more than once"

    def _end(self, new: Sequence[str], resume: Sequence[str], *, undone: bool) -> None:
        last = None
        for _ in range(TRIES):
            self.site.mend()
            made = (self.out / "manifest.json").exists()
            if not made and self.out.exists():
                shutil.rmtree(self.out)
            words = ("undo", str(self.out)) if undone and made else resume if made else new
            last = subprocess.run(
                command_line(*words), capture_output=True, text=True, timeout=DEADLINE_S, check=False,
                env=self.site.variables,
            )  # fmt: skip
            self.said += last.stderr
            self.did.append(f"{words[0]}: {last.returncode}")
            self._note()
            if last.returncode in (0, 3) or "is complete" in last.stderr:
                break
        assert last is not None
        if undone and self.did[-1].startswith("undo"):
            assert last.returncode == 0, last.stdout + last.stderr
            assert not list(self.target.iterdir()), "undone, and on the target yet"
            if self._left():  # tables of finished trials, which nobody has fetched: they are not thrown away
                self._end(new, resume, undone=False)
                return
        else:
            assert_complete(last, self.out, *EXPECTED)
            done = {str(trial) for trial in self.finished}
            stored = {path.stem for path in (self.out / "trials").iterdir()}
            assert done <= stored, f"lost: {done - stored}"
        self._wait_for_the_lonely()
        if self._left():  # a session that was killed at the very end: `undo` is what a user is told then
            assert "left behind" in self.said, f"left, and nobody said so: {self._left()}"
            self.did.append("undo afterwards")
            subprocess.run(
                command_line("undo", str(self.out)), capture_output=True, timeout=DEADLINE_S, check=True,
                env=self.site.variables,
            )  # fmt: skip
        self._nothing_left()

    def _wait_for_the_lonely(self) -> None:
        """A run that ended before it had a result leaves sessions alone: they remove what is theirs."""
        own = str(json.loads((self.out / "manifest.json").read_text())["id"])
        end = time.monotonic() + 2 * LEASE_S
        while time.monotonic() < end and any(f"/{own}/" not in place for place in self._left()):
            time.sleep(0.2)

    def _left(self) -> list[str]:
        """On the target, and what hosts keep of a study."""
        kept = (self.site.directory / "state").glob("leadline/hosts/*/*")
        return [path.name for path in self.target.iterdir()] + [str(path) for path in kept]

    def _nothing_left(self) -> None:
        assert not self._left(), f"left: {self._left()}"
        end = time.monotonic() + GONE_S
        while time.monotonic() < end:
            working = [
                f"{words}: {_state(pid)}"
                for pid, words in self.site.processes().items()
                if "leadline" in words and "distributed" not in words
            ]
            if not working:
                break
            time.sleep(0.2)
        assert not working, f"still running: {working}"


def _state(pid: int) -> str:
    """What a process that should be gone does: its state, its parent, and where its threads wait."""
    with contextlib.suppress(OSError):
        wanted = ("State", "PPid", "Threads")
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        told = [" ".join(line.split()) for line in lines if line.startswith(wanted)]
        tasks = sorted(Path(f"/proc/{pid}/task").iterdir())
        told += [f"{task.name} in {(task / 'wchan').read_text()}" for task in tasks]
        return f"{pid}, {', '.join(told)}"
    return f"{pid}, gone by now"


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{pid}/stat").read_text()
        return int(text[text.rindex(")") + 1 :].split()[1])
    return 0


def main() -> int:
    """1 where something was lost, done twice or left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)))
    parser.add_argument("--loopback", action="store_true", help="no namespaces, and so no partition")
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    why = "" if options.loopback else why_none()
    if why:
        sys.exit(f"hosts-kills: {why}; --loopback needs none of it")
    directory = Path(tempfile.mkdtemp(prefix="leadline-hosts-kills-", dir="/var/tmp"))
    kinds = [kind for kind in options.kinds.split(",") if kind != "partition" or not options.loopback]
    sys.stderr.write(f"hosts-kills: {options.rounds} rounds, --seed {options.seed}, in {directory}\n")
    chance = random.Random(options.seed)  # noqa: S311 - moments, not secrets
    did, failures = Counter[str](), 0
    with contextlib.ExitStack() as stack:
        lab = None if options.loopback else stack.enter_context(network(_below(directory, "lab")))
        site = Site(directory, options.seed, lab)
        stack.callback(site.end)
        longest_s = undisturbed(site, directory)
        for number in range(options.rounds):
            one = Round(site, _below(directory, f"round{number}"), chance)
            began = time.monotonic()
            try:
                one.run(kinds, longest_s)
            except (AssertionError, subprocess.TimeoutExpired, OSError) as error:
                failures += 1
                sys.stdout.write(f"FAILED round {number}: {error}\n  {'; '.join(one.did)}\n  {one.place}\n")
                shutil.rmtree(directory / "state", ignore_errors=True)
            else:
                shutil.rmtree(one.place)
            did.update(words for words in one.did if ":" not in words)
            spent_s = time.monotonic() - began
            sys.stdout.write(f"round {number}: {'; '.join(one.did)} ({spent_s:.0f} s)\n")
            sys.stdout.flush()
    for words, count in sorted(did.items()):
        sys.stdout.write(f"{words:28} {count:5}\n")
    sys.stdout.write(f"{options.rounds} rounds, {failures} failed\n")
    if not failures:
        shutil.rmtree(directory)
    return 1 if failures else 0


def undisturbed(site: Site, directory: Path) -> float:
    """Seconds that the study takes when nothing is killed."""
    one = Round(site, _below(directory, "undisturbed"), random.Random(1))  # noqa: S311
    began = time.monotonic()
    one.run(("none",), 0.0)
    spent_s = time.monotonic() - began
    shutil.rmtree(one.place)
    return spent_s


def _below(directory: Path, name: str) -> Path:
    made = directory / name
    made.mkdir(mode=0o700)
    return made


if __name__ == "__main__":
    sys.exit(main())
