"""Which doubts can change an answer: by how a value may err, on which side it stands, and what was found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from findings_examples import typical
from leadline.report.first_screen import lines_of, screen_of
from leadline.verdict.answers.doubts import with_footnotes
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import Cell, Comparison, Outcome, Quantity, Validity
from leadline.verdict.sections.section import AskedFigure, StudyAnswer


def cell(target: str, *codes: str) -> Cell:
    found = tuple(catalogue()[name].fire("seen") for name in codes)
    return Cell(f"{target}.w", target, "w", {}, {}, {}, Validity("DOUBTFUL" if found else "VALID", found))


def figures(verdict: Outcome, *cells: Cell) -> list[AskedFigure]:
    """Of a base and of what is compared with it."""
    found = Comparison("w", "iops", "base", "other", 0.2, 0.1, 0.4, 6, verdict, validity="DOUBTFUL")
    one, two = (
        AskedFigure("w", own.target, own.id, "iops", Quantity(5.0, "1/s", 4.0, 6.0, 6), own.validity.state)
        for own in cells
    )
    return [one, replace(two, comparison=found)]


@pytest.mark.parametrize(
    ("verdict", "of_base", "of_other", "changes"),
    [
        ("slower", (), ("memory_target",), False),  # may be too high, and is lower all the same
        ("slower", (), ("other_load",), True),
        ("slower", ("other_load",), (), False),
        ("slower", ("cached_reads",), (), True),
        ("faster", ("cached_reads",), (), False),
        ("faster", (), ("cached_reads",), True),
        ("slower", ("few_blocks",), ("noisy_host",), False),
        ("undecided", (), ("few_blocks",), True),
        ("undecided", (), ("cached_reads",), True),
        ("same", (), ("other_load",), True),
        ("same", (), ("few_blocks",), False),
        ("slower", (), ("level_shift",), True),  # nothing is known of its direction
    ],
)
def test_a_doubt_counts_where_the_verdict_could_be_another(
    verdict: Outcome, of_base: tuple[str, ...], of_other: tuple[str, ...], changes: bool
) -> None:
    cells = cell("base", *of_base), cell("other", *of_other)
    (_, found), footnotes = with_footnotes(figures(verdict, *cells), cells)
    assert found.footnoted is not changes
    assert set(footnotes) == (set() if changes else {*of_base, *of_other})


@pytest.mark.parametrize(("code", "footnoted"), [("few_blocks", True), ("other_load", False)])
def test_a_value_alone_is_changed_by_all_but_chance(code: str, footnoted: bool) -> None:
    own = cell("base", code)
    asked = AskedFigure("w", "base", own.id, "iops", Quantity(5.0, "1/s", 4.0, 6.0, 6), "DOUBTFUL")
    (found,), footnotes = with_footnotes([asked], [own])
    assert (found.footnoted, footnotes) == (footnoted, (code,) if footnoted else ())
    alone = replace(asked, quantity=Quantity(5.0, "1/s", blocks=1))  # no interval holds what scatters
    assert with_footnotes([alone], [own])[1] == ()


def test_a_footnote_has_one_dim_line_and_no_mark() -> None:
    cells = cell("base", "few_blocks"), cell("other", "few_blocks", "other_load")
    asked, footnotes = with_footnotes(figures("slower", *cells), cells)
    answer = StudyAnswer("Is it?", "It is.", asked, "base", footnotes=footnotes)
    screen = screen_of(replace(typical(), cells=cells, answer=answer))
    assert screen is not None
    lines = [line for line, _ in lines_of(screen)]
    assert "Doubts that cannot change the answer, by cells: few blocks (2)." in lines
    assert [line for line in lines if line.startswith("DOUBTFUL:")] == [
        "DOUBTFUL: Other load (other_load): 1 of 2 cells"
    ]
    assert any("5.0x slower*" in line for line in lines)
    sure, footnotes = with_footnotes(figures("slower", cells[0], cell("other")), (cells[0], cell("other")))
    screen = screen_of(replace(typical(), answer=replace(answer, figures=sure, footnotes=footnotes)))
    assert screen is not None
    assert not any("slower*" in line for line, _ in lines_of(screen))
