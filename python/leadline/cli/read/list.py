"""`leadline list`: the results below a directory, newest last.

The figures of results, by the names that `leadline trend` knows them by.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import complain, echo, echo_text
from leadline.cli.options import AskedPath, RenamedOption
from leadline.cli.read.indexes import enters, indexed_results, say_left_out
from leadline.errors import ResultError
from leadline.units import printable, quoted

if TYPE_CHECKING:
    from leadline.store.index import Indexed
    from leadline.store.reader import Result


_CELLS_SHOWN = 8


def say_figures(directory: Path, figures: Collection[tuple[str, str]], unknown: int) -> None:
    """What `trend` can follow: cells and metrics; `unknown` is how many results have no fresh summary."""
    by_cell: dict[str, list[str]] = {}
    for cell, metric in sorted(figures):
        by_cell.setdefault(cell, []).append(metric)
    if by_cell:
        echo()
        echo(f"metrics, as in: leadline trend {_example(by_cell)} {directory}")
        for cell, metrics in list(by_cell.items())[:_CELLS_SHOWN]:
            echo(printable(f"  {cell}.  {', '.join(metrics)}"))
        if len(by_cell) > _CELLS_SHOWN:
            echo(f"  and of {len(by_cell) - _CELLS_SHOWN} more cells: leadline list --metrics")
    if unknown:
        words = "1 result has" if unknown == 1 else f"{unknown} results have"
        echo(f"{words} no fresh summary, and metrics that are not listed here: leadline list --metrics")


def _example(by_cell: Mapping[str, Sequence[str]]) -> str:
    cell, metrics = next(iter(by_cell.items()))
    return f"'{cell}.{metrics[0]}'"


def list_figures(directory: Path, *, as_json: bool) -> int:
    """Every figure below a directory, with its unit and how many results have it, those of all results."""
    rows, unreadable, notes = indexed_results(directory, lambda _figure: True)
    found: dict[str, list[Indexed]] = {}
    for item in sorted(rows, key=lambda item: item.row.created):
        found.setdefault(f"{item.row.cell}.{item.row.metric}", []).append(item)
    figures = [
        {
            "figure": name,
            "unit": points[-1].row.unit,
            "results": len({item.row.result for item in points}),
            "first": points[0].row.created,
            "last": points[-1].row.created,
        }
        for name, points in sorted(found.items())
    ]
    if as_json:
        echo_text(json.dumps({"format": "leadline.figures/1", "figures": figures}, indent=1))
    elif not figures:
        echo(f"no result below {printable(str(directory))} has metrics")
    else:
        wide = max(len(str(one["figure"])) for one in figures)
        for one in figures:
            count = "1 result" if one["results"] == 1 else f"{one['results']} results"
            echo(printable(f"{one['figure']:<{wide}}  {one['unit']:<4} {count}"))
    for words in notes:
        complain(words)
    return say_left_out(unreadable.values())


_BYTES_MAX = 96 << 20  # of memory for what is read of one result
_RESULTS_MAX, _FIGURES_MAX, _TARGETS_MAX, _TEXT_MAX = 50_000, 10_000, 100, 500


@click.command(short_help="List the results below a directory")
@click.argument("directory", type=AskedPath(exists=True, file_okay=False), default=".")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--metrics",
    "figures",
    cls=RenamedOption,
    former=("--figures",),
    is_flag=True,
    help="List the metrics that `trend` can follow, and how many results have each.",
)
@click.option("--index", is_flag=True, help="Store summaries, which make `list` and `trend` fast.")
def command(directory: Path, as_json: bool, figures: bool, index: bool) -> int:
    """List the results in DIRECTORY and up to three levels below it, and the metrics that `trend` can follow.

    A result that cannot be read is named on standard error, and the exit code is 1.
    """
    from leadline.store.reader import find_results

    if figures:
        return list_figures(directory, as_json=as_json)
    unwritten: list[str] = []
    problems: dict[Path, str] = {}
    if index:
        _, unreadable, unwritten = indexed_results(directory, lambda _figure: False)
        problems |= unreadable
    paths = list(islice(find_results(directory, enter=enters), _RESULTS_MAX + 1))
    if len(paths) > _RESULTS_MAX:
        problems[paths.pop()] = f"{directory} has more than {_RESULTS_MAX} results: name one below it"
    known, named = _from_indexes(paths)
    rows = [known.get(path) or _describe(path, problems) for path in paths]
    rows.sort(key=lambda row: str(row["created"]))
    if as_json:
        echo_text(json.dumps(rows, indent=1))
    else:
        _print(directory, rows)
        studies = sum(row["state"] in ("complete", "interrupted") for row in rows)
        say_figures(directory, named, studies - len(known))
    for words in (*unwritten, *_left_beside({directory, *(path.parent for path in paths)})):
        complain(words)
    return say_left_out(problems.values())


def _left_beside(directories: Iterable[Path]) -> Iterator[str]:
    """What killed commands left of what they were making there, in words."""
    from leadline.store.making import leftovers

    for left in (one for directory in sorted(directories) for one in leftovers(directory)):
        if left.recovery:
            place = left.place if left.certain else left.path
            yield (
                f"{left.path} has the records of a trace that was killed."
                f" Store them: leadline trace --recover {quoted(place)}."
                f" Or remove them: leadline undo {quoted(place)}"
            )
            continue
        yield f"{left.path} was left by a command that was killed" + (
            ": the next result that is made there removes it"
            if left.certain
            else f", or another host is making it; if none is: rm -r {shlex.quote(str(left.path))}"
        )


def _print(directory: Path, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        echo(f"no results below {directory}")
        return
    headings = ("created", "study", "targets", "trials", "state", "path")
    lines: list[tuple[str, ...]] = [("created", "study", "targets", "trials", "state", "directory")]
    for row in rows:
        values = (", ".join(row[key]) if key == "targets" else row[key] for key in headings)
        lines.append(tuple(map(printable, values)))
    widths = [max(map(len, column)) for column in list(zip(*lines, strict=True))[:-1]]
    for *texts, place in lines:  # by hand: rich lays ten thousand lines out in as many milliseconds
        echo("  ".join([*(text.ljust(wide) for text, wide in zip(texts, widths, strict=True)), place]))


def _from_indexes(paths: Sequence[Path]) -> tuple[dict[Path, dict[str, Any]], set[tuple[str, str]]]:
    """What fresh summaries say of their results, and which cells and metrics they have between them."""
    from leadline.store.index import read_heads

    known: dict[Path, dict[str, Any]] = {}
    figures: set[tuple[str, str]] = set()
    for path, head in read_heads(paths):
        known[path] = _row(
            path,
            created=head.created,
            study=head.study,
            targets=head.targets.split(","),
            trials=head.trials,
            state="complete" if head.complete else "interrupted",
        )
        if len(figures) < _FIGURES_MAX:
            figures |= {
                (cell[:_TEXT_MAX], metric[:_TEXT_MAX]) for cell, metric in head.figures[:_FIGURES_MAX]
            }
    return known, figures


def _describe(path: Path, problems: dict[Path, str]) -> dict[str, Any]:
    from leadline.foreign import reading, within_memory
    from leadline.store.reader import open_result

    try:
        with reading(path), within_memory(_BYTES_MAX):
            return _described(path, open_result(path))
    except ResultError as error:
        problems.setdefault(path, error.message)
        return _row(path, state=f"unreadable: {error.message}")


def _described(path: Path, result: Result) -> dict[str, Any]:
    created = str(result.manifest.get("created", ""))
    if result.published:
        return _row(path, created=created, study=result.manifest.get("title", ""), state="published")
    if result.workflows:
        return _row(path, created=created, study=result.manifest.get("title", ""), state="imported")
    if result.traced:
        done = f"{len(result.finished)}/{len(result.finished)}"
        state = "trace" if result.complete else "trace, interrupted"
        return _row(path, created=created, study=result.manifest.get("title", ""), trials=done, state=state)
    plan, finished = result.manifest["plan"], len(result.finished)
    if "search" in result.manifest:  # its plan grew meanwhile, and a target of it was many proposals
        state = "search" if result.complete else "search, interrupted"
        trials = f"{finished}/{finished}"
        return _row(path, created=created, study=plan.get("study", ""), trials=trials, state=state)
    return _row(
        path,
        created=created,
        study=plan.get("study", ""),
        targets=[target["name"] for target in plan.get("targets", [])],
        trials=f"{finished}/{len(plan.get('trials', []))}",
        state="complete" if result.complete else "interrupted",
    )


def _row(path: Path, **known: Any) -> dict[str, Any]:
    """A line of bounded length: a directory that others share has as many as they like."""
    row = {
        "path": str(path),
        **{"created": "", "study": "", "targets": [], "trials": "", "state": ""},
        **known,
    }
    cut: dict[str, Any] = {
        key: value[:_TEXT_MAX] for key, value in row.items() if key not in ("path", "targets")
    }
    return {**row, **cut, "targets": [name[:_TEXT_MAX] for name in row["targets"][:_TARGETS_MAX]]}
