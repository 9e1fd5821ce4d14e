"""Asking a lab's cluster through the `ceph` command, always with a deadline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.errors import LabError
from leadline.foreign import parse_c_json
from leadline.lab.cluster.process import run_tool


@dataclass(frozen=True)
class CephCommand:
    """How to reach one lab's cluster. `variables` is the environment of the command."""

    conf: Path
    variables: Mapping[str, str]

    def run(self, *words: str, deadline_s: float = 60.0) -> str:
        """What `ceph WORDS` printed. Raises LabError where it fails or takes too long."""
        connect = max(1, int(deadline_s) - 2)
        command = ["ceph", "-c", str(self.conf), "--id", "admin", f"--connect-timeout={connect}", *words]
        return run_tool(command, self.variables, deadline_s=deadline_s)

    def json(self, *words: str, deadline_s: float = 60.0) -> Any:
        """What `ceph WORDS` answered, parsed. Raises LabError where that is not JSON."""
        text = self.run(*words, "--format=json", deadline_s=deadline_s)
        try:
            return parse_c_json(text)
        except ValueError as error:
            raise LabError(f"ceph {' '.join(words)} answered no JSON", "See the lab's logs.") from error


@dataclass(frozen=True)
class LabClusterState:
    """What `ceph status` says, for waiting and for `lab status`. `pgs` counts placement groups by state."""

    health: str
    checks: tuple[str, ...]
    osds: int
    osds_up: int
    osds_in: int
    pgs: dict[str, int]
    mgr: bool
    mds_active: bool
    used_bytes: int
    total_bytes: int

    @property
    def clean(self) -> bool:
        """True where there are placement groups and all are active+clean (scrubbing ones too)."""
        return bool(self.pgs) and all(state.startswith("active+clean") for state in self.pgs)


def parse_state(value: dict[str, Any]) -> LabClusterState:
    """`ceph status --format=json` of Pacific and later; what a release leaves out reads as not there yet."""
    osdmap, pgmap = value.get("osdmap", {}), value.get("pgmap", {})
    osdmap = osdmap.get("osdmap", osdmap)  # Nautilus has it nested
    ranks = value.get("fsmap", {}).get("by_rank", [])
    checks = value.get("health", {}).get("checks", {})
    return LabClusterState(
        health=value.get("health", {}).get("status", "unknown"),
        checks=tuple(
            f"{code}: {check.get('summary', {}).get('message', '')}" for code, check in checks.items()
        ),
        osds=osdmap.get("num_osds", 0),
        osds_up=osdmap.get("num_up_osds", 0),
        osds_in=osdmap.get("num_in_osds", 0),
        pgs={item["state_name"]: item["count"] for item in pgmap.get("pgs_by_state", [])},
        mgr=bool(value.get("mgrmap", {}).get("available", False)),
        mds_active=any(rank.get("status") == "up:active" for rank in ranks),
        used_bytes=pgmap.get("bytes_used", 0),
        total_bytes=pgmap.get("bytes_total", 0),
    )
