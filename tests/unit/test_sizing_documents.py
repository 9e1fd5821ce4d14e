"""docs/sizing-documents.md against the program: what the page shows is what its commands print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leadline.cli.main import run_command_line

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sizing-documents.md").read_text(encoding="utf-8")
SECTIONS = dict(
    re.findall(r"size docs/examples/(\w+)-sizing\.yaml --page.*?```text\n(.*?)```", PAGE, re.DOTALL)
)


def test_the_four_documents_are_there() -> None:
    assert set(SECTIONS) == {"suse", "castor", "fermilab", "opencast"}


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_what_the_page_shows_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["size", str(ROOT / "docs" / "examples" / f"{name}-sizing.yaml")]
    assert run_command_line(words) == 0
    said = capsys.readouterr().out
    assert said.startswith(SECTIONS[name])
    row = next(line for line in PAGE.splitlines() if line.lower().startswith(f"| {name} |"))
    hosts = re.findall(r"(\d+) with", row.split("|")[3])
    for count in hosts:
        assert f"{count} hosts, by capacity" in said
    for times in re.findall(r"\d[\d,.]*", row.split("|")[4]):
        assert times in said


def test_pictures_that_the_page_names_are_there() -> None:
    named = re.findall(r"\]\((images/[^)]+)\)", PAGE)
    assert len(named) == 5
    for one in named:
        assert (ROOT / "docs" / one).stat().st_size < 200_000
