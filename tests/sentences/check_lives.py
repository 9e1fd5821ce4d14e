"""What is said of a trace's gaps: ends that nobody recorded, and files that were mapped into memory."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pyarrow.parquet as pq
from check_traces import USERS, note, processes
from kit import Said, checks, close, number, size

_MAPPING_MIN, _SHARE = 1 << 20, 0.1


@checks("trace_last_seen")
def trace_last_seen(said: Said) -> None:
    found = said.match(r"The end of (?P<count>[\d,]+) process(?:es)? is not known: .*\.")
    rows = [row for row in processes(said) if row["end"] == "last seen"]
    assert number(found["count"]) == len(rows) > 0
    assert all(row["status"] is None and row["ended_ns"] >= row["started_ns"] for row in rows)


@checks("trace_mapped")
def trace_mapped(said: Said) -> None:
    mapped, several = (
        _mapped(said),
        re.match(r"([\d,]+) files were mapped into memory(?:, (.*?) in all)?", said.text),
    )
    assert mapped, said.text
    named = re.search(
        r"(?:^|, first )(/\S+) (?:was mapped into memory )?\((?:(.*?) in )?([\d,]+) mapping", said.text
    )
    assert named, said.text
    first = mapped[named[1]]
    assert number(named[3]) == first["MMAPS"]
    assert bool(named[2]) == ("mapped_bytes" in first)
    if named[2]:
        close(size(named[2]), first["mapped_bytes"])
    if "mapped_bytes" in first:
        assert first["mapped_bytes"] == max(one["mapped_bytes"] for one in mapped.values())
    calls = sum(row["bytes_read"] + row["bytes_written"] for row in processes(said))
    total = sum(one["mapped_bytes"] for one in mapped.values())
    assert "of a size that is not known" in said.text or total >= max(_MAPPING_MIN, _SHARE * calls)
    if several:
        assert 1 < number(several[1]) <= len(mapped)
    written = sum(one["write_mmaps"] for one in mapped.values())
    assert written or "read and written" not in said.text
    faults = re.search(r"([\d,]+) page faults of the whole command", said.text)
    known = [copy.get("faults_major") for copy in note(said)["extra"]["copies"]]
    assert (number(faults[1]) if faults else None) == (None if None in known else sum(known))


def _mapped(said: Said) -> dict[str, Counter[str]]:
    """The user's mapped files by path, over all processes; a sum that is not known is missing."""
    (file,) = (said.result.path / "files").iterdir()
    found: dict[str, Counter[str]] = {}
    rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    for row in rows:
        if row["MMAPS"] and row["path"].startswith(USERS):
            sums = found.setdefault(row["path"], Counter())
            for name in ("MMAPS", "mapped_bytes", "write_mmaps"):
                if row[name] is not None:
                    sums[name] += row[name]
    return found
