"""Segments in columns while they are collected: about 50 bytes each, no object per call."""

from __future__ import annotations

from array import array
from typing import Any

ABSENT = -(1 << 63)
_CHUNK_ROWS = 200_000


class SegmentColumns:
    """Appends calls; `table` gives them in the order of their start."""

    def __init__(self, copy: int = 0) -> None:
        self._copy = copy
        self._names: dict[str, int] = {}
        self._chunks: list[Any] = []
        self._clear()

    def _clear(self) -> None:
        self._narrow = array("i")  # process, thread, file; and again
        self._calls = array("h")
        self._wide = array("q")  # offset, length, result, start, duration; and again

    def append(
        self,
        place: tuple[int, int, int],
        call: str,
        span: tuple[int | None, int | None],
        result: int,
        when: tuple[int, int],
    ) -> None:
        """One call: (process, thread, file or -1), its name, (offset, length), result, (start, duration)."""
        names = self._names
        offset, length = span
        self._calls.append(names.setdefault(call, len(names)))
        self._narrow.extend(place)
        self._wide.extend(
            (ABSENT if offset is None else offset, ABSENT if length is None else length, result, *when)
        )
        if len(self._calls) >= _CHUNK_ROWS:
            self._chunks.append(self._batch())
            self._clear()

    def _batch(self) -> Any:
        import numpy as np

        narrow = np.frombuffer(self._narrow, dtype=np.int32).reshape(-1, 3).T.copy()
        wide = np.frombuffer(self._wide, dtype=np.int64).reshape(-1, 5).T.copy()
        return narrow, np.frombuffer(self._calls, dtype=np.int16), wide

    def table(self) -> Any:
        """The segments as an Arrow table of the contract's schema."""
        import pyarrow as pa

        from leadline.tracing.tables import segments_schema

        if len(self._calls):
            self._chunks.append(self._batch())
            self._clear()
        schema = segments_schema()
        batches = [self._arrow(chunk, schema) for chunk in self._chunks]
        self._chunks = []
        return pa.Table.from_batches(batches, schema=schema).sort_by("start_ns")

    def _arrow(self, chunk: Any, schema: Any) -> Any:
        import numpy as np
        import pyarrow as pa

        (process, thread, file), calls, (offset, length, result, start, duration) = chunk
        names = pa.array(list(self._names), type=pa.string())
        columns = [
            pa.array(np.full(len(calls), self._copy, dtype=np.int32)),
            pa.array(process),
            pa.array(thread),
            pa.array(file, mask=file < 0),
            pa.DictionaryArray.from_arrays(pa.array(calls), names),
            pa.array(offset, mask=offset == ABSENT),
            pa.array(length, mask=length == ABSENT),
            pa.array(result),
            pa.array(start),
            pa.array(duration),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)
