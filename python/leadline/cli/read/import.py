"""`leadline import KIND SOURCE`: brings in what was not measured here."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import complain, echo
from leadline.cli.options import AskedOrAddress, AskedPath, WrittenPath, out_option, place_for
from leadline.units import quoted

if TYPE_CHECKING:
    from leadline.published.document import Published
    from leadline.tracing.tables import TraceTables


@click.group(
    short_help="Import results of fio, elbencho and IO500, Darshan and strace logs, published tables"
)
def command() -> None:
    """Import results, logs and tables that leadline did not measure."""


@command.command("published", short_help="Published tables of a document, as YAML")
@click.argument("source", type=AskedPath(), metavar="FILE")
@out_option("Directory of the result.", required=True)
def published(source: Path, out: Path) -> None:
    """Import a document's published tables from FILE (format leadline.published/1).

    Values that follow from others are recomputed; `leadline show` lists contradictions. See
    docs/published.md.
    """
    from leadline._core import version
    from leadline.published.document import read_published
    from leadline.published.findings import published_findings
    from leadline.published.store import read_source, write_published
    from leadline.store.reader import open_result

    text = read_source(source)
    document = read_published(text, str(source))
    _check_formulas(document)
    details = {"created": datetime.now(UTC).isoformat(timespec="seconds"), "version": version()}
    write_published(out, text, document, details, time.time_ns)
    findings = published_findings(open_result(out))
    echo(findings.statements[0].text)
    echo(f"result: {out.resolve()}; read it with: leadline show {quoted(out)}")


@command.command("result", short_help="leadline results of other machines, as checked copies")
@click.argument("source", type=AskedPath(exists=True, file_okay=False), metavar="DIR")
@out_option(
    "The directory to copy to.",
    former=("--into",),
    path=WrittenPath(file_okay=False),
    default=".",
    show_default=True,
)
def result(source: Path, out: Path) -> int:
    """Copy the result in DIR, or every result below it.

    Each result is read completely first. Damaged and newer results are refused, existing ones are skipped,
    and nothing is overwritten. The exit code is 1 if a result was refused.
    """
    from leadline.cli.main import EXIT_FAILED, EXIT_GOOD
    from leadline.cli.read.indexes import enters
    from leadline.errors import ResultError
    from leadline.store.index import write_index
    from leadline.store.merge import merge
    from leadline.verdict.summary import summarise

    unjudged: list[ResultError] = []

    def done(path: Path, place: Path | None, why: str) -> None:
        if place is None:
            echo(f"{path} {why}", err=True)
            return
        echo(f"{path} -> {place}")
        try:
            rows = summarise(place)
        except ResultError as error:
            unjudged.append(error)
            complain(error.message)
            return
        if rows:
            write_index(place, rows)

    copied, present, refused = merge(source, out, done, enters)
    if not copied and not present and not refused:
        raise ResultError(f"there is no result at or below {source}", "name what `leadline run --out` wrote")
    echo(f"{copied} copied, {present} there already, {refused} refused")
    return EXIT_FAILED if refused or unjudged else EXIT_GOOD


@command.command("opencast", short_help="Workflows of an Opencast media platform, with their times")
@click.argument("source", type=AskedOrAddress(), metavar="SOURCE")
@out_option("Directory of the result.", required=True)
@click.option(
    "--since-change",
    metavar="DATE",
    help="Compare workflows before and after this time, for example 2026-01-31T12:00:00Z.",
)
@click.option("--size", metavar="SIZE", help="Size of each film whose size the platform does not report.")
@click.option("--timeout", metavar="TIME", default="30s", show_default=True, help="Timeout of a request.")
@click.option(
    "--retries", type=click.IntRange(0, 10), default=3, show_default=True, help="Retries of a request."
)
def opencast(
    source: str, out: Path, since_change: str | None, size: str | None, timeout: str, retries: int
) -> None:
    """Import Opencast workflows from SOURCE, a file or an address.

    /api/workflows/ID, /api/workflows (all pages), /workflow/instance/ID.json or .xml. A user and password are
    taken from LEADLINE_OPENCAST_USER and LEADLINE_OPENCAST_PASSWORD, or from netrc. See
    docs/import-opencast.md.
    """
    from leadline.cli.read.import_opencast import import_opencast

    import_opencast(source, out, since_change, size, timeout, retries)


@command.command("fio", short_help="fio results, JSON")
@click.argument("sources", type=AskedPath(), nargs=-1, required=True, metavar="FILE...")
@out_option("Directory of the result.", required=True)
@click.option("--target", metavar="NAME", default="imported", show_default=True, help="Name of the target.")
def fio(sources: tuple[Path, ...], out: Path, target: str) -> None:
    """Import results that fio wrote with --output-format=json or json+, also in client/server mode.

    Each job is a cell, with its clones and hosts summed; each FILE is a block. With json+, latencies come
    from fio's bins. --target NAME lets `leadline compare` match a result of that target. See docs/fio-
    results.md.
    """
    from leadline.cli.read.import_fio import import_fio

    import_fio(sources, out, target)


_LINK = click.option("--link", metavar="RATE", help="Rate of the links in between, for example '100 Gb/s'.")


@command.command("elbencho", short_help="elbencho results, CSV or JSON")
@click.argument("source", type=AskedPath(), metavar="FILE")
@out_option("Directory of the result.", required=True)
@_LINK
def elbencho(source: Path, out: Path, link: str | None) -> None:
    """Import results that elbencho wrote with --csvfile or --jsonfile. Values that cannot be right are named.

    See docs/import-benchmarks.md.
    """
    from leadline.cli.read.import_benchmarks import import_benchmark

    import_benchmark("elbencho", source, out, link)


@command.command("io500", short_help="The summary of an IO500 run")
@click.argument("source", type=AskedPath(), metavar="DIR")
@out_option("Directory of the result.", required=True)
@_LINK
def io500(source: Path, out: Path, link: str | None) -> None:
    """Import result_summary.txt (DIR, or the file itself). Its scores are recomputed.

    See docs/import-benchmarks.md.
    """
    from leadline.cli.read.import_benchmarks import import_benchmark

    import_benchmark("io500", source, out, link)


_OUT = out_option("Directory of the result.  [default: leadline-trace-TIME]")


@command.command("darshan", short_help="Darshan logs, as a trace")
@click.argument("sources", type=AskedPath(), nargs=-1, required=True, metavar="LOG...")
@_OUT
def darshan(sources: tuple[Path, ...], out: Path | None) -> None:
    """Import Darshan logs as a trace: POSIX, STDIO, MPI-IO, heat maps, and DXT as segments.

    Several logs are one trial: copies of a command, or processes of one run. Needs PyDarshan
    (leadline[darshan]). See docs/import-traces.md.
    """
    from leadline.tracing.sources.darshan_tables import read_darshan

    _store_trace(read_darshan(sources), sources, "darshan", out)


@command.command("strace", short_help="A strace log, as a trace")
@click.argument("source", type=AskedPath(), metavar="FILE")
@_OUT
def strace(source: Path, out: Path | None) -> None:
    """Import a log of `strace -f -ttt -T -y -o FILE COMMAND` as a trace.

    With -ff, strace writes FILE.PID: name FILE. Values that the log lacks are reported as unknown, never as
    0. See docs/import-traces.md.
    """
    from leadline.tracing.sources.strace import read_strace

    _store_trace(read_strace(source), (source,), "strace", out)


def _store_trace(tables: TraceTables, sources: tuple[Path, ...], kind: str, out: Path | None) -> None:
    """Make the result, then say first what its source did not keep."""
    from leadline._core import version
    from leadline.report.format import printable
    from leadline.tracing.lives import by_life
    from leadline.tracing.store import create_trace_result

    path = place_for(out, "trace")
    details: dict[str, Any] = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": version(),
        "imported": {"kind": kind, "files": [source.name for source in sources]},
    }
    title = f"{kind}: {', '.join(source.name for source in sources)}"
    create_trace_result(path, {"t0001": tables}, title=title, details=details, now_ns=time.time_ns)
    for warning in (*tables.warnings, *tables.extra.get("time_doubts", ())):
        echo(f"NOTE: {warning}", err=True)
    echo(printable(f"{tables.source}: {len(by_life(tables.processes)):,} processes"))
    echo(f"result: {path.resolve()}; read it with: leadline show {quoted(path)}")


def _check_formulas(document: Published) -> None:
    """A formula that cannot be evaluated is an error of the import, not of every report afterwards."""
    from leadline.published.checks import tested
    from leadline.published.claims import judge_claims

    tested(document)
    judge_claims(document, ())
