"""What bounds most cells of each target: said once for those that are bound alike."""

from __future__ import annotations

from dataclasses import replace

from test_bounds_section import FULL, STOPPED, cell
from test_diagnosed import seen

from leadline.verdict.diagnosis.results import CellDiagnosed, by_target
from leadline.verdict.diagnosis.samples import Figures


def of(target: str, *figures: Figures) -> list[CellDiagnosed]:
    found = [cell(f"work{number}", one) for number, one in enumerate(figures)]
    return [replace(one, cell=replace(one.cell, target=target)) for one in found]


def test_targets_that_are_bound_alike_have_a_line_together() -> None:
    lines = list(by_target([*of("a", FULL, FULL), *of("b", FULL, FULL), *of("c", STOPPED)]))
    assert lines[0] == "a and b, 4 cells. Bottleneck: a full link, client1 in 4."
    assert lines[1].startswith("  ")
    assert "Remedy: " in lines[1]
    assert lines[2] == "c, 1 cell. Bottleneck: an OSD without CPU, osd.1 in 1."
    assert len(lines) == 4


def test_a_cause_of_few_cells_is_left_to_their_lines_and_what_nobody_knows_is_counted() -> None:
    first, *_ = by_target(of("a", FULL, FULL, FULL, FULL, STOPPED, seen()))
    assert first == "a, 6 cells. Bottleneck: a full link, client1 in 4, unknown in 1."
    assert list(by_target(of("a", seen()))) == ["a, 1 cell. Bottleneck: unknown in 1."]
