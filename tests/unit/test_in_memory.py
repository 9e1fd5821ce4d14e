"""Tables in memory load and write nothing in passing, and hold what they were given."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from leadline import in_memory
from leadline.errors import ResultError
from leadline.in_memory import duckdb_in_memory


def said(program: str) -> str:
    """What a fresh interpreter prints, since modules of this one are loaded already."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout.strip()


def test_a_column_is_made_without_pandas() -> None:
    pytest.importorskip("pandas")
    program = """
import sys
import pyarrow
from leadline.in_memory import arrow_column
print(MADE.to_pylist(), "pandas" in sys.modules)
"""
    assert said(program.replace("MADE", "arrow_column(['a'], pyarrow.string())")) == "['a'] False"
    assert said(program.replace("MADE", "pyarrow.array(['a'])")) == "['a'] True"


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [1, None, -(1 << 63), (1 << 63) - 1]),
        (pa.float64(), [0.5, None, -0.0, float("inf"), 3]),
        (pa.bool_(), [True, None, False, *[True] * 9]),
        (pa.string(), ["a", None, "", "\u00e4\U0001f600"]),
        (pa.binary(), [b"\0\xff", None, b""]),
    ],
)
@pytest.mark.parametrize("take", [lambda values: values, lambda values: values[:1], lambda _: []])
def test_a_column_is_what_arrow_makes_of_the_values(
    kind: pa.DataType, values: list[object], take: Callable[[list[object]], list[object]]
) -> None:
    made = in_memory.arrow_column(take(values), kind)
    made.validate(full=True)
    assert made.equals(pa.array(take(values), kind))


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        (pa.int64(), 1 << 63, OverflowError),
        (pa.int64(), 1.5, TypeError),
        (pa.float64(), "1", TypeError),
        (pa.string(), "\ud800", UnicodeEncodeError),
        (pa.string(), 1, TypeError),
    ],
)
def test_a_column_refuses_what_it_cannot_hold(
    kind: pa.DataType, value: object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        in_memory.arrow_column([value], kind)


def test_no_question_writes_into_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another account may have made `.tmp` there, with links in it: DuckDB's names are known."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".tmp").mkdir()
    larger = "CREATE TABLE t AS SELECT hash(i)::VARCHAR || hash(i + 1)::VARCHAR FROM range(300000) r(i)"
    small = duckdb_in_memory(memory_limit="6MB")
    with pytest.raises(ResultError, match="do not fit into the memory"), small as connection:
        connection.execute(larger)
    assert [*tmp_path.iterdir(), *(tmp_path / ".tmp").iterdir()] == [tmp_path / ".tmp"]


def test_all_of_the_package_asks_duckdb_that_way() -> None:
    package = Path(in_memory.__file__).parent
    files = [path for path in package.rglob("*.py") if "duckdb.connect(" in path.read_text(encoding="utf-8")]
    assert files == [Path(in_memory.__file__)]
