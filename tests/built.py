"""Programs that tests start, each compiled once for all tests, pytest's workers and later runs."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_KEPT = Path(__file__).resolve().parents[1] / "target" / "test-programs"
PROGRAM = "{program}"  # in a command: where the compiler is to write


def built(
    name: str, sources: Sequence[Path], command: Sequence[str], environment: Mapping[str, str] | None = None
) -> Path:
    """The program that `command` makes of `sources`.

    It is kept under a name that follows from all three and from the compiler: what changes is made anew.
    """
    directory = _KEPT / _digest(name, sources, command)
    program = directory / name
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be compiling it
        if not program.exists():
            new = directory / f"{name}.new"
            words = [str(new) if word == PROGRAM else word for word in command]
            subprocess.run(words, check=True, capture_output=True, env=environment)
            new.rename(program)
    return program


def _digest(name: str, sources: Sequence[Path], command: Sequence[str]) -> str:
    compiler = Path(shutil.which(command[0]) or command[0])
    changed_ns = compiler.stat().st_mtime_ns if compiler.exists() else 0
    digest = hashlib.sha256("\0".join([name, *command, str(compiler), str(changed_ns)]).encode())
    for source in sources:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:24]
