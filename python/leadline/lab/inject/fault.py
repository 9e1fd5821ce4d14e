"""What a kind of fault is: a row that says what can be done, on what, with which options, and how.

A new kind is such a row in the module of its group: neither the engine nor the command knows any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from leadline.errors import LabError
from leadline.lab.cluster.command import CephCommand
from leadline.lab.cluster.process import ProcessIdentity
from leadline.lab.inject.injection import FaultPlan, FaultStep, LabAction
from leadline.lab.record import LabRecord


@dataclass(frozen=True)
class FaultOption:
    """One option, `name=default`. `check` raises SpecError for a text that is no such value."""

    name: str
    default: str
    check: Callable[[str], object]
    words: str


@dataclass(frozen=True)
class FaultScene:
    """Where a fault is to be done. `options` has every option of its kind, as text."""

    record: LabRecord
    on: str
    options: Mapping[str, str]
    variables: Mapping[str, str]

    @property
    def number(self) -> str:
        """What follows the dot: `1` of `osd.1`."""
        return self.on.partition(".")[2]

    @property
    def process(self) -> ProcessIdentity:
        """The process that `on` names. Raises LabError where it is not of this lab."""
        return process_of(self.record, self.on)

    @cached_property
    def settings(self) -> list[dict[str, Any]]:
        """What the monitors tell daemons beside their ceph.conf."""
        found: list[dict[str, Any]] = self.ask("config", "dump")
        return found

    def ask(self, *words: str) -> Any:
        """What the cluster answers to `ceph WORDS --format=json`. Raises LabError."""
        return CephCommand(self.record.paths.conf, self.variables).json(*words, deadline_s=20.0)


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault. `things` names what it can be done on in a lab: with one only, it need not be named.

    `plan` looks, and changes nothing. `lacking` says why it cannot be done in this lab on this machine, and
    what would allow it; "" where it can.
    `limit_s` is for how long it may last at most; 0 for any time. One that is not `lasting` passes by itself:
    it is undone as soon as it was done.
    """

    name: str
    help: str
    on: str
    things: Callable[[LabRecord], list[str]]
    plan: Callable[[FaultScene], FaultPlan]
    options: tuple[FaultOption, ...] = ()
    lacking: Callable[[LabRecord], str] = field(default=lambda _: "")
    limit_s: float = 0.0
    lasting: bool = True


def no_hosts(record: LabRecord) -> str:
    """Why nothing that needs hosts can be done in this lab; "" where it has some."""
    if record.network is not None:
        return ""
    return "it has no hosts; start one with: leadline lab up --hosts 3 --clients 2"


def setting(scene: FaultScene, who: str, name: str, value: str) -> FaultStep:
    """A step that gives daemons a setting; undone to what they were given before, if anything."""
    there = [row for row in scene.settings if row["section"] == who and row["name"] == name]
    undo = ("set", who, name, str(there[0]["value"])) if there else ("rm", who, name)
    return FaultStep(
        LabAction("ceph", ("config", "set", who, name, value)),
        LabAction("ceph", ("config", *undo)),
    )


def nothing(_: LabRecord) -> list[str]:
    """The things of a fault of the whole cluster."""
    return []


def processes(*prefixes: str) -> Callable[[LabRecord], list[str]]:
    """The lab's processes whose names begin so, such as `osd.`, by their numbers."""

    def found(record: LabRecord) -> list[str]:
        names = {item.name for item in record.processes if item.name.startswith(prefixes)}
        return sorted(names, key=lambda name: (len(name), name))

    return found


def process_of(record: LabRecord, name: str) -> ProcessIdentity:
    """The lab's process of this name. Raises LabError where there is none."""
    for item in record.processes:
        if item.name == name:
            return item
    raise LabError(f"lab {record.name} has no process {name}", "See `leadline lab status`.")
