"""What a simulation found: as a report's answer with sections, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from leadline.cli.answer import answered
from leadline.units import format_duration, format_iops, format_rate
from leadline.verdict.model import FigureRow, FigureTable, Findings, Quantity
from leadline.verdict.sections.charts import AmountLine, AmountLines, PlacesChain, PlaceUse, ShadedSpan
from leadline.verdict.sections.section import Facts, Item, Panels, Section, StudyAnswer, Words

if TYPE_CHECKING:
    from pathlib import Path

    from leadline.simulation.calibrate import Calibration
    from leadline.simulation.model import SimulatedCluster
    from leadline.simulation.parameters import Parameters
    from leadline.simulation.phases import Phase
    from leadline.simulation.simulate import Predicted, Simulated

FORMAT = "leadline.simulation/1"
_MADE = ("predicted by a model",)
_FULLEST = 12
_ROWS_MAX = 2000
_OSDS_MAX = 8  # of a host: of more the fullest alone is listed
_LAST_SHARE = 0.2  # of the time that is drawn, for the last phase, which has no end
_INTERVAL = "From low to high is a 90 % interval."
_TITLES = {
    "down": "Down, and not out yet",
    "recovery": "Out, and recovered meanwhile",
    "after": "Afterwards",
}


def document(phases: Sequence[Phase], topology: str) -> dict[str, Any]:
    """Of the first phase in full, and of all what is different."""
    from leadline.simulation.simulate import STANDING

    found = phases[0].found
    return {
        "format": FORMAT,
        "standing": STANDING,
        "held_against_a_lab": True,
        "topology": topology,
        **parameters_json(found.parameters),
        "warnings": list(found.warnings),
        "draws": found.draws,
        **_steady_json(found),
        "phases": [_phase_json(one) for one in phases],
    }


def _steady_json(found: Simulated) -> dict[str, Any]:
    return {
        "works": [{**asdict(one), "bytes_s": one.bytes_s} for one in found.predicted],
        "use": {name: round(share, 4) for name, share in sorted(found.use.items())},
    }


def _phase_json(one: Phase) -> dict[str, Any]:
    return {
        "name": one.name,
        "begins_s": list(one.begins_s),
        "ends_s": None if one.ends_s is None else list(one.ends_s),
        "moved_bytes": one.moved_bytes,
        "recovery_bytes_s": list(one.recovery_bytes_s),
        "lost_groups": one.lost_groups,
        **_steady_json(one.found),
    }


def parameters_json(parameters: Parameters) -> dict[str, Any]:
    """Whose parameters they are, and each with its interval and source."""
    return {
        "parameters": parameters.source,
        "figures": {
            section: {name: asdict(one) for name, one in figures.items()}
            for section, figures in parameters.sections.items()
        },
    }


def simulation_findings(cluster: SimulatedCluster, phases: Sequence[Phase], topology: str) -> Findings:
    """The rates of each phase with their intervals, what bounds them, and how full each part is."""
    from leadline.simulation.simulate import STANDING

    first = phases[0].found
    text = "; ".join(
        f"{one.work.name}: {_rate_words(one)}, limited by {one.bound}" for one in first.predicted
    )
    said = (f"Predicted, {STANDING}.", f"Parameters: {first.parameters.source}.")
    sections = (
        *_courses(phases),
        *(part for place, phase in enumerate(phases) for part in _phase(place, cluster, phase)),
        Section("parameters", "Sources of the values", (_sources(first),), "Parameters"),
    )
    return answered(
        "simulate", topology, StudyAnswer("What would this cluster do?", text, said=said), sections, _MADE
    )


def _phase(place: int, cluster: SimulatedCluster, phase: Phase) -> Iterator[Section]:
    found, title = phase.found, _title(phase)
    doubts = [Item(f"warning: {words}", doubtful=True) for words in found.warnings]
    if phase.lost_groups:
        lost = f"{phase.lost_groups} placement groups have too few copies or shards left: their data is lost"
        doubts.append(Item(lost, doubtful=True))
    parts = (
        *((Words(tuple(doubts), title),) if doubts else ()),
        FigureTable(
            "rates",
            f"{title}: rates",
            ("workload", "clients", "groups"),
            ("rate", "low", "high", "latency"),
            tuple(_rates(one) for one in found.predicted),
            f"{_INTERVAL} Groups are placement groups.",
        ),
        FigureTable(
            "bounds",
            "Bottlenecks",
            ("workload",),
            ("bottleneck", "of the draws"),
            tuple(
                _row((one.work.name,), _word(one.bound), Quantity(one.bound_share, "1"))
                for one in found.predicted
            ),
            f"Of {found.draws} draws of the parameters." if found.draws else "",
        ),
        *_recovery(phase),
        Panels(((_fullest(place, found),),), "How full the fullest parts are"),
    )
    yield Section(f"phase{place}", title, parts)
    yield Section(f"use{place}", f"{title}: every part", (_tree(cluster, found),), "", page_only=True)


def _title(phase: Phase) -> str:
    """Its name and its time."""
    if phase.name not in _TITLES:
        return "Steady"
    begins = format_duration(phase.begins_s[0])
    if phase.ends_s is None:
        return f"{_TITLES[phase.name]}, from {begins} on"
    return f"{_TITLES[phase.name]}, {begins} to {format_duration(phase.ends_s[0])}"


def _row(keys: tuple[str, ...], *values: Quantity) -> FigureRow:
    return FigureRow(keys, values, None)


def _word(text: str) -> Quantity:
    return Quantity(None, "", text=text)


def _rates(one: Predicted) -> FigureRow:
    rates = (_rate(one, value) for value in (one.operations_s, one.low, one.high))
    keys = (one.work.name, f"{one.clients:,}", f"{one.groups:,}")
    return _row(keys, *rates, Quantity(one.latency_s * 1e9, "ns"))


def _rate(one: Predicted, operations_s: float) -> Quantity:
    if one.work.rw in ("read", "write"):
        return Quantity(operations_s * one.work.piece_bytes, "B/s")
    return Quantity(operations_s, "1/s")


def _rate_words(one: Predicted) -> str:
    if one.work.rw in ("read", "write"):
        return format_rate(one.operations_s * one.work.piece_bytes)
    return format_iops(one.operations_s)


def _recovery(phase: Phase) -> Iterator[FigureTable]:
    if not phase.recovery_bytes_s:
        return
    rates = (Quantity(one, "B/s") for one in phase.recovery_bytes_s)
    took: list[Quantity] = [Quantity(None, "s", reason="it ends behind the time that is looked at")] * 3
    if phase.ends_s is not None:
        took = [Quantity(end - begin, "s") for end, begin in zip(phase.ends_s, phase.begins_s, strict=True)]
    row = _row(("all",), Quantity(phase.moved_bytes, "B"), *rates, *took)
    columns = ("moves", "rate", "low", "high", "takes", "shortest", "longest")
    yield FigureTable("recovery", "Recovery", ("groups",), columns, (row,), _INTERVAL)


def _fullest(place: int, found: Simulated) -> PlacesChain:
    bounds = _bounds(found)
    fullest = sorted(found.use.items(), key=lambda item: -item[1])[:_FULLEST]
    uses = []
    for name, share in fullest:
        part, _, what = name.rpartition(" ")
        uses.append(PlaceUse(part, what, min(share, 1.0), name in bounds))
    bound = ", ".join(
        dict.fromkeys(f"the bottleneck of {one.work.name} is {one.bound}" for one in found.predicted)
    )
    return PlacesChain(f"fullest-{place}", "Fullest parts", bound, tuple(uses))


def _bounds(found: Simulated) -> set[str]:
    """The parts that bound a work."""
    return {
        one.bound.rpartition(", ")[2].removesuffix(" next")
        for one in found.predicted
        if "outstanding" not in one.bound
    }


def _tree(cluster: SimulatedCluster, found: Simulated) -> FigureTable:
    """Every part that can be full, from the top switch down; what nothing limits is not in it."""
    bounds = _bounds(found)
    rows = [
        _row(
            (part, cluster.above.get(part, ""), name.removeprefix(f"{part} ")),
            Quantity(min(found.use[name], 1.0), "1"),
            _word("bounds" if name in bounds else ""),
        )
        for part, name in _parts(cluster, found)
    ]
    more = f"{len(rows) - _ROWS_MAX} more are not listed." if len(rows) > _ROWS_MAX else ""
    keys = ("part", "below", "of it")
    return FigureTable("use", "How full each part is", keys, ("in use", ""), tuple(rows[:_ROWS_MAX]), more)


def _parts(cluster: SimulatedCluster, found: Simulated) -> Iterator[tuple[str, str]]:
    """(member of the topology, name of the use), member by member."""
    below: dict[str, list[str]] = {}
    for name, above in cluster.above.items():
        if name not in cluster.clients:
            below.setdefault(above, []).append(name)
    homes: dict[str, list[int]] = {}
    for osd, home in enumerate(cluster.osd_hosts):
        homes.setdefault(home, []).append(osd)
    rest, bounds = dict.fromkeys(found.use), _bounds(found)
    whats = dict.fromkeys(name.partition(" ")[2] for name in found.use if name.startswith("osd."))
    waiting = list(reversed(below.get("", ())))
    while waiting:
        member = waiting.pop()
        waiting += reversed(below.get(member, ()))
        names = [f"{member} {what}" for what in ("up", "down", "processors", "disk reads", "disk writes")]
        for what in whats:
            osds = [f"osd.{osd} {what}" for osd in homes.get(member, ()) if f"osd.{osd} {what}" in found.use]
            few = len(osds) <= _OSDS_MAX
            names += osds if few else [max(osds, key=lambda one: (one in bounds, found.use[one]))]
            for name in osds:
                rest.pop(name, None)
        for name in names:
            rest.pop(name, None)
            if name in found.use:
                yield member, name
    for name in rest:
        yield ("each client" if name.startswith("client ") else "for all"), name


def course_charts(phases: Sequence[Phase]) -> tuple[AmountLines, ...]:
    """Each work over all phases, as steps with their intervals; none where nothing fails."""
    if len(phases) < 2:
        return ()
    begins = [phase.begins_s[0] for phase in phases]
    ends = [*begins[1:], begins[-1] / (1 - _LAST_SHARE) or 1.0]
    times = list(zip(begins, ends, strict=True))
    spans = tuple(
        ShadedSpan(*span, _title(phase))
        for phase, span in zip(phases, times, strict=True)
        if phase.name == "recovery"
    )
    charts = []
    for number, one in enumerate(phases[0].found.predicted):
        found = [phase.found.predicted[number] for phase in phases]
        lines = []
        for label, rates in (
            ("rate", [step.operations_s for step in found]),
            ("low", [step.low for step in found]),
            ("high", [step.high for step in found]),
        ):
            values = [_rate(one, rate).value or 0.0 for rate in rates]
            points = ((when, value) for value, span in zip(values, times, strict=True) for when in span)
            lines.append(AmountLine(label, tuple(points)))
        unit = _rate(one, 1.0).unit
        charts.append(AmountLines(f"course-{number}", one.work.name, unit, tuple(lines), spans))
    return tuple(charts)


def _courses(phases: Sequence[Phase]) -> Iterator[Section]:
    if charts := course_charts(phases):
        note = f"Each phase's rate; shaded: recovery. The last phase lasts on. {_INTERVAL}"
        yield Section("course", "Over time", (Panels((charts,)),), note=note)


def _sources(found: Simulated) -> Facts:
    """Which of the figures that are used are measured, which a catalogue's, which assumed."""
    from leadline.simulation.parameters import COMMON, KINDS

    used = {COMMON, *found.classes}
    names: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for section, figures in found.parameters.sections.items():
        for name, one in figures.items() if section in used else ():
            names[one.kind].append(name)
    return Facts("Sources of the values", {kind: found for kind, found in names.items() if found})


def calibration_findings(found: Calibration, left: tuple[str, ...], out: Path | None) -> Findings:
    """Each parameter that the results told, those that they did not, and how far off the model still is."""
    rows = []
    for names, told in (
        ((*found.told, ("common", "model_error")), "measured"),
        (found.untold, "not measured"),
    ):
        for section, name in names:
            one = found.parameters.sections[section][name]
            values = (Quantity(value, "") for value in (one.value, one.low, one.high))
            rows.append(_row((section, name), *values, _word(told)))
    columns = ("value", "low", "high", "is")
    parts = (
        FigureTable("parameters", "Parameters", ("section", "parameter"), columns, tuple(rows), _INTERVAL),
        FigureTable(
            "off",
            "Rates of cells, of what these parameters give",
            ("cell",),
            ("measured",),
            tuple(_row((name,), Quantity(off, "\u00d7")) for name, off in found.off.items()),
        ),
        *((Words(tuple(map(Item, left)), "Not used"),) if left else ()),
    )
    said = () if out is None else (f"Written to {out}; use it by --parameters.",)
    answer = StudyAnswer("What is this cluster's hardware like?", found.parameters.source, said=said)
    return answered("simulate", "Calibration", answer, (Section("calibration", "Parameters", parts),), _MADE)
