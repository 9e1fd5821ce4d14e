"""`leadline lab up`: starts a disposable real Ceph on this host."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import echo
from leadline.cli.machine.lab_centre import AskedCentre, centre_options, one_of, print_plan, say_topology
from leadline.cli.machine.lab_words import print_json, say, target_options
from leadline.cli.options import name_argument, one_name
from leadline.cli.paths import AskedPath

if TYPE_CHECKING:
    from leadline.lab import LabStatus

_INCOMPLETE = 3  # what was asked for is there in part


@click.command("up")
@name_argument(former="--name")
@click.option("--osds", type=click.IntRange(min=1), help="How many OSDs.  [default: 4, or K+M if more]")
@click.option("--ec", "erasure", metavar="K+M", default="", help="Erasure coding.  [default: 2+1]")
@click.option(
    "--dir",
    "directory",
    type=AskedPath(file_okay=False),
    help="An empty or new directory.  [default: below ~/.local/state/leadline/labs]",
)
@click.option("--auth", type=click.Choice(["none", "cephx"]), default="cephx", show_default=True)
@click.option("--osd-size", metavar="SIZE", default="", help="Of each OSD; sparse.  [default: 10G]")
@click.option("--no-mount", is_flag=True, help="Do not mount the file system.")
@click.option("--gateways", metavar="LIST", default="", help="Of nfs, smb, xrootd, rgw; or all.")
@click.option(
    "--set", "settings", metavar="NAME=VALUE", multiple=True, help="A gateway's setting; repeatable."
)
@click.option("--address", default="127.0.0.1", show_default=True, help="Where every server listens.")
@click.option("--bridge", is_flag=True, help="Listen on a network bridge of the lab's own, for guests.")
@click.option(
    "--subvolume",
    metavar="[GROUP/]NAME",
    is_flag=False,
    flag_value="subvolume",
    default="",
    help="Add one with a namespace, mounted by a client restricted to it; NAME may be left out.",
)
@centre_options
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

    With --hosts, --topology or --reference its daemons are on hosts of their own, behind switches and links
    with limits. The exit code is 3 where the lab is up but a gateway that was asked for is not there.
    """
    from leadline import lab
    from leadline.lab.spec import parse_erasure, parse_gateways, parse_settings, parse_size_bytes

    servers = parse_gateways(gateways)
    asked = AskedCentre(**centre).resolve(osds, erasure, servers)
    k, m = asked.erasure if asked else parse_erasure(erasure or "2+1")
    written = asked.osd_size_bytes if asked else 0
    spec = lab.LabSpec(
        name=one_name(name, former_name),
        directory=directory,
        osds=osds or 0,
        erasure_k=k,
        erasure_m=m,
        auth="none" if auth == "none" else "cephx",
        osd_size_bytes=parse_size_bytes(osd_size) if osd_size else written or 10 << 30,
        mount=not no_mount,
        gateways=asked.topology.gateways if asked else servers,
        settings=parse_settings(settings),
        address=address,
        bridge=bridge,
        subvolume=one_of("--subvolume", subvolume, asked.subvolume if asked else ""),
        topology=asked.topology if asked else None,
    )
    if dry_run:
        print_plan(spec, as_json)
        return
    say_topology(spec)
    with _terminable():
        started = lab.start(spec, say)
    status = started.status()
    if as_json:
        print_json(status.as_json())
    else:
        _print_started(status)
    if not all(gateway.running for gateway in status.gateways):
        sys.exit(_INCOMPLETE)


def _print_started(found: LabStatus) -> None:
    echo(f"lab {found.name} is up in {found.directory}")
    if found.targets:
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
