"""The compiled half: the load engine, trial records and latency histograms. Times are ns, sizes bytes.

Errors: ValueError for a job that is not valid (names the key and the remedy), OSError (errno, file name)
when the system refuses, RuntimeError for a damaged or newer record. The GIL is released; SIGINT and SIGTERM
are noted without running Python, and honoured at once.
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any, final

__all__ = [
    "BpfSession",
    "Meeting",
    "Volume",
    "bpf_calls",
    "bpf_unavailable",
    "check",
    "check_job",
    "check_script",
    "counter_ticks_per_second",
    "engines",
    "histogram_buckets",
    "histogram_merge",
    "histogram_of",
    "histogram_of_counts",
    "histogram_percentiles",
    "histogram_summary",
    "job_formats",
    "layout",
    "log_gamma",
    "open_beneath",
    "parse_location",
    "read_record",
    "read_trace_logs",
    "run_trial",
    "schemes",
    "student_cdf",
    "student_quantile",
    "traced_calls",
    "traced_counters",
    "transfer_memory",
    "trigamma",
    "version",
    "why_not_ours",
    "without_password",
]

def version() -> str:
    """The version of the compiled half, equal to the package's."""

def engines() -> list[dict[str, Any]]:
    """The I/O engines: name, blocking, schemes, available, reason (why not, or None), words."""

def schemes() -> list[dict[str, Any]]:
    """The table of schemes, the same on every host.

    name, example, words, package, storage (none, mount, server or cluster), keeps, syncs, whole_objects,
    reaches, third_party (None, or copy, size, package, needs), url (whether a library reaches what its URLs
    name); ack_means and ack_means_direct (where a write
    is once it is acknowledged; of direct I/O, or None where that makes no difference). `choices` are its
    options: name, kind, default, words; `operations` are those of metadata that it has; `engines` serve it:
    name, words, blocking, moves_data, direct, submission_thread, memory (what
    `transfer_memory` goes by).
    """

def without_password(text: str) -> str:
    """A text with the passwords of the URLs in it left out; the same text where there is none."""

def parse_location(url: str) -> dict[str, Any]:
    """A URL, checked: url, scheme, engine, container, path, server, options, object_bytes.

    `words` say what it leads to: texts, sizes in bytes, and None where the pool belongs. ValueError says what
    is wrong.
    """

@final
class Meeting:
    """Where one trial waits, all that it needs open, for the instant of its start: shared by two threads."""

    def __new__(cls) -> Meeting: ...
    def come(self) -> None:
        """Of a trial in Python: says that all is open, and sleeps until the start.

        KeyboardInterrupt on SIGINT, and where it is called off.
        """
    def wait_until_open(self) -> bool:
        """False where the trial ended before."""
    def tell(self, start_ns: int | None) -> None:
        """When it starts (CLOCK_MONOTONIC), once; None calls it off."""
    def end(self) -> None:
        """The trial is over: nobody waits for it any more."""

@final
class Volume:
    """Storage behind a URL, connected; directories are its own and begin with `/`.

    Errors are OSError (errno, words, subject). Calls wait: they belong into a process that may be killed.
    """

    def __new__(cls, url: str) -> Volume: ...
    def make_directory(self, path: str) -> None:
        """FileExistsError where it is there."""
    def put(self, path: str, data: bytes) -> None:
        """Writes a small file whole."""
    def get(self, path: str, limit: int) -> bytes | None:
        """A small file, its first `limit` bytes; None where there is none."""
    def names_in(self, directory: str, limit: int) -> list[str]:
        """Names in a directory, at most about `limit`; FileNotFoundError where it is not there."""
    def space(self) -> tuple[int, int]:
        """Bytes in all, and free."""
    def pool(self) -> str | None:
        """The pool behind it, of a scheme whose URLs do not name one."""
    def remove_files(self, directory: str, prefix: str, slice_s: float) -> bool:
        """Removes files but the marks; True when time was over before all were gone."""
    def rename(self, directory: str, name: str, new: str) -> None:
        """Within a directory."""
    def unlink(self, directory: str, name: str) -> None:
        """Removes a file."""
    def remove_directory(self, directory: str, mark: str) -> None:
        """Removes the mark, then the directory."""

def open_beneath(directory: int, name: str | PathLike[str], flags: int, mode: int = 0) -> int:
    """A descriptor of what lies below the directory of a descriptor.

    OSError: EXDEV where the name leads out of it or onto another mount, ELOOP where it leads through a link.
    """

def why_not_ours(directory: int) -> str | None:
    """Why another user may change what is in the directory of a descriptor; None where it is ours alone.

    Where storage shows other owners than files were made with, a file made in it and removed tells.
    """

def layout(job_json: str) -> dict[str, Any]:
    """Writes every block of a job's files, syncs, drops them from the page cache.

    Returns bytes_written, files, elapsed_ns. KeyboardInterrupt on SIGINT.
    """

def run_trial(
    job_json: str, record_path: str | PathLike[str], meeting: Meeting | None = None
) -> dict[str, Any]:
    """Runs one trial, writing its record as it goes; returns the summary.

    It starts when `meeting` tells, with all files open by then (of metadata and replays: with none).

    Failures of the trial's I/O are in the summary (`state` error), and so is a signal (`state` interrupted).
    A job that verifies goes by its ledger, a file that `layout` makes and each trial takes further;
    wrong_blocks are what its own reads found. ValueError where nothing would be checked.
    A transfer writes its log of acknowledgements beside: crates/engine/src/transfer/acks.rs has its layout.
    """

