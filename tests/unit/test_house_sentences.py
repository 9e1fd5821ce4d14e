"""The rule that no sentence goes without a check sees those that do."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKER = """
from kit import checks

@checks("one")
def one(said): ...
"""


def breaches(root: Path) -> list[str]:
    spec = importlib.util.spec_from_file_location(
        "house_sentences", ROOT / "tools" / "house" / "sentences.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: list[str] = module.breaches(root)
    return found


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('Statement("finding", "x", says="one")', ""),
        ('Statement("finding", "x", says="two")', "'two' has no checker"),
        ('Statement("finding", "x", says=name)', "no name that is a literal"),
        ('Statement("finding", "x")', "no name that is a literal"),
        ('Statement("finding", "x", says="one")\nStatement("caution", "y", says="one")', "several sentences"),
        ("pass", "'one' is said nowhere"),
    ],
)
def test_a_sentence_without_a_name_or_a_checker_is_named(tmp_path: Path, source: str, words: str) -> None:
    package, tests = tmp_path / "python" / "leadline", tmp_path / "tests" / "sentences"
    package.mkdir(parents=True)
    tests.mkdir(parents=True)
    (package / "words.py").write_text(f"{source}\n")
    (tests / "check_one.py").write_text(CHECKER)
    found = " ".join(breaches(tmp_path))
    assert words in found
    assert bool(found) == bool(words)


def test_the_house_has_no_such_sentence() -> None:
    assert breaches(ROOT) == []
