"""The tables of a result: their columns, units and meaning. Parquet files of one trial each.

Columns are only ever added; a reader meets older files with nulls in what they lack.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pyarrow as pa

TrialState = Literal["complete", "error", "hung", "interrupted"]


@dataclass(frozen=True)
class TrialRow:
    """Table `trials`: one execution of a cell.

    `read_*`, `write_*` and `sync_operations` count the measured interval (after the ramp);
    `total_*` and what observers saw (`wire_*` to `observer_cpu_ns`, as in `observe.model.Delta`)
    count the whole trial, so that they can be held against each other. What could not be observed
    is None and named in `reasons` (column -> why); `sources` says where the rest was read. `job`,
    `factors`, `threads`, `summary`, `reasons`, `sources`, `start_state`, `end_state` are JSON.

    The measured interval begins `ramp_ns` after the trial's start and is `measured_ns` long. Where a steady
    state was asked for it is the steady windows, or the last ones when `steady` is false; `steady_range`
    and `steady_slope` are shares of their mean rate.

    `group` names the composition that the trial is a job of. Jobs that ran together share what observers
    saw: `group_read_bytes` and `group_written_bytes` are what all of them moved, `start_skew_ns` is the
    time from the first start to the last.

    `pgs_not_clean_max` and `pgs_scrubbing_max` are the most placement groups that samples during the
    trial saw so; None where none was taken.
    """

    trial: str
    cell: str
    target: str
    work: str
    block: int
    order: int
    seed: int
    state: TrialState
    error: str | None
    started_unix_ns: int
    ramp_ns: int
    measured_ns: int
    first_done_ns: int
    last_done_ns: int
    read_bytes: int
    read_operations: int
    write_bytes: int
    write_operations: int
    sync_operations: int
    total_read_bytes: int
    total_write_bytes: int
    cpu_user_ns: int
    cpu_system_ns: int
    busy_share_max: float | None
    late_ns_max: int | None
    late_ns_mean: float | None
    unwritten_blocks: int
    verified_blocks: int
    wire_sent_bytes: int | None
    wire_received_bytes: int | None
    device_read_bytes: int | None
    device_written_bytes: int | None
    process_read_bytes: int | None
    process_written_bytes: int | None
    osd_read_bytes: int | None
    osd_written_bytes: int | None
    osd_subop_received_bytes: int | None
    store_read_bytes: int | None
    store_written_bytes: int | None
    cpu_busy_share: float | None
    cpu_steal_share: float | None
    cgroup_throttled: int | None
    client_cpu_ns: int | None
    observer_cpu_ns: int | None
    caches_dropped: bool
    job: str
    factors: str
    threads: str
    summary: str
    reasons: str
    sources: str
    start_state: str
    end_state: str
    group: str | None = None
    start_skew_ns: int | None = None
    group_read_bytes: int | None = None
    group_written_bytes: int | None = None
    steady: bool | None = None
    steady_range: float | None = None
    steady_slope: float | None = None
    own_read_bytes: int | None = None
    own_written_bytes: int | None = None
    interface_sent_bytes: int | None = None
    interface_received_bytes: int | None = None
    dirty_at_start_bytes: int | None = None
    wire_limit_bytes_per_s: int | None = None
    device_read_limit_bytes_per_s: int | None = None
    device_write_limit_bytes_per_s: int | None = None
    samples_due: int | None = None
    samples_missed: int | None = None
    other_cpu_share: float | None = None
    pgs_not_clean_max: int | None = None
    pgs_scrubbing_max: int | None = None
    client_read_bytes: int | None = None
    client_cached_bytes: int | None = None
    client_written_bytes: int | None = None
    client_flushed_bytes: int | None = None


@dataclass(frozen=True)
class LatencyRow:
    """Table `latency`: one histogram. `interval` counts from 0; -1 is the whole measured interval.

    `clock` is `submission`, `completion`, `total` (from the actual start) or `intended` (from the
    intended start, open loop only). `histogram` is an HdrHistogram V2 blob of nanoseconds.
    """

    trial: str
    direction: str
    clock: str
    interval: int
    start_ns: int
    end_ns: int
    measured: bool
    operations: int
    min_ns: int
    mean_ns: float
    max_ns: int
    p50_ns: int
    p99_ns: int
    histogram: bytes


@dataclass(frozen=True)
class SeriesRow:
    """Table `series`: one sample. `t_ns` counts from the trial's start and may be negative."""

    trial: str
    t_ns: int
    source: str
    subject: str
    metric: str
    value: float | None
    unit: str


Row = TrialRow | LatencyRow | SeriesRow

TABLES: dict[str, type[Row]] = {"trials": TrialRow, "latency": LatencyRow, "series": SeriesRow}


def schema(row_type: type[Row]) -> pa.Schema:
    """The Arrow schema of a row type, derived from its annotations so that the two never differ."""
    import pyarrow as pa

    types = {
        "str": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "bytes": pa.binary(),
        "TrialState": pa.string(),
    }
    columns = []
    for field in fields(row_type):
        name = str(field.type)
        base = name.removesuffix(" | None")
        columns.append(pa.field(field.name, types[base], nullable=base != name))
    return pa.schema(columns)


def to_arrow(rows: list[Any], row_type: type[Row]) -> pa.Table:
    """Rows of one type as an Arrow table."""
    import pyarrow as pa

    names = [field.name for field in fields(row_type)]
    return pa.table({name: [getattr(row, name) for row in rows] for name in names}, schema=schema(row_type))
