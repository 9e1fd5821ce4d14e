"""`leadline hosts`: the same study on several hosts, with host and file system as separate factors."""

from __future__ import annotations

import json
from pathlib import Path

import click

from leadline.cli.paths import AskedPath
from leadline.errors import UsageError


@click.command(short_help="Tell the host from the file system, over results of several hosts")
@click.argument("results", nargs=-1, type=AskedPath(), metavar="RESULT RESULT…")
@click.option("--metric", "metrics", multiple=True, help="run_time, bandwidth, iops …; again for more.")
@click.option("--margin", default="5%", show_default=True, help="Difference that counts as the same.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.hosts/1.")
def command(results: tuple[Path, ...], metrics: tuple[str, ...], margin: str, as_json: bool) -> None:
    """Compare results of one study from several hosts, each with the same targets; the first is the base.

    Three tables: each host's targets against its first target, the hosts on each target, and whether a
    target's ratio is another one on another host. Only where that ratio is the same may one speak of the
    file system alone.
    """
    from leadline import units
    from leadline.cli.console import make_console
    from leadline.report.renderers.show_json import comparison_to_json
    from leadline.report.renderers.terminal import print_comparisons
    from leadline.store.reader import open_result
    from leadline.verdict.compared.hosts import compare_hosts, words
    from leadline.workloads.judged import known_metrics

    if len(results) < 2:
        raise UsageError("two results at least are needed", "Name one result of each host.")
    for metric in metrics:
        if metric not in known_metrics():
            raise UsageError(f"no metric is called {metric!r}", f"use one of: {', '.join(known_metrics())}")
    opened = [open_result(path) for path in results]
    found = compare_hosts(opened, metrics, units.parse_percent(margin) / 100)
    parts = {"file_system": found.file_system, "host": found.host, "interaction": found.interaction}
    if as_json:
        tables = {name: [comparison_to_json(item) for item in items] for name, items in parts.items()}
        document = {"format": "leadline.hosts/1", "hosts": list(found.hosts), **tables}
        click.echo(json.dumps(document, indent=1, allow_nan=False))
        return
    console = make_console()
    for items in parts.values():
        print_comparisons(items, console)
    for sentence in words(found):
        click.echo(sentence)
