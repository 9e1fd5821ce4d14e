"""What a report says of verification: how much was right, how it was read back, and what was wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from leadline.store.tables import TrialRow
from leadline.verdict.face import OwnCells
from leadline.verdict.sections.section import Section, TextTable
from leadline.workloads.io.wrong import REMEDIES, WRONG

_HEADINGS = ("cell", "as written", "read back", "wrong", "what to do")


def verified_section(own: OwnCells) -> Section | None:
    """A row for each cell that was verified; None where none was."""
    verified = [own.tables[one.id] for one in own.planned if one.job.verify and one.id in own.tables]
    trials = {table.cell: table.trials for table in verified}
    rows = tuple(_row(cell, found) for cell, found in trials.items() if any(map(_verification, found)))
    if not rows:
        return None
    note = "Blocks of 4 KiB, against what the engine knows that it wrote. " + " ".join(
        f"{kind}: {words}." for kind, words in WRONG.items()
    )
    return Section("verification", "Verification", (TextTable("Verification", _HEADINGS, rows, note=note),))


def _verification(trial: TrialRow) -> dict[str, Any] | None:
    found: dict[str, Any] | None = json.loads(trial.summary).get("verification")
    return found


def _row(cell: str, trials: tuple[TrialRow, ...]) -> tuple[str, ...]:
    judged = [found for found in map(_verification, trials) if found is not None]
    counts = Counter({kind: sum(found[kind] for found in judged) for kind in WRONG})
    wrong = {kind: blocks for kind, blocks in counts.items() if blocks}
    right = sum(trial.verified_blocks for trial in trials if _verification(trial) is not None)
    return (
        cell,
        f"{right:,} of {right + counts.total():,} blocks",
        ", ".join(dict.fromkeys(_ways(judged))) or "as the trial read them",
        ", ".join(f"{blocks:,} {kind}" for kind, blocks in wrong.items()) or "nothing",
        "; ".join(f"{kind}: {REMEDIES[kind]}" for kind in wrong),
    )


def _ways(judged: list[dict[str, Any]]) -> Iterator[str]:
    for found in judged:
        yield from (f"through {look['target']} {look['past']}" for look in found["looks"])
