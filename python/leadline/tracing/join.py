"""Joins the traces of a trial's copies into one: process and file numbers count through the whole trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from leadline.tracing.tables import TraceTables

if TYPE_CHECKING:
    import pyarrow as pa


def join_copies(parts: Sequence[TraceTables]) -> TraceTables:
    """One trial's tables from those of its copies, which each count from 0. There is at least one."""
    if len(parts) == 1:
        return parts[0]
    import pyarrow as pa

    processes, latency, files, segments = [], [], [], []
    first_process = first_file = 0
    for part in parts:
        shift = first_process
        processes += [
            replace(
                row,
                process=row.process + shift,
                parent=None if row.parent is None else row.parent + shift,
            )
            for row in part.processes
        ]
        latency += [replace(row, process=row.process + shift) for row in part.latency]
        files.append(_shifted(part.files, {"process": shift, "file": first_file}))
        if part.segments is not None:
            segments.append(_shifted(part.segments, {"process": shift, "file": first_file}))
        first_process += 1 + max((row.process for row in part.processes), default=-1)
        first_file += 1 + _highest(part.files)
    return replace(
        parts[0],
        processes=tuple(processes),
        latency=tuple(latency),
        files=pa.concat_tables(files),
        segments=pa.concat_tables(segments).unify_dictionaries() if segments else None,
        source="; ".join(dict.fromkeys(part.source for part in parts if part.source)),
        warnings=tuple(dict.fromkeys(text for part in parts for text in part.warnings)),
        extra={name: value for part in parts for name, value in part.extra.items()},
    )


def _shifted(table: Any, shifts: Mapping[str, int]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, shift in shifts.items():
        place = table.schema.get_field_index(name)
        column = pc.add(table.column(name), pa.scalar(shift, pa.int32()))
        table = table.set_column(place, table.schema.field(name), column)
    return table


def _highest(files: Any) -> int:
    import pyarrow.compute as pc

    value = pc.max(files["file"]).as_py()
    return -1 if value is None else int(value)
