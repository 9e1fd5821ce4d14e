"""`leadline simulate`: what a cluster that is only a file would do, with intervals and what bounds it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import echo, echo_text
from leadline.cli.paths import AskedPath
from leadline.cli.predict.simulated_cluster import cluster_of
from leadline.errors import SpecError
from leadline.units import format_iops, format_latency, format_rate, whole_percent

if TYPE_CHECKING:
    from leadline.simulation.simulate import Predicted, Simulated

_USES, _BAR = 12, 20


@click.command(short_help="Predict what a cluster that is only a topology file would do")
@click.argument("topology", type=AskedPath(exists=True, dir_okay=False))
@click.option(
    "--work",
    "works",
    multiple=True,
    required=True,
    metavar="KEY=VALUE,...",
    help="What clients do; again for more at once.",
)
@click.option(
    "--device",
    default="ssd",
    show_default=True,
    help="Class of the OSDs' devices: hdd, ssd, nvme, or one of --parameters.",
)
@click.option(
    "--parameters",
    type=AskedPath(exists=True, dir_okay=False),
    help="Parameters of your parts (YAML).  [default: a catalogue of typical ones]",
)
@click.option(
    "--osd-out",
    "out",
    multiple=True,
    type=click.IntRange(0),
    metavar="OSD",
    help="An OSD that is out, by number; again for more.",
)
@click.option(
    "--one-machine",
    type=click.FloatRange(0.1, 1024),
    metavar="CORES",
    help="All of it shares the cores of one machine, as a lab does.",
)
@click.option(
    "--draws",
    type=click.IntRange(20, 5000),
    default=200,
    show_default=True,
    help="Sets of parameters for the intervals.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of the draws.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.simulation/1.")
def command(
    topology: Path,
    works: tuple[str, ...],
    device: str,
    parameters: Path | None,
    out: tuple[int, ...],
    one_machine: float | None,
    draws: int,
    seed: int,
    as_json: bool,
) -> None:
    """Predict each work's steady rate on a cluster, with an interval of 90 %, and name what bounds it.

    Nothing is measured, and nothing of it has been held against a lab yet. Parameters are a catalogue's
    unless --parameters gives yours; placement is Ceph's own (crushtool). What it does not see is in
    docs/simulation.md.

    \b
    leadline simulate centre.yaml --work rw=write,bs=4M,iodepth=16,protection=8+3
    leadline simulate centre.yaml --device nvme --work rw=randread,bs=4k,iodepth=32,numjobs=16
    """
    from leadline.simulation.parameters import catalogue, read_parameters
    from leadline.simulation.simulate import simulate
    from leadline.simulation.works import parse_work

    asked = [parse_work(text, number + 1) for number, text in enumerate(works)]
    given = catalogue()
    if parameters is not None:
        try:
            given = read_parameters(parameters.read_text(encoding="utf-8"), str(parameters))
        except (OSError, ValueError) as error:
            raise SpecError(f"cannot be read: {error}", "give a YAML file", source=str(parameters)) from None
    cluster = cluster_of(topology, device, one_machine or 0.0)
    found = simulate(cluster, asked, given, out=frozenset(out), draws=draws, seed=seed)
    if as_json:
        echo_text(json.dumps(_document(found, str(topology)), indent=1))
    else:
        _print(found)


def _document(found: Simulated, topology: str) -> dict[str, Any]:
    from leadline.simulation.simulate import STANDING

    return {
        "format": "leadline.simulation/1",
        "standing": STANDING,
        "held_against_a_lab": False,
        "topology": topology,
        "parameters": found.parameters,
        "warnings": list(found.warnings),
        "draws": found.draws,
        "works": [{**asdict(one), "bytes_s": one.bytes_s} for one in found.predicted],
        "use": {name: round(share, 4) for name, share in sorted(found.use.items())},
    }


def _print(found: Simulated) -> None:
    from leadline.simulation.simulate import STANDING

    echo(f"Predicted, {STANDING}. Parameters: {found.parameters}.")
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
