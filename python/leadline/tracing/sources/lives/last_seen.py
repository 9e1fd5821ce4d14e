"""Gives processes whose end nobody recorded the one that is sure: the last that records show of them."""

from __future__ import annotations

from dataclasses import replace

from leadline.tracing.tables import LAST_SEEN, TIMES, ProcessRow, TraceTables


def with_last_seen(tables: TraceTables) -> TraceTables:
    """`tables` where no process is without an end but those that still run.

    One whose end nobody recorded has `end` "last seen", and `ended_ns` is when its last call ended, as far as
    they were listed or files say so, or its last child began: it lived at least until then.
    """
    if all(row.ended_ns is not None or row.end == "running" for row in tables.processes):
        return tables
    shown: dict[tuple[int, int], int] = {}
    for key, at_ns in (*_of_files(tables), *_of_segments(tables)):
        shown[key] = max(shown.get(key, 0), at_ns)
    for row in tables.processes:
        if row.parent is not None:
            key = row.copy, row.parent
            shown[key] = max(shown.get(key, 0), row.started_ns)
    rows = (_ended(row, shown.get((row.copy, row.process), 0)) for row in tables.processes)
    return replace(tables, processes=tuple(rows))


def _ended(row: ProcessRow, shown_ns: int) -> ProcessRow:
    if row.ended_ns is not None or row.end == "running":
        return row
    end = LAST_SEEN if row.end == "unknown" else row.end
    return replace(row, ended_ns=max(row.started_ns, shown_ns), end=end)


def _of_files(tables: TraceTables) -> list[tuple[tuple[int, int], int]]:
    names = [name for name in TIMES if name.endswith("_END_TIMESTAMP")]
    sums = tables.files.group_by(["copy", "process"]).aggregate([(name, "max") for name in names])
    found = []
    for row in sums.to_pylist():
        known = [row[f"{name}_max"] for name in names if row[f"{name}_max"] is not None]
        if known:
            found.append(((row["copy"], row["process"]), int(max(known) * 1e9)))
    return found


def _of_segments(tables: TraceTables) -> list[tuple[tuple[int, int], int]]:
    import pyarrow.compute as pc

    if tables.segments is None or not tables.segments.num_rows:
        return []
    ends = pc.add(tables.segments["start_ns"], tables.segments["duration_ns"])
    keyed = tables.segments.select(["copy", "process"]).append_column("end", ends)
    rows = keyed.group_by(["copy", "process"]).aggregate([("end", "max")]).to_pylist()
    return [((row["copy"], row["process"]), int(row["end_max"])) for row in rows]
