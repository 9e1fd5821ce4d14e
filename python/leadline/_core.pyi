"""The compiled half: the load engine, trial records and latency histograms. Times are ns, sizes bytes.

Errors: ValueError for a job that is not valid (names the key and the remedy), OSError (errno, file name)
when the system refuses, RuntimeError for a damaged or newer record. The GIL is released; SIGINT and SIGTERM
are noted without running Python, and honoured at once.
"""

from os import PathLike
from typing import Any

__all__ = [
    "Volume",
    "check",
    "engines",
    "histogram_buckets",
    "histogram_merge",
    "histogram_percentiles",
    "histogram_summary",
    "layout",
    "parse_location",
    "read_record",
    "run_trial",
    "schemes",
    "version",
]

def version() -> str:
    """The version of the compiled half, equal to the package's."""

def engines() -> list[dict[str, Any]]:
    """The I/O engines: name, blocking, schemes, available, reason (why not, or None), words."""

def schemes() -> list[dict[str, Any]]:
    """The schemes of URLs: name, engine, example, words, package, missing (why it cannot be used, or None).

    `choices` are its options: name, kind, default, words.
    """

def parse_location(url: str) -> dict[str, Any]:
    """A URL, checked: url, scheme, engine, container, path, options, object_bytes.

    ValueError says what is wrong.
    """

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
    def space(self) -> tuple[int, int]:
        """Bytes in all, and free."""
    def remove_files(self, directory: str, prefix: str, slice_s: float) -> bool:
        """Removes files but the marks; True when time was over before all were gone."""
    def remove_directory(self, directory: str, mark: str) -> None:
        """Removes the mark, then the directory."""

def layout(job_json: str) -> dict[str, Any]:
    """Writes every block of a job's files, syncs, drops them from the page cache.

    Returns bytes_written, files, elapsed_ns. KeyboardInterrupt on SIGINT.
    """

def run_trial(job_json: str, record_path: str | PathLike[str]) -> dict[str, Any]:
    """Runs one trial, writing its record as it goes; returns the summary.

    Failures of the trial's I/O are in the summary (`state` error), and so is a signal (`state` interrupted).
    """

def check(job_json: str) -> dict[str, Any]:
    """Reads and verifies every block of a job's files.

    Returns blocks, mismatches (the first 100: file, offset, reason), mismatches_total, unwritten_blocks and
    generations (good blocks by the generation that wrote them). KeyboardInterrupt on SIGINT.
    """

def read_record(path: str | PathLike[str]) -> dict[str, Any]:
    """A trial record: header, intervals, summary (None when the worker was killed), truncated."""

def histogram_merge(parts: list[bytes]) -> bytes:
    """The exact sum of HdrHistograms (V2, plain or deflated)."""

def histogram_summary(blob: bytes) -> dict[str, float]:
    """count, min, max, mean and stdev; all 0 for an empty histogram."""

def histogram_percentiles(blob: bytes, percentiles: list[float]) -> list[int]:
    """Latencies at percentiles from 0 to 100."""

def histogram_buckets(blob: bytes) -> list[tuple[int, int]]:
    """(highest equivalent latency, count) of every bucket that is not empty."""
