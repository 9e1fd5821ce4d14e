"""`leadline lab`: starts, shows and removes a disposable real Ceph on this host."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.console import echo, echo_text
from leadline.cli.machine import lab_client, lab_guest, lab_inject, lab_up
from leadline.cli.machine.lab_targets import check_lab_places
from leadline.cli.machine.lab_words import open_lab, print_json, require_one, say, target_options
from leadline.cli.options import AskedPath, name_argument
from leadline.errors import LabError, LeadlineError, UsageError
from leadline.units import printable

if TYPE_CHECKING:
    from leadline.lab import Lab, LabStatus
    from leadline.lab.network.links import NetworkStatus

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
    import os

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
    import shlex

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
    import os

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
    import os

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


command.add_command(lab_up.command)
command.add_command(lab_client.exec_command)
command.add_command(lab_client.mount_command)
command.add_command(lab_client.unmount_command)
command.add_command(lab_client.targets_command)
command.add_command(lab_guest.command)
command.add_command(lab_inject.command)