def job_formats() -> list[str]:
    """The formats of jobs that the engine takes: data, metadata, replay, transfer."""

def transfer_memory(engine: str, writers: int, readers: int, buffer: int, in_flight: int) -> int:
    """Bytes of memory that a transfer takes at most: buffers, what the engine's library copies, the process.

    `writers` and `readers` are streams, each with `in_flight` requests of `buffer` bytes. ValueError for an
    engine that there is not.
    """

def check_script(path: str | PathLike[str]) -> tuple[int, int, int]:
    """Reads a replay's script: its threads, files and calls. ValueError where it is damaged; OSError."""

def check_job(job_json: str) -> None:
    """Refuses what `run_trial` would refuse, by the same rules, and touches nothing.

    ValueError: the key, a colon, what is wrong, and after a semicolon what to do.
    """

def check(job_json: str) -> dict[str, Any]:
    """Reads every block of a job's files past this host's caches, and holds it against the job's ledger.

    Without a ledger, against what `layout` of this very job leaves. Counts are blocks of 4 KiB: blocks,
    good_blocks, unwritten_blocks; wrong_blocks by kind (lost, torn, misplaced, foreign, zeroed, flipped),
    without what an earlier look has counted; stale_blocks (old at first, right within seconds);
    recovered_blocks (right now, by what the trial took them for). Besides mismatches (the first 100: file,
    offset, kind, reason), mismatches_total, past (how caches were passed by) and elapsed_ns.
    KeyboardInterrupt on SIGINT.
    """

def read_record(path: str | PathLike[str]) -> dict[str, Any]:
    """A trial record: header, intervals, summary (None when the worker was killed), truncated."""

def histogram_merge(parts: list[bytes]) -> bytes:
    """The exact sum of HdrHistograms (V2, plain or deflated)."""

def histogram_of(values_ns: Sequence[int]) -> bytes:
    """A histogram of latencies that were measured elsewhere; longer ones than an hour count as an hour."""

def histogram_of_counts(counts: Sequence[tuple[int, int]]) -> bytes:
    """A histogram of latencies that another program counted: (ns, how often), ns above an hour as an hour."""

def histogram_summary(blob: bytes) -> dict[str, float]:
    """count, min, max, mean and stdev; all 0 for an empty histogram."""

def histogram_percentiles(blob: bytes, percentiles: list[float]) -> list[int]:
    """Latencies at percentiles from 0 to 100."""

def histogram_buckets(blob: bytes) -> list[tuple[int, int]]:
    """(highest equivalent latency, count) of every bucket that is not empty."""

def student_cdf(degrees: bytes, t: bytes) -> bytes:
    """P(T <= t) of Student's t, for each pair of doubles."""

def student_quantile(degrees: bytes, p: bytes) -> bytes:
    """The t of which P(T <= t) is p, for each pair of doubles."""

def log_gamma(x: bytes) -> bytes:
    """The logarithm of the gamma function of each double, all above 0."""

def trigamma(x: bytes) -> bytes:
    """Its second derivative at each double, all above 0."""

def bpf_calls() -> list[str]:
    """The system calls that the tracer in the kernel counts, by name."""

def bpf_unavailable(kernel_types: str | PathLike[str] | None = None) -> tuple[str, str] | None:
    """Why tracing in the kernel is impossible here and what to do, or None. Loads nothing."""

@final
class BpfSession:
    """The tracer in the kernel, attached until `finish` or `close`. RuntimeError where it cannot be used."""

    def __new__(
        cls,
        segments_bytes: int | None,
        memory_bytes: int,
        kernel_types: str | PathLike[str] | None = None,
    ) -> BpfSession: ...
    def follow(self, pid: int, copy: int) -> None:
        """Follow a process that waits before its exec, and all its descendants."""

    def attach(self, pid: int) -> bool:
        """Follow a process that runs already, and all that it starts; False where it has ended."""

    def finish(self, started_monotonic_ns: int) -> dict[str, Any]:
        """Detach. Returns images (dicts), files and segments (columns as bytes of the machine's integers and
        floats), lost (kind -> count) and rings (whether io_uring could be followed)."""

    def close(self) -> None:
        """Detach and forget what was counted. Does nothing after `finish`."""

def counter_ticks_per_second() -> int:
    """Ticks per second of a steady time-stamp counter, 0 where there is none. Takes 10 ms."""

def traced_counters() -> tuple[list[str], list[str]]:
    """What tracers count of a file, and its times: the names of their columns."""

def traced_calls() -> list[str]:
    """The names of all functions that the tracer follows."""

def read_trace_logs(paths: list[str], started_unix_ns: int) -> dict[str, Any]:
    """All logs of one trial as columns of little-endian bytes.

    processes (a dict each; `unseen` are bytes read and written in the kernel's count alone, None where it
    was not asked), files (rows, process, file, module, paths by file, counters and times by name),
    segments (rows, columns), unreadable (path, reason). Null is -2**63 among integers, NaN among times.
    """
