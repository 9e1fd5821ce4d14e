"""`leadline lab up`: starts a disposable real Ceph on this host."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leadline.cli.console import echo
from leadline.cli.machine.lab_targets import print_json, say, target_options
from leadline.cli.options import AskedPath, name_argument, one_name
from leadline.errors import SpecError, UsageError
from leadline.units import exact_size, parse_bit_rate, printable

if TYPE_CHECKING:
    from leadline.lab import Lab, LabSpec, LabStatus
    from leadline.lab.network.topology import Link
    from leadline.lab.network.topology_file import AskedLab

_INCOMPLETE = 3  # what was asked for is there in part
_Command = TypeVar("_Command", bound=Callable[..., Any])
_OPTIONS = (
    click.option(
        "--hosts", type=click.IntRange(min=1), help="Storage hosts, each a network namespace. Needs root."
    ),
    click.option("--clients", type=click.IntRange(min=0), help="Client hosts.  [default: 1]"),
    click.option(
        "--switches", type=click.IntRange(min=1), help="Switches to distribute the hosts over.  [default: 1]"
    ),
    click.option(
        "--link", metavar="RATE", default="", help="Link rate of each host and client, such as 1Gbit."
    ),
    click.option("--uplink", metavar="RATE", default="", help="Link rate of each switch to the core."),
    click.option("--topology", type=AskedPath(dir_okay=False), help="A YAML file that defines all of this."),
    click.option(
        "--reference",
        metavar="NAME",
        default="",
        help="A document's cluster, scaled down: castor, fermilab, opencast or suse.",
    ),
    click.option("--dry-run", is_flag=True, help="Show what would be started, and start nothing."),
)


def _centre_options(function: _Command) -> _Command:
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
            raise UsageError("--gateways and the topology both name gateways", "Leave out --gateways.")
        return replace(asked, topology=with_gateways(asked.topology, gateways))

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
            raise UsageError(f"{named[0]} needs --hosts", "Add --hosts N, or leave it out.")
        if given and given != ["--hosts"]:
            named += ["--osds"] if osds is not None else []
            if named:
                raise UsageError(f"{given[0]} already defines {named[0][2:]}", f"Leave out {named[0]}.")

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
        made = simple(hosts, 1 if self.clients is None else self.clients, switches, count, *links)
        return AskedLab(with_gateways(made, gateways), (k, m))

    def _written(self, erasure: str) -> AskedLab:
        if self.topology is not None:
            from leadline.lab.network.topology_file import load_topology

            return load_topology(self.topology, os.environ, erasure)
        from leadline.lab.network.topology_file import reference_lab

        return reference_lab(self.reference, erasure)


def _link(option: str, text: str) -> Link:
    from leadline.lab.network.topology import Link

    try:
        return Link(parse_bit_rate(text)) if text else Link()
    except SpecError as error:
        raise UsageError(f"{option}: {error.message}", error.remedy) from error


@click.command("up")
@name_argument(former="--name")
@click.option(
    "--osds", type=click.IntRange(min=1), help="Number of OSDs.  [default: 4, or K+M if that is more]"
)
@click.option("--ec", "erasure", metavar="K+M", default="", help="Erasure coding.  [default: 2+1]")
@click.option(
    "--dir",
    "directory",
    type=AskedPath(file_okay=False),
    help="An empty or new directory.  [default: below ~/.local/state/leadline/labs]",
)
@click.option("--auth", type=click.Choice(["none", "cephx"]), default="cephx", show_default=True)
@click.option("--osd-size", metavar="SIZE", default="", help="Size of each OSD (sparse).  [default: 10G]")
@click.option("--no-mount", is_flag=True, help="Do not mount the file system.")
@click.option(
    "--gateways", metavar="LIST", default="", help="Gateways to start: nfs, smb, xrootd, rgw, or all."
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="A setting of a gateway. Repeat for several.",
)
@click.option(
    "--address", default="127.0.0.1", show_default=True, help="Address that every server listens on."
)
@click.option("--bridge", is_flag=True, help="Listen on a network bridge of the lab's own, for guests.")
@click.option(
    "--subvolume",
    metavar="[GROUP/]NAME",
    is_flag=False,
    flag_value="subvolume",
    default="",
    help="Add a subvolume with a namespace, mounted by a client that is restricted to it.",
)
@_centre_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    osds: int | None,
    erasure: str,
    name: str,
    directory: Path | None,
    auth: str,
    osd_size: str,
    no_mount: bool,
    gateways: str,
    settings: tuple[str, ...],
    address: str,
    bridge: bool,
    subvolume: str,
    dry_run: bool,
    as_json: bool,
    former_name: str,
    **centre: Any,
) -> None:
    """Start a lab, called NAME or lab: a cluster with CephFS mounted by ceph-fuse, and gateways.

    With --hosts, --topology or --reference, its daemons run on hosts of their own, behind switches and rate-
    limited links. The exit code is 3 if the lab runs but a requested gateway does not.
    """
    from leadline import lab
    from leadline.lab.spec import parse_erasure, parse_gateways, parse_settings

    servers = parse_gateways(gateways)
    asked = AskedCentre(**centre).resolve(osds, erasure, servers)
    k, m = asked.erasure if asked else parse_erasure(erasure or "2+1")
    spec = lab.LabSpec(
        name=one_name(name, former_name),
        directory=directory,
        osds=osds or 0,
        erasure_k=k,
        erasure_m=m,
        auth="none" if auth == "none" else "cephx",
        osd_size_bytes=_osd_size_bytes(osd_size, asked.osd_size_bytes if asked else 0),
        mount=not no_mount,
        gateways=asked.topology.gateways if asked else servers,
        settings=parse_settings(settings),
        address=address,
        bridge=bridge,
        subvolume=_one_of("--subvolume", subvolume, asked.subvolume if asked else ""),
        topology=asked.topology if asked else None,
    )
    if dry_run:
        _print_plan(spec, as_json)
        return
    _say_topology(spec)
    with _terminable():
        started = lab.start(spec, say)
    status = started.status()
    if as_json:
        print_json(status.as_json())
    else:
        _print_started(started, status)
    if not all(gateway.running for gateway in status.gateways):
        sys.exit(_INCOMPLETE)


def _one_of(option: str, given: str, written: str) -> str:
    """What was given, else what the topology's file says. Raises UsageError where they differ."""
    if given and written and given != written:
        raise UsageError(f"{option} {given} and {written} in the topology contradict each other", "Use one.")
    return given or written


