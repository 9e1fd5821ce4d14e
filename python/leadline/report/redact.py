"""Findings that may leave the house: hosts, paths, addresses and command lines replaced."""

from __future__ import annotations

import html
import json
import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

from leadline.report.texts import changed_texts
from leadline.units import printable
from leadline.verdict.model import Findings

# What nobody told us of: an unknown path ends where a sentence can, as its names may hold spaces.
_PATH = re.compile(r"(?:(?<=>)|(?<![\w.<>/]))/(?!proc/(?:\d+|PID)/\w+(?![\w/]))[^\s/'\";:,()][^'\";:,()\n]*")
_LINK = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://(?=[^\s<])[^\s'\"<>()]+")
_ADDRESS = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"
    r"|\b[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){3,7}\b"
    r"|\b[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4})*::(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4})*)?"
    r"|(?<![\w:])::[0-9a-fA-F][0-9a-fA-F:]*"
)
_PROCESS = re.compile(r"(?<=most of it ).+? \(process \d+\)", re.DOTALL)
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
# What a failed program printed, behind how it ended.
_PRINTED = re.compile(r"((?:exit code \d+|ended by \w+)): .* \(program\)", re.DOTALL)
_IDENTIFYING = re.compile(r"host ?name|^host$|machine|node|user|serial", re.IGNORECASE)
_BETWEEN_PARTS = re.compile(r"[\s/\\=,:;@'\"&?#%|<>()\[\]{}$!*]+")
# An option of leadline's own, or a setting with a number: advice has the same.
_OPTION = re.compile(r"--?([a-z0-9-]+)|([a-z0-9_.]+)=\d[\d.,]*[a-z%/]{0,6}")
_PART_LETTERS_MIN = 3  # a shorter part tells nothing, and would be found everywhere
_FREE_LETTERS = 8  # as long a text is found within words, too

_Value = TypeVar("_Value")


def redacted(findings: Findings) -> Findings:
    """The same findings with names of the site replaced; figures and names of targets stay.

    Targets and works keep the names that the user gave them: rename them before sharing where they tell
    something. So does a single word of a path or command line that is one of leadline's own, as `data`.
    """
    hidden = {key for key in findings.host if _IDENTIFYING.search(key)}
    shown = replace(findings, private={})
    names = _Names(_secrets(findings, hidden), "\n".join(_texts(shown)), _kept(findings))

    def clean(value: Any) -> Any:
        return _clean(value, names)

    made_anew = findings.frame.hidden
    cleaned: Findings = clean(replace(shown, sections=()) if made_anew else shown)
    return replace(
        cleaned,
        host={key: "<redacted>" if key in hidden else value for key, value in cleaned.host.items()},
        about="" if findings.frame.command else cleaned.about,
        sections=made_anew(clean) if made_anew else cleaned.sections,
        reproduce=tuple(line for line in cleaned.reproduce if line.startswith("seed ")),
    )


def _secrets(findings: Findings, hidden: set[str]) -> dict[str, str]:
    """Every text that is to go, and what stands for it: what is known best last."""
    found = dict(findings.private)
    for key in hidden:
        host = findings.host[key]
        found |= {host: "<host>", host.partition(".")[0]: "<host>"}
    for target in findings.targets:
        if target.has_storage:
            found[target.url] = f"<path of {target.name}>"
        for key in ("mount_point", "source"):
            value = target.facts.get(key)
            if isinstance(value, str) and len(value) > 1 and value != target.url:
                found[value] = f"<{key.replace('_', ' ')} of {target.name}>"
    return found


def _kept(findings: Findings) -> frozenset[str]:
    """Names that hold a report together: a path may well have the name of its target in it."""
    kept = {name for cell in findings.cells for name in (cell.target, *cell.metrics)}
    kept |= {target.name for target in findings.targets}
    if not findings.frame.command:
        kept |= {name for cell in findings.cells for name in (cell.id, cell.work, *_texts(cell.factors))}
    return frozenset(name.lower() for name in kept)


