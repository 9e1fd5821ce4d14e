"""`leadline reproduce`: a document's figures as published, as measured here, as models say."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from leadline.cli.console import echo_text, make_console
from leadline.cli.options import AskedPath
from leadline.errors import UsageError


class _DocumentOrPath(AskedPath):
    """A file or result of the user's, or the name of a document that leadline brings along."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name as text, else the path."""
        from leadline.published.document import document_names

        return value if value in document_names() else super().convert(value, param, ctx)


def _scale(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Fraction | None:
    if value is None:
        return None
    try:
        found = Fraction(value)
    except (ValueError, ZeroDivisionError):
        found = Fraction(0)
    if found <= 0:
        raise UsageError(f"--scale {value}: no share of a rate", "write for example: --scale 1/50")
    return found


@click.command(short_help="Compare a document's published values with measured and modelled ones")
@click.argument("document", type=_DocumentOrPath())
@click.option("--measured", type=AskedPath(), metavar="DIR", help="A result to compare with.")
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="SYSTEM=TARGET",
    help="The target that stands for a system of the document.",
)
@click.option(
    "--scale",
    callback=_scale,
    metavar="N/M",
    help="Also show each published rate at this scale, for example 1/50 for a lab's links.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.reproduce/1.")
def command(
    document: Path | str,
    measured: Path | None,
    maps: tuple[str, ...],
    scale: Fraction | None,
    as_json: bool,
) -> None:
    """Show each table of DOCUMENT: castor, fermilab, opencast or suse, a YAML file of published tables, or an
    imported result.

    A row is measured by the cell that the table's `cells` names, such as `{system}.randwrite_{block_size}`.
    """
    from leadline.published.document import document_text, read_document, read_published, read_source
    from leadline.published.reproduced import (
        reproduce,
        reproduction_json,
        reproduction_lines,
        reproduction_table,
    )
    from leadline.report.section_parts import show_texts
    from leadline.report.texts import terminal_text
    from leadline.store.reader import open_result, require_cells
    from leadline.verdict.findings import build_findings

    if isinstance(document, str):
        figures = read_published(document_text(document), f"{document} (built-in)")
    elif document.is_dir():
        result = open_result(document)
        if not result.published:
            raise UsageError(
                f"{document} holds trials, not a document's values", "see it with: leadline show"
            )
        figures = read_document(result)
    else:
        figures = read_published(read_source(document), str(document))
    findings, origin = None, "nothing; give a result with --measured DIR"
    if measured is not None:
        trials = open_result(measured)
        require_cells(measured, trials.manifest)
        findings = build_findings(trials, with_charts=False)
        origin = f"{findings.title} of {findings.created} in {measured}; another machine than the document's"
    tables = reproduce(figures, findings, dict(_pair(text, figures.systems) for text in maps), scale)
    if measured is not None and not any(line.measured for table in tables for line in table.lines):
        raise UsageError(
            f"no cell of {measured} measures a row of {document}",
            "name targets as the document's systems, or give --map SYSTEM=TARGET",
        )
    if as_json:
        echo_text(json.dumps(reproduction_json(figures.title, origin, tables), indent=1))
    else:
        console = make_console()
        for place, line in enumerate(reproduction_lines(figures.title, origin)):
            console.print(terminal_text(line, "" if place else "bold"))
        for table in tables:
            show_texts(reproduction_table(table), console)


def _pair(text: str, systems: tuple[object, ...]) -> tuple[str, str]:
    name, sign, target = text.partition("=")
    known = [str(getattr(system, "name", "")) for system in systems]
    if not sign or name not in known or not target:
        raise UsageError(
            f"--map {text!r} names no system", f"write SYSTEM=TARGET; systems are {', '.join(known)}"
        )
    return name, target
