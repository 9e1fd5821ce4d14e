"""Where bytes came from and how far they got, as rows of printed text for terminal, Markdown and HTML."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.report import format as fmt
from leadline.report import tables
from leadline.units import whole_percent
from leadline.verdict.model import Cell, Chain, ChainPlace, Findings

CHAIN_HEADINGS = ("Work", "Target", "Bytes", "Came from, got as far as", "Stored per byte", "Model", "Ratio")

_SHOWN_CELLS_MAX = 3


@dataclass(frozen=True)
class ChainRow:
    """One direction of one cell. `notes` say why places could not be told apart, or were not seen."""

    cell: Cell
    chain: Chain
    places: str
    stored: str
    model: str
    ratio: str
    notes: tuple[str, ...]


def chain_rows(findings: Findings) -> tuple[ChainRow, ...]:
    """Every chain, works in order, targets in the order given."""
    return tuple(
        _row(cell, chain)
        for cells in tables.by_work(findings).values()
        for cell in cells
        for chain in cell.chains
    )


def most_telling(rows: tuple[ChainRow, ...]) -> list[ChainRow]:
    """The rows with most beside the end of their chain first; where that is equal, as they are."""
    return sorted(rows, key=lambda row: -(1 - (row.chain.places[-1].share or 0.0)))


def chain_notes(rows: tuple[ChainRow, ...]) -> tuple[str, ...]:
    """What the rows leave open, each note once with the cells it is about."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for note in row.notes:
            found.setdefault(note, []).append(row.cell.id)
    return tuple(f"{note} ({_some(cells)})" for note, cells in found.items())


def _some(cells: list[str]) -> str:
    rest = len(cells) - _SHOWN_CELLS_MAX
    return ", ".join(cells[:_SHOWN_CELLS_MAX]) + (f" and {rest} more" if rest > 0 else "")


def _row(cell: Cell, chain: Chain) -> ChainRow:
    store = next((place for place in chain.places if place.name in ("store", "device")), None)
    written = chain.direction == "write" and store is not None
    measured = store.bytes_per_byte if written and store is not None else None
    model = store.model if written and store is not None else None
    return ChainRow(
        cell,
        chain,
        ", ".join(_place(place) for place in chain.places if place.share != 0),
        fmt.NO_VALUE if measured is None else fmt.ratio(measured),
        fmt.NO_VALUE if model is None else fmt.ratio(model),
        fmt.NO_VALUE if measured is None or not model else fmt.ratio(measured / model),
        tuple(_notes(chain)),
    )


def _place(place: ChainPlace) -> str:
    why = f" ({place.reason})" if place.share is None and place.reason else ""
    return f"{place.words} {whole_percent(place.share)}{why}"


def _notes(chain: Chain) -> list[str]:
    notes = [f"{place.words}: {place.reason}" for place in chain.places if place.reason]
    if chain.together:
        notes.append(chain.together)
    if chain.model:
        notes.append(f"model of what is stored: {chain.model}")
    if chain.acknowledged:
        notes.append(f"a write is acknowledged {chain.acknowledged}")
    return notes
