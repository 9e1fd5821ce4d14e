"""The tables of a result: their columns, units and meaning. Parquet files of one trial each.

Columns are only ever added; a reader meets older files with nulls in what they lack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from leadline.counters.catalogue import trial_figures
from leadline.counters.observed import ObservedFigures
from leadline.in_memory import arrow_column

if TYPE_CHECKING:
    import pyarrow as pa

TrialState = Literal["complete", "error", "hung", "interrupted"]


@dataclass(frozen=True)
class TrialRow(ObservedFigures):
    """Table `trials`: one execution of a cell, and what observers saw of it (`counters/counters.toml`).

    `read_*`, `write_*` and `sync_operations` count the measured interval (after the ramp);
    `total_*` and what observers saw count the whole trial, so that they can be held against each other.
    What could not be observed is None and named in `reasons` (column -> why); `sources` says where the rest
    was read. `job`, `factors`, `threads`, `summary`, `reasons`, `sources`, `start_state` and `end_state` are
    JSON.

    The measured interval begins `ramp_ns` after the trial's start and is `measured_ns` long. Where a steady
    state was asked for it is the steady windows, or the last ones when `steady` is false; `steady_range`
    and `steady_slope` are shares of their mean rate.

    `group` names the composition that the trial is a job of. Jobs that ran together share what observers
    saw: `group_read_bytes` and `group_written_bytes` are what all of them moved, `start_skew_ns` is the
    time from the first start to the last.

    `faults` is JSON: what `leadline lab inject` had in force from the start to the end of the trial, or in a
    part of that (`leadline.faults.TrialFault`); None where no lab was looked at. `under_fault` is true where
    that was asked for.

    Of a trial on many hosts this is the sum of them (what each did: `store/by_host.py`): `hosts` is how many,
    `start_skew_ns` the time from the first one's start to the last one's, `done_skew_ns` that of their ends,
    `clock_error_ns` how far off a corrected clock may be at most, `attempt` which try it is.

    `states` is JSON, where settings are proved: the `state` that the trial was to be measured in, and what
    was in force `before` and `after` it, each by setting and place: `wanted` and `found`, and `reason` where
    nothing could be read. None where no settings differ.

    `stopped_ns` is how long signals had the trial's worker stopped. `mounts` is JSON: the target's mount
    `before` and `after` the trial, as the mount table had it; None for what has no mount.
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
    faults: str | None = None
    under_fault: bool | None = None
    hosts: int | None = None
    done_skew_ns: int | None = None
    clock_error_ns: int | None = None
    attempt: str | None = None
    states: str | None = None
    stopped_ns: int | None = None
    mounts: str | None = None


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
_AFTER_FIRST_FIGURES = "caches_dropped"


def columns(row_type: type[Any]) -> tuple[Field[Any], ...]:
    """The columns of a table. What observers saw of a trial stands where the first results have it."""
    found = {field.name: field for field in fields(row_type)}
    if row_type is not TrialRow:
        return tuple(found.values())
    own = [name for name in found if name not in ObservedFigures.__dataclass_fields__]
    first = [figure.name for figure in trial_figures() if figure.since == 1]
    later = [figure.name for figure in trial_figures() if figure.since > 1]
    place = own.index(_AFTER_FIRST_FIGURES)
    return tuple(found[name] for name in (*own[:place], *first, *own[place:], *later))


def schema(row_type: type[Any]) -> pa.Schema:
    """The Arrow schema of a row type, derived from its annotations so that the two never differ."""
    known: Any = row_type  # mypy takes a dataclass for what cannot be hashed
    return _schema_of(known)


@cache
def _schema_of(row_type: Any) -> pa.Schema:
    import pyarrow as pa

    types = {
        "str": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "bytes": pa.binary(),
        "TrialState": pa.string(),
    }
    found = []
    for field in columns(row_type):
        name = str(field.type)
        base = name.removesuffix(" | None")
        found.append(pa.field(field.name, types[base], nullable=base != name))
    return pa.schema(found)


def to_arrow(rows: Sequence[Any], row_type: type[Any]) -> pa.Table:
    """Rows of one type as an Arrow table."""
    import pyarrow as pa

    wanted = schema(row_type)
    found = [arrow_column([getattr(row, field.name) for row in rows], field.type) for field in wanted]
    return pa.table(found, schema=wanted)
