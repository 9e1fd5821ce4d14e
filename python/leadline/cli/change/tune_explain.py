"""`leadline tune explain`: one setting in plain words."""

from __future__ import annotations

import json
from pathlib import Path

import click

from leadline.cli.change.tune_reach import asked_versions, settings_option, versions_options
from leadline.cli.console import echo_text
from leadline.cli.explain.paragraphs import say


@click.command(short_help="Explain a setting: effect, trade-offs, and who advises which value")
@click.argument("name", metavar="NAME")
@settings_option
@versions_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.settings/1.")
def command(
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
