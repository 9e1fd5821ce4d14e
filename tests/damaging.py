"""Commands whose calls on a directory fail, or are written down, by `programs/damage.c`."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from built import PROGRAM, built

_SOURCE = Path(__file__).with_name("programs") / "damage.c"
_STORING = Path(__file__).with_name("storing.py")
_STATE = struct.Struct("=5q")


class Damaged:
    """What is told to the library that commands find in front of the C library, and what they find."""

    def __init__(self, place: Path, below: Path) -> None:
        self._state, self.log = place / "damage.state", place / "damage.log"
        self._below = below
        self.tell()

    def tell(self, fail_at: int = 0, error: int = 0, *, forever: bool = False, clock_s: int = 0) -> None:
        """Fail the call of that number from now on; 0: none. `clock_s` is added to the time of day."""
        packed = _STATE.pack(0, fail_at, error, forever, clock_s * 10**9)
        with self._state.open("r+b" if self._state.exists() else "wb") as file:
            file.write(packed)

    def environment(self, *, logged: bool = False) -> dict[str, str]:
        """For a command that is to meet it."""
        library = built(
            "damage.so", [_SOURCE], ["gcc", "-O1", "-shared", "-fPIC", "-o", PROGRAM, str(_SOURCE)]
        )
        found = {
            **os.environ,
            "LD_PRELOAD": str(library),
            "DAMAGE_STATE": str(self._state),
            "DAMAGE_BELOW": str(self._below),
        }
        return found | ({"DAMAGE_LOG": str(self.log)} if logged else {})

    def store(self, *words: str, logged: bool = False) -> Sequence[str]:
        """What `storing.py` printed."""
        done = subprocess.run(
            [sys.executable, str(_STORING), *words],
            env=self.environment(logged=logged),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()
