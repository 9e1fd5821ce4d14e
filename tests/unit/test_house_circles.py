"""A circle of a crate's modules is named with its steps; an order, and what only tests use, is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CIRCLES = Path(__file__).parents[2] / "tools" / "house" / "circles.py"


def found_in(root: Path, **files: str) -> tuple[int, list[str]]:
    for name, text in files.items():
        file = root / "crates" / "one" / "src" / f"{name.replace('__', '/')}.rs"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    done = subprocess.run(
        [sys.executable, str(CIRCLES), str(root)], capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    "use",
    [
        "use crate::low::Plain;",
        "use crate::{high::{self, Other}, low};",
        "fn act() -> crate::low::Plain {}",
        "use super::super::low::Plain;",
        "use crate::again::Plain;",
    ],
)
def test_a_circle_is_named_with_its_steps(tmp_path: Path, use: str) -> None:
    code, lines = found_in(
        tmp_path, lib="pub use low::again;\n", high__mod="mod part;", high__part=use, low="use crate::high;"
    )
    assert code == 1
    (line,) = lines
    assert line.startswith("crates/one: ")
    assert "high uses low (src/high/part.rs:1)" in line
    assert "low uses high (src/low.rs:1)" in line


@pytest.mark.parametrize(
    "use",
    [
        "// use crate::low::Plain;",
        "use super::low::Plain;",
        "#[cfg(test)]\nmod tests {\n    use crate::low::Plain;\n}\n",
        "use crate::Plain;",
    ],
)
def test_an_order_is_none(tmp_path: Path, use: str) -> None:
    files = {"lib": "", "high__mod": "#[cfg(test)]\nmod tests;", "high__part": use, "low": "use crate::high;"}
    assert found_in(tmp_path, **files, high__tests="use crate::low;") == (0, [])
