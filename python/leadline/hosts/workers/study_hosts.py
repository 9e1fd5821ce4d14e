"""The hosts of a study once they were looked at: what the manifest says of them, and what each is handed.

Rates are totals: each host has its share.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from leadline.foreign import reading
from leadline.hosts.worker_rpc import Remote
from leadline.hosts.workers.calls import Crew
from leadline.hosts.workers.checks import Clocks, SeenHost
from leadline.hosts.workers.request import HostAsked, HostsAsked
from leadline.plan.model import Plan
from leadline.study.kinds import planned

Lost = Literal["stop", "retry", "continue"]
# Of what a host said of itself, beside its facts.
_TOLD = ("leadline", "python", "hostname", "machine_id", "boot_id", "network", "cpus", "memory_bytes")

_OWN = ("hosts", "crew", "command")  # of the parent's manifest what a host has no use for


@dataclass(frozen=True)
class StudyHosts:
    """How the hosts were asked for, how they are reached, and what is done when one is lost."""

    asked: HostsAsked
    crew: Crew
    remote: Remote
    clocks: Clocks
    seen: tuple[SeenHost, ...]
    lost: Lost = "stop"

    def machine(self, host: str) -> str:
        """The machine-id of a host, "" where it is not known."""
        return next((one.machine for one in self.seen if one.host.name == host), "")

    def as_json(self) -> dict[str, Any]:
        """What the manifest says of them; a host's number is its place in `hosts`."""
        hosts = [
            {
                **dict(one.told["facts"]),
                **{name: one.told[name] for name in _TOLD if name in one.told},
                "name": one.host.name,
                "targets": dict(one.host.targets),
            }
            for one in self.seen
        ]
        return {"hosts": hosts, "crew": {"asked": self.asked.as_json(), "lost": self.lost}}


@dataclass(frozen=True)
class StoredCrew:
    """What a result says of its hosts: how they were asked for, which they were, and the policy."""

    asked: HostsAsked
    hosts: tuple[HostAsked, ...]
    lost: Lost


def stored_crew(manifest: Mapping[str, Any]) -> StoredCrew | None:
    """None of a result of one host. Raises ResultError where it is damaged."""
    said = manifest.get("crew")
    if said is None:
        return None
    with reading("what the manifest says of its hosts"):
        hosts = tuple(HostAsked(str(one["name"]), targets=dict(one["targets"])) for one in manifest["hosts"])
        if said["lost"] not in ("stop", "retry", "continue"):
            raise ValueError(f"{said['lost']!r} is no way to go on")
        return StoredCrew(HostsAsked.from_json(said["asked"]), hosts, said["lost"])


def manifest_of_host(manifest: Mapping[str, Any], number: int, hosts: int) -> dict[str, Any]:
    """The manifest that the host of this number is handed, of so many; one of them watches clusters."""
    found = {name: copy.deepcopy(part) for name, part in manifest.items() if name not in _OWN}
    plan = Plan.from_json(found["plan"])
    for cell, written in zip(plan.cells, found["plan"]["cells"], strict=True):
        count = min(planned(cell.job).hosts_wanted(cell.job) or hosts, hosts)
        _share(written["job"], ("rate_bytes_per_s", "rate_iops"), count)
    _share(found["options"], ("layout_rate_bytes_per_s",), hosts)
    # What all share, clusters and the ports of labs, one host looks at for all.
    watches = number == watcher_of(manifest["hosts"])
    found["options"] |= {"clusters": True} if watches else {"clusters": False, "labs": ()}
    return found


def watcher_of(hosts: Sequence[Mapping[str, Any]]) -> int:
    """The number of the host that watches clusters for all: the first that has leadline, if any."""
    return next((number for number, one in enumerate(hosts) if one.get("agent") != "yes"), 0)


def _share(values: dict[str, Any], names: tuple[str, ...], count: int) -> None:
    for name in names:
        rate = values.get(name)
        if isinstance(rate, int):
            values[name] = max(rate // count, 1)
        elif isinstance(rate, float):
            values[name] = rate / count
