"""Reads one Darshan log through PyDarshan, in a process of its own: its library trusts what it reads.

Run as `python -m leadline.tracing.sources.darshan_reader LOG DIRECTORY`. What it found is DIRECTORY/log.json
and an Arrow file for each kind of rows; an error is DIRECTORY/error.txt and exit code 1; a crash is a crash.
"""

from __future__ import annotations

import bz2
import json
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

COUNTED = ("POSIX", "STDIO", "MPI-IO")
TRACED = {"DXT_POSIX": "POSIX", "DXT_MPIIO": "MPI-IO"}
RANKS_MAX = 10_000_000
EXE_MAX_BYTES = 4096
_SEGMENT = [("offset", "<i8"), ("length", "<i8"), ("start_s", "<f8"), ("end_s", "<f8")]

_BEGIN_BYTES = 512
_OLD = re.compile(rb"([12]\.\d{1,2})[a-z0-9.-]{0,8}\0")


def old_version(file: BinaryIO) -> str | None:
    """The version of a log of Darshan 1 or 2: compressed as a whole (gzip or bzip2), its version first."""
    begin = file.read(_BEGIN_BYTES)
    try:
        if begin[:2] == b"\x1f\x8b":
            begin = zlib.decompressobj(wbits=31).decompress(begin, _BEGIN_BYTES)
        elif begin[:3] == b"BZh":
            file.seek(0)
            with bz2.open(file) as plain:
                begin = plain.read(_BEGIN_BYTES)
    except (OSError, EOFError, zlib.error):
        return None  # what else it is the library says
    found = _OLD.match(begin)
    return None if found is None else found[1].decode()


class LogError(Exception):
    """The log cannot be read, or not to its end."""


class OpenLog:
    """An open log. Every return code of the library is looked at, which PyDarshan's own functions do not."""

    def __init__(self, path: str) -> None:
        from darshan.backend import cffi_backend

        self._backend: Any = cffi_backend
        self._ffi: Any = cffi_backend.ffi
        self._library: Any = cffi_backend.libdutil
        self._handle = self._library.darshan_log_open(path.encode())
        if self._handle == self._ffi.NULL:
            raise LogError("it is no log of Darshan, or its header is damaged")
        self.library_version = str(cffi_backend.get_lib_version())

    def job(self) -> dict[str, Any]:
        """Who ran what, and for how long."""
        record = self._ffi.new("struct darshan_job *")
        if self._library.darshan_log_get_job(self._handle, record) < 0:
            raise LogError("its description of the job is damaged")
        job = record[0]
        if not 1 <= job.nprocs <= RANKS_MAX:
            raise LogError(f"it says that {job.nprocs} processes ran")
        runtime = self._ffi.new("double *")
        known = self._library.darshan_log_get_job_runtime(self._handle, job, runtime) >= 0
        whole = not job.start_time_nsec and not job.end_time_nsec  # older versions kept seconds only
        return {
            "job": job.jobid,
            "processes": job.nprocs,
            "started_unix_ns": job.start_time_sec * 10**9 + job.start_time_nsec,
            "ended": bool(job.end_time_sec),
            "whole_seconds": whole,
            "within_a_second": whole and job.start_time_sec == job.end_time_sec,
            "wall_s": float(runtime[0]) if known and job.end_time_sec else None,
            "metadata": self._text(job.metadata),
            "version": self._text(self._ffi.cast("char *", self._handle)),
        }

    def executable(self) -> str:
        """The command line, as far as Darshan keeps it."""
        text = self._ffi.new("char[]", EXE_MAX_BYTES + 1)
        if self._library.darshan_log_get_exe(self._handle, text) < 0:
            raise LogError("its command line is damaged")
        return self._text(text)

    def modules(self) -> dict[str, dict[str, Any]]:
        """The modules that have data, and whether theirs is partial."""
        found, count = self._ffi.new("struct darshan_mod_info **"), self._ffi.new("int *")
        self._library.darshan_log_get_modules(self._handle, found, count)
        modules = {}
        for place in range(count[0]):
            module = found[0][place]
            modules[self._text(module.name)] = {"index": module.idx, "partial": bool(module.partial_flag)}
        self._library.darshan_free(found[0])
        return modules

    def names(self) -> dict[int, str]:
        """Paths by their numbers."""
        found, count = self._ffi.new("struct darshan_name_record **"), self._ffi.new("int *")
        self._library.darshan_log_get_name_records(self._handle, found, count)
        names = {}
        for place in range(count[0]):
            record = found[0][place]
            names[int(record.id)] = self._text(record.name)
            self._library.darshan_free(record.name)
        if count[0]:
            self._library.darshan_free(found[0])
        return names

    def records(self, module: str, index: int) -> Iterator[Any]:
        """Each record of a module, as the library's structure; valid until the next one."""
        kind = self._backend._structdefs[module]
        while True:
            buffer = self._ffi.new("void **")
            found = self._library.darshan_log_get_record(self._handle, index, buffer)
            if found < 0:
                raise LogError(f"its module {module} is damaged")
            if found == 0:
                return
            yield self._ffi.cast(kind, buffer)[0]
            self._library.darshan_free(buffer[0])

    def counters(self, module: str, index: int) -> dict[str, list[Any]]:
        """All counters of a module, in columns, with `id` and `rank`."""
        import numpy as np

        names = self._backend.counter_names(module)
        times = self._backend.fcounter_names(module)
        ids: list[int] = []
        ranks: list[int] = []
        whole: list[Any] = []
        parts: list[Any] = []
        for record in self.records(module, index):
            ids.append(int(record.base_rec.id))
            ranks.append(int(record.base_rec.rank))
            whole.append(np.frombuffer(self._ffi.buffer(record.counters), dtype=np.int64).copy())
            parts.append(np.frombuffer(self._ffi.buffer(record.fcounters), dtype=np.float64).copy())
        columns: dict[str, list[Any]] = {"id": ids, "rank": ranks}
        for place, name in enumerate(names):
            columns[name] = [int(row[place]) for row in whole]
        for place, name in enumerate(times):
            columns[name] = [float(row[place]) for row in parts]
        return columns

    def traces(self, module: str, index: int) -> Iterator[tuple[int, int, str, Any]]:
        """(id, rank, `read` or `write`, segments) of every file and rank that Darshan traced."""
        import numpy as np

        size = self._ffi.sizeof("struct dxt_file_record")
        width = np.dtype(_SEGMENT).itemsize
        for record in self.records(module, index):
            start = self._ffi.cast("char *", record) + size
            counts = (("write", int(record.write_count)), ("read", int(record.read_count)))
            for direction, count in counts:
                buffer = self._ffi.buffer(start, count * width)
                yield (
                    int(record.base_rec.id),
                    int(record.base_rec.rank),
                    direction,
                    np.frombuffer(buffer, dtype=_SEGMENT).copy(),
                )
                start += count * width

    def heat(self, index: int) -> Iterator[dict[str, Any]]:
        """Bytes read and written in each slice of time, by rank."""
        for record in self.records("HEATMAP", index):
            bins = int(record.nbins)
            yield {
                "id": int(record.base_rec.id),
                "rank": int(record.base_rec.rank),
                "bin_s": float(record.bin_width_seconds),
                "read": self._ffi.unpack(record.read_bins, bins),
                "written": self._ffi.unpack(record.write_bins, bins),
            }

    def _text(self, characters: Any) -> str:
        return bytes(self._ffi.string(characters)).decode("utf-8", "backslashreplace")


