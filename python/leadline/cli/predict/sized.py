"""What designs of a cluster do: as a report's answer with sections, side by side, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from leadline.cli.answer import answered
from leadline.sizing.designs import (
    REBUILD,
    DegradedDesign,
    Design,
    PerDeviceRate,
    decides,
    device_times,
    device_words,
    lacks,
    required_states,
)
from leadline.sizing.gateways import (
    PerGatewayRate,
    PerRankRate,
    busiest,
    gateway_words,
    gateways_counted,
    rank_words,
    ranks_counted,
)
from leadline.sizing.hardware import PoolHeld
from leadline.sizing.moved import Inputs, degraded_of, sensitivity
from leadline.sizing.request import AskedSizing, shown_works
from leadline.units import format_count, format_duration, format_number, format_rate, format_size
from leadline.verdict.model import FigureRow, FigureTable, Findings, Quantity
from leadline.verdict.sections.section import Item, Section, StudyAnswer, Words

if TYPE_CHECKING:
    from leadline.cli.predict.sources import MeasuredRates


FORMAT = "leadline.sizing/1"


def document(
    inputs: Inputs,
    front: Sequence[Design],
    others: Sequence[Design],
    seen: Sequence[PerDeviceRate],
    ranks: Sequence[PerRankRate],
    gateways: Sequence[PerGatewayRate],
    refused: Sequence[str],
) -> dict[str, Any]:
    """Everything that is printed; what is not known is null, and so is a headroom where no rate is asked."""
    read, write, hour = inputs.asked.peak()
    best = inputs.best()
    return {
        "format": FORMAT,
        "asked": {
            "bytes": inputs.asked.bytes_in(inputs.asked.years),
            "year": inputs.asked.years,
            "read_bytes_s": read,
            "write_bytes_s": write,
            "hour": hour,
            "hosts_lost": inputs.asked.hosts_lost,
        },
        "metadata": {
            "operations_s": busiest(inputs.asked)[0],
            "hour": busiest(inputs.asked)[1],
            "ranks": [asdict(one) for one in ranks_counted(inputs.asked, ranks)],
        },
        "gateways": [asdict(one) for one in gateways_counted(inputs.asked, gateways)],
        "works": [
            asdict(one) | {"at_work": inputs.asked.clients[one.population].at_work(hour)}
            for one in inputs.works
        ],
        "currency": inputs.catalogue.currency,
        "designs": [
            design_json(inputs, one)
            | {
                "decided_by": decides(inputs.asked, inputs.catalogue, one),
                "devices": list(device_words(inputs.asked, one, inputs.catalogue.hosts[one.kind].bays, seen)),
            }
            for one in front
        ],
        "others": [design_json(inputs, one) for one in others],
        "sensitivity": [] if best is None else _moves_json(inputs, best),
        "not_used": list(refused),
    }


def _moves_json(inputs: Inputs, best: Design) -> list[dict[str, Any]]:
    return [
        {
            "input": one.name,
            "lower": _named_json(one.lower),
            "higher": _named_json(one.higher),
            "moves": _finite(one.by(best)),
        }
        for one in sensitivity(inputs)
    ]


def _named_json(one: Design | None) -> dict[str, Any] | None:
    return None if one is None else {"name": one.name, "hosts": one.hosts}


def design_json(inputs: Inputs, one: Design) -> dict[str, Any]:
    """One design with its name, where its hosts' figures are from, and what it lacks."""
    host = inputs.catalogue.hosts[one.kind]
    values = {name: _finite(value) for name, value in asdict(one).items()}
    return {
        "name": one.name,
        **values,
        "lacks": list(lacks(inputs.asked, one)),
        "states": [_state_json(inputs, left) for left in degraded_of(inputs, one)],
        "source": host.source,
        "date": host.date,
    }


def _state_json(inputs: Inputs, left: DegradedDesign) -> dict[str, Any]:
    """A state with whether all has to be carried in it; `carried` is null where no rate is asked."""
    values = {name: _finite(value) for name, value in asdict(left).items()}
    required = left.state in required_states(inputs.asked)
    return {**values, "required": required, "carries": left.carries}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


_UNKNOWN = "the catalogue has no value for it"
_NEAREST = 3
_MADE = ("links by a model", "devices as they were measured")
_TIMES = "\u00d7"


