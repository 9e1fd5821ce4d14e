"""`leadline doctor`: says what works on this machine, what does not, and what to install."""

from __future__ import annotations

import json
import os
import platform
import shutil
import textwrap
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.console import echo_text, make_console

if TYPE_CHECKING:
    from rich.table import Table

    from leadline.observe.capabilities import Capability

_INSTALL = "apt-get install --no-install-recommends"
# program -> (Debian package, used for)
_PROGRAMS = {
    "fio": ("fio", "`leadline run --engine fio`"),
}
_WIDTH = 100  # columns, on a pipe too
_ENGINE = "engine "
_GROUP_WIDTH = 12
_STYLES = {"works": "green", "limited": "yellow", "missing": "red"}


@click.command()
@click.option("--all", "whole", is_flag=True, help="Also show a row for each part that works.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(whole: bool, as_json: bool) -> None:
    """Show what works on this machine, what does not, and what to install for it.

    Nothing is changed. The exit code is 0, also where something is missing.
    """
    from leadline.cli.installation import installation_checks, require_core

    require_core()
    from leadline.observe.capabilities import machine_checks

    # `tempfile.gettempdir` writes there to find out, where it may hang.
    temporary = next(filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP"))), "/tmp")  # noqa: S108
    places = {"the working directory": str(Path.cwd()), "the temporary directory": temporary}
    machine, path = machine_checks(places), _path_checks()
    checks = _together([*_leadline_checks(), *installation_checks(), *machine, *path])
    if as_json:
        document = {"format": "leadline.doctor/1", "checks": [asdict(check) for check in checks]}
        echo_text(json.dumps(document, indent=2))
        return
    _print(checks, whole=whole)


def _path_checks() -> list[Capability]:
    """What is looked for on PATH, where every directory of it answers."""
    from leadline.errors import TargetError
    from leadline.observe.capabilities import Capability
    from leadline.observe.hang_guard import check_answers, search_path

    try:
        check_answers(search_path())
    except TargetError as error:
        return [Capability("programs", "PATH", "missing", error.message, "programs", error.remedy)]
    return [*_lab_checks(), *_program_checks(shutil.which)]


def _leadline_checks() -> list[Capability]:
    from leadline import _core
    from leadline.observe.capabilities import Capability

    python = Capability("leadline", "Python", "works", platform.python_version(), "everything")
    return [python, _version_check(_core.version()), _agent_check(), *_engine_checks(_core.engines())]


def _agent_check() -> Capability:
    """The agents for hosts that have no leadline."""
    from leadline.hosts.agent.copying import VARIABLE, CopyError, carried
    from leadline.observe.capabilities import Capability
    from leadline.units import format_size

    name, used_for = "agents", "`--hosts` on hosts that have no leadline"
    try:
        found = carried()
    except CopyError as error:
        return Capability("leadline", name, "missing", error.message, used_for, error.remedy)
    if not found:
        why, remedy = "none in this installation", f"In a clone: make agent. Or name one in {VARIABLE}."
        return Capability("leadline", name, "missing", why, used_for, remedy)
    words = ", ".join(f"{machine} ({format_size(file.size)})" for machine, file in found.items())
    return Capability("leadline", name, "works", words, used_for)


def _version_check(core: str) -> Capability:
    from importlib.metadata import PackageNotFoundError, version

    from leadline.cli.installation import remedy
    from leadline.observe.capabilities import Capability

    name, used_for = "version", "everything"
    try:
        package = version("leadline")
    except PackageNotFoundError:
        why = f"load engine {core}; the package is not installed, only on the path"
        return Capability("leadline", name, "limited", why, used_for, remedy())
    if package == core:
        return Capability("leadline", name, "works", f"{core}, package and load engine", used_for)
    why = f"the package is {package}, the load engine {core}"
    return Capability("leadline", name, "missing", why, used_for, remedy())


def _engine_checks(engines: list[dict[str, object]]) -> list[Capability]:
    from leadline.observe.capabilities import Capability, State, installation_of
    from leadline.study.schemes import table

    schemes = {engine.name: scheme for scheme in table() if scheme.url for engine in scheme.engines}
    checks = []
    for engine in engines:
        available = bool(engine["available"])
        words = str(engine["words"])
        why = words if available else str(engine["reason"] or "not available")
        state: State = "works" if available else "missing"
        scheme = schemes.get(str(engine["name"]))
        used_for = f"targets that begin with {scheme.name}://" if scheme else f"I/O through {engine['name']}"
        remedy = "Another engine is chosen, and the plan names it."
        if scheme and scheme.package:
            remedy = installation_of([scheme.package])
        name = f"{_ENGINE}{engine['name']}"
        checks.append(Capability("leadline", name, state, why, used_for, "" if available else remedy))
    return checks


def _lab_checks() -> list[Capability]:
    from leadline.lab import requirements
    from leadline.observe.capabilities import Capability

    used_for = "`leadline lab`"
    lacking = requirements.missing_packages()
    if lacking:
        why = f"not installed: {', '.join(lacking)}"
        return [Capability("Ceph", "lab", "missing", why, used_for, f"{_INSTALL} {' '.join(lacking)}")]
    lab = Capability("Ceph", "lab", "works", "every program that a lab needs is installed", used_for)
    return [lab, *_gateway_checks(), *_network_checks(), *_limit_checks()]


def _network_checks() -> list[Capability]:
    from leadline.lab.requirements import FEATURES, why_lacking
    from leadline.observe.capabilities import Capability, State

    checks = []
    for feature in FEATURES:
        why = why_lacking(feature, os.environ)
        state: State = "works" if not why else "limited" if feature.optional else "missing"
        remedy = feature.remedy if why else ""
        checks.append(Capability("lab", feature.name, state, why or "it was tried", feature.used_for, remedy))
    return checks


def _limit_checks() -> list[Capability]:
    from leadline.lab.cgroups import CONTROLLERS, ControlGroups
    from leadline.observe.capabilities import Capability

    checks, groups = [], ControlGroups("doctor")
    for controller in CONTROLLERS:
        why, found = groups.lacking(controller), groups.hierarchy(controller)
        used_for = f"{controller} limits of a lab's hosts, and faults that are slow"
        if why or found is None:
            remedy = "As root, with that controller: others of a lab's faults work without."
            checks.append(Capability("lab", f"{controller} limits", "missing", why, used_for, remedy))
        else:
            words = f"control groups of version {found.version} in {found.root}"
            checks.append(Capability("lab", f"{controller} limits", "works", words, used_for))
    return checks


def _gateway_checks() -> list[Capability]:
    from leadline.lab.gateways.kinds import KINDS
    from leadline.observe.capabilities import Capability

    checks = []
    for name, kind in KINDS.items():
        used_for, lacking = f"`leadline lab up --gateways {name}`", kind.lacking()
        if lacking:
            why, remedy = f"not installed: {', '.join(lacking)}", f"{_INSTALL} {' '.join(lacking)}"
            checks.append(Capability("Ceph", f"gateway {name}", "missing", why, used_for, remedy))
        else:
            checks.append(Capability("Ceph", f"gateway {name}", "works", kind.words, used_for))
    return checks


def _program_checks(which: Callable[[str], str | None]) -> list[Capability]:
    from leadline.observe.capabilities import Capability, installation_of

    checks = []
    for program, (package, used_for) in _PROGRAMS.items():
        path = which(program)
        if path is None:
            remedy = installation_of([package])
            checks.append(Capability("programs", program, "missing", "not on the path", used_for, remedy))
        else:
            checks.append(Capability("programs", program, "works", path, used_for))
    return checks


def _together(checks: list[Capability]) -> list[Capability]:
    """The checks of a group one after the other, groups as they came first."""
    order = list(dict.fromkeys(check.group for check in checks))
    return sorted(checks, key=lambda check: order.index(check.group))


def _print(checks: list[Capability], *, whole: bool) -> None:
    """What works by its names, the rest with what to do; or the `whole` as a row each."""
    from rich.text import Text

    console = make_console()
    width = min(console.width, _WIDTH)
    lacking = sum(check.state == "missing" for check in checks)
    working = sum(check.state == "works" for check in checks)
    limited = len(checks) - working - lacking
    console.print(f"{working} of {len(checks)} parts work, {limited} with limits, {lacking} missing.")
    if not whole:
        for group, names in _names_that_work(checks).items():
            lead = f"{group}:".ljust(_GROUP_WIDTH)
            following = " " * _GROUP_WIDTH
            for line in textwrap.wrap(
                ", ".join(names), width, initial_indent=lead, subsequent_indent=following
            ):
                console.print(Text(line))
    rows = checks if whole else [check for check in checks if check.state != "works"]
    if rows:
        console.print(_table(rows), width=width, soft_wrap=False)
    if not whole:
        console.print("A row for each part: leadline doctor --all")


def _names_that_work(checks: list[Capability]) -> dict[str, list[str]]:
    """By group; the engines, which are many, as one group of their own."""
    found: dict[str, list[str]] = {}
    for check in checks:
        if check.state == "works":
            group = "engines" if check.name.startswith(_ENGINE) else check.group
            found.setdefault(group, []).append(check.name.removeprefix(_ENGINE))
    return found


def _table(checks: list[Capability]) -> Table:
    from rich.box import SIMPLE
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=SIMPLE, pad_edge=False)
    for heading in ("part", "what", "state", "why, and what to do"):
        table.add_column(heading, overflow="fold")
    group = ""
    for check in checks:
        style = _STYLES[check.state]
        why = check.why if check.state != "missing" else f"{check.why}. It is needed for {check.used_for}."
        part = "" if check.group == group else check.group
        text = "\n".join(filter(None, (why, check.remedy)))
        table.add_row(part, check.name, f"[{style}]{check.state}[/]", escape(text))
        group = check.group
    return table
