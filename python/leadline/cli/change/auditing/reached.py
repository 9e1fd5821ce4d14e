"""How an audit asks other hosts: reached as studies and checks reach them, each for its own settings.

A host that cannot be reached, or has no leadline or another one, is a gap with its reason: the others are
audited without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from leadline.cli.measure.hosts_options import HostsOptions, say_aside
from leadline.errors import LeadlineError, UsageError
from leadline.tuning.fleet import HostRead
from leadline.tuning.settings import Role, Setting

if TYPE_CHECKING:
    from leadline.hosts.model import StudyHost
    from leadline.hosts.workers.calls import CallResult, Crew
    from leadline.hosts.workers.request import HostsAsked

_HOST_S = 60.0  # ethtool and sockets of clients are asked with deadlines of their own
_LOADS_S = 1.0  # more for each host: several may load Python from one file system at once
_ENDED_S = 5.0
_SHOWN = 5


def asked_of(hosts: HostsOptions) -> HostsAsked:
    """How they are reached. Raises UsageError."""
    if hosts.on_lab:
        raise UsageError(
            "--hosts lab is of studies", "a lab is audited as a whole: leadline tune audit --lab"
        )
    found = hosts.asked()
    assert found is not None  # noqa: S101 - called where some were named
    return found


def read_hosts(
    asked: HostsAsked, question: str, roles: Sequence[Role], known: Mapping[str, Setting]
) -> tuple[HostRead, ...]:
    """What each host has, in the file's order, with its roles of the file, else `roles`.

    Raises UsageError where none answers.
    """
    from leadline.hosts.workers.connect import connected

    gaps: dict[str, str] = {}
    with connected(asked, say_aside, lambda: False, gaps) as crew:
        found, said = _ask(asked, crew, question, gaps)
    names = [one.name for one in asked.hosts] or [one.name for one in found]
    own = {one.name: cast("tuple[Role, ...]", one.roles) for one in asked.hosts}
    read = tuple(_read(name, own.get(name) or tuple(roles), gaps, said, known) for name in names)
    if all(one.problem for one in read):
        words = [f"{one.name} {one.problem}" for one in read[:_SHOWN]]
        more = f"; and {len(read) - _SHOWN} more" if len(read) > _SHOWN else ""
        raise UsageError(
            f"no host could be audited: {'; '.join(words)}{more}",
            "try `ssh HOST PYTHON -m leadline --version` for each; see docs/many-hosts.md",
        )
    return read


def _ask(
    asked: HostsAsked, crew: Crew, question: str, gaps: dict[str, str]
) -> tuple[tuple[StudyHost, ...], Mapping[str, CallResult]]:
    """The hosts that are there, and what those said that can be asked. The others are named in `gaps`."""
    from leadline.hosts.worker_rpc import remote
    from leadline.hosts.workers.calls import Order
    from leadline.hosts.workers.checks import there_and_fit

    found = there_and_fit(asked, crew, gaps)
    arguments = {one.name: (question, _HOST_S) for one in found if one.name not in gaps}
    limit_s = _HOST_S + _ENDED_S + _LOADS_S * len(arguments)
    return found, crew.ask(Order(remote().audit_part, arguments, limit_s))


def _read(
    name: str,
    roles: tuple[Role, ...],
    gaps: Mapping[str, str],
    said: Mapping[str, CallResult],
    known: Mapping[str, Setting],
) -> HostRead:
    from leadline.tuning.remote_audit import told

    one = said.get(name)
    if name in gaps or one is None:
        return HostRead(name, roles, {}, problem=gaps.get(name, "is not there any more"))
    if one.problem:
        return HostRead(name, roles, {}, problem=f"gave no answer: {one.problem}")
    try:
        answer = told(one.value["output"], name, known)
    except LeadlineError as error:
        return HostRead(name, roles, {}, problem=f"gave no answer: {error.message}")
    return HostRead(name, roles, answer.versions, answer.seen)
