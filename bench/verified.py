"""What verification costs a trial that writes, in CPU: one trial with and without it, reading back apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cost import HEAD, MIB, Places
from ratios import cpu_per_operation_ns
from sides import Side, lay_out, leadline
from tables import Goal, Row, commands, measured

_BYTES = 256 * MIB


def verified(places: Places) -> list[str]:
    """Small and large writes, on memory and on the disk."""
    rows = [
        _writes(places, places.memory, "randwrite 4 KiB, tmpfs", rw="randwrite", bs=4096),
        _writes(places, places.memory, "write 1 MiB, tmpfs", rw="write", bs=MIB),
        _writes(
            places,
            places.disk,
            "write 1 MiB, O_DIRECT, iodepth 4",
            **{"rw": "write", "bs": MIB, "iodepth": 4, "engine": "io_uring", "direct": True},
        ),
    ]
    lines = ["## Verified writes", "", *[line.format(unit="ns of CPU per write") for line in HEAD]]
    for row in rows:
        lines += measured(row)[0]
    note = "Reading back, after the trial, is apart: it costs what reading all that was written costs."
    return [*lines, "", note, "", "Commands:", "", *[f"    {one}" for one in commands(rows)], ""]


def _writes(places: Places, parent: Path, what: str, **job: object) -> Row:
    shape = {**job, "size": _BYTES, "overwrite": True}
    sides = [_side(places, parent, shape, name) for name in ("verified", "unverified")]
    goal = Goal("verified / unverified", 0, 1, 1.15)
    return Row(what, sides, cpu_per_operation_ns, [goal], places.rounds(15))


def _side(places: Places, parent: Path, shape: dict[str, object], name: str) -> Side:
    directory = parent / f"{name}-{shape['rw']}-{shape['bs']}"
    directory.mkdir()
    known = {"verify": True, "ledger": str(directory / "ledger")} if name == "verified" else {}
    lay_out(directory, **shape, **known)
    return replace(leadline(places.cpu, directory, **shape, **known), name=name)