def sizing_findings(
    inputs: Inputs,
    front: Sequence[Design],
    others: Sequence[Design],
    seen: MeasuredRates,
    title: str = "",
    about: str = "",
) -> Findings:
    """The designs of a file, the answer first; `title` and `about` say whose requirements these are."""
    words = (
        ("nearest", "Nearest", () if front else [_near(inputs, one) for one in others[:_NEAREST]]),
        (
            "servers",
            "Metadata servers and gateways",
            (*rank_words(inputs.asked, seen.ranks), *gateway_words(inputs.asked, seen.gateways)),
        ),
        ("works", "Clients whose workload comes from a file", shown_works(inputs.asked, inputs.works)),
    )
    sections = (
        *(_said(name, heading, lines) for name, heading, lines in words if lines),
        *_designs(inputs, front, seen.devices),
        *_moves(inputs),
        *((_said("refused", "Not used", seen.refused),) if seen.refused else ()),
    )
    return answered(
        "size",
        title or "A cluster that is to be bought",
        StudyAnswer(
            "Which hosts to buy?", answer_words(inputs, front, seen.devices), said=(asked_words(inputs),)
        ),
        sections,
        _MADE,
        about,
    )


def beside_findings(
    pairs: Sequence[tuple[Design, Design]], before: Inputs, after: Inputs, what_if: str | None
) -> Findings:
    """Two designs side by side; of a changed input every design before and after."""
    rows = [
        ((one.name, when) if what_if else (one.name,), one, inputs)
        for pair in pairs
        for one, when, inputs in zip(pair, ("now", what_if or ""), (before, after), strict=True)
    ]
    keys = ("design", "input") if what_if else ("design",)
    table = figures_of("Designs side by side", keys, rows, compared=True)
    text = (
        f"{what_if}, and nothing else changed." if what_if else f"{pairs[0][0].name} and {pairs[0][1].name}."
    )
    answer = StudyAnswer("What is different?", text)
    return answered("size", "Designs", answer, (Section("beside", "Designs side by side", (table,)),), _MADE)


def _said(name: str, title: str, lines: Sequence[str]) -> Section:
    return Section(name, title, (Words(tuple(map(Item, lines))),))


def figures_of(
    title: str,
    keys: tuple[str, ...],
    rows: Sequence[tuple[tuple[str, ...], Design, Inputs]],
    *,
    compared: bool,
) -> FigureTable:
    """A row a design; `compared`: also with what it carries in each state, and what it lacks."""
    states: list[str] = []
    if compared:
        found = [{left.words for left in degraded_of(inputs, one) if left.works} for _, one, inputs in rows]
        every = (left.words for left in degraded_of(rows[0][2], rows[0][1])) if rows else ()
        states = [words for words in every if all(words in one for one in found)]
    columns = (
        "holds",
        "full in year",
        "links carry",
        "with all hosts",
        "full first",
        *states,
        "rebuild, least",
        "price",
        "per TB",
        "power",
        "rack",
        *(("lacks",) if compared else ()),
    )
    return FigureTable(
        "designs",
        title,
        (*keys, "hosts"),
        columns,
        tuple(
            FigureRow(
                (*names, f"{one.hosts:,}"), tuple(_figures(one, inputs, states, compared=compared)), None
            )
            for names, one, inputs in rows
        ),
        "By model: links carry at most so many times what is asked, and a rebuild takes no less than that.",
    )


def _figures(one: Design, inputs: Inputs, states: Sequence[str], *, compared: bool) -> Iterator[Quantity]:
    currency = inputs.catalogue.currency
    yield Quantity(one.usable_bytes, "B")
    yield Quantity(None, "", text=str(one.full_in_year or "later"))
    yield _times(one.headroom)
    yield _times(one.whole_headroom)
    yield Quantity(None, "", text=one.bound)
    carried = {left.words: left for left in degraded_of(inputs, one)} if states else {}
    for words in states:
        left = carried[words]
        yield Quantity(None, "", text="no data") if left.stopped else _times(left.carried)
    yield _known(one.rebuild_s, "s", "links leave no room for it")
    yield _known(one.price, currency)
    per_tb = None if one.price is None else one.price / (one.usable_bytes / 1e12)
    yield _known(per_tb, currency)
    yield _known(one.power_w, "W")
    yield _known(one.rack_units, "U")
    if compared:
        yield Quantity(None, "", text=", ".join(lacks(inputs.asked, one)) or "nothing")


