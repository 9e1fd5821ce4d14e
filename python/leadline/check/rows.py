"""One thing that was read of one part, and what is expected of it, as data: the rows of `table/`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from typing import Any

from leadline.knowledge.findings import Finding, Severity
from leadline.knowledge.tables import Value, entries
from leadline.units import format_bit_rate, format_iops, format_latency, format_rate

KINDS = ("host", "device", "interface", "path", "cluster", "pool", "osd", "mds", "mount")


@dataclass(frozen=True)
class Fact:
    """`value` is None where it could not be read, and `missing` says why; it is never 0 for that."""

    kind: str
    subject: str
    name: str
    value: Value
    missing: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Fact:
        """The inverse of `as_json`. Raises ValueError where it is no fact."""
        kind, subject, name = (value.get(key) for key in ("kind", "subject", "name"))
        found = value.get("value")
        if not (kind in KINDS and isinstance(subject, str) and isinstance(name, str)):
            raise ValueError("a fact without kind, subject or name")
        if not isinstance(found, str | int | float | bool | None):
            raise ValueError(f"{name} is no plain value")
        return cls(str(kind), subject, name, found, str(value.get("missing", "")))


def told(kind: str, subject: str, values: Mapping[str, Value], why: Mapping[str, str]) -> list[Fact]:
    """A fact for each value; a None needs its reason in `why`."""
    return [
        Fact(
            kind,
            subject,
            name,
            value,
            "" if value is not None else why.get(name, "the kernel does not show it"),
        )
        for name, value in values.items()
    ]


ROLES = ("mon", "osd", "mds", "gateway", "client")


@dataclass(frozen=True, eq=False)
class Row:
    """One expectation of one fact of every part of a kind."""

    name: str
    kind: str
    title: str
    fact: str
    severity: Severity
    why: str
    remedy: str
    verify: str
    source: str
    one_of: tuple[Value, ...] | None = None
    at_least: int | float | None = None
    at_most: int | float | None = None
    same: bool = False
    within: float = 0.0
    among: str = ""
    ways: bool = False
    roles: tuple[str, ...] = ROLES
    unless: Mapping[str, Value] = field(default_factory=dict)
    undecided: Mapping[str, Value] = field(default_factory=dict)
    undecided_why: str = ""
    setting: str = ""
    shared: tuple[str, ...] = ()

    def finding(self, evidence: str) -> Finding:
        """That it is out of line, by what was seen of the parts where it is."""
        return Finding(
            self.name,
            self.title,
            evidence,
            self.remedy,
            means=self.why,
            severity=self.severity,
            verify=self.verify,
            setting=self.setting,
            source=self.source,
            shared=self.shared,
        )

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
    """Every row of every table. Raises ValueError where one expects nothing, or more than one thing."""
    places = sorted(
        (resources.files("leadline.check") / "table").iterdir(),
        key=lambda one: (KINDS.index(_kind(one.name)), one.name),
    )
    found = [
        row
        for place in places
        for row in entries(place.read_text(encoding="utf-8"), place.name, Row, kind=_kind(place.name))
    ]
    for row in found:
        among = (row.one_of is not None, row.at_least is not None or row.at_most is not None, row.same)
        if sum(among) != 1:
            raise ValueError(f"{row.name}: one of one_of, at_least with or without at_most, same")
    return tuple(found)


def _kind(table: str) -> str:
    """`device.yaml` and `device_measured.yaml` are of devices."""
    return table.removesuffix(".yaml").partition("_")[0]
