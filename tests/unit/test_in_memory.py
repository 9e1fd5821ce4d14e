"""Tables in memory load and write nothing in passing, and hold what they were given."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from leadline import in_memory
from leadline.in_memory import sqlite_in_memory


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
    """Another account may have made files there, with links in it: what does not fit stays in memory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
    largest = f"{numbers} SELECT count(*) FROM (SELECT hex(i) || hex(-i) AS h FROM n ORDER BY h LIMIT 90000)"  # noqa: S608
    seen: set[str] = set()
    with sqlite_in_memory() as connection:
        connection.execute("PRAGMA cache_size = 10")
        connection.set_progress_handler(lambda: seen.update(opened(tmp_path)), 10_000)
        assert connection.execute(largest).fetchone() == (90000,)
    assert seen == set()
    assert list(tmp_path.iterdir()) == []


def opened(directory: Path) -> set[str]:
    """What this process has open there: SQLite removes the name of a file that it sorts in."""
    found = set()
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.add(str(one.readlink()))
    return {link for link in found if link.startswith(str(directory))}


def test_functions_of_questions_leave_out_what_is_not_known() -> None:
    with sqlite_in_memory() as connection:
        asked = "SELECT greatest(1, 3, NULL), least(2.0, 3), greatest(NULL, NULL), least(NULL, 4)"
        assert connection.execute(asked).fetchone() == (3, 2.0, None, 4)
        asked = "SELECT regexp_matches('a.so', '\\.so$'), regexp_matches('a.so' || char(10), '\\.so$')"
        assert connection.execute(asked).fetchone() == (1, 0)
        assert connection.execute("SELECT starts_with('/dev/shm/a', '/dev/shm/')").fetchone() == (1,)


def test_memory_that_does_not_suffice_is_an_error_that_says_so() -> None:
    program = """
import resource
from leadline.errors import ResultError
from leadline.in_memory import sqlite_in_memory
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
try:
    with sqlite_in_memory() as connection:
        connection.execute("SELECT hex(zeroblob(450000000))").fetchall()
except ResultError as error:
    print(error)
"""
    assert "do not fit into the memory" in said(program)


def test_all_of_the_package_asks_sqlite_that_way() -> None:
    package = Path(in_memory.__file__).parent
    files = [path for path in package.rglob("*.py") if "sqlite3.connect(" in path.read_text(encoding="utf-8")]
    assert files == [Path(in_memory.__file__)]
