"""Traces on a terminal, as Markdown and as JSON: what was lost first, then where the time went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from leadline import units
from leadline.report import format as fmt
from leadline.tracing.figures import KINDS, Share
from leadline.tracing.model import TraceView
from leadline.tracing.words import WORDS, cost_words
from leadline.verdict.model import Findings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_ROWS_SHOWN = 12
_STYLES = {"VALID": "green", "DOUBTFUL": "yellow", "INVALID": "bold red", "NOT_RUN": "dim"}
_MARKS = {"headline": ("", "bold"), "finding": ("- ", ""), "caution": ("! ", "yellow")}


@dataclass(frozen=True)
class Sheet:
    """A table ready to lay out: `right` are the columns with numbers, `note` says what is left out."""

    title: str
    headings: tuple[str, ...]
    right: frozenset[int]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def sheets(view: TraceView, rows_max: int = _ROWS_SHOWN) -> Iterator[Sheet]:
    """The tables of a trace, the same in every report."""
    yield _copies(view)
    if view.files:
        yield _files(view, rows_max)
    if view.timed_calls:
        yield _timed_calls(view, rows_max)
    elif view.calls:
        yield _calls(view, rows_max)
    if len(view.processes) > 1:
        yield _processes(view, rows_max)


def _numbers(*places: int) -> frozenset[int]:
    return frozenset(places)


def _copies(view: TraceView) -> Sheet:
    several = len(view.copies) > 1
    heads = ("copy", "run time", "read", "written", *(WORDS[kind] for kind in KINDS), "computing", "ended")
    rows = [
        (
            str(c.copy),
            _seconds(c.run_s),
            _size(c.bytes_read),
            _size(c.bytes_written),
            *_parts(c.share),
            c.ended,
        )
        for c in view.copies
    ]
    if several:
        speed = view.speeds
        whole = (_size(speed.bytes_read), _size(speed.bytes_written), *_parts(view.whole))
        rows.append(("all", _seconds(speed.wall_s), *whole, ""))
    note = f"shares are of {view.whole.basis}; computing is the remainder"
    return Sheet("Where the time went", heads, _numbers(*range(1, 9)), tuple(rows), note)


def _parts(share: Share) -> tuple[str, ...]:
    return tuple(_share(getattr(share, kind)) for kind in (*KINDS, "compute"))


def _files(view: TraceView, rows_max: int) -> Sheet:
    heads = ("file", "layer", "I/O time", "read", "written", "reads", "writes", "opens", "stats")
    rows = tuple(
        (
            f.path,
            f.module,
            _seconds(f.io_s),
            _size(f.bytes_read),
            _size(f.bytes_written),
            *(_count(value) for value in (f.reads, f.writes, f.opens, f.stats)),
        )
        for f in view.files[:rows_max]
    )
    return Sheet("Files by cost", heads, _numbers(*range(2, 9)), rows, _left_out(len(rows), view.files_count))


def _calls(view: TraceView, rows_max: int) -> Sheet:
    rows = tuple((name, _count(count)) for name, count in list(view.calls.items())[:rows_max])
    return Sheet("Calls", ("call", "count"), _numbers(1), rows, _left_out(len(rows), len(view.calls)))


def _timed_calls(view: TraceView, rows_max: int) -> Sheet:
    heads = ("call", "count", "failed", "bytes", "time", "mean")
    rows = tuple(
        (
            c.call,
            _count(c.count),
            _count(c.failed),
            _size(c.bytes),
            _seconds(c.seconds),
            units.format_latency(c.seconds / c.count * 1e9),
        )
        for c in view.timed_calls[:rows_max]
    )
    return Sheet("Calls", heads, _numbers(1, 2, 3, 4, 5), rows, _left_out(len(rows), len(view.timed_calls)))


def _processes(view: TraceView, rows_max: int) -> Sheet:
    heads = ("process", "copy", "pid", "command", "lived", "I/O time", "read", "written", "ended")
    ordered = sorted(view.processes, key=lambda p: (-(p.bytes_read + p.bytes_written), p.process))
    rows = tuple(
        (
            str(p.process),
            str(p.copy),
            str(p.pid),
            p.command or p.executable,
            _seconds(None if p.ended_s is None else p.ended_s - p.started_s),
            _seconds(sum(value or 0.0 for value in p.seconds.values()) if p.seconds else None),
            _size(p.bytes_read),
            _size(p.bytes_written),
            p.end if p.status is None else f"{p.end} {p.status}",
        )
        for p in ordered[:rows_max]
    )
    note = _left_out(len(rows), len(view.processes))
    return Sheet("Processes by bytes", heads, _numbers(0, 1, 2, 4, 5, 6, 7), rows, note)


def _left_out(shown: int, total: int) -> str:
    return f"and {total - shown:,} more" if total > shown else ""


def _seconds(value: float | None) -> str:
    return fmt.NO_VALUE if value is None else units.format_latency(value * 1e9)


def _size(value: float | None) -> str:
    return fmt.NO_VALUE if value is None else units.format_size(value)


def _count(value: int | None) -> str:
    return fmt.NO_VALUE if value is None else f"{value:,}"


def _share(value: float | None) -> str:
    return fmt.NO_VALUE if value is None else units.format_percent(value)


def show_trace(findings: Findings, console: Console) -> None:
    """Print a trace: state and losses, sentences, tables, remedies."""
    console.print(_text(findings.title, "bold"))
    if findings.about:
        console.print(_text(findings.about, "dim"))
    for view in findings.traces:
        console.print(_text(f"traced by {view.mode}" + (f" ({view.source})" if view.source else ""), "dim"))
    console.print(_text(f"Result: {findings.state}", _STYLES[findings.state]))
    if not findings.complete:
        console.print(_text("INCOMPLETE: the trace was not stored to its end", "yellow"))
    console.print()
    for item in findings.statements:
        mark, style = _MARKS[item.tone]
        console.print(_text(mark + item.text, style))
        for evidence in item.evidence:
            console.print(_text(f"    {evidence}", "dim"))
    for view in findings.traces:
        for sheet in sheets(view) if view.processes else ():
            _print_sheet(sheet, console)
    _print_validity(findings, console)
    for line in next_steps(findings):
        console.print(_text(f"- {line}"))


def _print_sheet(sheet: Sheet, console: Console) -> None:
    from rich import box
    from rich.table import Table

    table = Table(
        title=_text(sheet.title, "bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="",
    )
    for place, heading in enumerate(sheet.headings):
        table.add_column(heading, justify="right" if place in sheet.right else "left", overflow="fold")
    for row in sheet.rows:
        table.add_row(*(_text(value) for value in row))
    console.print()
    console.print(table)
    if sheet.note:
        console.print(_text(f"  {sheet.note}", "dim"))


def _print_validity(findings: Findings, console: Console) -> None:
    console.print()
    for cell in findings.cells:
        for code in cell.validity.codes:
            console.print(
                _text(f"{code.state}: {fmt.sentence(code.title)} ({code.code})", _STYLES[code.state])
            )
            console.print(_text(f"    {code.evidence}"))
            console.print(_text(f"    remedy: {code.remedy}"))
    console.print(_text("Next", "bold"))


def next_steps(findings: Findings) -> tuple[str, ...]:
    """What else can be done with the trace."""
    steps = []
    if not any(view.segments for view in findings.traces):
        steps.append("For reads and writes over time: leadline trace --segments")
    return (*steps, "For charts: leadline report DIR --format html -o report.html")


def _text(value: object, style: str = "") -> Text:
    from rich.text import Text

    return Text(fmt.printable(value), style=style)


def trace_markdown(findings: Findings) -> str:
    """The same for a ticket or a wiki."""
    from leadline.report.renderers.markdown import escape  # which renders traces through this module

    lines = [f"# {escape(findings.title)}", ""]
    if findings.about:
        lines += [escape(findings.about), ""]
    lines += [f"**Result: {findings.state.replace('_', ' ')}**", ""]
    for item in findings.statements:
        text = escape(item.text)
        lines.append(f"- **{text}**" if item.tone == "headline" else f"- {text}")
        lines += [f"  - {escape(evidence)}" for evidence in item.evidence]
    for view in findings.traces:
        for sheet in sheets(view) if view.processes else ():
            lines += ["", f"## {escape(sheet.title)}", "", *_markdown_table(sheet)]
            lines += ["", escape(sheet.note)] if sheet.note else []
    for cell in findings.cells:
        for code in cell.validity.codes:
            lines += ["", f"**{code.state}: {escape(fmt.sentence(code.title))}** (`{code.code}`). "
                      f"{escape(code.evidence)}. {escape(code.remedy)}"]  # fmt: skip
    if findings.reproduce:
        lines += [
            "",
            "## How to reproduce",
            "",
            *(f"    {fmt.printable(line)}" for line in findings.reproduce),
        ]
    return "\n".join(lines) + "\n"


def _markdown_table(sheet: Sheet) -> Iterator[str]:
    from leadline.report.renderers.markdown import escape

    marks = ["---:" if place in sheet.right else "---" for place in range(len(sheet.headings))]
    yield "| " + " | ".join(sheet.headings) + " |"
    yield "| " + " | ".join(marks) + " |"
    for row in sheet.rows:
        yield "| " + " | ".join(escape(value) for value in row) + " |"


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
            "files": view.files_count,
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
        "copies": [
            {
                "copy": item.copy,
                "run_s": item.run_s,
                "ended": item.ended,
                "bytes_read": item.bytes_read,
                "bytes_written": item.bytes_written,
                "cpu_s": item.cpu_s,
                "memory_bytes_max": item.memory_bytes_max,
                "shares": _share_json(item.share),
            }
            for item in view.copies
        ],
        "findings": [{**_lists(asdict(item)), "words": cost_words(item, view)} for item in view.findings],
        "files": [asdict(item) for item in view.files],
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
        **{kind: getattr(share, kind) for kind in (*KINDS, "compute")},
        "overlapped": share.overlapped,
    }
