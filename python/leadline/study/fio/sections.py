"""The text of a job file: sections, `include`, `${ENV}`, what [global] gives; and values in fio's notation.

Values are read as fio's own parser reads them. Where fio takes less than what is written (`1.5m` as 1, `1min`
as a microsecond), it is an error here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from leadline import units
from leadline.errors import SpecError
from leadline.yamlio.yaml_source import SOURCE_MAX_BYTES, WrittenAt, shorten

_SIZE = re.compile(r"(0x[0-9a-f]{1,16}|[0-9]{1,19})([kmgtp]?)(ib|i|b)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_TIME = re.compile(r"([0-9]{1,15})(us|usec|ms|msec|s|m|h|d)?", re.IGNORECASE)
_TIME_UNITS_NS = {
    "us": 1_000,
    "usec": 1_000,
    "ms": 1_000_000,
    "msec": 1_000_000,
    "s": units.NS_PER_S,
    "m": 60 * units.NS_PER_S,
    "h": 3_600 * units.NS_PER_S,
    "d": 86_400 * units.NS_PER_S,
}
_PREFIX_POWERS = (1000, 1024)  # what kb_base may be


def switch(option: FioOption) -> bool:
    """`name`, `name=1` and `name=0`."""
    if option.value in ("", "1"):
        return True
    if option.value == "0":
        return False
    raise option.fail(f"{shorten(option.value)!r} is neither 0 nor 1", "write 1 or 0")


def whole(option: FioOption, least: int = 0, most: int = 2**31 - 1) -> int:
    """A plain number; fio reads the prefixes of sizes here, too."""
    found = _bytes(option.value, option.prefix_power)
    if found is None or not least <= found <= most:
        words = f"{shorten(option.value)!r} is no whole number from {least} to {most}"
        raise option.fail(words, f"write for example {option.name}={max(least, 1)}")
    return found


def percent(option: FioOption) -> int:
    """A share in percent, with or without the sign."""
    plain = option.value.removesuffix("%").strip()
    if not re.fullmatch(r"[0-9]{1,3}", plain) or int(plain) > 100:
        raise option.fail(f"{shorten(option.value)!r} is no percentage", "write a number from 0 to 100")
    return int(plain)


def size(option: FioOption, text: str | None = None) -> int:
    """Bytes: `k`, `kb` and `ki` are 1024 and `kib` is 1000, or with kb_base=1000 the reverse."""
    written = option.value if text is None else text
    if written.endswith("%"):
        raise option.fail("is a share of a file that exists", "write bytes, for example size=1g")
    found = _bytes(written, option.prefix_power)
    if found is None:
        words = f"{shorten(written)!r} is not a size that fio reads whole"
        raise option.fail(words, "write bytes, for example 4k, 1g or 1536k; no fraction and no blank")
    if found > units.SIZE_MAX_BYTES:
        raise option.fail(f"{shorten(written)!r} is larger than a file can be", "write for example 1g")
    return found


def power(option: FioOption) -> int:
    """kb_base."""
    if option.value not in map(str, _PREFIX_POWERS):
        raise option.fail(f"{shorten(option.value)!r} is neither 1000 nor 1024", "write kb_base=1024")
    return int(option.value)


def _bytes(text: str, prefix_power: int) -> int | None:
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    number = int(match[1], 16 if match[1][:2].lower() == "0x" else 10)
    binary = match[2] and (match[3] or "").lower() == "ib"
    base = sum(_PREFIX_POWERS) - prefix_power if binary else prefix_power
    return number * int(base ** _POWERS[match[2].lower()])


def time_ns(option: FioOption, unit: str) -> int:
    """Nanoseconds; a plain number is in `unit`, the option's own."""
    match = _TIME.fullmatch(option.value)
    if match is None:
        words = f"{shorten(option.value)!r} is not a time that fio reads whole"
        raise option.fail(words, "write a whole number with us, ms, s, m, h or d: 30s, 5m, 1500ms")
    found = int(match[1]) * _TIME_UNITS_NS[(match[2] or unit).lower()]
    if found > units.DURATION_MAX_NS:
        raise option.fail(f"{shorten(option.value)!r} is longer than a year", "write for example 30s")
    return found


def split(option: FioOption, text: str) -> str:
    """One direction of bssplit in a study's notation: bytes, and the shares as they were written."""
    parts = (part.partition("/") for part in text.split(":"))
    return ":".join(f"{size(option, name.strip())}{slash}{share}" for name, slash, share in parts)


JOBS_MAX = 2_000  # as many works as a study may have
OPTIONS_MAX = 500  # of one section
FILES_MAX = 16  # included ones, and how deep: fio's own bound
LINE_MAX = 4_096

ReadFile = Callable[[Path], str]

_GLOBAL = "global"  # and what begins like it, for fio
_KEYWORD = re.compile(r"\$(pagesize|mb_memory|ncpus)\b")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class FioOption:
    """`name=value` as it was written, and where; the value is empty for a bare name."""

    name: str
    value: str
    at: WrittenAt
    section: int  # counted from the file's first
    prefix_power: int = 1024  # what `k` is, which kb_base of this section or one before it says
    earlier: WrittenAt | None = None  # where it was said before, in the same section or in [global]

    def fail(self, message: str, remedy: str) -> SpecError:
        """The error of this option, with its file and line."""
        return SpecError(message, remedy, source=self.at.source, line=self.at.line, key=self.name)


