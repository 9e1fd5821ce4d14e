"""`leadline lab`: starts, shows and removes a disposable real Ceph on this host, and uses it as a client."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leadline.cli.console import complain, echo, echo_text
from leadline.cli.machine import lab_guest, lab_inject, lab_up
from leadline.cli.machine.lab_targets import (
    check_lab_places,
    open_lab,
    print_json,
    require_one,
    say,
    target_options,
)
from leadline.cli.options import EXIT_OWN_FAILURE, WORDS, AskedPath, SeparatedCommand, name_argument
from leadline.errors import CommandError, LabError, LeadlineError, UsageError
from leadline.units import printable

if TYPE_CHECKING:
    from leadline.lab import Lab, LabStatus, LabTarget
    from leadline.lab.network.links import NetworkStatus


_Command = TypeVar("_Command", bound=Callable[..., Any])
_MOUNTED = ("ceph-fuse",)  # the way that needs no other
_DIRECTORY = click.option("--dir", "directory", type=AskedPath(file_okay=False), help="The lab's directory.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_NAME = name_argument()


@click.group(name="lab")
def command() -> None:
    """Start, show and remove a disposable real Ceph on this host.

    All OSDs share one disk: use the ratios, not the absolute numbers.
    """
    check_lab_places()


@command.command("status")
@_NAME
@_DIRECTORY
@_JSON
def status(name: str, directory: Path | None, as_json: bool) -> None:
    """Show a lab's daemons, health, placement groups, mount, targets and space.

    For a lab with hosts, also show its network and the rate on each link.
    """
    lab = open_lab(name, directory)
    found = lab.status()
    network, reason = _network_of(lab)
    if as_json:
        own = {} if lab.record.network is None else {"network": network and asdict(network)}
        print_json(found.as_json() | own | ({"network_reason": reason} if reason else {}))
        return
    _print_status(lab, found)
    if network is not None:
        _print_network(found, network)
    elif reason:
        echo(f"{'network':<10} not observable: {reason}")


def _network_of(lab: Lab) -> tuple[NetworkStatus | None, str]:
    """A lab's network, or why it cannot be shown: without it, the rest is worth showing."""
    try:
        return lab.network_status(), ""
    except LabError as error:
        return None, error.message


def _print_network(found: LabStatus, network: NetworkStatus) -> None:
    from leadline.lab.network.drawing import drawing

    ended = [daemon.name for daemon in found.daemons if not daemon.running]
    notes = {name: "mounted" if there else "its mount is gone" for name, there in found.client_mounts.items()}
    echo()
    for line in drawing(network, ended, notes):
        echo(line)


@command.command("env")
@_NAME
@_DIRECTORY
def env(name: str, directory: Path | None) -> None:
    """Print shell lines that point Ceph's own programs at a lab: eval "$(leadline lab env)"."""
    echo_text(open_lab(name, directory).shell_lines(), nl=False)


@command.command("list")
@_JSON
def list_labs(as_json: bool) -> None:
    """List the labs of this account."""
    from leadline.lab import registry

    labs = registry.directories(os.environ)
    if as_json:
        print_json({"format": "leadline.labs/1", "labs": {name: str(path) for name, path in labs.items()}})
        return
    for name, path in labs.items():
        echo_text(f"{printable(name)}\t{printable(path)}")
    if not labs:
        echo("no labs", err=True)
    _say_lost()


def _say_lost() -> None:
    """Name what runs of labs that are not where they were started: only who names it has it ended."""
    from leadline.lab import registry

    for place in registry.lost():
        echo(
            f"parts of a lab that was started in {place} are there, and no lab is:"
            f" leadline lab down --dir {shlex.quote(str(place))}",
            err=True,
        )


@command.command("down")
@_NAME
@_DIRECTORY
@click.option("--all", "every", is_flag=True, help="Remove every lab of this account.")
def down(name: str, directory: Path | None, every: bool) -> None:
    """Remove a lab: its processes, mounts and files. It may be half started or crashed."""
    if every and (name or directory):
        raise UsageError("--all and a lab's name contradict each other", "Give one of the two.")
    failures = [failure for path in _to_remove(name, directory, every) if (failure := _remove(path))]
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise LabError("\n".join(failure.message for failure in failures), failures[0].remedy)


