"""What `leadline tune audit` prints: what was not asked, what is dangerous, what to try first, what to do."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leadline.cli.change.auditing.causes import AuditedWork
from leadline.cli.console import echo
from leadline.cli.explain.paragraphs import say
from leadline.tuning.audit import Audited, AuditRow, SettingSeen, can_be_applied
from leadline.tuning.changes import SettingPlace
from leadline.tuning.fleet import HostRead, where_words
from leadline.tuning.messages import NEEDS
from leadline.tuning.validity import Versions, default_on

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
    prices = f" Price: {', '.join(price.kind for price in row.setting.prices)}." if row.setting.prices else ""
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
        say("No setting here is known to mend what limits it: leadline diagnose says what else would.")


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
