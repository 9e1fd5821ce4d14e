"""Whether a run can come to its end in this process: found out before anything is measured."""

from __future__ import annotations

import importlib
import mmap
import os
import resource

from leadline.errors import UsageError
from leadline.shortage import FILES_REMEDY, no_memory

FILES_MIN = 64  # a run of one job has some 40 open
_ROOM_BYTES = 512 << 20  # for tables, and for the stacks and pools of threads
# What a verb loads at its end: it stores tables and judges them.
_AT_THE_END = ("pyarrow.parquet", "scipy.special", "leadline.verdict.findings", "rich.table")


def require_room() -> None:
    """Raises UsageError where the limits of this process let no run end well."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= files < FILES_MIN:
        raise UsageError(
            f"this process may open {files} files; a run needs {FILES_MIN} or more", FILES_REMEDY
        )
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY and not _can_load():
        raise UsageError(*no_memory())


def _can_load() -> bool:
    """Whether memory holds what is loaded at the end; in a fork, as libraries of C++ abort without."""
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            for name in _AT_THE_END:
                importlib.import_module(name)
            mmap.mmap(-1, _ROOM_BYTES)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
