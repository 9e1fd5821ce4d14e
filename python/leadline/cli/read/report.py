"""`leadline report`: writes a report of a result to a file or standard output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.console import echo
from leadline.cli.files import write_file
from leadline.cli.gate_options import require_option, required_of
from leadline.cli.options import AskedPath, across_jobs_option, complete_result, out_option
from leadline.errors import UsageError

if TYPE_CHECKING:
    from leadline.verdict.model import Findings

_MARGIN = 0.05  # as of `leadline compare`
PAGE = "report.html"  # where a page goes that would be printed on a terminal


@click.command(short_help="Write a report: HTML, Markdown, CSV, JSON or fio's JSON")
@click.argument(
    "directories",
    metavar="DIRECTORY...",
    type=AskedPath(),
    nargs=-1,
    required=True,
    shell_complete=complete_result,
)
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
@across_jobs_option
def command(
    directories: tuple[Path, ...],
    form: str,
    out: Path | None,
    base: str | None,
    redact: bool,
    require: tuple[str, ...],
    across_jobs: bool,
) -> None:
    """Write a report of the result in DIRECTORY, from its files alone.

    Of several results, one page draws their values over each other and compares each with the first.

    html: one page that opens offline. fio: fio's json+ output. fio-plot: a directory for each target with a
    file for each cell, for the program fio-plot. openmetrics: for Prometheus' textfile collector. fio-job,
    study: the synthetic workload that is nearest to a trace with segments, for fio and for `leadline run`,
    and how near it is.
    """
    if len(directories) > 1:
        refused = {"--format": form != "html", "--base": base is not None, "--require": bool(require)}
        _overlay(directories, out, [one for one, given in refused.items() if given], redact, across_jobs)
        return
    (directory,) = directories
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


def _overlay(
    directories: tuple[Path, ...], out: Path | None, refused: list[str], redact: bool, across_jobs: bool
) -> None:
    """One page of several results."""
    from leadline.report import left_out, prepare, render
    from leadline.report.redact import redacted
    from leadline.store.reader import open_result
    from leadline.verdict.overlay import overlay_of

    if refused:
        raise UsageError(
            f"{refused[0]} is for one result, and {len(directories)} are named",
            "name one directory, or leave the option out",
        )
    if out is None and sys.stdout.isatty():
        raise UsageError("a page of several results has no place of its own", "name a file: -o PAGE.html")
    results = [open_result(one) for one in directories]
    prepare("html")
    findings = overlay_of(results, _MARGIN, across_jobs=across_jobs)
    _write(render(redacted(findings) if redact else findings, "html"), out)
    if words := left_out("html"):
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
