"""What a design still carries while a device, a host or a switch is lost, and while a host is rebuilt.

By links, an upper bound as that of the whole design; and whether Ceph serves data at all then. What devices
give is in no model, and comes from measured cells only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from leadline.analysis.models.simple import Protection
from leadline.sizing.hardware import (
    ClientFlow,
    HardwareHost,
    fullest_links,
    hosts_below,
    rebuilt_of_pools,
    seconds_to_send,
    switches_for,
    times_carried,
)
from leadline.sizing.request import AskedSizing, Population, protection_of, quantity

REBUILD = "rebuild"
WORDS = {
    "device": "a device lost",
    "host": "a host lost",
    "switch": "a switch lost",
    REBUILD: "a host being rebuilt",
}
_NOTHING = ClientFlow(0.0, 0.0)


@dataclass(frozen=True)
class WorkLeft:
    """One population: how many times its own rate is carried beside the others, and the link full first."""

    name: str
    times: float
    bound: str


@dataclass(frozen=True)
class DegradedDesign:
    """A design in one of the states. `devices` are those left; `carried` is of all clients together.

    `stopped` says why no data are served, or nothing can be rebuilt; "" where they are. `rebuild_s` is the
    least that a rebuild takes beside the busiest hour, only where one is going on; `held_s` the time that it
    is held to, where one is asked.
    """

    state: str
    devices: int
    carried: float
    bound: str
    works: tuple[WorkLeft, ...]
    stopped: str = ""
    rebuild_s: float | None = None
    held_s: float | None = None

    @property
    def words(self) -> str:
        """`a switch lost`."""
        return WORDS[self.state]

    @property
    def lacks(self) -> str:
        """What is in the way where it does not carry all."""
        short = self.bound if not self.stopped else "rebuild" if self.state == REBUILD else "data served"
        return f"{short}, with {self.words}"

    @property
    def carries(self) -> bool:
        """Whether links carry all that is asked, and data are served."""
        return not self.stopped and self.carried >= 1


def states_of(asked: AskedSizing) -> tuple[str, ...]:
    """Those that can be computed: a switch needs to be there."""
    return tuple(state for state in WORDS if state != "switch" or asked.network is not None)


def required_states(asked: AskedSizing) -> tuple[str, ...]:
    """Those in which all has to be carried."""
    return (*asked.may_fail, *((REBUILD,) if asked.while_rebuilding else ()))


def degraded(
    asked: AskedSizing, one: HardwareHost, protection: Protection, hosts: int, state: str
) -> DegradedDesign:
    """A design of so many hosts in one state."""
    left, devices, weight, stopped = hosts, hosts * one.bays, 1.0, ""
    if state == "device":
        devices -= 1
        weight = hosts * one.bays / devices if devices else 0.0
    elif state == "switch" and asked.network is not None:
        stopped = _switch_stops(asked, protection, hosts, asked.network.hosts_per_switch)
        left -= hosts_below(asked.network.hosts_per_switch, hosts)
        devices = left * one.bays
    else:
        left -= 1
        devices = left * one.bays
    links = fullest_links(one, protection, left, asked.network, weight)
    flows, every = _flows(asked)
    sent = rebuild_s = held_s = None
    if state == REBUILD:
        moved = rebuilt_bytes(asked, one, protection)
        rebuild_s = seconds_to_send(links, every, moved)
        if left < protection.shards:
            rebuild_s = math.inf
            stopped = f"{left} hosts are left for {protection.shards} shards: there is none to rebuild on"
        if asked.rebuild is not None:
            held_s = quantity(asked.rebuild, "s", "")
            sent = moved / held_s
    carried, bound = times_carried(links, every, _NOTHING, sent or 0.0)
    works = tuple(
        WorkLeft(name, *times_carried(links, flow, _less(every, flow), sent or 0.0))
        for name, flow in flows.items()
    )
    return DegradedDesign(state, devices, carried, bound, works, stopped, rebuild_s, held_s)


def rebuilt_bytes(asked: AskedSizing, one: HardwareHost, protection: Protection) -> float:
    """What hosts send each other to make one host's data anew.

    A copy is read once; a coded shard is made of k others, that are sent to where it is made.
    """
    sent = 1 if protection.copies is not None else protection.k or 1
    return one.bytes_held * asked.filled * sent + rebuilt_of_pools(asked, one)


def _switch_stops(asked: AskedSizing, protection: Protection, hosts: int, per: int) -> str:
    """Why data, or a pool beside them, are not served without one switch; "" where all are."""
    of_data = _one_stops(per, protection, hosts)
    if of_data:
        return of_data
    for name, pool in asked.pools.items():
        why = _one_stops(per, protection_of(pool.protection), hosts)
        if why:
            return f"pool {name}: {why}"
    return ""


def _one_stops(per: int, protection: Protection, hosts: int) -> str:
    """The same of one pool; "" where a rule of CRUSH by switch keeps it served."""
    switches = switches_for(per, hosts)
    most = -(-protection.shards // switches)
    if most <= protection.shards - protection.min_size:
        if hosts % switches == 0:
            return ""
        return f"{hosts} hosts are not as many on each of {switches} switches, as a rule by switch wants"
    one = "the only switch has" if switches == 1 else f"one of {switches} switches has, at best,"
    return (
        f"{one} {most} of {protection.shards} shards,"
        f" and Ceph serves no group with fewer than {protection.min_size}"
    )


def flow_of(one: Population, hour: int) -> ClientFlow:
    """All clients of a population that are at work in an hour."""
    active = one.at_work(hour)
    return ClientFlow(active * one.read_bytes_s, active * one.write_bytes_s)


def _flows(asked: AskedSizing) -> tuple[dict[str, ClientFlow], ClientFlow]:
    """Each population's in the busiest hour, and all together."""
    read, written, hour = asked.peak()
    return {name: flow_of(one, hour) for name, one in asked.clients.items()}, ClientFlow(read, written)


def _less(every: ClientFlow, own: ClientFlow) -> ClientFlow:
    return ClientFlow(every.read - own.read, every.written - own.written)
