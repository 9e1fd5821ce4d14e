"""The code `implausible`: above what a limit lets through, random before sequential, a gateway before Ceph.

Only limits of link, device or control group that nothing passes are held against a figure (see
`observe.mounts.limits`). What explains the rest is said with it, where it was seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from leadline.analysis.cells import CellTable, compare_cells
from leadline.analysis.chain import JOINED, travel_read
from leadline.analysis.origin import bytes_read
from leadline.analysis.statistics.means import Estimate
from leadline.plan.model import PlannedCell
from leadline.store.tables import TrialRow
from leadline.study.target import TargetFacts
from leadline.units import format_rate, whole_percent
from leadline.verdict.chains import place_words
from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.kinds import judged
from leadline.verdict.model import Code

_NOT_SEEN = "what explains it was not seen"
_WIRE = "wire_limit_bytes_per_s"
_DEVICE = {"read": "device_read_limit_bytes_per_s", "write": "device_write_limit_bytes_per_s"}


def implausible(case: Case) -> Iterator[Code]:
    """Fires on the trial whose figure is furthest above its limit."""
    if not case.facts.has_storage or case.facts.in_memory:
        return
    kind = catalogue()["implausible"]
    found = [
        (
            rate / limit,
            f"{format_rate(rate)} {direction} in {trial.trial}, {words} at most {format_rate(limit)}",
        )
        for trial in case.good
        if trial.measured_ns >= kind.thresholds["seconds"] * 1e9
        for direction, rate, limit, words in _held_against(case, trial)
    ]
    ratio, evidence = max(found, default=(0.0, ""))
    if ratio > kind.thresholds["factor"]:
        yield kind.fire(f"{evidence}: {_explained(case.cell, case.good, case.facts, near=True)}", worse=True)
    elif case.outran:
        yield kind.fire(case.outran)


def outrunning(
    cells: Sequence[PlannedCell], tables: Mapping[str, CellTable], facts: Mapping[str, TargetFacts]
) -> dict[str, str]:
    """Cells of random reads that moved more than larger sequential ones of the same target did, and how.

    With no more in flight and all else alike no storage does that; a cache that only they fit into does.
    """
    limits = catalogue()["implausible"].thresholds
    found: dict[str, str] = {}
    for small, large in product(cells, cells):
        if not _comparable(small, large) or not {small.id, large.id} <= tables.keys():
            continue
        words = judged(small.kind).must_be_slower(small.job, large.job, limits["sizes"])
        ratio = compare_cells(tables[large.id], tables[small.id], "bandwidth") if words else None
        seen = None if ratio is None else ratio.estimate()
        if words and seen is not None and seen.low is not None and seen.low > limits["outran"]:
            found[small.id] = (
                f"{words[0]} moved {seen.value:.3g} times as much as {words[1]} in {large.id}"
                f" ({_at_least(seen)}): {_explained(small, tables[small.id].good, facts[small.target])}"
            )
    return found


def overtaking(
    cells: Sequence[PlannedCell], tables: Mapping[str, CellTable], facts: Mapping[str, TargetFacts]
) -> dict[str, str]:
    """Reads through a gateway that were quicker than every way to its own cluster without it, and how.

    What a gateway gives it has had from the cluster first. It may read ahead with more in flight than the
    others had, which is no cache: then the OSDs sent all of it.
    """
    factor = catalogue()["implausible"].thresholds["factor"]
    found: dict[str, str] = {}
    for through in cells:
        direct = [cell for cell in cells if _passes_by(through, cell, facts) and cell.id in tables]
        if through.id not in tables or not direct:
            continue
        ratios = [compare_cells(tables[cell.id], tables[through.id], "bandwidth") for cell in direct]
        seen = [None if ratio is None else ratio.estimate() for ratio in ratios]
        lows = [one.low if one is not None and one.low is not None else 0.0 for one in seen]
        if min(lows) <= factor or _all_from_osds(tables[through.id].good):
            continue
        place = lows.index(min(lows))
        least = seen[place]
        if least is not None:
            why = _explained(through, tables[through.id].good, facts[through.target])
            found[through.id] = (
                f"{least.value:.3g} times as quick as {direct[place].id}, which goes to the same cluster"
                f" without the gateway ({_at_least(least)}): {why}"
            )
    return found


def _passes_by(through: PlannedCell, other: PlannedCell, facts: Mapping[str, TargetFacts]) -> bool:
    """True for the same reads, through a gateway and past it."""
    one, two = facts[through.target], facts[other.target]
    same_cluster = one.ceph is not None and two.ceph is not None and one.ceph.conf == two.ceph.conf
    same_work = (through.kind, through.work) == (other.kind, other.work) and through.job.reads_only
    alone = through.group is other.group is None
    return same_work and same_cluster and alone and one.behind_server and two.on_cluster


def _all_from_osds(trials: Sequence[TrialRow]) -> bool:
    found = bytes_read(trials)
    share = 1 - catalogue()["cached_reads"].thresholds["share"]
    return found.osd is not None and found.osd >= share * found.application


def _at_least(seen: Estimate) -> str:
    return f"at least {seen.low:.3g} times, {seen.count} blocks"


def _explained(
    cell: PlannedCell, trials: Sequence[TrialRow], target: TargetFacts, *, near: bool = False
) -> str:
    """The cache that was seen to answer, or that none was; `near`: of this host, before link and device."""
    travel = travel_read(trials, target, cell.job.direct and target.direct_io)
    least = catalogue()["cached_reads"].thresholds["share"]
    caches = [
        f"{whole_percent(place.share)} came out of {place_words(place.name, 'read')}"
        for place in (travel.places if travel else ())
        if place.share is not None and place.share > least and "cache" in place_words(place.name, "short")
        if not near or set(place.name.split(JOINED)) <= set(target.host_caches)
    ]
    return " and ".join(caches) or _NOT_SEEN


def _comparable(small: PlannedCell, large: PlannedCell) -> bool:
    """Of one kind, on one target, and each alone on it."""
    return (small.kind, small.target) == (large.kind, large.target) and small.group is large.group is None


def _held_against(case: Case, trial: TrialRow) -> Iterator[tuple[str, float, int, str]]:
    """(direction, rate, limit, words) for every limit that binds what this trial moved."""
    sources = json.loads(trial.sources)
    for direction, amount in (("read", trial.read_bytes), ("write", trial.write_bytes)):
        rate = amount / (trial.measured_ns / 1e9)
        names = [_WIRE] if _wire_binds(case) else []
        names += [_DEVICE[direction]] if _device_binds(case, direction) else []
        for name in names:
            limit = getattr(trial, name)
            if limit is not None and amount:
                words = sources.get(name, "its limit")
                yield {"read": "read", "write": "written"}[direction], rate, limit, f"{words} allows"


def _wire_binds(case: Case) -> bool:
    """A client may compress what it sends: then data that can be compressed passes a link faster."""
    return case.cell.job.incompressible


def _device_binds(case: Case, direction: str) -> bool:
    """Buffered writes end in memory, which their own code says; reads are never of memory."""
    return direction == "read" or case.cell.job.direct


RULES: tuple[Rule, ...] = (implausible,)
