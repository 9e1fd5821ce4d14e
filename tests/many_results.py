"""Many small real results for tests and benchmarks: one result is copied with its own id, day and rates."""

from __future__ import annotations

import json
import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def copy_results(source: Path, directory: Path, count: int, shift_at: int | None = None) -> None:
    """`count` copies, a day apart; from `shift_at` on every trial takes a quarter longer. Seeded."""
    chance = random.Random(1)  # noqa: S311 - data of a test
    manifest = json.loads((source / "manifest.json").read_text())
    tables = {file.name: pq.read_table(file) for file in sorted((source / "trials").iterdir())}
    for number in range(count):
        path = directory / f"r{number:04}"
        path.mkdir()
        shutil.copy(source / "events.jsonl", path)
        for kind in ("series", "latency"):  # links save the space of a thousand copies
            (path / kind).mkdir()
            for file in (source / kind).iterdir():
                (path / kind / file.name).hardlink_to(file)
        (path / "trials").mkdir()
        created = (FIRST_DAY + timedelta(days=number)).isoformat(timespec="seconds")
        changed = {**manifest, "id": f"{number:08x}", "created": created}
        (path / "manifest.json").write_text(json.dumps(changed))
        factor = chance.lognormvariate(0, 0.03) * (1.25 if shift_at is not None and number >= shift_at else 1)
        for name, table in tables.items():
            place = table.schema.get_field_index("measured_ns")
            longer = [int(value * factor) for value in table["measured_ns"].to_pylist()]
            column = pa.array(longer, pa.int64())
            pq.write_table(table.set_column(place, table.schema.field(place), column), path / "trials" / name)
