"""What a plan says beside its trials: how works belong together, and where they are not alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline import units
from leadline.study.left_out import LeftOut

if TYPE_CHECKING:
    from leadline.plan.model import PlannedCell


def notes_on_works(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """What is said of jobs together, of works that end early and of searches."""
    for group in dict.fromkeys(cell.group for cell in cells if cell.group):
        own = [cell for cell in cells if cell.group == group]
        how = "at the same time, in a process each" if own[0].order == "together" else "one after the other"
        yield f"{group}: {len(own)} jobs {how}, on files of their own"
    steady = [cell.id for cell in cells if cell.steady]
    if steady:
        yield f"end once they are steady, so the time is the longest: {', '.join(steady)}"
    for cell in cells:
        if cell.search:
            bound = units.exact_duration(cell.search.bound)
            yield (
                f"{cell.id}: {cell.search.trials} probes in each block for the highest rate with"
                f" {cell.search.latency} under {bound}; a probe's rate follows from those before it"
            )


def unlike(work: str, cells: list[PlannedCell]) -> str | None:
    """Direct and buffered I/O are never one figure; where targets force it, it is said."""
    direct = [cell.target for cell in cells if cell.job.direct]
    buffered = [cell.target for cell in cells if not cell.job.direct]
    if not direct or not buffered:
        return None
    return (
        f"{work}: direct on {', '.join(direct)} but buffered on {', '.join(buffered)}, so not the same thing"
    )


def notes_on_left_out(left_out: Sequence[LeftOut]) -> Iterator[str]:
    """What is not run, and why."""
    for one in left_out:
        what = "the whole target" if one.work is None else one.work
        yield f"left out, {one.target}: {what}: {one.reason}"
