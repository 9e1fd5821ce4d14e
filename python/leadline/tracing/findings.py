"""From a stored trace to findings: what was lost first, then where the time went and what to change.

Two traces are compared by figures and ratios without verdicts, since one trial of each has no interval.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline import units
from leadline.analysis.metrics import PROGRAM_METRICS, merged_distribution
from leadline.errors import ResultError, UsageError
from leadline.foreign import UNTOUCHED, reading
from leadline.store.reader import Result
from leadline.tracing import messages as trace_texts
from leadline.tracing.figures import (
    NO_CPU_TIME,
    OVERLAPPED,
    UNSEEN,
    Share,
    Shares,
    copy_seconds,
    shares,
    speeds,
    unseen,
    unseen_words,
    wall_seconds,
)
from leadline.tracing.files import FileCost, FileTally, access_sizes, calls_of, files_by_cost, tally, views
from leadline.tracing.mapped import Mapped, faults_major, mapped_files, mapped_size
from leadline.tracing.messages import cost_words, said, statements
from leadline.tracing.model import RuleUnasked, TraceCopy, TraceFinding, TraceProcess, TraceView
from leadline.tracing.rules import apply, rules, unasked
from leadline.tracing.sections import trace_answer, trace_frame, trace_sections
from leadline.tracing.slowest import slowest_process
from leadline.tracing.store import (
    TracedProgram,
    differences,
    has_segments,
    read_processes,
    read_trace_without_segments,
    segment_batches,
    stored_program,
    traced_trials,
)
from leadline.tracing.tables import (
    ALL_RANKS,
    KINDS,
    ProcessRow,
    TraceTables,
    by_life,
    command_list,
    command_words,
    lives,
)
from leadline.tracing.times import COLUMNS, OverTime, over_time, over_time_of_heat
from leadline.verdict.certainty import weighed
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import Cell, Code, Comparison, Curve, Findings, Quantity, Validity, worst
from leadline.verdict.private import ARGUMENT, COMMAND, FILE, PATH, private_texts

_DONE = {"read": "reading", "write": "writing", "meta": "metadata", "sync": "syncs"}


@dataclass(frozen=True)
class TraceCause:
    """A rule that held. `share` is the most of the run that it costs, None where the trace has no times."""

    finding: TraceFinding
    share: float | None
    words: str

    @property
    def evidence(self) -> str:
        """The costliest places."""
        return "; ".join(self.finding.examples)


@dataclass(frozen=True)
class TraceDiagnosed:
    """One trial of a trace. `open` are rules that no record could answer, `uses` the shares of the time.

    `outcome` is `named`, `nothing` (every rule was asked, or said why not, and none holds) or `unusable`.
    """

    cell: Cell
    outcome: str
    named: tuple[TraceCause, ...] = ()
    behind: tuple[TraceCause, ...] = ()
    open: tuple[RuleUnasked, ...] = ()
    uses: tuple[tuple[str, float | None], ...] = ()
    notes: tuple[str, ...] = ()


def diagnose_trace(result: Result) -> tuple[TraceDiagnosed, ...]:
    """Each trial of a trace, imported ones too. Segments and histograms are not read."""
    with reading(result.path, UNTOUCHED):
        views, cells = trace_cells(result, with_charts=False)
        return tuple(_diagnosed(view, cell) for view, cell in zip(views, cells, strict=True))


def _diagnosed(view: TraceView, cell: Cell) -> TraceDiagnosed:
    cautions = tuple(one.text for one in statements(view, cell.id) if one.tone == "caution")
    if not view.processes:
        return TraceDiagnosed(cell, "unusable", notes=cautions)
    first = said(view)
    return TraceDiagnosed(
        cell,
        "named" if first else "nothing",
        tuple(_cause(item, view) for item in first),
        tuple(_cause(item, view) for item in view.findings if item not in first),
        view.unasked,
        (
            *((_DONE[kind], getattr(view.whole, kind)) for kind in KINDS),
            ("computing", view.whole.compute),
            ("waiting", view.whole.wait),
        ),
        cautions,
    )


def _cause(item: TraceFinding, view: TraceView) -> TraceCause:
    return TraceCause(item, _share(item, view), cost_words(item, view))


def _share(item: TraceFinding, view: TraceView) -> float | None:
    """Of the run where its length is known, else of all process time."""
    if item.cost_s is None:
        return None
    runs = [copy.run_s for copy in view.copies if copy.run_s is not None]
    run_s = max(runs, default=view.speeds.wall_s or 0.0)
    if item.saves_s is not None and run_s > 0:
        return min(item.saves_s / run_s, 1.0)
    return min(item.cost_s / view.whole.base_s, 1.0) if view.whole.base_s > 0 else None


_ALONE = "one trial of each: a ratio without a CI, so there is no verdict"


def compare_traces(
    base: Result, other: Result, metrics: Sequence[str], margin: float
) -> tuple[Comparison, ...]:
    """The figures of `other` against those of `base`, trial by trial in their order."""
    sides = [trace_findings(result, with_charts=False).cells for result in (base, other)]
    return tuple(
        _compare(first, second, metric, margin)
        for first, second in zip(*sides, strict=False)
        for metric in (metrics or tuple(first.metrics))
        if metric in first.metrics and metric in second.metrics
    )


def _compare(first: Cell, second: Cell, metric: str, margin: float) -> Comparison:
    before, after = first.metrics[metric].value, second.metrics[metric].value
    work = first.work if first.work == second.work else f"{first.work}, {second.work}"
    return Comparison(
        work=work,
        metric=metric,
        base=f"A:{first.target}",
        other=f"B:{second.target}",
        ratio=after / before if before and after is not None else None,
        low=None,
        high=None,
        blocks=1,
        verdict="undecided",
        margin=margin,
        assumption=_ALONE,
        validity=worst([first.validity.state, second.validity.state]),
        values=(first.metrics[metric], second.metrics[metric]),
    )


def different_programs(base: Result, other: Result) -> tuple[str, ...]:
    """What the reader must know before any ratio: that they are not of one program, or that nobody knows."""
    return tuple(differences(_program(base), _program(other)))


def _program(result: Result) -> TracedProgram:
    """What its first process became."""
    trials = traced_trials(result)
    rows = read_processes(result, trials[0]) if trials else ()
    whole = by_life(rows)[:1]
    return stored_program(result.manifest, command_list(whole[0][-1].command) if whole else ())


FILES_SHOWN = 100
ROWS_OF_HEAT = 24  # processes that get a row of their own in the heat maps
TARGET = "trace"


def trace_views(result: Result, *, with_charts: bool = True) -> tuple[TraceView, ...]:
    """What each trial's trace says, trial by trial."""
    return tuple(view for view, _ in _read(result, with_charts))


