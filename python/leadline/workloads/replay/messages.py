"""What of a trace was replayed and what was not, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leadline.units import format_size
from leadline.verdict.interface import KindAnswer
from leadline.verdict.model import Statement


def replay_statements(manifest: Mapping[str, Any]) -> Iterator[Statement]:
    """One sentence for a replay, with what was left out as its evidence; nothing for other results."""
    found = manifest.get("replay")
    if not isinstance(found, dict):
        return
    coverage = found["coverage"]
    pace = (
        "each call as long after the one before as when it was traced"
        if found["pace"] == "recorded"
        else "as fast as possible"
    )
    threads = f"{found['threads']} thread{'' if found['threads'] == 1 else 's'}"
    left = " Not replayed: see below." if coverage["skipped"] else ""
    yield Statement(
        "finding",
        f"{_repeated(found)}, were repeated by {threads}, {pace}.{left}",
        tuple(skipped_words(item) for item in coverage["skipped"]),
        says="trace_replayed",
    )


def replay_answer(manifest: Mapping[str, Any]) -> KindAnswer:
    """Which time is given, and how much of the trace it is of."""
    found = manifest.get("replay")
    if not isinstance(found, dict):
        return KindAnswer()
    time = "the run time, from the first call to the end of the last (run_time)"
    if found.get("pace") == "recorded":
        time = "the time in calls, summed over threads and without the recorded pauses (io_time)"
    return KindAnswer(f"The time is {time}. Repeated: {_repeated(found)}.", adds=True)


def _repeated(found: Mapping[str, Any]) -> str:
    """`1,234 of 1,300 calls of tar, 318 MiB or 33.3% of the bytes`."""
    coverage, moved = found["coverage"], ""
    if coverage["bytes"]:
        share = coverage["bytes_replayed"] / coverage["bytes"]
        moved = f", {format_size(coverage['bytes_replayed'])} or {share:.1%} of the bytes"
    return f"{coverage['calls_replayed']:,} of {coverage['calls']:,} calls of {found['title']}{moved}"


def skipped_words(item: Mapping[str, Any]) -> str:
    """One line of what was left out."""
    moved = f", {format_size(item['bytes'])}" if item["bytes"] else ""
    return f"{item['calls']:,} x {item['call']}{moved}: {item['reason']}"
