"""`leadline targets`: what this host can reach, ready to paste as `--target NAME=WHERE`."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.console import echo, echo_text
from leadline.cli.machine.lab_targets import lab_option
from leadline.errors import TargetError

if TYPE_CHECKING:
    from leadline.observe.mounts.reachable import Reachable

_DEFAULT_CONF = Path("/etc/ceph/ceph.conf")


@click.command(name="targets")
@click.option("--conf", metavar="FILE", help="ceph.conf.  [default: $CEPH_CONF, or /etc/ceph/ceph.conf]")
@click.option("--user", metavar="ID", help="Name of the Ceph user, without its prefix `client`.")
@click.option("--keyring", metavar="FILE", help="Keyring of the user.")
@lab_option("List the targets of a lab. NAME is the lab; without it, the only one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(conf: str | None, user: str | None, keyring: str | None, lab: str | None, as_json: bool) -> None:
    """List the storage that this host can reach: mounts, pools and file systems of a cluster, gateways of a
    lab.

    Each line can be passed to `leadline run`. Nothing is written. A mount that hangs is named and skipped.
    """
    from leadline.observe.mounts.mountinfo import read_mounts
    from leadline.observe.mounts.reachable import ClusterAccess, reachable_mounts

    groups = [("mounts", reachable_mounts(read_mounts()), "")]
    chosen = conf or os.environ.get("CEPH_CONF")
    if chosen or user or keyring or _DEFAULT_CONF.exists():
        access = ClusterAccess(chosen or "", user or "", keyring or "")
        groups.append(("cluster", *_cluster(access, asked=conf is not None)))
    else:
        groups.append(("cluster", (), f"{_DEFAULT_CONF} is not there; name one with --conf"))
    if lab is not None:
        groups.append(("lab", _lab(lab), ""))
    _print(groups, as_json)


def _cluster(access: object, *, asked: bool) -> tuple[tuple[Reachable, ...], str]:
    """What the cluster has, or the reason; a cluster that was asked for must answer."""
    from leadline.observe.mounts.reachable import ClusterAccess, reachable_in_cluster

    assert isinstance(access, ClusterAccess)  # noqa: S101 - imported late, for the start of --help
    try:
        return reachable_in_cluster(access), ""
    except TargetError as error:
        if asked:
            raise
        return (), error.message


def _lab(name: str) -> tuple[Reachable, ...]:
    from leadline.cli.machine.lab_targets import targets_of_lab
    from leadline.observe.mounts.reachable import Reachable

    return tuple(Reachable(item.name, item.where, item.way, item.reason) for item in targets_of_lab(name))


def _print(groups: list[tuple[str, tuple[Reachable, ...], str]], as_json: bool) -> None:
    if as_json:
        value = {
            "format": "leadline.targets/1",
            **{name: [vars(item).copy() for item in items] for name, items, _ in groups},
            "reasons": {name: reason for name, _, reason in groups if reason},
        }
        echo_text(json.dumps(value, indent=2))
        return
    for name, items, reason in groups:
        echo(f"{name}:" if items else f"{name}: none{': ' + reason if reason else ''}")
        for item in items:
            if item.reason:
                echo(f"  not {item.where}: {item.reason}")
            else:
                echo(f"  --target {shlex.quote(f'{item.name}={item.where}')}")
                echo(f"      {item.words}")
