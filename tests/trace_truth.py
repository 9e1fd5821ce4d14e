"""What a tracer says of a program beside what the program says of itself.

A subject works in a directory of its own and prints its calls and bytes as JSON. Of a tracer's tables only
what happened in that directory is taken, so that the loader's and the libraries' own files do not count.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from built import PROGRAM, built
from leadline.tracing.sources.strace import read_strace
from leadline.tracing.tables import TraceTables
from support import Command

PROGRAMS = Path(__file__).parent / "programs" / "truth"
_FUNCTIONS = Path(__file__).parent / "data" / "trace" / "functions.yaml"
_DEADLINE_S = 120
# Calls that belong to no file, or to several: taken from the processes' counts.
_WITHOUT_FILE = ("close_range", "msync", "io_submit", "io_getevents", "io_uring_setup", "io_uring_enter")
# Requests that one of them, or a list, submits: the program makes no calls of these names.
_REQUESTS = ("io_submit:", "lio_listio:")


@dataclass(frozen=True)
class Counts:
    """Calls by name and bytes. Of calls named in `any_number` only the presence can be compared."""

    calls: Counter[str]
    bytes_read: int
    bytes_written: int
    any_number: frozenset[str] = frozenset()
    ring: tuple[int, int] = (0, 0)
    everywhere: Counter[str] = field(
        default_factory=Counter
    )  # calls in the whole trace, others' files included
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def renamed(self, calls: Counter[str], everywhere: Counter[str]) -> Counts:
        """The same under other names."""
        return replace(self, calls=calls, everywhere=everywhere)


def in_system_calls(truth: Counts) -> Counts:
    """A subject's functions as the system calls that they make."""
    calls: Counter[str] = Counter()
    any_number: set[str] = set()
    for function, count in truth.calls.items():
        entry = _functions()[function]
        for call in entry["calls"]:
            calls[call] += count
        any_number.update(entry.get("any", ()))
    return Counts(calls, truth.bytes_read, truth.bytes_written, frozenset(any_number), truth.ring)


@cache
def _functions() -> dict[str, dict[str, list[str]]]:
    from ruamel.yaml import YAML

    found: dict[str, dict[str, list[str]]] = YAML(typ="safe").load(_FUNCTIONS.read_text())
    return found


def printed(text: str) -> Counts:
    """The truth as a subject prints it on its last line."""
    said: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
    ring = (said.get("ring_read", 0), said.get("ring_written", 0))
    return Counts(Counter(said["calls"]), said["bytes_read"], said["bytes_written"], ring=ring)


