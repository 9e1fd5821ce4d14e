"""`leadline deploy`: a lab's or topology's cluster, written out for those who deploy one of that shape."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.console import echo, echo_text
from leadline.cli.options import AskedPath, WrittenPath, out_option
from leadline.errors import UsageError

if TYPE_CHECKING:
    from leadline.lab.network.topology import Topology


@click.group(name="deploy")
def command() -> None:
    """Write a cluster's configuration for cephadm. Nothing is deployed."""


@command.command("emit")
@click.option("--lab", "lab_name", default="", metavar="NAME", help="Use the cluster of this lab.")
@click.option(
    "--topology", type=AskedPath(dir_okay=False), help="Use the cluster of this topology file (YAML)."
)
@click.option(
    "--reference",
    default="",
    metavar="NAME",
    help="A document's cluster, scaled down: castor, fermilab, opencast or suse.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["cephadm", "commands"]),
    default="cephadm",
    show_default=True,
    help="Hosts and services as a cephadm specification, or pools, rules and layouts as commands.",
)
@click.option(
    "--ec", "erasure", default="", metavar="K+M", help="The erasure code, if nothing else defines it."
)
@click.option(
    "--mount",
    default="",
    metavar="PATH",
    help="Mount point of the file system, for layout commands.",
)
@out_option("File to write.  [default: standard output]", path=WrittenPath(dir_okay=False))
@click.option("--force", is_flag=True, help="Overwrite the file.")
def emit(
    lab_name: str,
    topology: Path | None,
    reference: str,
    form: str,
    erasure: str,
    mount: str,
    out: Path | None,
    force: bool,
) -> None:
    """Write a cluster as a cephadm specification, or its pools and layouts as commands.

    The specification has hosts, services, placement and device classes (ceph orch apply -i). CRUSH rules,
    erasure-code profiles, pools, the file system and directory layouts are commands to run after it.
    """
    from leadline.lab import deployment

    given = [
        name
        for name, one in (("--lab", lab_name), ("--topology", topology), ("--reference", reference))
        if one
    ]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} both name a cluster", "Give one of them.")
    if mount and (form != "commands" or not mount.startswith("/") or not mount.isprintable()):
        raise UsageError(
            f"--mount {mount} is no path for commands", "Give an absolute path, with --format commands."
        )
    found = _of_file(topology, reference, erasure) if topology or reference else _of_lab(lab_name, erasure)
    if form == "cephadm":
        text = deployment.specification(found.topology, found.addresses)
    else:
        text = deployment.script(
            found.topology, found.erasure, mount or found.mount or deployment.MOUNT_DEFAULT
        )
    write_or_print(text, out, force)


@dataclass(frozen=True)
class DeployedShape:
    """What is written out. `mount` is "" where nothing says where the file system is mounted."""

    topology: Topology
    erasure: tuple[int, int]
    addresses: dict[str, str]
    mount: str = ""


def _of_file(file: Path | None, reference: str, erasure: str) -> DeployedShape:
    from leadline.lab.network.topology_file import load_topology, read_topology, reference_text

    if file is not None:
        asked = load_topology(file, os.environ, erasure, made_here=False)
    else:
        asked = read_topology(
            reference_text(reference), f"{reference} (built-in)", {}, erasure, made_here=False
        )
    return DeployedShape(asked.topology, asked.erasure, {})


def _of_lab(name: str, erasure: str) -> DeployedShape:
    """A lab without hosts stands for one host that carries everything."""
    from leadline import lab
    from leadline.cli.machine.lab_targets import check_lab_places
    from leadline.lab.network.topology import Link, simple, with_gateways

    check_lab_places()
    record = lab.open(name).record
    spec = record.spec
    if erasure:
        raise UsageError("--ec and a lab both define the erasure code", "Leave out --ec.")
    shape = (spec.erasure_k, spec.erasure_m)
    if record.network is None:
        made = with_gateways(simple(1, 0, 1, spec.osd_count, Link(), Link()), spec.gateways)
        return DeployedShape(made, shape, {})
    network = record.network
    addresses = {host.name: network.address(host.name) for host in network.topology.hosts}
    return DeployedShape(network.topology, shape, addresses)


def write_or_print(text: str, out: Path | None, force: bool) -> None:
    """One text to where it was asked for. Raises UsageError where a file is there already."""
    if out is None:
        echo_text(text, nl=False)
        return
    from leadline.cli.files import write_file

    if not force and os.path.lexists(out) and (out.is_file() or out.is_symlink()):
        raise UsageError(f"{out} is there already", "Name another file with -o, or give --force.")
    write_file(out, text.encode(), "-o")
    echo(f"wrote {out}", err=True)
