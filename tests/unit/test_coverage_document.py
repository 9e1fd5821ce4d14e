"""The document of coverage is made section by section: what is not made anew stays, in its order."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
ORDER = ("first", "second", "third")


@pytest.fixture
def document(monkeypatch: pytest.MonkeyPatch) -> type:
    monkeypatch.setattr(sys, "path", [str(BENCH), *sys.path])
    import harness

    return harness.Document


def test_a_section_made_later_leaves_the_others_alone(document: type, tmp_path: Path) -> None:
    path = tmp_path / "c.md"
    document(path, "# Title\n", ORDER).make("third", lambda: iter(["## Third\n", "| 3 |\n"]))
    document(path, "# Title\n", ORDER).make("first", lambda: iter(["## First\n", "one\n"]))
    document(path, "# Title\n", ORDER).make("third", lambda: iter(["## Third\n", "| 4 |\n"]))
    text = path.read_text()
    assert text.startswith("# Title\n")
    assert text.index("## First") < text.index("## Third")
    assert "| 4 |" in text
    assert "| 3 |" not in text
    assert text.count("*Made 20") == 2
    assert text.count("load average") == 2


def test_the_stored_document_has_a_date_for_each_section(document: type) -> None:
    found = document(BENCH / "coverage.md", "", ()).sections
    assert {"coverage", "fresh", "budget", "level_shift", "real"} <= set(found)
    assert all("*Made " in text for text in found.values())
