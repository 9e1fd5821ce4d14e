"""The logs of IOR and mdtest beside an IO500 summary: the metric of each phase as those programs printed it.

IO500 copies it into its summary, so that a log confirms or refutes one phase by itself: no time is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from leadline.foreign import read_plain

LOG_BYTES_MAX = 1 << 20
_OPERATIONS = {
    "write": "File creation",
    "stat": "File stat",
    "read": "File read",
    "delete": "File removal",
}
_LARGEST = re.compile(r"^Max (?:Write|Read):\s+(\d{1,12}(?:\.\d{1,9})?) MiB/sec", re.MULTILINE)


def read_logs(directory: Path) -> dict[str, str]:
    """The texts of a run's logs by phase: `ior-easy-write.txt`, or `ior_easy_write.txt` of the script.

    One that is missing, too large or unreadable confirms nothing, and is left out.
    """
    found = {}
    for phase in _phases():
        for name in (phase.replace("_", "-"), phase):
            try:
                data = read_plain(directory / f"{name}.txt", LOG_BYTES_MAX)
            except OSError:
                continue
            found[phase] = data.decode("utf-8", "replace")
            break
    return found


def _phases() -> Iterator[str]:
    for size in ("easy", "hard"):
        yield from (f"ior_{size}_{kind}" for kind in ("write", "read"))
        yield from (f"mdtest_{size}_{kind}" for kind in _OPERATIONS)


def logged_metrics(logs: Mapping[str, str], phases: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """(phase, value, unit) of each phase whose log has one other than 0, as it is printed there."""
    for phase in phases:
        program, _, rest = phase.partition("_")
        kind = rest.rpartition("_")[2]
        text = logs.get(phase, "")
        if program == "ior":
            match = _LARGEST.search(text) or re.search(
                rf"^{kind} +(\d{{1,12}}(?:\.\d{{1,9}})?) ", text, re.MULTILINE
            )
        else:
            match = re.search(
                rf"^ +{_OPERATIONS.get(kind, kind)} *:? +(\d{{1,12}}(?:\.\d{{1,9}})?) ", text, re.MULTILINE
            )
        if match is not None and float(match[1]) > 0:
            yield phase, match[1], "MiB/s" if program == "ior" else "IOPS"
