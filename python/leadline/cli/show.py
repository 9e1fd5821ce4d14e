"""`leadline show`: a result in the terminal, or as JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from leadline.cli.console import make_console
from leadline.cli.main import EXIT_GOOD, EXIT_INVALID


@click.command(short_help="Print a result in the terminal, or as JSON")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.show/1.")
@click.option("--base", metavar="TARGET", help="Compare with this target.  [default: the first]")
@click.option("--redact", is_flag=True, help="Replace hosts, paths and command lines.")
def command(directory: Path, as_json: bool, base: str | None, redact: bool) -> int:
    """Print what the result in DIRECTORY says: verdicts, figures with intervals, validity.

    The exit code is 3 when some cell is INVALID or could not be run.
    """
    from leadline.report.redact import redacted
    from leadline.report.show_json import to_json
    from leadline.report.terminal import show
    from leadline.store.reader import open_result
    from leadline.verdict.findings import build_findings

    findings = build_findings(open_result(directory), with_charts=False, base=base)
    if redact:
        findings = redacted(findings)
    if as_json:
        click.echo(json.dumps(to_json(findings), indent=1, allow_nan=False))
    else:
        show(findings, make_console())
    return EXIT_INVALID if findings.state in ("INVALID", "NOT_RUN") else EXIT_GOOD
