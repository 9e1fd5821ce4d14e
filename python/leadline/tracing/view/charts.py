"""The charts of a trace: shares, bytes over time, each process's reads and writes, files, access sizes."""

from __future__ import annotations

from collections.abc import Mapping

from leadline import units
from leadline.tracing.figures import KINDS
from leadline.tracing.messages import WORDS
from leadline.tracing.model import TraceProcess, TraceView
from leadline.tracing.view.tables import copies_shown
from leadline.units import printable
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
