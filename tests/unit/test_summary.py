"""The summary beside a result: a judgement that stops at cells makes it, in processes of its own."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from host_studies import names, stored

from leadline.cli.read.indexes import indexed_results
from leadline.store.index import IndexRow, journal_size, read_indexes
from leadline.store.reader import open_result
from leadline.verdict import findings, summary
from leadline.verdict.findings import build_findings
from leadline.verdict.summary import index_rows, summarise

DATA = Path(__file__).parents[1] / "data" / "fuzz" / "result"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of two cells on three hosts, one of which is slow: its cells have codes."""
    path = tmp_path_factory.mktemp("summary") / "made"
    stored(path, names(3), lambda host, block, _cell: (90 if host == "node0003" else 100) * 1e6 + block * 1e6)
    return path


@pytest.mark.parametrize("which", ["made", "one host"])
def test_the_short_judgement_gives_the_rows_of_the_whole_one(made: Path, which: str) -> None:
    path = made if which == "made" else DATA
    result = open_result(path)
    whole = index_rows(result, build_findings(result, with_charts=False).cells, journal_size(path))
    assert summarise(path) == whole
    assert whole
    assert any(row.value is not None and row.low is not None for row in whole) or path == DATA


def test_a_summary_is_made_without_sentences_and_sections(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a summary needs none of this")

    for name in ("_said", "_sections", "_answer", "compare_targets"):
        monkeypatch.setattr(findings, name, refuse)
    assert summarise(made)


def _copies(made: Path, place: Path, count: int) -> list[Path]:
    paths = [place / f"r{number}" for number in range(count)]
    for path in paths:
        shutil.copytree(made, path)
    return paths


def _killing(victim: Path) -> Callable[[Path], tuple[IndexRow, ...]]:
    def summarise_or_die(path: Path) -> tuple[IndexRow, ...]:
        if path == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        return summarise(path)

    return summarise_or_die


def test_a_result_that_ends_the_process_that_judges_it_is_named_and_the_others_are_judged(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = _copies(made, tmp_path, 4)
    monkeypatch.setattr(summary, "summarise", _killing(paths[1]))
    rows, problems, notes = indexed_results(tmp_path, lambda figure: figure.endswith(".bandwidth"))
    good = [paths[0], *paths[2:]]
    assert [row.path for row in rows] == [path for path in good for _ in range(2)]
    assert {row.row.metric for row in rows} == {"bandwidth"}
    assert problems == {paths[1]: f"{paths[1]} cannot be read: the process that read it ended by SIGKILL"}
    assert notes == []
    assert list(read_indexes(paths)) == good
