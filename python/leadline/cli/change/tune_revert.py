"""`leadline tune revert`: puts back what the journal says was changed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from leadline.cli.change.tune_reach import TuneOptions, opened, system_options
from leadline.cli.console import echo
from leadline.cli.machine.lab_targets import print_json
from leadline.cli.main import EXIT_FAILED, EXIT_GOOD

if TYPE_CHECKING:
    from leadline.tuning.changing.journal import TuningJournal
    from leadline.tuning.changing.reverting import Reverted


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
def command(run: str, force: bool, forget: bool, restart: bool, which: TuneOptions, as_json: bool) -> int:
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
        _print(found)
    return EXIT_FAILED if found.left else EXIT_GOOD


def _say_ended(journal: TuningJournal, run: str) -> str:
    """A switch that still waits for a run then ends. Why that could not be said; "" where it was."""
    state, unsaid = journal.state(), ""
    for one in [run] if run else list(state.runs):
        if not state.outstanding(one) and not state.runs[one].ended:
            unsaid = journal.say_if_it_can("ended", run=one, how="put back: tune revert") or unsaid
    return unsaid


def _print(found: Reverted) -> None:
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
