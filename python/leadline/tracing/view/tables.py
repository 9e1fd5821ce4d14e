"""The tables of a trace: where the time went, files, calls and processes, the costliest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from leadline import units
from leadline.tracing.counted.belongs import LOOKED_AT, USER, others_words
from leadline.tracing.counted.lives import by_life
from leadline.tracing.figures import KINDS, Share
from leadline.tracing.messages import WORDS
from leadline.tracing.model import TraceCopy, TraceProcess, TraceView
from leadline.units import NO_VALUE
from leadline.verdict.sections.section import TextTable

_ROWS_MAX = 100
_SHOWN = (*KINDS, "compute", "wait")
_COPIES_MAX = 100
_BRIEF = 12  # rows of a report that is no page


def trace_tables(view: TraceView) -> Iterator[TextTable]:
    """The tables of a trace, the same in every report."""
    yield _copies(view)
    if view.files:
        yield files_table(view)
    if view.timed_calls:
        yield _timed_calls(view)
    elif view.calls:
        yield _calls(view)
    if view.processes_count > 1:
        yield _processes(view)


def _ranked(
    title: str,
    heads: tuple[str, ...],
    rows: tuple[tuple[str, ...], ...],
    right: Iterable[int],
    total: int,
) -> TextTable:
    return TextTable(title, heads, rows, frozenset(right), total=total, brief=_BRIEF)


def copies_shown(view: TraceView) -> list[TraceCopy]:
    """The copies in their order; of more than a page has room for, those that ran longest."""
    slowest = sorted(view.copies, key=lambda copy: -(copy.run_s or 0.0))[:_COPIES_MAX]
    return sorted(slowest, key=lambda copy: copy.copy)


def _copies(view: TraceView) -> TextTable:
    several, shown = len(view.copies) > 1, copies_shown(view)
    heads = ("copy", "run time", "read", "written", *(WORDS[kind] for kind in _SHOWN), "ended")
    rows = [
        (
            str(c.copy),
            _seconds(c.run_s),
            _size(c.bytes_read),
            _size(c.bytes_written),
            *_parts(c.share),
            c.ended,
        )
        for c in shown
    ]
    if several:
        speed = view.speeds
        whole = (_size(speed.bytes_read), _size(speed.bytes_written), *_parts(view.whole))
        rows.append(("all", _seconds(speed.wall_s), *whole, ""))
    note = f"shares are of {view.whole.basis}; computing and waiting are what no file call took"
    if len(shown) < len(view.copies):
        note = f"the {len(shown)} of {len(view.copies):,} copies that ran longest; {note}"
    return TextTable("Where the time went", heads, tuple(rows), frozenset(range(1, len(heads) - 1)), note)


def _parts(share: Share) -> tuple[str, ...]:
    return tuple(_share(getattr(share, kind)) for kind in _SHOWN)


def files_table(view: TraceView, brief: int = _BRIEF) -> TextTable:
    """The user's files, the costliest first; where there is none, all."""
    own = [item for item in view.files if item.belongs in (USER, LOOKED_AT)]
    others = others_words(view.counted.others)
    note = f"besides {others}" if own and others else ""
    spent = "I/O time above strace's" if view.whole.slowed else "I/O time"
    heads = ("file", "layer", spent, "read", "written", "reads", "writes", "opens", "stats")
    rows = tuple(
        (
            f.path,
            f.module,
            _seconds(f.io_s if f.io_s or not view.whole.slowed else None),
            _size(f.bytes_read),
            _size(f.bytes_written),
            *(_count(value) for value in (f.reads, f.writes, f.opens, f.stats)),
        )
        for f in (own or view.files)[:_ROWS_MAX]
    )
    total = view.counted.own + view.counted.looked_at if own else sum(view.counted.others.values())
    found = _ranked("Files by cost", heads, rows, range(2, 9), total)
    more = f"and {total - brief:,} more; " if note and total > brief else ""
    return replace(found, note=f"{more}{note}", brief=brief)


def _calls(view: TraceView) -> TextTable:
    rows = tuple((name, _count(count)) for name, count in list(view.calls.items())[:_ROWS_MAX])
    return _ranked("Calls", ("call", "count"), rows, (1,), len(view.calls))


def _timed_calls(view: TraceView) -> TextTable:
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
        for c in view.timed_calls[:_ROWS_MAX]
    )
    return _ranked("Calls", heads, rows, range(1, 6), len(view.timed_calls))


def _processes(view: TraceView) -> TextTable:
    """A row a process, whatever programs it became: by the last one's command."""
    heads = ("process", "copy", "pid", "command", "lived", "I/O time", "read", "written", "ended")
    found = [_whole(images) for images in by_life(view.processes)]
    ordered = sorted(found, key=lambda p: (-(p.bytes_read + p.bytes_written), p.process))
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
        for p in ordered[:_ROWS_MAX]
    )
    return _ranked("Processes by bytes", heads, rows, (0, 1, 2, 4, 5, 6, 7), len(found))


def _whole(images: Sequence[TraceProcess]) -> TraceProcess:
    """One process from its images."""
    seconds: dict[str, float | None] = {}
    for kind in KINDS:
        known = [value for image in images if (value := image.seconds.get(kind)) is not None]
        seconds[kind] = sum(known) if known else None
    return replace(
        images[-1],
        process=images[0].process,
        started_s=images[0].started_s,
        bytes_read=sum(image.bytes_read for image in images),
        bytes_written=sum(image.bytes_written for image in images),
        seconds=seconds if any(value is not None for value in seconds.values()) else {},
    )


def _seconds(value: float | None) -> str:
    return NO_VALUE if value is None else units.format_latency(value * 1e9)


def _size(value: float | None) -> str:
    return NO_VALUE if value is None else units.format_size(value)


def _count(value: int | None) -> str:
    return NO_VALUE if value is None else f"{value:,}"


def _share(value: float | None) -> str:
    return NO_VALUE if value is None else units.format_percent(value)
