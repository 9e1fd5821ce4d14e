"""Restarts daemons that read a setting when they start, each only once the cluster is as well as before."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from leadline.errors import TuningError
from leadline.tuning.access.ceph_config import lives_of_daemons
from leadline.tuning.health import HealthSeen, health_of, worsened
from leadline.tuning.system import TuningSystem

_POLL_S = 0.25
_RESTART_S = 180.0


def restart_daemons(
    system: TuningSystem,
    daemons: Sequence[str],
    health: HealthSeen,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """One after the other. `health` is how the cluster was before. Raises TuningError."""
    if system.restart is None:
        raise TuningError(f"nothing here restarts {', '.join(daemons)}", "restart them by hand")
    for daemon in daemons:
        before = lives_of_daemons(system.around)
        say(f"restarting {daemon}")
        system.restart(daemon)
        _wait_restarted(system, daemon, before, health)


def _wait_restarted(system: TuningSystem, daemon: str, before: Mapping[str, str], health: HealthSeen) -> None:
    end = time.monotonic() + _RESTART_S
    worse: tuple[str, ...] = ("it is not back",)
    while time.monotonic() < end:
        time.sleep(_POLL_S)
        now = lives_of_daemons(system.around)
        back = daemon not in before or now.get(daemon, before[daemon]) != before[daemon]
        worse = worsened(health, health_of(system.around))
        if back and not worse:
            return
    raise TuningError(
        f"{daemon} was restarted, and {_RESTART_S:.0f} s later it is not well: {'; '.join(worse)}",
        f"see the log of {daemon}",
    )
