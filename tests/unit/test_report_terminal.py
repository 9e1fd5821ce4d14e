"""`leadline show`: readable at 80 columns, complete on a pipe, and safe whatever the names are."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from findings_examples import EXAMPLES, hostile, typical
from leadline.report.renderers.terminal import next_steps, show
from leadline.verdict.model import Findings


def on_pipe(findings: Findings) -> str:
    stream = io.StringIO()
    show(findings, Console(file=stream, width=100_000, no_color=True, highlight=False, soft_wrap=True))
    return stream.getvalue()


def on_terminal(findings: Findings, width: int) -> str:
    stream = io.StringIO()
    show(findings, Console(file=stream, width=width, force_terminal=True, highlight=False))
    return stream.getvalue()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_pipe_gets_no_colour_no_wrapping_and_no_padding(name: str) -> None:
    text = on_pipe(EXAMPLES[name]())
    assert "\x1b" not in text
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) < 2000


@pytest.mark.parametrize("width", [80, 100])
def test_a_terminal_shows_every_number_whole(width: int) -> None:
    text = on_terminal(typical(), width)
    assert "…" not in text
    for number in ("178,000", "1,890", "0.362"):
        assert number in text


def test_words_come_before_numbers() -> None:
    text = on_pipe(typical())
    assert text.index("CephFS with 3 replicas writes") < text.index("bandwidth".title())
    assert text.index("Result: INVALID") < text.index("Bandwidth")


def test_a_line_with_an_invalid_number_carries_the_word() -> None:
    lines = [line for line in on_pipe(typical()).splitlines() if " 416 " in line]
    assert lines
    assert all("INVALID" in line for line in lines)


def test_names_are_neither_markup_nor_terminal_control() -> None:
    text = on_pipe(hostile())
    assert "[red]" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\n<img" in text


def test_every_code_that_fired_comes_with_its_remedy() -> None:
    steps = " ".join(next_steps(typical()))
    text = on_pipe(typical())
    for cell in typical().cells:
        for code in cell.validity.codes:
            assert code.remedy in text
            assert code.remedy in steps


def test_a_missing_number_has_its_reason() -> None:
    assert "the trial ended with ENOSPC" in on_pipe(typical())
