"""What commands leave out of libraries is not loaded nor written, and is there for who asks by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from leadline import import_guards
from leadline.errors import ResultError
from leadline.import_guards import duckdb_in_memory


def said(program: str) -> str:
    """What a fresh interpreter prints, since modules of this one are loaded already."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout.strip()


def test_pyarrow_comes_without_pandas_in_a_command_only() -> None:
    pytest.importorskip("pandas")
    program = """
import sys
from leadline.import_guards import leave_out_pandas
WHERE
import pyarrow
print(pyarrow.array(["a"]).to_pylist(), "pandas" in sys.modules)
"""
    assert said(program.replace("WHERE", "leave_out_pandas()")) == "['a'] False"
    assert said(program.replace("WHERE", "")) == "['a'] True"


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
    package = Path(import_guards.__file__).parent
    files = [path for path in package.rglob("*.py") if "duckdb.connect(" in path.read_text(encoding="utf-8")]
    assert files == [Path(import_guards.__file__)]
