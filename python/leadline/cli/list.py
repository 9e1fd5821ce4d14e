"""`leadline list`: the results below a directory, newest last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from leadline.cli.console import make_console
from leadline.errors import ResultError


@click.command(short_help="List the results below a directory")
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(directory: Path, as_json: bool) -> None:
    """List the results in DIRECTORY and up to three levels below it."""
    from leadline.store.reader import find_results

    rows = sorted((_describe(path) for path in find_results(directory)), key=lambda row: str(row["created"]))
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    console = make_console()
    if not rows:
        console.print(f"no results below {directory}", markup=False)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("created", "study", "targets", "trials", "state", "directory"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        values = (
            row["created"],
            row["study"],
            ", ".join(row["targets"]),
            row["trials"],
            row["state"],
            row["path"],
        )
        table.add_row(*(Text(str(value)) for value in values))
    console.print(table)


def _describe(path: Path) -> dict[str, Any]:
    from leadline.store.reader import open_result

    try:
        result = open_result(path)
    except ResultError as error:
        return {
            "path": str(path),
            "created": "",
            "study": "",
            "targets": [],
            "trials": "",
            "state": f"unreadable: {error.message}",
        }
    if result.published:
        return {
            "path": str(path),
            "created": result.manifest.get("created", ""),
            "study": result.manifest.get("title", ""),
            "targets": [],
            "trials": "",
            "state": "published",
        }
    plan = result.manifest["plan"]
    return {
        "path": str(path),
        "created": result.manifest.get("created", ""),
        "study": plan.get("study", ""),
        "targets": [target["name"] for target in plan.get("targets", [])],
        "trials": f"{len(result.finished)}/{len(plan.get('trials', []))}",
        "state": "complete" if result.complete else "interrupted",
    }
