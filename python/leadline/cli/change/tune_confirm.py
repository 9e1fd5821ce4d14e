"""`leadline tune confirm`: keeps what was applied for a time."""

from __future__ import annotations

import click

from leadline.cli.change.tune_reach import TuneOptions, journal_meant, system_options
from leadline.cli.console import echo
from leadline.errors import UsageError


@click.command(short_help="Keep changes of --confirm-within")
@system_options
def command(which: TuneOptions) -> None:
    """Keep the changes of `tune apply --confirm-within`. They can still be reverted: leadline tune revert."""
    journal = journal_meant(which)
    waiting = [
        run
        for run in journal.state().runs.values()
        if run.confirm_by_s and not run.confirmed and not run.ended and journal.state().outstanding(run.id)
    ]
    if not waiting:
        raise UsageError(
            "nothing waits for being confirmed", f"`{journal.command('status')}` says what is in force"
        )
    with journal.locked(2.0):  # who is putting it back at this very moment has the last word
        for run in waiting:
            if journal.state().runs[run.id].ended:
                raise UsageError(f"run {run.id} was just put back", "apply it again, and confirm sooner")
            journal.say("confirmed", run=run.id)
            echo(f"kept: {len(journal.state().outstanding(run.id))} changes of run {run.id}")
