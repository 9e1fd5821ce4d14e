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
        self._narrow = [array("i") for _ in range(3)]  # process, thread, file
        self._calls = array("h")
        self._wide = [array("q") for _ in range(5)]  # offset, length, result, start, duration

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
        self._calls.append(names.setdefault(call, len(names)))
        for values, value in zip(self._narrow, place, strict=True):
            values.append(value)
        offset, length = span
        wide = self._wide
        wide[0].append(ABSENT if offset is None else offset)
        wide[1].append(ABSENT if length is None else length)
        wide[2].append(result)
        wide[3].append(when[0])
        wide[4].append(when[1])
        if len(self._calls) >= _CHUNK_ROWS:
            self._chunks.append(self._batch())
            self._clear()

    def _batch(self) -> Any:
        import numpy as np

        narrow = [np.frombuffer(values, dtype=np.int32) for values in self._narrow]
        wide = [np.frombuffer(values, dtype=np.int64) for values in self._wide]
        return narrow, np.frombuffer(self._calls, dtype=np.int16), wide

    def table(self) -> Any:
        """The segments as an Arrow table of the contract's schema."""
        import pyarrow as pa

        from leadline.store.trace_tables import segments_schema

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
