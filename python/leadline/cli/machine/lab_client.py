"""`leadline lab exec`, `mount`, `unmount`, `targets`: using a lab's storage as one of its clients does."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leadline.cli.console import complain, echo
from leadline.cli.machine.lab_words import open_lab, print_json
from leadline.cli.options import EXIT_OWN_FAILURE, WORDS, AskedPath, SeparatedCommand, name_argument
from leadline.errors import CommandError, LeadlineError, UsageError

if TYPE_CHECKING:
    from leadline.lab import Lab, LabTarget

_Command = TypeVar("_Command", bound=Callable[..., Any])
_MOUNTED = ("ceph-fuse",)  # the way that needs no other


def _lab_options(command: _Command) -> _Command:
    """Which lab: `--lab NAME` or `--dir DIR`; the argument is one of its members."""
    named = click.option("--lab", "lab", metavar="NAME", default="", help="The lab.  [default: the only one]")
    return named(_directory_option(command))


def _directory_option(command: _Command) -> _Command:
    return click.option("--dir", "directory", type=AskedPath(file_okay=False), help="The lab's directory.")(
        command
    )


@click.command("exec", cls=SeparatedCommand, options_metavar="CLIENT [OPTIONS] -- COMMAND...")
@click.argument("member", metavar="")
@_lab_options
@click.pass_context
def exec_command(context: click.Context, member: str, lab: str, directory: Path | None) -> int:
    """Run COMMAND on a client, or a host, of a lab with hosts: in its network, behind its link.

    COMMAND sees this machine's files and mounts. CEPH_CONF and CEPH_ARGS let Ceph's programs run as the
    client's own user. COMMAND receives your signals, and leadline exits as it does: 126 or 127 if it cannot
    be started, 125 for a failure of leadline itself. `leadline lab down` ends what still runs there.

    \b
    leadline lab exec client2 -- rados bench -p objects 10 write
    leadline lab exec client2 -- leadline run quick --lab
    """
    from leadline.lab.network import members

    words = context.meta[WORDS]
    try:
        if not words:
            raise UsageError("no command was given", f"Write: leadline lab exec {member} -- COMMAND WORDS")
        found = open_lab(lab, directory)
        sys.stdout.flush()
        sys.stderr.flush()
        members.enter(found.record, member, words, os.environ)
    except CommandError as error:
        complain(error)
        return error.exit_code
    except LeadlineError as error:
        complain(error)
    return EXIT_OWN_FAILURE


@click.command("mount")
@click.argument("client")
@click.argument("path", default="/", required=False)
@click.option(
    "--through",
    metavar="GATEWAY",
    default="",
    help="Show how the client uses this gateway instead of a mount.",
)
@_lab_options
def mount_command(client: str, path: str, through: str, lab: str, directory: Path | None) -> None:
    """Mount PATH of the lab's CephFS on a client by ceph-fuse, as that client's own user.

    All of this machine sees the mount, whose traffic passes the client's link. `leadline lab down` undoes it.
    """
    found = open_lab(lab, directory)
    if through:
        raise _no_mount_through(found, client, through)
    point, made = found.mount(client, path)
    echo(f"{client} has it mounted on {point}" if made else f"{client} had it mounted already on {point}")


@click.command("unmount")
@click.argument("client")
@_lab_options
def unmount_command(client: str, lab: str, directory: Path | None) -> None:
    """Undo `leadline lab mount`."""
    undone = open_lab(lab, directory).unmount(client)
    echo(f"unmounted from {client}" if undone else f"{client} had nothing mounted")


def _no_mount_through(found: Lab, client: str, through: str) -> UsageError:
    """Why a gateway is not mounted, and what to use in its place."""
    from leadline.lab.network.members import why_not_through

    ways = [item for item in found.targets_from(client) if item.way not in _MOUNTED]
    target = next((item for item in ways if through in (item.name, item.way)), None)
    if target is None:
        names = ", ".join(item.name for item in ways)
        return UsageError(f"there is no gateway {through!r}", f"Ways without a mount: {names}.")
    if target.reason:
        return UsageError(
            f"{client} cannot use {through}: {target.reason}", "Start a lab whose hosts run it."
        )
    asked = shlex.quote(f"{target.name}={target.where}")
    return UsageError(
        f"{client} does not mount {through}: {why_not_through(target.way)}",
        f"Use it without a mount: leadline lab exec {client} -- leadline run quick --target {asked}",
    )


@click.command("targets")
@name_argument()
@_directory_option
@click.option("--host", "client", metavar="CLIENT", default="", help="The client, in a lab with hosts.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def targets_command(name: str, directory: Path | None, client: str, as_json: bool) -> None:
    """List every access method of a lab as --target options. Missing ones are listed with the reason.

    In a lab with hosts, name the client by --host.
    """
    from leadline.lab.targets import FORMAT

    found = open_lab(name, directory)
    network = found.record.network
    if client or network is None:
        ways = found.targets_from(client) if client else found.targets()
        if as_json:
            print_json({"format": FORMAT, "host": client, "targets": [asdict(item) for item in ways]})
        else:
            _print_targets(ways)
        return
    clients = [item.name for item in network.topology.clients]
    if as_json:
        every = {item: [asdict(way) for way in found.targets_from(item)] for item in clients}
        print_json({"format": FORMAT, "targets": [], "clients": every})
        return
    echo(f"the storage of lab {found.record.name} is reached from its clients:", err=True)
    for item in clients:
        ways = [way for way in found.targets_from(item) if not way.reason]
        echo(f"leadline lab targets {found.record.name} --host {item}")
        echo(f"    {', '.join(way.name for way in ways)}")


def _print_targets(ways: list[LabTarget]) -> None:
    for target in ways:
        if target.reason:
            echo(f"{target.name}: {target.reason}", err=True)
        else:
            echo(f"--target {target.name}={shlex.quote(target.where)}")
