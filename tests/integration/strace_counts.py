"""What strace saw a command call: the truth that the tracer's counts are held against."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

# `1234  openat(AT_FDCWD, ...`; a resumed call was counted where it began.
_CALL = re.compile(r"^\d+ +(\w+)\((.*)$")


def strace_counts(
    command: Sequence[str],
    log: Path,
    *,
    counted: frozenset[str],
    directory: Path | None = None,
    environment: dict[str, str] | None = None,
) -> Counter[str]:
    """Calls by name of a command and all its descendants, those that the tracer counts."""
    subprocess.run(
        ["strace", "-f", "-qq", "-e", "signal=none", "-o", str(log), *command],
        check=True,
        capture_output=True,
        cwd=directory,
        env=environment,
        timeout=120,
    )
    return Counter(
        name
        for name, arguments in _calls(log.read_text(errors="replace"))
        if name in counted and not (name == "mmap" and "MAP_ANONYMOUS" in arguments)
    )


def _calls(text: str) -> list[tuple[str, str]]:
    return [found.groups() for line in text.splitlines() if (found := _CALL.match(line))]  # type: ignore[misc]