def _known(value: float | None, unit: str, why: str = _UNKNOWN) -> Quantity:
    if value is None or not math.isfinite(value):
        return Quantity(None, unit, reason=why)
    return Quantity(value, unit)


def _times(headroom: float) -> Quantity:
    return _known(headroom, _TIMES, "no rate is asked")


def asked_words(inputs: Inputs) -> str:
    """What has to be held and carried."""
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


def answer_words(inputs: Inputs, front: Sequence[Design], seen: Sequence[PerDeviceRate]) -> str:
    """How many hosts of which kind, and why so many."""
    if not front:
        return "No design does all of it."
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
        f"{format_count(one.hosts, 'host')} {one.kind} with protection {one.protection}{price}, {among}."
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


def _designs(inputs: Inputs, front: Sequence[Design], seen: Sequence[PerDeviceRate]) -> Iterator[Section]:
    """Those that do all of it: their figures, and what bears and limits each."""
    if not front:
        return
    title = "Designs that no other beats"
    figures = figures_of(title, ("design",), [((one.name,), one, inputs) for one in front], compared=False)
    words = Words(tuple(_item(inputs, one, seen) for one in front), "Design by design", style="articles")
    note = f"Devices are filled to {inputs.asked.filled:.0%}. A design holds and carries this{_lost(inputs)}."
    yield Section("designs", "Designs", (figures, words), note=note)


def _item(inputs: Inputs, one: Design, seen: Sequence[PerDeviceRate]) -> Item:
    host = inputs.catalogue.hosts[one.kind]
    measured = tuple(device_words(inputs.asked, one, host.bays, seen))
    if not measured and any(inputs.asked.peak()[:2]):
        measured = ("devices: not known; leadline run render on a part of them, then --from its result",)
    pools = (_pool_line(pool) for pool in one.pools)
    details = (*pools, *state_lines(inputs, one, seen), *measured)
    decided = decides(inputs.asked, inputs.catalogue, one)
    source = f"their values are from {host.source}, {host.date}"
    return Item(f"{format_count(one.hosts, 'host')}, by {decided}; {source}", lead=one.name, details=details)


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
                f"{work.name} at most {_times_words(work.times)} ({work.bound})" for work in left.works
            )
            whole = f"at most {_times_words(left.carried)} all of it; " if len(left.works) > 1 else ""
            carried = "carried" if left.carries else "NOT carried"
            asked_too = has_to if left.carries or not has_to else ", and it has to be"
            verdict = f"{carried} by links{asked_too}"
            line = f"with {left.words}{_held_words(left)}: {verdict}: {whole}{works}"
            found.append(line + _device_end(asked, left, seen))
    return found


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


def _times_words(headroom: float) -> str:
    return f"{format_number(headroom)} times"


def _near(inputs: Inputs, one: Design) -> str:
    asked = inputs.asked
    give = ", ".join((*lacks(asked, one), *(("hosts_max",) if one.hosts >= asked.hosts_max else ())))
    whose = "hosts_max allows" if "hosts_max" in asked.model_fields_set else "are tried without hosts_max"
    most = f", the most that {whose}" if one.hosts == asked.hosts_max else ""
    held = f"{format_size(one.usable_bytes)} of {format_size(asked.bytes_in(asked.years))}"
    return (
        f"{one.name}, {format_count(one.hosts, 'host')}{most}: holds {held},"
        f" links at most {_times_words(one.headroom)}"
        f" what is asked; what would have to give: {give}"
    )


def _moves(inputs: Inputs) -> Iterator[Section]:
    """Which input moves the answer most; those that move nothing are in the note."""
    best = inputs.best()
    if best is None:
        return
    found = sensitivity(inputs)
    rows = tuple(
        FigureRow((one.name,), (_end(one.lower), _end(one.higher)), None) for one in found if one.by(best)
    )
    still = ", ".join(one.name for one in found if not one.by(best))
    note = f"A tenth less or more changes nothing: {still}." if still else ""
    title = "What moves the answer, each input alone by a tenth"
    columns = ("a tenth less", "a tenth more")
    table = FigureTable("moves", title, ("input",), columns, rows, note)
    yield Section(
        "moves", "What moves the answer", (table if rows else Words((Item(note),)),), "What moves it"
    )


def _end(one: Design | None) -> Quantity:
    return Quantity(
        None, "", text="no design" if one is None else f"{format_count(one.hosts, 'host')} ({one.name})"
    )
