"""Designs that do what is asked, with the fewest hosts, and what they carry while parts are lost.

What links carry is computed (an upper bound: docs/models.md, `aggregate`), and whether Ceph serves data at
all without a device, a host or a switch. What devices carry is only ever taken from a measured cell that
devices bounded. Nothing here is extrapolated further than that bears.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadline.analysis.models.simple import Protection
from leadline.errors import UsageError
from leadline.sizing.hardware import (
    Catalogue,
    ClientFlow,
    HardwareHost,
    PoolHeld,
    fewest_hosts,
    fullest_links,
    hosts_below,
    pools_held,
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


FURTHEST = 4  # times the devices, ranks or gateways that were measured; beyond, a figure is no figure


@dataclass(frozen=True)
class PerDeviceRate:
    """What one device gave in a measured cell that devices bounded; `devices` shared the cell."""

    cell: str
    low: float
    high: float
    devices: int
    reads: bool


@dataclass(frozen=True)
class Design:
    """So many hosts of a kind. None is what nobody knows, as its figure is not in the catalogue.

    `headroom` is what links carry over what is asked, with `hosts_lost` hosts gone: 1 is just enough, and
    infinity where no rate is asked. `rebuild_s` is the least that links allow, for one host's data.
    `not_while` are the states in which all has to be carried and is not, each with what is in the way.
    """

    kind: str
    hosts: int
    protection: str
    usable_bytes: float
    headroom: float
    whole_headroom: float
    bound: str
    rebuild_s: float
    price: float | None
    power_w: float | None
    rack_units: float | None
    full_in_year: int | None
    not_while: tuple[str, ...] = ()
    pools: tuple[PoolHeld, ...] = ()

    @property
    def name(self) -> str:
        """What `--compare` and `--design` call it."""
        return f"{self.kind}/{self.protection}"


def link_headroom(
    asked: AskedSizing, one: HardwareHost, protection: Protection, hosts: int
) -> tuple[float, str]:
    """How many times the peak the links of so many hosts carry, and the link that is full first."""
    read, write, _ = asked.peak()
    links = fullest_links(one, protection, hosts, asked.network)
    return times_carried(links, ClientFlow(read, write), ClientFlow(0.0, 0.0))


def least_rebuild_s(asked: AskedSizing, one: HardwareHost, protection: Protection, hosts: int) -> float:
    """One host's data onto the others, nothing else going on: no less than links take."""
    links = fullest_links(one, protection, hosts - 1, asked.network)
    return seconds_to_send(links, ClientFlow(0.0, 0.0), rebuilt_bytes(asked, one, protection))


def design_of(asked: AskedSizing, catalogue: Catalogue, kind: str, text: str, hosts: int) -> Design:
    """Exactly so many hosts, whether they do what is asked or not."""
    one, protection = catalogue.hosts[kind], protection_of(text)
    left = hosts - asked.hosts_lost
    headroom, bound = link_headroom(asked, one, protection, left)
    whole, _ = link_headroom(asked, one, protection, hosts)
    # What is lost has to be rebuilt on the rest: so it counts what the rest holds.
    usable = left * one.bytes_held * asked.filled / protection.amplification
    full = next((year for year in range(asked.years + 1, 31) if asked.bytes_in(year) > usable), None)
    known = (one.price, one.power_w, one.rack_units)
    price, power, units = (None if value is None else value * hosts for value in known)
    rebuild = least_rebuild_s(asked, one, protection, hosts)
    broken = tuple(_not_while(asked, one, protection, hosts))
    pools = tuple(pools_held(asked, one, hosts))
    return Design(
        *(
            kind,
            hosts,
            text,
            usable,
            headroom,
            whole,
            bound,
            rebuild,
            price,
            power,
            units,
            full,
            broken,
            pools,
        ),
    )


def _not_while(asked: AskedSizing, one: HardwareHost, protection: Protection, hosts: int) -> Iterator[str]:
    for state in required_states(asked):
        found = degraded(asked, one, protection, hosts, state)
        if not found.carries:
            yield found.lacks


def lacks(asked: AskedSizing, design: Design) -> tuple[str, ...]:
    """What a design does not fulfil, in words."""
    found = []
    if design.usable_bytes < asked.bytes_in(asked.years):
        found.append("capacity")
    found += [pool.lacks for pool in design.pools if pool.lacks]
    if design.headroom < 1:
        found.append(design.bound)
    if asked.rebuild and design.rebuild_s > quantity(asked.rebuild, "s", ""):
        found.append("rebuild")
    found += design.not_while
    for name, most in (("price", asked.money), ("power_w", asked.power_w), ("rack_units", asked.rack_units)):
        value = getattr(design, name)
        if most is not None and value is None:
            found.append(f"{name} (the catalogue has none)")
        elif most is not None and value > most:
            found.append(name)
    return tuple(found)


