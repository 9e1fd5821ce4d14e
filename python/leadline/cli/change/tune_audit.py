"""`leadline tune audit`: what is dangerous, obsolete or worth trying here, and what to prove first."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.change.audit_causes import AuditedWork, work_of
from leadline.cli.change.tune_options import settings_option
from leadline.cli.change.tune_reach import named_lab, system_of
from leadline.cli.console import echo, echo_text
from leadline.cli.explain.paragraphs import say
from leadline.cli.machine.lab_targets import lab_option
from leadline.cli.paths import AskedPath
from leadline.errors import UsageError
from leadline.tuning.settings import ROLES

if TYPE_CHECKING:
    from leadline.tuning.audit import Audited, AuditRow
    from leadline.tuning.settings import Role, Setting

_EXIT_DANGEROUS = 3
_ROWS = 12  # of the first screen
_TITLES = {
    "dangerous": "DANGEROUS",
    "recommended": "TRY",
    "refused": "WITHOUT EFFECT",
    "obsolete": "OBSOLETE",
    "advice": "OLD ADVICE",
}


@click.command(short_help="Say what is dangerous, obsolete or worth trying here")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(ROLES),
    help="What this host is; again for more.  [default: all of them]",
)
@lab_option("The cluster and hosts of a lab: of the only one, or of NAME.")
@click.option(
    "--conf",
    type=AskedPath(dir_okay=False),
    help="Ceph's configuration of the cluster.  [default: $CEPH_CONF, or /etc/ceph/ceph.conf]",
)
@click.option("--no-ceph", is_flag=True, help="Ask no cluster.")
@click.option(
    "--for",
    "work",
    metavar="STUDY|RESULT",
    help="For this work; of a result what diagnose says limits it comes first.",
)
@settings_option
@click.option("--all", "everything", is_flag=True, help="Print every row, all that is set and unreadable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.audit/1.")
def command(
    roles: tuple[Role, ...],
    lab: str | None,
    conf: Path | None,
    no_ceph: bool,
    work: str | None,
    own: Path | None,
    everything: bool,
    as_json: bool,
) -> int:
    """Read every setting of this host and its cluster; say what is dangerous, obsolete, and worth trying.

    It changes nothing. What is worth trying comes from what `leadline diagnose` says limits the RESULT that
    is given with --for, and from advice with a source that holds; without one nothing is recommended. The
    exit code is 3 where something dangerous is in force.

    \b
    leadline tune audit --role client
    leadline tune audit --lab --for leadline-media-20260131-120000
    """
    from leadline.tuning.audit import AuditAsked, audit
    from leadline.tuning.document import audit_json
    from leadline.tuning.seen import read_settings_here
    from leadline.tuning.settings import settings_with
    from leadline.tuning.states import holds

    if no_ceph and (lab is not None or conf is not None):
        raise UsageError("--no-ceph and a cluster are two answers", "leave one of them out")
    known = settings_with(own)
    asked_work = work_of(work)
    meant = roles or ROLES
    place = _conf(conf, no_ceph=no_ceph)
    with system_of(place, known=known, lab=named_lab(lab)) as system:
        versions = system.versions()
        wanted = [one for one in known.values() if set(one.roles) & set(meant) and _is_asked(one, no_ceph)]
        seen = read_settings_here(system, wanted, versions)
        state = functools.cache(lambda name, place: holds(name, system.around, place))
        asked = AuditAsked(versions, meant, asked_work.directions, asked_work.causes, state)
        found = audit({one.name: one for one in wanted}, seen, asked)
    if as_json:
        named = {"causes": [one.name for one in asked_work.causes], "for": work}
        echo_text(json.dumps({**audit_json(found, versions), **named}, indent=1))
    else:
        _print(found, asked_work, everything=everything)
    return _EXIT_DANGEROUS if found.dangerous else 0


def _conf(conf: Path | None, *, no_ceph: bool) -> Path | None:
    """As `check` has it; a file that is not there is a cluster that cannot be asked."""
    if no_ceph or conf is not None:
        return conf
    named = os.environ.get("CEPH_CONF")
    return Path(named) if named else None


def _is_asked(one: Setting, no_ceph: bool) -> bool:
    return not (no_ceph and one.access.kind.startswith("ceph_"))


def _print(found: Audited, work: AuditedWork, *, everything: bool) -> None:
    echo(_headline(found, work))
    rows = found.rows if everything else found.rows[:_ROWS]
    for row in rows:
        _print_row(row)
    if len(rows) < len(found.rows):
        say(f"{len(found.rows) - len(rows)} more: --all.")
    _print_next(found, work)
    if everything:
        _print_everything(found)
    else:
        say(f"{len(found.set_here)} values are not the default, {len(found.unknown)} not readable: --all.")


def _headline(found: Audited, work: AuditedWork) -> str:
    counts = {kind: sum(row.kind == kind for row in found.rows) for kind in dict.fromkeys(_TITLES)}
    parts = [
        f"{count} {words}"
        for count, words in (
            (counts["dangerous"], "dangerous"),
            (counts["recommended"], "worth trying"),
            (counts["refused"], "set without effect"),
            (counts["obsolete"], "obsolete"),
            (counts["advice"], "by advice that does not hold"),
        )
        if count
    ]
    head = ", ".join(parts) or "Nothing dangerous, obsolete or worth trying is known of what is set here"
    limits = ", ".join(one.title for one in work.causes[:2])
    return f"{head}." + (f" What limits {work.name}: {limits}." if limits else "")


def _print_row(row: AuditRow) -> None:
    echo()
    unread = "?" if row.places else "its default"
    change = f"{unread if row.value is None else row.value}" + (f" -> {row.to}" if row.to else "")
    say(f"{_TITLES[row.kind]}  {row.setting.name} = {change}  ({row.where})")
    prices = f" Price: {', '.join(price.kind for price in row.setting.prices)}." if row.setting.prices else ""
    reason = f"{100 * row.cause.share:.0f} %: {row.why}" if row.cause is not None else row.why
    say(f"  {reason}. Needs {row.setting.needs}.{prices} [{row.source}]")


def _print_next(found: Audited, work: AuditedWork) -> None:
    echo()
    bad = next((row for row in found.rows if row.kind == "dangerous"), None)
    if bad is not None:
        say(f"Do: see `leadline tune explain {bad.setting.name}`, and put it back to {bad.to}.")
    for row in found.to_prove[:3]:
        say(f"Do: leadline tune prove {work.study or 'STUDY'} --with {row.setting.name}={_quoted(row.to)}")
    if found.to_prove:
        return
    if not work.causes:
        words = f"leadline run {work.study}" if work.study else "leadline run STUDY"
        say(f"Nothing is recommended without a cause: {words}; leadline tune audit --for RESULT.")
    else:
        say("No setting here is known to mend what limits it: leadline diagnose says what else would.")


def _quoted(value: str) -> str:
    import shlex

    return shlex.quote(value)


def _print_everything(found: Audited) -> None:
    echo()
    echo(f"Not at its default ({len(found.set_here)}):")
    for one in found.set_here:
        say(f"  {one.setting.name} = {one.value}  ({one.place.words})")
    echo(f"Could not be read ({len(found.unknown)}):")
    for one in found.unknown:
        say(f"  {one.setting.name}  ({one.place.words}): {one.reason}")
