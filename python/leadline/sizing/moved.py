"""What happens to the answer when an input is another: one that is named, or each in turn by a tenth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from leadline.errors import UsageError
from leadline.sizing.designs import (
    DegradedDesign,
    Design,
    degraded,
    design_of,
    designs,
    every_design,
    states_of,
)
from leadline.sizing.hardware import Catalogue
from leadline.sizing.request import AskedSizing, Population, WorkedOut, protection_of, quantity

STEP = 0.1
_TIMES_MOST = 1000.0
_INPUTS = "capacity, clients, fill, hosts, link, uplink"


@dataclass(frozen=True)
class Inputs:
    """Everything that designs come from; `hosts` is a number of them that is given, and not looked for.

    `works` are those of clients whose need comes from a file.
    """

    asked: AskedSizing
    catalogue: Catalogue
    hosts: int | None = None
    works: tuple[WorkedOut, ...] = ()

    def every(self) -> dict[str, Design]:
        """All designs by name."""
        found = every_design(self.asked, self.catalogue)
        if self.hosts is not None:
            found = tuple(
                design_of(self.asked, self.catalogue, one.kind, one.protection, self.hosts) for one in found
            )
        return {one.name: one for one in found}

    def best(self) -> Design | None:
        """The first of those that do all of it: the cheapest, where there are prices."""
        front, _ = designs(self.asked, self.catalogue)
        return front[0] if front else None


def degraded_of(inputs: Inputs, one: Design) -> tuple[DegradedDesign, ...]:
    """A design in every state that can be computed."""
    host, protection = inputs.catalogue.hosts[one.kind], protection_of(one.protection)
    states = states_of(inputs.asked)
    return tuple(degraded(inputs.asked, host, protection, one.hosts, state) for state in states)


@dataclass(frozen=True)
class Moved:
    """The answer with an input a tenth lower and a tenth higher; None where no design does all of it then."""

    name: str
    lower: Design | None
    higher: Design | None

    def by(self, best: Design) -> float:
        """How far it moves the answer, a share of the price or of the hosts; no design at all is farthest."""
        return max(_apart(best, self.lower), _apart(best, self.higher))


def _apart(best: Design, other: Design | None) -> float:
    if other is None:
        return float("inf")
    if best.price is not None and other.price is not None:
        return abs(other.price / best.price - 1)
    return abs(other.hosts / best.hosts - 1)


def sensitivity(inputs: Inputs) -> tuple[Moved, ...]:
    """Each input a tenth lower and higher, all else alike: what moves the answer most is first."""
    best = inputs.best()
    if best is None:
        return ()
    found = []
    for name, scaled in _SCALED.items():
        if name == "uplink" and inputs.asked.network is None:
            continue
        if name in ("clients", "pools") and not getattr(inputs.asked, name):
            continue
        # A share above 1 is none: there the answer stays as it is.
        ways = (scaled(inputs, 1 + way * STEP) for way in (-1, 1))
        found.append(Moved(name, *(best if one is None else one.best() for one in ways)))
    return tuple(sorted(found, key=lambda one: -one.by(best)))


def changed(inputs: Inputs, text: str) -> Inputs:
    """The inputs with `link=2x`, `link=100 Gb/s`, `fill=0.7` or `hosts=40`. Raises UsageError."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or name not in (*_SCALED, "hosts") or name in ("growth", "device", "pools"):
        raise UsageError(
            f"--what-if {text[:60]!a} is no input with its value", f"inputs are {_INPUTS}: link=2x"
        )
    if value.endswith("x") and name != "hosts":
        return _scaled_by(inputs, name, _number(value[:-1], text))
    if name == "hosts":
        number = _number(value, text)
        fewest = inputs.asked.hosts_lost + 1
        if number != int(number) or not fewest <= number <= 10_000:
            raise UsageError(f"--what-if {text[:60]!a} is no number of hosts", f"write {fewest} or more")
        return replace(inputs, hosts=int(number))
    if name == "fill":
        return _scaled_by(inputs, name, _number(value, text) / inputs.asked.filled)
    if name == "clients":
        raise UsageError("there are several clients", "write how many times what is asked: clients=2x")
    return _scaled_by(inputs, name, _figure(inputs, name, value))


