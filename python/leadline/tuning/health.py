"""Whether a cluster is worse off than before a change, by its own health checks and placement groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from leadline.errors import RefusedChangeError
from leadline.observe.ceph.parse import cluster_trouble
from leadline.tuning.surroundings import TunedSurroundings

IGNORE_HEALTH = "mend the cluster first; --ignore-health goes on all the same"
_RANK = {"HEALTH_OK": 0, "HEALTH_WARN": 1, "HEALTH_ERR": 2}


@dataclass(frozen=True)
class HealthSeen:
    """Checks by code with their severity and words; placement groups that serve nobody."""

    status: str
    checks: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    groups_inactive: int = 0

    def as_json(self) -> dict[str, Any]:
        """Plain values; `from_json` reads them back."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> HealthSeen:
        """The inverse of `as_json`."""
        checks = {code: (str(check[0]), str(check[1])) for code, check in value["checks"].items()}
        return cls(str(value["status"]), checks, int(value["groups_inactive"]))


def health_of(around: TunedSurroundings) -> HealthSeen:
    """What the cluster says now. Raises TuningError where it does not answer."""
    answer = around.ask("status")
    checks = {
        code: (str(check.get("severity", "")), str(check.get("summary", {}).get("message", "")))
        for code, check in answer.get("health", {}).get("checks", {}).items()
        if not check.get("muted")
    }
    groups = answer.get("pgmap", {}).get("pgs_by_state", ())
    inactive = sum(int(one["count"]) for one in groups if "active" not in one["state_name"].split("+"))
    return HealthSeen(str(answer.get("health", {}).get("status", "unknown")), checks, inactive)


def in_trouble(seen: HealthSeen) -> str:
    """Why nothing may be added or changed there, in words, as a run judges it; "" where nothing is wrong."""
    return cluster_trouble(seen.status, {code: words for code, (_, words) in seen.checks.items()})


def refuse_in_trouble(around: TunedSurroundings, remedy: str = IGNORE_HEALTH) -> None:
    """Raises RefusedChangeError where the cluster is in trouble, TuningError where it does not answer."""
    if why := in_trouble(health_of(around)):
        raise RefusedChangeError(f"{why}: nothing was changed", remedy)


def worsened(before: HealthSeen, now: HealthSeen, expected: Iterable[str] = ()) -> tuple[str, ...]:
    """In words, what is worse now. `expected` are checks that a change itself brings about."""
    found = []
    for code, (severity, words) in now.checks.items():
        was = before.checks.get(code)
        if code not in expected and (was is None or _RANK.get(severity, 1) > _RANK.get(was[0], 1)):
            found.append(f"{code}: {words}")
    if now.groups_inactive > before.groups_inactive:
        found.append(f"{now.groups_inactive} placement groups are not active")
    return tuple(found)
