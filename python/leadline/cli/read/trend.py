"""`leadline trend`: how a figure went over many results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import complain, echo_text, make_console
from leadline.cli.options import AskedPath, across_jobs_option
from leadline.cli.read.indexes import indexed_results, say_left_out
from leadline.errors import UsageError
from leadline.report.format import plural

if TYPE_CHECKING:
    from rich.console import Console

    from leadline.store.index import Indexed
    from leadline.verdict.comparisons.conditions import Conditions, Differences

_ROWS_SHOWN = 20
_LINE_WIDTH = 60
_COPIES_NAMED = 3
_BARS = "▁▂▃▄▅▆▇█"
_USABLE = ("VALID", "DOUBTFUL")


@click.command(short_help="Show how a metric changed over many results")
@click.argument("figure", metavar="METRIC")
@click.argument("directory", type=AskedPath(exists=True, file_okay=False), default=".")
@click.option("--since", metavar="DATE", help="Only results from this day on, for example 2026-01-31.")
@click.option("--all", "every", is_flag=True, help=f"Show every result, not only the last {_ROWS_SHOWN}.")
@across_jobs_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.trend/1.")
def command(
    figure: str, directory: Path, since: str | None, every: bool, across_jobs: bool, as_json: bool
) -> int:
    """Show METRIC, such as fuse.randread_4k.iops or '*.latency_p99', in the results below DIRECTORY.

    INVALID results are listed but not used. Copies of a result count once. All points of a metric must have
    run the same job, else the exit code is 2. A result that cannot be read is named and left out, and the
    exit code is 1.
    """
    if figure.count(".") < 1:
        raise UsageError(
            f"{figure!r} names no metric", "write TARGET.WORKLOAD.METRIC, for example fuse.*.iops"
        )
    start = _day(since)
    rows, unreadable, notes = indexed_results(directory, _glob(figure))
    series = _series(rows, start)
    if not series:
        say_left_out(unreadable.values())
        raise UsageError(
            f"no result below {directory} has {figure!r}{f' since {since}' if since else ''}",
            "list them with: leadline list --metrics; name one as TARGET.WORKLOAD.METRIC",
        )
    differ = {name: _notes(name, one.points, across_jobs=across_jobs) for name, one in series.items()}
    if as_json:
        echo_text(json.dumps(_as_json(figure, series, differ), indent=1, allow_nan=False))
    else:
        console = make_console()
        for name, one in series.items():
            _print(name, one, differ[name], console, every=every)
    for words in notes:
        complain(words)
    return say_left_out(unreadable.values())


def _glob(pattern: str) -> Callable[[str], bool]:
    from fnmatch import fnmatchcase

    quoted = pattern.replace("[", "[[]")  # our patterns have no brackets
    return lambda figure: fnmatchcase(figure, quoted)


def _day(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a date", "write for example 2026-01-31") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@dataclass(frozen=True)
class _Points:
    """A figure's points, oldest first; `copies` are other directories of a point's result, by its own."""

    points: list[Indexed]
    copies: dict[Path, list[Path]]


def _series(rows: Sequence[Indexed], start: datetime | None) -> dict[str, _Points]:
    """By figure, each result once."""
    found: dict[str, list[Indexed]] = {}
    moments = {item.row.created: _moment(item.row.created) for item in rows}
    for item in sorted(rows, key=lambda item: (moments[item.row.created], str(item.path))):
        if start is None or moments[item.row.created] >= start:
            found.setdefault(f"{item.row.cell}.{item.row.metric}", []).append(item)
    return {name: _once(points) for name, points in found.items()}


def _once(points: Sequence[Indexed]) -> _Points:
    """Of the directories that hold one result the one that knows most of it, in the order of the points.

    One result has one id; a copy with an id of its own was made at the same time and has the same figures to
    their last digit.
    """
    groups: list[list[Indexed]] = []
    known: dict[tuple[object, ...], list[Indexed]] = {}
    for item in points:
        row = item.row
        keys: list[tuple[object, ...]] = [(row.result,)]
        keys += [(row.created, row.value, row.low, row.high)] if row.value is not None else []
        group = next((known[key] for key in keys if key in known), None)
        if group is None:
            group = []
            groups.append(group)
        group.append(item)
        known |= dict.fromkeys(keys, group)
    kept = [max(group, key=lambda item: item.row.journal_bytes) for group in groups]
    copies = {
        one.path: [item.path for item in group if item is not one]
        for one, group in zip(kept, groups, strict=True)
        if len(group) > 1
    }
    return _Points(kept, copies)


def _notes(figure: str, points: Sequence[Indexed], *, across_jobs: bool) -> tuple[str, ...]:
    """What differs between the points of a figure besides their values, as sentences.

    Raises UsageError where they ran different jobs, unless that is asked for (`across_jobs`).
    """
    from leadline.verdict.comparisons.conditions import require_same_jobs

    notes: list[str] = []
    for found, where in _changes([item for item, _ in _usable(points)], notes):
        require_same_jobs(found, where, across=across_jobs, what=figure)
        notes += found.notes()
    return tuple(dict.fromkeys(notes))


def _changes(points: Sequence[Indexed], notes: list[str]) -> Iterator[tuple[Differences, tuple[Path, Path]]]:
    """What differs from each group of points, of the same job and conditions, to the next new one."""
    from leadline.verdict.comparisons.conditions import differences_of

    kinds: dict[tuple[str, str], Indexed] = {}
    for item in points:
        kinds.setdefault((item.row.job, item.row.conditions), item)
    if len(kinds) < 2:
        return  # what reads results takes longer to load than a thousand summaries
    known = [(item, _conditions(item, notes)) for item in kinds.values()]
    read = [(item, conditions) for item, conditions in known if conditions is not None]
    for (first, base), (second, other) in pairwise(read):
        sides = (first.row.created, second.row.created)
        yield differences_of([(first.row.cell, base, other)], sides), (first.path, second.path)


def _conditions(item: Indexed, notes: list[str]) -> Conditions | None:
    from leadline.errors import ResultError
    from leadline.store.reader import check_manifest
    from leadline.verdict.comparisons.conditions import stored_conditions

    try:
        return stored_conditions(item.path, check_manifest(item.path))[item.row.cell]
    except (ResultError, KeyError) as error:
        notes.append(f"which job {item.path} ran is not known: {error}")
        return None


def _usable(points: Sequence[Indexed]) -> list[tuple[Indexed, float]]:
    return [(p, p.row.value) for p in points if p.row.state in _USABLE and p.row.value is not None]


def sparkline(values: Sequence[float]) -> str:
    """One character a value, the lowest and the highest of the series as its ends."""
    low, high = min(values), max(values)
    if high == low:
        return _BARS[3] * len(values)
    return "".join(_BARS[round((value - low) / (high - low) * (len(_BARS) - 1))] for value in values)


def _print(name: str, series: _Points, notes: tuple[str, ...], console: Console, *, every: bool) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from leadline.analysis.statistics.drift import thinned
    from leadline.report.format import printable
    from leadline.units import format_quantity

    points = series.points
    usable = _usable(points)
    unit = points[-1].row.unit
    console.print(Text(printable(name), style="bold"))
    for note in notes:
        console.print(Text(printable(f"NOTE: {note}")))
    if usable:
        values = [value for _, value in usable]
        ends = [format_quantity(value, unit) for value in (min(values), max(values))]
        count = plural(len(values), "result")
        line = sparkline(thinned(values, _LINE_WIDTH))
        console.print(Text(f"{line}  {count}, {ends[0]} to {ends[1]}"))
    console.print(Text(_shift_words(usable, unit)))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for heading in ("made", "value", "95%", "blocks", "validity", "result"):
        table.add_column(heading, overflow="fold")
    shown = points if every else points[-_ROWS_SHOWN:]
    for item in shown:
        row = item.row
        interval = (
            f"{format_quantity(row.low, unit)} to {format_quantity(row.high, unit)}"
            if row.low is not None and row.high is not None
            else ""
        )
        texts = (row.created, format_quantity(row.value, unit), interval, row.blocks, row.state, item.path)
        table.add_row(*(Text(printable(text)) for text in texts))
    console.print(table)
    if len(shown) < len(points):
        console.print(Text(f"{len(points) - len(shown)} earlier results are not shown: --all"))
    if series.copies:
        words = _listed([f"{_listed(copies)} of {path}" for path, copies in series.copies.items()], "; ")
        console.print(Text(printable(f"copies, each result counted once: {words}")))
    console.print()


def _listed(found: Sequence[object], between: str = ", ") -> str:
    """The first few, and how many more."""
    names = [str(one) for one in found[:_COPIES_NAMED]]
    rest = len(found) - len(names)
    return between.join([*names, *([f"{rest} more"] if rest else [])])


def _shift_words(usable: Sequence[tuple[Indexed, float]], unit: str) -> str:
    from leadline.analysis.statistics.drift import POINTS_MIN, level_shift
    from leadline.units import format_quantity

    shift = level_shift([value for _, value in usable])
    if shift is None:
        few = len(usable) < POINTS_MIN
        return (
            f"fewer than {POINTS_MIN} results: too few to find a level shift"
            if few
            else "no level shift found"
        )
    before, after = (format_quantity(value, unit) for value in (shift.median_before, shift.median_after))
    since = usable[shift.before + 1][0].row.created
    return (
        f"level shift: median {before} before {since}, {after} from then on (chance {shift.probability:.2g})"
    )


def _as_json(figure: str, series: dict[str, _Points], notes: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    from leadline.analysis.statistics.drift import level_shift

    found = []
    for name, one in series.items():
        points = one.points
        usable = _usable(points)
        shift = level_shift([value for _, value in usable])
        found.append(
            {
                "figure": name,
                "notes": list(notes[name]),
                "unit": points[-1].row.unit,
                "shift": None
                if shift is None
                else {
                    "first_after": str(usable[shift.before + 1][0].path),
                    "median_before": shift.median_before,
                    "median_after": shift.median_after,
                    "probability": shift.probability,
                },
                "points": [
                    {
                        "path": str(item.path),
                        "result": item.row.result,
                        "created": item.row.created,
                        "value": item.row.value,
                        "low": item.row.low,
                        "high": item.row.high,
                        "blocks": item.row.blocks,
                        "validity": item.row.state,
                        "codes": item.row.codes.split(),
                        "copies": [str(path) for path in one.copies.get(item.path, ())],
                    }
                    for item in points
                ],
            }
        )
    return {"format": "leadline.trend/1", "asked": figure, "series": found}
