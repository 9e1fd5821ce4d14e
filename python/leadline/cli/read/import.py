"""`leadline import KIND SOURCE`: brings in what was not measured here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import complain, echo
from leadline.cli.options import AskedOrAddress, AskedPath, WrittenPath, out_option, place_for
from leadline.errors import UsageError
from leadline.units import quoted

if TYPE_CHECKING:
    from leadline.published.document import Published
    from leadline.tracing.tables import TraceTables
    from leadline.workflows.reading import Workflow


@click.group(short_help="Import results of fio, elbencho and IO500, logs of other tracers, published tables")
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
    from leadline.published.document import read_published, read_source, write_published
    from leadline.published.findings import published_findings
    from leadline.store.reader import open_result

    text = read_source(source)
    document = read_published(text, str(source))
    _check_formulas(document)
    details = {"created": _now(), "version": version()}
    write_published(out, text, document, details, time.time_ns)
    findings = published_findings(open_result(out))
    echo(findings.statements[0].text)
    _say_place(out)


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
    from leadline import units
    from leadline._core import version
    from leadline.store.reader import open_result
    from leadline.workflows.findings import workflow_findings
    from leadline.workflows.reading import parse_moment, write_workflows

    _refuse_existing(out)
    change_ns = None if since_change is None else parse_moment(since_change, "--since-change")
    given_bytes = None if size is None else units.parse_size(size)
    timeout_s = units.parse_duration(timeout) / 1e9
    if timeout_s <= 0:
        raise UsageError(f"--timeout {timeout}: no time at all", "write for example: --timeout 30s")
    found = _unique([one for answer in _answers(source, timeout_s, retries) for one in answer])
    if not found:
        raise UsageError(f"{source} has no workflow", "ask for others")
    if given_bytes:
        found = [one if one.bytes else replace(one, bytes=given_bytes) for one in found]
    details = {
        "title": f"Opencast: {len(found)} workflow{'' if len(found) == 1 else 's'}",
        "created": _now(),
        "version": version(),
        "imported": {"kind": "opencast", "source": source},
        "since_change_ns": change_ns,
    }
    write_workflows(out, found, details, time.time_ns)
    findings = workflow_findings(open_result(out))
    for one in findings.statements:
        if one.tone == "headline" or one.says in ("workflows_changed", "workflows_on_one_side"):
            echo(one.text)
    _say_place(out)


def _answers(source: str, timeout_s: float, retries: int) -> Iterator[Sequence[Workflow]]:
    from leadline.observe.host.platform import Patience, fetch_all
    from leadline.workflows.reading import read_workflows

    if "://" in source:
        for address, text in fetch_all(source, os.environ, Patience(timeout_s, retries)):
            yield read_workflows(text, address)
    else:
        yield read_workflows(_read(Path(source)), source)


def _read(path: Path) -> str:
    from leadline.observe.host.platform import ANSWER_BYTES_MAX

    try:
        with path.open("rb") as file:
            data = file.read(ANSWER_BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "name a file, or an address") from None
    if len(data) > ANSWER_BYTES_MAX:
        raise UsageError(f"{path} is larger than {ANSWER_BYTES_MAX >> 20} MiB", "split it")
    return data.decode("utf-8", "replace")


def _unique(found: Sequence[Workflow]) -> list[Workflow]:
    """Pages shift while a platform works: a workflow that was met twice counts once, as it was met last."""
    return list({one.id: one for one in found}.values())


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
    from leadline._core import version
    from leadline.foreign import foreign_text, read_plain, reading
    from leadline.imported.fio import BYTES_MAX, read_fio
    from leadline.imported.fio_jobs import fio_cells
    from leadline.imported.made import source_of, write_imported
    from leadline.report.format import printable
    from leadline.study.target import check_name

    check_name(target)
    _refuse_existing(out)
    reports, texts = [], {}
    for place, path in enumerate(sources, start=1):
        with reading(path, "write it with: fio --output-format=json+ --output=FILE", UsageError):
            text = foreign_text(read_plain(path, BYTES_MAX))
            reports.append(read_fio(text))
        texts[f"{path.name}" if path.name not in texts else f"{path.name} ({place})"] = text
    with reading(sources[0], "import files of the same job file", UsageError):
        cells = fio_cells(reports)
    source = source_of("fio", reports[0].version, texts)
    created = _now()
    write_imported(out, source, cells, target, {"created": created, "version": version()}, time.time_ns)
    notes = dict.fromkeys(note for cell in cells for trial in cell.trials for note in trial.said["notes"])
    for note in notes:
        echo(printable(f"NOTE: {note}"), err=True)
    jobs = f"{len(cells)} job{'' if len(cells) == 1 else 's'}"
    files = f"{len(reports)} block{'' if len(reports) == 1 else 's'}"
    echo(printable(f"{source.version}: {jobs} in {files}"))
    _say_place(out)


_LINK = click.option("--link", metavar="RATE", help="Rate of the links in between, for example '100 Gb/s'.")


@command.command("elbencho", short_help="elbencho results, CSV or JSON")
@click.argument("source", type=AskedPath(), metavar="FILE")
@out_option("Directory of the result.", required=True)
@_LINK
def elbencho(source: Path, out: Path, link: str | None) -> None:
    """Import results that elbencho wrote with --csvfile or --jsonfile. Values that cannot be right are named.

    See docs/import-benchmarks.md.
    """
    _import_benchmark("elbencho", source, out, link)


@command.command("io500", short_help="The summary of an IO500 run")
@click.argument("source", type=AskedPath(), metavar="DIR")
@out_option("Directory of the result.", required=True)
@_LINK
def io500(source: Path, out: Path, link: str | None) -> None:
    """Import result_summary.txt (DIR, or the file itself). Its scores are recomputed.

    See docs/import-benchmarks.md.
    """
    _import_benchmark("io500", source, out, link)


def _import_benchmark(program: str, source: Path, out: Path, link: str | None) -> None:
    """A file's figures as a result of published ones; then what does not agree."""
    from leadline._core import version
    from leadline.foreign import foreign_text, read_plain, reading
    from leadline.published.checks import tested
    from leadline.published.document import read_published, write_published
    from leadline.published.findings import published_findings
    from leadline.report.format import printable
    from leadline.store.reader import open_result

    _refuse_existing(out)
    file, bytes_max, make = _reader(program, source)
    with reading(file, f"name what {program} wrote", UsageError):
        text = make(foreign_text(read_plain(file, bytes_max)), source.name, link)
        document = read_published(text, str(file))
        doubts = [one.doubt for one in tested(document) if one.doubt]
    details: dict[str, Any] = {
        "created": _now(),
        "version": version(),
        "imported": {"kind": program, "files": [source.name]},
    }
    write_published(out, text, document, details, time.time_ns)
    for doubt in doubts:
        echo(printable(f"DOUBTFUL: {doubt.text}"), err=True)
    echo(published_findings(open_result(out)).statements[0].text)
    _say_place(out)