def _read(result: Result, with_charts: bool) -> list[tuple[TraceView, TraceTables]]:
    trials = traced_trials(result)
    if not trials:
        raise ResultError(f"{result.path} has no trace that was stored whole", "trace the command again")
    found = []
    for trial in trials:
        tables = read_trace_without_segments(result, trial)
        found.append((_view(result, trial, tables, with_charts), tables))
    return found


def trace_cells(result: Result, *, with_charts: bool) -> tuple[tuple[TraceView, ...], tuple[Cell, ...]]:
    """What each trial's trace says, and its cell with what casts doubt on it."""
    read = _read(result, with_charts)
    title = str(result.manifest.get("title", "trace"))
    works = [title if len(read) == 1 else f"{title}.{view.trial}" for view, _ in read]
    cells = (_cell(work, view, tables, with_charts) for work, (view, tables) in zip(works, read, strict=True))
    return tuple(view for view, _ in read), tuple(cells)


def trace_findings(result: Result, *, with_charts: bool = True, base: str | None = None) -> Findings:
    """Everything that can be said of a trace. Without charts segments and histograms are not read."""
    if base is not None:
        raise UsageError("a trace has no base to compare with", "use: leadline compare A B")
    title = str(result.manifest.get("title", "trace"))
    views, cells = trace_cells(result, with_charts=with_charts)
    said = (
        one for view, cell in zip(views, cells, strict=True) for one in trace_texts.statements(view, cell.id)
    )
    statements, frame = weighed(said, cells), trace_frame(views, cells)
    about = _about(result.manifest)
    return Findings(
        id=str(result.manifest["id"]),
        kind=str(result.manifest["kind"]),
        title=title,
        about=about,
        created=str(result.manifest.get("created", "")),
        state=worst([cell.validity.state for cell in cells]),
        targets=(),
        cells=cells,
        comparisons=(),
        statements=statements,
        host={str(k): str(v) for k, v in (result.manifest.get("host") or {}).items()},
        reproduce=_reproduce(result.manifest),
        version=str(result.manifest.get("version", "")),
        complete=result.complete,
        sections=trace_sections(views, cells),
        frame=frame,
        answer=trace_answer(
            views,
            cells,
            statements,
            about or _command(views) or title.partition(": ")[2] or title,
            frame.steps[:-1],
        ),
        private={**private_texts(result.manifest), **dict(_private(views))},
    )


