"""Several results on one page: each against the first; what ran different jobs is shown, and not compared."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from builders import cell
from test_conditions import HOST, ran, stored

from leadline.report import render
from leadline.report.charts.draw import draw
from leadline.report.redact import redacted
from leadline.store.reader import open_result
from leadline.verdict.comparisons.two_results import compare_results
from leadline.verdict.model import Findings
from leadline.verdict.overlay import overlay_of

READ, WRITE = "a.randread_4k", "a.randwrite_4k"


def three(folder: Path) -> list[str]:
    """The second is three times slower; the third ran another job."""
    first = stored(folder / "old", cell(READ))
    second = stored(folder / "new", cell(READ), slower=3.0, host={**HOST, "kernel": "6.12.0"})
    return [first, second, stored(folder / "other", cell(READ, bs=65536))]


def overlay(paths: list[str], **options: bool) -> Findings:
    return overlay_of([open_result(Path(path)) for path in paths], 0.05, **options)


def test_each_result_is_compared_with_the_first_as_compare_does(tmp_path: Path) -> None:
    paths = three(tmp_path)
    found = overlay(paths)
    plain = compare_results(*(open_result(Path(path)) for path in paths[:2]), (), 0.05)
    ours = [(one.metric, one.ratio, one.low, one.high, one.verdict) for one in found.comparisons]
    assert ours == [(one.metric, one.ratio, one.low, one.high, one.verdict) for one in plain]
    assert {(one.base, one.other, one.work) for one in found.comparisons} == {("old", "new", "randread_4k")}
    assert found.answer is not None
    assert "new is 3.0x slower than old" in found.answer.text


def test_different_jobs_are_named_drawn_and_not_compared_unless_that_is_asked_for(tmp_path: Path) -> None:
    paths = three(tmp_path)
    found = overlay(paths)
    assert found.answer is not None
    (said,) = [one for one in found.answer.said if "DIFFERENT JOBS" in one]
    assert "other and old ran different jobs in randread_4k (bs: 4k in old, 64k in other)" in said
    assert "not compared" in said
    assert not [one for one in found.comparisons if one.other == "other"]
    drawn = draw(found)
    (rates,) = drawn.rates
    assert {row["target"] for row in rates.spec["data"]["values"]} == {"old", "new", "other"}
    (answer,) = drawn.answer
    near = {row["target"]: row["near"] for row in answer.spec["data"]["values"]}
    assert near["old"] == 1
    assert near["other"] == 0  # a value of another job is neither the best nor near to it
    assert answer.reading == "old has the best mean in 1 of 1 workload."
    across = overlay(paths, across_jobs=True)
    assert {one.other for one in across.comparisons} == {"new", "other"}
    assert across.answer is not None
    assert any("all the same" in one for one in across.answer.said)


def test_what_else_differs_and_what_is_lacking_is_said(tmp_path: Path) -> None:
    paths = three(tmp_path)
    wider = stored(tmp_path / "wide", cell(READ), cell(WRITE))
    found = overlay([paths[0], paths[1], wider])
    assert found.answer is not None
    assert "old lacks randwrite_4k." in found.answer.said
    text = html.unescape(render(found, "html"))
    assert "What else differs from old" in text
    assert "kernel: 6.1.0 in old, 6.12.0 in new" in text


def test_the_command_writes_one_page_of_several_results(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    paths, page = three(tmp_path), tmp_path / "page.html"
    assert ran(capfd, "report", *paths, "-o", str(page))[0] == 0
    text = page.read_text(encoding="utf-8")
    assert "DIFFERENT JOBS" in text
    assert re.search(r"3\.\d+x slower", text)
    hidden = render(redacted(overlay(paths)), "html")
    assert str(tmp_path) in text
    assert str(tmp_path) not in hidden


@pytest.mark.parametrize(
    ("words", "why"),
    [(("--format", "json"), "--format"), (("--base", "a"), "--base")],
)
def test_what_is_for_one_result_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    code, said, problem = ran(capfd, "report", *three(tmp_path), *words)
    assert (code, said) == (2, "")
    assert f"{why} is for one result, and 3 are named" in problem


def test_a_result_is_not_compared_with_itself(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = stored(tmp_path / "old", cell(READ))
    code, _, problem = ran(capfd, "report", path, path, "-o", str(tmp_path / "page.html"))
    assert code == 2
    assert "cannot be compared with itself" in problem
    assert not (tmp_path / "page.html").exists()


def test_results_of_one_name_are_told_apart(tmp_path: Path) -> None:
    paths = []
    for name in ("x", "y"):
        made = Path(stored(tmp_path / f"made-{name}", cell(READ)))
        (tmp_path / name).mkdir()
        paths.append(str(made.rename(tmp_path / name / "r")))
    assert [target.name for target in overlay(paths).targets] == ["r (1)", "r (2)"]
