"""`leadline compare`: two results, cell by cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import complain, echo, echo_text, make_console
from leadline.cli.options import AskedPath, across_jobs_option, complete_result

if TYPE_CHECKING:
    from leadline.verdict.model import Comparison


@click.command(short_help="Compare two results, cell by cell")
@click.argument("base", type=AskedPath(), shell_complete=complete_result)
@click.argument("other", type=AskedPath(), shell_complete=complete_result)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="bandwidth, iops, latency_mean, latency_p99, ... Repeat for several.",
)
@click.option(
    "--margin", default="5%", show_default=True, help="Differences up to this margin count as equivalent."
)
@across_jobs_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.compare/1.")
def command(
    base: Path, other: Path, metrics: tuple[str, ...], margin: str, across_jobs: bool, as_json: bool
) -> None:
    """Compare the result OTHER (B) with BASE (A). Cells are matched by target and workload.

    Cells of one name must have run the same job, else the exit code is 2. Access methods, clients and
    releases may differ; the output names them first.

    The results are from different times, so their blocks are not paired: a confidence interval holds only if
    nothing else changed in between.
    """
    from leadline import units
    from leadline.store.reader import open_result
    from leadline.verdict.comparisons.two_results import apart_from_figures, compare_results, in_common
    from leadline.verdict.kinds import refuse_unknown

    refuse_unknown(metrics)
    sides = open_result(base), open_result(other)
    found = compare_results(*sides, metrics, units.parse_percent(margin) / 100, across_jobs=across_jobs)
    notes, shared = apart_from_figures(*sides), in_common(*sides)
    if shared:
        complain(f"a result is held against itself: {shared}")
    if as_json:
        echo_text(json.dumps(_as_json(base, other, found, notes), indent=1, allow_nan=False))
        return
    from leadline.report.renderers.terminal import print_comparisons

    for note in notes:
        echo(f"NOTE: {note}")
    print_comparisons(found, make_console())


def _as_json(
    base: Path, other: Path, found: tuple[Comparison, ...], notes: tuple[str, ...]
) -> dict[str, Any]:
    from leadline.report.renderers.show_json import comparison_to_json

    return {
        "format": "leadline.compare/1",
        "base": str(base),
        "other": str(other),
        "notes": list(notes),
        "comparisons": [comparison_to_json(comparison) for comparison in found],
    }
