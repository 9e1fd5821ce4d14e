"""What nobody could see is said by what to do, three steps first."""

from __future__ import annotations

import pytest

from leadline.cli.explain.diagnose import _print_open
from leadline.verdict.diagnosis.causes import causes, figures_in
from leadline.verdict.diagnosis.judge import CauseOpen, Diagnosed
from leadline.verdict.diagnosis.section import step_of, steps

EVERY = tuple(CauseOpen(one, one.needs) for one in causes())


@pytest.mark.parametrize(
    "figure", sorted({name for one in causes() for name in (*one.needs, *figures_in(one.share))})
)
def test_each_figure_that_a_cause_needs_has_a_step_that_shows_it(figure: str) -> None:
    assert step_of(figure).endswith(".")


def test_the_step_that_settles_most_is_first_and_no_cause_is_lost() -> None:
    found = steps(EVERY)
    surely = [sum(one.entry.told != "rest" for one in step.causes) for step in found]
    assert surely == sorted(surely, reverse=True)
    assert sum(len(step.causes) for step in found) == len(EVERY)


def test_the_screen_has_three_steps_and_no_internal_name(capsys: pytest.CaptureFixture[str]) -> None:
    _print_open(Diagnosed("undecided", open=EVERY), whole=False)
    printed = capsys.readouterr().out
    assert printed.count(" more: ") == 3
    assert "add --all" in printed
    assert not [one.name for one in causes() if "_" in one.name and one.name in printed]
    assert max(map(len, printed.splitlines())) <= 100


def test_all_is_printed_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    _print_open(Diagnosed("undecided", open=EVERY), whole=True)
    printed = " ".join(capsys.readouterr().out.split())
    assert not [one.name for one in causes() if one.name not in printed]
    assert not [name for one in causes() for name in one.needs if name not in printed]
    assert "add --all" not in printed


def test_no_title_of_a_cause_has_a_place_for_a_figure_left() -> None:
    assert not [one.plain_title for one in causes() if set("{}()") & set(one.plain_title)]
