"""Waiting until a lab whose daemons were stopped, killed or marked is whole again, for who comes next."""

from __future__ import annotations

import time

from leadline import lab as leadline_lab
from leadline.errors import LabError
from leadline.lab.cluster.command import LabClusterState, parse_state
from leadline.observe.ceph.client import NotObservableError, ask_socket

# Checks that a run must not begin with. OSD_SLOW_PING_TIME is none of them: it is a mean over minutes.
_IN_TROUBLE = ("SLOW_OPS", "MDS_SLOW", "DOWN", "DEGRADED", "AVAILABILITY")
_LONG = "OSD_SLOW_PING_TIME"
# What daemons saw while they were stopped reaches the monitor by their next report, the manager's next tick
# of 2 s and its digest: until then the cluster looks as it did before.
_REPORTED_S = 5.0


def wait_until_healthy(lab: leadline_lab.Lab, seconds: float = 120) -> None:
    """Until every daemon serves, all placement groups are active+clean and no operation is slow.

    It must stay so for as long as reports may be under way. Nothing that was begun before may be left:
    what waited for 25 s and goes on slowly is called slow 5 s later, when all looks well.
    """
    begin = well_since = time.monotonic()
    while time.monotonic() < well_since + _REPORTED_S:
        if found := _not_well(lab, begin):
            well_since = time.monotonic()
            assert well_since < begin + seconds, f"the lab was not healthy within {seconds:.0f} s: {found}"
        time.sleep(0.2)


def _not_well(lab: leadline_lab.Lab, begin: float) -> str:
    """What the cluster is not well of, or still does since before `begin`; "" where it is well."""
    try:
        status = lab.ceph.json("status", deadline_s=20.0)
    except LabError as error:
        return error.message
    if found := _troubles(parse_state(status)):
        return "; ".join(found)
    # A metadata server that stands by has no operations, and answers nothing.
    serving = {f"mds.{rank['name']}" for rank in status["fsmap"]["by_rank"]}
    return _left_over(lab, serving, begin)


def _left_over(lab: leadline_lab.Lab, serving: set[str], begin: float) -> str:
    """The first operation under way that was begun before; "" where there is none."""
    for daemon in lab.status().daemons:
        if daemon.name.startswith(("mon.", "osd.")) or daemon.name in serving:
            try:
                answer = ask_socket(str(daemon.socket), daemon.pid, "ops", 20.0)
            except NotObservableError as error:
                return f"{daemon.name}: {error}"
            for operation in answer["ops"]:
                if operation["age"] > time.monotonic() - begin:
                    return f"{daemon.name} has done for {operation['age']:.1f} s: {operation['description']}"
    return ""


def _troubles(state: LabClusterState) -> list[str]:
    found = []
    if not state.osds_up == state.osds_in == state.osds:
        found.append(f"{state.osds_up} of {state.osds} OSDs are up, {state.osds_in} are in")
    if not state.clean:
        found.append(f"placement groups: {state.pgs or 'none'}")
    if not (state.mgr and state.mds_active):
        found.append("the manager or the metadata server is not active")
    if state.health == "HEALTH_ERR":
        found.append("HEALTH_ERR")
    checks = [text for text in state.checks if not text.startswith(_LONG)]
    return found + [text for text in checks if any(word in text.partition(":")[0] for word in _IN_TROUBLE)]
