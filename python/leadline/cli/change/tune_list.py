"""`leadline tune list`, the settings that are known, and `explain`, one of them in plain words."""

from __future__ import annotations

import json
from pathlib import Path

import click

from leadline.cli.change.tune_reach import asked_versions, settings_option, versions_options
from leadline.cli.console import echo, echo_text
from leadline.cli.explain.paragraphs import say
from leadline.errors import UsageError
from leadline.tuning.settings import LAYERS, ROLES


@click.command(short_help="Explain a setting: effect, trade-offs, and who advises which value")
@click.argument("name", metavar="NAME")
@settings_option
@versions_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.settings/1.")
def explain(
    name: str, own: Path | None, kernel_version: str | None, ceph_version: str | None, as_json: bool
) -> None:
    """Explain the setting NAME: default, range, trade-offs, effect, and whether a proof holds.

    \b
    leadline tune explain osd_op_num_shards
    leadline tune explain allow_ec_optimizations --ceph 20.2.0
    """
    from leadline.tuning.fleet import LIST_FORMAT, setting_json
    from leadline.tuning.messages import find_setting, paragraphs
    from leadline.tuning.settings import settings_with
    from leadline.verdict.diagnosis.causes import FIGURES, causes

    versions = asked_versions(kernel_version, ceph_version)
    one = find_setting(name, settings_with(own))
    if as_json:
        document = {"format": LIST_FORMAT, "settings": [setting_json(one, versions)]}
        echo_text(json.dumps(document, indent=1))
        return
    titles = {cause.name: cause.title.partition(", {")[0] for cause in causes()}
    for words in paragraphs(one, versions, FIGURES, titles):
        say(words)


@click.command(short_help="List the known settings")
@click.option(
    "--layer",
    "layers",
    multiple=True,
    type=click.Choice(LAYERS),
    help="Only settings of this layer. Repeat for several.",
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(ROLES),
    help="Only settings of hosts with this role. Repeat for several.",
)
@click.option(
    "--for", "cause", metavar="CAUSE", help="Only settings that can remedy a cause of `leadline diagnose`."
)
@settings_option
@versions_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.settings/1.")
def list_settings(
    layers: tuple[str, ...],
    roles: tuple[str, ...],
    cause: str | None,
    own: Path | None,
    kernel_version: str | None,
    ceph_version: str | None,
    as_json: bool,
) -> None:
    """List settings of firmware, kernel, devices, networks, mounts and Ceph: default, requirements, trade-
    offs.

    \b
    leadline tune list --layer osd
    leadline tune list --for read_ahead
    """
    from leadline.tuning.fleet import LIST_FORMAT, setting_json
    from leadline.tuning.settings import settings_with

    versions = asked_versions(kernel_version, ceph_version)
    if cause is not None:
        _check_cause(cause)
    found = [
        one
        for one in settings_with(own).values()
        if (not layers or one.layer in layers)
        and (not roles or set(one.roles) & set(roles))
        and (cause is None or cause in one.serves)
    ]
    if as_json:
        document = {"format": LIST_FORMAT, "settings": [setting_json(one, versions) for one in found]}
        echo_text(json.dumps(document, indent=1))
        return
    _print(found, versions)


def _check_cause(cause: str) -> None:
    from leadline.verdict.diagnosis.causes import causes
    from leadline.yamlio.problems import suggest

    known = [one.name for one in causes()]
    if cause not in known:
        raise UsageError(f"--for: no cause is called {cause!a}", suggest(cause, known))


def _print(found: list, versions: dict[str, str]) -> None:  # type: ignore[type-arg]
    from leadline.tuning.validity import default_on, exists, obsolete

    layer = ""
    for one in found:
        if one.layer != layer:
            layer = one.layer
            echo(f"{layer.replace('_', ' ')}:")
        marks = [price.kind for price in one.prices]
        marks += ["irreversible"] if one.irreversible else []
        marks += ["obsolete"] if obsolete(one, versions) else []
        marks += ["not here"] if exists(one, versions) is False else []
        after = f"  ({', '.join(dict.fromkeys(marks))})" if marks else ""
        say(f"  {one.name} = {default_on(one, versions)}: {one.title}; needs {one.needs}{after}")
    count = len(found)
    echo(f"{count} setting{'' if count == 1 else 's'}. What one is: leadline tune explain NAME")
