"""The options of a study on many hosts, and the way from them to hosts that were looked at and are fit.

Nothing of Dask is imported before one of them is given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from leadline.cli.options import AskedPath
from leadline.errors import ResultError, TargetError, UsageError
from leadline.units import format_count

if TYPE_CHECKING:
    from leadline.hosts.workers.calls import Crew
    from leadline.hosts.workers.request import HostsAsked
    from leadline.hosts.workers.study_hosts import StoredCrew, StudyHosts
    from leadline.plan.model import Plan
    from leadline.study.study import Study
    from leadline.study.target import Target, TargetFacts

_Command = TypeVar("_Command", bound=Callable[..., Any])
ON_LAB = Path("lab")
_LAB_SOURCE = f"--hosts {ON_LAB}"
_Loaded = tuple["Study", "Plan", dict[str, "TargetFacts"]]
LOST = ("stop", "retry", "continue")


class _ListOrFileOrLab(AskedPath):
    """Names of hosts, as `node[1-10]`; a hosts file, with a slash or `.yaml`; or the word `lab`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A list stays text; a path is asked whether it answers."""
        from leadline.hosts.workers.request import is_list

        if value == str(ON_LAB):
            return ON_LAB
        return value if isinstance(value, str) and is_list(value) else super().convert(value, param, ctx)


@dataclass(frozen=True)
class HostsOptions:
    """As they were given; all False or None: this host alone."""

    file: Path | str | None = None
    scheduler: str | None = None
    workers: int | None = None
    lost: str | None = None
    plain_tcp: bool = False
    same_machine: bool = False

    def __bool__(self) -> bool:
        """True where one of them was given."""
        return self != HostsOptions()

    @property
    def on_lab(self) -> bool:
        """`--hosts lab`: the clients of a lab."""
        return self.file == ON_LAB

    def asked_on(self, lab: str | None) -> HostsAsked | None:
        """As `asked`; of `--hosts lab` the clients of `lab`."""
        return _lab_hosts(lab or "", self) if self.on_lab else self.asked()

    def asked(self) -> HostsAsked | None:
        """What they say together; None where they name no hosts. Raises UsageError."""
        if not self:
            return None
        if self.on_lab:
            raise UsageError(
                "--hosts lab is known while a study runs there", "plan it on one client: leadline lab exec"
            )
        from leadline.hosts.workers.request import asked_hosts

        found = asked_hosts(
            self.file,
            self.scheduler,
            self.workers,
            plain_tcp=self.plain_tcp,
            same_machine=self.same_machine,
        )
        if found is None:
            raise UsageError(
                "--lost is for many hosts", "name them: --hosts node[1-10] or --scheduler tls://HOST:PORT"
            )
        return found


def hosts_options(command: _Command) -> _Command:
    """Adds --hosts, --scheduler, --workers, --lost, --plain-tcp, --same-machine: the parameter `hosts`."""
    return _with(command, (*_WHICH, *_HOW_MANY, *_ALLOWED))


def reach_options(command: _Command) -> _Command:
    """Of these, those that say how hosts are reached which are known."""
    return _with(command, (*_WHICH, *_ALLOWED))


_WHICH = (
    click.option(
        "--hosts",
        "hosts_file",
        type=_ListOrFileOrLab(dir_okay=False),
        metavar="HOSTS",
        help="Run on many hosts at once, by SSH: names as node[1-10],gw; a YAML file as ./hosts.yaml; or"
        " `lab`: the lab's clients (docs/many-hosts.md).",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Run on many hosts at once: the workers of this Dask scheduler, at tls://HOST:PORT.",
    ),
)
_HOW_MANY = (
    click.option(
        "--workers",
        type=click.IntRange(1, 4096),
        metavar="N",
        help="With --scheduler: wait for N hosts, and use no more.  [default: all]",
    ),
    click.option(
        "--lost",
        type=click.Choice(LOST),
        help="If a host is lost: stop the study, retry the trial when the host is back (at most twice), or"
        " continue without it.  [default: stop]",
    ),
)
_ALLOWED = (
    click.option(
        "--plain-tcp",
        is_flag=True,
        help="Allow connections without TLS. Anyone who can reach them controls every worker.",
    ),
    click.option(
        "--same-machine", is_flag=True, help="Allow several workers on one machine; each counts as a host."
    ),
)


def _with(command: _Command, options: Sequence[Callable[..., Any]]) -> _Command:
    @functools.wraps(command)
    def told(
        *,
        hosts_file: Path | str | None,
        scheduler: str | None,
        plain_tcp: bool,
        same_machine: bool,
        workers: int | None = None,
        lost: str | None = None,
        **others: Any,
    ) -> Any:
        given = HostsOptions(hosts_file, scheduler, workers, lost, plain_tcp, same_machine)
        return command(hosts=given, **others)

    return cast("_Command", functools.reduce(lambda inner, add: add(inner), reversed(options), told))


def implied(options: HostsOptions, lab: str | None, say: Callable[[str], None]) -> HostsOptions:
    """`--hosts lab` for a lab with clients, from outside of all of them: nobody else reaches its storage."""
    if lab is None or options:
        return options
    from leadline.cli.machine.lab_targets import clients_from_outside

    clients = clients_from_outside(lab)
    if len(clients) < 2:
        return options
    say(f"on all clients of the lab, as with --hosts lab: {_listed(clients)}")
    return replace(options, file=ON_LAB)


class Recruiting:
    """Hosts while a plan is made for them: they are looked at once the targets are known."""

    def __init__(self, asked: HostsAsked, crew: Crew, lost: str, say: Callable[[str], None]) -> None:
        self._asked, self._crew, self._lost, self._say = asked, crew, lost, say
        self._crewed: StudyHosts | None = None

    def look(self, targets: Mapping[str, Target]) -> dict[str, TargetFacts]:
        """Check the hosts, and how each sees the targets; the facts of the first one. Raises UsageError."""
        from leadline.hosts.worker_rpc import remote
        from leadline.hosts.workers.checks import Clocks, check_clocks, check_versions, hosts_of, look
        from leadline.hosts.workers.study_hosts import StudyHosts

        crew, asked, functions = self._crew, self._asked, remote()
        hosts = hosts_of(asked, crew.workers())
        crew.assign({host.name: host.address for host in hosts})
        check_versions(asked, crew, hosts)
        seen = look(crew, asked, hosts, targets, functions.probe)
        clocks = Clocks(crew, functions.clock)
        check_clocks(asked, crew, clocks)
        self._crewed = StudyHosts(asked, crew, functions, clocks, seen, cast("Any", self._lost))
        self._say(f"{len(seen)} of {len(hosts)} hosts are ready: {_listed([one.host.name for one in seen])}")
        return dict(seen[0].facts)

    @property
    def study_hosts(self) -> StudyHosts:
        """The hosts, once they were looked at."""
        assert self._crewed is not None  # noqa: S101 - `look` was called: a plan has targets
        return self._crewed

    def memory_bytes(self) -> int:
        """The least that a host has."""
        return min(int(one.told["memory_bytes"]) for one in self.study_hosts.seen)

    def memory_room(self) -> tuple[int, str, int]:
        """What `HostRoom` is made of: the least room of a host, whose it is, and how many hosts there are."""
        seen = self.study_hosts.seen
        least = min(seen, key=lambda one: int(one.told["memory_room"][0]))
        room, words = least.told["memory_room"]
        return int(room), f"{words} (on host {least.host.name})", len(seen)

    def for_all(self, plan: Plan) -> Plan:
        """The plan, with the space that all hosts together take on targets that they share."""
        from leadline.hosts.workers.checks import needed_by_all

        seen = self.study_hosts.seen
        return replace(plan, bytes_needed=needed_by_all(plan.bytes_needed, seen[0].facts, len(seen)))

    def details(self) -> dict[str, Any]:
        """What the manifest says of the machine: of the first host."""
        told = self.study_hosts.seen[0].told
        return {
            "host": {**told["facts"], "python": told["python"]},
            "memory_bytes": self.memory_bytes(),
        }

    def unavailable(self) -> dict[str, str]:
        """Engines that do not work on some host, with the reason there."""
        return {
            engine: f"{reason} (on host {one.host.name})"
            for one in self.study_hosts.seen
            for engine, reason in one.told["engines"].items()
            if reason
        }


def planned_on(hosts: HostsOptions, lab: str | None, load: Callable[..., _Loaded]) -> _Loaded:
    """What `load` (`load_plan`) makes for hosts: by what this host sees, or else by what they see."""
    hosts = implied(hosts, lab, say_aside)
    if hosts.on_lab:
        return _planned_there(hosts, lab, load)
    asked = hosts.asked()
    if asked is None:
        return load()
    try:
        study, plan, facts = load()
    except TargetError:
        return _planned_there(hosts, lab, load)
    from leadline.hosts.workers.checks import needed_by_all

    names, count = [host.name for host in asked.hosts], asked.workers or 1
    who = format_count(count, "host") if asked.workers else "all workers there are"
    words = (
        f"every trial runs at once on {who}{': ' + _listed(names) if names else ''}; rates are totals of all"
    )
    needed = needed_by_all(plan.bytes_needed, facts, count)
    return study, replace(plan, bytes_needed=needed, notes=(*plan.notes, words)), facts


def _planned_there(hosts: HostsOptions, lab: str | None, load: Callable[..., _Loaded]) -> _Loaded:
    asked = hosts.asked_on(lab)
    assert asked is not None  # noqa: S101 - some were named
    with recruiting(replace(asked, needs=""), None, say_aside, lambda: False) as recruited:
        return load(recruited=recruited)


def say_aside(text: str) -> None:
    """On standard error, beside what is asked for."""
    from leadline.cli.console import echo

    echo(text, err=True)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


@contextmanager
def recruiting(
    asked: HostsAsked, lost: str | None, say: Callable[[str], None], stopping: Callable[[], bool]
) -> Iterator[Recruiting]:
    """Connect to the hosts, for as long as the block lasts."""
    from leadline.hosts.workers.connect import connected

    with connected(asked, say, stopping) as crew:
        yield Recruiting(asked, crew, lost or LOST[0], say)


@contextmanager
def recruited_again(
    manifest: Mapping[str, Any],
    options: HostsOptions,
    say: Callable[[str], None],
    stopping: Callable[[], bool],
) -> Iterator[StudyHosts]:
    """The hosts of a result, connected to and looked at again."""
    from leadline.cli.measure.study_options import needs_leadline
    from leadline.hosts.workers.study_hosts import stored_crew
    from leadline.study.study import Study
    from leadline.study.target import Target

    stored = stored_crew(manifest)
    assert stored is not None  # noqa: S101 - asked for results of many hosts only
    targets = {str(one["name"]): Target(**one) for one in manifest["plan"]["targets"]}
    asked = asked_again(stored, manifest, options)
    asked = replace(asked, needs=needs_leadline(Study.from_json(manifest["study"])))
    with recruiting(asked, options.lost or stored.lost, say, stopping) as found:
        found.look(targets)
        yield found.study_hosts


@contextmanager
def connected_again(
    manifest: Mapping[str, Any], options: HostsOptions, say: Callable[[str], None]
) -> Iterator[Crew]:
    """The hosts of a result, of which nothing more is asked than that they are there, with this version."""
    from leadline.hosts.workers.checks import check_versions, hosts_of
    from leadline.hosts.workers.connect import connected
    from leadline.hosts.workers.study_hosts import stored_crew

    stored = stored_crew(manifest)
    assert stored is not None  # noqa: S101 - asked for results of many hosts only
    asked = replace(asked_again(stored, manifest, options), needs="")
    with connected(asked, say, lambda: False) as crew:
        hosts = hosts_of(asked, crew.workers())
        crew.assign({host.name: host.address for host in hosts})
        check_versions(asked, crew, hosts)
        yield crew


def _lab_hosts(lab: str, options: HostsOptions) -> HostsAsked:
    from leadline.cli.measure.labs import lab_hosts

    if options.scheduler is not None or options.workers is not None:
        raise UsageError("--hosts lab takes every client of the lab", "leave --scheduler and --workers out")
    return replace(lab_hosts(lab), source=_LAB_SOURCE)


def asked_again(stored: StoredCrew, manifest: Mapping[str, Any], options: HostsOptions) -> HostsAsked:
    """How to reach the hosts of a result again: as before, or as the options say now. Raises UsageError.

    A study on the clients of a lab goes on there.
    """
    named = options.file or options.scheduler
    if options.on_lab or (not named and stored.asked.source == _LAB_SOURCE):
        labs = manifest.get("options", {}).get("labs") or [""]
        asked = _lab_hosts(str(labs[0]), options)
    else:
        asked = (options.asked() if named else None) or stored.asked
    # Results of before say nothing of it.
    asked = replace(asked, plain_tcp=asked.plain_tcp or options.plain_tcp)
    if options.workers is not None:
        raise UsageError("--workers says how many hosts are new: these are known", "leave it out")
    names = {host.name for host in stored.hosts}
    if asked.scheduler is None:
        missing = sorted(names - {host.name for host in asked.hosts})
        if missing:
            raise ResultError(
                f"{asked.source} does not name {', '.join(missing)}, which the study was begun with",
                "add them",
            )
        hosts = tuple(host for host in asked.hosts if host.name in names)
        return replace(asked, hosts=hosts, workers=len(hosts))
    return replace(asked, hosts=stored.hosts, workers=len(stored.hosts))
