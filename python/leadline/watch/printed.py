"""What `leadline watch` prints: what goes on, what it waits for, who uses the mount, what was not seen."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from leadline import units
from leadline.units import NO_VALUE, printable
from leadline.watch.store import WATCH_FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from leadline.watch.causes import Cause, Judgement
    from leadline.watch.figures import ProcessWork, WatchFacts
    from leadline.watch.store import Seen

_PROCESSES_MAX = 12
_OTHERS_MAX = 3


def show_watch(seen: Seen, facts: WatchFacts, judged: Judgement, console: Console) -> None:
    """Print it all on `console`."""
    from rich.text import Text

    def line(words: str, style: str = "") -> None:
        console.print(Text(printable(words), style=style))

    line(f"{seen.path}: {seen.words}", "bold")
    line(f"watched for {units.format_duration(seen.elapsed_s)}; nothing was written there", "dim")
    for heading, causes, none in (
        ("what goes on", judged.load, "nothing that a rule knows; see the figures below"),
        ("what it waits for", judged.limit, "no limit was seen"),
    ):
        line("")
        line(f"{heading}: {causes[0].title if causes else none}", "bold")
        for number, cause in enumerate(causes[: 1 + _OTHERS_MAX]):
            for words in _cause_lines(cause, also=number > 0):
                line(words)
    line("")
    _process_table(facts, console)
    line("")
    for words in figure_lines(facts):
        line(words)
    if facts.not_seen:
        line("")
        line("not seen:", "yellow")
        for reason in facts.not_seen.values():
            line(f"  {reason}", "yellow")


def _cause_lines(cause: Cause, *, also: bool) -> Iterable[str]:
    if also:
        yield f"  also: {cause.title}"
    yield f"    {cause.evidence}"
    yield f"    -> {cause.change}"


def _process_table(facts: WatchFacts, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    if not facts.processes:
        console.print(Text("nobody was seen with anything open on it"))
        return
    elsewhere = any(row.everywhere for row in facts.processes)
    title = "who uses it" + (" (from /proc: all calls of each, wherever they went)" if elsewhere else "")
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in ("pid", "program", "account"):
        table.add_column(name)
    for name in ("read", "written", "mean read", "mean write", "metadata", "in calls", "open"):
        table.add_column(name, justify="right")
    elapsed_s = facts.values["elapsed_s"]
    assert isinstance(elapsed_s, float)  # noqa: S101 - for the type checker
    for row in facts.processes[:_PROCESSES_MAX]:
        table.add_row(*(Text(printable(cell)) for cell in _cells(row, elapsed_s)))
    console.print(table)
    if len(facts.processes) > _PROCESSES_MAX:
        console.print(Text(f"and {len(facts.processes) - _PROCESSES_MAX} more, which moved less"))


def _cells(row: ProcessWork, elapsed_s: float) -> tuple[str, ...]:
    seen, work = row.seen, row.work
    head = (str(seen.pid), seen.name, seen.account)
    if work is None:
        return (*head, *([NO_VALUE] * 6), str(seen.open_files))

    def mean(amount: float, count: float) -> str:
        return units.format_size(amount / count) if count else NO_VALUE

    spent = work.read_s + work.write_s + work.metadata_s
    return (
        *head,
        units.format_rate(work.bytes_read / elapsed_s),
        units.format_rate(work.bytes_written / elapsed_s),
        mean(work.bytes_read, work.reads),
        mean(work.bytes_written, work.writes),
        NO_VALUE if row.everywhere else f"{units.format_number(work.metadata / elapsed_s)}/s",
        NO_VALUE if row.everywhere else units.format_percent(spent / elapsed_s),
        str(seen.open_files),
    )


_FIGURES: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "calls",
        (
            ("read", "read_bytes_per_s", "B/s"),
            ("written", "written_bytes_per_s", "B/s"),
            ("metadata calls per second", "metadata_per_s", ""),
            ("in progress on average", "in_calls", ""),
        ),
    ),
    (
        "client",
        (
            ("busiest thread", "client_thread_share", "1"),
            ("CPUs", "client_cores", ""),
            ("out of its cache", "client_cached_share", "1"),
            ("requests to OSDs in flight", "client_in_flight", ""),
        ),
    ),
    ("wire", (("sent", "wire_sent_bytes_per_s", "B/s"), ("received", "wire_received_bytes_per_s", "B/s"))),
    (
        "cluster",
        (
            ("health", "health", "text"),
            ("used", "used_share", "1"),
            ("median OSD commits in, ms", "median_osd_ms", ""),
        ),
    ),
)


def figure_lines(facts: WatchFacts) -> Iterable[str]:
    """One line a part: its figures that were seen."""
    for part, figures in _FIGURES:
        shown = [
            f"{words} {_figure(value, unit)}"
            for words, name, unit in figures
            if (value := facts.values.get(name)) is not None
        ]
        if shown:
            source = f" ({facts.source})" if part == "calls" and facts.source else ""
            yield f"{part + ':':<9}{', '.join(shown)}{source}"


def _figure(value: float | str, unit: str) -> str:
    if isinstance(value, str):
        return value
    return units.format_quantity(value, unit) if unit else units.format_number(value)


def watch_json(seen: Seen, facts: WatchFacts, judged: Judgement) -> dict[str, Any]:
    """The same as plain values. Rates are per second, shares 0 to 1, sizes bytes."""
    return {
        "format": WATCH_FORMAT,
        "path": seen.path,
        "words": seen.words,
        "mount_point": seen.mount_point,
        "elapsed_s": seen.elapsed_s,
        "load": [asdict(cause) for cause in judged.load],
        "limit": [asdict(cause) for cause in judged.limit],
        "figures": dict(facts.values),
        "source": facts.source,
        "processes": [
            {
                "pid": row.seen.pid,
                "program": row.seen.name,
                "account": row.seen.account,
                "open_files": row.seen.open_files,
                "example": row.seen.example,
                "uses": list(row.seen.uses),
                "everywhere": row.everywhere,
                "work": None if row.work is None else asdict(row.work),
            }
            for row in facts.processes
        ],
        "not_seen": dict(facts.not_seen),
    }
