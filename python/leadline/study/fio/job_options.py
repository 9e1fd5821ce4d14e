"""A job's options under their first names, and the work that is made of them.

What leadline makes of each of fio's options: `options.yaml`, read once.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal

from leadline.errors import SpecError
from leadline.knowledge.tables import table_of
from leadline.study import schemes
from leadline.study.fio.sections import FioOption, FioSection
from leadline.study.fio.values import power, switch, whole
from leadline.yamlio.yaml_source import WrittenAt, shorten

How = Literal["kept", "differs", "kept_on", "free", "refused"]


@dataclass(frozen=True)
class KnownOption:
    """An option of fio under its first name, what becomes of it, and what has to be said of that."""

    name: str
    how: How
    words: str


@functools.cache
def known_options() -> Mapping[str, KnownOption]:
    """Every option that the table knows, under each of its names."""
    found: dict[str, KnownOption] = {}
    how: Any
    for how, rows in table_of("leadline.study.fio", "options.yaml").items():
        for names, words in rows.items():
            every = [name.strip() for name in names.split(",")]
            found |= {name: KnownOption(every[0], how, words) for name in every}
    return found


CALLS = ("sync", "psync", "vsync", "pvsync", "pvsync2")  # one call at a time
QUEUES = ("libaio", "io_uring", "posixaio")


@dataclass
class Converted:
    """A job as a work: its options in a study's notation, where each was written, what has to be said."""

    name: str
    at: WrittenAt
    begins_group: bool
    options: dict[str, Any] = field(default_factory=dict)
    places: dict[str, WrittenAt] = field(default_factory=dict)
    search: dict[str, str] | None = None
    delayed: FioOption | None = None
    ends_others: FioOption | None = None
    notes: list[str] = field(default_factory=list)
    files: frozenset[str] = frozenset()  # names that other jobs may have, too

    def put(self, key: str, value: Any, option: FioOption | None = None) -> None:
        """One option of the work, written where fio's was."""
        self.options[key] = value
        self.places[key] = option.at if option else self.at


class JobOptionValues:
    """A job's options under the first name of each, without those that are ignored."""

    def __init__(self, section: FioSection, ignored: Collection[str]) -> None:
        table = known_options()
        skipped = {table[name].name if name in table else name for name in ignored}
        self.section = section
        self.found: dict[str, FioOption] = {}
        self.known: dict[str, KnownOption] = {}
        prefix = section.options.get("kb_base")
        for option in sorted(section.options.values(), key=lambda one: one.name != "ioengine"):
            known = table.get(option.name)
            name = known.name if known else option.name
            if name in skipped:
                continue
            if known is None:
                raise option.fail(*_unknown(option.name, table))
            if known.how == "refused" and not is_off(option):
                raise option.fail(f"is not supported: {known.words}", leave(option))
            self.found.pop(name, None)
            acts = prefix is not None and prefix.section <= option.section
            self.found[name] = replace(option, prefix_power=power(prefix)) if prefix and acts else option
            self.known[name] = known
            if name == "ioengine":
                _check_engine(option)  # before its own options, which nobody else knows

    def get(self, name: str) -> FioOption | None:
        return self.found.get(name)

    def given(self, name: str) -> FioOption | None:
        """The option where it was given, and as more than 0 or none."""
        option = self.found.get(name)
        return None if option is None or is_off(option) else option

    def on(self, name: str) -> bool:
        option = self.found.get(name)
        return option is not None and switch(option)

    def number(self, name: str, otherwise: int, least: int = 0) -> int:
        option = self.found.get(name)
        return otherwise if option is None else whole(option, least)

    def refuse(self, name: str, message: str, remedy: str) -> SpecError:
        """An error at an option that was given, or at the job."""
        option = self.found.get(name)
        if option is not None:
            return option.fail(message, remedy)
        at = self.section.at
        return SpecError(message, remedy, source=at.source, line=at.line, key=name)

    def differences(self) -> Iterator[str]:
        for name, known in self.known.items():
            off = is_off(self.found[name])
            if (known.how == "differs" and not off) or (known.how == "kept_on" and off):
                yield f"{name}: {known.words}"


def _check_engine(option: FioOption) -> None:
    if option.value not in (*CALLS, *QUEUES, "mmap", schemes.storageless().name):
        ways = ", ".join(f"{scheme.name}://" for scheme in schemes.located())
        remedy = f"use libaio, io_uring, psync or mmap; another storage is a target here ({ways})"
        words = f"leadline has no engine {shorten(option.value)!r}"
        raise option.fail(words, f"{remedy}; or --ignore ioengine")


def is_off(option: FioOption) -> bool:
    return option.value in ("0", "none")


def leave(option: FioOption) -> str:
    return f"change the job, or leave the option out with --ignore {option.name}"


def _unknown(name: str, table: Collection[str]) -> tuple[str, str]:
    near = get_close_matches(name, table, 1, 0.8)
    meant = f"did you mean {near[0]}? or " if near else ""
    words = "is not supported: leadline does not know this option of fio's"
    return words, f"{meant}leave it out with --ignore {shorten(name)}"
