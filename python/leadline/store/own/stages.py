"""The table `stages`: what each stage of a pipeline took and moved, a Parquet file a trial beside its others.

Only trials of pipelines have one. It is written by the trial's worker, before the trial counts as finished.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.foreign import parse_json, reading
from leadline.store.files import storing, write_table
from leadline.store.parquet import fitted, opened
from leadline.store.tables import schema

if TYPE_CHECKING:
    from leadline.store.reader import Result

STAGES = "stages"


@dataclass(frozen=True)
class StageRow:
    """One stage of one client in one trial. Times in ns count from the trial's start; `place` from 1.

    `state` is complete or error. `read_bytes` and `write_bytes` count all read and write calls; `target_*`
    and the seconds are of files on the target alone, by the trace, and None without one. `passes` is how
    often the stage read its inputs; `passes_by`: whether the trace or the calls tell it.
    `settle_ns` is how long syncing and dropping what it left in the page cache took, after its end.
    `host_busy_share` is of all CPUs of the host, whoever used them; it and `interfaces` were observed for
    `observed_ns`, which is somewhat longer than the stage.
    `interfaces` (name -> received and sent bytes and packets) and `details` (what steps said) are JSON.
    """

    trial: str
    client: int
    place: int
    stage: str
    state: str
    error: str | None
    started_unix_ns: int
    started_ns: int
    ended_ns: int
    settle_ns: int
    input_bytes: int
    output_bytes: int
    read_bytes: int | None
    write_bytes: int | None
    cpu_user_ns: int
    cpu_system_ns: int
    memory_max_bytes: int | None
    target_read_bytes: int | None
    target_written_bytes: int | None
    read_s: float | None
    write_s: float | None
    meta_s: float | None
    passes: float | None
    passes_by: str | None
    enlarges: bool
    interfaces: str
    details: str
    host_busy_share: float | None
    observed_ns: int

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.ended_ns - self.started_ns) / 1e9

    @property
    def cold_bytes(self) -> int:
        """What of its inputs it read for the first time, which no cache of a cold start has.

        Calls on other files count in what calls tell: they say something where they are enough for the whole.
        """
        if self.passes is None or (self.passes_by != "trace" and self.passes < 1):
            return 0
        return round(self.input_bytes * min(self.passes, 1.0))


def write_stages(result: Path, trial: str, rows: Sequence[StageRow]) -> None:
    """Store the stages of one trial."""
    import pyarrow as pa

    names = [field.name for field in fields(StageRow)]
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    table = pa.table(columns, schema=schema(StageRow))  # type: ignore[arg-type]
    with storing(result):
        write_table(result / STAGES, trial, table)


def read_stages(result: Result) -> list[StageRow]:
    """The stages of every finished trial that has some, in order."""
    found: list[StageRow] = []
    for trial in sorted(result.finished):
        file = result.path / STAGES / f"{trial}.parquet"
        if os.path.lexists(file):
            with reading(file):
                found += _stages_of(file)
    return found


def _stages_of(file: Path) -> list[StageRow]:
    with opened(file) as stored:
        table = fitted(stored.read(), schema(StageRow))  # type: ignore[arg-type]
    rows = [StageRow(**row) for row in table.to_pylist()]
    for row in rows:
        if not (isinstance(parse_json(row.interfaces), dict) and isinstance(parse_json(row.details), list)):
            raise ValueError("`interfaces` or `details` is no JSON of ours")
    return rows
