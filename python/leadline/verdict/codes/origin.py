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
    """Reads that no wire or device saw came from a cache of this host; on Ceph, OSDs have caches too."""
    job = case.cell.job
    if not job.reads or not case.good or not case.facts.has_storage or case.facts.in_memory:
        return
    kind = catalogue()["cached_reads"]
    found = case.work.read_cold(job, bytes_read(case.good), len(case.good))
    if found is None:
        return
    source = _nearest_source(found)
    if source is None:
        fits = case.memory_bytes is None or job.data_set_bytes < case.memory_bytes
        if not job.direct and fits:
            reasons = {reason for name, reason in found.reasons.items() if name in _COUNTED}
            yield catalogue()["origin_unknown"].fire("; ".join(sorted(reasons)))
        return
    words, value = source
    cached = _missing_share(value, found.application)
    if cached > kind.thresholds["share"]:
        yield kind.fire(
            f"{format_size(value)} {words} for {format_size(found.application)} read:"
            f" {cached:.0%} from a cache of this host{_together(found)}",
            worse=cached > kind.thresholds["share_invalid"],
        )
    elif found.osd and found.device is not None:
        inside = _missing_share(found.device, found.osd)
        if inside > kind.thresholds["share_osd"]:
            yield kind.fire(
                f"the OSDs read {format_size(found.device)} from their stores for {format_size(found.osd)}"
                f" that they sent: {inside:.0%} from their caches"
            )


def _cold_input(case: Case) -> Iterator[Code]:
    """An input that was to be cold: its readers share it, so that it has to come from storage once at most.

    They may read less than the whole input, so that only next to nothing tells.
    """
    cold = case.work.cold_input(case.cell.job)
    if cold is None or not case.good or case.facts.in_memory:
        return
    found = bytes_read(case.good)
    source = _nearest_source(found)
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


def _nearest_source(found: Bytes) -> tuple[str, int] | None:
    """Where bytes were counted nearest to this host, and the smallest such count.

    A wire's counter may hold what others sent, and so may the OSDs' and the device's: the smallest is nearest
    the truth. What the run's own processes fetched is counted for block devices only.
    """
    near = [
        (count, words)
        for count, words in ((found.wire, "came over the wire"), (found.osd, "came from the OSDs"))
        if count is not None
    ]
    if near:
        count, words = min(near)
        return words, count
    if found.device is None:
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
