"""`leadline hosts`: the same study on several hosts, with host and file system as separate factors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.console import echo, echo_text, make_console
from leadline.cli.options import AskedPath, across_jobs_option, complete_result
from leadline.cli.read.indexes import say_left_out
from leadline.errors import ResultError, UsageError

if TYPE_CHECKING:
    from leadline.verdict.comparisons.hosts import HostComparisons


@click.command(short_help="Compare results of several hosts: is it the host or the file system?")
@click.argument(
    "results", nargs=-1, type=AskedPath(), metavar="RESULT RESULT…", shell_complete=complete_result
)
@click.option("--metric", "metrics", multiple=True, help="run_time, bandwidth, iops, ... Repeat for several.")
@click.option(
    "--margin", default="5%", show_default=True, help="Differences up to this margin count as equivalent."
)
@across_jobs_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.hosts/1.")
def command(
    results: tuple[Path, ...], metrics: tuple[str, ...], margin: str, across_jobs: bool, as_json: bool
) -> int:
    """Compare results of one study from several hosts with the same targets. The first is the base.

    Three tables: each host's targets compared with its first target; the hosts on each target; and whether a
    target's ratio differs between hosts. Only if it does not, the ratio is the file system's alone. Cells of
    one name must have run the same job, else the exit code is 2. A result that cannot be read is named and
    left out, and the exit code is 1.
    """
    from leadline import units
    from leadline.store.reader import open_result
    from leadline.verdict.comparisons.hosts import compare_hosts, host_view
    from leadline.verdict.kinds import refuse_unknown

    if len(results) < 2:
        raise UsageError("two results at least are needed", "Name one result of each host.")
    refuse_unknown(metrics)
    views, problems = [], []
    for path in results:
        try:
            views.append(host_view(open_result(path)))
        except ResultError as error:
            problems.append(error)
    if len(views) < 2:
        raise problems[0]
    found = compare_hosts(views, metrics, units.parse_percent(margin) / 100, across_jobs=across_jobs)
    _show(found, as_json=as_json)
    return say_left_out(problem.message for problem in problems)


def _show(found: HostComparisons, *, as_json: bool) -> None:
    from leadline.report.renderers.show_json import comparison_to_json
    from leadline.report.renderers.terminal import print_comparisons
    from leadline.verdict.comparisons.hosts import words

    parts = {"file_system": found.file_system, "host": found.host, "interaction": found.interaction}
    if as_json:
        tables = {name: [comparison_to_json(item) for item in items] for name, items in parts.items()}
        said = {"format": "leadline.hosts/1", "hosts": list(found.hosts), "notes": list(found.notes)}
        echo_text(json.dumps(said | tables, indent=1, allow_nan=False))
        return
    console = make_console()
    for note in found.notes:
        echo(f"NOTE: {note}")
    for items in parts.values():
        print_comparisons(items, console)
    for sentence in words(found):
        echo(sentence)