# What a note names; all before it is our own words.
_NAMED = re.compile(r"(?:(?:static|setuid) child |.*: )(.+)", re.DOTALL)


def _private(views: Sequence[TraceView]) -> Iterator[tuple[str, str]]:
    """What a trace holds of the site besides its manifest."""
    for view in views:
        yield from ((text, FILE) for item in view.findings for text in item.subjects)
        yield from ((item.path, FILE) for item in view.files)
        yield from ((item.path, FILE) for item in view.mapped.files)
        for note in view.notes:
            if named := _NAMED.match(note):
                yield named[1], FILE
        for process in view.processes:
            yield process.executable, PATH
            yield process.command, COMMAND
            yield from ((word, ARGUMENT) for word in _words(process.command))


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a source had only the beginning of it
        return command.split()


def _about(manifest: Mapping[str, Any]) -> str:
    program = manifest.get("program")
    return shlex.join(str(word) for word in program) if isinstance(program, list) else ""


def _command(views: Sequence[TraceView]) -> str:
    """What ran for longest, as an import knows it: of a pipeline that is the shell."""
    known = [one for view in views for one in view.processes if one.command not in ("", ALL_RANKS)]
    longest = max(known, key=lambda one: (one.ended_s or 0.0) - one.started_s, default=None)
    return "" if longest is None else longest.command


