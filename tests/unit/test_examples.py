"""Pages of examples are short, and made from the built-in studies as they are now."""

import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STUDIES = ROOT / "python" / "leadline" / "studies"
PAGES = sorted(path for path in (ROOT / "docs" / "examples").glob("*.md") if path.name != "README.md")
MADE = re.compile(r"<!-- Made by tools/examples\.sh from ([\w-]+)\.yaml, sha256 ([0-9a-f]{16}) -->")


def made_from(page: Path) -> tuple[str, str]:
    found = MADE.fullmatch(page.read_text().splitlines()[0])
    assert found, f"{page.name} does not say what it was made from"
    return found[1], found[2]


def test_there_are_examples():
    assert {"quick", "metadata", "demo"} <= {page.stem for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_an_example_is_of_its_study_as_it_is_now(page):
    study, digest = made_from(page)
    now = hashlib.sha256((STUDIES / f"{study}.yaml").read_bytes()).hexdigest()[:16]
    assert digest == now, f"{study}.yaml has changed: tools/examples.sh {page.stem}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_an_example_fits_two_screens_of_a_terminal(page):
    text = page.read_text()
    screens = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert len(screens) == 2
    for screen in screens:
        lines = screen.splitlines()
        assert 3 < len(lines) <= 42
        assert max(map(len, lines)) <= 100
