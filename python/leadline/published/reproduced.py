"""A document's figures beside what was measured here and what models say, each under its own name.

Models speak where a published row gives them what they need; they never fill in for a figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from leadline.analysis.models import simple as models
from leadline.published.document import COUNTS, DocumentColumn, DocumentRow, DocumentTable, Published
from leadline.published.figures import Range, column_of_kind, groups, is_summary, kinds_of, plain, words
from leadline.units import NO_VALUE, format_size
from leadline.verdict.model import Cell, Findings
from leadline.verdict.sections.section import TextTable

_HEADINGS = ("row", "figure", "published", "measured here", "model")


def reproduction_lines(title: str, origin: str) -> tuple[str, ...]:
    """What stands above the tables; `origin` says where the measured figures are from."""
    return (
        title,
        "published: as the document prints it. model: a reference line, not a measured value.",
        f"measured: {origin}",
    )


def reproduction_table(table: Reproduction) -> TextTable:
    """A table with three labelled columns of figures."""
    rows = []
    for line in table.lines:
        extra = line.published == "-"  # a line that only a model has: its label is the figure's name
        models = "; ".join(value if extra else f"{value} ({label})" for label, value in line.models)
        rows.append((line.row, line.column, line.published, line.measured or NO_VALUE, models or NO_VALUE))
    note = "no cell of a study measures this table" if table.cells is None else ""
    return TextTable(table.title, _HEADINGS, tuple(rows), note=note, spaced=True)


def reproduction_json(title: str, origin: str, tables: Sequence[Reproduction]) -> dict[str, Any]:
    """Format leadline.reproduce/1."""
    return {
        "format": "leadline.reproduce/1",
        "title": title,
        "measured": origin,
        "tables": [
            {
                "name": table.name,
                "title": table.title,
                "cells": table.cells,
                "lines": [
                    {
                        "row": line.row,
                        "figure": line.column,
                        "published": None if line.published == "-" else line.published,
                        "measured": line.measured,
                        "models": [{"label": label, "value": value} for label, value in line.models],
                    }
                    for line in table.lines
                ],
            }
            for table in tables
        ],
    }


@dataclass(frozen=True)
class Modelled:
    """A model's value for one row: of the column `column`, or of something else when that is None."""

    row: DocumentRow
    column: str | None
    label: str
    value: str


def model_rows(published: Published, table: DocumentTable) -> Iterator[Modelled]:
    """Every model that applies to a row of the table."""
    for row in table.rows:
        if not is_summary(row):
            known = kinds_of(published, table, row)
            yield from _closed_loop(table, row, known)
            yield from _writes(row, known)
    yield from _streams(published, table)
    yield from _copies(published, table)


def _closed_loop(table: DocumentTable, row: DocumentRow, known: Mapping[str, Range]) -> Iterator[Modelled]:
    column = column_of_kind(table, "latency")
    if column and "in_flight" in known and "operation_rate" in known:
        seconds = models.closed_loop_latency_s(known["in_flight"].value, known["operation_rate"].value)
        label = "closed loop: queue depth over rate"
        yield Modelled(row, column.name, label, words(Range(seconds, 0, 0, 0, 1), column.unit))


def _protection(known: Mapping[str, Range]) -> models.Protection | None:
    if "copies" in known:
        return models.Protection(copies=int(known["copies"].value))
    if "k" in known and "m" in known and known["k"].value >= 1:
        return models.Protection(k=int(known["k"].value), m=int(known["m"].value))
    return None


def _writes(row: DocumentRow, known: Mapping[str, Range]) -> Iterator[Modelled]:
    """Syncs and network bytes of writes, where the protection is known."""
    protection = _protection(known)
    if protection is None or "rate" not in known or "buffer" in known:
        return
    rate = known["rate"].value
    size = known["object"].value if "object" in known else float(models.STRIPE_OBJECT_BYTES)
    if "block" in known and known["block"].value < size:
        size = known["block"].value
    syncs = models.syncs_per_s(rate, size, protection)
    shown = format_size(size)
    yield Modelled(row, None, f"syncs, at most, with writes of {shown}", plain(Range(syncs, 0, 0, 0, -1)))
    front, back = models.network_bytes(rate, protection)
    total = plain(Range(front + back, 0, 0, 1, -1))
    yield Modelled(row, None, "network, clients' and cluster's, whole stripes", total)


def _streams(published: Published, table: DocumentTable) -> Iterator[Modelled]:
    """Rates by buffer size from the smallest buffer's latency, and from a line through the first two."""
    column = column_of_kind(table, "rate")
    if column is None or column_of_kind(table, "buffer") is None:
        return
    for _, rows in groups(table):
        points = []
        for row in rows:
            known = kinds_of(published, table, row)
            if {"buffer", "rate"} <= set(known) and known["rate"].value > 0:
                points.append((row, known["buffer"].value, known["rate"].value, known.get("link")))
        points.sort(key=lambda point: point[1])
        for place, (row, size, _, link) in enumerate(points):
            latency = points[0][1] / points[0][2]
            bound = models.stream_rate(link.value if link else float("inf"), size, latency)
            if place > 0:
                label = "stream: min(link, buffer / latency of the smallest buffer), an upper bound"
                yield Modelled(row, column.name, label, words(Range(bound, 0, 0, 1, -1), column.unit))
            line = models.line_rate(points[0][1:3], points[1][1:3], size) if place > 1 else None
            if line is not None:
                label = "stream: one request's time in a straight line through the first two"
                yield Modelled(row, column.name, label, words(Range(line, 0, 0, 1, -1), column.unit))


def _copies(published: Published, table: DocumentTable) -> Iterator[Modelled]:
    column = column_of_kind(table, "elapsed")
    if column is None or "processes" not in table.keys:
        return
    for _, rows in groups(table, without="processes"):
        known = [(row, kinds_of(published, table, row)) for row in rows]
        found = [(row, item) for row, item in known if {"processes", "elapsed", "cpus"} <= set(item)]
        if not found:
            continue
        cpus = found[0][1]["cpus"].value
        fitted = models.fit_copies({k["processes"].value: k["elapsed"].value for _, k in found}, cpus)
        for row, item in found if fitted else ():
            compute, shared = fitted or (0.0, 0.0)
            seconds = models.copies_time_s(item["processes"].value, compute, shared, cpus)
            formula = f"{compute:.0f} s max(1, N/{cpus:.0f}) + {shared:.1f} s min(N, {cpus:.0f})"
            label = f"copies: {formula}, fitted up to N = {cpus:.0f}"
            yield Modelled(row, column.name, label, words(Range(seconds, 0, 0, 0, 1), column.unit))


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
