"""From pydantic's errors to one SpecError with file, line, key and remedy; near misses of a word."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pydantic import ValidationError

from leadline.yamlio.yaml_source import Document, Path, shorten

_TYPES = {
    "dict_type": ("a mapping is needed here", "write `key: value` pairs, one on each line"),
    "model_type": ("a mapping is needed here", "write `key: value` pairs, one on each line"),
    "model_attributes_type": ("a mapping is needed here", "write `key: value` pairs, one on each line"),
    "list_type": ("a list is needed here", "write [a, b, c]"),
    "tuple_type": ("a list is needed here", "write [a, b, c]"),
    "string_type": ("a text is needed here", "put it in quotes if it is meant as a text"),
}


@dataclass(frozen=True)
class Vocabulary:
    """The words of a kind of document: the keys that may stand beside that of a path, and their other names.

    `manual` is where they are described.
    """

    known: Callable[[Path], Iterable[str]]
    manual: str
    synonyms: Mapping[str, str] = field(default_factory=dict)


def suggest(word: str, known: Iterable[str], synonyms: Mapping[str, str] | None = None) -> str:
    """A remedy for an unknown word: the nearest known one, and what there is."""
    names = list(known)
    near = (synonyms or {}).get(word)
    if near not in names:
        near = next(
            iter(difflib.get_close_matches(word, names, n=1, cutoff=0.6 if len(word) > 3 else 0.5)), None
        )
    listed = f"known are {', '.join(names)}" if names else ""
    return f"did you mean {near}? {listed}".strip() if near else listed


def translate(error: ValidationError, document: Document, words: Vocabulary, at: Path = ()) -> NoReturn:
    """Raise the SpecError of the first problem in the file's order; what was validated stands `at` a path."""
    document.fail(*describe(error, document, words, at))


def describe(
    error: ValidationError, document: Document, words: Vocabulary, at: Path = ()
) -> tuple[Path, str, str]:
    """Path, message and remedy of the first problem in the file's order."""
    problems = error.errors(include_url=False)

    def order(problem: Any) -> tuple[bool, int]:
        """A wrong key before what is missing because of it, then by line."""
        line = document.place(written_path((*at, *problem["loc"]), document.value)).line
        return problem["type"] == "missing", line or 0

    first = min(problems, key=order)
    path = written_path((*at, *first["loc"]), document.value)
    return path, *_words(first, path, words)


def written_path(location: tuple[str | int, ...], value: Any) -> Path:
    """pydantic's location without the parts that name types rather than keys."""
    path: list[str | int] = []
    for part in location:
        inside = isinstance(value, dict) and part in value
        if inside or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
            value = value[part]
            path.append(part)
        elif isinstance(value, dict):
            path.append(part)
            break
    return tuple(path)


def _words(problem: Any, path: Path, words: Vocabulary) -> tuple[str, str]:
    kind, context, given = problem["type"], problem.get("ctx") or {}, problem["input"]
    if kind == "leadline":
        return context["message"], context["remedy"]
    if kind == "extra_forbidden":
        return "unknown key", suggest(str(path[-1]), words.known(path), words.synonyms)
    if kind == "missing":
        return "the key is missing", f"add `{path[-1]}: …`"
    if kind == "literal_error":
        choices = [
            choice.strip().strip("'") for choice in context["expected"].replace(" or ", ", ").split(",")
        ]
        return f"{shorten(repr(given))} is not one of them", suggest(str(given), choices, words.synonyms)
    if kind in _TYPES:
        needed, remedy = _TYPES[kind]
        return f"{needed}, not {_kind_of(given)}", remedy
    return str(problem["msg"]), words.manual


def _kind_of(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return shorten(repr(value))
