"""Where a cell's bytes came from and how far they got, place by place, beside what models say; and what of
that matters: caches that answered reads, writes that stayed behind, amplification.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

from leadline.analysis.chain import JOINED, NOBODY, Travel, travel_read, travel_written
from leadline.analysis.models.simple import STRIPE_UNIT_BYTES, Protection, small_write_amplification
from leadline.knowledge.tables import table_of
from leadline.plan.model import PlannedCell
from leadline.store.tables import TrialRow
from leadline.study.target import CephAccess, TargetFacts
from leadline.units import exact_size, format_count, format_number, format_times, whole_percent
from leadline.verdict.kinds import judged
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
            f" {_shares(chain, 'written', said)}{_flag(cell)}{_others(len(found) - 1)}. They were overwritten"
            " there or not yet written back.",
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
    """Also of places that nothing distinguishes: what may have come from the end is not a cache's."""
    return not _NO_CACHE.isdisjoint(place.name.split(JOINED))


def _shares(chain: Chain, kind: str, least: float) -> str:
    way: Literal["read", "written"] = "read" if kind == "read" else "written"
    verb = "came from" if kind == "read" else "had reached only"
    parts = [
        f"{whole_percent(place.share)} {verb} {place_words(place.name, way)}"
        for place in chain.places
        if place.share is not None and place.share >= least and not _is_end(place)
    ]
    return " and ".join(parts) if parts else "caches held all"


def _all_shares(chain: Chain) -> str:
    return ", ".join(
        f"{place.words} {whole_percent(place.share)}" for place in chain.places if place.share is not None
    )


def _flag(cell: Cell) -> str:
    return f" ({cell.validity.state})" if cell.validity.state == "INVALID" else ""


def _others(count: int) -> str:
    return "" if count == 0 else f"; likewise in {format_count(count, 'more workload')}"


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
    more = f", {format_times(ratio)} the model" if far else ""
    cost, modelled = format_number(store.bytes_per_byte or 0), format_number(store.model or 0)
    yield Statement(
        "finding",
        f"{target}: the OSDs' stores wrote {cost} bytes for each byte written in {cell.work}{more}. The model"
        f" gives {modelled} ({chain.model}).",
        tuple(
            f"{c.work}: {format_number(s.bytes_per_byte or 0)} bytes per byte,"
            f" {format_number(s.model or 0)} by the model, {format_times(r)} the model"
            for r, c, s, _ in found
        ),
        says="writes_amplified",
        cells=(cell.id,),
    )


_BEHIND_THE_HOST = ("gateway", "wire", "osd", "server", "device")


@cache
def vocabulary() -> dict[str, Any]:
    """The words and thresholds of `chain.yaml`."""
    return table_of("leadline.verdict", "chain.yaml")


def place_words(name: str, kind: Literal["short", "read", "written"]) -> str:
    """A place's name in words; several that nothing tells apart are joined by "or"."""
    places = vocabulary()["places"]
    return " or ".join(str(places[part][kind]) for part in name.split(JOINED))


def chains_of(
    cell: PlannedCell, facts: TargetFacts, trials: Sequence[TrialRow], others: Mapping[str, str] = NOBODY
) -> tuple[Chain, ...]:
    """A chain for each direction in which the cell moved bytes.

    `others` has the columns whose counts are not this run's, with the reason: no ratio is made of them.
    """
    job, kind = cell.job, judged(cell.kind)
    direct = job.direct and facts.direct_io
    found = []
    read = travel_read(trials, facts, direct, others)
    if read is not None:
        found.append(Chain("read", read.application, _places(read, {}), together=read.together))
    protection = protection_of(facts.ceph)
    one_by_one = direct or kind.sent_one_by_one(job)
    sizes = kind.write_sizes(job) if one_by_one else ()
    stored = None if protection is None else _stored_per_byte(sizes, protection)
    written = travel_written(trials, facts, direct, stored, others)
    if written is not None:
        models = dict.fromkeys(_BEHIND_THE_HOST, 1.0) | ({} if stored is None else {"store": stored})
        found.append(
            Chain(
                "write",
                written.application,
                _places(written, models),
                acknowledged=_acknowledged(facts, direct, kind.syncs_each(job)),
                model=None
                if protection is None or stored is None
                else _model_words(stored, one_by_one, protection),
                together=written.together,
            )
        )
    return tuple(found)


def protection_of(ceph: CephAccess | None) -> Protection | None:
    """How a pool keeps its data; None where that is not known."""
    if ceph is None:
        return None
    if ceph.protection == "erasure":
        return Protection(k=ceph.k, m=ceph.m) if ceph.k and ceph.m else None
    return Protection(copies=ceph.size) if ceph.size else None


def _places(travel: Travel, models: dict[str, float]) -> tuple[ChainPlace, ...]:
    return tuple(
        ChainPlace(
            name=place.name,
            words=place_words(place.name, "short"),
            share=place.share,
            bytes=place.entered,
            bytes_per_byte=None if place.entered is None else place.entered / travel.application,
            model=models.get(place.name.split(JOINED)[0]),
            reason=place.reason,
        )
        for place in travel.places
    )


def _stored_per_byte(sizes: Sequence[tuple[int, float]], protection: Protection) -> float:
    """`sizes` in which OSDs get it, with their shares; none where that is not known: as of large writes."""
    if not sizes:
        return protection.amplification
    return sum(share * small_write_amplification(size, protection) for size, share in sizes)


def _model_words(stored: float, one_by_one: bool, protection: Protection) -> str:
    whole = protection.amplification
    if protection.copies is not None:
        kept = f"{protection.copies} replicas: {format_number(whole)}"
        extent = "extents of 4 KiB"
    else:
        kept = f"erasure coding {protection.k}+{protection.m}: {format_number(whole)}"
        extent = f"stripes of {exact_size((protection.k or 1) * STRIPE_UNIT_BYTES)}"
    if stored > whole:
        kept += f"; writes this small fill whole {extent}: {format_number(stored)}"
    elif not one_by_one:
        kept += "; buffered writes may be merged before they are sent"
    return f"{kept}. Not counted: the stores' write-ahead log and metadata"


def _acknowledged(facts: TargetFacts, direct: bool, syncs_each: bool) -> str:
    words: dict[str, str] = vocabulary()["acknowledged"]
    if facts.in_memory:
        return words["memory"]
    clustered = facts.ceph is not None and not facts.behind_server
    behind = words["local"] if facts.is_local else words["ceph" if clustered else "server"]
    if direct:
        return behind
    return f"{words['synced']}: {behind}" if syncs_each else words["buffered"]
