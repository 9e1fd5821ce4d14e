"""YAML with places: what is wrong is named with file and line, and nothing grows without bound."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import SpecError
from leadline.study.yaml_source import read_study
from leadline.written.yaml_source import SOURCE_MAX_BYTES


def check(text: str, line: int | None, message: str, environment: dict[str, str] | None = None) -> None:
    with pytest.raises(SpecError) as caught:
        read_study(text, "my.yaml", environment or {})
    assert caught.value.source == "my.yaml"
    assert caught.value.line == line
    assert message in caught.value.message
    assert caught.value.remedy


def test_values_follow_yaml_1_2() -> None:
    document = read_study("a: [1, 2.5, yes, true, 010, 0x10, 0o17, -3, 4k]", "my.yaml", {})
    assert document.value == {"a": [1, 2.5, "yes", True, 10, 16, 15, -3, "4k"]}


def test_each_key_knows_its_line() -> None:
    document = read_study("a: 1\nb:\n  c:\n    - x\n    - y\n", "my.yaml", {})
    assert document.place(("b", "c", 1)).line == 5
    assert document.place(("b", "c")).line == 3
    assert document.place(("b", "nowhere")).line == 2


def test_the_engine_null_is_a_word_and_an_empty_value_is_not() -> None:
    document = read_study("engine: null\nother: null\nempty:\n", "my.yaml", {})
    assert document.value == {"engine": "null", "other": None, "empty": None}


def test_variables_come_from_the_environment_with_their_type() -> None:
    document = read_study("a: ${N}\nb: '${N}'\nc: x${N}y\nd: $${N}", "my.yaml", {"N": "12"})
    assert document.value == {"a": 12, "b": "12", "c": "x12y", "d": "${N}"}


def test_a_variable_cannot_add_structure() -> None:
    document = read_study("a: ${N}\n", "my.yaml", {"N": "1\nb: 2"})
    assert document.value == {"a": "1\nb: 2"}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "given twice (first in line 1)"),
        ("a: 1\nb: ${NOWHERE}\n", 2, "NOWHERE is not set"),
        ("a: ${N-1}", 1, "is no variable"),
        ("a: ${N", 1, "is no variable"),
        ("a: [1\n", 2, "not valid YAML"),
        ("a: b: c", 1, "not valid YAML"),
        ("a: *nope", 1, "nope"),
        ("a: 1\n---\nb: 2\n", 2, "single document"),
        ("a: !!python/object:os.system x", 1, "is not used here"),
        ("a: !own {b: 1}", 1, "is not used here"),
        ("a: !!binary aGk=", 1, "is not used here"),
        ("a: 2001-01-01", 1, "is not used here"),
        ("a: .nan", 1, "neither a number"),
        ("%YAML 1.1\n---\na: yes", 3, "neither a number"),
        ("a:\n  <<: {b: 1}", 2, "merge keys"),
        ("[a]: 1", 1, "plain word"),
        ("a: &x [*x]", 1, "nested deeper"),
        ("[" * 5_000, None, "nested too deeply"),
        ("", None, "empty"),
        ("# nothing\n", None, "empty"),
        ("a: \0", None, "not valid YAML"),
        ("#" * (SOURCE_MAX_BYTES + 1), None, "larger than"),
    ],
)
def test_what_is_wrong_is_named(text: str, line: int | None, message: str) -> None:
    check(text, line, message)


def test_an_anchor_bomb_ends_early() -> None:
    rows = ["a0: &a0 [1,1,1,1,1,1,1,1,1,1]"]
    rows += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    check("\n".join(rows), 1, "aliases counted")


def test_a_message_sends_nothing_to_the_terminal_that_it_obeys() -> None:
    with pytest.raises(SpecError) as caught:
        read_study('"\\e[31mred": ${NOWHERE}', "my.yaml", {})
    assert "\x1b" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(SpecError):
        assert read_study(text, "my.yaml", {}).source == "my.yaml"
