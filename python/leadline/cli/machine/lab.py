"""`leadline lab`: starts, shows and removes a disposable real Ceph on this host."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import echo, echo_text
from leadline.cli.machine import lab_client, lab_guest, lab_inject
from leadline.cli.machine.lab_targets import check_lab_places
from leadline.cli.options import name_argument, one_name
from leadline.cli.paths import AskedPath
from leadline.errors import LabError, LeadlineError, UsageError
from leadline.units import printable

if TYPE_CHECKING:
    from leadline.lab import Lab, LabStatus

_DIRECTORY = click.option("--dir", "directory", type=AskedPath(file_okay=False), help="The lab's directory.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_INCOMPLETE = 3  # what was asked for is there in part
_NAME = name_argument()


@click.group(name="lab")
def command() -> None:
    """Start, show and remove a disposable real Ceph on this host.

    All its OSDs share one disk: it shows mechanisms and ratios, never absolute figures of a cluster.
    """
    check_lab_places()


@command.command("up")
@name_argument(former="--name")
@click.option("--osds", type=click.IntRange(min=1), help="How many OSDs.  [default: 4, or K+M if more]")
@click.option("--ec", "erasure", metavar="K+M", default="2+1", show_default=True, help="Erasure coding.")
@click.option(
    "--dir",
    "directory",
    type=AskedPath(file_okay=False),
    help="An empty or new directory.  [default: below ~/.local/state/leadline/labs]",
)
@click.option("--auth", type=click.Choice(["none", "cephx"]), default="cephx", show_default=True)
@click.option("--osd-size", metavar="SIZE", default="10G", show_default=True, help="Of each OSD; sparse.")
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
@_JSON
def up(
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
    as_json: bool,
    former_name: str,
) -> None:
    """Start a lab, called NAME or lab: a cluster with CephFS mounted by ceph-fuse, and gateways.

    The exit code is 3 where the lab is up but a gateway that was asked for is not there.
    """
    from leadline import lab
    from leadline.lab.spec import parse_erasure, parse_gateways, parse_settings, parse_size_bytes

    k, m = parse_erasure(erasure)
    spec = lab.LabSpec(
        name=one_name(name, former_name),
        directory=directory,
        osds=osds or 0,
        erasure_k=k,
        erasure_m=m,
        auth="none" if auth == "none" else "cephx",
        osd_size_bytes=parse_size_bytes(osd_size),
        mount=not no_mount,
        gateways=parse_gateways(gateways),
        settings=parse_settings(settings),
        address=address,
        bridge=bridge,
        subvolume=subvolume,
    )
    with _terminable():
        started = lab.start(spec, _say)
    status = started.status()
    if as_json:
        _print_json(status.as_json())
    else:
        _print_started(status)
    if not all(gateway.running for gateway in status.gateways):
        sys.exit(_INCOMPLETE)


@command.command("status")
@_NAME
@_DIRECTORY
@_JSON
def status(name: str, directory: Path | None, as_json: bool) -> None:
    """Show a lab's daemons, health, placement groups, mount, targets and space."""
    found = _open(name, directory).status()
    if as_json:
        _print_json(found.as_json())
    else:
        _print_status(found)


@command.command("env")
@_NAME
@_DIRECTORY
def env(name: str, directory: Path | None) -> None:
    """Print shell lines that point Ceph's own programs at a lab: eval "$(leadline lab env)"."""
    echo_text(_open(name, directory).shell_lines(), nl=False)


@command.command("list")
@_JSON
def list_labs(as_json: bool) -> None:
    """List the labs of this account."""
    import os

    from leadline.lab import registry

    labs = registry.directories(os.environ)
    if as_json:
        _print_json({"format": "leadline.labs/1", "labs": {name: str(path) for name, path in labs.items()}})
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
            f"processes of a lab that was started in {place} run, and no lab is there:"
            f" leadline lab down --dir {shlex.quote(str(place))}",
            err=True,
        )


@command.command("down")
@_NAME
@_DIRECTORY
@click.option("--all", "every", is_flag=True, help="Remove every lab of this account.")
def down(name: str, directory: Path | None, every: bool) -> None:
    """Remove a lab: its processes, its mount, its files. It may be half started or crashed."""
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
    _require_one(name, directory)
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
        removed = stop.remove(path, os.environ, _say)
    except LeadlineError as error:
        return error
    stays = " (the directory stays)" if os.path.lexists(path) else ""
    echo(f"removed {path}{stays}" if removed else f"there is no lab in {path}", err=True)
    return None


def _open(name: str, directory: Path | None) -> Lab:
    from leadline import lab

    _require_one(name, directory)
    return lab.open(directory if directory is not None else name)


def _require_one(name: str, directory: Path | None) -> None:
    if name and directory is not None:
        raise UsageError("a name and --dir were given", "Give one of the two.")


def _say(words: str) -> None:
    echo(f"lab: {words}", err=True)


def _print_json(value: dict[str, Any]) -> None:
    echo_text(json.dumps(value, indent=1))


def _print_started(found: LabStatus) -> None:
    echo(f"lab {found.name} is up in {found.directory}")
    if found.targets:
        echo(_target_options(found))
    echo(f"remove it with: leadline lab down {found.name}")


def _target_options(found: LabStatus) -> str:
    import shlex

    options = (f"--target {name}={shlex.quote(str(path))}" for name, path in found.targets.items())
    return " ".join(options)


def _print_status(found: LabStatus) -> None:
    rows = [
        ("lab", f"{found.name} ({found.state})"),
        ("directory", found.directory),
        ("monitor", f"{found.mon_address}, authentication {found.auth}"),
        *_cluster_rows(found),
        ("mount", f"{found.mount}{'' if found.mounted else ' (not mounted)'}"),
        ("targets", _target_options(found) or "none: not mounted"),
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


command.add_command(lab_client.exec_command)
command.add_command(lab_client.mount_command)
command.add_command(lab_client.unmount_command)
command.add_command(lab_client.targets_command)
command.add_command(lab_guest.command)
command.add_command(lab_inject.command)


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
