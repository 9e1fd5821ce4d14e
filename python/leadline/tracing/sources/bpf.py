"""The tracer in the kernel: for what no library follows, as static programs, Go, raw calls and io_uring.

Knows the compiled loader and the tables of a trace. Nothing stays attached once this process is gone.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from leadline.errors import UsageError
from leadline.observe.reading import offset_ns
from leadline.tracing.sources.lives import kernel_start, with_last_seen
from leadline.tracing.tables import (
    COUNTERS,
    OWN_COUNTERS,
    TIMES,
    ProcessRow,
    TraceLatencyRow,
    TraceTables,
    files_schema,
    seconds_json,
    segments_schema,
)

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

SOURCE = "leadline's tracer in the kernel (BPF)"

# What the kernel's side cannot know: it never sees fileno().
UNKNOWN_COUNTERS = frozenset({"FILENOS"})

_LOST_WORDS = {
    "files": "uses of files that found no room: their calls and bytes are in the processes' sums only",
    "names": "files whose path could not be read",
    "events": "starts or ends of processes",
    "threads": "threads whose counts found no room",
    "tasks": "threads or processes that found no room and were not followed",
    "segments": "calls that found no room in the list of calls",
    "requests": "asynchronous requests that found no room",
}


def unavailable(kernel_types: Path | None = None) -> str | None:
    """Why the kernel's side cannot be used here, in words with what to do; None where it can."""
    from leadline import _core

    why = _core.bpf_unavailable(kernel_types)
    return None if why is None else f"{why[0]}: {why[1]}"


