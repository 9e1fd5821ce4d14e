"""What the models say where a published row gives them what they need; they never fill in for a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from leadline.analysis.models import simple as models
from leadline.published.document import DocumentRow, DocumentTable, Published
from leadline.published.figures import column_of_kind, groups, is_summary, kinds_of, plain, words
from leadline.published.formula import Range
from leadline.units import format_size


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
        label = "closed loop: in flight over rate"
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
