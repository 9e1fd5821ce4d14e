"""`leadline report`: writes a report of a result to a file or standard output."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from leadline.errors import UsageError


@click.command(short_help="Write a report: HTML, Markdown, CSV, JSON or fio's JSON")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md", "csv", "json", "fio"]),
    default="html",
    show_default=True,
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The file to write; - or nothing: standard output.",
)
@click.option("--base", metavar="TARGET", help="Compare with this target.  [default: the first]")
@click.option("--redact", is_flag=True, help="Replace hosts, paths and command lines.")
def command(directory: Path, form: str, output: Path | None, base: str | None, redact: bool) -> None:
    """Write a report of the result in DIRECTORY, from nothing but its files.

    html is one page that opens offline, fio is compatible with fio's json+ output.
    """
    from leadline.report import render
    from leadline.report.redact import redacted
    from leadline.store.reader import open_result
    from leadline.verdict.findings import build_findings

    findings = build_findings(open_result(directory), base=base)
    content = render(redacted(findings) if redact else findings, form)
    data = content.encode() if isinstance(content, str) else content
    if output is None or str(output) == "-":
        sys.stdout.buffer.write(data)
        return
    _write(output, data)


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all: a full disk must not leave half a report where a good one was."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UsageError(f"{path} cannot be written: {error.strerror}", "name another file with -o") from None
