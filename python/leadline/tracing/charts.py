"""The charts and tables of a trace: where the time went, bytes over time, files, calls and processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from leadline import units
from leadline.tracing.figures import Share
from leadline.tracing.mapped import LOOKED_AT, USER, others_words
from leadline.tracing.messages import WORDS
from leadline.tracing.model import TraceCopy, TraceProcess, TraceView
from leadline.tracing.tables import KINDS, by_life
from leadline.units import NO_VALUE, printable
from leadline.verdict.sections.charts import (
    CountBars,
    HeatMap,
    LifeBar,
    LifeBars,
    RateLines,
    ShareBar,
    ShareBars,
    TimeBar,
    TimeBars,
)
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


WAYS = {"read": "reading", "write": "writing"}
_FILES_SHOWN = 15
_LIVES_SHOWN = 40
_NAME_MAX = 34
_PARTS = {"reading": "read_s", "writing": "write_s", "metadata": "meta_s"}


def share_bars(place: int, view: TraceView) -> tuple[ShareBars, ...]:
    """One bar a copy, divided by what its time went into."""
    wholes = [(f"copy {item.copy}", item.share) for item in copies_shown(view)]
    if len(wholes) > 1:
        wholes.append(("all", view.whole))
    bars = tuple(
        ShareBar(
            name,
            name,
            tuple(
                (WORDS[kind], value)
                for kind in (*KINDS, *(("rest",) if share.compute is None else ("compute", "wait")))
                if (value := getattr(share, kind)) is not None
            ),
        )
        for name, share in wholes
    )
    if not any(bar.parts for bar in bars):
        return ()
    return (ShareBars(f"shares-{place}", "Where the time went", f"% of {view.whole.basis}", bars),)


def rate_lines(place: int, view: TraceView) -> tuple[RateLines, ...]:
    """Bytes over the run, reads and writes on one scale."""
    moved = view.over_time
    if moved is None or not any((*moved.read, *moved.written)):
        return ()
    lines = (("reading", moved.read), ("writing", moved.written))
    known = tuple((name, values) for name, values in lines if any(values))
    return (RateLines(f"time-{place}", "Bytes moved over time", moved.bin_s, known),)


def process_names(view: TraceView) -> dict[int, str]:
    """How each process is called on charts."""
    several = len(view.copies) > 1
    return {item.process: _process_name(item, several) for item in view.processes}


def _process_name(item: TraceProcess, several: bool) -> str:
    program = printable(item.executable.rpartition("/")[2] or item.command)[:14]
    return f"{item.process} {program}" + (f", copy {item.copy}" if several else "")


def heat_map(place: int, view: TraceView, way: str, names: Mapping[int, str]) -> tuple[HeatMap, ...]:
    """A row a process. Reads and writes never share a map."""
    moved = view.over_time
    if moved is None:
        return ()
    by_process = moved.read_by_process if way == "read" else moved.written_by_process
    rows = tuple(
        (names.get(number, str(number)), values) for number, values in by_process.items() if any(values)
    )
    if not rows:
        return ()
    title = "Reads of each process" if way == "read" else "Writes of each process"
    return (HeatMap(f"heat-{way}-{place}", title, WAYS[way], moved.bin_s, rows),)


def life_bars(place: int, view: TraceView, names: Mapping[int, str]) -> tuple[LifeBars, ...]:
    """When each process ran: where calls were only counted this is all that is known of time."""
    if len(view.processes) < 2:
        return ()
    ordered = sorted(view.processes, key=lambda p: -(p.bytes_read + p.bytes_written))[:_LIVES_SHOWN]
    last = max((p.ended_s or 0.0 for p in view.processes), default=0.0)
    bars = tuple(
        LifeBar(
            names[p.process],
            p.started_s,
            last if p.ended_s is None else p.ended_s,
            f"{names[p.process]}: {printable(p.command)[:120]},"
            f" {units.format_size(p.bytes_read)} read, {units.format_size(p.bytes_written)} written",
        )
        for p in sorted(ordered, key=lambda p: (p.started_s, p.process))
    )
    return (LifeBars(f"lives-{place}", "When each process ran", bars),)


def file_bars(place: int, view: TraceView) -> tuple[TimeBars, ...]:
    """The files that took longest, divided into reading, writing and metadata."""
    shown = [item for item in view.files if item.io_s > 0][:_FILES_SHOWN]
    if not shown:
        return ()
    bars = tuple(
        TimeBar(
            f"{number} {_short(item.path)}",
            item.path,
            f"{item.path} ({item.module})",
            item.io_s,
            tuple((name, value) for name, part in _PARTS.items() if (value := getattr(item, part))),
        )
        for number, item in enumerate(shown, start=1)
    )
    return (TimeBars(f"files-{place}", "Files by time", bars),)


def _short(path: str) -> str:
    text = printable(path)
    return text if len(text) <= _NAME_MAX else f"…{text[1 - _NAME_MAX :]}"


def size_bars(place: int, view: TraceView, way: str) -> tuple[CountBars, ...]:
    """How large accesses were, in Darshan's bins."""
    counts = view.sizes.get(way, {})
    if not any(counts.values()):
        return ()
    title = "Sizes of reads" if way == "read" else "Sizes of writes"
    known = tuple((_bin_words(name), count) for name, count in counts.items())
    return (CountBars(f"sizes-{way}-{place}", title, "accesses", WAYS[way], known),)


def _bin_words(name: str) -> str:
    return name.replace("_PLUS", "+").replace("_", " to ")