def under_strace(command: Sequence[str], directory: Path, *, paths: bool = True) -> tuple[str, TraceTables]:
    """Run in `directory` under strace; its standard output, and the log as we read it."""
    log = directory.with_name(f"{directory.name}.strace")
    done = subprocess.run(
        ["strace", "-f", "-ttt", "-T", *(["-y"] if paths else []), "-o", str(log), *command],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, read_strace(log)


def under_leadline(
    leadline: Command, command: Sequence[str], directory: Path, via: str
) -> tuple[str, TraceTables]:
    """The same under `leadline trace`."""
    from leadline.store.reader import open_result
    from leadline.tracing.store import read_trace

    out = directory.with_name(f"{directory.name}.{via}")
    words = ("trace", "--via", via, "--segments", "-o", str(out), "--", *command)
    done = leadline(*words, cwd=directory, timeout=_DEADLINE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout, read_trace(open_result(out))


def within(tables: TraceTables, directory: Path) -> Counts:
    """What the tables say of `directory`."""
    rows = [
        row
        for row in tables.files.to_pylist()
        if row["path"] == str(directory) or row["path"].startswith(f"{directory}/")
    ]
    inside = {row["file"] for row in rows}
    calls: Counter[str] = Counter()
    everywhere: Counter[str] = Counter()
    if tables.segments is not None:
        for file, name in zip(
            tables.segments["file"].to_pylist(), tables.segments["call"].to_pylist(), strict=True
        ):
            if file in inside and not name.startswith(_REQUESTS) and name not in _WITHOUT_FILE:
                calls[name] += 1
    for process in tables.processes:
        for name, count in json.loads(process.calls).items():
            everywhere[name] += count
            if name in _WITHOUT_FILE:
                calls[name] += count
    notes = {note for process in tables.processes for note in json.loads(process.notes)}
    layers = [row for row in rows if row["module"] in ("POSIX", "STDIO")]
    return Counts(
        calls,
        sum(row["BYTES_READ"] or 0 for row in layers),
        sum(row["BYTES_WRITTEN"] or 0 for row in layers),
        everywhere=everywhere,
        notes=tuple(sorted(notes)),
        warnings=tables.warnings,
    )


def plain_names(calls: Counter[str]) -> Counter[str]:
    """Functions without the variants that a compiler or a library chooses: `__openat64_2` is `openat`."""
    names: Counter[str] = Counter()
    for name, count in calls.items():
        plain = re.sub(r"^__(?=[a-z])", "", name)
        plain = re.sub(r"(_chk|_2)$", "", plain)
        plain = re.sub(r"^(l|f|)xstat(at)?(64)?$", lambda m: f"{m[1]}stat{m[2] or ''}", plain)
        names[re.sub(r"64(?:v(?=2$)|(?=$|_))", "", plain)] += count
    return names


def differences(truth: Counts, seen: Counts, *, fileless: bool = False) -> list[str]:
    """What does not agree, in words; nothing when all does.

    With `fileless` a call that failed, or that works on a name only, may be in the trace without its file.
    """
    found = []
    for name in sorted({*truth.calls, *seen.calls}):
        expected, count = truth.calls[name], seen.calls[name]
        if fileless and count < expected <= seen.everywhere[name]:
            continue
        if name not in truth.any_number and expected != count:
            found.append(f"{name}: the program made {expected}, the tracer saw {count}")
    for what in ("bytes_read", "bytes_written"):
        expected, count = getattr(truth, what), getattr(seen, what)
        if expected != count:
            found.append(f"{what}: the program moved {expected}, the tracer saw {count}")
    return found


def disagreements(tables: TraceTables) -> list[str]:
    """Where a trace by the library says two things: sums of processes and of files, counts and the list."""
    rows = [row for row in tables.files.to_pylist() if row["module"] in ("POSIX", "STDIO")]
    counted: Counter[str] = Counter()
    for process in tables.processes:
        counted.update(json.loads(process.calls))
    pairs = {
        "bytes read": (sum(p.bytes_read for p in tables.processes), sum(r["BYTES_READ"] or 0 for r in rows)),
        "bytes written": (
            sum(p.bytes_written for p in tables.processes),
            sum(r["BYTES_WRITTEN"] or 0 for r in rows),
        ),
    }
    if tables.segments is not None:
        listed = Counter(tables.segments["call"].to_pylist())
        pairs |= {name: (counted[name], listed[name]) for name in sorted({*counted, *listed})}
    return [
        f"{what}: {one} by process, {two} in the rows" for what, (one, two) in pairs.items() if one != two
    ]


def compiled_c(*flags: str, subject: str = "calls") -> Path:
    """The subject in C."""
    source = PROGRAMS / f"{subject}.c"
    warnings = ("-Wall", "-Wextra", "-Werror")
    command = ["gcc", "-O2", *warnings, *flags, "-o", PROGRAM, str(source), "-lpthread"]
    return built(subject, [source], command)


def compiled_rust() -> Path:
    """The subject in Rust."""
    source = PROGRAMS / "subject.rs"
    return built("subject_rust", [source], ["rustc", "-O", "-o", PROGRAM, str(source)])


def compiled_go() -> Path:
    """The subject in Go: static, so that no preloaded library can see it."""
    source = PROGRAMS / "subject.go"
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "PATH": str(Path(shutil.which("go") or "go").parent) + ":/usr/bin:/bin",
            "HOME": home,
            "CGO_ENABLED": "0",
            "GOFLAGS": "-mod=mod",
            "GOPROXY": "off",
        }
        return built("subject_go", [source], ["go", "build", "-o", PROGRAM, str(source)], environment)
