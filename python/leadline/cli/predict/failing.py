"""What fails in a simulated cluster, as a command line says it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leadline.errors import SpecError, UsageError
from leadline.units import parse_duration, parse_size
from leadline.yamlio.problems import suggest

if TYPE_CHECKING:
    from leadline.simulation.model import SimulatedCluster
    from leadline.simulation.recovery import RecoveryAsked

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])
_PROFILES = ("high_client_ops", "balanced", "high_recovery_ops")


@dataclass(frozen=True)
class FailureAsked:
    """The options as given."""

    lost_osds: tuple[int, ...]
    lost_hosts: tuple[str, ...]
    stored: str | None
    backfills: int | None
    profile: str | None
    down_out: str | None
    until: str | None

    def lost(self, cluster: SimulatedCluster) -> frozenset[int]:
        """OSDs by number. Raises UsageError for a host that has none."""
        found = set(self.lost_osds)
        homes = sorted(set(cluster.osd_hosts))
        for name in self.lost_hosts:
            mine = [osd for osd, home in enumerate(cluster.osd_hosts) if home == name]
            if not mine:
                raise UsageError(
                    f"--host-out: no host with OSDs is called {name[:60]!a}", suggest(name, homes)
                )
            found |= set(mine)
        return frozenset(found)

    def recovery(self) -> RecoveryAsked | None:
        """What is to be recovered, where --stored says how much there is."""
        from leadline.simulation.recovery import BACKFILLS, DOWN_OUT_S, RecoveryAsked

        if self.stored is None:
            given = (self.backfills, self.profile, self.down_out, self.until)
            if any(one is not None for one in given):
                raise UsageError(
                    "limits and times are of recovery, and nobody knows how much there is",
                    "say what users have stored: --stored 20T, with --osd-out or --host-out",
                )
            return None
        if not self.lost_osds and not self.lost_hosts:
            raise UsageError("nothing fails", "give --osd-out or --host-out with --stored")
        size = _read(parse_size, self.stored, "--stored")
        if size == 0:
            raise UsageError("--stored 0: nothing would move", "leave --stored out")
        down = None if self.down_out is None else _read(parse_duration, self.down_out, "--down-out") / 1e9
        return RecoveryAsked(
            size,
            self.backfills or BACKFILLS,
            self.profile or "balanced",
            DOWN_OUT_S if down is None else down,
        )

    @property
    def until_s(self) -> float:
        """How long is looked at."""
        if self.until is None:
            return float("inf")
        until = _read(parse_duration, self.until, "--until") / 1e9
        if until == 0:
            raise UsageError("--until 0: there is no time to look at", "give for example --until 1h")
        return until


def _read(reader: Callable[[str], int], text: str, option: str) -> int:
    try:
        return reader(text)
    except SpecError as error:
        raise UsageError(f"{option}: {error.message}", error.remedy) from None


def failure_options(command: _Decorated) -> _Decorated:
    """Their values arrive as fields of FailureAsked."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--osd-out",
        "lost_osds",
        multiple=True,
        type=click.IntRange(0),
        metavar="OSD",
        help="Number of an OSD that is out. Repeat for several.",
    ),
    click.option(
        "--host-out", "lost_hosts", multiple=True, metavar="HOST", help="A host whose OSDs are all out."
    ),
    click.option(
        "--stored",
        metavar="SIZE",
        help="Stored user data: also simulate the recovery over time.",
    ),
    click.option(
        "--max-backfills",
        "backfills",
        type=click.IntRange(1, 64),
        help="Placement groups that an OSD recovers at once (osd_max_backfills).  [default: 1]",
    ),
    click.option(
        "--recovery-profile",
        "profile",
        type=click.Choice(_PROFILES),
        help="Share of the OSDs for recovery (osd_mclock_profile).  [default: balanced]",
    ),
    click.option(
        "--down-out",
        metavar="TIME",
        help="Time from down to out (mon_osd_down_out_interval).  [default: 10 minutes]",
    ),
    click.option("--until", metavar="TIME", help="Simulated time.  [default: until recovery ends]"),
)
