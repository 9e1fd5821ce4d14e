"""`leadline show`: a result in the terminal, or as JSON for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from leadline.cli.console import echo_text, make_console
from leadline.cli.gate_options import AskedGates, fail_if_option, require_option, required_of
from leadline.cli.options import AskedPath, complete_result
from leadline.errors import UsageError


@click.command(short_help="Show a result in the terminal, or as JSON")
@click.argument("directory", type=AskedPath(), shell_complete=complete_result)
@click.option("--all", "whole", is_flag=True, help="Show everything, not only the first screen.")
@click.option(
    "--table", "figure", metavar="METRIC", help="Show one metric of every cell, for example bandwidth."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.show/1.")
@click.option("--base", metavar="TARGET", help="Compare with this target.  [default: the first]")
@click.option("--redact", is_flag=True, help="Replace hosts, paths and command lines.")
@require_option("Exit code 4 if one is not met, 5 if one is inconclusive.")
@fail_if_option
def command(
    directory: Path,
    whole: bool,
    figure: str | None,
    as_json: bool,
    base: str | None,
    redact: bool,
    require: tuple[str, ...],
    gates: AskedGates,
) -> int:
    """Show the result in DIRECTORY on one screen: question, answer, table, doubts, next steps.

    Exit code 3: some cell is INVALID or could not be run. 4: a --fail-if is true, or a requirement
    (--require) is not met. 5: one of them is inconclusive.
    """
    if sum((whole, figure is not None, as_json)) > 1:
        raise UsageError("--all, --table and --json are three ways to print a result", "name one of them")
    from leadline.report.first_screen import show_figure, show_screen
    from leadline.store.reader import open_result, refuse_search

    result = open_result(directory)  # what is none is said before all that judges is loaded
    if figure is not None or gates.gates:
        refuse_search(directory, result.manifest)
    from leadline.verdict.findings import build_findings

    explained = whole or as_json  # the first screen has nothing of it, and is to be quick
    required = required_of(require)
    findings = build_findings(result, with_charts=False, base=base, explained=explained, required=required)
    held = findings.required if required is not None else ()  # those of the run were its own to conclude by
    outcomes = gates.judge(findings)
    place = None if redact else directory
    if redact:
        from leadline.report.redact import redacted

        findings = redacted(findings)
    if as_json:
        from leadline.report.renderers.show_json import to_json

        extra = {"gates": [asdict(outcome) for outcome in outcomes]} if outcomes else {}
        echo_text(json.dumps(to_json(findings) | extra, indent=1, allow_nan=False))
    elif figure is not None:
        show_figure(findings, figure, make_console())
    elif whole or not show_screen(findings, make_console(), place):
        from leadline.report.renderers.terminal import show

        show(findings, make_console(), whole=whole, path=place)
    return gates.conclude(outcomes, findings.state, held)