@dataclass(frozen=True)
class FioSection:
    """A job: its name, and its options with those of [global] sections before it; a later one wins.

    `number` is counted from the file's first section, as that of each option is.
    """

    name: str
    at: WrittenAt
    number: int
    options: Mapping[str, FioOption]


@dataclass(frozen=True)
class _Line:
    text: str
    at: WrittenAt
    included: bool


def read_sections(
    text: str, source: str, environment: Mapping[str, str], read_file: ReadFile
) -> tuple[FioSection, ...]:
    """The jobs of a job file, in order. Raises SpecError with file and line.

    `read_file` gives the text of an included file, whose path is relative to the file that includes it.
    """
    _check_length(text, source)
    jobs: list[FioSection] = []
    inherited: dict[str, FioOption] = {}
    own: dict[str, FioOption] | None = None
    number = 0
    for line in _lines(text, source, read_file, (source,), [0]):
        if line.text.startswith("["):
            name = _section_name(line)
            number += 1
            if name.startswith(_GLOBAL):
                own = inherited
                continue
            if len(jobs) == JOBS_MAX:
                raise _error(line.at, f"more than {JOBS_MAX} jobs", "split the file, or use numjobs")
            own = dict(inherited)
            jobs.append(FioSection(name, line.at, number, own))
            continue
        if own is None:
            remedy = "begin with [global] or the name of a job, for example [reads]"
            raise _error(line.at, f"{shorten(line.text)!r} stands before any section", remedy)
        option = _option(line, number, environment)
        before = own.pop(option.name, None)  # so that it stands behind what it may contradict
        own[option.name] = option if before is None else replace(option, earlier=before.at)
        if len(own) > OPTIONS_MAX:
            raise _error(line.at, f"more than {OPTIONS_MAX} options in one section", "is it a job file?")
    if not jobs:
        words = "the file has no job, only [global]" if inherited else "the file has no job"
        raise SpecError(words, "add a section with the name of a job, for example [reads]", source=source)
    return tuple(jobs)


def _lines(
    text: str, source: str, read_file: ReadFile, within: tuple[str, ...], count: list[int]
) -> Iterator[_Line]:
    """Lines that say something, those of included files in their place."""
    for number, raw in enumerate(text.splitlines(), 1):
        at = WrittenAt(source, number)
        if "\0" in raw:
            raise _error(at, "the line has a NUL byte", "give fio's job file, which is text")
        if len(raw) > LINE_MAX:
            raise _error(at, f"the line is longer than {LINE_MAX} letters", "is it a job file?")
        plain = re.split("[;#]", raw, maxsplit=1)[0].strip()
        words = plain.split(None, 1)
        if not plain:
            continue
        if words[0] != "include" or len(words) == 1 or words[1].startswith("="):
            yield _Line(plain, at, len(within) > 1)
            continue
        path = Path(source).parent / words[1]
        if str(path) in within:
            raise _error(at, f"{shorten(words[1])!r} includes itself", "take one of the two lines out")
        count[0] += 1
        if count[0] > FILES_MAX:
            raise _error(at, f"more than {FILES_MAX} included files", "put them into one file")
        try:
            included = read_file(path)
        except SpecError as error:
            message = f"the included file {shorten(str(path))!r}: {error.message}"
            raise _error(at, message, "check the path, which is relative to this file") from None
        _check_length(included, str(path))
        yield from _lines(included, str(path), read_file, (*within, str(path)), count)


def _check_length(text: str, source: str) -> None:
    if len(text) > SOURCE_MAX_BYTES:
        words = f"larger than {SOURCE_MAX_BYTES // 1024} KiB, which no job file needs"
        raise SpecError(words, "use numjobs in place of sections, or split the file", source=source)


def _section_name(line: _Line) -> str:
    if line.included:
        raise _error(line.at, "an included file begins a section", "include options only, as fio does")
    if not line.text.endswith("]"):
        raise _error(line.at, f"{shorten(line.text)!r} is no section", "write [name] on a line of its own")
    name = line.text[1:-1].strip()
    if not name:
        raise _error(line.at, "the section has no name", "write [name]")
    return name


def _option(line: _Line, section: int, environment: Mapping[str, str]) -> FioOption:
    name, _, value = (part.strip() for part in line.text.partition("="))
    if not _NAME.fullmatch(name):
        raise _error(line.at, f"{shorten(line.text)!r} is no option", "write NAME=VALUE")
    keyword = _KEYWORD.search(value)
    if keyword is not None:
        words = f"{keyword[0]} is of the host on which fio runs"
        raise SpecError(words, "write the number", source=line.at.source, line=line.at.line, key=name)
    return FioOption(name, _expanded(value, line.at, environment), line.at, section)


def _expanded(value: str, at: WrittenAt, environment: Mapping[str, str]) -> str:
    def variable(match: re.Match[str]) -> str:
        name = match[1]
        if name not in environment:
            words = f"the environment has no variable {shorten(name)!r}"
            raise _error(at, words, f"set it, for example {shorten(name)}=… leadline run …")
        return environment[name]

    found = _VARIABLE.sub(variable, value)
    if len(found) > LINE_MAX or "\n" in found or "\0" in found:
        raise _error(at, "the variable's value is no value of an option", "set it to one line of text")
    return found


def _error(at: WrittenAt, message: str, remedy: str) -> SpecError:
    return SpecError(message, remedy, source=at.source, line=at.line)
