"""What `leadline watch` prints: what goes on, what it waits for, who uses the mount, what was not seen."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from leadline import units
from leadline.units import NO_VALUE, printable
from leadline.watch.store import WATCH_FORMAT
from leadline.watch.work import Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console
    from rich.table import Table

    from leadline.watch.causes import Cause, Judgement
    from leadline.watch.figures import WatchFacts
    from leadline.watch.store import Seen
    from leadline.watch.work import FileWork, ProcessWork

_PROGRAMS_MAX = 12
_FILES_MAX = 12
_OTHERS_MAX = 3
_PIDS_MAX = 3
_JSON_FILES_MAX, _JSON_PROCESSES_MAX = 1000, 1000


def show_watch(seen: Seen, facts: WatchFacts, judged: Judgement, console: Console) -> None:
    """Print it all on `console`."""
    from rich.text import Text

    def line(words: str, style: str = "") -> None:
        console.print(Text(printable(words), style=style))

    line(f"{seen.path}: {seen.words}", "bold")
    line(f"watched for {units.format_duration(seen.elapsed_s)}; nothing was written there", "dim")
    for heading, causes, none in (
        (f"what goes on {facts.about}", judged.load, "nothing that a rule knows; see the figures below"),
        ("what it waits for", judged.limit, "no limit was seen"),
    ):
        line("")
        line(f"{heading}: {causes[0].title if causes else none}", "bold")
        for number, cause in enumerate(causes[: 1 + _OTHERS_MAX]):
            for words in _cause_lines(cause, also=number > 0):
                line(words)
    line("")
    _process_table(seen, facts, console)
    line("")
    _file_table(seen, facts, console)
    line("")
    for words in (*figure_lines(facts), *_rest_lines(seen, facts)):
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


def _process_table(seen: Seen, facts: WatchFacts, console: Console) -> None:
    from rich.text import Text

    rows = [row for row in facts.processes if is_below(row)]
    if not rows:
        console.print(Text(printable(f"nobody was seen with anything open below {seen.path}")))
        return
    elsewhere = any(row.everywhere for row in rows)
    aside = " (from /proc: all calls of each, wherever they went)" if elsewhere else ""
    table = _table(
        f"who uses {seen.path}{aside}",
        ("program", "account", "processes"),
        ("read", "written", "mean read", "mean write", "metadata", "in calls", "open"),
    )
    programs = by_program(rows)
    for group in programs[:_PROGRAMS_MAX]:
        table.add_row(*(Text(printable(cell)) for cell in _cells(group)))
    console.print(table)
    if len(programs) > _PROGRAMS_MAX:
        console.print(Text(f"and {len(programs) - _PROGRAMS_MAX} more programs, which did less"))


def by_program(rows: Sequence[ProcessWork]) -> list[list[ProcessWork]]:
    """The processes of each program and account together, those first that moved most or waited longest."""
    groups: dict[tuple[str, str], list[ProcessWork]] = {}
    for row in rows:
        groups.setdefault((row.seen.name, row.seen.account or ""), []).append(row)

    def weight(group: list[ProcessWork]) -> tuple[float, float, float]:
        per_s = _together(group).per_s
        return (per_s.moved_bytes, per_s.spent_s, per_s.calls)

    return sorted(groups.values(), key=weight, reverse=True)


def _together(group: Sequence[ProcessWork]) -> Tally:
    found = Tally()
    for row in group:
        if row.below is not None:
            found.join(row.below)
    return found


def is_below(row: ProcessWork) -> bool:
    """Whether a process had anything open below the path, or called anything there."""
    return row.seen.is_below or (not row.everywhere and bool(row.below and row.below.work.calls))


def _table(title: str, words: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    from rich.table import Table
    from rich.text import Text

    head = Text(printable(title))
    table = Table(title=head, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in words:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _cells(group: Sequence[ProcessWork]) -> tuple[str, ...]:
    """A row of one program: its process by number, or how many there are."""
    seen = group[0].seen
    many = f"{len(group):,}" if len(group) > 1 else f"pid {seen.pid}"
    head = (seen.name, seen.account or NO_VALUE, many)
    files = str(len({file.path for row in group for file in row.seen.files}))
    if all(row.below is None for row in group):
        return (*head, *([NO_VALUE] * 6), files)
    tally, everywhere = _together(group), any(row.everywhere for row in group)
    return (
        *head,
        *_moved(tally),
        NO_VALUE if everywhere else f"{units.format_number(tally.per_s.metadata)}/s",
        NO_VALUE if everywhere else units.format_percent(tally.per_s.spent_s),
        files,
    )


def _moved(tally: Tally) -> tuple[str, str, str, str]:
    """Rates and mean sizes of reads and writes."""

    def mean(amount: float, count: float) -> str:
        return units.format_size(amount / count) if count else NO_VALUE

    work = tally.work
    return (
        units.format_rate(tally.per_s.bytes_read),
        units.format_rate(tally.per_s.bytes_written),
        mean(work.bytes_read, work.reads),
        mean(work.bytes_written, work.writes),
    )


def _file_table(seen: Seen, facts: WatchFacts, console: Console) -> None:
    """The busiest files; without calls, those that are open and how far their positions went."""
    from rich.text import Text

    if not facts.files:
        console.print(Text(printable(f"no file below {seen.path} was seen in use")))
        return
    called = facts.files[0].tally is not None
    numbers = ("read", "written", "mean read", "mean write", "metadata", "reached")
    table = _table(
        f"files below {seen.path}", ("file", "pid"), numbers if called else ("position went forward by",)
    )
    for file in facts.files[:_FILES_MAX]:
        shown = file.path[len(seen.path.rstrip("/")) + 1 :] or file.path
        pids = ", ".join(map(str, file.pids[:_PIDS_MAX]))
        more = f" and {len(file.pids) - _PIDS_MAX} more" if len(file.pids) > _PIDS_MAX else ""
        cells = (shown, pids + more, *_file_cells(file))
        table.add_row(*(Text(printable(cell)) for cell in cells))
    console.print(table)
    if len(facts.files) > _FILES_MAX:
        console.print(Text(f"and {len(facts.files) - _FILES_MAX:,} more; --json has {_JSON_FILES_MAX:,}"))


def _file_cells(file: FileWork) -> tuple[str, ...]:
    if file.tally is None:
        return (units.format_size(file.advanced_bytes or 0),)
    reached = NO_VALUE if file.highest_byte is None else units.format_size(file.highest_byte)
    return (*_moved(file.tally), f"{units.format_number(file.tally.per_s.metadata)}/s", reached)


def _rest_lines(seen: Seen, facts: WatchFacts) -> Iterable[str]:
    """What went on elsewhere on the same file system, and who did most of it."""
    if facts.rest is None or seen.is_whole:
        return
    per_s = facts.rest.per_s
    by_process = [(row.rest.per_s.moved_bytes, row.seen) for row in facts.processes if row.rest]
    busy = sorted(by_process, key=lambda one: -one[0])[:_OTHERS_MAX]
    names = ", ".join(f"{one.name} ({one.pid}) {units.format_rate(rate)}" for rate, one in busy if rate)
    yield (
        f"rest of {seen.mount.mount_point}: read {units.format_rate(per_s.bytes_read)},"
        f" written {units.format_rate(per_s.bytes_written)},"
        f" metadata calls per second {units.format_number(per_s.metadata)}"
        + (f"; most by {names}" if names else "")
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
            ("median commit of OSDs", "median_osd_s", "latency"),
            ("slowest OSD", "slowest_osd", "text"),
            ("its commit", "slowest_osd_s", "latency"),
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
    if unit == "latency":
        return units.format_latency(value * units.NS_PER_S)
    return units.format_quantity(value, unit) if unit else units.format_number(value)


def watch_json(seen: Seen, facts: WatchFacts, judged: Judgement) -> dict[str, Any]:
    """The same as plain values. Rates are per second, shares 0 to 1, sizes bytes."""
    return {
        "format": WATCH_FORMAT,
        "path": seen.path,
        "words": seen.words,
        "mount_point": seen.mount.mount_point,
        "about": facts.about,
        "elapsed_s": seen.elapsed_s,
        "load": [asdict(cause) for cause in judged.load],
        "limit": [asdict(cause) for cause in judged.limit],
        "figures": dict(facts.values),
        "source": facts.source,
        "processes": [_process_json(row) for row in facts.processes if is_below(row)][:_JSON_PROCESSES_MAX],
        "files": [_file_json(file) for file in facts.files[:_JSON_FILES_MAX]],
        "files_seen": len(facts.files),
        "rest": {
            **_tally_json(facts.rest),
            "processes": [_process_json(row) for row in facts.processes if not is_below(row)][
                :_JSON_PROCESSES_MAX
            ],
        },
        "not_seen": dict(facts.not_seen),
    }


def _process_json(row: ProcessWork) -> dict[str, Any]:
    return {
        "pid": row.seen.pid,
        "program": row.seen.name,
        "account": row.seen.account or None,
        "open_files": len(row.seen.files),
        "open_elsewhere": row.seen.open_elsewhere,
        "example": row.seen.files[0].path if row.seen.files else "",
        "uses": list(row.seen.uses),
        "ended": row.seen.ended,
        "everywhere": row.everywhere,
        "followed_s": row.seen.followed_s,
        **_tally_json(row.below),
        "rest": None if row.rest is None else _tally_json(row.rest),
    }


def _tally_json(tally: Tally | None) -> dict[str, Any]:
    """`work` as it was counted, `per_s` by the time that it was counted for."""
    if tally is None:
        return {"work": None, "per_s": None}
    return {"work": asdict(tally.work), "per_s": asdict(tally.per_s)}


def _file_json(file: FileWork) -> dict[str, Any]:
    return {
        "path": file.path,
        "pids": list(file.pids),
        **_tally_json(file.tally),
        "highest_byte": file.highest_byte,
        "mapped_bytes": file.mapped_bytes,
        "advanced_bytes": file.advanced_bytes,
    }
