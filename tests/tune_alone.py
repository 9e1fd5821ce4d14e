"""`leadline tune` in a network namespace of its own: what it changes there is nobody else's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leadline.tuning.changing.journal import TuningJournal
from support import command_line

DEADLINE_S = 120.0
KEY, OTHER = "net.core.somaxconn", "net.ipv4.tcp_mtu_probing"
# Both are in force at once: they need no new connection.
BACKLOG, SLOW_START = "net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_slow_start_after_idle"


class Alone:
    """A network namespace, and the command in it with a journal of its own."""

    def __init__(self, place: Path) -> None:
        self.net, self.state = place / "net", place / "state"
        self.net.touch()
        subprocess.run(["unshare", f"--net={self.net}", "true"], check=True, timeout=20)

    def entered(self, *words: str) -> list[str]:
        """A command there."""
        return ["nsenter", f"--net={self.net}", *words]

    def line(self, verb: str, *words: str) -> list[str]:
        """A verb of `leadline tune` there."""
        return self.entered(*command_line("tune", verb, *words, "--state", str(self.state)))

    def plain(self, *words: str) -> list[str]:
        """Another verb there."""
        return self.entered(*command_line(*words))

    def tune(self, verb: str, *words: str, code: int = 0) -> str:
        """What it printed, on both streams."""
        done = subprocess.run(
            self.line(verb, *words), capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def value(self, key: str) -> str:
        """As the kernel has it there."""
        found = subprocess.run(
            self.entered("sysctl", "-n", key), capture_output=True, text=True, timeout=20, check=True
        )
        return " ".join(found.stdout.split())

    def set(self, key: str, value: str) -> None:
        """As somebody else would."""
        subprocess.run(self.entered("sysctl", "-q", "-w", f"{key}={value}"), timeout=20, check=True)

    @property
    def journal(self) -> TuningJournal:
        """What it says."""
        return TuningJournal(self.state)

    def proof_of_both(self, base: Path, study: str, *more: str) -> list[str]:
        """A proof of BACKLOG and SLOW_START in all four states; its result is `base / "r"`."""
        (base / "small.yaml").write_text(study)
        (base / "data").mkdir()
        where = ("--target", f"here={base / 'data'}", "--out", str(base / "r"), "--quiet")
        both = ("--with", f"{BACKLOG}=1234", "--with", f"{SLOW_START}=0")
        return self.line("prove", str(base / "small.yaml"), *where, *both, *more)

    @property
    def both_in_force(self) -> bool:
        """Whether that proof has set both just now."""
        return (self.value(BACKLOG), self.value(SLOW_START)) == ("1234", "0")


@contextmanager
def alone_in(place: Path) -> Iterator[Alone]:
    """A network of a test's own, gone afterwards."""
    found = Alone(place)
    try:
        yield found
    finally:
        subprocess.run(["umount", str(found.net)], check=True, timeout=20)