def decides(asked: AskedSizing, catalogue: Catalogue, one: Design) -> str:
    """What one host fewer would lack: that is what the number of hosts comes from."""
    fewest = fewest_hosts(asked, one.protection)
    if one.hosts <= fewest:
        return f"the hosts that protection {one.protection} needs with {asked.hosts_lost} lost"
    return lacks(asked, design_of(asked, catalogue, one.kind, one.protection, one.hosts - 1))[0]


def every_design(asked: AskedSizing, catalogue: Catalogue) -> tuple[Design, ...]:
    """The fewest hosts of each kind and protection, those that others beat among them."""
    return tuple(
        _least(asked, catalogue, kind, text) for kind in catalogue.hosts for text in asked.protection
    )


def _least(asked: AskedSizing, catalogue: Catalogue, kind: str, text: str) -> Design:
    """The fewest hosts that hold and carry it; where none do, as many as are allowed."""
    first = fewest_hosts(asked, text)
    grows = {"capacity", "rebuild"}
    for hosts in range(first, max(first, asked.hosts_max) + 1):
        found = design_of(asked, catalogue, kind, text, hosts)
        missing = lacks(asked, found)
        if not any(
            name in grows or name.startswith(("links", "data", "rebuild", "pool ")) for name in missing
        ):
            return found
    return found


def _dominated(one: Design, others: Sequence[Design]) -> bool:
    """True where another is nowhere worse and somewhere better, by all figures that both have."""

    def figures(design: Design) -> tuple[float, ...]:
        unknown = math.inf
        costs = (design.price, design.power_w, design.rack_units)
        return (*(unknown if cost is None else cost for cost in costs), design.hosts, -design.headroom)

    mine = figures(one)
    return any(
        all(theirs <= own for theirs, own in zip(figures(other), mine, strict=True))
        and figures(other) != mine
        for other in others
    )


def require_catalogue(asked: AskedSizing, catalogue: Catalogue) -> None:
    """Raises UsageError where a limit is asked of which the catalogue has no figure of any host."""
    limits = (("money", asked.money, "price"), ("power_w", asked.power_w, "power_w"))
    for name, most, figure in (*limits, ("rack_units", asked.rack_units, "rack_units")):
        without = [kind for kind, one in catalogue.hosts.items() if getattr(one, figure) is None]
        if most is not None and len(without) == len(catalogue.hosts):
            raise UsageError(
                f"{name} is limited, but the catalogue has no {figure} of {', '.join(without)}",
                "give --hardware with yours, with source and date",
            )


def designs(asked: AskedSizing, catalogue: Catalogue) -> tuple[tuple[Design, ...], tuple[Design, ...]]:
    """Those that do all of it and that no other beats; and those that do not, the nearest first."""
    require_catalogue(asked, catalogue)
    every = every_design(asked, catalogue)
    good = [one for one in every if one.hosts <= asked.hosts_max and not lacks(asked, one)]
    front = sorted(
        (one for one in good if not _dominated(one, good)),
        key=lambda one: (one.price is None, one.price or 0, one.hosts),
    )
    bad = [one for one in every if one not in good]
    return tuple(front), tuple(sorted(bad, key=lambda one: len(lacks(asked, one))))


def device_times(
    asked: AskedSizing, devices: int, seen: Sequence[PerDeviceRate]
) -> tuple[float, float] | None:
    """How many times the peak so many devices give by the cells that bear it, reads and writes; the least.

    None where nothing is asked of them, or no cell bears it for each direction that is asked.
    """
    read, write, _ = asked.peak()
    found = []
    for wanted, reads in ((read, True), (write, False)):
        near = [one for one in seen if one.reads == reads and devices / one.devices <= FURTHEST]
        if wanted and not near:
            return None
        if wanted:
            found += [(one.low * devices / wanted, one.high * devices / wanted) for one in near]
    return (min(low for low, _ in found), min(high for _, high in found)) if found else None


def device_words(asked: AskedSizing, one: Design, bays: int, seen: Sequence[PerDeviceRate]) -> Iterator[str]:
    """What devices carry of the peak, from measured cells; beyond `FURTHEST` what to measure first."""
    read, write, _ = asked.peak()
    for rate in seen:
        wanted = read if rate.reads else write
        if not wanted:
            continue
        devices = (one.hosts - asked.hosts_lost) * bays
        beyond = devices / rate.devices
        if beyond > FURTHEST:
            yield (
                f"{rate.cell}: measure first on {math.ceil(devices / FURTHEST)} devices or more;"
                f" {devices} are {beyond:.1f} times the {rate.devices} that were measured,"
                f" more than {FURTHEST:g}"
            )
            continue
        low, high = (end * devices / wanted for end in (rate.low, rate.high))
        yield (
            f"{rate.cell}, measured: devices give {low:.2f} to {high:.2f} times what is asked"
            f" ({devices} devices, {beyond:.1f} times those measured)"
        )
