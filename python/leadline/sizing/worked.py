"""From what a file says of one client's work to the figures that sizing computes with, each with its origin.

Whoever read the file hands in values: this module knows no study, trace or result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leadline.errors import SpecError
from leadline.sizing.request import AskedSizing, Population, quantity
from leadline.units import format_duration, format_number, format_rate, format_size

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
            f"leave {given} out, or the pace of the work",
        )
    if one.rate is not None:
        return quantity(one.rate, "B/s", ""), "the rate that is asked for here"
    if one.within is not None:
        if work.moved_bytes is None:
            raise SpecError("how much it moves is not in it", "write rate: and its bytes a second instead")
        seconds = quantity(one.within, "s", "")
        return work.moved_bytes / seconds, f"its {format_size(work.moved_bytes)} within {one.within}"
    if work.pace_bytes_s is not None:
        return work.pace_bytes_s, "the pace of the work"
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
        else f", with {_count(active * one.at_once)} requests in flight ({_count(one.at_once)} each)"
    )
    doubts = "".join(f" {doubt}." for doubt in one.doubts)
    return (
        f"{one.population}, from {one.source}: each {does} ({one.why}; {one.requests});"
        f" {when}{_count(active)} at work{flight}.{doubts}"
    )


def _count(number: float) -> str:
    return f"{number:,.0f}" if number == round(number) else format_number(number)
