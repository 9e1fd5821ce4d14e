"""What is wrong with hosts, found before anything starts: all of it in one error, which names them.

First what is known without a call: a host may have another Python, or no leadline. By how much each host's
clock is ahead of this one's is asked again between trials, and after the study.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leadline import _core, units
from leadline.errors import TargetError, UsageError
from leadline.hosts.model import ClockOffset, StudyHost
from leadline.hosts.worker_rpc import Function
from leadline.hosts.workers.calls import QUICK_S, CallResult, Crew, CrewWorker, Order
from leadline.hosts.workers.request import HostsAsked, plain_name
from leadline.observe.reading import closest
from leadline.store.writer import ResultWriter
from leadline.study.schemes import scheme_of
from leadline.study.target import Target, TargetFacts

ROUNDS = 12


def offset_of(rounds: Iterable[tuple[int, int, int]]) -> ClockOffset | None:
    """The offset from rounds of (sent, the host's time, received), ns of a time of day; None for none."""
    found = list(rounds)
    return ClockOffset(*closest(found)) if found else None


class Clocks:
    """The clocks of the hosts that are there; each comparison is journalled."""

    def __init__(self, crew: Crew, clock: Callable[[], int]) -> None:
        self._crew, self._clock = crew, clock
        self._found: dict[str, ClockOffset] = {}

    def compare(
        self, hosts: Iterable[str], rounds: int = ROUNDS, timeout_s: float = QUICK_S
    ) -> Mapping[str, ClockOffset]:
        """Ask these hosts, one after another so that none waits for another; those that answered.

        Each answer may take `timeout_s`.
        """
        found = {}
        for host in hosts:
            offset = offset_of(self._crew.rounds(self._clock, host, rounds, time.time_ns, timeout_s))
            if offset is not None:
                found[host] = self._found[host] = offset
        return found

    def journal(self, writer: ResultWriter, when: str) -> None:
        """Say in the journal what was found last."""
        for host, one in self._found.items():
            writer.journal(
                "clock_compared",
                host=host,
                when=when,
                offset_ns=one.offset_ns,
                error_ns=one.error_ns,
                measured_unix_ns=one.measured_unix_ns,
            )

    def of(self, host: str) -> ClockOffset:
        """What was found last of a host; KeyError where it was never asked."""
        return self._found[host]

    @property
    def way_ns(self) -> int:
        """The longest way to a host and back."""
        return 2 * max((one.error_ns for one in self._found.values()), default=0)


TABLES_BYTES = 256 << 20  # a host's own result, until it was taken in
_SHOWN = 10
_LOADS_S = 1.0  # more for each host: many load Python from one file system, or on one machine, at once
_SLOW_REMEDY = (
    "the host is there but busy: try again when it is less busy, or wait longer:"
    " `answer_within: 2m` in a hosts file"
)


@dataclass(frozen=True)
class SeenHost:
    """A host that was looked at: `told` is its answer to `probe`, `facts` are of its targets, by name."""

    host: StudyHost
    told: Mapping[str, Any]
    facts: Mapping[str, TargetFacts]

    @property
    def machine(self) -> str:
        """Its machine-id, "" where it has none."""
        return str(self.told.get("machine_id") or "")


def hosts_of(asked: HostsAsked, workers: Sequence[CrewWorker]) -> tuple[StudyHost, ...]:
    """The workers that take part as hosts with names: those that were asked for, or the first so many.

    A worker without a name that can be part of a path is called by its address.
    """
    if asked.hosts:
        addresses = {worker.name: worker.address for worker in workers}
        return tuple(StudyHost(one.name, addresses[one.name], one.targets) for one in asked.hosts)
    taken = workers[: asked.workers] if asked.workers else workers
    return tuple(StudyHost(_name_of(worker), worker.address) for worker in taken)


def _name_of(worker: CrewWorker) -> str:
    if plain_name(worker.name):
        return worker.name
    plain = worker.address.split("://", 1)[-1].replace(":", "-").strip("[]-")
    return plain if plain_name(plain) else f"host-{abs(hash(worker.address)) % 10**8}"


def answer_within_s(asked: HostsAsked, hosts: int) -> float:
    """How long so many hosts have for their first answers: all of them may just be starting."""
    return asked.answer_s + hosts * _LOADS_S


def check_versions(asked: HostsAsked, crew: Crew, hosts: Sequence[StudyHost]) -> None:
    """The same Python, to its minor version, and the same leadline. Raises UsageError."""
    found = unfit(asked, crew, hosts)
    problems = [f"host {name} {one.problem}" for name, one in found.items()]
    refuse_all(problems, "; ".join(dict.fromkeys(one.remedy for one in found.values())))


def unfit(asked: HostsAsked, crew: Crew, hosts: Sequence[StudyHost]) -> dict[str, CallResult]:
    """Hosts that cannot be asked: why, in words that follow the host's name, and the remedy."""
    limit_s = answer_within_s(asked, len(hosts))
    versions = crew.versions(limit_s)
    problems = {}
    own_python = ".".join(platform.python_version_tuple()[:2])
    for host in hosts:
        found = versions.get(host.address)
        if found is None:
            problems[host.name] = silent(crew, host.name, limit_s)
            continue
        python = ".".join(str(found.get("python")).split(".")[:2])
        if python != own_python:
            what = f"has Python {python}, and {own_python} runs here"
            problems[host.name] = CallResult(problem=what, remedy=crew.transport.unlike_remedy)
        elif found.get("leadline") is None:
            what = "has no leadline in the Python that answers there"
            problems[host.name] = CallResult(problem=what, remedy=crew.transport.unlike_remedy)
    return problems


def silent(crew: Crew, host: str, limit_s: float) -> CallResult:
    """A host that gave no answer in time, told apart: slow while its worker is there, else gone."""
    if crew.is_known(host):
        return CallResult(
            problem=f"is slow to answer: nothing within {limit_s:.3g} s", remedy=_SLOW_REMEDY, lost=True
        )
    why = crew.why_gone(host) or f"its {crew.transport.process} is not there any more"
    return CallResult(problem=f"is not there: {why}", remedy=crew.transport.gone_remedy, lost=True)


def there_and_fit(asked: HostsAsked, crew: Crew, gaps: dict[str, str]) -> tuple[StudyHost, ...]:
    """The hosts that are there, for calls by name; `gaps` gets those that cannot be asked, with why."""
    workers = crew.workers()
    names = {one.name for one in workers}
    there = tuple(one for one in asked.hosts if one.name in names)
    if asked.hosts and not there:
        return ()
    found = hosts_of(replace(asked, hosts=there), workers)
    crew.assign({one.name: one.address for one in found})
    gaps.update({name: one.problem for name, one in unfit(asked, crew, found).items()})
    return found


def look(
    crew: Crew, asked: HostsAsked, hosts: Sequence[StudyHost], targets: Mapping[str, Target], probe: Function
) -> tuple[SeenHost, ...]:
    """Ask all hosts what they are and how they see the targets. Raises UsageError where one will not do."""
    arguments = {}
    for host in hosts:
        places = {name: host.targets.get(name, target.url) for name, target in targets.items()}
        arguments[host.name] = ({"targets": places, "directory": None},)
    limit_s = answer_within_s(asked, len(hosts))
    said = crew.ask(Order(probe, arguments, limit_s))
    problems = [f"host {name}: {one.problem}" for name, one in sorted(said.items()) if one.problem]
    slow = all(crew.is_known(name) for name, one in said.items() if one.lost)
    broken = any(one.problem and not one.lost for one in said.values())
    printed = f"{crew.transport.gone_remedy}, and that leadline works there: leadline doctor"
    refuse_all(problems, _SLOW_REMEDY if problems and slow and not broken else printed)
    seen = [_seen(host, said[host.name]) for host in hosts]
    refuse_all(list(_problems(seen, asked, _engines(targets))), "make them alike, or leave those hosts out")
    refuse_all(
        list(_target_problems(seen, targets)),
        "mount it there alike; a hosts file can say where it is: `hosts: {NAME: {targets: {TARGET: PATH}}}`",
        TargetError,
    )
    return tuple(seen)


def _engines(targets: Mapping[str, Target]) -> list[str]:
    """Those that reach the targets which no kernel mounts: the first of each scheme."""
    found = (scheme_of(target.url) for target in targets.values())
    return sorted({scheme.engines[0].name for scheme in found if scheme is not None})


def _seen(host: StudyHost, said: CallResult) -> SeenHost:
    told: Mapping[str, Any] = said.value
    facts = {
        name: TargetFacts.from_json(dict(one))
        for name, one in told.get("targets", {}).items()
        if "error" not in one
    }
    return SeenHost(host, told, facts)


def _problems(seen: Sequence[SeenHost], asked: HostsAsked, engines: Sequence[str]) -> Iterator[str]:
    """Versions, places that are one, space, libraries."""
    own, places = _core.version(), dict[tuple[Any, ...], str]()
    for one in seen:
        name, told = one.host.name, one.told
        if told["leadline"] != own:
            yield f"host {name} has leadline {told['leadline']}, and {own} runs here"
        other = places.setdefault(_place(told), name)
        if other != name and not asked.same_machine:
            yield (
                f"hosts {other} and {name} are one machine ({told.get('hostname')}) with one network;"
                " where that is meant: --same-machine"
            )
        free = told.get("free_bytes")
        if free is not None and free < TABLES_BYTES:
            yield (
                f"host {name} has {units.format_size(free)} free for its tables"
                f" ({told.get('directory')}), {units.format_size(TABLES_BYTES)} are needed"
            )
        for engine in engines:
            reason = told.get("engines", {}).get(engine, "this version does not know it")
            if reason:
                yield f"host {name} lacks what {engine} needs: {reason}"


def _place(told: Mapping[str, Any]) -> tuple[Any, ...]:
    """What two workers have in common that run at one place: a running kernel, and a network of it."""
    return told.get("boot_id") or told.get("machine_id"), told.get("network")


def _target_problems(seen: Sequence[SeenHost], targets: Mapping[str, Target]) -> Iterator[str]:
    """Targets that are not there, or are something else than on the first host."""
    first = seen[0]
    for one in seen:
        for name in targets:
            told = one.told.get("targets", {}).get(name, {"error": "it was not looked at"})
            if "error" in told:
                yield f"host {one.host.name}, target {name}: {told['error']}"
            elif name in first.facts:
                mine, other = kind_of(first.facts[name]), kind_of(one.facts[name])
                if mine != other:
                    yield f"target {name} is {other} on host {one.host.name}, {mine} on {first.host.name}"


def kind_of(facts: TargetFacts) -> str:
    """What has to be the same on all hosts, as words."""
    kind = facts.file_system if facts.access == "path" else f"{facts.access} {facts.file_system}".strip()
    pool = facts.ceph.pool if facts.ceph is not None else None
    return f"{kind} (pool {pool})" if pool else kind


def check_clocks(asked: HostsAsked, crew: Crew, clocks: Clocks) -> None:
    """Compare all clocks. Raises UsageError for those that are certainly further off than the limit."""
    limit_s, answer_s = asked.clock_s, answer_within_s(asked, len(crew.hosts))
    found, problems = clocks.compare(crew.hosts, timeout_s=answer_s), []
    mute = {host: silent(crew, host, answer_s) for host in crew.hosts if host not in found}
    refuse_all(
        [f"host {host} {one.problem}" for host, one in mute.items()],
        "; ".join(dict.fromkeys(one.remedy for one in mute.values())),
    )
    for host, one in found.items():
        if abs(one.offset_ns) - one.error_ns > limit_s * 1e9:
            way = "ahead of" if one.offset_ns > 0 else "behind"
            off_s = abs(one.offset_ns) / 1e9
            problems.append(f"the clock of host {host} is {off_s:,.1f} s {way} this one")
    refuse_all(problems, f"set them (chrony, NTP); {limit_s:g} s are allowed: `clock_limit` in a hosts file")


def refuse_all(problems: Sequence[str], remedy: str, error: type[UsageError] = UsageError) -> None:
    """Raise one error for all of them; nothing where there are none."""
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise error("; ".join(problems[:_SHOWN]) + more, remedy)


def named(hosts: Sequence[str]) -> str:
    """`host a`, or `hosts a, b and 3 more`."""
    more = f" and {len(hosts) - _SHOWN} more" if len(hosts) > _SHOWN else ""
    return f"host{'s' if len(hosts) > 1 else ''} {', '.join(hosts[:_SHOWN])}{more}"


def needed_by_all(
    bytes_needed: Mapping[str, int], facts: Mapping[str, TargetFacts], hosts: int
) -> dict[str, int]:
    """What a plan takes on each target when all hosts work there: files of each, where they share it."""
    return {name: count * (hosts if facts[name].is_remote else 1) for name, count in bytes_needed.items()}
