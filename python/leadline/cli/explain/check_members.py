"""How `leadline check` asks other hosts: the members of a lab, or hosts reached as studies reach them.

Each runs the same modules there; only here do a check and the ways to hosts meet.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from leadline.cli.console import echo
from leadline.foreign import parse_json, reason_of
from leadline.interpreter import module_command, module_environment

if TYPE_CHECKING:
    from leadline.check.measured.streams import HostAnswer, Words
    from leadline.check.rows import Fact
    from leadline.cli.measure.hosts_options import HostsOptions
    from leadline.hosts.workers.calls import Crew
    from leadline.lab import Lab

_MEMBER_S = 30.0
_SHOWN = 5  # hosts in one message
_ENDED_S = 5.0  # between a host's own limit and nobody's waiting for it any more


class CheckMembers(Protocol):
    """Hosts that can be asked: their addresses by name."""

    addresses: Mapping[str, str]

    def ask(self, words: Mapping[str, Words], limit_s: float) -> Mapping[str, HostAnswer]:
        """What `python -m` with these words prints on each of some hosts, on all of them at once."""


class LabMembers:
    """Hosts and clients of a lab with a network: each in its own namespace of this machine."""

    def __init__(self, lab: Lab) -> None:
        network = lab.record.network
        members = network.topology.members if network is not None else ()
        self._lab = lab.record.name
        self.addresses: Mapping[str, str] = {}
        if network is not None:
            self.addresses = {one.name: network.address(one.name) for one in members}

    def ask(self, words: Mapping[str, Words], limit_s: float) -> Mapping[str, HostAnswer]:
        """See CheckMembers."""
        with ThreadPoolExecutor(max(1, len(words))) as threads:
            going = {host: threads.submit(self._run, host, own, limit_s) for host, own in words.items()}
            return {host: answer.result() for host, answer in going.items()}

    def _run(self, host: str, words: Words, limit_s: float) -> HostAnswer:
        from leadline.check.measured.streams import HostAnswer

        entered = module_command("leadline", "lab", "exec", host, "--lab", self._lab, "--")
        asked = [*entered, *module_command(*words)]
        try:
            done = subprocess.run(
                asked,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=module_environment(),
                check=False,
                timeout=limit_s,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return HostAnswer(problem=f"it does not answer: {type(error).__name__}")
        return HostAnswer(done.stdout, "" if done.stdout else "it prints nothing: leadline lab exec there")


class CrewMembers:
    """Hosts that a study would run on, by Dask."""

    def __init__(
        self,
        crew: Crew,
        addresses: Mapping[str, str],
        gaps: Mapping[str, str],
        roles: Mapping[str, Sequence[str]],
    ) -> None:
        """`gaps` are hosts that cannot be asked, with why; `roles` what the hosts file says that each is."""
        from leadline.hosts.worker_rpc import remote

        self._crew, self._function = crew, remote().check_part
        self.addresses, self.gaps, self.roles = addresses, gaps, roles

    def ask(self, words: Mapping[str, Words], limit_s: float) -> Mapping[str, HostAnswer]:
        """See CheckMembers."""
        from leadline.check.measured.streams import HostAnswer
        from leadline.hosts.workers.calls import Order

        arguments = {host: (list(own), limit_s) for host, own in words.items()}
        order = Order(self._function, arguments, limit_s + _ENDED_S)
        return {
            host: HostAnswer(problem=said.problem) if said.problem else HostAnswer(said.value["output"])
            for host, said in self._crew.ask(order).items()
        }


@contextmanager
def members_of(hosts: HostsOptions) -> Iterator[CrewMembers]:
    """The hosts that were named; Dask's connection lasts as long as the block. Raises UsageError.

    Those that cannot be reached, or have no leadline that can be asked, are gaps; none but these is an error.
    """
    from leadline.cli.measure.hosts_options import say_aside
    from leadline.errors import UsageError
    from leadline.hosts.workers.checks import there_and_fit
    from leadline.hosts.workers.connect import connected, host_of

    if hosts.on_lab:
        raise UsageError("--hosts lab is of studies", "check each member of a lab: leadline check --lab")
    asked = hosts.asked()
    assert asked is not None  # noqa: S101 - called where some were named
    gaps: dict[str, str] = {}
    with connected(asked, say_aside, lambda: False, gaps) as crew:
        found = there_and_fit(asked, crew, gaps)
        addresses = {host.name: host_of(host.address) for host in found if host.name not in gaps}
        if not addresses:
            words = [f"{name} {why}" for name, why in list(gaps.items())[:_SHOWN]]
            raise UsageError(
                f"no host could be checked: {'; '.join(words)}",
                "try `ssh HOST PYTHON -m leadline --version` for each; see docs/many-hosts.md",
            )
        yield CrewMembers(crew, addresses, gaps, {one.name: one.roles for one in asked.hosts if one.roles})


def facts_of_members(
    members: CheckMembers, own_words: Sequence[str], *, named: bool, streams: bool, limit_s: float = 0.0
) -> list[Fact]:
    """Each member's own facts, echoes from each to each, and streams.

    `own_words` are further ones of `leadline check` there, which take `limit_s`. `named`: told its name.
    """
    from leadline.check.measured.streams import seconds_for, stream_facts, ways

    found = _own_facts(members, own_words, limit_s, named=named)
    for host in members.addresses:
        peers = {address: peer for peer, address in members.addresses.items() if peer != host}
        found += echoes(host, peers, members)
    if not streams or len(members.addresses) < 2:
        return found
    count, seconds = len(ways(members.addresses)), seconds_for(members.addresses)
    echo(f"streams along {count} ways, about {seconds:.0f} s; --no-streams leaves them out", err=True)
    return found + stream_facts(members.addresses, members.ask)


def no_facts(host: str, why: str) -> Fact:
    """Of a host that nothing could be read of."""
    from leadline.check.rows import Fact

    return Fact("interface", f"{host}/all", "mtu", None, why)


def _own_facts(members: CheckMembers, own_words: Sequence[str], limit_s: float, *, named: bool) -> list[Fact]:
    from leadline.check.rows import Fact

    words = ["leadline", "check", "--no-ceph", "--json", *own_words]
    asked = {host: [*words, *(["--as", host] if named else [])] for host in members.addresses}
    found: list[Fact] = []
    for host, answer in members.ask(asked, _MEMBER_S + limit_s).items():
        try:
            if answer.problem:
                raise ValueError(answer.problem)
            told = [Fact.from_json(fact) for fact in parse_json(answer.output)["facts"]]
            if named and not all(_is_of(host, fact) for fact in told):
                raise ValueError("it names another host")
            found += told
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = answer.problem or f"it answers with no check: {reason_of(error)}"
            found.append(no_facts(host, why))
    return found


def _is_of(host: str, fact: Fact) -> bool:
    """Whether a fact is a host's own: it may lie about nobody else."""
    return fact.subject == host or fact.subject.startswith((f"{host}/", f"{host}:"))


def echoes(host: str, peers: Mapping[str, str], members: CheckMembers | None = None) -> list[Fact]:
    """From a member, or from here, to peers (name by address). Nobody waits for long for a silent one."""
    from leadline.check.measured.echoes import path_facts

    if not peers:
        return []
    words = ["leadline.check.measured.echoes", *peers]
    limit_s = _MEMBER_S * len(peers)
    try:
        if members is None:
            asked, there = module_command(*words), module_environment()
            done = subprocess.run(asked, capture_output=True, env=there, check=True, timeout=limit_s)
            output = done.stdout
        else:
            answer = members.ask({host: words}, limit_s)[host]
            if answer.problem:
                raise ValueError(answer.problem)
            output = answer.output
        answers = parse_json(output)
        if not isinstance(answers, dict):
            raise ValueError("it answers with no echoes")
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        why = reason_of(error) if isinstance(error, ValueError) else type(error).__name__
        answers = {peer: {"error": f"echoes could not be sent: {why}"} for peer in peers}
    return path_facts(host, peers, answers)
