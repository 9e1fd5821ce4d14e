"""The programs of `bench/programs.py`: what each spends its time on, as it is made, and which rules say so.

`right` are the rules of which one must be said first; `also` is true of the program, too. All else is
wrong. What is right follows from the program and the mount, never from what leadline says of it.
"""

from __future__ import annotations

from dataclasses import dataclass

# True of any program on a host that others use.
OF_THE_HOST = frozenset({"waiting_for_cpus"})
# One thread reads in each of these programs, so that its reads wait for each other.
READS = frozenset({"mostly_reads", "serial_reads"})
WRITES = frozenset({"mostly_writes"})
# A CPU is what it needs, and on a host that others use it waits for one.
COMPUTES = frozenset({"bound_by_compute", "waiting_for_cpus"})
# Python and cat read on until a read brings nothing.
ENDS = frozenset({"end_probes"})
PAGES = frozenset({"waiting_for_pages"})
ASLEEP = frozenset({"waiting_asleep"})
LOADING = frozenset({"unseen_calls", "waiting_for_pages", "library_cost"})


@dataclass(frozen=True)
class ProgramCase:
    """A program: its words, where {mount} is the slow mount, {program} what is compiled, {port} a server.

    Each read and each write on the mount takes so many milliseconds; `files` are made there, by size.
    `overlapped` programs do several things at once, so that no share of their time is claimed.
    """

    name: str
    does: str
    words: tuple[str, ...]
    right: frozenset[str]
    also: frozenset[str] = frozenset()
    read_ms: float = 20
    write_ms: float = 20
    files: tuple[tuple[str, int, int], ...] = ()  # name with {} for its number, how many, bytes
    cached: bool = False
    library: bool = False  # one of 8 MiB, beside its files


MIB = 1 << 20
DATA = (("data", 1, 64 * MIB),)
C = "{program}"
PYTHON = ("{python}", "-I", "-S", "-c")


def _c(name: str, does: str, what: str, count: int, right: frozenset[str], **more: object) -> ProgramCase:
    path = str(more.pop("path", "{mount}/data"))
    return ProgramCase(name, does, (C, what, str(count), path), right, **more)  # type: ignore[arg-type]


def _python(name: str, does: str, code: str, right: frozenset[str], **more: object) -> ProgramCase:
    return ProgramCase(name, does, (*PYTHON, code), right, **more)  # type: ignore[arg-type]


def _shell(name: str, does: str, code: str, right: frozenset[str], **more: object) -> ProgramCase:
    return ProgramCase(name, does, ("sh", "-c", code), right, **more)  # type: ignore[arg-type]


