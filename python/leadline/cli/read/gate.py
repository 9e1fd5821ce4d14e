"""`leadline gate`: a site's own regression check, for continuous integration."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import echo_text, make_console
from leadline.cli.files import write_file
from leadline.cli.gate_options import allow_undecided_option
from leadline.cli.main import EXIT_GATE, EXIT_GOOD, EXIT_INVALID, EXIT_UNDECIDED
from leadline.cli.options import AskedPath, WrittenPath, across_jobs_option, complete_result

if TYPE_CHECKING:
    from leadline.verdict.model import Regression

_STYLES = {"holds": "green", "lost": "red", "undecided": "yellow", "invalid": "bold red", "missing": "red"}


@click.command(short_help="Fail if a result is worse than a baseline by more than is allowed")
@click.argument("new", type=AskedPath(), shell_complete=complete_result)
@click.option(
    "--baseline", type=AskedPath(), metavar="DIR", required=True, help="The result to compare with."
)
@click.option("--allow", default="5%", show_default=True, help="The allowed loss.")
@click.option("--metric", "metrics", multiple=True, help="Metric to check.  [default: as `compare`]")
@allow_undecided_option
@across_jobs_option
@click.option("--junit", type=WrittenPath(), metavar="FILE", help="Write JUnit XML.")
@click.option("--openmetrics", type=WrittenPath(), metavar="FILE", help="Write OpenMetrics text.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.gate/1.")
def command(
    new: Path,
    baseline: Path,
    allow: str,
    metrics: tuple[str, ...],
    allow_undecided: bool,
    across_jobs: bool,
    junit: Path | None,
    openmetrics: Path | None,
    as_json: bool,
) -> int:
    """Check the result NEW against a baseline, cell by cell.

    Exit code 4: a cell is missing in NEW, or its whole 95 % confidence interval is a loss larger than
    allowed. 3: a cell is INVALID. 5: a check is inconclusive; --allow-inconclusive makes that a pass. 2: NEW
    is the baseline or its copy, or cells of one name ran different jobs; nothing is checked then.
    """
    from leadline import units
    from leadline.store.reader import open_result
    from leadline.verdict.comparisons.two_results import check_regression
    from leadline.verdict.kinds import refuse_unknown

    refuse_unknown(metrics)
    allowed = units.parse_percent(allow) / 100
    sides = open_result(baseline), open_result(new)
    found = check_regression(*sides, metrics, allowed, across_jobs=across_jobs)
    if junit is not None:
        from leadline.report.renderers.exchange import to_junit

        write_file(junit, to_junit(found, allow_undecided=allow_undecided).encode(), "--junit")
    if openmetrics is not None:
        from leadline.report.renderers.exchange import regression_openmetrics

        write_file(openmetrics, regression_openmetrics(found).encode(), "--openmetrics")
    code = _code(found, allow_undecided=allow_undecided)
    if as_json:
        echo_text(json.dumps(_as_json(found, code), indent=1, allow_nan=False))
    else:
        _print(found)
    return code


def _code(found: Regression, *, allow_undecided: bool) -> int:
    if found.count("lost", "missing"):
        return EXIT_GATE
    if found.count("invalid"):
        return EXIT_INVALID
    return EXIT_UNDECIDED if found.count("undecided") and not allow_undecided else EXIT_GOOD


def _as_json(found: Regression, code: int) -> dict[str, Any]:
    from leadline.report.renderers.show_json import plain

    checks = [{name: plain(value) for name, value in asdict(check).items()} for check in found.checks]
    return {
        "format": "leadline.gate/1",
        "baseline": found.baseline,
        "new": found.new,
        "allow": found.allow,
        "exit_code": code,
        "notes": list(found.notes),
        "checks": checks,
    }


def _print(found: Regression) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from leadline.report.format import printable
    from leadline.verdict.model import outcome_words

    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for heading in ("cell", "metric", "check", "change against the baseline"):
        table.add_column(heading, overflow="fold")
    for check in found.checks:
        passed = Text(outcome_words(check.passed), style=_STYLES[check.passed])
        table.add_row(Text(printable(check.name)), Text(check.metric), passed, Text(printable(check.words)))
    console = make_console()
    for note in found.notes:
        console.print(Text(printable(f"NOTE: {note}")))
    console.print(table)
    counts = Counter(check.passed for check in found.checks)
    tally = ", ".join(f"{count} {outcome_words(kind)}" for kind, count in counts.items())
    console.print(f"{tally}; {found.allow:.1%} of loss is allowed", markup=False)
    console.print(
        "measured at different times: holds only as far as nothing else changed in between", markup=False
    )
