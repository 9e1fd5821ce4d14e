"""The first screen: 40 lines of 100 columns whatever a study found, and the same on a page."""

from __future__ import annotations

import io
import random
from dataclasses import replace

import pytest
from rich.console import Console

from findings_examples import typical
from leadline.errors import UsageError
from leadline.report.first_screen import lines_of, screen_of, show_figure, show_screen
from leadline.study.library import builtin_names, load_study
from leadline.study.study import expand
from leadline.verdict.answers.messages import against_base, beside_others, figures_alone, within_target
from leadline.verdict.model import (
    SEVERITY,
    Cell,
    Code,
    Comparison,
    FigureRow,
    FigureTable,
    Findings,
    Outcome,
    Quantity,
    Validity,
    part_label,
)
from leadline.verdict.sections.section import AskedFigure, NextStep, StudyAnswer, TextTable

WIDTH, HEIGHT = 100, 40
UNITS = {"bandwidth": "B/s", "iops": "1/s", "run_time": "s", "create_iops": "1/s"}
LONG_REMEDY = "Measure on a host that nobody else uses, or read the figure as what is left over for you. "


def _works(name: str) -> tuple[str, ...]:
    """The rows that a built-in study has: an operation of metadata each."""
    study = load_study(name, {}, command=("true",) if name == "analysis" else ())
    found = []
    for work in expand(study):
        operations = work.options.operations or ()
        stages = [f"time of stage {stage.stage}" for stage in work.options.pipeline or ()]
        found += [part_label(work.name, one) for one in operations] or [work.name, *stages]
    return tuple(found)


WORKS = {name: _works(name) for name in builtin_names()}


def figures(chance: random.Random, works: tuple[str, ...], count: int) -> tuple[AskedFigure, ...]:
    """Any figures of these works on so many targets, the first of which is the base."""
    targets = [f"{chance.choice(['fuse', 'smb', 'radosstriper', 'k'])}{place}" for place in range(count)]
    found = []
    for work in works:
        metric = chance.choice(sorted(UNITS))
        for target in targets:
            value, state = 10 ** chance.uniform(-3, 13), chance.choice(SEVERITY)
            item = Quantity(value, UNITS[metric], value * chance.random(), value * 3, 3)
            if state == "NOT_RUN":
                item = Quantity(None, UNITS[metric], reason="this way has no such operation")
            compared = None if target == targets[0] else comparison(chance, work, targets[0], target, metric)
            found.append(AskedFigure(work, target, f"{target}.{work}", metric, item, state, compared))
    return tuple(found)


def comparison(chance: random.Random, work: str, base: str, other: str, metric: str) -> Comparison:
    """A comparison whose verdict is what its interval says."""
    low = 10 ** chance.uniform(-6, 6)
    high = low * 10 ** chance.uniform(0, 3)
    verdict: Outcome = "faster" if low > 1 else "slower" if high < 1 else "undecided"
    ratio, state = (low * high) ** 0.5, chance.choice(SEVERITY)
    return Comparison(work, metric, base, other, ratio, low, high, 3, verdict, validity=state)


def result(chance: random.Random, name: str) -> Findings:
    """A result of a built-in study on one to ten targets, with any codes."""
    own = figures(chance, WORKS[name], chance.randint(1, 10))
    base = own[0].target
    text = chance.choice(
        [against_base(own, base), beside_others(own), within_target(own, "a file each"), figures_alone(own)]
    )
    codes = tuple(
        Code(
            f"code_{place}", chance.choice(SEVERITY), "Something was otherwise", "seen in t0001", LONG_REMEDY
        )
        for place in range(chance.randint(0, 20))
    )
    cells = tuple(
        Cell(one.cell, one.target, one.work, {}, {}, {}, Validity(one.state, codes)) for one in own[:30]
    )
    steps = (NextStep("finish the study: leadline run --resume DIR", 840.0),) * chance.randint(0, 3)
    matrix = _matrix(chance.randint(1, 10)) if name == "coherence" else None
    answer = StudyAnswer(load_question(name), text, () if matrix else own, base, matrix, steps)
    return replace(typical(), cells=cells, comparisons=(), statements=(), answer=answer)


def load_question(name: str) -> str:
    return load_study(name, {}, command=("true",) if name == "analysis" else ()).question


def _matrix(count: int) -> FigureTable:
    names = tuple(f"way{place}" for place in range(count))
    row = tuple(Quantity(None, "", text="honoured") for _ in names)
    rows = tuple(
        FigureRow((what, name), row, "VALID") for what in ("seen", "locks", "files") for name in names
    )
    return FigureTable("answer", "Who sees what", ("What", "Writer"), names, rows, "Rows are writers.")


