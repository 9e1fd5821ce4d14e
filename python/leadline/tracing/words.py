"""A trace in sentences: what was lost, where the time went, what is wrong with it, what it would save."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from leadline import units
from leadline.tracing.figures import KINDS
from leadline.tracing.mapped import mapped_words
from leadline.tracing.model import TraceFinding, TraceView
from leadline.tracing.tables import LAST_SEEN
from leadline.verdict.model import Statement

WORDS = {"read": "reading", "write": "writing", "meta": "metadata", "sync": "syncs", "compute": "computing"}
_FINDINGS_SAID = 6
_SHARE_SAID = 0.002  # of all process time: less is in the report only
# What of these found no room is in the totals of its process.
_COUNTED = frozenset(("files", "names", "segments", "histograms"))
_BLIND = {
    "io_uring": "io_uring seen in {processes}: what goes through its rings is not counted: use --via bpf",
    "record truncated": "the records of {processes} are cut short",
    "chroot": "{processes} changed the root: children of it may be missing",
}


def blind_words(note: str, count: int) -> str | None:
    """What a note of processes means for the figures; None where it is for information only."""
    processes = "1 process" if count == 1 else f"{count} processes"
    if note.startswith("static child "):
        return f"{note.removeprefix('static child ')} is linked statically and was not followed ({processes})"
    name, _, detail = note.partition(": ")
    template = _BLIND.get(name)
    if template is None:
        return None
    return template.format(processes=processes) + (f" ({detail})" if detail else "")


def lost_words(lost: Mapping[str, int]) -> str:
    """What losses mean for totals of bytes."""
    missing = [kind for kind in lost if kind not in _COUNTED]
    if not missing:
        return "bytes in totals still count them"
    return f"what was moved by those of {', '.join(missing)} is in no total of bytes"


def statements(view: TraceView, cell: str) -> Iterator[Statement]:
    """What was lost first; then the headline, the findings, and what the reader must bear in mind."""
    yield from _losses(view)
    if not view.processes:
        return
    yield Statement("headline", _headline(view), _evidence(view), says="trace_time", cells=(cell,))
    for item in said(view):
        yield _finding(item, view, cell)
    yield from _cautions(view)
    yield from _ends(view)


def _ends(view: TraceView) -> Iterator[Statement]:
    count = sum(item.end == LAST_SEEN for item in view.processes)
    if count:
        who = "1 process" if count == 1 else f"{count:,} processes"
        text = f"The end of {who} is not known: its life counts to the last that was recorded of it."
        if count > 1:
            text = text.replace("its life counts", "their lives count").replace("of it.", "of them.")
        yield Statement("caution", text, says="trace_last_seen")


def said(view: TraceView) -> tuple[TraceFinding, ...]:
    """The findings that matter: few, and not those whose whole cost is next to nothing."""
    floor_s = view.whole.base_s * _SHARE_SAID
    costly = [item for item in view.findings if item.cost_s is None or item.cost_s >= floor_s]
    return tuple(costly[:_FINDINGS_SAID])


def _losses(view: TraceView) -> Iterator[Statement]:
    if not view.processes:
        yield Statement(
            "caution",
            "Nothing of the command was recorded: no figure below says that it did no I/O.",
            view.warnings,
            says="trace_empty",
        )
        return
    if view.lost:
        total = sum(view.lost.values())
        kinds = tuple(f"{kind}: {count:,}" for kind, count in view.lost.items())
        yield Statement(
            "caution", f"{total:,} records were lost; {lost_words(view.lost)}.", kinds, says="trace_lost"
        )
    for text in view.warnings:
        yield Statement("caution", text, says="trace_warning")
    for note, count in view.notes.items():
        words = blind_words(note, count)
        if words:
            yield Statement("caution", f"{words[:1].upper()}{words[1:]}.", says="trace_blind")
    if view.mapped.files:
        words = mapped_words(view.mapped, computing=view.whole.compute is not None)
        yield Statement("caution", f"{words}.", says="trace_mapped")


def _headline(view: TraceView) -> str:
    runs = [copy.run_s for copy in view.copies if copy.run_s is not None]
    several = len(view.copies) > 1
    who = f"{len(view.copies)} copies ran at once" if several else "The command ran"
    if runs:
        mean = sum(runs) / len(runs)
        who += f" for {units.format_duration(mean)}{' on average' if several else ''}"
    parts = [
        f"{units.format_percent(share)} {WORDS[kind]}"
        for kind in KINDS
        if (share := getattr(view.whole, kind)) is not None and share >= 0.0005
    ]
    if view.whole.compute is not None:
        parts.append(f"{units.format_percent(view.whole.compute)} computing (the remainder)")
    elif not view.whole.overlapped:
        return f"{who}; the trace does not say how long its I/O took."
    return f"{who}: {', '.join(parts)}." if parts else f"{who}."


def _evidence(view: TraceView) -> tuple[str, ...]:
    speed = view.speeds
    found = [
        f"{units.format_size(speed.bytes_read)} read, {units.format_size(speed.bytes_written)} written"
        f" by {_count(len(view.processes), 'process', 'processes')}"
        f" in {_count(view.files_count, 'file', 'files')}"
    ]
    if speed.wall_throughput is not None:
        found.append(f"{units.format_rate(speed.wall_throughput)} over the run time")
    if speed.agg_perf_by_slowest is not None:
        found.append(
            f"{units.format_rate(speed.agg_perf_by_slowest)} over the I/O time of the slowest process"
            " (agg_perf_by_slowest, POSIX layer)"
        )
    return tuple(found)


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _finding(item: TraceFinding, view: TraceView, cell: str) -> Statement:
    where = "" if item.count == 1 else f" in {item.count:,} places"
    text = f"{item.title[:1].upper()}{item.title[1:]}{where}: {cost_words(item, view)}. {item.change}"
    return Statement("finding", text, item.examples, says=f"rule_{item.rule}", cells=(cell,))


def cost_words(item: TraceFinding, view: TraceView) -> str:
    """The estimate with its share of all time, and what it rests on."""
    if item.cost_s is None:
        return "its cost is not known, as the trace has no times"
    base = view.whole.base_s
    share = f", {units.format_percent(item.cost_s / base)} of all process time" if base > 0 else ""
    return f"up to {units.format_duration(item.cost_s)}{share} (estimate: {item.how})"


def _cautions(view: TraceView) -> Iterator[Statement]:
    failed = [copy for copy in view.copies if copy.ended not in ("exit code 0", "unknown", "exec", "running")]
    for copy in failed[:3]:
        name = f"Copy {copy.copy}" if len(view.copies) > 1 else "The command"
        yield Statement("caution", f"{name} ended with {copy.ended}.", says="trace_ended")
    if view.whole.overlapped:
        yield Statement(
            "caution",
            "I/O overlapped: threads were in it for longer than their process lived, or requests were under"
            " way beside the program (asynchronous I/O). How much was computed meanwhile is not known.",
            says="trace_overlapped",
        )
    elif view.whole.compute is not None:
        yield Statement(
            "caution",
            "Computing is the remainder: it holds waiting for anything but files, too.",
            (f"shares are of {view.whole.basis}, {units.format_duration(view.whole.base_s)}",),
            says="trace_remainder",
        )
    more = len(view.findings) - len(said(view))
    if more:
        text = f"{_count(more, 'smaller finding stands', 'smaller findings stand')} in the report."
        yield Statement("caution", text, says="trace_more_findings")
