"""`leadline tune`: a group whose verbs are loaded when they are named, each in a module of its own here."""

from __future__ import annotations

import importlib

import click

# Each verb with a line of help; the module is `tune_VERB` and exports `command`.
_VERBS: tuple[tuple[str, str], ...] = (
    ("list", "List the settings that are known, a line each"),
    ("explain", "Say what a setting is, costs, moves and mends, and who advises what"),
    ("audit", "Say what is dangerous, obsolete or worth trying here"),
    ("apply", "Change settings so that all hold, or none is left"),
    ("confirm", "Keep what was applied with --confirm-within"),
    ("status", "Show what is changed, and whether it still holds"),
    ("revert", "Put back what was changed"),
    ("emit", "Write settings as files of the tools that keep them"),
    ("prove", "Measure a study with a setting and without it, in turns, and say whether it helps"),
    ("search", "Search the values of settings for a study, and prove the best"),
)


class TuneVerbs(click.Group):
    """Commands by name, as the program's own verbs."""

    def list_commands(self, _context: click.Context) -> list[str]:
        return [name for name, _ in _VERBS]

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name not in dict(_VERBS):
            return None
        command: click.Command = importlib.import_module(f"leadline.cli.change.tune_{name}").command
        return command

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_VERBS))


@click.group(name="tune", cls=TuneVerbs, short_help="Change settings safely, and take them back")
def command() -> None:
    """Settings of host, network and Ceph: what they are, and how they are changed and taken back.

    Nothing is changed without --yes, and everything that was changed can be taken back: leadline tune revert.
    """
