"""`leadline tune status`, `confirm` and `revert`: what was changed, keeping it, and putting it back."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.change.tune_reach import TuneOptions, journal_meant, opened, system_options
from leadline.cli.console import echo
from leadline.cli.machine.lab_targets import print_json
from leadline.cli.main import EXIT_FAILED, EXIT_GOOD
from leadline.errors import UsageError
from leadline.units import format_duration

if TYPE_CHECKING:
    from leadline.tuning.changing.journal import TuningJournal
    from leadline.tuning.changing.reverting import Reverted
    from leadline.tuning.changing.state import JournalledChange, JournalState, TuningRun


@click.command(short_help="Revert changed settings")
@click.option("--run", metavar="ID", default="", help="Revert only this apply.  [default: all]")
@click.option("--force", is_flag=True, help="Revert also what somebody else changed since.")
@click.option(
    "--forget", is_flag=True, help="Give up changes that cannot be reverted, or that somebody else changed."
)
@click.option(
    "--restart", is_flag=True, help="Restart daemons of this host that need it. A lab's daemons always are."
)
@system_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def revert(run: str, force: bool, forget: bool, restart: bool, which: TuneOptions, as_json: bool) -> int:
    """Revert every changed setting, the last one first.

    This works after a crash and after a reboot, from the journal alone. A setting that somebody else changed
    since is named and left, and the exit code is 1.
    """
    from leadline.errors import UsageError
    from leadline.tuning.changing.reverting import Reverted, revert

    with opened(which, restart=restart) as (system, journal):
        if run and run not in journal.state().runs:
            raise UsageError(f"the journal has no run {run}", f"`{journal.command('status')}` lists them")
        found = Reverted()
        if journal.state().outstanding(run):
            found = revert(
                None, journal, run=run, force=force, forget=forget, restart=system.restart, wait_s=2.0
            )
            found.unwritten = found.unwritten or _say_ended(journal, run)
    if as_json:
        print_json({"format": "leadline.tune-revert/1", **asdict(found)})
    else:
        _print_reverted(found)
    return EXIT_FAILED if found.left else EXIT_GOOD


def _say_ended(journal: TuningJournal, run: str) -> str:
    """A switch that still waits for a run then ends. Why that could not be said; "" where it was."""
    state, unsaid = journal.state(), ""
    for one in [run] if run else list(state.runs):
        if not state.outstanding(one) and not state.runs[one].ended:
            unsaid = journal.say_if_it_can("ended", run=one, how="put back: tune revert") or unsaid
    return unsaid


def _print_reverted(found: Reverted) -> None:
    for words in found.back:
        echo(f"put back: {words}")
    for words in found.gone:
        echo(f"gone: {words}")
    for words in found.left:
        echo(f"left: {words}", err=True)
    if found.unwritten:
        echo(
            f"note: {found.unwritten}. Revert once more when it can be: until then it counts as changed.",
            err=True,
        )
    if found.left:
        echo("--force overwrites what others have set; --forget leaves it for good", err=True)
    elif not found.back and not found.gone:
        echo("nothing to put back")


@click.command(short_help="Keep changes of --confirm-within")
@system_options
def confirm(which: TuneOptions) -> None:
    """Keep the changes of `tune apply --confirm-within`. They can still be reverted: leadline tune revert."""
    journal = journal_meant(which)
    waiting = [
        run
        for run in journal.state().runs.values()
        if run.confirm_by_s and not run.confirmed and not run.ended and journal.state().outstanding(run.id)
    ]
    if not waiting:
        raise UsageError(
            "nothing waits for being confirmed", f"`{journal.command('status')}` shows what is in force"
        )
    with journal.locked(2.0):  # who is putting it back at this very moment has the last word
        for run in waiting:
            if journal.state().runs[run.id].ended:
                raise UsageError(f"run {run.id} was just put back", "apply it again, and confirm sooner")
            journal.say("confirmed", run=run.id)
            echo(f"kept: {len(journal.state().outstanding(run.id))} changes of run {run.id}")


@click.command(short_help="Show changed settings, and whether they are still in force")
@click.option(
    "--break-lock", metavar="ID", default="", help="Remove this lock of the cluster, if its holder has ended."
)
@system_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(break_lock: str, which: TuneOptions, as_json: bool) -> None:
    """Show every change that is not reverted, whether it is still in force, and what waits for `tune
    confirm`.

    For a cluster, also show who holds its lock. The lock expires some time after its holder ends; --break-
    lock removes it at once. That reverts nothing: run leadline tune revert on the holder's host.
    """
    if break_lock:
        _break(break_lock, which)
        return
    journal = journal_meant(which)
    state = journal.state()
    locks, unread = _locks(which)
    rows = [_row(one, state) for one in reversed(state.outstanding())]
    runs = [
        _run(run, journal, state) for run in state.runs.values() if state.outstanding(run.id) or run.ended
    ]
    if as_json:
        print_json(
            {
                "format": "leadline.tune-status/1",
                "journal": str(journal.directory),
                "changes": rows,
                "runs": runs,
                "locks": locks,
                "locks_reason": unread or None,
            }
        )
        return
    for row in rows:
        echo(
            f"{row['setting']} on {row['on']}: {row['before'] or 'not set'} -> {row['value']}; {row['state']}"
        )
    for run in runs:
        if run["state"]:
            echo(f"run {run['run']}: {run['state']}")
    for lock in locks:
        echo(f"the cluster's lock: {lock['words']}; it ends {lock['ends']}")
    if unread:
        echo(f"who holds the cluster's lock could not be read: {unread}", err=True)
    if not rows:
        echo("nothing is changed")


def _locks(which: TuneOptions) -> tuple[list[dict[str, Any]], str]:
    """Those of a cluster that was named, and why they could not be read, if so."""
    from leadline.errors import LeadlineError
    from leadline.tuning.changing.cluster_lock import holders

    if not (which.lab or which.conf or which.client_name):
        return [], ""
    try:
        with opened(which) as (system, _):
            found = holders(system.around)
    except LeadlineError as error:
        return [], error.message
    now = time.time()
    return [
        {"id": one.id, "words": one.words, "ends": one.ends, "counts": not one.is_over(now)} for one in found
    ], ""


def _break(lock: str, which: TuneOptions) -> None:
    from leadline.tuning.changing.cluster_lock import break_lock

    with opened(which) as (system, _):
        one = break_lock(system.around, lock)
    echo(f"removed: the lock of {one.words.removesuffix(',')}")


def _row(one: JournalledChange, state: JournalState) -> dict[str, Any]:
    return {
        "run": one.run,
        "setting": one.change.setting,
        "on": one.change.place.words,
        "before": one.change.before,
        "value": one.values[-1],
        "since": datetime.fromtimestamp(one.t_ns / 1e9).astimezone().isoformat(timespec="seconds"),
        "state": _state(one, state),
    }


def _state(one: JournalledChange, state: JournalState) -> str:
    from leadline.tuning.access.interface import same_value
    from leadline.tuning.changing.reverting import reached

    change = one.change
    with reached(state.runs[one.run].reach) as system:
        life = system.life(one.setting, change.place)
        if life and one.life and life != one.life:
            return "gone: what it was set on is not there any more"
        found = system.read(one.setting, change.place)
        if not found.known:
            return f"cannot be read: {found.reason}"
        if not one.is_ours(found.value):
            done = "" if one.done else ", and was perhaps never set"
            return f"not in force: it is {found.value or 'not set'} now{done}"
        amiss = [
            f"{daemon.daemon} works with {daemon.value}"
            for daemon in system.in_force(one.setting, change.place)
            if daemon.value is not None and not same_value(daemon.value, found.value)
        ]
        until = " until it is restarted" if one.setting.needs == "restart" else ""
        return "; ".join(f"{words}{until}" for words in amiss) or "in force"


def _run(run: TuningRun, journal: TuningJournal, state: JournalState) -> dict[str, Any]:
    waits = _waits(run, journal, state)
    return {"run": run.id, "confirm_by_unix_s": run.confirm_by_s or None, "state": waits}


def _waits(run: TuningRun, journal: TuningJournal, state: JournalState) -> str:
    from leadline.tuning.changing.holding import is_held

    if run.ended:
        return run.ended
    if not run.confirm_by_s or run.confirmed or not state.outstanding(run.id):
        return ""
    left_s = run.confirm_by_s - time.time()
    if is_held(run):
        confirm = journal.command("confirm")
        return f"is put back in {format_duration(max(0, round(left_s)))} unless: {confirm}"
    return (
        "was to be put back unless confirmed, and what was to do it has ended;"
        f" put it back with: {journal.command('revert')}"
    )
