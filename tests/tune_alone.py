"""`leadline tune` in a network namespace of its own: what it changes there is nobody else's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from leadline.tuning.changing.journal import TuningJournal
from support import command_line

DEADLINE_S = 120.0
KEY, OTHER = "net.core.somaxconn", "net.ipv4.tcp_mtu_probing"


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
