"""The page of profiles speaks of options, classes and words that there are."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from leadline.analysis.statistics.means import Estimate
from leadline.causal.judge import FORMAT
from leadline.causal.messages import HEADINGS, waits
from leadline.causal.model import CLASSES, PLAIN_RUNS
from leadline.cli.main import leadline

PAGE = (Path(__file__).parents[2] / "docs" / "profile.md").read_text()


def command() -> click.Command:
    found = leadline.get_command(click.Context(leadline), "profile")
    assert found is not None
    return found


def options() -> dict[str, click.Option]:
    return {name: one for one in command().params if isinstance(one, click.Option) for name in one.opts}


def test_every_option_of_the_page_is_one_of_the_verb() -> None:
    ours = " ".join(
        line for line in PAGE.splitlines() if "git -c" not in line and "leadline trace" not in line
    )
    named = set(re.findall(r"(?<![\w-])--[a-z]+", ours))
    assert named
    assert named <= set(options())


@pytest.mark.parametrize("option", ["--class", "--delay", "--blocks", "--for", "--below", "--at", "--like"])
def test_what_decides_on_a_profile_is_on_the_page(option: str) -> None:
    assert f"`{option}" in PAGE


def test_every_class_and_every_column_has_its_row() -> None:
    assert [name for name in CLASSES if f"\n| `{name}` |" in PAGE] == list(CLASSES)
    assert [name for name in HEADINGS[1:] if f"\n| {name} |" in PAGE] == list(HEADINGS[1:])


def test_defaults_and_the_format_are_those_of_the_page() -> None:
    assert f"`{FORMAT}`" in PAGE
    assert f"(`--blocks`, {options()['--blocks'].default})" in PAGE
    assert options()["--delay"].default == "200us,1ms"
    assert "(`--delay`,\n200 us and 1 ms)" in PAGE
    assert PLAIN_RUNS == 2
    assert "has two runs without delay" in PAGE


@pytest.mark.parametrize(("low", "high"), [(0.9, 1.1), (0.2, 0.5), (0.4, 1.4), (-0.02, 0.05), (-0.5, 0.9)])
def test_what_a_slope_is_called_is_explained(low: float, high: float) -> None:
    said = waits(Estimate((low + high) / 2, low, high, 5)).partition(":")[0]
    assert f"*{said}*" in PAGE