@pytest.mark.parametrize("name", builtin_names())
@pytest.mark.parametrize("seed", range(10))
def test_any_result_of_a_built_in_study_fits_the_screen(name: str, seed: int) -> None:
    screen = screen_of(result(random.Random(f"{name} {seed}"), name))  # noqa: S311 - data of a test
    assert screen is not None
    lines = [line for line, _ in lines_of(screen)]
    assert len(lines) <= HEIGHT
    assert max(map(len, lines)) <= WIDTH
    assert lines[0] == load_question(name)


@pytest.mark.parametrize("name", builtin_names())
def test_every_built_in_study_asks_a_question_in_one_line(name: str) -> None:
    assert load_question(name).endswith("?")
    assert len(load_question(name)) <= WIDTH


REACHED = (
    "First for certain: rados in read_4m, write_4m and 6 more (at least 1.6 times before the next); fuse in"
    " names create (at least 1.1 times before the next); local in first_byte (at least 12 times before the"
    " next). Inconclusive in 1 of 11 works. Not measured: smb and kernel. On a lab: ratios hold, absolute"
    " figures are no cluster's. (80 of 80 cells are DOUBTFUL.)"
)


def flagship() -> Findings:
    """As `reach` finds it: ten ways, eight works, eleven rows, each with its own verdict."""
    names = ["rados", "local", "fuse", "libcephfs", "nfs", "smb", "s3", "root", "radosstriper", "kernel"]
    own = []
    for row, work in enumerate(WORKS["reach"]):
        for place, name in enumerate(names):
            value = 1e9 / (place + 1) / (row + 1)
            item = Quantity(value, "B/s" if row < 6 else "1/s", value * 0.9, value * 1.1, 6)
            ratio = 1 / (place + 1)
            compared = Comparison(
                work, "bandwidth", "rados", name, ratio, ratio * 0.8, ratio * 1.2, 6, "slower"
            )
            own.append(
                AskedFigure(
                    work, name, f"{name}.{work}", "bandwidth", item, "VALID", compared if place else None
                )
            )
    answer = StudyAnswer(load_question("reach"), REACHED, tuple(own), "rados")
    return replace(typical(), answer=answer)


def on_pipe(findings: Findings) -> str:
    stream = io.StringIO()
    show_screen(findings, Console(file=stream, width=100_000, no_color=True, highlight=False, soft_wrap=True))
    return stream.getvalue()


def test_ten_ways_by_eight_works_are_all_on_one_screen() -> None:
    lines = on_pipe(flagship()).splitlines()
    assert len(lines) <= HEIGHT
    assert max(map(len, lines)) <= WIDTH
    for name in WORKS["reach"]:
        assert any(line.startswith(name) for line in lines)
    assert "--all has the rest" not in "\n".join(lines)


def test_a_pipe_gets_plain_text_and_whole_names() -> None:
    text = on_pipe(flagship())
    assert "\x1b" not in text
    assert "\u2026" not in text
    assert "radosstr" in text
    assert "iper" in text


def test_what_does_not_fit_is_counted_and_chosen_by_what_is_certain() -> None:
    answer = flagship().answer
    assert answer is not None
    many = tuple(
        replace(one, work=f"{one.work}_{part}")
        for part in range(5)
        for one in answer.figures
        if one.target == "rados"
    )
    own = []
    for place, one in enumerate(many):
        other = Comparison(one.work, "bandwidth", "rados", "nfs", 2.0, 1.0 + place / 10, 3.0, 6, "faster")
        own += [one, replace(one, target="nfs", comparison=other)]
    found = screen_of(replace(typical(), answer=replace(answer, figures=tuple(own))))
    assert found is not None
    assert found.table is not None
    rows = [row[0] for row in found.table.rows if row[0]]
    assert found.table.cut.startswith(f"{len(rows)} of {len(many)} workloads")
    assert rows == [one.work for one in many[-len(rows) :]]


def test_an_invalid_figure_is_never_printed_without_the_word() -> None:
    answer = flagship().answer
    assert answer is not None
    own = tuple(replace(one, state="INVALID") for one in answer.figures)
    for shown in (own, own[:5]):
        screen = screen_of(replace(typical(), answer=replace(answer, figures=shown)))
        assert screen is not None
        assert screen.table is not None
        numbers = [text for row in screen.table.rows for text in row if any(map(str.isdigit, text[:3]))]
        assert not numbers
        assert any("INVALID" in text for row in screen.table.rows for text in row)


def test_doubts_have_a_line_for_each_code_with_its_cells() -> None:
    answer = flagship().answer
    assert answer is not None
    few = replace(answer, figures=answer.figures[:5])
    lines = on_pipe(replace(typical(), answer=few)).splitlines()
    fired = [line for line in lines if line.startswith(("INVALID:", "DOUBTFUL:", "NOT RUN:"))]
    assert "DOUBTFUL: Too short (too_short): 1 of 15 cells" in fired
    assert len(fired) == len({code.code for cell in typical().cells for code in cell.validity.codes})


