"""YAML with places: what is wrong is named with file and line, and nothing grows without bound."""

from __future__ import annotations

import contextlib
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import SpecError
from leadline.study.yaml_source import read_study
from leadline.yamlio.yaml_source import SOURCE_MAX_BYTES, read_table, read_yaml

PACKAGE = Path(str(resources.files("leadline")))
TABLES = sorted(path for path in PACKAGE.rglob("*.yaml") if "studies" not in path.parts)


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


@pytest.mark.parametrize("path", TABLES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_table_of_the_package_is_the_same_by_either_reader(path: Path) -> None:
    """Values, their types, and the line of each."""
    text = path.read_text(encoding="utf-8")
    slowly, fast = read_yaml(text, path.name, {}), read_table(text, path.name)
    assert repr(fast.value) == repr(slowly.value)
    assert fast.places == slowly.places


def test_a_table_has_the_types_of_yaml_1_2_and_quotes_make_a_text() -> None:
    document = read_table("a: [1, 2.5, yes, on, true, 010, 0x10, 1:30, ~, -3, .5, '7', 1e3]\nb:\n", "t.yaml")
    assert document.value == {
        "a": [1, 2.5, "yes", "on", True, 10, 16, "1:30", None, -3, 0.5, "7", 1e3],
        "b": None,
    }


def test_a_table_that_is_no_yaml_is_refused_as_any_file_is() -> None:
    with pytest.raises(SpecError) as caught:
        read_table("a: [1\n", "t.yaml")
    assert (caught.value.source, caught.value.line) == ("t.yaml", 2)


def test_a_key_that_a_table_gives_twice_is_refused() -> None:
    with pytest.raises(SpecError, match="given twice"):
        read_table("a: 1\na: 2\n", "t.yaml")
