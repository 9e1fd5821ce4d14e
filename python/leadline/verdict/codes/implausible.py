"""Where bytes came from and went to, and figures above what a limit lets through.

Only limits of link, device or control group that nothing passes are held against a figure (see
`observe.network.interfaces`). What explains the rest is said with it, where it was seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from leadline.analysis.cells import CellTable, compare_cells
from leadline.analysis.chain import JOINED, Bytes, bytes_read, bytes_written, travel_read
from leadline.analysis.statistics.means import Estimate
from leadline.plan.model import PlannedCell
from leadline.store.tables import TrialRow
from leadline.study.target import TargetFacts
from leadline.units import format_rate, format_size, whole_percent
from leadline.verdict.chains import place_words
from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.kinds import judged
from leadline.verdict.model import Code

_COUNTED = ("wire", "osd", "device")


def _cached_reads(case: Case) -> Iterator[Code]:
    """Reads that were answered before they reached the storage: by this host, by a server, by the OSDs."""
    job = case.cell.job
    if not case.good or not case.facts.has_storage or case.facts.in_memory:
        return
    found = case.work.read_cold(job, bytes_read(case.good), case.good)
    if found is None:
        return
    here = _by_this_host(case, found) if case.facts.host_caches else None
    if here is not None:
        yield here
    elif case.facts.behind_server:
        yield from _by_the_server(case, found)
    elif found.osd and found.device is not None:
        inside = _missing_share(found.device, found.osd)
        if inside > catalogue()["cached_reads"].thresholds["share_osd"]:
            yield catalogue()["cached_reads"].fire(
                f"the OSDs read {format_size(found.device)} from their stores for {format_size(found.osd)}"
                f" that they sent: {100 * inside:.0f} % from their caches"
            )


def _by_this_host(case: Case, found: Bytes) -> Code | None:
    """What no wire or device saw came from a cache of this host, where the target can have one."""
    job, kind = case.cell.job, catalogue()["cached_reads"]
    source = _nearest_source(found, behind_server=case.facts.behind_server)
    if source is None:
        fits = case.memory_bytes is None or job.data_set_bytes < case.memory_bytes
        if not job.direct and fits:
            reasons = {reason for name, reason in found.reasons.items() if name in _COUNTED}
            return catalogue()["origin_unknown"].fire("; ".join(sorted(reasons)))
        return None
    words, value = source
    cached = _missing_share(value, found.application)
    if cached <= kind.thresholds["share"]:
        return None
    return kind.fire(
        f"{format_size(value)} {words} for {format_size(found.application)} read:"
        f" {100 * cached:.0f} % from a cache of this host{_together(found)}",
        worse=cached > kind.thresholds["share_invalid"],
    )


def _by_the_server(case: Case, found: Bytes) -> Iterator[Code]:
    """What a gateway was asked for and its cluster's OSDs did not send came from the gateway's memory.

    Where nobody counts behind a server, a data set that its memory could hold leaves its cache open.
    """
    kind, server = catalogue()["cached_reads"], case.facts.server
    if found.osd is not None:
        cached = _missing_share(found.osd, found.application)
        if cached > kind.thresholds["share"]:
            yield kind.fire(
                f"{format_size(found.osd)} came from the OSDs for {format_size(found.application)} read:"
                f" {100 * cached:.0f} % from the gateway's cache{_together(found)}",
                worse=cached > kind.thresholds["share_invalid"],
            )
        return
    memory = None if server is None else server.memory_bytes
    if memory is not None and case.cell.job.data_set_bytes > memory:
        return
    limit = (
        "its memory, which is not known here" if memory is None else f"its memory of {format_size(memory)}"
    )
    size = format_size(case.cell.job.data_set_bytes)
    why = "no cluster is known there" if case.facts.ceph is None else found.reasons["osd"]
    yield catalogue()["origin_unknown"].fire(
        f"the server's cache is not excluded: the data set of {size} would have to be larger than {limit}"
        f" (nothing is counted behind the server: {why})"
    )


def _cold_input(case: Case) -> Iterator[Code]:
    """An input that was to be cold: its readers share it, so that it has to come from storage once at most.

    They may read less than the whole input, so that only next to nothing tells.
    """
    cold = case.work.cold_input(case.cell.job)
    if cold is None or not case.good or case.facts.in_memory:
        return
    found = bytes_read(case.good)
    source = _nearest_source(found, behind_server=False)
    if source is None:
        reasons = {reason for name, reason in found.reasons.items() if name != "application"}
        yield catalogue()["origin_unknown"].fire("; ".join(sorted(reasons)))
        return
    words, value = source
    each = min(cold.bytes, found.application // (cold.readers * len(case.good)))
    wanted = each * len(case.good)
    cached = _missing_share(value, wanted)
    if cached > catalogue()["cached_reads"].thresholds["share_cold"]:
        yield catalogue()["cached_reads"].fire(
            f"a cold start was requested, but {format_size(value)} {words} in {len(case.good)}"
            f" trials. Each trial read at least {format_size(each)}"
        )


def _nearest_source(found: Bytes, *, behind_server: bool) -> tuple[str, int] | None:
    """Where bytes were counted nearest to this host, and the smallest such count.

    Before a server, OSDs are not near: what they did not send, the server may have had.

    A wire's counter may hold what others sent, and so may the OSDs' and the device's: the smallest is nearest
    the truth. What the run's own processes fetched is counted for block devices only.
    """
    near = [
        (count, words)
        for count, words, far in (
            (found.wire, "came over the wire", False),
            (found.osd, "came from the OSDs", behind_server),
        )
        if count is not None and not far
    ]
    if near:
        count, words = min(near)
        return words, count
    if found.device is None or behind_server:
        return None
    if found.own is not None and found.own < found.device:
        return "were fetched by this run's processes", found.own
    return "came from the device", found.device


def _missing_share(seen: int, wanted: int) -> float:
    return 1 - seen / wanted if wanted else 0.0


def _buffered_writes(case: Case) -> Iterator[Code]:
    job = case.cell.job
    if not job.writes or job.direct or not case.good or not case.facts.has_storage or case.facts.in_memory:
        return
    kind = catalogue()["buffered_writes"]
    found = bytes_written(case.good)
    source = next((v for n in ("wire", "device", "osd") if (v := getattr(found, n)) is not None), None)
    if source is None:
        yield kind.fire("writes were buffered, and nothing shows how much of them left memory")
        return
    kept = _missing_share(source, found.application)
    if kept > kind.thresholds["share"]:
        yield kind.fire(
            f"{format_size(found.application)} were written, {format_size(source)} had left memory at the end"
            f"{_together(found)}"
        )


def _together(found: Bytes) -> str:
    """Jobs that ran together share what was observed; the words that say so, or none."""
    return f" ({found.reasons['application']})" if "application" in found.reasons else ""


ORIGIN_RULES: tuple[Rule, ...] = (_cached_reads, _cold_input, _buffered_writes)


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
        f"{whole_percent(place.share)} came from {place_words(place.name, 'read')}"
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


IMPLAUSIBLE_RULES: tuple[Rule, ...] = (implausible,)