def _osd_size_bytes(given: str, written_bytes: int) -> int:
    from leadline.lab.spec import parse_size_bytes

    found = parse_size_bytes(given or "10G")
    if given and written_bytes and found != written_bytes:
        raise UsageError(
            f"--osd-size {given} and {exact_size(written_bytes)} in the topology contradict each other",
            "Use one.",
        )
    return found if given else written_bytes or found


def _say_topology(spec: LabSpec) -> None:
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


def _print_plan(spec: LabSpec, as_json: bool) -> None:
    """What would stand where. Raises UsageError for what could not be started, but for want of root."""
    from pydantic_core import to_jsonable_python

    from leadline.lab.network.checks import check_topology
    from leadline.lab.network.drawing import outline
    from leadline.lab.network.placement import place
    from leadline.lab.spec import check_spec

    check_spec(spec)
    check_topology(spec)
    topology = spec.topology
    if as_json:
        placement = place(topology) if topology else {}
        print_json(
            {"format": "leadline.lab-plan/1", "spec": to_jsonable_python(spec), "placement": placement}
        )
        return
    _say_topology(spec)
    if topology is None:
        echo(f"no hosts: {spec.osd_count} OSDs on {spec.address}")
    else:
        for line in outline(topology):
            echo(line)
    echo(f"EC {spec.erasure_k}+{spec.erasure_m}, {spec.osd_count} OSDs")


def _print_started(started: Lab, found: LabStatus) -> None:
    echo(f"lab {found.name} is up in {found.directory}")
    network = started.record.network
    if network is not None and network.topology.clients:
        client = network.topology.clients[0].name
        echo(
            f"use it from a client: leadline lab exec {client} --lab {found.name} -- leadline run quick --lab"
        )
    elif found.targets:
        echo(target_options(found))
    echo(f"remove it with: leadline lab down {found.name}")


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM unwinds as Ctrl-C does, so that a lab that is being started is stopped in good order."""

    def unwind(number: int, _: object) -> None:
        sys.exit(128 + number)

    before: Callable[[int, Any], Any] | int | None = signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
