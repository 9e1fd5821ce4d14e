"""What a simulation found, on a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.cli.console import echo
from leadline.units import (
    format_duration,
    format_iops,
    format_latency,
    format_rate,
    format_size,
    whole_percent,
)

if TYPE_CHECKING:
    from leadline.simulation.calibrate import Calibration
    from leadline.simulation.model import SimulatedCluster
    from leadline.simulation.parameters import Parameters
    from leadline.simulation.phases import Phase
    from leadline.simulation.simulate import Predicted, Simulated
    from leadline.simulation.view import ShownCourse, ShownSimulation

FORMAT = "leadline.simulation/1"
_USES, _BAR = 12, 20


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


def print_simulated(phases: Sequence[Phase]) -> None:
    """The standing first, then each phase."""
    from leadline.simulation.simulate import STANDING

    found = phases[0].found
    echo(f"Predicted, {STANDING}. Parameters: {found.parameters.source}.")
    for line in source_lines(found):
        echo(f"  {line}")
    for phase in phases:
        if len(phases) > 1:
            echo("")
            echo(f"{phase_title(phase)}:")
        for line in phase_lines(phase):
            echo(line)
        _print_use(phase.found)


def phase_title(phase: Phase) -> str:
    """Its name and its time."""
    names = {
        "down": "Down, and not out yet",
        "recovery": "Out, and recovered meanwhile",
        "after": "Afterwards",
    }
    if phase.name not in names:
        return "Steady"
    begins = format_duration(phase.begins_s[0])
    if phase.ends_s is None:
        return f"{names[phase.name]}, from {begins} on"
    return f"{names[phase.name]}, {begins} to {format_duration(phase.ends_s[0])}"


def phase_lines(phase: Phase) -> Iterator[str]:
    """What it is like for each work, and how long recovery takes."""
    for warning in phase.found.warnings:
        yield f"warning: {warning}"
    for one in phase.found.predicted:
        span = f"{_rate(one, one.low)} to {_rate(one, one.high)}, 90 %"
        yield f"{one.work.name}: {_rate(one, one.operations_s)} ({span})"
        latency = format_latency(one.latency_s * 1e9)
        yield f"  {one.clients} clients; latency {latency}; {one.groups} placement groups"
        share = whole_percent(one.bound_share)
        yield f"  bound by: {one.bound} (so in {share} of {phase.found.draws} draws)"
    if phase.recovery_bytes_s:
        rate, low, high = (format_rate(one) for one in phase.recovery_bytes_s)
        yield f"recovery: {format_size(round(phase.moved_bytes))} at {rate} ({low} to {high}, 90 %)"
        if phase.ends_s is not None:
            took = [
                format_duration(end - begin) for end, begin in zip(phase.ends_s, phase.begins_s, strict=True)
            ]
            yield f"  takes {took[0]} ({took[1]} to {took[2]}, 90 %)"
    if phase.lost_groups:
        yield f"{phase.lost_groups} placement groups have too few copies or shards left: their data is lost"


def _print_use(found: Simulated) -> None:
    echo("")
    fullest = sorted(found.use.items(), key=lambda item: -item[1])[:_USES]
    width = max(len(name) for name, _ in fullest)
    for place, (name, share) in enumerate(fullest):
        bar = "█" * round(_BAR * min(share, 1.0)) + ("  <- fullest" if place == 0 else "")
        echo(f"{name:<{width}} {whole_percent(min(share, 1.0)):>12} {bar}")


def _rate(one: Predicted, operations_s: float) -> str:
    if one.work.rw in ("read", "write"):
        return format_rate(operations_s * one.work.piece_bytes)
    return format_iops(operations_s)


def parameters_json(parameters: Parameters) -> dict[str, Any]:
    """Whose parameters they are, and each with its interval and source."""
    return {
        "parameters": parameters.source,
        "figures": {
            section: {name: asdict(one) for name, one in figures.items()}
            for section, figures in parameters.sections.items()
        },
    }


def source_lines(found: Simulated) -> Iterator[str]:
    """Which of the figures that are used are measured, which a catalogue's, which assumed."""
    from leadline.simulation.parameters import COMMON, KINDS

    parameters, used = found.parameters, {COMMON, *found.classes}
    for kind in KINDS:
        names = [
            name
            for section, figures in parameters.sections.items()
            if section in used
            for name, one in figures.items()
            if one.kind == kind
        ]
        if names:
            yield f"{kind}: {', '.join(names)}"


def print_calibration(found: Calibration, left: tuple[str, ...], out: Path | None) -> None:
    """Each figure that the results told, those that they did not, and how far off the model still is."""
    echo(f"Parameters {found.parameters.source}:")
    for section, name in (*found.told, ("common", "model_error")):
        one = found.parameters.sections[section][name]
        echo(f"  {section} {name}: {one.value:.3g} ({one.low:.3g} to {one.high:.3g}, 90 %), measured")
    for section, name in found.untold:
        one = found.parameters.sections[section][name]
        echo(f"  {section} {name}: {one.value:.3g} ({one.low:.3g} to {one.high:.3g}, 90 %), not told")
    for name, off in found.off.items():
        echo(f"  {name}: {off:.2f} of what these parameters give")
    for words in left:
        echo(f"  {words}")
    if out is not None:
        echo(f"written to {out}; use it by --parameters")


def shown(cluster: SimulatedCluster, phases: Sequence[Phase], topology: str) -> ShownSimulation:
    """The same as a page has it."""
    from leadline.simulation.simulate import STANDING
    from leadline.simulation.view import ShownPhase, ShownSimulation, shown_members

    first = phases[0].found
    answer = "; ".join(
        f"{one.work.name}: {_rate(one, one.operations_s)}, bound by {one.bound}" for one in first.predicted
    )
    found = []
    for phase in phases:
        members, left_out = shown_members(cluster, phase.found)
        found.append(ShownPhase(phase_title(phase), tuple(phase_lines(phase)), members, left_out))
    standing = f"Predicted, {STANDING}"
    sources = tuple(source_lines(first))
    return ShownSimulation(topology, answer, standing, sources, tuple(found), tuple(_courses(phases)))


def _courses(phases: Sequence[Phase]) -> Iterator[ShownCourse]:
    from leadline.simulation.course import courses
    from leadline.simulation.view import ShownCourse, ShownStep

    for course, one in zip(courses(phases), phases[0].found.predicted, strict=False):
        steps = tuple(
            ShownStep(
                step,
                format_duration(phase.begins_s[0]),
                f"{_rate(one, step.operations_s)}, bound by {step.bound}",
            )
            for phase, step in zip(phases, course.steps, strict=True)
        )
        yield ShownCourse(course.work, _rate(one, course.most_operations_s), steps)