def test_codes_for_which_there_is_no_line_are_named_with_their_cells() -> None:
    fired = [line for line in on_pipe(flagship()).splitlines() if line.startswith("and by cells: ")]
    assert fired == ["and by cells: generator_saturated 1, too_short 1"]


def test_one_figure_is_printed_with_every_cell_and_its_comparison() -> None:
    stream = io.StringIO()
    show_figure(typical(), "latency_p99", Console(file=stream, width=WIDTH))
    text = stream.getvalue()
    assert "Latency p99" in text
    assert all(cell.target in text and cell.work in text for cell in typical().cells)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "\u2026" not in text
    with pytest.raises(UsageError, match="no cell has the metric 'speed'"):
        show_figure(typical(), "speed", Console(file=stream))


def slowed() -> Findings:
    """Two targets, one of them 75x slower in one workload and too slow to end in the other."""
    found = Comparison("big", "iops", "local", "fuse", 1 / 75.2, 1 / 90, 1 / 60, 3, "slower")
    own = (
        AskedFigure(
            "big", "local", "local.big", "iops", Quantity(41_300.0, "1/s", 24_780, 57_820, 3), "VALID"
        ),
        AskedFigure("big", "fuse", "fuse.big", "iops", Quantity(550.0, "1/s", blocks=1), "VALID", found),
        AskedFigure("huge", "local", "local.huge", "iops", Quantity(9.0, "1/s", 1.0, 81.0, 3), "VALID"),
        AskedFigure(
            "huge", "fuse", "fuse.huge", "iops", Quantity(None, "1/s", reason="none ended in 1 s"), "VALID"
        ),
    )
    return replace(typical(), cells=(), answer=StudyAnswer("Is it?", "It is.", own, "local"))


@pytest.mark.parametrize("width", [40, 100, 200])
def test_ratios_values_and_what_is_missing_are_words_at_any_width(width: int) -> None:
    screen = screen_of(slowed(), width)
    assert screen is not None
    lines = [line for line, _ in lines_of(screen, width)]
    text = "\n".join(lines)
    commands = [line for line in lines if "leadline" in line]
    assert all(len(line) <= width for line in lines if line not in commands)
    assert "75x slower" in text
    assert "41,300 IOPS" in text
    assert "\u00b1 40 %" in text
    assert "one sample" in text
    assert "too noisy" in text
    assert "none ended in 1 s" in text
    for wrong in ("0.013", "x-", "\u00b1?", "\u2013", "k\u00b1"):
        assert wrong not in text


def test_next_is_one_step_and_names_the_result() -> None:
    screen = screen_of(slowed(), word="/tmp/my\\ results/first")
    assert screen is not None
    assert screen.steps == ("find what limits fuse: leadline diagnose /tmp/my\\ results/first",)
    assert screen.more[-1] == "leadline report /tmp/my\\ results/first -o first.html"
    assert "leadline diagnose" not in " ".join(screen.more)


def test_a_row_that_could_not_be_compared_is_the_last_to_be_left_out() -> None:
    base = slowed().answer
    assert base is not None
    many = [replace(one, work=f"w{n}") for n in range(60) for one in base.figures[:2]]
    answer = replace(base, figures=(*many, *base.figures[2:]))
    screen = screen_of(replace(slowed(), answer=answer))
    assert screen is not None
    assert screen.table is not None
    assert "huge" in [row[0] for row in screen.table.rows]
    assert screen.table.cut


@pytest.mark.parametrize("width", [40, 60, 100])
def test_one_metric_has_every_column_at_any_width(width: int) -> None:
    stream = io.StringIO()
    show_figure(typical(), "latency_p99", Console(file=stream, width=width))
    text = stream.getvalue()
    for cell in typical().cells:
        assert cell.target in text
        assert cell.work in text
        assert cell.validity.state.replace("_", " ") in text
    assert max(map(len, text.splitlines())) <= width
    words = set(text.replace(",", " ").replace(":", " ").split())
    assert "DOUBTFUL" in words
    assert not words & {"DOUBTFU", "validit", "slowe", "faste"}


def test_a_table_with_too_many_columns_is_transposed_and_breaks_no_word() -> None:
    headings = tuple(f"measured operation{place}" for place in range(14))
    table = TextTable("t", headings, (tuple("12345" for _ in headings),) * 2, total=2, brief=2)
    answer = StudyAnswer("Is it?", "It is.", matrix=table)
    screen = screen_of(replace(typical(), answer=answer))
    assert screen is not None
    lines = [line for line, _ in lines_of(screen)]
    assert max(map(len, lines)) <= WIDTH
    assert all(any(line.startswith(heading) for line in lines) for heading in headings)
