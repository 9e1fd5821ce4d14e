"""What a simulation found, on a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.cli.console import echo
from leadline.units import format_iops, format_latency, format_rate, whole_percent

if TYPE_CHECKING:
    from leadline.simulation.calibrate import Calibration
    from leadline.simulation.parameters import Parameters
    from leadline.simulation.simulate import Predicted, Simulated

FORMAT = "leadline.simulation/1"
_USES, _BAR = 12, 20


def document(found: Simulated, topology: str) -> dict[str, Any]:
    from leadline.simulation.simulate import STANDING

    return {
        "format": FORMAT,
        "standing": STANDING,
        "held_against_a_lab": False,
        "topology": topology,
        **parameters_json(found.parameters),
        "warnings": list(found.warnings),
        "draws": found.draws,
        "works": [{**asdict(one), "bytes_s": one.bytes_s} for one in found.predicted],
        "use": {name: round(share, 4) for name, share in sorted(found.use.items())},
    }


def print_simulated(found: Simulated) -> None:
    from leadline.simulation.simulate import STANDING

    echo(f"Predicted, {STANDING}. Parameters: {found.parameters.source}.")
    for line in _sources(found.parameters, set(found.classes)):
        echo(line)
    for warning in found.warnings:
        echo(f"warning: {warning}")
    for one in found.predicted:
        work = one.work
        span = f"{_rate(one, one.low)} to {_rate(one, one.high)}, 90 %"
        echo(f"{work.name}: {_rate(one, one.operations_s)} ({span})")
        echo(
            f"  {one.clients} clients; latency {format_latency(one.latency_s * 1e9)};"
            f" {one.groups} placement groups"
        )
        echo(f"  bound by: {one.bound} (so in {whole_percent(one.bound_share)} of {found.draws} draws)")
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


def _sources(parameters: Parameters, classes: set[str]) -> Iterator[str]:
    """Which of the figures that are used are measured, which a catalogue's, which assumed."""
    from leadline.simulation.parameters import COMMON, KINDS

    used = {COMMON, *classes}
    for kind in KINDS:
        names = [
            name
            for section, figures in parameters.sections.items()
            if section in used
            for name, one in figures.items()
            if one.kind == kind
        ]
        if names:
            yield f"  {kind}: {', '.join(names)}"


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
