"""What is to be changed, as values: a setting at a place, from what to what. Stored in journals as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class SettingPlace:
    """Where a setting has a value of its own.

    `host` is "" for this host or `lab:NAME/MEMBER`; `cluster` is the fsid of a Ceph cluster, "" where it is
    none's; `subject` is a device, interface, daemon, pool, file system, mount point or directory, "" where
    the host or cluster has one value for all.
    """

    subject: str = ""
    host: str = ""
    cluster: str = ""

    @property
    def words(self) -> str:
        """As a person names it."""
        return (
            " on ".join(
                part for part in (self.subject, self.host or (self.cluster and "the cluster")) if part
            )
            or "this host"
        )


@dataclass(frozen=True)
class SettingChange:
    """One value of one setting at one place. `before` None: not set there, a default was in force."""

    setting: str
    place: SettingPlace
    value: str
    before: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain values; `from_json` reads them back."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> SettingChange:
        """The inverse of `as_json`."""
        return cls(value["setting"], SettingPlace(**value["place"]), value["value"], value["before"])
