"""What the verbs of `leadline tune` have in common: which system is meant, and where its journal is.

What several verbs of `leadline tune` share: a user's own settings, and of which versions it is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leadline.cli.machine.lab_faults import labs_at
from leadline.cli.options import AskedPath, RenamedOption
from leadline.errors import TuningError, UsageError

if TYPE_CHECKING:
    from leadline.tuning.changing.journal import TuningJournal
    from leadline.tuning.settings import Setting
    from leadline.tuning.system import TuningSystem


_Command = TypeVar("_Command", bound=Callable[..., Any])


def settings_option(function: _Command) -> _Command:
    """Adds `--settings FILE`."""
    return click.option(
        "--settings",
        "own",
        type=AskedPath(exists=True, dir_okay=False),
        metavar="FILE",
        help="Additional settings of your own (docs/tuning.md).",
    )(function)


def way_option(function: _Command) -> _Command:
    """Adds `--way NAME`."""
    return click.option(
        "--access",
        "way",
        cls=RenamedOption,
        former=("--way",),
        metavar="NAME",
        help="With --lab: the access method, as `leadline lab targets` names it.  [default: the first]",
    )(function)


def state_option(function: _Command) -> _Command:
    """Adds `--state DIR`."""
    return click.option(
        "--state",
        type=AskedPath(file_okay=False),
        metavar="DIR",
        help="Directory of the journal.  [default: the lab's, else this host's]",
    )(function)


def versions_options(function: _Command) -> _Command:
    """Adds `--kernel` and `--ceph`: for which versions it is said."""
    for name, words in (("kernel", "[default: this host's]"), ("ceph", "[default: the newest]")):
        function = click.option(
            f"--{name}", f"{name}_version", metavar="VERSION", help=f"{name.capitalize()} version.  {words}"
        )(function)
    return function


def asked_versions(kernel: str | None, ceph: str | None) -> dict[str, str]:
    """The versions that are meant. Raises UsageError for one that is none."""
    import os
    import re

    from leadline.errors import UsageError

    for name, given in (("--kernel", kernel), ("--ceph", ceph)):
        if given is not None and not re.match(r"[0-9]+(\.[0-9]+)*", given):
            raise UsageError(f"{name}: {given!a} is no version", "write it as 6.12 or 19.2.3")
    return {"kernel": kernel or os.uname().release, **({"ceph": ceph} if ceph else {})}


_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])
_UNIT = re.compile(r"(osd|mds|mon|mgr)\.([\w.-]+)")
_RESTART_S = 180


@dataclass(frozen=True)
class TuneOptions:
    """Which system, and where its journal is."""

    lab: str = ""
    conf: Path | None = None
    client_name: str = ""
    state: Path | None = None
    own: Path | None = None


def system_options(function: _Decorated) -> _Decorated:
    """`--lab`, `--conf`, `--name` and `--state`, handed to the verb as `which`."""

    @wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        names = ("lab", "conf", "client_name", "state")
        which = TuneOptions(**{name: options.pop(name) for name in names})
        if which.lab and which.conf:
            raise UsageError("--lab and --conf name two clusters", "give one of the two")
        return function(*arguments, which=which, **options)

    for add in (
        state_option,
        click.option(
            "--id", "client_name", metavar="NAME", default="", help="Ceph user.  [default: client.admin]"
        ),
        click.option("--conf", type=AskedPath(), metavar="FILE", help="ceph.conf of the cluster."),
        click.option(
            "--lab", metavar="NAME", default="", help="Use a lab: its cluster and the network of its hosts."
        ),
    ):
        called = add(called)
    return called  # type: ignore[return-value]


@contextmanager
def opened(which: TuneOptions, *, restart: bool = False) -> Iterator[tuple[TuningSystem, TuningJournal]]:
    """The system and its journal. `restart` allows daemons to be restarted; a lab's may always be."""
    name = which.client_name
    name = name if name.startswith("client.") or not name else f"client.{name}"
    lab = _lab(which.lab) if which.lab else None
    known = None if which.own is None else own_settings(which.own)
    unit = restart_unit if restart else None
    with system_of(which.conf, name, known=known, lab=lab, restart=unit) as system:
        yield system, journal_meant(which)


