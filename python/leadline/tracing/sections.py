"""What a trace shows: its first screen, its sections, and the keys `trace` and `traces` of `show --json`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from leadline.tracing import charts
from leadline.tracing.charts import files_table, trace_tables
from leadline.tracing.figures import RESTS, Share
from leadline.tracing.messages import cost_words, moved_words
from leadline.tracing.model import TraceProcess, TraceView
from leadline.tracing.tables import KINDS
from leadline.verdict.model import Cell, Statement
from leadline.verdict.sections.charts import CellCurves, Chart
from leadline.verdict.sections.section import (
    Clean,
    Frame,
    Item,
    NextStep,
    Panels,
    Section,
    StudyAnswer,
    Words,
)

_FILES = 8
_FINDINGS = 3
_QUESTION_MAX = 60  # letters of a command line
_ANSWER = "trace_time"
# What codes say already, or the words "the remainder" do.
_SAID_ELSEWHERE = frozenset(
    (
        "trace_warning",
        "trace_blind",
        "trace_lost",
        "trace_times",
        "trace_remainder",
        "trace_more_findings",
        _ANSWER,
    )
)
_TOGETHER = "I/O time is that of all processes together."
_SOUND = "nothing is known to be lost or unseen"


def trace_answer(
    views: Sequence[TraceView],
    cells: Sequence[Cell],
    statements: Sequence[Statement],
    name: str,
    steps: Sequence[str],
) -> StudyAnswer:
    """Made of the statements as they are weighed already, so that none is surer here than in the report."""
    heads = [one for one in statements if one.says == _ANSWER]
    rest = [one for one in statements if one.says not in _SAID_ELSEWHERE]
    cautions = [one.text for one in rest if one.tone == "caution"]
    findings = [one.text for one in rest if one.tone == "finding"][:_FINDINGS]
    shown = next((view for view in views if view.files), None)
    together = _TOGETHER if shown is not None and shown.processes_count > 1 else ""
    table = None if shown is None else replace(files_table(shown, brief=_FILES), note=together)
    return StudyAnswer(
        question=f"Where did the time of {_cut(name)} go, and what did it move?",
        text=" ".join(one.text for one in heads) or "Nothing of the command was recorded.",
        said=(
            *(line for view in views if view.processes for line in moved_words(view)),
            *cautions,
            *findings,
        ),
        matrix=table,
        steps=tuple(NextStep(step) for step in steps),
        sound=_SOUND if all(cell.validity.state == "VALID" for cell in cells) else "",
    )


def _cut(name: str) -> str:
    """Whole words of a command line: what is cut out of one could not be told to be private."""
    words = name.split(" ")
    found = words[0]
    for word in words[1:]:
        if len(found) + len(word) > _QUESTION_MAX:
            return f"{found} \u2026"
        found = f"{found} {word}"
    return found


def traces_json(views: Sequence[TraceView]) -> dict[str, Any]:
    """The keys `trace`, of the first trial, and `traces`, of all where there are several."""
    found: dict[str, Any] = {"trace": trace_json(views[0])}
    if len(views) > 1:
        found["traces"] = [trace_json(view) for view in views]
    return found


def trace_json(view: TraceView) -> dict[str, Any]:
    """One trial's trace. What is not known is null."""
    speed = view.speeds
    return {
        "trial": view.trial,
        "mode": view.mode,
        "source": view.source,
        "lost": {"records": sum(view.lost.values()), **view.lost},
        "warnings": list(view.warnings),
        "notes": dict(view.notes),
        "totals": {
            "bytes_read": speed.bytes_read,
            "bytes_written": speed.bytes_written,
            "calls": dict(view.calls),
            "processes": view.processes_count,
            "files": view.counted.own,
            "files_looked_at": view.counted.looked_at,
            "other_files": dict(view.counted.others),
        },
        "speeds": {
            "wall_s": speed.wall_s,
            "wall_throughput": speed.wall_throughput,
            "agg_perf_by_slowest": speed.agg_perf_by_slowest,
            "posix_bytes": speed.posix_bytes,
            "slowest_io_s": speed.slowest_io_s,
            "reasons": dict(speed.reasons),
        },
        "shares": _share_json(view.whole),
        "slowest": None if view.slowest is None else asdict(view.slowest),
        "copies": [
            {
                "copy": item.copy,
                "run_s": item.run_s,
                "ended": item.ended,
                "bytes_read": item.bytes_read,
                "bytes_written": item.bytes_written,
                "cpu_s": item.cpu_s,
                "memory_bytes_max": item.memory_bytes_max,
                "faults_major": item.faults_major,
                "shares": _share_json(item.share),
            }
            for item in view.copies
        ],
        "findings": [{**_lists(asdict(item)), "words": cost_words(item, view)} for item in view.findings],
        "files": [asdict(item) for item in view.files],
        "mapped": [asdict(item) for item in view.mapped.files],
        "processes": [
            {
                **{name: getattr(item, name) for name in _PROCESS_FIELDS},
                "calls": dict(item.calls),
                "seconds": dict(item.seconds),
                "lost": dict(item.lost),
                "notes": list(item.notes),
            }
            for item in view.processes
        ],
    }