def _number(value: str, text: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise UsageError(
            f"--what-if {text[:60]!a} has no number above 0", "write for example link=2x, hosts=40"
        )
    return number


def _figure(inputs: Inputs, name: str, value: str) -> float:
    """A figure with its unit, as times what it is now. Of links the first kind's: all become alike."""
    if name == "capacity":
        return quantity(value, "B", "capacity=200 TB") / inputs.asked.bytes_in(0)
    rate = quantity(value, "B/s", f"{name}=100 Gb/s")
    if name == "uplink":
        return rate / (inputs.asked.network.uplink_bytes_s if inputs.asked.network else rate)
    links = {one.link_bytes_s for one in inputs.catalogue.hosts.values()}
    if len(links) > 1:
        raise UsageError("the hosts have links of several rates", "write how many times as much: link=2x")
    return rate / links.pop()


def _scaled_by(inputs: Inputs, name: str, times: float) -> Inputs:
    if times > _TIMES_MOST:
        raise UsageError(f"--what-if {name}: more than {_TIMES_MOST:g} times", "write a smaller value")
    if name == "uplink" and inputs.asked.network is None:
        raise UsageError(
            "no uplink is asked for",
            "add network: {hosts_per_switch: 20, uplink: 100 Gb/s} to the part `sizing`",
        )
    found = _SCALED[name](inputs, times)
    if found is None:
        raise UsageError(f"--what-if {name}: a share above 1 is none", "write fill=0.9, or less")
    return found


def _asked(inputs: Inputs, **changes: object) -> Inputs:
    return replace(inputs, asked=inputs.asked.model_copy(update=changes))


def _capacity(inputs: Inputs, times: float) -> Inputs:
    return _asked(inputs, capacity=_bytes(inputs.asked.bytes_in(0) * times))


def _growth(inputs: Inputs, times: float) -> Inputs:
    return _asked(inputs, growth=inputs.asked.growth * times)


def _fill(inputs: Inputs, times: float) -> Inputs | None:
    filled = inputs.asked.filled * times
    return _asked(inputs, filled=filled) if filled <= 1 + 1e-9 else None


def _pools(inputs: Inputs, times: float) -> Inputs:
    pools = {
        name: pool.model_copy(update={"capacity": _bytes(pool.bytes_in(0, 0) * times)})
        for name, pool in inputs.asked.pools.items()
    }
    return _asked(inputs, pools=pools)


def _clients(inputs: Inputs, times: float) -> Inputs:
    return _asked(inputs, clients={name: _busier(one, times) for name, one in inputs.asked.clients.items()})


def _busier(one: Population, times: float) -> Population:
    changes = {
        "read": f"{one.read_bytes_s * times:.3f} B/s" if one.read_bytes_s else None,
        "write": f"{one.write_bytes_s * times:.3f} B/s" if one.write_bytes_s else None,
        "metadata": None if one.metadata is None else one.metadata.scaled(times),
        "ingest": None,
        "within": None,
    }
    return one.model_copy(update=changes)


def _uplink(inputs: Inputs, times: float) -> Inputs:
    network = inputs.asked.network
    if network is None:
        return inputs
    rate = f"{network.uplink_bytes_s * times:.3f} B/s"
    return _asked(inputs, network=network.model_copy(update={"uplink": rate}))


def _hardware(inputs: Inputs, field: str, texts: Mapping[str, str]) -> Inputs:
    hosts = {
        kind: one.model_copy(update={field: texts[kind]}) for kind, one in inputs.catalogue.hosts.items()
    }
    return replace(inputs, catalogue=inputs.catalogue.model_copy(update={"hosts": hosts}))


def _link(inputs: Inputs, times: float) -> Inputs:
    hosts = inputs.catalogue.hosts
    return _hardware(
        inputs, "link", {kind: f"{one.link_bytes_s * times:.3f} B/s" for kind, one in hosts.items()}
    )


def _device(inputs: Inputs, times: float) -> Inputs:
    hosts = inputs.catalogue.hosts
    return _hardware(
        inputs, "device", {kind: _bytes(one.bytes_held / one.bays * times) for kind, one in hosts.items()}
    )


def _bytes(number: float) -> str:
    return f"{number:.3f} B"


_SCALED: Mapping[str, Callable[[Inputs, float], Inputs | None]] = {
    "capacity": _capacity,
    "growth": _growth,
    "fill": _fill,
    "clients": _clients,
    "device": _device,
    "link": _link,
    "pools": _pools,
    "uplink": _uplink,
}
