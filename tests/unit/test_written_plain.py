"""Plain words of a table have the types that YAML 1.2 gives them, told here or by ruamel.yaml."""

from __future__ import annotations

import pytest

from leadline.yamlio import yaml_source
from leadline.yamlio.yaml_source import _resolve_plain

WORDS = (
    *("null", "Null", "NULL", "nUll", "~", "true", "True", "TRUE", "tRUE", "false", "False", "FALSE"),
    *(
        "yes",
        "no",
        "n",
        "y",
        "on",
        "nan",
        "NaN",
        "inf",
        ".nan",
        ".NaN",
        ".inf",
        "-.inf",
        "true ish",
        "factor",
    ),
    *("0", "-0", "00", "7", "-7", "+7", "10", "1_000", "0x1F", "0o17", "017", "0b1", "9" * 40),
    *("0.5", "-0.5", "00.5", ".5", "5.", "1.5e3", "1e3", "1.2.3", "0.1e-9", "1_0.5", "1:30", "2026-11-26"),
    *("-", "--x", "1/s", "5 s", "20%", "=", "<<", "Ünicode"),
)


@pytest.mark.parametrize("word", WORDS)
def test_each_word_is_what_ruamel_says(word: str) -> None:
    from ruamel.yaml.nodes import ScalarNode

    tag = yaml_source._resolver().resolve(ScalarNode, word, (True, False))
    assert _resolve_plain(word) == str(tag).removeprefix("tag:yaml.org,2002:")