def _reproduce(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    command = manifest.get("command")
    return (shlex.join(str(word) for word in command),) if isinstance(command, list) and command else ()


def _view(result: Result, trial: str, tables: TraceTables, with_charts: bool) -> TraceView:
    wall_s = wall_seconds(tables)
    shared, speed = shares(tables, wall_s), speeds(tables, wall_s)
    counted = FileTally()
    sizes: dict[str, dict[str, int]] = {}
    files: tuple[FileCost, ...] = ()
    found: tuple[TraceFinding, ...] = ()
    lacking: tuple[RuleUnasked, ...] = ()
    mapped = Mapped()
    if tables.processes:
        with views(tables, shared, speed) as connection:
            counted, files = tally(connection), files_by_cost(connection, FILES_SHOWN)
            sizes = access_sizes(connection)
            found = apply(connection, rules())
            lacking = unasked(connection, rules(), {item.rule for item in found})
            mapped = Mapped(
                mapped_files(connection, speed.bytes_read + speed.bytes_written), faults_major(tables)
            )
    moved = _over_time(result, trial, tables, wall_s) if with_charts else None
    first = lives(tables.processes)
    return TraceView(
        trial=trial,
        mode=tables.mode,
        source=tables.source,
        warnings=tables.warnings,
        lost=_added(json.loads(row.lost or "{}") for row in tables.processes),
        notes=_noted(tables.processes),
        copies=tuple(_copies(tables, shared)),
        whole=shared.whole,
        speeds=speed,
        calls=calls_of(tables.processes),
        processes=tuple(_process(row, first[row.copy, row.process]) for row in tables.processes),
        processes_count=len(by_life(tables.processes)),
        counted=counted,
        files=files,
        sizes=sizes,
        findings=found,
        unasked=lacking,
        over_time=moved,
        timed_calls=moved.calls if moved else (),
        segments=has_segments(result, trial),
        mapped=mapped,
        run_most_s=tables.extra.get("wall_most_s"),
        call_cost_s=tables.extra.get("call_cost_s"),
        time_doubts=tuple(str(text) for text in tables.extra.get("time_doubts", ())),
        unseen=unseen(tables.processes, catalogue()["bytes_unseen"].thresholds),
        at_once=bool(tables.extra.get("at_once", True)),
        outlived=int(tables.extra.get("outlived", 0)),
        slowest=slowest_process(tables),
    )


def _over_time(result: Result, trial: str, tables: TraceTables, wall_s: float | None) -> OverTime | None:
    by_bytes = sorted(tables.processes, key=lambda row: -(row.bytes_read + row.bytes_written))
    busiest = sorted(row.process for row in by_bytes[:ROWS_OF_HEAT])
    if not has_segments(result, trial) or not wall_s:
        return over_time_of_heat(tables.extra.get("heat", ()), busiest)
    return over_time(segment_batches(result, trial, COLUMNS), wall_s, busiest)


def _added(parts: Iterator[Mapping[str, int]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for part in parts:
        for name, count in part.items():
            if count:
                totals[name] = totals.get(name, 0) + int(count)
    return totals


def _noted(rows: Sequence[ProcessRow]) -> dict[str, int]:
    """In how many processes each note stands."""
    totals: dict[str, int] = {}
    for images in by_life(rows):
        for note in dict.fromkeys(note for row in images for note in json.loads(row.notes or "[]")):
            totals[note] = totals.get(note, 0) + 1
    return totals


def _process(row: ProcessRow, life: int) -> TraceProcess:
    cpu = [part for part in (row.cpu_user_ns, row.cpu_system_ns) if part is not None]
    return TraceProcess(
        copy=row.copy,
        process=row.process,
        life=life,
        parent=row.parent,
        pid=row.pid,
        executable=row.executable,
        command=command_words(row.command),
        started_s=row.started_ns / 1e9,
        ended_s=None if row.ended_ns is None else row.ended_ns / 1e9,
        end=row.end,
        status=row.status,
        threads=row.threads,
        bytes_read=row.bytes_read,
        bytes_written=row.bytes_written,
        calls=json.loads(row.calls or "{}"),
        seconds=json.loads(row.seconds or "null") or {},
        lost=json.loads(row.lost or "{}"),
        notes=tuple(json.loads(row.notes or "[]")),
        cpu_s=sum(cpu) / 1e9 if cpu else None,
        tracer_s=None if row.tracer_ns is None else row.tracer_ns / 1e9,
    )


def _copies(tables: TraceTables, shared: Shares) -> Iterator[TraceCopy]:
    walls = copy_seconds(tables)
    known = {int(item["copy"]): item for item in tables.extra.get("copies", ())}
    nothing = Share(None, "process time", 0.0, dict.fromkeys(KINDS), None, None, None, None, None)
    by_copy = {part.copy: part for part in shared.copies}
    for copy in sorted({*known, *(c for c in by_copy if c is not None)}):
        rows = [row for row in tables.processes if row.copy == copy]
        end = known.get(copy, {})
        cpu = [end[name] for name in ("cpu_user_ns", "cpu_system_ns") if end.get(name) is not None]
        yield TraceCopy(
            copy=copy,
            run_s=walls.get(copy),
            ended=_ended(end, rows),
            share=by_copy.get(copy, nothing),
            bytes_read=sum(row.bytes_read for row in rows),
            bytes_written=sum(row.bytes_written for row in rows),
            cpu_s=sum(cpu) / 1e9 if cpu else None,
            memory_bytes_max=end.get("memory_bytes_max"),
            faults_major=end.get("faults_major"),
        )


def _ended(end: Mapping[str, Any], rows: Sequence[ProcessRow]) -> str:
    kind, status = end.get("end"), end.get("status")
    if kind is None and rows:
        kind, status = rows[0].end, rows[0].status
    if kind == "signal":
        return f"killed by signal {status}"
    return f"exit code {status}" if kind == "exit" and status is not None else str(kind or "unknown")


def _cell(work: str, view: TraceView, tables: TraceTables, with_charts: bool) -> Cell:
    codes = sorted(_codes(view), key=lambda code: code.state != "INVALID")
    validity = Validity(worst([code.state for code in codes]), tuple(codes))
    curves = tuple(_curves(tables)) if with_charts else ()
    return Cell(f"{TARGET}.{work}", TARGET, work, {}, {}, metrics_of(view), validity, curves=curves)


def _codes(view: TraceView) -> Iterator[Code]:
    kinds = catalogue()
    if not view.processes:
        why = view.warnings[0] if view.warnings else "no process was recorded"
        yield kinds["not_followed"].fire(why, of=view.mode)
        return
    if view.lost:
        parts = ", ".join(f"{n:,} {kind}" for kind, n in view.lost.items())
        words = f"dropped: {parts}; {trace_texts.lost_words(view.lost)}"
        yield kinds["events_lost"].fire(words, of=view.mode)
    if view.unseen:
        yield kinds["bytes_unseen"].fire(unseen_words(view.unseen), of=view.mode)
    blind = [trace_texts.blind_words(note, count, view.mode) for note, count in view.notes.items()]
    for text in (*view.warnings, *(words for words in blind if words)):
        yield kinds["partly_seen"].fire(text, of=view.mode)
    if view.mapped.files:
        moved = units.format_size(view.speeds.bytes_read + view.speeds.bytes_written)
        yield kinds["mapped_files"].fire(f"{mapped_size(view.mapped)} mapped; calls moved {moved}")
    for text in trace_texts.time_doubts(view):
        yield kinds["inexact_times"].fire(text)


def _curves(tables: TraceTables) -> Iterator[Curve]:
    for kind in KINDS:
        blobs = [row.histogram for row in tables.latency if row.kind == kind and row.operations]
        found = merged_distribution(blobs) if blobs else None
        if found:
            yield Curve(
                kind, "total", found.operations, found.points, found.mean_ns, found.stdev_ns, found.buckets
            )


def metrics_of(view: TraceView) -> dict[str, Quantity]:
    """A trace's figures: one trial, so none has an interval."""
    runs = [copy.run_s for copy in view.copies if copy.run_s is not None]
    speed, whole = view.speeds, view.whole
    reasons = dict(speed.reasons)
    if whole.overlapped:
        reasons |= dict.fromkeys(("compute_share", "wait_share"), OVERLAPPED)
    elif whole.rest is not None and whole.compute is None:
        reasons |= dict.fromkeys(("compute_share", "wait_share"), NO_CPU_TIME)
    spent = [value for value in whole.seconds.values() if value is not None]
    # A source may count syncs among writes, but none is without reads and writes unless it did not see them.
    unseen = None in (whole.seconds["read"], whole.seconds["write"])
    if unseen and spent:
        for name in ("compute_share", "wait_share"):
            reasons.setdefault(name, UNSEEN)
        reasons |= dict.fromkeys(("io_time", "read_share", "write_share", "sync_share"), UNSEEN)
    values: dict[str, float | None] = {
        "run_time": sum(runs) / len(runs) if runs else speed.wall_s,
        "run_time_slowest": max(runs, default=speed.wall_s),
        "bytes_read": float(speed.bytes_read),
        "bytes_written": float(speed.bytes_written),
        "wall_throughput": speed.wall_throughput,
        "agg_perf_by_slowest": speed.agg_perf_by_slowest,
        "io_time": float(sum(spent)) if spent and not unseen else None,
        **{f"{kind}_share": getattr(whole, kind) for kind in (*KINDS, "compute", "wait")},
    }
    if not view.processes:
        values = dict.fromkeys(values)
    found = {}
    for name, value in values.items():
        reason = None if value is not None else reasons.get(name, "the trace does not say")
        found[name] = Quantity(value, PROGRAM_METRICS[name].unit, blocks=1, reason=reason)
    return found