def collect(path: str, directory: Path) -> None:
    """Write everything that is read of a log into `directory`."""
    import pyarrow as pa
    from pyarrow import feather

    log = OpenLog(path)
    modules = log.modules()
    description = {**log.job(), "executable": log.executable(), "modules": modules}
    description["library"] = log.library_version
    description["names"] = {str(number): name for number, name in log.names().items()}
    for module in COUNTED:
        if module in modules:
            columns = log.counters(module, modules[module]["index"])
            columns["id"] = [str(number) for number in columns["id"]]
            feather.write_feather(pa.table(columns), str(directory / f"{module}.arrow"))
    for traced in TRACED:
        if traced in modules:
            _write_traces(log, traced, modules[traced]["index"], directory)
    if "HEATMAP" in modules:
        description["heat"] = list(log.heat(modules["HEATMAP"]["index"]))
    (directory / "log.json").write_text(json.dumps(description), encoding="utf-8")


def _write_traces(log: OpenLog, module: str, index: int, directory: Path) -> None:
    import numpy as np
    import pyarrow as pa

    schema = pa.schema(
        [
            pa.field("id", pa.string()),
            pa.field("rank", pa.int64()),
            pa.field("direction", pa.string()),
            pa.field("offset", pa.int64()),
            pa.field("length", pa.int64()),
            pa.field("start_s", pa.float64()),
            pa.field("end_s", pa.float64()),
        ]
    )
    with pa.OSFile(str(directory / f"{module}.arrow"), "wb") as sink, pa.ipc.new_file(sink, schema) as file:
        for number, rank, direction, rows in log.traces(module, index):
            if not len(rows):
                continue
            file.write_batch(
                pa.record_batch(
                    [
                        pa.array([str(number)] * len(rows)),
                        pa.array(np.full(len(rows), rank, dtype=np.int64)),
                        pa.array([direction] * len(rows)),
                        *(pa.array(np.ascontiguousarray(rows[name])) for name, _ in _SEGMENT),
                    ],
                    schema=schema,
                )
            )


def main(path: str, directory: str) -> int:
    """The process: 0 when everything was written, 1 when the log said no."""
    try:
        collect(path, Path(directory))
    except Exception as error:  # whatever it is, the parent says it
        words = str(error) if isinstance(error, LogError) else f"{type(error).__name__}: {error}"
        Path(directory, "error.txt").write_text(words, encoding="utf-8")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
