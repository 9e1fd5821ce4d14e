"""What chains say that matters: caches that answered reads, writes that stayed behind, amplification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from leadline.analysis.chain import JOINED
from leadline.units import format_number, whole_percent
from leadline.verdict.chains import place_words, vocabulary
from leadline.verdict.model import Cell, Chain, ChainPlace, Statement, TargetView

_NO_CACHE = frozenset({"device", "store", "server", "memory"})  # where a chain ends


def chain_statements(targets: Sequence[TargetView], cells: Sequence[Cell]) -> Iterator[Statement]:
    """At most three sentences for each target: reads, writes, amplification."""
    for target in targets:
        own = [cell for cell in cells if cell.target == target.name]
        yield from _reads(target.name, own)
        yield from _writes(target.name, own)
        yield from _amplified(target.name, own)


def _reads(target: str, cells: Sequence[Cell]) -> Iterator[Statement]:
    said = vocabulary()["said"]["cached_share"]
    found = _beside_the_end(cells, "read", said)
    if found:
        _, cell, chain = found[0]
        yield Statement(
            "finding",
            f"{target}: of the bytes read in {cell.work}, {_shares(chain, 'read', said)}"
            f"{_flag(cell)}{_others(len(found) - 1)}.",
            tuple(f"{c.work}{_flag(c)}: {_all_shares(ch)}" for _, c, ch in found),
            says="reads_from_caches",
        )


def _writes(target: str, cells: Sequence[Cell]) -> Iterator[Statement]:
    said = vocabulary()["said"]["kept_share"]
    found = _beside_the_end(cells, "write", said)
    if found:
        _, cell, chain = found[0]
        yield Statement(
            "finding",
            f"{target}: when the trials of {cell.work} ended, of the bytes written"
            f" {_shares(chain, 'written', said)}, overwritten there or still to go"
            f"{_flag(cell)}{_others(len(found) - 1)}.",
            tuple(f"{c.work}{_flag(c)}: {_all_shares(ch)}" for _, c, ch in found),
            says="writes_kept_back",
        )


def _beside_the_end(cells: Sequence[Cell], direction: str, least: float) -> list[tuple[float, Cell, Chain]]:
    """(share that is not at a chain's end, cell, chain) where it is worth a word, the largest first."""
    found = []
    for cell in cells:
        for chain in cell.chains:
            share = sum(place.share or 0.0 for place in chain.places if not _is_end(place))
            if chain.direction == direction and share >= least:
                found.append((share, cell, chain))
    return sorted(found, key=lambda item: -item[0])


def _is_end(place: ChainPlace) -> bool:
    """Also of places that nothing tells apart: what may have come from the end is not a cache's."""
    return not _NO_CACHE.isdisjoint(place.name.split(JOINED))


def _shares(chain: Chain, kind: str, least: float) -> str:
    way: Literal["read", "written"] = "read" if kind == "read" else "written"
    verb = "came out of" if kind == "read" else "had got no further than"
    parts = [
        f"{whole_percent(place.share)} {verb} {place_words(place.name, way)}"
        for place in chain.places
        if place.share is not None and place.share >= least and not _is_end(place)
    ]
    return " and ".join(parts) if parts else "caches had all"


def _all_shares(chain: Chain) -> str:
    return ", ".join(
        f"{place.words} {whole_percent(place.share)}" for place in chain.places if place.share is not None
    )


def _flag(cell: Cell) -> str:
    return f" ({cell.validity.state})" if cell.validity.state == "INVALID" else ""


def _others(count: int) -> str:
    return "" if count == 0 else f"; likewise in {count} more {'work' if count == 1 else 'works'}"


def _amplified(target: str, cells: Sequence[Cell]) -> Iterator[Statement]:
    """What the OSDs' stores wrote per byte written, the furthest from its model first."""
    found = []
    for cell in cells:
        for chain in cell.chains if cell.validity.state not in ("INVALID", "NOT_RUN") else ():
            store = next((p for p in chain.places if p.name == "store"), None)
            pure = chain.direction == "write" and len(cell.chains) == 1
            if pure and store is not None and store.bytes_per_byte and store.model:
                found.append((store.bytes_per_byte / store.model, cell, store, chain))
    if not found:
        return
    found.sort(key=lambda item: (-item[0], item[1].work))
    ratio, cell, store, chain = found[0]
    far = ratio >= vocabulary()["said"]["amplified"]
    more = f", {format_number(ratio)} times that" if far else ""
    cost, modelled = format_number(store.bytes_per_byte or 0), format_number(store.model or 0)
    yield Statement(
        "finding",
        f"{target}: each byte written in {cell.work} cost {cost} on the OSDs' stores, where the model says"
        f" {modelled}{more} ({chain.model}).",
        tuple(
            f"{c.work}: {format_number(s.bytes_per_byte or 0)} bytes per byte,"
            f" {format_number(s.model or 0)} by the model, {format_number(r)} times it"
            for r, c, s, _ in found
        ),
        says="writes_amplified",
        cells=(cell.id,),
    )
