"""Readers of foreign files against anything: tables come out, or one clear error, whatever the bytes.

    python tests/fuzz/readers.py READER SECONDS     (`make fuzz` runs every reader in turn)

Begins with true files, made here by the tools themselves. What ends a reader in another way is kept
beside the corpus, in target/fuzz/READER.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "target" / "fuzz"
MEMORY_MAX_MIB = 2048
ONE_INPUT_MAX_S = 30
_PART_LINES = 25  # of a log of strace: short inputs are quick to read
_LOG_BYTES = 1 << 20  # the least that a traced process writes into
_SUBJECT = [
    "/bin/sh",
    "-c",
    "cp /bin/true copy; cat copy | head -c 100 > part; mv part parted; rm copy parted",
]


class Reader(NamedTuple):
    """`module` is instrumented; `read` gets a file with the bytes; `seed` writes true files into a directory.

    Inputs have up to `bytes_max` bytes.
    """

    module: str
    bytes_max: int
    read: Callable[[Path], object]
    seed: Callable[[Path, Path], None]


def _strace(path: Path) -> object:
    from leadline.tracing.sources.strace import read_strace

    return read_strace(path)


def _strace_logs(corpus: Path, work: Path) -> None:
    for number, options in enumerate((["-f", "-ttt", "-T", "-y"], ["-f", "-tt"], ["-f", "-r", "-T"], ["-y"])):
        log = work / "log"
        subprocess.run(["strace", *options, "-o", str(log), *_SUBJECT], cwd=work, check=True)
        lines = log.read_bytes().splitlines(keepends=True)
        for first in range(0, len(lines), _PART_LINES):
            (corpus / f"strace-{number}-{first}").write_bytes(b"".join(lines[first : first + _PART_LINES]))


def _log(path: Path) -> object:
    from leadline.tracing.sources.preload_tables import tables

    return tables([str(path)], started_unix_ns=0, copy=0)


def _logs(corpus: Path, work: Path) -> None:
    from leadline.tracing.sources import preload

    surroundings = preload.environment(
        corpus, segments_bytes=1 << 14, memory_bytes=_LOG_BYTES, inherited=os.environ
    )
    subprocess.run(["/bin/ls", "/"], cwd=work, env=surroundings, check=True, stdout=subprocess.DEVNULL)


def _darshan(path: Path) -> object:
    from leadline.tracing.sources.darshan import read_darshan

    return read_darshan([path])


def _darshan_logs(corpus: Path, _work: Path) -> None:
    import darshan

    found = Path(darshan.__path__[0]).rglob("*.darshan")
    for path in sorted(path for path in found if path.stat().st_size <= READERS["darshan"].bytes_max):
        (corpus / path.name).write_bytes(path.read_bytes())


READERS = {
    "strace": Reader("leadline.tracing.sources.strace", 1 << 13, _strace, _strace_logs),
    "log": Reader("leadline.tracing.sources.preload_tables", 2 * _LOG_BYTES, _log, _logs),
    "darshan": Reader("leadline.tracing.sources.darshan", 1 << 14, _darshan, _darshan_logs),
}


def main(name: str, seconds: int) -> None:
    """Read bytes that libFuzzer thinks of, for so long; does not return."""
    atheris: Any = importlib.import_module("atheris")
    reader = READERS[name]
    with atheris.instrument_imports(include=["leadline"]):
        importlib.import_module(reader.module)
    from leadline.errors import LeadlineError

    corpus, work = KEPT / name / "corpus", KEPT / name / "work"
    for directory in (corpus, work):
        directory.mkdir(parents=True, exist_ok=True)
    reader.seed(corpus, work)
    place = work / "input"

    def one(data: bytes) -> None:
        place.write_bytes(data)
        with suppress(LeadlineError):
            reader.read(place)

    limits = [f"-max_total_time={seconds}", f"-timeout={ONE_INPUT_MAX_S}", f"-rss_limit_mb={MEMORY_MAX_MIB}"]
    kept = [f"-max_len={reader.bytes_max}", f"-artifact_prefix={KEPT / name}/", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *limits, *kept, str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