class _Names:
    """Texts to replace, in every form that a sentence may have them in, the longest first."""

    def __init__(self, secrets: Mapping[str, str], all_text: str, kept: frozenset[str]) -> None:
        text = all_text.lower()
        known: dict[str, str] = {}
        for secret, label in secrets.items():
            for part in dict.fromkeys(_parts(secret)):
                found = (form.lower() for form in _forms(part) if part.lower() not in kept)
                known |= {form: known.get(form, _short(label)) for form in found if form in text}
        for secret, label in secrets.items():  # a whole text has its own label, even where it is a part
            if secret.lower() in known:
                known[secret.lower()] = label
        self._labels = known
        longest_first = sorted(known, key=len, reverse=True)
        self._any = re.compile("|".join(map(_bounded, longest_first)) or r"(?!)", re.IGNORECASE)

    def replaced(self, text: str) -> str:
        """`text` without any of them."""
        return self._any.sub(lambda found: self._labels.get(found[0].lower(), "<path>"), text)


def _short(label: str) -> str:
    return label.partition(" of ")[0].rstrip(">") + ">"


def _bounded(text: str) -> str:
    """A pattern for a text; a short one counts as a whole word only."""
    if len(text) >= _FREE_LETTERS:
        return re.escape(text)
    before, after = (r"(?<!\w)" if text[0].isalnum() else ""), (r"(?!\w)" if text[-1].isalnum() else "")
    return before + re.escape(text) + after


def _parts(text: str) -> Iterator[str]:
    """A text itself, each name in it if it is a path or an address, and each word in that."""
    whole = text.strip()
    if _tells(whole):
        yield whole
    for name in whole.split("/"):
        # The scheme of an address stands before a colon, as names of targets do.
        alone = name.strip(" :")
        if name != whole and _tells(alone):
            yield alone
        for word in _BETWEEN_PARTS.split(name):
            for part in (word, word.lstrip("-"), word.partition(".")[0], word.rpartition(".")[0]):
                if part != name and _tells(part):
                    yield part


def _tells(text: str) -> bool:
    """False for what would be found everywhere: numbers, and words and options of leadline's own."""
    if sum(map(str.isalnum, text)) < _PART_LETTERS_MIN or text.replace(".", "").isdigit():
        return False
    option = _OPTION.fullmatch(text.lower())
    words = (option[1] or option[2]).split(".") if option else (text.lower(),)
    return not _own_words().issuperset(words)


@cache
def _own_words() -> frozenset[str]:
    """Every word that leadline may say by itself: those of its sources, which tell of no site."""
    found: set[str] = set()
    folders = [resources.files("leadline")]
    while folders:
        for entry in folders.pop().iterdir():
            if entry.is_dir():
                folders.append(entry)
            elif entry.name.endswith((".py", ".yaml", ".toml")):
                found.update(re.findall(r"[a-z0-9]+(?:[_-][a-z0-9]+)*", entry.read_text("utf-8").lower()))
    return frozenset(found | {word for joined in found for word in re.split("[_-]", joined)})


def _forms(text: str) -> set[str]:
    """How a text looks where it was quoted or encoded."""
    quoted = {text, repr(text)[1:-1], json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    encoded = {quote(text, safe="/"), quote(text, safe=""), quote_plus(text), html.escape(text)}
    shell = {shlex.quote(text), re.sub(r"([^\w/.-])", r"\\\1", text)}
    shown = {printable(text), unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)}
    return quoted | encoded | shell | shown


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _texts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _clean(value: _Value, names: _Names) -> _Value:
    """`value` with every text in it, however deep, cleaned."""
    return changed_texts(
        value, lambda text: _clean_text(text, names), lambda found: _clean_mapping(found, names)
    )


def _clean_mapping(value: Mapping[Any, Any], names: _Names) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, item in value.items():
        shown = base = _clean_text(key, names) if isinstance(key, str) else key
        while shown in found:  # two keys must not become one
            shown = f"{base} {len(found) + 1}"
        found[shown] = _clean(item, names)
    if isinstance(found.get("command"), (list, tuple)):  # a program's words can hold anything
        found["command"] = type(found["command"])(["<command>"])
    return found


def _clean_text(text: str, names: _Names) -> str:
    text = names.replaced(text)
    text = _PROCESS.sub("<process>", text)
    text = _PRINTED.sub(r"\1 (program)", text)
    text = _UUID.sub("<uuid>", text)
    text = _LINK.sub("<address>", text)
    text = _ADDRESS.sub("<address>", text)
    return _PATH.sub("<path>", text)
