"""`leadline report`: writes a report of a result to a file or standard output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.console import echo
from leadline.cli.files import write_file
from leadline.cli.gate_options import require_option, required_of
from leadline.cli.options import AskedPath, complete_result, out_option
from leadline.errors import UsageError

if TYPE_CHECKING:
    from leadline.verdict.model import Findings

PAGE = "report.html"  # where a page goes that would be printed on a terminal


@click.command(short_help="Write a report: HTML, Markdown, CSV, JSON or fio's JSON")
@click.argument("directory", type=AskedPath(), shell_complete=complete_result)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md", "csv", "json", "fio", "fio-plot", "openmetrics", "fio-job", "study"]),
    default="html",
    show_default=True,
)
@out_option(
    "The file to write (of fio-plot a directory); - is standard output.  [default: standard output; of html"
    " on a terminal DIRECTORY/report.html]",
    former=("--output",),
)
@click.option("--base", metavar="TARGET", help="Compare with this target.  [default: the first]")
@click.option("--redact", is_flag=True, help="Replace hosts, paths and command lines.")
@require_option("The report begins with them.")
def command(
    directory: Path, form: str, out: Path | None, base: str | None, redact: bool, require: tuple[str, ...]
) -> None:
    """Write a report of the result in DIRECTORY, from its files alone.

    html: one page that opens offline. fio: fio's json+ output. fio-plot: a directory for each target with a
    file for each cell, for the program fio-plot. openmetrics: for Prometheus' textfile collector. fio-job,
    study: the synthetic workload that is nearest to a trace with segments, for fio and for `leadline run`,
    and how near it is.
    """
    if form in ("fio-job", "study"):
        _write(_nearest(directory, form, redact), out)
        return
    from leadline.report import left_out, prepare, render
    from leadline.report.redact import redacted
    from leadline.store.reader import open_result, refuse_search
    from leadline.verdict.findings import build_findings

    result = open_result(directory)
    if form in ("csv", "fio", "fio-plot"):  # they are of cells alone
        refuse_search(directory, result.manifest)
    prepare(form)
    findings = build_findings(result, base=base, required=required_of(require))
    if form == "fio-plot":
        _write_each(redacted(findings) if redact else findings, out)
        return
    if form == "html" and out is None and sys.stdout.isatty():
        out = directory / PAGE
    content = render(redacted(findings) if redact else findings, form)
    _write(content, out)
    if out == directory / PAGE:
        echo(f"report: {out.resolve()}")
    if words := left_out(form):
        echo(f"leadline: {words}", err=True)


def _write_each(findings: Findings, output: Path | None) -> None:
    """A file for each cell, into a directory that is made where it is missing."""
    from leadline.report.renderers.fio import fio_files
    from leadline.store.files import MANIFEST, make_parents

    if output is None or (output / MANIFEST).exists() or (output.exists() and not output.is_dir()):
        raise UsageError("fio-plot is a directory of files", "name one that is no result: -o DIR")
    files = fio_files(findings)
    for name, text in files.items():
        try:
            make_parents(output / name)
        except OSError as error:
            raise UsageError(f"{output} cannot be made: {error.strerror}", "name another with -o") from None
        write_file(output / name, text.encode(), "-o")
    echo(f"{len(files)} file{'' if len(files) == 1 else 's'} in {output}")


def _nearest(directory: Path, form: str, redact: bool) -> str:
    """The synthetic job nearest to the first trial of a trace."""
    from leadline.store.reader import open_result
    from leadline.tracing.store import read_trace
    from leadline.workloads.replay.nearest import nearest_job, to_fio_job, to_study
    from leadline.workloads.replay.script import make_script

    result = open_result(directory)
    title = "a program" if redact else str(result.manifest.get("title") or directory.name)
    job = nearest_job(make_script(read_trace(result)))
    return to_fio_job(job, title) if form == "fio-job" else to_study(job, title)


def _write(content: str, output: Path | None) -> None:
    data = content.encode()
    if output is None or str(output) == "-":
        sys.stdout.buffer.write(data)
        return
    write_file(output, data, "-o")
