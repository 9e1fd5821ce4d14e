"""The rule on classes' names catches what it is there for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RULE = Path(__file__).parents[2] / "tools" / "house" / "names.py"


def rule(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(RULE), str(folder)], capture_output=True, text=True, check=False
    )


def test_two_classes_of_one_name_are_refused_with_both_places(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "one.py").write_text("class _Gate:\n    pass\n", encoding="utf-8")
    (tmp_path / "room" / "two.py").write_text("def f():\n    class _Gate: ...\n", encoding="utf-8")
    found = rule(tmp_path)
    assert found.returncode == 1
    assert "_Gate" in found.stdout
    assert "one.py:1" in found.stdout
    assert "room/two.py:2" in found.stdout


def test_names_that_differ_are_no_breach(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("class Gate: ...\nclass Barrier: ...\n", encoding="utf-8")
    found = rule(tmp_path)
    assert (found.returncode, found.stdout) == (0, "")
