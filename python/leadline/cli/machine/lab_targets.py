"""A lab for verbs: which is meant, how they speak of it, and its targets. Only here do lab and flow meet."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leadline.cli.console import echo, echo_text
from leadline.cli.measure.labs import KERNEL_WAYS, NOT_DONE
from leadline.errors import SpecError, UsageError

if TYPE_CHECKING:
    from leadline.lab import Lab, LabStatus
    from leadline.lab.targets import LabTarget
    from leadline.study.target import LeftOut, Target


def open_lab(name: str, directory: Path | None) -> Lab:
    """The lab of this name, or in this directory. Raises UsageError where both are given."""
    from leadline import lab

    require_one(name, directory)
    return lab.open(directory if directory is not None else name)


def require_one(name: str, directory: Path | None) -> None:
    """Raises UsageError where a lab is named in both ways."""
    if name and directory is not None:
        raise UsageError("a name and --dir were given", "Give one of the two.")


def say(words: str) -> None:
    """What goes on, on standard error."""
    echo(f"lab: {words}", err=True)


def print_json(value: dict[str, Any]) -> None:
    """A document for programs."""
    echo_text(json.dumps(value, indent=1))


def target_options(found: LabStatus) -> str:
    """The lab's directories as options of other verbs."""
    options = (f"--target {name}={shlex.quote(str(path))}" for name, path in found.targets.items())
    return " ".join(options)


LOCAL = "local"
LOCAL_DIRECTORY = "/var/tmp"  # noqa: S108 - on this host's own disk, as a rule; what it is, is looked at and said
_Command = TypeVar("_Command", bound=Callable[..., Any])


def lab_option(words: str) -> Callable[[_Command], _Command]:
    """Adds `--lab [NAME]`: None where it was not given, "" without a name."""
    return click.option("--lab", is_flag=False, flag_value="", default=None, metavar="[NAME]", help=words)


def check_lab_places() -> None:
    """Labs lie in the home directory and run programs on the path. Raises TargetError where one hangs."""
    from leadline.lab.paths import labs_home
    from leadline.observe.hang_guard import check_answers, search_path

    check_answers([labs_home(os.environ), *search_path()])


def clients_from_outside(name: str) -> list[str]:
    """The clients of a lab with hosts, where this is none of them; of any other lab, none.

    Raises UsageError where there is no such lab.
    """
    from leadline import lab

    check_lab_places()
    if os.environ.get(lab.HOST, ""):
        return []
    network = lab.open(name).record.network
    return [client.name for client in network.topology.clients] if network is not None else []


def targets_of_lab(name: str, *, on_hosts: bool = False) -> tuple[LabTarget, ...]:
    """Every way to a lab that is up, with what its targets need put into this process's environment.

    On a client of a lab with hosts (`leadline lab exec`), its ways; for a study that its clients execute
    (`on_hosts`) those of the first: each has its own. Raises UsageError where there is no such
    lab, it is not up, or has clients and this is none of them.
    """
    from leadline import lab
    from leadline.faults import DIRECTORY

    check_lab_places()
    client, place = os.environ.get(lab.HOST, ""), os.environ.get(DIRECTORY, "")
    found = lab.open(name or (Path(place) if client and place else ""))
    if on_hosts and found.record.network is not None:
        targets = tuple(next(iter(found.targets_from_all().values())))
    else:
        targets = tuple(_ways_of_client(found, client, place) if found.record.network else found.targets())
    if not targets:
        raise UsageError(
            f"lab {found.record.name} is not up", "start one with: leadline lab up --gateways all"
        )
    for target in targets:
        os.environ.update(target.variables)
    return targets


def _ways_of_client(found: Lab, client: str, place: str) -> list[LabTarget]:
    """What a client of a lab with hosts reaches; the machine itself is behind none of its links."""
    record = found.record
    if client and Path(place) == record.directory:
        return found.targets_from(client)
    clients = [item.name for item in record.network.topology.clients] if record.network else []
    if not clients:
        raise UsageError(f"lab {record.name} has no clients to use it", "start one with: --clients 1")
    raise UsageError(
        f"lab {record.name} has hosts: its storage is reached from its clients, each behind its own link",
        f"run it on one: leadline lab exec {clients[0]} --lab {record.name} -- leadline run STUDY --lab;"
        " or on all: --hosts lab",
    )


def ways_to_lab(name: str, *, on_hosts: bool = False) -> tuple[dict[str, Target], tuple[LeftOut, ...]]:
    """A lab's targets by name, `local` behind them, and what of the lab is not there with the reason.

    On its hosts there is no `local`: all of them have one disk, this machine's. A target that takes options
    in its environment finds them there.
    """
    from leadline.study.target import LeftOut, Target, check_name, check_url

    ways: dict[str, Target] = {}
    absent: list[LeftOut] = []
    for item in targets_of_lab(name, on_hosts=on_hosts):
        if item.way in KERNEL_WAYS:
            absent.append(LeftOut(item.name, None, NOT_DONE))
            continue
        try:
            reason, url = item.reason, check_url(item.where) if not item.reason else item.where
        except SpecError as error:
            reason, url = error.message, item.where
        if reason:
            absent.append(LeftOut(item.name, None, reason, url))
        else:
            ways[item.name] = Target(check_name(item.name), url, f"{name or 'lab'}: {item.same_bytes}")
    if not ways:
        raise UsageError("the lab offers no target", "see: leadline lab status")
    own = {} if on_hosts else {LOCAL: Target(LOCAL, LOCAL_DIRECTORY, LOCAL_DIRECTORY)}
    return {**ways, **own}, tuple(absent)
