"""The data that was written: whether storage could have made it smaller."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import Code


def _compressible(case: Case) -> Iterator[Code]:
    words = case.work.compressible(case.cell.job)
    if words is not None and case.facts.has_storage:
        yield catalogue()["compressible_data"].fire(f"the study asked for it: {words}")


RULES: tuple[Rule, ...] = (_compressible,)
