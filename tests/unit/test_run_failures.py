"""What fails in the same way three times in a row is not tried again, and only that."""

from __future__ import annotations

from application_examples import planned, trial

from leadline.plan.model import PlannedCell
from leadline.run.executor import CELL_ENDED, Failures
from leadline.store.journal import Event
from leadline.store.tables import TrialRow

WHY = "copy 1 of {}: exit code 2: python3: can't open file '/t/leadline-0badcafe/t{:04}/my.py' (program)"


def rows(cell: PlannedCell, block: int, *, why: str | None = WHY) -> TrialRow:
    copies = cell.job.copies  # type: ignore[attr-defined]
    error = None if why is None else why.format(copies, block)
    state = "complete" if why is None else "error"
    return trial(cell.id, block, [1.0] * copies, state=state, error=error)


def test_a_cell_ends_with_its_third_failure_alike_and_others_go_on() -> None:
    bad, other = planned("a", 1), planned("a", 2, command=("other",))
    failures = Failures([bad, other], ())
    for block in (1, 2):
        assert failures.add(rows(bad, block)) == ()
        assert failures.ended([bad.id]) is None
    ((cell, _),) = failures.add(rows(bad, 3))
    assert cell == bad.id
    assert "3 trials in a row failed alike" in (failures.ended([bad.id]) or "")
    assert "my.py" in (failures.ended([bad.id]) or "")
    assert failures.ended([other.id]) is None


def test_failures_that_differ_and_failures_between_successes_end_nothing() -> None:
    cell = planned("a", 1)
    failures = Failures([cell], ())
    for block, why in enumerate((WHY, WHY, None, WHY, WHY, "no space left", WHY, WHY), start=1):
        assert failures.add(rows(cell, block, why=why)) == ()


def test_a_command_that_cannot_work_is_not_tried_three_times_with_each_number_of_copies() -> None:
    cells = [planned("a", copies) for copies in (1, 2, 4, 6, 8)] + [planned("b", 1)]
    failures, tried = Failures(cells, ()), 0
    for block in (1, 2, 3):
        for cell in cells:
            if failures.ended([cell.id]) is None:
                failures.add(rows(cell, block, why=None if cell.target == "b" else WHY))
                tried += cell.target == "a"
    assert tried == 5  # each number of copies once, and not 15 times
    assert failures.ended(["b.run_1"]) is None


def test_fewer_copies_that_work_are_not_ended_by_more_that_do_not() -> None:
    cells = [planned("a", copies) for copies in (8, 6, 4, 1)]
    failures = Failures(cells, ())
    for block in (1, 2, 3):
        for cell in cells:
            failures.add(rows(cell, block, why=None if cell.id == "a.run_1" else WHY))
    assert failures.ended(["a.run_1"]) is None
    assert failures.ended(["a.run_8"]) is not None


def test_after_a_resume_what_was_ended_is_tried_once_more() -> None:
    cell = planned("a", 1)
    first = Failures([cell], ())
    ((_, words),) = [one for block in (1, 2, 3) for one in first.add(rows(cell, block))]
    event = Event(1, CELL_ENDED, {"cell": cell.id, "words": words})
    again = Failures([cell], [event])
    assert again.ended([cell.id]) is None
    assert again.add(rows(cell, 4)) != ()
    mended = Failures([cell], [event])
    mended.add(rows(cell, 4, why=None))
    assert mended.add(rows(cell, 5)) == ()
