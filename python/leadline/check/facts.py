"""One thing that was read of one part: a host, its device or interface, the cluster, a daemon of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from leadline.knowledge.tables import Value

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