def _to_remove(name: str, directory: Path | None, every: bool) -> list[Path]:
    from leadline.lab import registry

    if every:
        return list(registry.directories(os.environ).values())
    require_one(name, directory)
    if directory is not None:
        return [registry.place_of(directory)]
    if name:
        return [registry.resolve(name, os.environ)]
    default = registry.default_directory(os.environ)
    if default is None:
        echo("there is no lab: nothing to remove", err=True)
        _say_lost()
        return []
    return [default]


def _remove(path: Path) -> LeadlineError | None:
    from leadline.lab.cluster import stop

    try:
        removed = stop.remove(path, os.environ, say)
    except LeadlineError as error:
        return error
    stays = " (the directory stays)" if os.path.lexists(path) else ""
    echo(f"removed {path}{stays}" if removed else f"there is no lab in {path}", err=True)
    return None


def _print_status(lab: Lab, found: LabStatus) -> None:
    rows = [
        ("lab", f"{found.name} ({found.state})"),
        ("directory", found.directory),
        ("monitor", f"{found.mon_address}, authentication {found.auth}"),
        *_cluster_rows(found),
        ("mount", f"{found.mount}{'' if found.mounted else ' (not mounted)'}"),
        ("targets", _where_targets_are(lab, found)),
        ("on disk", f"{_gibibytes(found.disk_bytes)} used, {_gibibytes(found.free_bytes)} free"),
    ]
    for label, value in rows:
        echo(f"{label:<10} {value}")
    for gateway in found.gateways:
        words = "; ".join((gateway.reason or "runs", *gateway.notes))
        echo(f"  {gateway.name:<13} {gateway.address:<21} {words}")
    for injection in found.injections:
        echo(f"  {'fault':<13} {lab_inject.in_words(injection)}")
    for daemon in found.daemons:
        memory = "" if daemon.memory_bytes is None else f"{daemon.memory_bytes / 2**20:.0f} MiB"
        state = "runs" if daemon.running else f"has ended; log: {daemon.log}"
        echo(f"  {daemon.name:<13} pid {daemon.pid:<8} {memory:>9}  {state}")


def _where_targets_are(lab: Lab, found: LabStatus) -> str:
    """The lab's directories; of a lab with hosts, whom to ask: from here no link would hold anything back."""
    network = lab.record.network
    if network is None:
        return target_options(found) or "none: not mounted"
    clients = [client.name for client in network.topology.clients]
    if not clients:
        return "none: it was started without clients"
    return f"reached from its clients: leadline lab targets {found.name} --host {clients[0]}"


def _cluster_rows(found: LabStatus) -> list[tuple[str, str]]:
    state = found.cluster
    if state is None:
        return [("health", f"not observable: {found.cluster_reason}")]
    groups = ", ".join(f"{count} {name}" for name, count in state.pgs.items()) or "none"
    return [
        ("health", "; ".join((state.health, *state.checks))),
        ("OSDs", f"{state.osds} made, {state.osds_up} up, {state.osds_in} in; EC {found.erasure}"),
        ("PGs", groups),
        ("in Ceph", f"{_gibibytes(state.used_bytes)} of {_gibibytes(state.total_bytes)} used"),
    ]


def _gibibytes(value_bytes: int) -> str:
    return f"{value_bytes / 2**30:.2f} GiB"


def _lab_options(function: _Command) -> _Command:
    """Which lab: `--lab NAME` or `--dir DIR`; the argument is one of its members."""
    named = click.option("--lab", "lab", metavar="NAME", default="", help="The lab.  [default: the only one]")
    return named(_DIRECTORY(function))


@command.command("exec", cls=SeparatedCommand, options_metavar="CLIENT [OPTIONS] -- COMMAND...")
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


@command.command("mount")
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


@command.command("unmount")
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
        return UsageError(f"there is no gateway {through!r}", f"Access methods without a mount: {names}.")
    if target.reason:
        return UsageError(
            f"{client} cannot use {through}: {target.reason}", "Start a lab whose hosts run it."
        )
    asked = shlex.quote(f"{target.name}={target.where}")
    return UsageError(
        f"{client} does not mount {through}: {why_not_through(target.way)}",
        f"Use it without a mount: leadline lab exec {client} -- leadline run quick --target {asked}",
    )


@command.command("targets")
@_NAME
@_DIRECTORY
@click.option("--host", "client", metavar="CLIENT", default="", help="The client, in a lab with hosts.")
@_JSON
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


for _other in (lab_up, lab_guest, lab_inject):
    command.add_command(_other.command)
