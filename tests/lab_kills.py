"""`make lab-kills`: labs with hosts, whose commands are killed at random moments, and which then go.

Each round draws a small topology and starts it. `lab up`, `lab inject`, `lab status` or `lab down` is killed
with SIGKILL at some moment of it, then `lab down` ends the lab. Afterwards nothing of it may be there: no
process, mount, namespace, device, control group or file; and a network that stood beside it all the time must
be as it was. `--seed` makes the rounds again; what failed is named and the rounds go on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lab_networks import AloneNetwork, why_none
from leadline import lab as leadline_lab
from leadline.errors import LeadlineError
from leadline.faults import DIRECTORY
from leadline.lab import mounts
from leadline.lab.cluster import process
from leadline.lab.network import make as network
from leadline.lab.network.topology import Link, MachineLimits, Switch, Topology, simple
from leadline.lab.record import read_record
from leadline.lab.spec import LabSpec
from support import command_line

DEADLINE_S = 200.0
START_S = 30.0  # until such a lab is up on a quiet machine; the first whole start says it anew
WHOLE, DOWNS = 0.25, 0.6  # of the rounds let the lab come up; kill `lab down`
INJECT_S, DOWN_S = 3.0, 6.0
GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Killed:
    """A command that was killed, and when; `ended` where it had ended before."""

    what: str
    after_s: float
    ended: bool

    def __str__(self) -> str:
        return f"{self.what} {'had ended before' if self.ended else 'killed after'} {self.after_s:.2f} s"


def drawn(chance: random.Random) -> Topology:
    """Three hosts with an OSD each, and what can differ beside."""
    link = Link(chance.choice((200, 1000)) * 10**6, chance.choice((1500, 9000)))
    found = simple(3, chance.randint(0, 2), chance.randint(1, 3), 3, link, Link(2 * 10**9, link.mtu_bytes))
    if chance.random() < 0.3:
        hosts = tuple(replace(host, cluster_switch="rear", cluster_link=link) for host in found.hosts)
        found = replace(found, hosts=hosts, switches=(*found.switches, Switch("rear")))
    if chance.random() < 0.3:
        first = replace(found.hosts[0], limits=MachineLimits(cpu=1.0, memory_bytes=4 << 30))
        found = replace(found, hosts=(first, *found.hosts[1:]))
    return found


def started(words: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """A command whose words go to a file."""
    with log.open("ab") as stream:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)


def killed(what: str, words: Sequence[str], after_s: float, log: Path) -> Killed:
    """Starts a command and kills it, it alone, so much later."""
    began = time.monotonic()
    with started(words, log) as running:
        try:
            running.wait(after_s)
        except subprocess.TimeoutExpired:
            running.kill()
            return Killed(what, after_s, ended=False)
    return Killed(what, time.monotonic() - began, ended=True)


def ended(words: Sequence[str], log: Path) -> int:
    """A command's exit code."""
    with started(words, log) as running:
        return running.wait(DEADLINE_S)


class Rounds:
    """All rounds, in one directory, beside one network."""

    def __init__(self, place: Path, chance: random.Random) -> None:
        self.place, self.chance = place, chance
        self.start_s = START_S
        self.kills: Counter[str] = Counter()
        self.failures: list[str] = []
        self.times_s: list[float] = []

    def one(self, number: int, beside: AloneNetwork, neighbour: process.ProcessIdentity) -> None:
        """A round, whose failures are kept."""
        directory, log = self.place / f"lab{number}", self.place / f"round{number}.log"
        before, began = beside.state(), time.monotonic()
        done: list[Killed] = []
        try:
            self._begin(number, directory, log, done)
            fsid = fsid_in(directory)  # a removal that is killed may have taken the lab's file
            self._go_down(directory, log, done)
        finally:
            code = ended(command_line("lab", "down", "--dir", str(directory)), log)
        found = [f"lab down ended with {code}"] if code else []
        found += left(directory, fsid, self.place / "state")
        if beside.state() != before or not process.is_running(neighbour):
            found.append("the network beside it is another")
        self.kills.update(item.what for item in done if not item.ended)
        self.times_s.append(time.monotonic() - began)
        words = "; ".join(map(str, done))
        sys.stderr.write(f"round {number}: {self.times_s[-1]:.0f} s: {words}: {found or 'nothing stays'}\n")
        if found:
            last = log.read_text(errors="replace")[-1500:]
            self.failures.append(f"round {number} ({words}): {'; '.join(found)}\n{last}")
        else:
            log.unlink()

    def _begin(self, number: int, directory: Path, log: Path, done: list[Killed]) -> None:
        """A start that is killed, or a whole one and faults that are."""
        chance = self.chance
        seed = str(chance.getrandbits(32))
        up = [sys.executable, __file__, "--up", str(directory), "--seed", seed]
        if number == 0 or chance.random() < WHOLE:
            began = time.monotonic()
            if ended(up, log) != 0:
                raise RuntimeError(log.read_text(errors="replace")[-2000:])
            self.start_s = time.monotonic() - began
            done += self._inject(directory, log)
        else:
            done.append(killed("lab up", up, self.start_s * chance.random() ** 1.5, log))

    def _go_down(self, directory: Path, log: Path, done: list[Killed]) -> None:
        """A removal that is killed, in most rounds."""
        if self.chance.random() < DOWNS:
            down = command_line("lab", "down", "--dir", str(directory))
            done.append(killed("lab down", down, DOWN_S * self.chance.random() ** 2, log))

    def _inject(self, directory: Path, log: Path) -> list[Killed]:
        """Some faults at random, the last of which is killed; and a look at the lab that is killed."""
        chance, done = self.chance, []
        place = ("--dir", str(directory))
        for _ in range(chance.randint(1, 3)):
            kind, on = chance.choice(kinds(directory))
            words = command_line("lab", "inject", kind, *([on] if on else []), "for", "2s", *place)
            done.append(killed("lab inject", words, INJECT_S * chance.random(), log))
        done.append(killed("lab status", command_line("lab", "status", *place), chance.random(), log))
        return done


