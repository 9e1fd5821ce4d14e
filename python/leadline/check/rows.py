"""What is expected, as data: the rows of `table/`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from leadline.check.facts import KINDS, Value
from leadline.units import format_bit_rate, format_iops, format_latency, format_rate
from leadline.written.yaml_source import read_table

Severity = Literal["serious", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "note")
ROLES = ("mon", "osd", "mds", "gateway", "client")
_EXPECTATIONS = (("one_of",), ("at_least", "at_most"), ("same",))


@dataclass(frozen=True, eq=False)
class Row:
    """One expectation of one fact of every part of a kind."""

    name: str
    kind: str
    title: str
    fact: str
    one_of: tuple[Value, ...] | None
    at_least: float | None
    at_most: float | None
    same: bool
    within: float
    among: str
    ways: bool
    roles: tuple[str, ...]
    unless: Mapping[str, Value]
    undecided: Mapping[str, Value]
    undecided_why: str
    severity: Severity
    why: str
    remedy: str
    verify: str
    source: str

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        if self.same:
            return "as the others" if not self.within else f"as the others within {self.within:.0%}"
        if self.one_of is not None:
            return " or ".join(words_of(value) for value in self.one_of)
        parts = [("at least", self.at_least), ("at most", self.at_most)]
        return " and ".join(
            f"{words} {words_of(value, self.fact)}" for words, value in parts if value is not None
        )


def words_of(value: Value, fact: str = "") -> str:
    """A fact's value as it is printed; the end of the fact's name is its unit."""
    if fact.endswith("_bit_s") and isinstance(value, int | float):
        return format_bit_rate(value)
    if fact.endswith("_bytes_s") and isinstance(value, int | float):
        return format_rate(value)
    if fact.endswith("_iops") and isinstance(value, int | float):
        return format_iops(value)
    if fact.endswith("_us") and isinstance(value, int | float):
        return format_latency(value * 1000)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "unknown"
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else value or "none"


@functools.cache
def rows() -> tuple[Row, ...]:
    """Every row of every table; the tables are held by a test."""
    found = []
    folder = resources.files("leadline") / "check" / "table"
    for place in sorted(folder.iterdir(), key=lambda one: (KINDS.index(_kind(one.name)), one.name)):
        text = place.read_text(encoding="utf-8")
        for name, value in read_table(text, place.name).value.items():
            found.append(_row(name, _kind(place.name), value))
    return tuple(found)


def _kind(table: str) -> str:
    """`device.yaml` and `device_measured.yaml` are of devices."""
    return table.removesuffix(".yaml").partition("_")[0]


def _row(name: str, kind: str, value: Mapping[str, Any]) -> Row:
    if sum(any(key in value for key in keys) for keys in _EXPECTATIONS) != 1:
        raise ValueError(f"{name}: one of one_of, at_least with or without at_most, same")
    choices = value.get("one_of")
    return Row(
        name=name,
        kind=value.get("of", kind),
        title=value["title"],
        fact=value["fact"],
        one_of=None if choices is None else tuple(choices),
        at_least=value.get("at_least"),
        at_most=value.get("at_most"),
        same=bool(value.get("same")),
        within=float(value.get("within", 0)),
        among=value.get("among", ""),
        ways=bool(value.get("ways")),
        roles=tuple(value.get("roles", ROLES)),
        unless=value.get("unless", {}),
        undecided=value.get("undecided", {}),
        undecided_why=value.get("undecided_why", ""),
        severity=value["severity"],
        why=value["why"],
        remedy=value["remedy"],
        verify=value["verify"],
        source=value["source"],
    )
