"""What a storage that is to be bought has to hold and carry: the part `sizing` of a file of requirements.

Figures have the units of documents (MB are millions of bytes), as those of requirements. What each client
needs may come from a file: whoever read it hands in values, so that no study, trace or result is known here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from leadline.analysis.models.simple import Protection
from leadline.errors import SpecError, UsageError
from leadline.study import schemes
from leadline.units import format_duration, format_number, format_rate, format_size
from leadline.yamlio.fields import Whole, guarded, parse_truth, refuse
from leadline.yamlio.figures import UNITS, parse_figure

_LEAST_BYTES_S = 0.001  # what a written figure holds


@dataclass(frozen=True)
class ReadWork:
    """One client's work as a file has it; None is what the file does not say.

    `source` names the file and the work. `pace_bytes_s` is a pace that the file asks for, `seconds` the time
    in which all bytes were moved where that was measured; `without_pace` says why there is neither.
    `requests` and `at_once` are its operations in words and how many are in flight. `doubts` are said with
    the figures.
    """

    source: str
    read_share: float | None
    moved_bytes: float | None
    pace_bytes_s: float | None
    seconds: float | None
    without_pace: str
    requests: str
    at_once: float | None
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorkedOut:
    """What each client of a population asks for, and `why`: what the figures were made of."""

    population: str
    source: str
    read_bytes_s: float
    write_bytes_s: float
    requests: str
    at_once: float | None
    why: str
    doubts: tuple[str, ...]


def worked_out(name: str, one: Population, work: ReadWork) -> tuple[Population, WorkedOut]:
    """The population with figures in place of its work. Raises SpecError without a place."""
    rate, why = _pace(one, work)
    if work.read_share is None:
        raise SpecError(
            "how its jobs share a rate is not in it", "write within: and the time for all its bytes instead"
        )
    read, write = rate * work.read_share, rate * (1 - work.read_share)
    figures = {
        "read": f"{read:.3f} B/s" if read >= _LEAST_BYTES_S else None,
        "write": f"{write:.3f} B/s" if write >= _LEAST_BYTES_S else None,
        **dict.fromkeys(("work", "rate", "within")),
    }
    if figures["read"] is None and figures["write"] is None:
        raise SpecError("it reads and writes nothing", "leave these clients out")
    found = WorkedOut(name, work.source, read, write, work.requests, work.at_once, why, work.doubts)
    return one.model_copy(update=figures), found


def _pace(one: Population, work: ReadWork) -> tuple[float, str]:
    """Bytes a second of one client, and what they come from."""
    given = "rate" if one.rate is not None else "within" if one.within is not None else None
    if given is not None and work.pace_bytes_s is not None:
        raise SpecError(
            f"it has a pace of its own, {format_rate(work.pace_bytes_s)}, and {given} says another",
            f"leave {given} out, or the pace of the workload",
        )
    if one.rate is not None:
        return quantity(one.rate, "B/s", ""), "the rate that is asked for here"
    if one.within is not None:
        if work.moved_bytes is None:
            raise SpecError("how much it moves is not in it", "write rate: and its bytes a second instead")
        seconds = quantity(one.within, "s", "")
        return work.moved_bytes / seconds, f"its {format_size(work.moved_bytes)} within {one.within}"
    if work.pace_bytes_s is not None:
        return work.pace_bytes_s, "the pace of the workload"
    if work.seconds and work.moved_bytes is not None:
        took = (
            f"its {format_size(work.moved_bytes)} in the {format_duration(work.seconds)} that it took there"
        )
        return work.moved_bytes / work.seconds, took
    raise SpecError(
        f"{work.without_pace}: what it needs is not in it",
        "add rate: and the bytes a second that each of these clients needs, or within: and a time",
    )


def shown_works(asked: AskedSizing, works: Sequence[WorkedOut]) -> tuple[str, ...]:
    """A sentence for each population whose work a file says: what it needs, from where, how many at once."""
    _, _, hour = asked.peak()
    return tuple(_shown(asked.clients[one.population], one, hour) for one in works)


def _shown(clients: Population, one: WorkedOut, hour: int) -> str:
    rates = (("reads", one.read_bytes_s), ("writes", one.write_bytes_s))
    does = " and ".join(f"{verb} {format_rate(rate)}" for verb, rate in rates if rate)
    active = clients.at_work(hour)
    when = f"at {hour}:00 " if isinstance(clients.active, list) else ""
    flight = (
        ""
        if one.at_once is None
        else f", with {_count(active * one.at_once)} outstanding requests ({_count(one.at_once)} each)"
    )
    doubts = "".join(f" {doubt}." for doubt in one.doubts)
    return (
        f"{one.population}, from {one.source}: each {does} ({one.why}; {one.requests});"
        f" {when}{_count(active)} at work{flight}.{doubts}"
    )


def _count(number: float) -> str:
    return f"{number:,.0f}" if number == round(number) else format_number(number)


_WRITTEN = re.compile(r"\s*([0-9][0-9_,]*(?:\.[0-9]+)?)\s*([A-Za-zµ%][A-Za-zµ/]*)\s*")
_CODED = re.compile(r"([1-9][0-9]?)\+([1-9])")
HOURS = 24
_YEARS_MAX = 20


def quantity(text: object, dimension: str, example: str) -> float:
    """`60 GB/s` in the base unit of its dimension. Raises SpecError for another kind of unit, and for 0."""
    value = _value(text, dimension) if isinstance(text, str) else None
    if value is None:
        raise SpecError(f"{str(text)[:60]!a} is no such value", f"write a number and its unit: {example}")
    if value <= 0:
        raise SpecError(f"{text!a}: nothing is asked with 0", f"leave it out, or write {example}")
    return value


@functools.lru_cache(1024)  # a search for the number of hosts asks for the same figures thousands of times
def _value(text: str, dimension: str) -> float | None:
    """None for what is no number with such a unit."""
    found = _WRITTEN.fullmatch(text)
    if found is None or found[2] not in UNITS or UNITS[found[2]][0] != dimension:
        return None
    return parse_figure(found[1], found[2]).value


def written(dimension: str, example: str) -> BeforeValidator:
    """Checks a figure and keeps its text, so that a stored file is as it was written."""

    def check(value: object) -> str:
        quantity(value, dimension, example)
        return str(value)

    return BeforeValidator(guarded(check))


def _file(value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise SpecError(f"{str(value)[:60]!a} is no path", "write the path of a file, seen from this one")
    return value


def protocols() -> tuple[str, ...]:
    """Those by which clients reach a cluster through gateways, by the names of schemes and mounts."""
    servers = (one for one in schemes.accesses() if one.storage == "server")
    return tuple(sorted({protocol_of(one.name) for one in servers}))


def protocol_of(access: str) -> str:
    """Of a way to a target: a library is of its scheme, a mount has its own name."""
    scheme = schemes.access(access).scheme
    return access if scheme is None else scheme.name


def _protocol(value: object) -> str:
    known = protocols()
    if value not in known:
        raise SpecError(
            f"{str(value)[:60]!a} is no protocol of a gateway", f"write one of {', '.join(known)}"
        )
    return str(value)


def protection_of(text: str) -> Protection:
    """`3` copies or `8+3`. Raises SpecError."""
    coded = _CODED.fullmatch(text)
    if coded is not None:
        return Protection(k=int(coded[1]), m=int(coded[2]))
    if text.isascii() and text.isdigit() and 2 <= int(text) <= 9:
        return Protection(copies=int(text))
    raise SpecError(f"{text[:60]!a} is no protection", "write a number of copies from 2 to 9, or K+M: 3, 8+3")


def _protection(value: object) -> str:
    text = str(value)
    protection_of(text)
    return text


def _of(lowest: float, highest: float, example: str) -> Callable[[object], float]:
    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not lowest < value <= highest:
            raise SpecError(f"{str(value)[:60]!a} is out of range", f"write {example}")
        return float(value)

    return guarded(check)


Failing = Literal["device", "host", "switch"]
Size = Annotated[str, written("B", "200 TB")]
Flow = Annotated[str, written("B/s", "2 GB/s")]
Span = Annotated[str, written("s", "10 min")]
_Share = Annotated[float, BeforeValidator(_of(0, 1, "a share above 0 and up to 1, such as 0.5"))]
_File = Annotated[str, BeforeValidator(guarded(_file))]
_Amount = Annotated[float, BeforeValidator(_of(0, 1e12, "a number above 0"))]


class _Sized(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WorkFrom(_Sized):
    """The file that says what one client does, and which work, trial or cell of it.

    `only` is a pattern of paths, of a trace: the bytes of other files do not count.
    """

    study: _File | None = None
    trace: _File | None = None
    result: _File | None = None
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    only: Annotated[str, Field(min_length=1, max_length=4000)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len([one for one in (self.study, self.trace, self.result) if one is not None]) != 1:
            raise refuse(
                "one file defines these clients",
                "write one of study: (a study, or a job file of fio), trace: or result: (of a pipeline)",
            )
        return self

    @model_validator(mode="after")
    def _files(self) -> Self:
        if self.only is not None and self.trace is None:
            raise refuse("only is for the files of a trace", "leave it out, or give trace:")
        return self

    @property
    def kind(self) -> Literal["study", "trace", "result"]:
        """Which of the three it is."""
        return "study" if self.study is not None else "trace" if self.trace is not None else "result"

    @property
    def file(self) -> str:
        """As it is written."""
        return str(self.study or self.trace or self.result)


class MetadataNeed(_Sized):
    """Operations on files and directories themselves that one client asks for in a second, by name."""

    create: _Amount | None = None
    open: _Amount | None = None
    stat: _Amount | None = None
    readdir: _Amount | None = None
    rename: _Amount | None = None
    unlink: _Amount | None = None
    mkdir: _Amount | None = None
    rmdir: _Amount | None = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.rates:
            raise refuse("no operation is asked for", "write how many a second: {create: 5, stat: 40}")
        return self

    @property
    def rates(self) -> dict[str, float]:
        """Those that are asked for."""
        return self.model_dump(exclude_none=True)

    def scaled(self, times: float) -> Self:
        """The same mix, so many times as often."""
        return self.model_copy(update={name: rate * times for name, rate in self.rates.items()})


class Population(_Sized):
    """Clients that work alike; `active` is the share of them at work, always or in each hour of a day.

    What one of them needs is in figures, or in the file of `work`; `rate` is then the pace that it needs
    where the file has none, and `within` the time for all its bytes. `worked.py` makes figures of a file.
    """

    clients: Annotated[int, Whole(1, 1_000_000)]
    read: Flow | None = None
    write: Flow | None = None
    ingest: Size | None = None
    metadata: MetadataNeed | None = None
    through: Annotated[str, BeforeValidator(guarded(_protocol))] | None = None
    work: WorkFrom | None = Field(None, alias="workload")
    rate: Flow | None = None
    within: Span | None = None
    active: Annotated[list[_Share], Field(min_length=HOURS, max_length=HOURS)] | _Share = 1.0

    @model_validator(mode="after")
    def _whole(self) -> Self:
        figures = [name for name in ("read", "write", "ingest") if getattr(self, name) is not None]
        if self.work is not None:
            self._check_work(figures)
            return self
        if self.rate is not None:
            raise refuse(
                "rate is the pace of a workload, and there is none", "write read: or write:, or add workload"
            )
        if (self.ingest is None) != (self.within is None):
            raise refuse("ingest and within belong together", "write both: ingest: 80 GB, within: 10 min")
        if self.ingest is not None and self.write is not None:
            raise refuse("write and ingest say the same thing twice", "keep one of them")
        if not figures and self.metadata is None:
            raise refuse(
                "these clients do nothing",
                "add read, write, ingest with within, workload: {study: FILE}, or metadata: {stat: 40}",
            )
        return self

    def _check_work(self, figures: list[str]) -> None:
        if figures:
            raise refuse(f"workload and {figures[0]} say the same thing twice", "keep one of them")
        if self.rate is not None and self.within is not None:
            raise refuse("rate and within are two paces", "keep one of them")

    def _require_figures(self) -> None:
        """A work that nobody has read yet is no rate of 0."""
        if self.work is not None:
            raise UsageError(f"what {self.work.file} asks for was not read", "size it: leadline size FILE")

    @property
    def read_bytes_s(self) -> float:
        """Of one client."""
        self._require_figures()
        return quantity(self.read, "B/s", "") if self.read else 0.0

    @property
    def write_bytes_s(self) -> float:
        """Of one client."""
        self._require_figures()
        if self.ingest is not None:
            return quantity(self.ingest, "B", "") / quantity(self.within, "s", "")
        return quantity(self.write, "B/s", "") if self.write else 0.0

    @property
    def operations_s(self) -> dict[str, float]:
        """Of metadata, of one client."""
        return {} if self.metadata is None else self.metadata.rates

    def at_work(self, hour: int) -> float:
        """How many of them, on average."""
        share = self.active[hour] if isinstance(self.active, list) else self.active
        return self.clients * share


class Switched(_Sized):
    """Switches below one core, on which the clients are: so many hosts on each, with one uplink."""

    hosts_per_switch: Annotated[int, Whole(1, 1000)]
    uplink: Flow

    @property
    def uplink_bytes_s(self) -> float:
        """In each direction."""
        return quantity(self.uplink, "B/s", "")


class Pool(_Sized):
    """A pool beside the data, on devices of a class that the catalogue names; it grows as the data do."""

    capacity: Size
    device_class: Annotated[str, Field(alias="class", min_length=1, max_length=60)]
    protection: Annotated[str, BeforeValidator(guarded(_protection))] = "3"

    def bytes_in(self, growth: float, year: int) -> float:
        """What it has to hold at the end of a year."""
        return quantity(self.capacity, "B", "") * (1 + growth) ** year


class AskedSizing(_Sized):
    """The whole part. `hosts_lost` may be gone, and each of `may_fail` alone, while all is still carried;
    `while_rebuilding` it is, too, while a host is made anew within `rebuild`."""

    capacity: Size
    growth: Annotated[float, BeforeValidator(_of(-1e-9, 10, "a share a year, such as 0.3"))] = 0.0
    years: Annotated[int, Whole(1, _YEARS_MAX)] = 1
    filled: _Share = 0.8
    hosts_lost: Annotated[int, Whole(0, 8)] = 1
    may_fail: list[Failing] = Field(default_factory=list, max_length=3)
    rebuild: Span | None = None
    while_rebuilding: Annotated[bool, BeforeValidator(guarded(parse_truth))] = False
    protection: list[Annotated[str, BeforeValidator(guarded(_protection))]] = Field(
        min_length=1, max_length=20
    )
    pools: dict[str, Pool] = Field(default_factory=dict, max_length=20)
    network: Switched | None = None
    clients: dict[str, Population] = Field(default_factory=dict, max_length=50)
    hosts_max: Annotated[int, Whole(1, 2000)] = 500
    power_w: _Amount | None = None
    rack_units: _Amount | None = None
    money: _Amount | None = None

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if len(set(self.may_fail)) < len(self.may_fail):
            raise refuse("may_fail names one of them twice", "write each once: [device, host, switch]")
        if "switch" in self.may_fail and self.network is None:
            raise refuse(
                "a switch may fail, and which hosts are below one is not given",
                "add network: {hosts_per_switch: 20, uplink: 100 Gb/s}",
            )
        if self.while_rebuilding and self.rebuild is None:
            raise refuse(
                "while_rebuilding needs a pace, and how long a rebuild may take is not given",
                "add rebuild: 2 h, or another time",
            )
        for text in (*self.protection, *(pool.protection for pool in self.pools.values())):
            one = protection_of(text)
            spare = one.copies - 1 if one.copies is not None else one.m or 0
            if spare < self.hosts_lost:
                raise refuse(
                    f"{self.hosts_lost} hosts may be lost, but protection {text} bears {spare}",
                    "allow another protection, or fewer hosts_lost",
                )
        return self

    def bytes_in(self, year: int) -> float:
        """What is to be held at the end of a year; 0 is now."""
        return quantity(self.capacity, "B", "") * (1 + self.growth) ** year

    def peak(self) -> tuple[float, float, int]:
        """Bytes read and written a second, and the hour in which they are most together."""
        loads = [
            (
                sum(one.at_work(hour) * one.read_bytes_s for one in self.clients.values()),
                sum(one.at_work(hour) * one.write_bytes_s for one in self.clients.values()),
                hour,
            )
            for hour in range(HOURS)
        ]
        return max(loads, key=lambda load: load[0] + load[1])
