"""`make tune-kills`: changes of settings that are killed at random moments, and are then put back.

A small lab, a network namespace with a cable, and every setting of the table read at every place. A round
draws changes, applies them in a process of its own, and kills it with SIGKILL at some moment; at times the
revert is killed too, or the switch that was to put back, with it. Then a revert, and all is read again: it
must be as it was. `--seed` makes the rounds again; what failed is named and the rounds go on.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from leadline import lab as leadline_lab
from leadline.lab.spec import LabSpec
from leadline.observe.hang_guard import in_fork
from leadline.tuning.changing import holding
from leadline.tuning.changing.applying import DeadMansSwitch, Pace, apply
from leadline.tuning.changing.journal import TuningJournal
from leadline.tuning.changing.reverting import revert
from leadline.tuning.settings import SettingChange, SettingPlace, settings
from leadline.tuning.system import KINDS, TuningSystem

HOST, DEVICE = "alone:one", "one"
QUICK = Pace(settle_s=20.0, hold_s=0.0, watch_s=0.0)
DEADLINE_S = 300.0
ALLOWED = ("integrity", "durability", "security")
REVERT_KILLED, WITH_SWITCH, WHOLE = 0.25, 0.1, 0.1
SWITCH_S = 3600.0  # longer than any round: what it would do is tried by itself

# By their names in the table: where, and values of which each is another than a lab's own.
CHOICES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("net.core.somaxconn", HOST, ("1024", "2048", "8192")),
    ("net.ipv4.tcp_rmem", HOST, ("4096 65536 1048576", "4096 262144 16777216")),
    ("net.ipv4.tcp_sack", HOST, ("0",)),
    ("net.ipv4.tcp_mtu_probing", HOST, ("1", "2")),
    ("mtu", f"{DEVICE}@{HOST}", ("9000", "1400")),
    ("osd_max_backfills", "osd", ("2", "3")),
    ("osd_max_backfills", "osd.1", ("4",)),
    ("osd_recovery_max_active", "osd", ("1", "5")),
    ("osd_scrub_sleep", "osd", ("0.1",)),
    ("mds_cache_memory_limit", "mds", ("268435456", "536870912")),
    ("mds_bal_split_size", "mds", ("5000",)),
    ("noscrub", "", ("true",)),
    ("nodeep-scrub", "", ("true",)),
    ("session_timeout", "fs", ("90", "120")),
    ("allow_standby_replay", "fs", ("true",)),
    ("compression_mode", "data", ("aggressive", "passive")),
    ("recovery_priority", "data", ("3", "-2")),
    ("client_oc_size", "/", ("104857600",)),
    ("client_cache_size", "/", ("8192", "4096")),
)


@dataclass(frozen=True)
class Tuned:
    """What the rounds change: a lab, a namespace, and where the journal is."""

    lab: leadline_lab.Lab
    namespace: Path
    state: Path

    def system(self) -> TuningSystem:
        """It, connected to when it is asked."""
        return TuningSystem(conf=self.lab.record.paths.conf, namespaces={HOST: self.namespace})

    @property
    def journal(self) -> TuningJournal:
        """Its journal."""
        return TuningJournal(self.state)

    def change(self, name: str, on: str, value: str) -> SettingChange:
        """One of the choices at its place."""
        fsid = self.lab.record.fsid
        if on == "/":
            return SettingChange(name, SettingPlace(str(self.lab.record.paths.mount)), value)
        subject, at, host = on.rpartition("@")
        if host == HOST:
            return SettingChange(name, SettingPlace(subject if at else "", HOST), value)
        return SettingChange(name, SettingPlace(on, cluster=fsid), value)


def read_everything(tuned: Tuned) -> dict[str, tuple[str | None, str]]:
    """Every setting of the table at every place that has it, and all that the monitors keep beside."""

    def ask(_: object) -> dict[str, tuple[str | None, str]]:
        found: dict[str, tuple[str | None, str]] = {}
        with tuned.system() as system:
            for setting in system.known.values():
                for place in system.places(setting):
                    read = system.read(setting, place)
                    found[f"{setting.name} on {place.words}"] = (read.value, read.origin)
            for row in system.around.ask("config dump"):
                found[f"config {row['section']} {row['name']}"] = (str(row["value"]), "")
        return found

    return in_fork(ask, "every setting", DEADLINE_S)


def started(deed: Callable[[], object], log: Path) -> int:
    """A process that does it, and nothing else; its pid."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        deed()
        code = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def killed(pid: int, after_s: float) -> int | None:
    """Kills a process so much later, and answers None; its exit code where it had ended before."""
    end = time.monotonic() + after_s
    while time.monotonic() < end:
        ended_pid, status = os.waitpid(pid, os.WNOHANG)
        if ended_pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def ended(pid: int) -> int:
    """Its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Rounds:
    """All rounds on one system."""

    def __init__(self, tuned: Tuned, chance: random.Random, log: Path) -> None:
        self.tuned, self.chance, self.log = tuned, chance, log
        self.apply_s = self.revert_s = 3.0
        self.kills: Counter[str] = Counter()
        self.failures: list[str] = []
        self.changed = 0

    def one(self, number: int, before: dict[str, tuple[str | None, str]]) -> None:
        """A round, whose failures are kept."""
        began = time.monotonic()
        self._apply()
        outstanding = len(self.tuned.journal.state().outstanding())
        self.changed += outstanding
        if outstanding and self.chance.random() < REVERT_KILLED:
            pid = started(self._revert, self.log)
            self.kills["revert"] += killed(pid, self.chance.uniform(0, self.revert_s)) is None
        begun = time.monotonic()
        code = ended(started(self._revert, self.log))
        self.revert_s = 0.8 * self.revert_s + 0.2 * (time.monotonic() - begun)
        found = [f"revert ended with {code}"] if code else []
        after = read_everything(self.tuned)
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                found.append(f"{name}: {before.get(name)} -> {after.get(name)}")
        self.failures += [f"round {number}: {words}" for words in found]
        took_s = time.monotonic() - began
        sys.stderr.write(
            f"round {number}: {took_s:.1f} s, {outstanding} to put back: {found or 'as before'}\n"
        )

    def _apply(self) -> None:
        """Changes, killed at some moment; a tenth of them are let through to the end."""
        chosen = self.chance.sample(CHOICES, self.chance.randint(1, 6))
        changes = [self.tuned.change(name, on, self.chance.choice(values)) for name, on, values in chosen]
        switch = self.chance.random() < WITH_SWITCH
        begun = time.monotonic()
        pid = started(partial(self._apply_all, changes, switch=switch), self.log)
        whole = self.chance.random() < WHOLE
        code = killed(pid, DEADLINE_S if whole else self.chance.uniform(0, self.apply_s))
        if code == 0:
            self.apply_s = 0.7 * self.apply_s + 0.3 * (time.monotonic() - begun)
        self.kills["apply" if code is None else "failed" if code else "whole"] += 1
        if switch:
            self._kill_holders()

    def _kill_holders(self) -> None:
        """As the end of everything does: what was to put back ends too."""
        for run in self.tuned.journal.state().runs.values():
            if holding.is_held(run):
                os.kill(run.holder_pid, signal.SIGKILL)
                self.kills["switch"] += 1

    def _apply_all(self, changes: Sequence[SettingChange], *, switch: bool) -> None:
        start = partial(holding.start, self.tuned.state)
        with self.tuned.system() as system:
            apply(
                system, changes, allowed=ALLOWED, journal=self.tuned.journal, pace=QUICK,
                switch=DeadMansSwitch(SWITCH_S, start) if switch else None,
            )  # fmt: skip

    def _revert(self) -> None:
        found = revert(None, self.tuned.journal, wait_s=60.0)
        if found.left:
            raise AssertionError("; ".join(found.left))


@contextmanager
def namespace(place: Path) -> Iterator[Path]:
    """A network of its own, with a cable whose other end is in it too."""
    held = place / "net"
    held.touch()
    subprocess.run(["unshare", f"--net={held}", "true"], check=True, timeout=20)
    try:
        entered = ["nsenter", f"--net={held}", "ip", "link"]
        add = [*entered, "add", DEVICE, "type", "veth", "peer", "name", "other"]
        for command in (add, [*entered, "set", "lo", "up"], [*entered, "set", DEVICE, "up"]):
            subprocess.run(command, check=True, timeout=20)
        yield held
    finally:
        subprocess.run(["umount", str(held)], check=True, timeout=20)


def load() -> None:
    """What every process would load: kills are to meet changes, and not the reading of a table."""
    settings()
    importlib.import_module("leadline.observe.ceph.client")
    importlib.import_module("leadline.observe.mounts.fuse_client")
    for module, _ in KINDS.values():
        importlib.import_module(f"leadline.tuning.access.{module}")


def main() -> int:
    """Rounds as the command line says; 1 where anything differed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))  # noqa: S311
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="leadline-tune-kills-", dir="/var/tmp") as name:
        place = Path(name)
        lab = leadline_lab.start(LabSpec(directory=place / "lab", osds=3, osd_size_bytes=1 << 30))
        try:
            with namespace(place) as net:
                rounds = Rounds(Tuned(lab, net, place / "state"), random.Random(asked.seed), place / "log")  # noqa: S311
                load()
                before = read_everything(rounds.tuned)
                sys.stderr.write(f"seed {asked.seed}: {len(before)} values are read before and after\n")
                for number in range(asked.rounds):
                    rounds.one(number, before)
        finally:
            lab.down()
    for words in rounds.failures:
        sys.stderr.write(f"FAILED {words}\n")
    sys.stdout.write(
        f"{asked.rounds} rounds, seed {asked.seed}: {rounds.kills['apply']} applies,"
        f" {rounds.kills['revert']} reverts and {rounds.kills['switch']} switches killed,"
        f" {rounds.kills['whole']} applied whole, {rounds.kills['failed']} refused or failed;"
        f" {rounds.changed} changes put back; of {len(before)} values read each time"
        f" {len(rounds.failures)} were not as before\n"
    )
    return 1 if rounds.failures else 0


if __name__ == "__main__":
    sys.exit(main())
