"""`leadline tune`: a group whose verbs are loaded when they are named, each in a module of its own here."""

from __future__ import annotations

import importlib

import click

# Each verb with a line of help; the module is `tune_VERB` and exports `command`, but for `_ELSEWHERE`.
_VERBS: tuple[tuple[str, str], ...] = (
    ("list", "List the known settings"),
    ("explain", "Explain a setting: effect, trade-offs, and who advises which value"),
    ("audit", "Show settings that are dangerous, obsolete or worth trying here"),
    ("apply", "Change settings: all of them, or none"),
    ("confirm", "Keep changes of --confirm-within"),
    ("status", "Show changed settings, and whether they are still in force"),
    ("revert", "Revert changed settings"),
    ("emit", "Write settings for sysctl, udev, systemd, Ansible, Salt and others"),
    ("prove", "Measure a study with and without a setting, and show whether it helps"),
    ("search", "Search values of settings for a study, and prove the best"),
)

_ELSEWHERE = {
    "list": ("tune_list", "list_settings"),
    "explain": ("tune_list", "explain"),
    "confirm": ("tune_status", "confirm"),
    "status": ("tune_status", "status"),
    "revert": ("tune_status", "revert"),
}


class TuneVerbs(click.Group):
    """Commands by name, as the program's own verbs."""

    def list_commands(self, _context: click.Context) -> list[str]:
        return [name for name, _ in _VERBS]

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name not in dict(_VERBS):
            return None
        module, function = _ELSEWHERE.get(name, (f"tune_{name}", "command"))
        found: click.Command = getattr(importlib.import_module(f"leadline.cli.change.{module}"), function)
        return found

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_VERBS))


@click.group(
    name="tune", cls=TuneVerbs, short_help="Show, change, revert and prove settings of host, network and Ceph"
)
def command() -> None:
    """Show, change, revert and prove settings of host, network and Ceph.

    Nothing is changed without --yes. Every change can be reverted: leadline tune revert.
    """
