"""Requirements: what is read and refused, and that an interval decides whether one is met."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadline.analysis.cells import CellTable
from leadline.analysis.metrics import Measured
from leadline.cli.gate_options import AskedGates, required_of, say_required
from leadline.errors import ResultError, SpecError
from leadline.study.library import load_study
from leadline.study.study import expand
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.limits import (
    requirement_line,
    requirement_statements,
    requirements_section,
)
from leadline.verdict.model import Cell, Code, JudgedRequirement, Quantity, State, Validity
from leadline.verdict.requirements import (
    MeasuredCells,
    Requirements,
    is_condition,
    judge_requirements,
    parse_limit,
    parse_requirement,
    read_requirements,
)

MIB = 1 << 20
HEAD = "format: leadline.requirements/1\nrequirements:\n"


def read(*bodies: str) -> Requirements:
    return read_requirements(HEAD + "".join(f"  {body}\n" for body in bodies), "r.yaml", {})


def cell(name: str, state: State = "VALID", job: dict[str, Any] | None = None, **metrics: Quantity) -> Cell:
    target, work = name.split(".")
    codes = (
        () if state == "VALID" else (Code("cached_reads", state, "cached", "seen", "read more than fits"),)
    )
    return Cell(name, target, work, {}, {"numjobs": 4, **(job or {})}, metrics, Validity(state, codes))


def rate(
    value: float | None, low: float | None = None, high: float | None = None, unit: str = "B/s"
) -> Quantity:
    return Quantity(value, unit, low, high, 3 if low else 1, None if value else "nothing was done")


CELLS = (
    cell("a.read", bandwidth=rate(280e6, 270e6, 290e6), iops=rate(3e6, 2.5e6, 3.5e6, "1/s")),
    cell("b.read", bandwidth=rate(200e6, 190e6, 210e6), iops=rate(1e6, 0.9e6, 1.1e6, "1/s")),
    cell("a.small", latency_mean=rate(4e6, 3e6, 5e6, "ns"), iops=rate(3e6, 2.5e6, 3.5e6, "1/s")),
    cell("a.cached", "DOUBTFUL", bandwidth=rate(280e6, 270e6, 290e6)),
    cell("a.wrong", "INVALID", bandwidth=rate(280e6, 270e6, 290e6)),
    cell("a.gone", "NOT_RUN", bandwidth=rate(None)),
    cell("a.once", bandwidth=rate(280e6)),
    cell("a.empty", bandwidth=rate(None)),
)


def judge(
    body: str, *, cells: tuple[Cell, ...] = CELLS, hosts: dict[str, int] | None = None
) -> JudgedRequirement:
    (found,) = judge_requirements(read(body), MeasuredCells(cells, {}, hosts or {}, 0.05))
    return found


@pytest.mark.parametrize(
    ("body", "met"),
    [
        ("r: {work: read, target: a, metric: bandwidth, at_least: 66 MB/s per process}", True),
        ("r: {work: read, target: b, metric: bandwidth, at_least: 66 MB/s per process}", False),
        ("r: {work: read, metric: bandwidth, at_least: 66 MB/s per process}", False),
        ("r: {work: read, metric: bandwidth, at_least: 66 MB/s per process, cells: one}", True),
        ("r: {work: read, target: a, metric: bandwidth, at_least: 66 MiB/s per process}", None),
        ("r: {work: read, target: a, metric: bandwidth, at_least: 270 MB/s}", True),
        ("r: {work: read, target: a, metric: bandwidth, at_least: 280 MB/s}", None),
        ("r: {work: read, target: a, metric: bandwidth, at_most: 269 MB/s}", False),
        ("r: {work: read, target: a, metric: iops, at_least: 2000000}", True),
        ("r: {work: read, target: a, metric: iops, at_least: 2000000 IOPS}", True),
        ("r: {work: small, metric: latency_mean, at_most: 5ms}", True),
        ("r: {work: small, metric: latency_mean, at_most: 4ms}", None),
        ("r: {work: small, metric: latency_mean, at_most: 2999 us}", False),
        ("r: {work: cached, metric: bandwidth, at_least: 1 MB/s}", None),
        ("r: {work: wrong, metric: bandwidth, at_least: 1 MB/s}", None),
        ("r: {work: gone, metric: bandwidth, at_least: 1 MB/s}", None),
        ("r: {work: once, metric: bandwidth, at_least: 1 MB/s}", None),
        ("r: {work: empty, metric: bandwidth, at_least: 1 MB/s}", None),
        ("r: {work: small, metric: bandwidth, at_least: 1 MB/s}", None),
        ("r: {work: nowhere, metric: bandwidth, at_least: 1 MB/s}", None),
    ],
)
def test_a_requirement_is_met_only_where_the_whole_interval_of_a_valid_cell_fulfils_it(
    body: str, met: bool | None
) -> None:
    assert judge(body).met is met


@pytest.mark.parametrize(
    ("work", "why", "decides"),
    [
        ("cached", "a.cached is DOUBTFUL (cached_reads)", "read more than fits"),
        ("wrong", "a.wrong is INVALID (cached_reads)", "read more than fits"),
        ("gone", "a.gone could not be run", "read more than fits"),
        ("once", "no CI", "--blocks 6"),
        ("empty", "nothing was done", "measure it"),
        ("small", "no bandwidth", "measure it"),
    ],
)
def test_what_is_undecided_says_why_and_what_decides(work: str, why: str, decides: str) -> None:
    (figure,) = judge(f"r: {{work: {work}, metric: bandwidth, at_least: 1 MB/s}}").figures
    assert why in figure.why
    assert decides in figure.decides


def test_a_figure_of_an_invalid_cell_is_not_said() -> None:
    found = judge("r: {work: wrong, metric: bandwidth, at_least: 1 MB/s}")
    assert found.figures[0].seen == "INVALID"
    texts = [one.text for one in requirement_statements([found])]
    assert not any("MiB" in text for text in texts)


def test_where_a_measured_cell_fails_the_others_need_not_be_known() -> None:
    cells = (*CELLS[1:2], cell("a.read", bandwidth=rate(None)))
    assert judge("r: {work: read, metric: bandwidth, at_least: 1 GB/s}", cells=cells).met is False
    assert judge("r: {work: read, metric: bandwidth, at_least: 1 MB/s}", cells=cells).met is None
    assert judge("r: {work: read, metric: bandwidth, at_least: 1 MB/s, cells: one}", cells=cells).met is True


@pytest.mark.parametrize(
    ("iops", "latency", "met"),
    [(2_000_000, "6ms", True), (4_000_000, "6ms", False), (2_000_000, "4ms", None)],
)
def test_several_figures_hold_at_once_in_the_same_cell(iops: int, latency: str, met: bool | None) -> None:
    both = f"[{{metric: iops, at_least: {iops}}}, {{metric: latency_mean, at_most: {latency}}}]"
    assert judge(f"r: {{work: small, figures: {both}}}").met is met


def test_a_part_of_each_process_counts_those_of_all_hosts() -> None:
    body = "r: {target: a, work: read, metric: bandwidth, at_least: 66 MB/s per process}"
    assert judge(body, hosts={"a.read": 2}).met is False
    assert judge(body.replace("process}", "host}"), hosts={"a.read": 2}).met is True
    assert judge(body.replace("66 MB/s per process", "150 MB/s per host"), hosts={"a.read": 2}).met is False


def test_a_cell_with_too_few_processes_is_none_of_those_asked_for() -> None:
    body = "r: {target: a, work: read, processes: 8, metric: bandwidth, at_least: 1 MB/s}"
    assert (judge(body).met, judge(body).why) == (None, "no cell has 8 processes, the most is 4")
    assert judge(body, hosts={"a.read": 2}).met is True


def grown(*levels: tuple[int, tuple[float, ...]]) -> tuple[tuple[Cell, ...], dict[str, CellTable]]:
    """Reads at several numbers of jobs, with their bandwidth in each block."""
    cells = tuple(
        cell(f"a.read_{jobs}", job={"numjobs": jobs, "rw": "read"}, bandwidth=rate(sum(values)))
        for jobs, values in levels
    )
    tables = {
        f"a.read_{jobs}": CellTable(
            f"a.read_{jobs}",
            (),
            {block: Measured({"bandwidth": value}, {}) for block, value in enumerate(values, start=1)},
        )
        for jobs, values in levels
    }
    return cells, tables


SCALING = "r: {work: 'read*', metric: bandwidth, over: numjobs, at_least: 95%}"


@pytest.mark.parametrize(
    ("last", "met"), [((2.0, 2.01, 2.02), True), ((1.0, 1.01, 1.02), False), ((1.2, 1.7, 2.4), None)]
)
def test_scaling_is_the_ratio_of_each_level_to_the_one_before_it(
    last: tuple[float, ...], met: bool | None
) -> None:
    cells, tables = grown((4, last), (1, (1.0, 1.01, 1.02)), (2, (1.9, 1.91, 1.93)))
    (found,) = judge_requirements(read(SCALING), MeasuredCells(cells, tables, {}, 0.05))
    assert found.met is met
    assert [one.cells for one in found.figures] == [("a.read_1", "a.read_2"), ("a.read_2", "a.read_4")]
    assert found.figures[0].quantity.value == pytest.approx(1.9, rel=0.01)


def test_scaling_of_a_single_level_is_undecided_and_says_what_to_measure() -> None:
    cells, tables = grown((4, (1.0, 1.1)))
    (found,) = judge_requirements(read(SCALING), MeasuredCells(cells, tables, {}, 0.05))
    assert found.met is None
    assert "factors.numjobs" in found.decides


def test_cells_that_differ_in_more_than_the_option_are_no_pair() -> None:
    cells, tables = grown((1, (1.0, 1.1)), (2, (1.0, 1.1)))
    other = Cell(**{**vars(cells[1]), "job": {"numjobs": 2, "rw": "write"}})
    (found,) = judge_requirements(read(SCALING), MeasuredCells((cells[0], other), tables, {}, 0.05))
    assert found.figures == ()


@pytest.mark.parametrize(
    ("low", "high", "words"), [(279e6, 281.2e6, "about 5 blocks"), (250e6, 310e6, "not even 100 blocks")]
)
def test_how_many_blocks_would_decide_is_said_where_so_few_do(low: float, high: float, words: str) -> None:
    cells = (cell("a.read", bandwidth=rate(280e6, low, high)),)
    (figure,) = judge("r: {work: read, metric: bandwidth, at_least: 281 MB/s}", cells=cells).figures
    assert figure.met is None
    assert words in figure.decides


@pytest.mark.parametrize(
    ("text", "value", "share"),
    [
        ("66MB/s per process", 66e6, "process"),
        ("66 MiB/s", 66 * MIB, None),
        ("4ms", 0.004, None),
        ("2_000_000", 2e6, None),
        (2000000, 2e6, None),
        (0.95, 0.95, None),
        ("90%", 0.9, None),
        ("1.5 h", 5400, None),
        ("10 Gb/s per host", 1.25e9, "host"),
        ("1e3 IOPS", 1000, None),
    ],
)
def test_figures_have_the_units_of_documents(text: object, value: float, share: str | None) -> None:
    found = parse_limit(text)
    assert found.value == pytest.approx(value)
    assert found.share == share


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("[]", "mapping"),
        (HEAD.replace("/1", "/2") + "  a: {metric: iops, at_least: 5}", "line 1: format"),
        ("requirements: {a: {metric: iops, at_least: 5}}", "format: the key is missing"),
        (HEAD + "  {}", "nothing is required"),
        (HEAD + "  a:\n    metric: iopz\n    at_least: 5", "line 4: requirements.a.metric"),
        (HEAD + "  a:\n    metric: throughput\n    at_least: 5 MB/s", "did you mean bandwidth"),
        (
            HEAD + "  a: {metric: bandwidth, at_least: 5}",
            "line 3: requirements.a: '5' is not a value of bandwidth",
        ),
        (HEAD + "  a:\n    metric: bandwidth\n    at_least: 5 parsecs", "line 5: requirements.a.at_least"),
        (HEAD + "  a: {metric: bandwidth, at_least: 5 MB/s per cow}", "'cow'"),
        (HEAD + "  a: {metric: latency_mean, at_most: 5 ms per process}", "leave `per process` out"),
        (HEAD + "  a: {metric: bandwidth}", "either at_least or at_most"),
        (HEAD + "  a: {metric: bandwidth, at_least: 1 MB/s, at_most: 2 MB/s}", "either at_least or at_most"),
        (HEAD + "  a: {metric: bandwidth, over: numjobs, at_least: 2 MB/s}", "no ratio"),
        (HEAD + "  a: {works: x, metric: iops, at_least: 2}", "did you mean workload?"),
        (HEAD + "  a: {at_least: 2}", "requires no metric"),
        (
            HEAD + "  a:\n    figures:\n      - {metric: iops, atleast: 5}",
            "line 5: requirements.a.metrics.0.atleast",
        ),
        (
            HEAD + "  a: {metric: iops, at_least: 4, figures: [{metric: iops, at_least: 3}]}",
            "metrics and metric",
        ),
        (HEAD + "  a: {metric: iops, at_least: -5}", "not a value"),
        (HEAD + "  a: {metric: iops, at_least: 0}", "nothing is measured as 0"),
        (HEAD + "  a: {metric: iops, at_least: true}", "not a value"),
        (HEAD + "  a b: {metric: iops, at_least: 5}", "is no name"),
        (HEAD + "  a: {metric: iops, at_least: 5}\n  a: {metric: iops, at_least: 5}", "given twice"),
        (HEAD + "  a: {metric: iops, at_least: 5, cells: some}", "known are every, one"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_line_and_key(text: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_requirements(text, "r.yaml", {})
    assert says in str(caught.value)
    assert "r.yaml" in str(caught.value)


def test_what_is_stored_is_read_back_and_damage_is_said() -> None:
    asked = read(
        "a: {work: x, metric: iops, at_least: 5, from: section 1}", "b: {metric: latency_p99.9, at_most: 4ms}"
    )
    assert Requirements.from_json(asked.as_json()) == asked
    with pytest.raises(ResultError, match="damaged"):
        Requirements.from_json(
            {"format": "leadline.requirements/1", "requirements": {"a": {"metric": "iops"}}}
        )


def test_the_line_of_all_names_those_that_are_not_met() -> None:
    asked = read(
        "good: {work: read, target: a, metric: iops, at_least: 5}",
        "bad: {work: read, metric: iops, at_least: 9e9}",
        "open: {work: gone, metric: bandwidth, at_least: 1 MB/s}",
    )
    found = judge_requirements(asked, MeasuredCells(CELLS, {}, {}, 0.05))
    assert requirement_line(found) == "Of 3 requirements 1 met, 1 not met (bad), 1 inconclusive (open)."
    said = list(requirement_statements(found))
    assert [one.says for one in said] == [
        "requirements_judged",
        "requirement_not_met",
        "requirement_undecided",
        "requirement_met",
    ]
    section = requirements_section(asked, found)
    assert section is not None
    assert section.json is not None
    assert [one["verdict"] for one in section.json["requirements"]["judged"]] == [
        "met",
        "not met",
        "undecided",
    ]


@pytest.mark.parametrize(
    ("bodies", "state", "code", "allowed"),
    [
        (("r: {work: read, metric: iops, at_least: 5}",), "VALID", 0, 0),
        (("r: {work: read, metric: iops, at_least: 9e9}",), "VALID", 4, 4),
        (("r: {work: read, metric: iops, at_least: 9e9}",), "INVALID", 4, 4),
        (("r: {work: gone, metric: iops, at_least: 9e9}",), "VALID", 5, 0),
        (("r: {work: gone, metric: iops, at_least: 9e9}",), "NOT_RUN", 3, 3),
    ],
)
def test_exit_codes_are_those_of_gates(
    bodies: tuple[str, ...], state: State, code: int, allowed: int
) -> None:
    found = judge_requirements(read(*bodies), MeasuredCells(CELLS, {}, {}, 0.05))
    assert AskedGates().conclude([], state, found) == code
    assert AskedGates((), allow_undecided=True).conclude([], state, found) == allowed


def test_the_example_of_the_documents_is_read() -> None:
    example = Path(__file__).parents[2] / "docs" / "examples" / "suse-requirements.yaml"
    asked = read_requirements(example.read_text(), str(example), {})
    limits = asked.requirements["each_process"].asked[0].limit
    assert (limits.value, limits.share) == (66e6, "process")
    assert all("section" in one.source for one in asked.requirements.values())


def test_the_example_is_of_works_that_the_built_in_studies_have() -> None:
    example = Path(__file__).parents[2] / "docs" / "examples" / "suse-requirements.yaml"
    asked = read_requirements(example.read_text(), str(example), {})
    changes = ("factors.numjobs=[1,2]", "label={work}_{bs}_{numjobs}")
    works = [work.name for work in expand(load_study("render", {}, changes))]
    works += [work.name for work in expand(load_study("metadata", {}, cpus=2))]
    for name, one in asked.requirements.items():
        assert [work for work in works if one.is_of("rep", work)], name


def busy(code: str, **metrics: Quantity) -> Cell:
    """A cell with one doubt."""
    own = cell("a.busy", "DOUBTFUL", **metrics)
    return replace(own, validity=Validity("DOUBTFUL", (catalogue()[code].fire("seen"),)))


@pytest.mark.parametrize(
    ("code", "body", "met"),
    [
        ("other_load", "metric: bandwidth, at_least: 66 MB/s", True),  # may only be faster
        ("cached_reads", "metric: bandwidth, at_least: 66 MB/s", None),
        ("cached_reads", "metric: bandwidth, at_least: 900 MB/s", False),
        ("other_load", "metric: bandwidth, at_least: 900 MB/s", None),
        ("other_load", "metric: latency_mean, at_most: 9ms", True),
        ("cached_reads", "metric: latency_mean, at_most: 9ms", None),
        ("few_blocks", "metric: bandwidth, at_least: 66 MB/s", True),  # its interval holds what scatters
        ("level_shift", "metric: bandwidth, at_least: 66 MB/s", None),
    ],
)
def test_a_doubt_that_cannot_change_a_verdict_does_not(code: str, body: str, met: bool | None) -> None:
    own = busy(code, bandwidth=rate(280e6, 270e6, 290e6), latency_mean=rate(4e6, 3e6, 5e6, "ns"))
    assert judge(f"r: {{work: busy, {body}}}", cells=(own,)).met is met


def test_a_requirement_in_a_line_is_that_of_a_file() -> None:
    found = parse_requirement(" a.read.bandwidth >= 66 MB/s per process ")
    (written,) = read(
        "r: {target: a, work: read, metric: bandwidth, at_least: 66 MB/s per process}"
    ).requirements.values()
    assert found == written
    assert parse_requirement("all.read.latency_p99<=4ms").at_most == "4ms"
    assert is_condition("a.b.iops >= 5")
    assert not is_condition("asked.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a.b.iops > 5", "> is none of >= and <="),
        ("iops >= 5", "no requirement"),
        ("a.b.iop >= 5", "no metric is called 'iop'"),
        ("a.b.iops >= 5ms", "'5ms' is not a value of iops"),
        ("a.b.iops >= ", "not a value"),
    ],
)
def test_a_line_that_cannot_be_read_is_refused(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=re.escape(said)):
        parse_requirement(text)


def test_what_was_measured_stands_behind_the_mark(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ("a.read.iops >= 500", "a.read.iops <= 500")
    asked = required_of(lines)
    assert asked is not None
    say_required(judge_requirements(asked, MeasuredCells(CELLS, {}, {}, 0.05)))
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("\u2713 requirement met: a.read.iops >= 500: 3,000,000 IOPS (")
    assert said[1].startswith("\u2717 requirement NOT MET: a.read.iops <= 500: 3,000,000 IOPS (")
