"""Options of `lab up` that ask for hosts, switches and links, and the topology that they come to."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leadline.cli.console import echo
from leadline.cli.machine.lab_words import print_json, say
from leadline.cli.paths import AskedPath
from leadline.errors import SpecError, UsageError
from leadline.units import parse_bit_rate, printable

if TYPE_CHECKING:
    from leadline.lab import LabSpec
    from leadline.lab.network.topology import Link, Topology
    from leadline.lab.network.topology_file import AskedLab

_Command = TypeVar("_Command", bound=Callable[..., Any])
_OPTIONS = (
    click.option(
        "--hosts", type=click.IntRange(min=1), help="Storage hosts, each a network namespace: root."
    ),
    click.option(
        "--clients", type=click.IntRange(min=0), help="Machines that use the storage.  [default: 0]"
    ),
    click.option("--switches", type=click.IntRange(min=1), help="To deal the hosts over.  [default: 1]"),
    click.option("--link", metavar="RATE", default="", help="Of each host and client, such as 1Gbit."),
    click.option("--uplink", metavar="RATE", default="", help="Of each switch to the core above them."),
    click.option("--topology", type=AskedPath(dir_okay=False), help="A file that says all of this (YAML)."),
    click.option(
        "--reference", metavar="NAME", default="", help="A document's cluster in small; see lab.md."
    ),
    click.option("--dry-run", is_flag=True, help="Print what would stand where, and start nothing."),
)


def centre_options(function: _Command) -> _Command:
    """Adds them; their values make an `AskedCentre`, but `dry_run`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@dataclass(frozen=True)
class AskedCentre:
    """What was given of them."""

    hosts: int | None
    clients: int | None
    switches: int | None
    link: str
    uplink: str
    topology: Path | None
    reference: str

    def resolve(self, osds: int | None, erasure: str, gateways: tuple[str, ...]) -> AskedLab | None:
        """The data centre, None where none was asked for. Raises UsageError for what contradicts itself."""
        from leadline.lab.network.topology import with_gateways

        self._check(osds)
        if self.hosts is not None:
            return self._simple(self.hosts, osds, erasure, gateways)
        if not self.reference and self.topology is None:
            return None
        asked = self._written(erasure)
        if gateways and asked.topology.gateways:
            raise UsageError(
                "--gateways and the topology both say which gateways there are", "Leave out --gateways."
            )
        return _with(asked, with_gateways(asked.topology, gateways))

    def _check(self, osds: int | None) -> None:
        ways = {"--hosts": self.hosts, "--topology": self.topology, "--reference": self.reference}
        given = [name for name, value in ways.items() if value]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} contradict each other", "Give one of them.")
        shape = {
            "--clients": self.clients is not None,
            "--switches": self.switches is not None,
            "--link": bool(self.link),
            "--uplink": bool(self.uplink),
        }
        named = [name for name, is_given in shape.items() if is_given]
        if named and not given:
            raise UsageError(f"{named[0]} needs --hosts", "Say how many hosts, or leave it out.")
        if given and given != ["--hosts"]:
            named += ["--osds"] if osds is not None else []
            if named:
                raise UsageError(f"{given[0]} says already what {named[0]} would", f"Leave out {named[0]}.")

    def _simple(self, hosts: int, osds: int | None, erasure: str, gateways: tuple[str, ...]) -> AskedLab:
        from leadline.lab.network.topology import simple, with_gateways
        from leadline.lab.network.topology_file import ERASURE_DEFAULT, AskedLab
        from leadline.lab.spec import DEFAULT_OSDS_MIN, parse_erasure

        switches = self.switches or 1
        if switches > hosts:
            raise UsageError(f"{switches} switches are more than {hosts} hosts", "Use fewer --switches.")
        if self.uplink and switches == 1:
            raise UsageError("one switch has no uplink", "Use --switches 2 or more, or leave out --uplink.")
        k, m = parse_erasure(erasure) if erasure else ERASURE_DEFAULT
        count = osds or max(DEFAULT_OSDS_MIN, k + m, hosts)
        links = _link("--link", self.link), _link("--uplink", self.uplink)
        made = simple(hosts, self.clients or 0, switches, count, *links)
        return AskedLab(with_gateways(made, gateways), (k, m))

    def _written(self, erasure: str) -> AskedLab:
        if self.topology is not None:
            from leadline.lab.network.topology_file import load_topology

            return load_topology(self.topology, os.environ, erasure)
        from leadline.lab.network.references import reference_lab

        return reference_lab(self.reference, erasure)


def _with(asked: AskedLab, topology: Topology) -> AskedLab:
    from dataclasses import replace

    return replace(asked, topology=topology)


def _link(option: str, text: str) -> Link:
    from leadline.lab.network.topology import Link

    try:
        return Link(parse_bit_rate(text)) if text else Link()
    except SpecError as error:
        raise UsageError(f"{option}: {error.message}", error.remedy) from error


def one_of(option: str, given: str, written: str) -> str:
    """What was given, else what the topology's file says. Raises UsageError where they differ."""
    if given and written and given != written:
        raise UsageError(f"{option} {given} and {written} in the topology contradict each other", "Use one.")
    return given or written


def say_topology(spec: LabSpec) -> None:
    """What a data centre stands for, what was scaled, and what this machine will not hold."""
    from leadline.lab.network.checks import notes

    if spec.topology is None:
        return
    if spec.topology.source:
        say(f"stands for: {printable(spec.topology.source)}")
    for words in spec.topology.scaled:
        say(f"scaled: {printable(words)}")
    for words in notes(spec.topology):
        say(f"note: {printable(words)}")


def print_plan(spec: LabSpec, as_json: bool) -> None:
    """What would stand where. Raises UsageError for what could not be started, but for want of root."""
    from leadline.lab.network.checks import check_topology
    from leadline.lab.network.outline import outline
    from leadline.lab.network.placement import place
    from leadline.lab.spec import check_spec

    check_spec(spec)
    check_topology(spec)
    topology = spec.topology
    if as_json:
        placement = place(topology) if topology else {}
        print_json({"format": "leadline.lab-plan/1", "spec": spec.as_json(), "placement": placement})
        return
    say_topology(spec)
    if topology is None:
        echo(f"no hosts: {spec.osd_count} OSDs on {spec.address}")
    else:
        for line in outline(topology):
            echo(line)
    echo(f"EC {spec.erasure_k}+{spec.erasure_m}, {spec.osd_count} OSDs")
