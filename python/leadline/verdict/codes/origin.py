"""Where bytes came from and went to: caches that answered, and memory that kept what was written."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.analysis.origin import Bytes, bytes_read, bytes_written
from leadline.units import format_size
from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
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
                f" that they sent: {inside:.0%} from their caches"
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
        f" {cached:.0%} from a cache of this host{_together(found)}",
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
                f" {cached:.0%} from the gateway's cache{_together(found)}",
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
            f"a cold start was asked for; {format_size(value)} {words} in {len(case.good)} trials, each of"
            f" which read at least {format_size(each)}"
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


RULES: tuple[Rule, ...] = (_cached_reads, _cold_input, _buffered_writes)