def system_of(
    conf: Path | None,
    client_name: str = "",
    *,
    known: Mapping[str, Setting] | None = None,
    lab: Any = None,
    restart: Callable[[str], None] | None = None,
) -> TuningSystem:
    """This host and a cluster, by its configuration or as the one of a `lab`, with its hosts and daemons.

    The one way in which verbs open a system; `known` are its settings, the table's where it is None;
    `restart` is for daemons of no lab.
    """
    from leadline.tuning.system import TuningSystem

    if lab is None:
        return TuningSystem(conf=conf, client_name=client_name or None, known=known, restart=restart)
    return TuningSystem(
        conf=lab.record.paths.conf,
        client_name=client_name or None,
        namespaces=namespaces_of(lab),
        restart=lab.restart_daemon,
        known=known,
    )


def own_settings(own: Path) -> Mapping[str, Setting]:
    """The table with the settings of a user's own file. Raises SpecError."""
    from leadline.tuning.settings import settings_with

    return settings_with(own)


def named_lab(name: str | None) -> Any:
    """A lab by its name, the only one by "", and none by None."""
    return None if name is None else _lab(name)


def journal_meant(which: TuneOptions) -> TuningJournal:
    """The journal, which knows by which options it was named: what is printed to go on repeats them."""
    from leadline.tuning.changing.journal import TuningJournal

    given = {
        "--lab": which.lab,
        "--conf": which.conf and which.conf.absolute(),
        "--id": which.client_name,
        "--state": which.state and which.state.absolute(),
    }
    options = [word for option, value in given.items() if value for word in (option, str(value))]
    return TuningJournal(journal_directory(which), options=options)


def journal_directory(which: TuneOptions) -> Path:
    """A lab's own, so that it ends with it; else this host's."""
    if which.state is not None:
        return which.state.absolute()
    if which.lab:
        return _lab(which.lab).record.paths.tuning  # type: ignore[no-any-return]
    return journal_of([] if which.conf is None else labs_at([str(which.conf.absolute())]))


def journal_of(labs: Sequence[str], state: Path | None = None) -> Path:
    """`state`, if one was named; else of systems on these labs, by their directories, or the host's."""
    from leadline import lab
    from leadline.observe.hang_guard import check_answers
    from leadline.tuning.changing.journal import state_directory

    if state is not None:
        return state.absolute()
    if labs:
        return lab.open(Path(labs[0])).record.paths.tuning
    found = state_directory(os.environ)
    check_answers([found])
    return found


def _lab(name: str) -> Any:
    from leadline.cli.machine.lab_targets import check_lab_places, open_lab

    check_lab_places()
    return open_lab(name, None)


def namespaces_of(lab: Any) -> dict[str, Path]:
    """The network namespace of each member of a lab, by the name that places have."""
    network = lab.record.network
    members = network.topology.members if network is not None else ()
    return {f"lab:{lab.record.name}/{one.name}": lab.record.paths.namespace(one.name) for one in members}


def restart_unit(daemon: str) -> None:
    """`systemctl restart` of a daemon's unit, where this host has it. Raises TuningError."""
    found = _UNIT.fullmatch(daemon)
    if found is None:
        raise TuningError(f"{daemon} is no daemon that has a unit", "restart it by hand")
    systemctl, unit = shutil.which("systemctl"), f"ceph-{found[1]}@{found[2]}.service"
    if systemctl is None:
        raise TuningError(f"{daemon} cannot be restarted: this host has no systemctl", "restart it by hand")
    try:
        loaded = subprocess.run(
            [systemctl, "is-active", "--quiet", unit], check=False, timeout=30, stdin=subprocess.DEVNULL
        )
        if loaded.returncode != 0:
            raise TuningError(
                f"{unit} does not run on this host", f"restart {daemon} where it runs, or leave out --restart"
            )
        done = subprocess.run(
            [systemctl, "restart", unit], check=False, timeout=_RESTART_S, capture_output=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TuningError(f"{unit} could not be restarted: {type(error).__name__}", "see its log") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise TuningError(
            f"{unit} could not be restarted: {said[-1] if said else 'no reason given'}", "see its log"
        )
