"""The LD_PRELOAD tracer from Python: where its library is, what a program needs to load it, what it wrote.

The library records in the traced process (`crates/tracer`), one log a process; `_core` decodes the logs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import leadline
from leadline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leadline.tracing.sources.lives.watch import SeenEnd
    from leadline.tracing.tables import TraceTables

LIBRARY = Path(leadline.__file__).resolve().parent / "lib" / "libleadline_tracer.so"
LOG_SUFFIX = ".lltrace"


def library() -> Path:
    """The tracer's shared library, as packaged."""
    if not LIBRARY.is_file():
        raise UsageError(
            f"the tracer's library is missing: {LIBRARY}",
            "install leadline from a wheel for x86-64 Linux, or run `make setup` in its source tree",
        )
    return LIBRARY


def environment(
    directory: Path, *, segments_bytes: int | None, memory_bytes: int, inherited: Mapping[str, str]
) -> dict[str, str]:
    """`inherited` with what makes a program load the tracer and write its logs into `directory`.

    A library that the program preloads already stays first.
    """
    from leadline import _core

    before = inherited.get("LD_PRELOAD", "")
    return {
        **inherited,
        "LD_PRELOAD": f"{before}:{library()}" if before else str(library()),
        "LEADLINE_TRACE_DIR": str(directory.resolve()),
        "LEADLINE_TRACE_MEMORY": str(memory_bytes),
        "LEADLINE_TRACE_SEGMENTS": str(segments_bytes or 0),
        "LEADLINE_TRACE_TICKS": str(_core.counter_ticks_per_second()),
    }


def cannot_follow(executable: Path) -> str | None:
    """Why the tracer cannot be loaded into `executable`, in words; None where it can."""
    from leadline.observe.hang_guard import in_fork
    from leadline.tracing.sources.executable import reason_not_to_preload

    return in_fork(lambda _: reason_not_to_preload(executable), str(executable))


def read_logs(
    directory: Path, *, started_unix_ns: int, copy: int = 0, ends: Mapping[str, SeenEnd] | None = None
) -> TraceTables:
    """All logs of one trial, as tables. A log that cannot be read is a warning, never a silent gap.

    `ends` is what was seen of the ends of processes from outside, by the names of their logs.
    """
    from leadline.tracing.sources.preload_tables import tables

    paths = sorted(str(path) for path in directory.iterdir() if path.suffix == LOG_SUFFIX)
    return tables(paths, started_unix_ns=started_unix_ns, copy=copy, ends=ends)
