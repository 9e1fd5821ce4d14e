"""A document's figures beside what was measured here and what models say, each under its own name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from leadline.published.document import COUNTS, DocumentColumn, DocumentRow, DocumentTable, Published
from leadline.published.figures import plain, words
from leadline.published.formula import Range
from leadline.published.models import Modelled, model_rows
from leadline.verdict.model import Cell, Findings

_METRICS = {"rate": "bandwidth", "operation_rate": "iops", "latency": "latency_mean", "elapsed": "elapsed"}


@dataclass(frozen=True)
class ReproducedLine:
    """One figure: as published, as measured here (None: nobody measured it), as models say."""

    row: str
    column: str
    published: str
    measured: str | None
    models: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Reproduction:
    """One table of a document; `cells` is how its rows are found among measured cells, or None."""

    name: str
    title: str
    cells: str | None
    lines: tuple[ReproducedLine, ...]


def reproduce(
    document: Published, measured: Findings | None, names: Mapping[str, str], scale: Fraction | None = None
) -> tuple[Reproduction, ...]:
    """Every table. `names` maps the document's systems to the measured targets where they differ.

    At `scale` each published rate is given too: what it would be where every link has that share of its rate.
    """
    cells = {cell.id: cell for cell in measured.cells} if measured else {}
    return tuple(_table(document, table, cells, names, scale) for table in document.tables)


def _table(
    document: Published,
    table: DocumentTable,
    cells: Mapping[str, Cell],
    names: Mapping[str, str],
    scale: Fraction | None,
) -> Reproduction:
    modelled = list(model_rows(document, table))
    lines = []
    for row in table.rows:
        cell = cells.get(_cell_id(table, row, names) or "")
        own = [item for item in modelled if item.row is row]
        for column in table.columns:
            if column.name in row.figures and column.unit != "clock" and column.kind not in COUNTS:
                lines.append(_line(row, column, cell, own, scale))
        for item in own:
            if item.column is None:
                lines.append(ReproducedLine(_levels(row), item.label, "-", None, ((item.label, item.value),)))
    return Reproduction(table.name, table.section or table.name, table.cells, tuple(lines))


def _levels(row: DocumentRow) -> str:
    return ", ".join(level for _, level in row.keys)


def _cell_id(table: DocumentTable, row: DocumentRow, names: Mapping[str, str]) -> str | None:
    """The cell that measures a row: the table's pattern with the row's levels in it."""
    found = table.cells
    if found is None:
        return None
    for key, level in row.keys:
        found = found.replace("{" + key + "}", names.get(level, level))
    return found


def _line(
    row: DocumentRow, column: DocumentColumn, cell: Cell | None, own: list[Modelled], scale: Fraction | None
) -> ReproducedLine:
    models = tuple((item.label, item.value) for item in own if item.column == column.name)
    figure = row.figures[column.name]
    if scale is not None and figure.dimension == "B/s":
        small = plain(Range(figure.value * float(scale), 0, 0, 1, -1))
        bound = figure.text[:1] if figure.text[:1] in (">", "<") else ""
        models = ((f"as published, at {scale}", f"{bound}{small}"), *models)
    return ReproducedLine(
        _levels(row), column.name, row.figures[column.name].words, _measured(column, cell), models
    )


def _measured(column: DocumentColumn, cell: Cell | None) -> str | None:
    """The measured value in the document's unit, with its validity and interval."""
    name = _METRICS.get(column.kind, column.name)
    item = cell.metrics.get(name) if cell else None
    if cell is None or item is None or column.part_of is not None:
        return None
    state = "" if cell.validity.state == "VALID" else f" {cell.validity.state}"
    if item.value is None:
        return f"not measured: {item.reason}{state}"
    factor = 1e-9 if item.unit == "ns" else 1.0
    powers = {"B/s": (1, -1), "1/s": (0, -1), "ns": (0, 1), "s": (0, 1), "B": (1, 0)}.get(item.unit, (0, 0))

    def shown(value: float) -> str:
        return words(Range(value * factor, 0, 0, *powers), column.unit)

    if item.low is None or item.high is None:
        return f"{shown(item.value)} (n={item.blocks}){state}"
    return f"{shown(item.value)} ({shown(item.low)} to {shown(item.high)}, {item.blocks} blocks){state}"