_COMPUTE = "import time\nwhile time.process_time() < 0.6: pass"
_READ = "f = open('{mount}/data', 'rb', 0)\nfor n in range(40): f.read(65536)"
_TOUCH = (
    "import mmap\nf = open('{mount}/data', 'rb')\nm = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)\n"
    "for at in range(0, 40 << 20, 1 << 20): m[at]"
)
_FEW = (("data", 1, 4 * MIB),)
_SMALL = (("small-{}", 60, 3000),)
CASES: tuple[ProgramCase, ...] = (
    _c("c_computes", "0.6 s of sums", "computes", 600, COMPUTES),
    _c("c_computes_long", "1.2 s of sums", "computes", 1200, COMPUTES),
    _c("c_reads", "40 reads of 64 KiB, 20 ms each", "reads", 40, READS, files=DATA),
    _c("c_reads_slow", "8 reads of 64 KiB, 100 ms each", "reads", 8, READS, read_ms=100, files=DATA),
    _c(
        "c_small_reads",
        "1,200 reads of 512 B, 1 ms each",
        "small_reads",
        1200,
        frozenset({"small_reads"}),
        also=READS,
        read_ms=1,
        files=DATA,
    ),
    _c(
        "c_random_reads",
        "300 reads of 4 KiB anywhere, 2 ms each",
        "random_reads",
        300,
        READS | frozenset({"random_reads"}),
        also=READS,
        read_ms=2,
        files=DATA,
    ),
    _c("c_writes", "40 writes of 64 KiB, 20 ms each", "writes", 40, WRITES),
    _c("c_writes_slow", "8 writes of 64 KiB, 100 ms each", "writes", 8, WRITES, write_ms=100),
    _c(
        "c_small_writes",
        "1,200 writes of 512 B, 1 ms each",
        "small_writes",
        1200,
        frozenset({"small_writes"}),
        also=WRITES,
        write_ms=1,
    ),
    _c(
        "c_renames",
        "40 files made and renamed, 20 ms each",
        "renames",
        40,
        frozenset({"mostly_metadata"}),
        path="{mount}",
    ),
    _c("c_touches", "40 pages of a mapped file, 20 ms each", "touches", 40, PAGES, files=DATA, cached=True),
    _c(
        "c_touches_slow",
        "8 pages of a mapped file, 100 ms each",
        "touches",
        8,
        PAGES,
        read_ms=100,
        files=DATA,
        cached=True,
    ),
    _c(
        "c_touches_computes",
        "30 pages of 20 ms, then 0.3 s of sums",
        "touches_computes",
        30,
        PAGES,
        files=DATA,
        cached=True,
    ),
    _c("c_sleeps", "sleeps for 0.8 s", "sleeps", 800, ASLEEP),
    _c("c_polls", "looks at a file 40 times, 20 ms apart", "polls", 40, ASLEEP, files=DATA),
    _c("c_waits", "waits 0.8 s for a semaphore", "waits", 800, frozenset({"waiting_for_locks"})),
    _c(
        "c_asks",
        "40 questions to a server, 20 ms each",
        "asks",
        40,
        frozenset({"waiting_for_others"}),
        path="{port}",
    ),
    _c(
        "c_straggles",
        "four processes, of which one reads 40 times, 20 ms each",
        "straggles",
        40,
        READS | frozenset({"imbalance_processes"}),
        also=READS | frozenset({"imbalance_processes"}),
        files=DATA,
    ),
    _c("c_reads_computes", "30 reads of 20 ms, then 0.3 s of sums", "reads_computes", 30, READS, files=DATA),
    _python("python_computes", "0.6 s of a loop", _COMPUTE, COMPUTES),
    _python("python_reads", "40 reads of 64 KiB, 20 ms each", _READ, READS, files=DATA),
    _python(
        "python_touches", "40 pages of a mapped file, 20 ms each", _TOUCH, PAGES, files=DATA, cached=True
    ),
    _python("python_sleeps", "sleeps for 0.8 s", "import time; time.sleep(0.8)", ASLEEP),
    _python(
        "python_joins",
        "waits for a thread that waits for an event",
        "import threading\nthreading.Event().wait(0.8)",
        frozenset({"waiting_for_locks"}),
    ),
    _python(
        "python_imports",
        "imports 40 modules from the mount, 20 ms a read",
        "import sys; sys.path.insert(0, '{mount}'); sys.dont_write_bytecode = True\n"
        "for n in range(40): __import__(f'module{{n}}')",
        LOADING | READS,
        also=LOADING | READS | frozenset({"many_small_files", "mostly_metadata"}),
        files=(("module{}.py", 40, 300),),
    ),
    _python(
        "python_small_files",
        "reads 60 files of 3 kB, 10 ms a read",
        "for n in range(60): open(f'{mount}/small-{{n}}', 'rb', 0).read()",
        frozenset({"many_small_files"}),
        also=READS | ENDS,
        read_ms=10,
        files=_SMALL,
    ),
    _python(
        "python_asks",
        "40 questions to a server, 20 ms each",
        "import socket\ns = socket.create_connection(('127.0.0.1', int('{port}')))\n"
        "for n in range(40): s.send(b'?'); s.recv(1)",
        frozenset({"waiting_for_others"}),
    ),
    _shell(
        "shell_small_files",
        "60 files of 3 kB by cat, 10 ms a read",
        "cat {mount}/small-*",
        frozenset({"many_small_files"}),
        also=READS | ENDS,
        read_ms=10,
        files=_SMALL,
    ),
    _shell("shell_sleeps", "sleeps for 0.8 s in a child", "sleep 0.8; true", ASLEEP),
    _shell(
        "shell_pipes",
        "cat behind a pipe whose writer sleeps",
        "sleep 0.8 | cat",
        ASLEEP | frozenset({"waiting_for_others"}),
        also=ASLEEP | frozenset({"waiting_for_others"}),
    ),
    _shell(
        "shell_copies",
        "a copy of 4 MiB to the mount, 20 ms a write",
        "dd if=/dev/zero of={mount}/out bs=128k count=32 2>/dev/null",
        WRITES,
    ),
    _shell(
        "shell_counts",
        "wc of 4 MiB on the mount, 20 ms a read",
        "head -c 4m {mount}/data | wc -c",
        READS,
        also=frozenset({"waiting_for_others"}),
        files=DATA,
    ),
    _c("c_threads", "two threads of 0.5 s of sums", "threads", 500, COMPUTES),
    _c("c_listens", "waits for a child with 0.6 s of sums", "listens", 600, COMPUTES),
    ProgramCase(
        "c_loads",
        "loads a library of 8 MiB from the mount, 20 ms a read",
        ("env", "LD_LIBRARY_PATH={mount}", "{loads}"),
        LOADING,
        also=LOADING | READS,
        cached=True,
        library=True,
    ),
    _python(
        "python_writes",
        "40 writes of 64 KiB, 20 ms each",
        "f = open('{mount}/out', 'wb', 0)\nfor n in range(40): f.write(bytes(65536))",
        WRITES,
    ),
    _python(
        "python_small_writes",
        "1,200 writes of 100 B, 1 ms each",
        "f = open('{mount}/out', 'wb', 0)\nfor n in range(1200): f.write(bytes(100))",
        frozenset({"small_writes"}),
        also=WRITES,
        write_ms=1,
    ),
    _python(
        "python_renames",
        "renames a file 40 times, 20 ms each",
        "import os\nfor n in range(40): os.rename(f'{mount}/f-{{n}}', f'{mount}/f-{{n + 1}}')",
        frozenset({"mostly_metadata"}),
        files=(("f-{}", 1, 10),),
    ),
    _shell(
        "shell_greps",
        "grep of 4 MiB on the mount, 20 ms a read",
        "grep -a -c 'nowhere in it' {mount}/data; true",
        READS,
        files=_FEW,
    ),
    _shell(
        "shell_tars",
        "tar of 60 files of 3 kB, 10 ms a read",
        "tar cf - {mount}/small-* 2>/dev/null | cat >/dev/null",
        frozenset({"many_small_files"}),
        also=READS | ENDS | frozenset({"waiting_for_others"}),
        read_ms=10,
        files=_SMALL,
    ),
)
