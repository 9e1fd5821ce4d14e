"""What an audit is for, how it asks other hosts, and what it prints."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from leadline.cli.console import echo
from leadline.cli.explain.paragraphs import say
from leadline.cli.measure.hosts_options import HostsOptions, say_aside
from leadline.errors import LeadlineError, SpecError, UsageError
from leadline.knowledge.findings import Finding
from leadline.tuning.audit import Audited, AuditRow, SettingSeen, can_be_applied
from leadline.tuning.fleet import HostRead, where_words
from leadline.tuning.messages import NEEDS
from leadline.tuning.settings import Role, Setting, SettingPlace
from leadline.tuning.validity import Versions, default_on

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


@dataclass(frozen=True)
class AuditedWork:
    """`name` as it was given, the `study` to prove changes with, `directions`: read, write."""

    name: str = ""
    study: str = ""
    directions: frozenset[str] = frozenset()
    causes: tuple[Finding, ...] = ()


def work_of(given: str | None) -> AuditedWork:
    """A result where it is a directory, else a study. Raises UsageError where it is neither."""
    if given is None:
        return AuditedWork()
    from leadline.observe.hang_guard import check_answers

    check_answers([given])
    if Path(given).is_dir():
        return _of_result(Path(given))
    return _of_study(given)


def _of_result(path: Path) -> AuditedWork:
    from leadline.store.reader import open_result
    from leadline.verdict.diagnosis.results import diagnose_result

    result = open_result(path)
    cells = diagnose_result(result)
    shares: dict[str, float] = {}
    present: Counter[str] = Counter()
    findings: dict[str, Finding] = {}
    for one in cells:
        for cause in one.found.named:
            name = cause.entry.name
            findings.setdefault(name, cause.finding)
            present[name] += 1
            if cause.share is not None:
                shares[name] = shares.get(name, 0.0) + cause.share / len(cells)
    order = sorted(findings, key=lambda name: (name not in shares, -shares.get(name, present[name])))
    return AuditedWork(
        str(path),
        str(result.manifest.get("study", {}).get("name") or "STUDY"),
        directions([one.cell.job for one in cells]),
        tuple(replace(findings[name], share=shares.get(name)) for name in order),
    )


def _of_study(given: str) -> AuditedWork:
    from leadline.study.library import load_study

    try:
        study = load_study(given, os.environ)
    except SpecError as error:
        raise UsageError(f"--for {given}: {error.message}", error.remedy) from error
    return AuditedWork(given, given, directions([study.as_json()]))


def directions(values: Iterable[Any]) -> frozenset[str]:
    """Whether anything of these jobs reads or writes, by their `rw`; none where nothing tells."""
    found: set[str] = set()
    for word in _words(list(values)):
        found |= {way for way in ("read", "write") if way in word}
        found |= {"read", "write"} if word.endswith("rw") else set()
    return frozenset(found)


def _words(value: Any, key: str = "") -> Iterable[str]:
    if isinstance(value, dict):
        for name, inside in value.items():
            yield from _words(inside, name)
    elif isinstance(value, list | tuple):
        for inside in value:
            yield from _words(inside, key)
    elif key == "rw" and isinstance(value, str):
        yield value


_ROWS = 12  # of the first screen
_TO_APPLY = 3
_TITLES = {
    "dangerous": "DANGEROUS",
    "differs": "DIFFERS",
    "recommended": "TRY",
    "refused": "WITHOUT EFFECT",
    "obsolete": "OBSOLETE",
    "advice": "OLD ADVICE",
}
_COUNTED = {
    "dangerous": "dangerous",
    "differs": "not the same on all hosts",
    "recommended": "worth trying",
    "refused": "set without effect",
    "obsolete": "obsolete",
    "advice": "by advice that does not hold",
}


@dataclass(frozen=True)
class AuditShown:
    """What was found for which work, of which `hosts` (none: this one); why no cluster was asked, if so.

    `options` are those by which `leadline tune apply` means the same system, `target` those of a study.
    """

    found: Audited
    work: AuditedWork
    versions: Versions
    hosts: tuple[HostRead, ...] = ()
    no_cluster: str = ""
    options: str = ""
    target: str = " --target NAME=PATH"

    def where(self, places: Iterable[SettingPlace]) -> str:
        """In words."""
        return where_words(places, self.hosts)

    def default(self, one: SettingSeen) -> str:
        """Of the versions that its place has."""
        own = next((host.versions for host in self.hosts if host.name == one.place.host), self.versions)
        return default_on(one.setting, own)


def print_audit(shown: AuditShown, *, everything: bool) -> None:
    """The first screen; with `everything` every row, all that is set and all that could not be read."""
    found = shown.found
    say(_headline(shown))
    for one in shown.hosts:
        if one.problem:
            say(f"NOT AUDITED  {one.name} {one.problem}")
    if shown.no_cluster:
        say(f"NO CLUSTER ASKED  {shown.no_cluster}. Daemons and pools are not in this: --conf FILE.")
    rows = found.rows if everything else found.rows[:_ROWS]
    for row in rows:
        _print_row(row, shown)
    if len(rows) < len(found.rows):
        echo()
        say(f"{len(found.rows) - len(rows)} more: --all.")
    _print_next(shown)
    set_here, unknown = _set_here(shown), _unknown(shown)
    if everything:
        _print_everything(shown, set_here, unknown)
    else:
        say(f"{len(set_here)} values are set or not the known default, {len(unknown)} not readable: --all.")


def _headline(shown: AuditShown) -> str:
    rows, work = shown.found.rows, shown.work
    counts = {kind: sum(row.kind == kind for row in rows) for kind in _COUNTED}
    parts = [f"{count} {_COUNTED[kind]}" for kind, count in counts.items() if count]
    parts = parts if counts["dangerous"] or not parts else ["nothing known to be dangerous", *parts]
    head = ", ".join(parts) or "nothing dangerous, obsolete or worth trying is known of what is set here"
    limits = ", ".join(one.title for one in work.causes[:2])
    read = sum(not one.problem for one in shown.hosts)
    of = "" if read == len(shown.hosts) else f" of {len(shown.hosts)}"
    whose = f"{read}{of} host{'' if len(shown.hosts) == 1 else 's'}: " if shown.hosts else ""
    head = f"{whose}{head}" if whose else f"{head[0].upper()}{head[1:]}"
    return f"{head}." + (f" What limits {work.name}: {limits}." if limits else "")


def _print_row(row: AuditRow, shown: AuditShown) -> None:
    echo()
    where = shown.where(row.places)
    if row.kind == "differs":
        say(f"{_TITLES[row.kind]}  {row.setting.name}  ({where})")
    else:
        unread = "?" if row.places else "its default"
        change = f"{unread if row.value is None else row.value}" + (f" -> {row.to}" if row.to else "")
        say(f"{_TITLES[row.kind]}  {row.setting.name} = {change}  ({where})")
    prices = (
        f" Trade-off: {', '.join(price.kind for price in row.setting.prices)}." if row.setting.prices else ""
    )
    reason = row.why
    if row.cause is not None:
        reason = f"{'present' if row.cause.share is None else f'{100 * row.cause.share:.0f} %'}: {row.why}"
    say(f"  {reason}. Needs {NEEDS[row.setting.needs]}.{prices} [{row.source}]")


def _print_next(shown: AuditShown) -> None:
    echo()
    found, work = shown.found, shown.work
    bad = next((row for row in found.rows if row.kind == "dangerous"), None)
    if bad is not None:
        at = f" on {shown.where(bad.places)}" if shown.hosts else ""
        say(f"Do: see `leadline tune explain {bad.setting.name}`, and put it back to {bad.to}{at}.")
        if can_be_applied(bad):
            _print_apply([bad], shown)
    for row in found.to_prove[:3]:
        name, study = row.setting.name, work.study or "STUDY"
        at = _hosts_of(row, shown.hosts)
        say(f"Do{at}: leadline tune prove {study}{shown.target} --with {name}={shlex.quote(row.to)}")
    _print_apply(found.to_apply[:_TO_APPLY], shown)
    if found.to_prove:
        return
    if not work.causes:
        words = f"leadline run {work.study or 'STUDY'}{shown.target}"
        more = " more" if any(row.kind == "recommended" for row in found.rows) else ""
        say(f"Nothing{more} is recommended without a cause: {words}; leadline tune audit --for RESULT.")
    else:
        say("No setting here is known to mend what limits it: leadline diagnose shows what else would.")


def _print_apply(rows: Sequence[AuditRow], shown: AuditShown) -> None:
    """A line for all that is to be changed on the same hosts."""
    words: dict[str, list[str]] = {}
    for row in rows:
        at = (
            f" on {shown.where(SettingPlace(host=place.host) for place in row.places)}" if shown.hosts else ""
        )
        for subject in list(dict.fromkeys(place.subject for place in row.places))[:_TO_APPLY]:
            name = f"{row.setting.name}@{subject}" if subject else row.setting.name
            words.setdefault(at, []).append(f"{name}={shlex.quote(row.to)}")
    for at, changes in words.items():
        say(f"Do{at}: leadline tune apply {' '.join(changes)}{shown.options} --dry-run")


def _hosts_of(row: AuditRow, hosts: Sequence[HostRead]) -> str:
    """A trial changes the host that it runs on: which that has to be, where others were audited."""
    own = list(dict.fromkeys(place.host for place in row.places if not place.cluster))
    return f" on {own[0]}" if hosts and own else ""


_Grouped = dict[tuple[str, str], list[SettingPlace]]  # by the setting and what is said of it


def _set_here(shown: AuditShown) -> _Grouped:
    grouped: _Grouped = {}
    for one in shown.found.set_here:
        words = f"{one.value}, default {shown.default(one)}"
        grouped.setdefault((one.setting.name, words), []).append(one.place)
    return grouped


def _unknown(shown: AuditShown) -> _Grouped:
    grouped: _Grouped = {}
    for one in shown.found.unknown:
        grouped.setdefault((one.setting.name, one.reason), []).append(one.place)
    return grouped


def _print_everything(shown: AuditShown, set_here: _Grouped, unknown: _Grouped) -> None:
    echo()
    echo(f"Set, or not at the default that is known ({len(set_here)}):")
    for (name, words), places in set_here.items():
        say(f"  {name} = {words}  ({shown.where(places)})")
    echo(f"Could not be read ({len(unknown)}):")
    for (name, reason), places in unknown.items():
        say(f"  {name}  ({shown.where(places)}): {reason}")
