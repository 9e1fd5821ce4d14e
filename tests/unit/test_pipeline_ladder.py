"""Which pictures are made of a source: none that is wider than it, unless that is asked for."""

from __future__ import annotations

import pytest

from leadline.workloads.pipeline.job import StageOptions, enlarges
from leadline.workloads.pipeline.planner import within

WIDTHS = (640, 854, 1280, 1920, 3840)


def stage(name: str, **changes: object) -> StageOptions:
    return StageOptions.model_validate({"stage": name, "command": ["true"], **changes})


def ladder() -> tuple[StageOptions, ...]:
    rungs = tuple(stage(f"w{width}", input="take", width=width) for width in WIDTHS)
    publish = stage("publish", command=None, step="publish", input=[rung.stage for rung in rungs])
    return (stage("take"), *rungs, publish)


@pytest.mark.parametrize(
    ("source", "enlarge", "made"),
    [
        (3840, False, WIDTHS),
        (1920, False, WIDTHS[:4]),
        (1919, False, WIDTHS[:3]),
        (640, False, WIDTHS[:1]),
        (64, False, WIDTHS[:1]),
        (640, True, WIDTHS),
        (None, False, WIDTHS),
    ],
)
def test_the_ladder_ends_at_the_source(source: int | None, enlarge: bool, made: tuple[int, ...]) -> None:
    kept, left_out = within(ladder(), source, enlarge=enlarge)
    names = tuple(f"w{width}" for width in made)
    assert [one.stage for one in kept] == ["take", *names, "publish"]
    assert [one.stage for one in left_out] == [f"w{width}" for width in WIDTHS if width not in made]
    assert kept[-1].input == names


def test_what_takes_only_what_is_left_out_is_left_out_too() -> None:
    after = (
        stage("preview"),  # takes the stage before it
        stage("named", input=["take"], command=["cp", "{w3840}", "{output}"]),
        stage("both", input=["take", "preview"]),
        stage("apart", input="source"),
    )
    rungs = (stage("take"), stage("w640", input="take", width=640), stage("w3840", input="take", width=3840))
    kept, left_out = within((*rungs, *after), 640, enlarge=False)
    assert [one.stage for one in left_out] == ["w3840", "preview", "named"]
    assert [one.stage for one in kept] == ["take", "w640", "both", "apart"]
    assert kept[2].input == ("take",)


def test_a_stage_of_several_widths_is_bounded_by_what_it_is_told_and_not_left_out() -> None:
    every = stage("every", width=list(WIDTHS))
    kept, left_out = within((every,), 640, enlarge=False)
    assert ([one.stage for one in kept], left_out) == (["every"], ())
    assert not enlarges(WIDTHS, 640, 640)
    assert enlarges(WIDTHS, 640, None)
    assert enlarges((854,), 640, 640)
    assert not enlarges((), 640, 640)
    assert not enlarges((854,), None, None)
