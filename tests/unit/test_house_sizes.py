"""What outgrows its room is named, and nothing else is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SIZES = Path(__file__).parents[2] / "tools" / "house" / "sizes.py"


def found_in(root: Path) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, str(SIZES), str(root)], capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


def write(root: Path, path: str, lines: int) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n" * lines)


@pytest.mark.parametrize("path", ["python/leadline/a/long.py", "crates/engine/src/a/long.rs"])
def test_a_file_of_six_hundred_lines_is_the_longest(tmp_path: Path, path: str) -> None:
    write(tmp_path, path, 600)
    assert found_in(tmp_path) == (0, [])
    write(tmp_path, path, 601)
    assert found_in(tmp_path) == (1, [f"{path}: 601 lines, more than 600"])


@pytest.mark.parametrize(("lines", "named"), [(70, False), (71, True)])
def test_a_function_of_seventy_lines_is_the_longest(tmp_path: Path, lines: int, named: bool) -> None:
    file = tmp_path / "python" / "leadline" / "one.py"
    file.parent.mkdir(parents=True)
    file.write_text("class Some:\n    async def act(self):\n" + "        pass\n" * (lines - 1))
    expected = [f"python/leadline/one.py:2: act has {lines} lines, more than 70"]
    assert found_in(tmp_path) == ((1, expected) if named else (0, []))
