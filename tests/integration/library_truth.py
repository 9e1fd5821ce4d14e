"""The preloaded library beside strace: system calls by name and path, and the rules for what it cannot see.

A rule names what is missing by who made the call (`strace_callers.py`), by the function that stands for it
(`functions.yaml`) or by the file (`residue.yaml`). What no rule names has to be equal.
"""

from __future__ import annotations

import os.path
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from strace_callers import Told

from leadline import _core
from leadline.tracing.sources.strace import read_strace
from leadline.tracing.tables import TraceTables
from trace_truth import plain_names

DATA = Path(__file__).resolve().parents[1] / "data" / "trace"
RESIDUE: dict[str, Any] = YAML(typ="safe").load((DATA / "residue.yaml").read_text())
FUNCTIONS: dict[str, Any] = YAML(typ="safe").load((DATA / "functions.yaml").read_text())
_DUPLICATING = re.compile(r"fcntl\(\d+<(/(?!dev/)[^>]*)>, F_DUPFD")
_DEVICE = re.compile(r'(openat|open|creat)\([^"]*"(/dev/[^"]+)"')
_OWN_PROCESS = re.compile(r"/proc/\d+(?=/)")
_RANDOM = re.compile(r"(?<=/tmp_obj_)\w{6}$|(?<=/\.git/t)\w{6}$")  # git's names of mkstemp and mkdtemp

Calls = Counter[tuple[str, str]]  # call and path


@dataclass
class Seen:
    """What the library's functions stand for in system calls."""

    certain: Calls = field(default_factory=Counter)
    any_number: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by path

    def add(self, function: str, path: str, count: int, *, failed: bool) -> None:
        """Calls of one function on one file. One that failed has got no further than its first call."""
        stands_for = FUNCTIONS[function]
        certain = stands_for["calls"][: 1 if failed else None]
        for call in certain:
            if call != "fcntl" or function == "fcntl":
                self.certain[call, path] += count
        self.any_number[path].update(() if failed else stands_for.get("any", ()))


def seen_by_functions(called: Mapping[tuple[str, str, bool], int]) -> Seen:
    """The same of counts by function, path and failure."""
    seen = Seen()
    for (function, path, failed), count in called.items():
        seen.add(function, path, count, failed=failed)
    return seen


def functions_called(tables: TraceTables) -> Counter[tuple[str, str, bool]]:
    """Plain name of a function, path, whether it failed."""
    return Counter(
        (next(iter(plain_names(Counter([name])))), path, result < 0) for name, path, result in _rows(tables)
    )


def calls_of_strace(told: Told, log: Path) -> tuple[Calls, Calls]:
    """All calls that the program made, and those that failed."""
    log.write_text("\n".join(told.lines) + "\n")
    rows = list(_rows(read_strace(log)))
    calls = Counter((name, path) for name, path, _ in rows if name != "fcntl")
    for line in told.lines:
        body = line.split(" ", 2)[-1].lstrip()
        if duplicating := _DUPLICATING.match(body):  # others change nothing that is in a trace
            calls["fcntl", _plain_path(duplicating[1])] += 1
        if device := _DEVICE.match(
            body
        ):  # the reader keeps them apart from files; the library counts their opening
            calls[device[1], device[2]] += 1
    return calls, Counter((name, path) for name, path, result in rows if result < 0)


def _rows(tables: TraceTables) -> Iterator[tuple[str, str, int]]:
    assert tables.segments is not None
    paths = {row["file"]: row["path"] for row in tables.files.select(["file", "path"]).to_pylist()}
    columns = [tables.segments[name].to_pylist() for name in ("call", "file", "result")]
    for name, file, result in zip(*columns, strict=True):
        yield name, _plain_path(paths.get(file, "")), result


def _plain_path(path: str) -> str:
    """Where -y says what a path leads to, the library has what the program said."""
    return _RANDOM.sub("*", _OWN_PROCESS.sub("/proc/self", os.path.normpath(path)))


def unlisted_calls() -> frozenset[str]:
    """System calls that the kernel's tracer counts and that no function of the library's list makes."""
    listed = {call for entry in FUNCTIONS.values() for call in (*entry["calls"], *entry.get("any", ()))}
    return frozenset(_core.bpf_calls()) - listed


def differences_by_path(truth: Calls, failed: Calls, seen: Seen) -> list[str]:
    """Calls that are not equal and that no rule names, in words."""
    missing, extra = truth - seen.certain, seen.certain - truth
    inside, beside = opened_inside(missing, failed), _beside(missing)
    return [
        f"{name} {path}: strace saw {truth[name, path]}, the library {seen.certain[name, path]}"
        for name, path in sorted({*missing, *extra})
        if (name, path) in extra
        or (
            not (name in seen.any_number[path] or name in unlisted_calls() or path in inside)
            and (name, path) not in beside
        )
    ]


def opened_inside(missing: Calls, failed: Calls) -> set[str]:
    """The files of `residue.yaml` that the C library opened for itself; what streams do with them is seen."""
    patterns = [re.compile(part) for rule in RESIDUE["inside"].values() for part in rule["paths"]]
    paths = {path for _, path in missing if any(pattern.match(path) for pattern in patterns)}
    return {
        path for path in paths if missing["openat", path] - failed["openat", path] >= missing["close", path]
    }


def _beside(missing: Calls) -> set[tuple[str, str]]:
    rules = [(tuple(rule["call"]), tuple(rule["as_often_as"])) for rule in RESIDUE["beside"].values()]
    return {call for call, other in rules if missing[call] == missing[other]}