def _reader(program: str, source: Path) -> tuple[Path, int, Callable[[str, str, str | None], str]]:
    from leadline.imported import elbencho, io500

    if program == "io500":
        file = source / io500.SUMMARY if source.is_dir() else source
        # A directory may have summaries of several runs, whose names have the time; logs are of one of them.
        logs = io500.read_logs(file.parent) if file.name == io500.SUMMARY else {}
        return file, io500.BYTES_MAX, lambda text, name, rate: io500.io500_document(text, name, rate, logs)
    return source, elbencho.BYTES_MAX, elbencho.elbencho_document


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


@command.command("agent", short_help="Logs of `leadline-agent trace`, as a trace")
@click.argument("source", type=AskedPath(), metavar="DIR")
@_OUT
def agent(source: Path, out: Path | None) -> None:
    """Import what `leadline-agent trace --out DIR -- COMMAND` recorded on a host without leadline.

    The result has what `leadline trace` stores by its preloaded library.
    """
    from leadline.tracing.sources.launch import read_agent_logs

    _store_trace(read_agent_logs(source), (source,), "leadline-agent", out)


def _store_trace(tables: TraceTables, sources: tuple[Path, ...], kind: str, out: Path | None) -> None:
    """Make the result, then say first what its source did not keep."""
    from leadline._core import version
    from leadline.report.format import printable
    from leadline.tracing.store import create_trace_result
    from leadline.tracing.tables import by_life

    path = place_for(out, "trace")
    details: dict[str, Any] = {
        "created": _now(),
        "version": version(),
        "imported": {"kind": kind, "files": [source.name for source in sources]},
    }
    title = f"{kind}: {', '.join(source.name for source in sources)}"
    create_trace_result(path, {"t0001": tables}, title=title, details=details, now_ns=time.time_ns)
    for warning in (*tables.warnings, *tables.extra.get("time_doubts", ())):
        echo(f"NOTE: {warning}", err=True)
    echo(printable(f"{tables.source}: {len(by_life(tables.processes)):,} processes"))
    _say_place(path)


def _check_formulas(document: Published) -> None:
    """A formula that cannot be evaluated is an error of the import, not of every report afterwards."""
    from leadline.published.checks import tested
    from leadline.published.claims import judge_claims

    tested(document)
    judge_claims(document, ())


def _refuse_existing(out: Path) -> None:
    if out.exists():
        raise UsageError(f"{out} exists already", "name another --out")


def _say_place(out: Path) -> None:
    echo(f"result: {out.resolve()}; read it with: leadline show {quoted(out)}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
