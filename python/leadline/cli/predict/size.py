"""`leadline size`: which hosts to buy for what is asked, from hardware as data and from results."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline import units
from leadline.cli.console import echo, echo_text
from leadline.cli.files import write_file
from leadline.cli.options import AskedPath, WrittenPath, out_option
from leadline.errors import SpecError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.sizing.designs import Design
    from leadline.sizing.hardware import Catalogue
    from leadline.sizing.moved import Inputs


def csv_text(inputs: Inputs, front: Sequence[Design]) -> str:
    """A row a design, in base units; what is not known is empty."""
    from leadline.sizing.designs import WORDS
    from leadline.sizing.moved import degraded_of

    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    names = ("kind", "hosts", "protection", "usable_bytes", "link_headroom", "rebuild_s_least")
    states = tuple(f"links_carry_{state}" for state in WORDS)
    costs = (f"price_{inputs.catalogue.currency}", "power_w", "rack_units")
    rows.writerow((*names, *costs, *states))
    for one in front:
        figures = (round(one.usable_bytes), one.headroom, one.rebuild_s)
        own = (one.price, one.power_w, one.rack_units)
        left = {found.state: 0.0 if found.stopped else found.carried for found in degraded_of(inputs, one)}
        carried = (left.get(state) for state in WORDS)
        rows.writerow((_text(one.kind), one.hosts, one.protection, *figures, *own, *carried))
    return text.getvalue()


def _text(value: str) -> str:
    """A name that a spreadsheet would take for a formula is text."""
    return f"'{value}" if value[:1] in "=+-@" else value


_EXIT_NONE = 4


@click.command(short_help="Size a cluster: hosts and devices for required capacity and rates")
@click.argument("requirements", type=AskedPath(exists=True, dir_okay=False))
@click.option(
    "--from",
    "results",
    multiple=True,
    type=AskedPath(exists=True, file_okay=False),
    metavar="RESULT",
    help="A result measured on a cluster of these devices. Repeat for several.",
)
@click.option(
    "--hardware",
    type=AskedPath(exists=True, dir_okay=False),
    metavar="FILE",
    help="Your hardware, with prices.  [default: one host of a document, without a price]",
)
@click.option("--compare", nargs=2, metavar="A B", help="Compare two designs, by their printed names.")
@click.option(
    "--what-if",
    metavar="INPUT=VALUE",
    help="Show the effect of a change: link=2x, uplink=100Gb/s, hosts=40, fill=0.7, capacity=2x, clients=2x.",
)
@click.option("--design", metavar="NAME", help="The design that -o writes.  [default: the first]")
@out_option("Write the design, scaled down, for `lab up --topology`.")
@click.option(
    "--small-link",
    default="1Gbit",
    show_default=True,
    metavar="RATE",
    help="With -o: highest link rate in that lab. Its CPUs limit the total of all OSDs.",
)
@click.option(
    "--csv",
    "table",
    type=WrittenPath(dir_okay=False),
    metavar="FILE",
    help="Also write a table of the designs.",
)
@click.option("--page", type=WrittenPath(dir_okay=False), metavar="FILE", help="Also write an HTML page.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.sizing/1.")
def command(
    requirements: Path,
    results: tuple[Path, ...],
    hardware: Path | None,
    compare: tuple[str, str] | None,
    what_if: str | None,
    design: str | None,
    out: Path | None,
    small_link: str,
    table: Path | None,
    page: Path | None,
    as_json: bool,
) -> int:
    """Find the hosts that meet the section `sizing` of a requirements file.

    Link rates are computed; device rates come from measurements, else they stay unknown. The exit code is 4
    if no design meets every requirement.

    \b
    leadline size docs/examples/suse-sizing.yaml --from result --hardware ours.yaml
    leadline size docs/examples/suse-sizing.yaml --what-if link=2x
    leadline size docs/examples/suse-sizing.yaml --compare suse_2019/3 suse_2019/6+3
    """
    from leadline.cli.answer import give
    from leadline.cli.gate_options import read_required_with_places
    from leadline.cli.predict.sized import beside_findings, design_json, document, sizing_findings
    from leadline.cli.predict.sources import measured_in, with_works
    from leadline.sizing.designs import designs
    from leadline.sizing.moved import Inputs, changed

    if (compare or what_if) and (out or table or page or design):
        raise UsageError("--compare and --what-if write no file", "leave -o, --design, --csv and --page out")
    if compare and what_if:
        raise UsageError("--compare and --what-if are two questions", "ask one of them")
    required, lines = read_required_with_places(requirements)
    if required.sizing is None:
        raise UsageError(f"{requirements} has no part `sizing`", "add it: docs/sizing.md")
    asked, works = with_works(required.sizing, lines, requirements.parent)
    inputs = Inputs(asked, _catalogue(hardware), works=works)
    front, others = designs(inputs.asked, inputs.catalogue)
    if compare or what_if:
        after = changed(inputs, what_if) if what_if else inputs
        pairs = _pairs(inputs, after, compare)
        if as_json:
            found = [[design_json(inputs, one), design_json(after, other)] for one, other in pairs]
            echo_text(json.dumps({"format": "leadline.sizing/1", "beside": found}, indent=1))
        else:
            give(beside_findings(pairs, inputs, after, what_if))
        return 0
    seen = measured_in(results, inputs.asked)
    if out is not None:
        _write_small(inputs, _chosen(inputs, front, design), out, small_link)
    if table is not None:
        write_file(table, csv_text(inputs, front).encode(), "--csv")
    if as_json:
        echo_text(
            json.dumps(
                document(inputs, front, others, seen.devices, seen.ranks, seen.gateways, seen.refused),
                indent=1,
            )
        )
    answer = sizing_findings(inputs, front, others, seen, required.title, required.document)
    give(answer, page, quiet=as_json)
    return 0 if front else _EXIT_NONE


def _pairs(inputs: Inputs, after: Inputs, compare: tuple[str, str] | None) -> list[tuple[Design, Design]]:
    """Designs by two names, or each design before and after."""
    before = inputs.every()
    if compare is None:
        return [(one, after.every()[name]) for name, one in before.items()]
    return [(_named(before, compare[0]), _named(before, compare[1]))]


def _named(found: dict[str, Design], name: str) -> Design:
    if name not in found:
        raise UsageError(f"no design is called {name[:60]!a}", f"designs are {', '.join(list(found)[:20])}")
    return found[name]


def _chosen(inputs: Inputs, front: Sequence[Design], name: str | None) -> Design:
    if name is not None:
        return _named(inputs.every(), name)
    if not front:
        raise UsageError("no design does all that is asked", "name one with --design, or leave -o out")
    return front[0]


def _write_small(inputs: Inputs, chosen: Design, out: Path, link: str) -> None:
    """A topology as the lab itself reads it, or not at all; and said, what its links are to carry."""
    from leadline.lab.network.topology_file import read_topology
    from leadline.sizing.small import in_small

    try:
        rate = units.parse_bit_rate(link)
    except SpecError as error:
        raise UsageError(f"--small-link {link[:40]!a}: {error.message}", error.remedy) from None
    small = in_small(inputs, chosen, rate)
    read_topology(small.text, f"{chosen.name} in small", {}, made_here=False)
    write_file(out, small.text.encode(), "-o")
    echo(
        f"{out}: {units.format_count(small.hosts, 'host')};"
        f" by the model that sized {chosen.name} its links carry at most",
        err=True,
    )
    for what, one in (("read", small.read), ("written", small.written)):
        echo(f"  {units.format_rate(one.bytes_s)} {what} by all clients together ({one.by})", err=True)


def _catalogue(file: Path | None) -> Catalogue:
    from leadline.errors import SpecError
    from leadline.foreign import read_plain
    from leadline.sizing.hardware import built_in, read_catalogue
    from leadline.yamlio.yaml_source import SOURCE_MAX_BYTES

    if file is None:
        return built_in()
    try:
        text = read_plain(file, SOURCE_MAX_BYTES).decode("utf-8")
    except (OSError, ValueError):
        raise SpecError("cannot be read", "give a YAML file in UTF-8", source=str(file)) from None
    return read_catalogue(text, str(file), os.environ)