def kinds(directory: Path) -> list[tuple[str, str]]:
    """Faults that can be injected there, each with something that it can be done on."""
    words = command_line("lab", "inject", "--kinds", "--json", "--dir", str(directory))
    said = json.loads(subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout)
    return [
        (item["name"], thing)
        for item in said["kinds"]
        if not item["reason"]
        for thing in item["things"] or [""]
    ]


def fsid_in(directory: Path) -> str:
    """The lab's identity as far as it has one."""
    try:
        return read_record(directory).fsid
    except LeadlineError:
        return ""


def left(directory: Path, fsid: str, state: Path) -> list[str]:
    """What is still there of a lab that was taken down."""
    found = [f"mount {point}" for point, _ in mounts.mounts_below(directory)]
    if directory.exists():
        found.append(f"files: {sorted(path.name for path in directory.iterdir())[:10]}")
    if any(state.rglob("*")):
        found.append(f"entries in {state}")
    marks = [mark.encode() for mark in (f"{DIRECTORY}={directory}", fsid) if mark]
    for running in Path("/proc").glob("[0-9]*"):
        found += [f"process {running.name}" for mark in marks if mark in environment(running)][:1]
    if fsid:
        console = network.console_for(fsid)
        found += [f"device {name}" for _, name in socket.if_nameindex() if name == console]
        found += [f"control group {path}" for path in GROUPS.glob(f"*/leadline-{fsid[:8]}*")]
        found += [f"control group {path}" for path in GROUPS.glob(f"leadline-{fsid[:8]}*")]
        found += [f"sockets in {path}" for path in Path("/tmp").glob(f"leadline-lab-{fsid[:8]}*")]
    return found


def environment(running: Path) -> bytes:
    """What a process was started with."""
    try:
        return (running / "environ").read_bytes()
    except OSError:
        return b""


def bring_up(directory: Path, seed: int) -> int:
    """What `lab up` does with a topology that is drawn. In a process of its own, to be killed."""
    spec = LabSpec(directory=directory, osd_size_bytes=1 << 30, topology=drawn(random.Random(seed)))  # noqa: S311
    leadline_lab.start(spec, lambda words: sys.stderr.write(f"{words}\n"))
    return 0


def main() -> int:
    """Makes the rounds; 1 where anything stayed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))  # noqa: S311
    parser.add_argument("--up", type=Path, help="not for you: start one lab")
    asked = parser.parse_args()
    if asked.up:
        return bring_up(asked.up, asked.seed)
    if reason := why_none():
        sys.stderr.write(f"lab-kills: {reason}\n")
        return 1
    sys.stderr.write(f"lab-kills: --seed {asked.seed}\n")
    with tempfile.TemporaryDirectory(prefix="lab-kills-") as place:
        return all_rounds(Path(place), asked.rounds, asked.seed)


def all_rounds(place: Path, count: int, seed: int) -> int:
    """Beside one network in which a process runs that belongs to no lab that is taken down."""
    (place / "state").mkdir()
    os.environ["XDG_STATE_HOME"] = str(place / "state")
    beside = AloneNetwork.plan(simple(1, 1, 2, 1, Link(10**8), Link(10**9)), place / "beside")
    rounds = Rounds(place, random.Random(seed))  # noqa: S311
    try:
        beside.make()
        variables = process.environment(beside.fsid, beside.paths.directory, os.environ)
        command = [*network.entered(beside.paths, "host1"), "sleep", "infinity"]
        neighbour = process.start("neighbour", command, variables, place / "neighbour.log")
        try:
            for number in range(count):
                rounds.one(number, beside, neighbour)
        except KeyboardInterrupt:
            sys.stderr.write("lab-kills: ended early\n")
        finally:
            process.end([neighbour], grace_s=1.0)
    finally:
        beside.remove()
    kills = ", ".join(f"{what} {number}" for what, number in rounds.kills.most_common())
    spent = sum(rounds.times_s)
    sys.stderr.write(f"\n{len(rounds.times_s)} rounds in {spent:.0f} s; killed: {kills}\n")
    for failure in rounds.failures:
        sys.stderr.write(f"\n{failure}\n")
    sys.stderr.write(f"{len(rounds.failures)} rounds left something\n")
    return 1 if rounds.failures else 0


if __name__ == "__main__":
    sys.exit(main())
