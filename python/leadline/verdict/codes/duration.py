"""Whether there are blocks enough, and each trial took long enough, for what is said of them."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import Code


def _few_blocks(case: Case) -> Iterator[Code]:
    kind = catalogue()["few_blocks"]
    if case.cell.swept is not None:
        return  # its neighbours tell how far it scatters
    count = len({trial.block for trial in case.good})
    if 0 < count < kind.thresholds["blocks"]:
        yield kind.fire(f"{count} {'block was' if count == 1 else 'blocks were'} completed")


def _too_short(case: Case) -> Iterator[Code]:
    kind = catalogue()["too_short"]
    found = case.work.too_short(case, kind.thresholds) if case.good else None
    if found is not None:
        evidence, invalid = found
        yield kind.fire(evidence, worse=invalid)


RULES: tuple[Rule, ...] = (_few_blocks, _too_short)
