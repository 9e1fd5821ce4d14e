"""`leadline tune apply`: changes settings so that all of them hold or none is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.change.tune_reach import TuneOptions, opened, settings_option, system_options
from leadline.cli.console import echo
from leadline.cli.machine.lab_targets import print_json
from leadline.cli.options import AskedPath, ignore_health_option
from leadline.cli.signals import Unwinding
from leadline.errors import UsageError
from leadline.units import format_duration, parse_duration

if TYPE_CHECKING:
    from leadline.tuning.changing.applying import Applied
    from leadline.tuning.changing.checks import AskedChange
    from leadline.tuning.settings import SettingChange

_PRICES = ("integrity", "durability", "security", "irreversible")


class PlanWord(click.types.StringParamType):
    """`NAME=VALUE`, or a plan's file, which is asked whether it answers first."""

    name = "change"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text itself."""
        if "=" not in value:
            AskedPath(exists=True, dir_okay=False).convert(value, param, ctx)
        return str(value)


@click.command(short_help="Change settings: all of them, or none")
@click.argument("words", nargs=-1, required=True, type=PlanWord(), metavar="PLAN|NAME[@PLACE]=VALUE...")
@click.option(
    "--on", "on", multiple=True, metavar="PLACE", help="A device, interface, daemon, pool, ..., or all."
)
@click.option("--dry-run", is_flag=True, help="Show what would be changed.")
@click.option("--yes", is_flag=True, help="Make the changes.")
@click.option(
    "--accept",
    multiple=True,
    type=click.Choice(_PRICES),
    help="Accept this risk. Repeat for several.",
)
@click.option(
    "--confirm-within",
    metavar="TIME",
    default="",
    help="Revert everything unless `tune confirm` comes within TIME.",
)
@click.option(
    "--watch", metavar="TIME", default="10s", show_default=True, help="Watch the cluster's health for TIME."
)
@ignore_health_option
@click.option(
    "--restart", is_flag=True, help="Restart daemons of this host that need it. A lab's daemons always are."
)
@settings_option
@system_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    words: tuple[str, ...],
    on: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    own: Path | None,
    which: TuneOptions,
    **options: Any,
) -> None:
    """Change settings: those in the file PLAN, or NAME=VALUE words.

    All objections are found before anything is changed. Old values are journalled; new values are read back,
    also from the daemons. If the cluster's health gets worse, everything is reverted at once.

    \b
    leadline tune apply net.core.somaxconn=4096 --dry-run
    leadline tune apply plan.yaml --yes --confirm-within 10m
    leadline tune revert
    """
    from leadline.tuning.changing import holding
    from leadline.tuning.changing.applying import DeadMansSwitch, Pace, apply
    from leadline.tuning.changing.checks import UNHEALTHY, check, resolve

    if dry_run == yes:
        raise UsageError(
            "--dry-run and --yes were both given" if yes else "nothing is changed without --yes",
            "--dry-run shows what would be changed; --yes changes it",
        )
    asked = _asked(words, on)
    allowed = (*options["accept"], *((UNHEALTHY,) if options["ignore_health"] else ()))
    pace = Pace(watch_s=parse_duration(options["watch"]) / 1e9)
    within_s = parse_duration(options["confirm_within"]) / 1e9 if options["confirm_within"] else 0.0
    as_json: bool = options["as_json"]
    with opened(replace(which, own=own), restart=options["restart"]) as (system, journal):
        changes, where = resolve(system, asked)
        if dry_run:
            checked = check(system, changes, allowed, where)
            _print_changes("would change", checked.changes, checked.already, as_json)
            return
        switch = DeadMansSwitch(within_s, partial(holding.start, journal.directory)) if within_s else None
        with Unwinding():
            done = apply(
                system, changes, allowed=allowed, journal=journal, pace=pace, where=where,
                switch=switch, say=(lambda _: None) if as_json else echo,
            )  # fmt: skip
    again = ("--restart",) if options["restart"] else ()
    _print_done(done, within_s, journal.command("confirm"), journal.command("revert", *again), as_json)


def _asked(words: Sequence[str], on: Sequence[str]) -> tuple[AskedChange, ...]:
    from leadline.tuning.changing.checks import parse_words, read_plan

    files = [word for word in words if "=" not in word]
    if not files:
        return parse_words(words, on)
    if len(words) > 1:
        raise UsageError(
            f"a plan ({files[0]}) and other words were given", "give a plan, or NAME=VALUE words"
        )
    return read_plan(Path(files[0]), on)


def _row(change: SettingChange) -> dict[str, Any]:
    return change.as_json() | {"on": change.place.words}


def _print_changes(
    words: str, changes: Sequence[SettingChange], already: Sequence[SettingChange], as_json: bool
) -> None:
    if as_json:
        rows = {"changes": [_row(one) for one in changes], "already": [_row(one) for one in already]}
        print_json({"format": "leadline.tune-plan/1", **rows})
        return
    for one in already:
        echo(f"in force already: {one.setting} on {one.place.words}: {one.value}")
    for one in changes:
        was = "not set" if one.before is None else one.before
        echo(f"{words}: {one.setting} on {one.place.words}: {was} -> {one.value}")


def _print_done(done: Applied, within_s: float, confirm: str, revert: str, as_json: bool) -> None:
    if as_json:
        rows = {
            "changes": [_row(one) for one in done.changes],
            "already": [_row(one) for one in done.already],
        }
        print_json({"format": "leadline.tune/1", "run": done.run, **rows, "pending": list(done.pending)})
        return
    for one in done.already:
        echo(f"in force already: {one.setting} on {one.place.words}: {one.value}")
    for words in done.pending:
        echo(f"note: {words}")
    if not done.changes:
        return
    if within_s:
        echo(f"all is put back in {format_duration(round(within_s))} unless: {confirm}")
    echo(f"take it back with: {revert}")
