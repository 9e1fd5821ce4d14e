"""`leadline list`: the results below a directory, newest last."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from leadline.cli.console import complain, echo_text, make_console
from leadline.cli.paths import AskedPath
from leadline.cli.read.figures import list_figures, say_figures
from leadline.cli.read.indexes import enters, indexed_results, say_left_out
from leadline.errors import ResultError


@click.command(short_help="List the results below a directory")
@click.argument("directory", type=AskedPath(exists=True, file_okay=False), default=".")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--figures", is_flag=True, help="List what `trend` can follow, and how many results have it.")
@click.option("--index", is_flag=True, help="Store the summaries that make `list` and `trend` quick.")
def command(directory: Path, as_json: bool, figures: bool, index: bool) -> int:
    """List the results in DIRECTORY and up to three levels below it, and the figures that `trend` knows.

    One that cannot be read is listed as such and named on standard error: the exit code is 1 then.
    """
    from leadline.store.reader import find_results

    if figures:
        return list_figures(directory, as_json=as_json)
    unwritten: list[str] = []
    problems: dict[Path, str] = {}
    if index:
        _, unreadable, unwritten = indexed_results(directory, "false", (), lambda _row: False)
        problems |= unreadable
    paths = list(find_results(directory, enter=enters))
    known = _from_indexes(paths)
    rows = [known.get(path) or _describe(path, problems) for path in paths]
    rows.sort(key=lambda row: str(row["created"]))
    if as_json:
        echo_text(json.dumps(rows, indent=1))
    else:
        _print(directory, rows)
        studies = sum(row["state"] in ("complete", "interrupted") for row in rows)
        say_figures(directory, list(known), studies - len(known))
    for words in (*unwritten, *_left_beside({directory, *(path.parent for path in paths)})):
        complain(words)
    return say_left_out(problems.values())


def _left_beside(directories: Iterable[Path]) -> Iterator[str]:
    """What killed commands left of what they were making there, in words."""
    from leadline.store.making import leftovers

    for left in (one for directory in sorted(directories) for one in leftovers(directory)):
        yield f"{left.path} was left by a command that was killed" + (
            ": the next result that is made there removes it"
            if left.certain
            else f", or another host is making it; if none is: rm -r {shlex.quote(str(left.path))}"
        )


def _print(directory: Path, rows: Sequence[dict[str, Any]]) -> None:
    console = make_console()
    if not rows:
        console.print(f"no results below {directory}", markup=False)
        return
    from rich.table import Table
    from rich.text import Text

    from leadline.report.format import printable

    table = Table(box=None, pad_edge=False)
    headings = ("created", "study", "targets", "trials", "state", "path")
    for heading in headings:
        table.add_column("directory" if heading == "path" else heading, overflow="fold")
    for row in rows:
        values = [", ".join(row[key]) if key == "targets" else row[key] for key in headings]
        table.add_row(*(Text(printable(value)) for value in values))
    console.print(table)


def _from_indexes(paths: Sequence[Path]) -> dict[Path, dict[str, Any]]:
    """What the summaries say, one query for all of them; results without a fresh one are left out."""
    from leadline.store.index import FIRST_ROW, INDEX, read_indexes

    if not any((path / INDEX).is_file() for path in paths):
        return {}
    return {
        item.path: {
            "path": str(item.path),
            "created": item.row.created,
            "study": item.row.study,
            "targets": item.row.targets.split(","),
            "trials": item.row.trials,
            "state": "complete" if item.row.complete else "interrupted",
        }
        for item in read_indexes(paths, FIRST_ROW)
    }


def _describe(path: Path, problems: dict[Path, str]) -> dict[str, Any]:
    from leadline.store.reader import open_result

    try:
        result = open_result(path)
    except ResultError as error:
        problems.setdefault(path, error.message)
        return _row(path, state=f"unreadable: {error.message}")
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
    return {
        "path": str(path),
        **{"created": "", "study": "", "targets": [], "trials": "", "state": ""},
        **known,
    }
