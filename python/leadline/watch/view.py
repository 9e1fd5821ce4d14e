"""What `leadline watch` shows, as sections: what goes on, what it waits for, who uses the mount."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from leadline import units
from leadline.units import NO_VALUE
from leadline.verdict.sections.findings import findings_words
from leadline.verdict.sections.section import Facts, Item, Part, Section, TextTable, Words
from leadline.watch.store import WATCH_FORMAT
from leadline.watch.work import Tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.knowledge.findings import Finding
    from leadline.watch.causes import Judgement
    from leadline.watch.figures import WatchFacts
    from leadline.watch.store import Seen
    from leadline.watch.work import FileWork, ProcessWork

_PROGRAMS_MAX = 12
_FILES_MAX = 12
_OTHERS_MAX = 3
_PIDS_MAX = 3
_JSON_FILES_MAX, _JSON_PROCESSES_MAX = 1000, 1000


def watch_sections(seen: Seen, facts: WatchFacts, judged: Judgement) -> tuple[Section, ...]:
    """All of it, the answers first."""
    asked = (
        (
            "load",
            f"What goes on {facts.about}",
            judged.load,
            "no rule holds; see the values below",
        ),
        ("limit", "What it waits for", judged.limit, "no limit was seen"),
    )
    said = [
        Section(name, title, (findings_words(found[: 1 + _OTHERS_MAX], none=none),))
        for name, title, found, none in asked
    ]
    lines = {**figure_lines(facts), **_rest_line(seen, facts)}
    unseen = tuple(Item(reason, doubtful=True) for reason in facts.not_seen.values())
    return (
        *said,
        Section("processes", f"Who uses {seen.path}", (_process_table(seen, facts),)),
        Section("files", f"Files below {seen.path}", (_file_table(seen, facts),)),
        *([Section("figures", "Figures", (Facts("", lines),))] if lines else []),
        *([Section("unseen", "Not seen", (Words(unseen),))] if unseen else []),
    )


def _process_table(seen: Seen, facts: WatchFacts) -> Part:
    rows = [row for row in facts.processes if is_below(row)]
    if not rows:
        return Words((Item(f"nobody was seen with anything open below {seen.path}"),))
    elsewhere = any(row.everywhere for row in rows)
    aside = " (from /proc: all calls of each, wherever they went)" if elsewhere else ""
    headings = (
        *("program", "account", "processes", "read", "written", "mean read", "mean write"),
        *("metadata", "in calls", "open"),
    )
    programs = by_program(rows)
    left = len(programs) - _PROGRAMS_MAX
    return TextTable(
        f"Who uses {seen.path}{aside}",
        headings,
        tuple(_cells(group) for group in programs[:_PROGRAMS_MAX]),
        frozenset(range(3, len(headings))),
        note=f"and {left} more programs, which did less" if left > 0 else "",
    )


def by_program(rows: Sequence[ProcessWork]) -> list[list[ProcessWork]]:
    """The processes of each program and account together, those first that moved most or waited longest."""
    groups: dict[tuple[str, str], list[ProcessWork]] = {}
    for row in rows:
        groups.setdefault((row.seen.name, row.seen.account or ""), []).append(row)

    def weight(group: list[ProcessWork]) -> tuple[float, float, float]:
        per_s = together(group).per_s
        return (per_s.moved_bytes, per_s.spent_s, per_s.calls)

    return sorted(groups.values(), key=weight, reverse=True)


def together(group: Sequence[ProcessWork]) -> Tally:
    """The work of several processes below the path."""
    found = Tally()
    for row in group:
        if row.below is not None:
            found.join(row.below)
    return found


def is_below(row: ProcessWork) -> bool:
    """Whether a process had anything open below the path, or called anything there."""
    return row.seen.is_below or (not row.everywhere and bool(row.below and row.below.work.calls))


def _cells(group: Sequence[ProcessWork]) -> tuple[str, ...]:
    """A row of one program: its process by number, or how many there are."""
    seen = group[0].seen
    many = f"{len(group):,}" if len(group) > 1 else f"pid {seen.pid}"
    head = (seen.name, seen.account or NO_VALUE, many)
    files = str(len({file.path for row in group for file in row.seen.files}))
    if all(row.below is None for row in group):
        return (*head, *([NO_VALUE] * 6), files)
    tally, everywhere = together(group), any(row.everywhere for row in group)
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


def _file_table(seen: Seen, facts: WatchFacts) -> Part:
    """The busiest files; without calls, those that are open and how far their positions went."""
    if not facts.files:
        return Words((Item(f"no file below {seen.path} was seen in use"),))
    called = facts.files[0].tally is not None
    numbers = ("read", "written", "mean read", "mean write", "metadata", "reached")
    headings = ("file", "pid", *(numbers if called else ("position went forward by",)))
    left = len(facts.files) - _FILES_MAX
    return TextTable(
        f"Files below {seen.path}",
        headings,
        tuple(_file_row(seen, file) for file in facts.files[:_FILES_MAX]),
        frozenset(range(2, len(headings))),
        note=f"and {left:,} more; --json has {_JSON_FILES_MAX:,}" if left > 0 else "",
    )


def _file_row(seen: Seen, file: FileWork) -> tuple[str, ...]:
    shown = file.path[len(seen.path.rstrip("/")) + 1 :] or file.path
    more = f" and {len(file.pids) - _PIDS_MAX} more" if len(file.pids) > _PIDS_MAX else ""
    return (shown, ", ".join(map(str, file.pids[:_PIDS_MAX])) + more, *_file_cells(file))


def _file_cells(file: FileWork) -> tuple[str, ...]:
    if file.tally is None:
        return (units.format_size(file.advanced_bytes or 0),)
    reached = NO_VALUE if file.highest_byte is None else units.format_size(file.highest_byte)
    return (*_moved(file.tally), f"{units.format_number(file.tally.per_s.metadata)}/s", reached)


def _rest_line(seen: Seen, facts: WatchFacts) -> dict[str, str]:
    """What went on elsewhere on the same file system, and who did most of it."""
    if facts.rest is None or seen.is_whole:
        return {}
    per_s = facts.rest.per_s
    by_process = [(row.rest.per_s.moved_bytes, row.seen) for row in facts.processes if row.rest]
    busy = sorted(by_process, key=lambda one: -one[0])[:_OTHERS_MAX]
    names = ", ".join(f"{one.name} ({one.pid}) {units.format_rate(rate)}" for rate, one in busy if rate)
    words = (
        f"read {units.format_rate(per_s.bytes_read)}, written {units.format_rate(per_s.bytes_written)},"
        f" metadata calls per second {units.format_number(per_s.metadata)}"
    )
    return {f"rest of {seen.mount.mount_point}": words + (f"; most by {names}" if names else "")}


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
            ("outstanding requests to OSDs", "client_in_flight", ""),
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


def figure_lines(facts: WatchFacts) -> dict[str, str]:
    """The figures that were seen, by the part that they are of."""
    lines = {}
    for part, figures in _FIGURES:
        shown = [
            f"{words} {_figure(value, unit)}"
            for words, name, unit in figures
            if (value := facts.values.get(name)) is not None
        ]
        if shown:
            source = f" ({facts.source})" if part == "calls" and facts.source else ""
            lines[part] = f"{', '.join(shown)}{source}"
    return lines


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
        "load": [_cause_json(found) for found in judged.load],
        "limit": [_cause_json(found) for found in judged.limit],
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


def _cause_json(found: Finding) -> dict[str, Any]:
    return {
        "rule": found.name,
        "title": found.title,
        "share": found.share,
        "evidence": found.evidence,
        "change": found.remedy,
        "direct": found.direct,
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