def _lists(values: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


_PROCESS_FIELDS = (
    "copy",
    "process",
    "life",
    "parent",
    "pid",
    "executable",
    "command",
    "started_s",
    "ended_s",
    "end",
    "status",
    "threads",
    "bytes_read",
    "bytes_written",
    "cpu_s",
)


def _share_json(share: Share) -> dict[str, Any]:
    return {
        "basis": share.basis,
        "base_s": share.base_s,
        "seconds": dict(share.seconds),
        **{kind: getattr(share, kind) for kind in (*KINDS, *RESTS)},
        "waits": dict(share.waits),
        "overlapped": share.overlapped,
    }


_ESTIMATES = (
    "Each cost is an estimate with its method, and at most the measured time. Costs overlap: do not add them."
)
_REMAINDER = (
    "Computing is CPU time outside of file calls, waiting is time off the CPU there. Definitions:"
    " docs/trace.md."
)
_SPREAD = "A call's bytes are spread evenly over the time that it took."
_COUNTED = " Calls were only counted: with --segments there are reads and writes over time."
_LATENCY = (
    "Latency at each percentile, every nine as wide as the last; lower is better. All processes are merged"
    " exactly."
)


def trace_frame(views: Sequence[TraceView], cells: Sequence[Cell]) -> Frame:
    """How a report of traces is laid out."""
    here = any(view.mode != "import" for view in views)
    steps = [] if any(view.segments for view in views) or not here else [
        "For reads and writes over time: leadline trace --segments"
    ]  # fmt: skip
    sources = [f" ({view.source})" if view.source else "" for view in views]

    def hidden(clean: Clean) -> tuple[Section, ...]:
        return trace_sections([_hidden(clean(view), clean) for view in views], clean(cells))

    return Frame(
        cells=False,
        made_by=tuple(f"traced by {view.mode}{source}" for view, source in zip(views, sources, strict=True)),
        incomplete="the trace was not stored to its end",
        steps=(*steps, "For charts: leadline report DIR --format html -o report.html"),
        no_jobs="a trace is no fio job",
        command=True,
        hidden=hidden,
    )


def _hidden(view: TraceView, clean: Clean) -> TraceView:
    """Files keep their number, so that they can be told apart; command lines go."""
    return replace(
        view,
        notes={clean(note): count for note, count in view.notes.items()},
        files=tuple(replace(item, path=f"<file {n}>") for n, item in enumerate(view.files, start=1)),
        mapped=replace(
            view.mapped, files=tuple(replace(item, path=clean(item.path)) for item in view.mapped.files)
        ),
        slowest=None if view.slowest is None else replace(view.slowest, name=clean(view.slowest.name)),
        processes=tuple(_hidden_process(item, clean) for item in view.processes),
    )


def _hidden_process(item: TraceProcess, clean: Clean) -> TraceProcess:
    return replace(item, command="<command>", notes=tuple(clean(note) for note in item.notes))


def trace_sections(views: Sequence[TraceView], cells: Sequence[Cell]) -> tuple[Section, ...]:
    """The sections of every trial that was traced, trial by trial."""
    found = [
        section
        for place, (view, cell) in enumerate(zip(views, cells, strict=True))
        for section in _sections(place, view, cell, f" {view.trial}" if len(views) > 1 else "")
    ]
    return (*(replace(one, json={}, in_csv=False) for one in found[:-1]),
            replace(found[-1], json=traces_json(views), in_csv=False))  # fmt: skip


def _sections(place: int, view: TraceView, cell: Cell, trial: str) -> Iterator[Section]:
    of_trial = f",{trial}" if trial else ""
    if view.findings:
        words = Words(tuple(_items(view)), style="cards")
        yield Section(
            f"findings-{place}", f"What to change{of_trial}", (words,), "", _ESTIMATES, page_only=True
        )
    shares = Panels((charts.share_bars(place, view),))
    yield Section(f"shares-{place}", "Where the time went", (shares,), f"Time{trial}", _REMAINDER)
    yield from _over_time(place, view, trial)
    curves = Panels(((CellCurves(f"latency-{place}", cell.id, place),),))
    if any(value > 0 for curve in cell.curves for _, value in curve.points):
        yield Section(f"latency-{place}", "How long each call took", (curves,), f"Latency{trial}", _LATENCY)
    sizes = tuple(chart for way in charts.WAYS for chart in charts.size_bars(place, view, way))
    if files := charts.file_bars(place, view):
        yield Section(f"files-{place}", "Files", (Panels((files, sizes)),), f"Files{trial}")
    found = tuple(trace_tables(view)) if view.processes else ()
    yield Section(f"tables-{place}", "Tables", found, f"Tables{trial}")


def _over_time(place: int, view: TraceView, trial: str) -> Iterator[Section]:
    names = charts.process_names(view)
    heat = (chart for way in charts.WAYS for chart in charts.heat_map(place, view, way, names))
    time: tuple[Chart, ...] = (*charts.rate_lines(place, view), *heat)
    lives: tuple[Chart, ...] = charts.life_bars(place, view, names)
    if time or lives:
        note = _SPREAD if time else _SPREAD + _COUNTED
        yield Section(f"over-time-{place}", "Over time", (Panels((time, lives)),), f"Over time{trial}", note)


def _items(view: TraceView) -> Iterator[Item]:
    for item in view.findings:
        points = (("Costs", f"{cost_words(item, view)}."), ("Change.", item.change))
        yield Item("", item.title, details=item.examples, points=points, count=item.count, code=item.rule)
