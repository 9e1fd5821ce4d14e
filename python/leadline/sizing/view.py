"""What is shown of an answer, on a terminal and as a page: sentences made once for both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.sizing.degraded import REBUILD, DegradedDesign, degraded, required_states, states_of
from leadline.sizing.designs import Design, PerDeviceRate, decides, device_times, device_words, lacks
from leadline.sizing.gateways import PerGatewayRate, PerRankRate, gateway_words, rank_words
from leadline.sizing.hardware import PoolHeld
from leadline.sizing.moved import Inputs, sensitivity
from leadline.sizing.request import AskedSizing, protection_of, shown_works
from leadline.units import format_duration, format_number, format_rate, format_size

UNKNOWN = "not known"
_NEAREST = 3


@dataclass(frozen=True)
class ShownDesign:
    """A design by the name that other options take, and what is known of it."""

    name: str
    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class ShownSizing:
    """All of it; `nearest` is there only where no design does all that is asked.

    `works` say where the figures of clients are from that a file speaks for, `servers` what is asked of
    metadata servers and gateways, and how many are enough.
    """

    asked: str
    answer: str
    works: tuple[str, ...]
    servers: tuple[str, ...]
    designs: tuple[ShownDesign, ...]
    nearest: tuple[str, ...]
    moves: tuple[str, ...]
    refused: tuple[str, ...]


def shown(
    inputs: Inputs,
    front: Sequence[Design],
    others: Sequence[Design],
    seen: Sequence[PerDeviceRate],
    refused: Sequence[str],
    ranks: Sequence[PerRankRate] = (),
    gateways: Sequence[PerGatewayRate] = (),
) -> ShownSizing:
    """The designs of a file, the answer first."""
    return ShownSizing(
        _asked_words(inputs),
        _answer(inputs, front, seen),
        shown_works(inputs.asked, inputs.works),
        (*rank_words(inputs.asked, ranks), *gateway_words(inputs.asked, gateways)),
        tuple(_shown_design(inputs, one, seen) for one in front),
        () if front else tuple(_near(inputs, one) for one in others[:_NEAREST]),
        moves(inputs),
        tuple(refused),
    )


def _asked_words(inputs: Inputs) -> str:
    asked = inputs.asked
    read, write, hour = asked.peak()
    held = f"{format_size(asked.bytes_in(asked.years))} in year {asked.years}"
    carried = [f"{format_rate(rate)} {verb}" for rate, verb in ((read, "read"), (write, "written")) if rate]
    busiest = f", at {hour}:00" if any(isinstance(one.active, list) for one in asked.clients.values()) else ""
    rate = f", and at most {' and '.join(carried)}{busiest}" if carried else ", and no rate of bytes"
    lost = _lost(inputs)
    return f"Asked: {held}{rate}{lost}."


def _lost(inputs: Inputs) -> str:
    lost = inputs.asked.hosts_lost
    return "" if not lost else f", also with {lost} host{'s' if lost > 1 else ''} lost"


def _answer(inputs: Inputs, front: Sequence[Design], seen: Sequence[PerDeviceRate]) -> str:
    if not front:
        return "Answer: no design does all of it."
    one = front[0]
    price = "" if one.price is None else f" for {format_number(one.price)} {inputs.catalogue.currency}"
    why = "fewest" if one.price is None else "cheapest"
    among = f"the {why} of {len(front)} designs" if len(front) > 1 else "the only design that no other beats"
    decided = decides(inputs.asked, inputs.catalogue, one)
    unpriced = [kind for kind, host in inputs.catalogue.hosts.items() if host.price is None]
    if unpriced and len(unpriced) < len(inputs.catalogue.hosts):
        decided += f". The catalogue has no price of {', '.join(unpriced)}, which is not compared by it"
    open_words = "" if seen else " What devices give is not known, so measure before you buy."
    return (
        f"Answer: {one.hosts} hosts {one.kind} with protection {one.protection}{price}, {among}."
        f" Their number comes from: {decided}.{_devices_fail(inputs, one, seen)}{open_words}"
    )


def _devices_fail(inputs: Inputs, one: Design, seen: Sequence[PerDeviceRate]) -> str:
    """That measured devices do not carry what links do, where all has to be carried."""
    asked, bays = inputs.asked, inputs.catalogue.hosts[one.kind].bays
    places = {
        _lost(inputs).removeprefix(", also ") or "with all hosts": (one.hosts - asked.hosts_lost) * bays
    }
    required = required_states(asked)
    places |= {
        f"with {left.words}": left.devices
        for left in degraded_of(inputs, one)
        if left.state in required and left.state != REBUILD
    }
    found = {place: device_times(asked, devices, seen) for place, devices in places.items()}
    short = [f"{times[1]:.2f} times {place}" for place, times in found.items() if times and times[1] < 1]
    if not short:
        return ""
    return f" But by measured cells its devices do not carry what is asked: at most {', '.join(short)}."


def _shown_design(inputs: Inputs, one: Design, seen: Sequence[PerDeviceRate]) -> ShownDesign:
    bays = inputs.catalogue.hosts[one.kind].bays
    measured = list(device_words(inputs.asked, one, bays, seen))
    if not measured and any(inputs.asked.peak()[:2]):
        measured = ["devices: not known; leadline run render on a part of them, then --from its result"]
    decided = decides(inputs.asked, inputs.catalogue, one)
    lines = (*_lines(inputs, one, seen), *measured)
    return ShownDesign(one.name, f"{one.name}: {one.hosts} hosts, by {decided}", lines)


def _lines(inputs: Inputs, one: Design, seen: Sequence[PerDeviceRate]) -> list[str]:
    asked, catalogue = inputs.asked, inputs.catalogue
    host, lost = catalogue.hosts[one.kind], _lost(inputs)
    year = f"; full in year {one.full_in_year}" if one.full_in_year else ""
    lines = [f"holds {format_size(one.usable_bytes)}, filled to {asked.filled:.0%}{lost}{year}"]
    lines += [_pool_line(pool) for pool in one.pools]
    if any(asked.peak()[:2]):
        lines.append(
            f"links: at most {_times(one.headroom)} what is asked{lost}"
            f" (by model, {one.bound}); {_times(one.whole_headroom)} with all hosts"
        )
    return [
        *lines,
        *state_lines(inputs, one, seen),
        f"rebuild of a host: at least {format_duration(one.rebuild_s)} (by model: links only, no other load)",
        f"{cost_words(one, catalogue.currency)} ({host.source}, {host.date})",
    ]


def _pool_line(pool: PoolHeld) -> str:
    held = "nothing" if pool.usable_bytes is None else format_size(pool.usable_bytes)
    return (
        f"pool {pool.name} on its {pool.device_class} devices, protection {pool.protection}: holds {held}"
        f" of {format_size(pool.asked_bytes)} asked"
    )


def state_lines(inputs: Inputs, one: Design, seen: Sequence[PerDeviceRate]) -> list[str]:
    """What is carried in each state, of each population with its bound, and whether it has to be."""
    asked = inputs.asked
    required = required_states(asked)
    found = []
    for left in degraded_of(inputs, one):
        has_to = ", as has to be" if left.state in required else ""
        if left.stopped:
            found.append(
                f"with {left.words}: NOT carried: {left.stopped}{', and it has to be' if has_to else ''}"
            )
        elif left.works:
            works = ", ".join(
                f"{work.name} at most {_times(work.times)} ({work.bound})" for work in left.works
            )
            whole = f"at most {_times(left.carried)} all of it; " if len(left.works) > 1 else ""
            carried = "carried" if left.carries else "NOT carried"
            asked_too = has_to if left.carries or not has_to else ", and it has to be"
            verdict = f"{carried} by links{asked_too}"
            line = f"with {left.words}{_held_words(left)}: {verdict}: {whole}{works}"
            found.append(line + _device_end(asked, left, seen))
    return found


def degraded_of(inputs: Inputs, one: Design) -> tuple[DegradedDesign, ...]:
    """A design in every state that can be computed."""
    host, protection = inputs.catalogue.hosts[one.kind], protection_of(one.protection)
    states = states_of(inputs.asked)
    return tuple(degraded(inputs.asked, host, protection, one.hosts, state) for state in states)


def _held_words(left: DegradedDesign) -> str:
    if left.rebuild_s is None:
        return ""
    if left.held_s is not None:
        return f" within {format_duration(left.held_s)}"
    if math.isinf(left.rebuild_s):
        return ", for which the busiest hour leaves no room"
    return f" in what clients leave, {format_duration(left.rebuild_s)} or more in the busiest hour"


def _device_end(asked: AskedSizing, left: DegradedDesign, seen: Sequence[PerDeviceRate]) -> str:
    """What the devices that are left give, by measured cells; what recovery takes of them nobody measured."""
    times = None if left.state == REBUILD else device_times(asked, left.devices, seen)
    if times is None:
        return ""
    low, high = times
    verdict = "" if low >= 1 else ": NOT carried" if high < 1 else ": inconclusive"
    return f"; {left.devices} devices, measured, {low:.2f} to {high:.2f} times{verdict}"


def _times(headroom: float) -> str:
    return f"{format_number(headroom)} times"


def cost_words(one: Design, currency: str) -> str:
    """Price, power and height, each or that it is not known."""
    known = (("price", one.price, currency), ("power", one.power_w, "W"), ("rack", one.rack_units, "U"))
    found = [
        f"{name} {UNKNOWN if value is None else f'{format_number(value)} {unit}'}"
        for name, value, unit in known
    ]
    if one.price is not None:
        found.append(f"{format_number(one.price / (one.usable_bytes / 1e12))} {currency} per TB")
    return ", ".join(found)


def _near(inputs: Inputs, one: Design) -> str:
    asked = inputs.asked
    give = ", ".join((*lacks(asked, one), *(("hosts_max",) if one.hosts >= asked.hosts_max else ())))
    whose = "hosts_max allows" if "hosts_max" in asked.model_fields_set else "are tried without hosts_max"
    most = f", the most that {whose}" if one.hosts == asked.hosts_max else ""
    held = f"{format_size(one.usable_bytes)} of {format_size(asked.bytes_in(asked.years))}"
    return (
        f"nearest: {one.name}, {one.hosts} hosts{most}: holds {held}, links at most {_times(one.headroom)}"
        f" what is asked; what would have to give: {give}"
    )


def moves(inputs: Inputs) -> tuple[str, ...]:
    """Which input moves the answer most; those that move nothing are one line."""
    best = inputs.best()
    if best is None:
        return ()
    found, still = [], []
    for one in sensitivity(inputs):
        if one.by(best):
            ends = f"{_end(one.lower)} with a tenth less, {_end(one.higher)} with a tenth more"
            found.append(f"{one.name}: {ends}")
        else:
            still.append(one.name)
    if still:
        found.append(f"a tenth less or more changes nothing: {', '.join(still)}")
    return tuple(found)


def _end(one: Design | None) -> str:
    return "no design" if one is None else f"{one.hosts} hosts ({one.name})"


Row = tuple[str, str, str]


def beside(one: Design, other: Design, before: Inputs, after: Inputs) -> list[Row]:
    """Two designs, figure by figure: of two names, or of one before and after an input is changed."""
    pairs = ((one, before), (other, after))
    figures: Mapping[str, tuple[str, ...]] = {
        "hosts": tuple(str(design.hosts) for design, _ in pairs),
        "holds": tuple(format_size(design.usable_bytes) for design, _ in pairs),
        "links, at most": tuple(_times(design.headroom) for design, _ in pairs),
        "full first": tuple(design.bound for design, _ in pairs),
        **_beside_states(pairs),
        "rebuild, at least": tuple(format_duration(design.rebuild_s) for design, _ in pairs),
        "price": tuple(_cost(design.price, inputs.catalogue.currency) for design, inputs in pairs),
        "power": tuple(_cost(design.power_w, "W") for design, _ in pairs),
        "rack": tuple(_cost(design.rack_units, "U") for design, _ in pairs),
        "lacks": tuple(", ".join(lacks(inputs.asked, design)) or "nothing" for design, inputs in pairs),
    }
    return [(name, values[0], values[1]) for name, values in figures.items()]


def _beside_states(pairs: Sequence[tuple[Design, Inputs]]) -> dict[str, tuple[str, ...]]:
    """The states that both have, where anything is carried."""
    found = [{left.words: left for left in degraded_of(inputs, design)} for design, inputs in pairs]
    both = [words for words in found[0] if all(words in one and one[words].works for one in found)]
    return {
        words: tuple("no data" if one[words].stopped else _times(one[words].carried) for one in found)
        for words in both
    }


def _cost(value: float | None, unit: str) -> str:
    return UNKNOWN if value is None else f"{format_number(value)} {unit}"
