"""`leadline size`: which hosts to buy for what is asked, from hardware as data and from results."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.console import echo
from leadline.cli.explain.paragraphs import say
from leadline.cli.paths import AskedPath
from leadline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.sizing.asked import AskedSizing
    from leadline.sizing.designs import Design, PerDeviceRate
    from leadline.sizing.hardware import Catalogue

_EXIT_NONE = 4
_UNKNOWN = "not known"


@click.command(short_help="Say which hosts hold and carry what is asked, and what to measure first")
@click.argument("requirements", type=AskedPath(exists=True, dir_okay=False))
@click.option(
    "--from",
    "results",
    multiple=True,
    type=AskedPath(exists=True, file_okay=False),
    metavar="RESULT",
    help="What was measured on a cluster of these devices; again for more.",
)
@click.option(
    "--hardware",
    type=AskedPath(exists=True, dir_okay=False),
    metavar="FILE",
    help="Your hardware with prices.  [default: one host of a document, without a price]",
)
@click.option(
    "--csv",
    "table",
    type=AskedPath(dir_okay=False),
    metavar="FILE",
    help="A table of the designs, too.",
)
def command(requirements: Path, results: tuple[Path, ...], hardware: Path | None, table: Path | None) -> int:
    """Say which hosts hold and carry what the part `sizing` of a file of requirements asks.

    What links carry is computed, what devices carry is measured or not said. The exit code is 4 where no
    design does all of it.

    For example: leadline size docs/examples/suse-sizing.yaml --from result --hardware ours.yaml
    """
    from leadline.cli.requiring import read_required
    from leadline.sizing.designs import designs

    required = read_required(requirements)
    if required.sizing is None:
        raise UsageError(f"{requirements} has no part `sizing`", "add it: docs/sizing.md")
    asked, catalogue = required.sizing, _catalogue(hardware)
    front, others = designs(asked, catalogue)
    seen, refused = _measured(results)
    if table is not None:
        from leadline.cli.files import write_file

        write_file(table, _csv(front, catalogue.currency).encode(), "--csv")
    _print(asked, catalogue, front, others, seen)
    for line in refused:
        say(f"Not divided by devices: {line}")
    return 0 if front else _EXIT_NONE


def _catalogue(file: Path | None) -> Catalogue:
    from leadline.errors import SpecError
    from leadline.foreign import read_plain
    from leadline.sizing.hardware import built_in, read_catalogue
    from leadline.written.yaml_source import SOURCE_MAX_BYTES

    if file is None:
        return built_in()
    try:
        text = read_plain(file, SOURCE_MAX_BYTES).decode("utf-8")
    except (OSError, ValueError):
        raise SpecError("cannot be read", "give a YAML file in UTF-8", source=str(file)) from None
    return read_catalogue(text, str(file), os.environ)


def _measured(results: Sequence[Path]) -> tuple[list[PerDeviceRate], list[str]]:
    """Rates of one device from cells that devices bounded; of all others why not."""
    from leadline.sizing.designs import PerDeviceRate
    from leadline.store.reader import open_result
    from leadline.verdict.diagnosed.of_result import diagnose_result
    from leadline.verdict.findings import build_findings
    from leadline.verdict.protected.per_device import per_device_of

    found: list[PerDeviceRate] = []
    refused: list[str] = []
    for path in results:
        result = open_result(path)
        if result.published:
            refused.append(f"{path}: figures of a document, which no counter explains")
            continue
        targets = build_findings(result, with_charts=False, explained=False).targets
        diagnosed = diagnose_result(result)
        cells = [one.cell for one in diagnosed]
        judged = per_device_of(cells, targets, diagnosed, result.trials())
        refused += [f"{path}: {one.text}" for one in judged.statements]
        for cell in cells:
            count = judged.devices(cell)
            for name in ("read_bandwidth", "write_bandwidth", "bandwidth"):
                rate = cell.metrics.get(name)
                if count is None or rate is None or rate.value is None:
                    continue
                if rate.low is None or rate.high is None:
                    refused.append(f"{cell.id}: one block, and so no interval")
                    break
                reads = "write" not in str(cell.job.get("rw"))
                found.append(PerDeviceRate(cell.id, rate.low / count, rate.high / count, count, reads))
                break
    return found, refused


def _print(
    asked: AskedSizing,
    catalogue: Catalogue,
    front: Sequence[Design],
    others: Sequence[Design],
    seen: Sequence[PerDeviceRate],
) -> None:
    from leadline.sizing.designs import device_words, lacks
    from leadline.units import format_rate, format_size

    read, write, hour = asked.peak()
    held = format_size(asked.bytes_in(asked.years))
    say(
        f"Asked: {held} in year {asked.years}; at most {format_rate(read)} read and"
        f" {format_rate(write)} written, at {hour}:00; hosts lost meanwhile: {asked.hosts_lost}."
    )
    if not front:
        echo("No design does all of it.")
        for one in others[:3]:
            say(f"  nearest: {_name(one)}: to give: {', '.join(lacks(asked, one)) or 'hosts_max'}")
        return
    for one in front:
        echo()
        say(f"{_name(one)}")
        for line in _lines(asked, one, catalogue):
            say(f"  {line}")
        words = list(device_words(asked, one, catalogue.hosts[one.kind].bays, seen))
        unknown = "devices: not known. Measure them first: leadline run render, then --from its result"
        for line in words or [unknown]:
            say(f"  {line}")


def _name(one: Design) -> str:
    return f"{one.hosts} hosts {one.kind}, protection {one.protection}"


def _lines(asked: AskedSizing, one: Design, catalogue: Catalogue) -> list[str]:
    from leadline.units import format_duration, format_number, format_size

    host, lost = catalogue.hosts[one.kind], f"with {asked.hosts_lost} of its hosts lost"
    year = f", full in year {one.full_in_year}" if one.full_in_year else ""
    known = (
        ("price", one.price, catalogue.currency),
        ("power", one.power_w, "W"),
        ("rack", one.rack_units, "U"),
    )
    costs = [
        f"{name} {_UNKNOWN if value is None else f'{format_number(value)} {unit}'}"
        for name, value, unit in known
    ]
    if one.price is not None:
        costs.append(f"{format_number(one.price / (one.usable_bytes / 1e12))} {catalogue.currency} per TB")
    return [
        f"holds {format_size(one.usable_bytes)} filled to {asked.filled:.0%}, {lost}{year}",
        f"{one.bound}, by model (upper bound): {format_number(one.headroom)} times what is asked {lost},"
        f" {format_number(one.whole_headroom)} times with all",
        f"rebuild of a host, by model: {format_duration(one.rebuild_s)} or more (links only, no other load)",
        f"{', '.join(costs)} (catalogue: {host.source}, {host.date})",
    ]


def _csv(front: Sequence[Design], currency: str) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(
        ("kind", "hosts", "protection", "usable_bytes", "link_headroom", f"price_{currency}", "power_w")
    )
    for one in front:
        rows.writerow(
            (
                one.kind,
                one.hosts,
                one.protection,
                round(one.usable_bytes),
                one.headroom,
                one.price,
                one.power_w,
            )
        )
    return text.getvalue()