class Session:
    """The attached tracer; a context manager. Raises UsageError where it cannot be used."""

    def __init__(
        self, *, segments_bytes: int | None, memory_bytes: int, kernel_types: Path | None = None
    ) -> None:
        self._segments_bytes = segments_bytes
        self._memory_bytes = memory_bytes
        self._kernel_types = kernel_types
        self._core: Any = None

    def __enter__(self) -> Session:
        from leadline import _core

        try:
            self._core = _core.BpfSession(self._segments_bytes, self._memory_bytes, self._kernel_types)
        except RuntimeError as error:
            raise _failed(error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._core is not None:
            self._core.close()

    def follow(self, pid: int, *, copy: int = 0) -> None:
        """Follow a process that waits before its exec, and all its descendants."""
        try:
            self._core.follow(pid, copy)
        except RuntimeError as error:
            raise _failed(error) from None

    def attach(self, pid: int) -> bool:
        """Follow a process that runs already, and all that it starts; False where it has ended."""
        try:
            return bool(self._core.attach(pid))
        except RuntimeError as error:
            raise _failed(error) from None

    def finish(self, *, started_unix_ns: int) -> TraceTables:
        """Detach, and give what was counted since, as tables. Times count from `started_unix_ns`."""
        try:
            found = self._core.finish(max(started_unix_ns - offset_ns(), 0))
        except RuntimeError as error:
            raise _failed(error) from None
        return tables(found, with_segments=self._segments_bytes is not None)


def _failed(error: RuntimeError) -> UsageError:
    message, remedy = (*error.args, "")[:2]
    return UsageError(str(message), str(remedy))


def tables(found: dict[str, Any], *, with_segments: bool) -> TraceTables:
    """What the compiled half counted, as the tables of a trace."""
    images: list[dict[str, Any]] = found["images"]
    lost = dict(found["lost"])
    rings = bool(found["rings"])
    processes = tuple(
        _process(image, lost if place == 0 else {}, rings=rings) for place, image in enumerate(images)
    )
    latency = tuple(
        TraceLatencyRow(image["copy"], image["process"], kind, operations, histogram)
        for image in images
        for kind, (operations, histogram) in image["latencies"].items()
    )
    counted = TraceTables(
        mode="bpf",
        processes=processes,
        files=_files(found["files"]),
        latency=latency,
        segments=_segments(found["segments"]) if with_segments else None,
        source=SOURCE,
        warnings=_warnings(images, lost, rings=rings),
    )
    return with_last_seen(counted)


def _warnings(images: list[dict[str, Any]], lost: dict[str, int], *, rings: bool) -> tuple[str, ...]:
    warnings = [f"{count:,} {_LOST_WORDS[kind]}" for kind, count in lost.items()]
    if not rings and any(image["ring_used"] for image in images):
        warnings.append("io_uring was used, and this kernel has no tracepoints that show its requests")
    return tuple(warnings)


def _process(image: dict[str, Any], lost: dict[str, int], *, rings: bool) -> ProcessRow:
    unseen_read, unseen_written = image.get("unseen") or (None, None)
    unseen = image["ring_used"] and not rings
    if uncollected := image.get("uncollected"):  # requests of libaio
        lost = {**lost, "calls": uncollected}
    seconds = dict.fromkeys(image["seconds"]) if image["foreign"] else image["seconds"]
    return ProcessRow(
        copy=image["copy"],
        process=image["process"],
        parent=image["parent"],
        pid=image["pid"],
        executable=image["executable"],
        command=json.dumps(image["arguments"], ensure_ascii=False),
        mode="bpf",
        started_ns=image["started_ns"],
        ended_ns=image["ended_ns"],
        end=_end(image),
        status=image["status"],
        threads=image["threads"],
        bytes_read=image["bytes_read"],
        bytes_written=image["bytes_written"],
        calls=json.dumps(image["calls"]),
        seconds=seconds_json(seconds, unseen=unseen),
        lost=json.dumps(lost),
        notes=json.dumps(_notes(image)),
        cpu_user_ns=image["cpu_user_ns"],
        cpu_system_ns=image["cpu_system_ns"],
        unseen_read=unseen_read,
        unseen_written=unseen_written,
    )


def _end(image: dict[str, Any]) -> str:
    """How it ended. What is still running as far as events go is gone where its last event was dropped."""
    gone = image["end"] == "running" and kernel_start(image["pid"]) is None
    return "unknown" if gone else str(image["end"])


def _notes(image: dict[str, Any]) -> list[str]:
    marks = (
        ("ring_used", "io_uring"),
        ("mapped", "mmap"),
        ("foreign", "32-bit program: its calls were not counted"),
        ("asynchronous_used", "asynchronous I/O"),
    )
    notes = [words for mark, words in marks if image[mark]]
    if image["faults"]:
        notes.append(f"{image['faults']} page faults that had to read")
    return notes


def _numbers(data: bytes, kind: str) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.frombuffer(data, dtype=kind)


def _nullable(data: bytes, kind: str, missing: float) -> pa.Array:
    """Values of which one stands for none."""
    import numpy as np
    import pyarrow as pa

    values = _numbers(data, kind)
    return pa.array(values, mask=np.isnan(values) if np.isnan(missing) else values == missing)


def _files(columns: dict[str, Any]) -> pa.Table:
    import pyarrow as pa

    schema = files_schema()
    count = len(columns["path"])
    arrays: dict[str, Any] = {name: _numbers(columns[name], "i4") for name in ("copy", "process", "file")}
    arrays["module"] = pa.array(["POSIX"] * count, pa.string())
    arrays["path"] = pa.array(columns["path"], pa.string())
    for name in (*COUNTERS, *OWN_COUNTERS):
        known = name in columns and name not in UNKNOWN_COUNTERS
        arrays[name] = _numbers(columns[name], "i8") if known else pa.nulls(count, pa.int64())
    for name in TIMES:
        arrays[name] = _nullable(columns[name], "f8", float("nan"))
    return pa.table({field.name: arrays[field.name] for field in schema}, schema=schema)


def _segments(columns: dict[str, Any]) -> pa.Table:
    import pyarrow as pa

    schema = segments_schema()
    arrays: dict[str, Any] = {name: _numbers(columns[name], "i4") for name in ("copy", "process", "thread")}
    arrays["file"] = _nullable(columns["file"], "i4", -1)
    arrays["call"] = pa.DictionaryArray.from_arrays(_numbers(columns["call"], "i2"), columns["names"])
    for name in ("offset", "length"):
        arrays[name] = _nullable(columns[name], "i8", -1)
    for name in ("result", "start_ns", "duration_ns"):
        arrays[name] = _numbers(columns[name], "i8")
    return pa.table({field.name: arrays[field.name] for field in schema}, schema=schema)
