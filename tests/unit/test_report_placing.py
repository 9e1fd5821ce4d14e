"""Commands that a screen suggests have the path of the result, as a shell needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline.report.texts import changed_texts, placed, word_for


@dataclass(frozen=True)
class Part:
    text: str
    steps: tuple[str, ...]
    known: Mapping[str, list[str]]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see: leadline show DIR --all", "see: leadline show 'my r' --all"),
        ("finish it: leadline tune search --resume DIR", "finish it: leadline tune search --resume 'my r'"),
        ("leadline report DIR; leadline undo DIR", "leadline report 'my r'; leadline undo 'my r'"),
        ("leadline run quick --target here=DIR", "leadline run quick --target here=DIR"),
        ("leadline show DIR/proof", "leadline show DIR/proof"),
        ("the DIR of the log", "the DIR of the log"),
        ("leadline list DIRECTORY", "leadline list DIRECTORY"),
    ],
)
def test_a_command_names_the_result(text: str, shown: str) -> None:
    assert placed(text, word_for(Path("my r"))) == shown
    assert placed(text, word_for(None)) == text


def test_every_text_is_placed_however_deep() -> None:
    one = Part("leadline show DIR", ("a", "leadline undo DIR"), {"leadline show DIR": ["leadline show DIR"]})
    found = changed_texts((one, 1, None), lambda text: placed(text, "r"))
    assert found == (
        Part("leadline show r", ("a", "leadline undo r"), {"leadline show DIR": ["leadline show r"]}),
        1,
        None,
    )
