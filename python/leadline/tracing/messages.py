"""A trace in sentences: what was lost, where the time went, what is wrong with it, what it would save."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from leadline import units
from leadline.tracing.figures import Share, unseen_words
from leadline.tracing.mapped import mapped_words, others_words
from leadline.tracing.model import TraceFinding, TraceView
from leadline.tracing.rules import limits
from leadline.tracing.slowest import CAUSES
from leadline.tracing.tables import KINDS, LAST_SEEN
from leadline.verdict.model import Statement

WORDS = {
    "read": "reading",
    "write": "writing",
    "meta": "metadata",
    "sync": "syncs",
    "compute": "computing",
    "wait": "waiting",
    "rest": "outside of file calls",
}
_CAUSES_SAID = 2
_SLOWEST_SAID = 0.2  # of the run
_SLOWEST_APART = 1.5  # times the mean
_CAUSE_SAID = 0.02  # of all process time
_FINDINGS_SAID = 6
_SHARE_PRINTED = 0.0005
_ALIKE = 0.95  # process time and run time so near each other are one
_BASE_APART = 0.05  # of the run: a base of shares that is further from it is named
_SHARE_SAID = 0.002  # of all process time: less is in the report only
# What of these found no room is in the totals of its process.
_COUNTED = frozenset(("files", "names", "segments", "histograms"))
# What a note means, by the tracer that wrote it. Imports say such things in warnings of their own.
_RINGS = "what {processes} moved through io_uring is not counted: use --via bpf"
_BLIND = {
    "streams of the C library were not followed": "{processes} ran with a C library whose streams"
    " (printf, fread) cannot be followed: what they moved is not counted; use --via bpf",
    "record truncated": "the records of {processes} are cut short",
    "chroot": "{processes} changed the root: children of it may be missing",
    "32-bit program": "{processes} ran a 32-bit program, whose calls no tracer here counts",
}
_DETAILED = frozenset(("record truncated", "streams of the C library were not followed"))
_BLIND_OF = {"preload": {"io_uring": _RINGS}}
# Static programs that read the system's own files only, as many programs run them to find libraries.
_HARMLESS = frozenset(("ldconfig", "ldconfig.real"))


def blind_words(note: str, count: int, mode: str) -> str | None:
    """What a note of processes means for the figures; None where it is for information only.

    `mode` is what wrote the note: what one tracer does not see is counted by the other.
    """
    processes = "1 process" if count == 1 else f"{count} processes"
    if note.startswith("static child "):
        child = note.removeprefix("static child ")
        if child.rpartition("/")[2] in _HARMLESS:
            return None
        return f"{child} is linked statically and was not followed ({processes}): use --via bpf"
    name, _, detail = note.partition(": ")
    template = (_BLIND | _BLIND_OF.get(mode, {})).get(name)
    if template is None:
        return None
    more = f" ({detail})" if detail and name in _DETAILED else ""
    return template.format(processes=processes) + more


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
    yield Statement("headline", time_words(view), _evidence(view), says="trace_time", cells=(cell,))
    slowest = slowest_words(view)
    if slowest:
        yield Statement("caution", slowest, says="trace_slowest", cells=(cell,))
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
    notable = [
        item
        for item in view.findings
        if item.cost_s is None or item.cost_s >= floor_s or item.rule in limits()
    ]
    return tuple(notable[:_FINDINGS_SAID])


def _losses(view: TraceView) -> Iterator[Statement]:
    if not view.processes:
        yield Statement(
            "caution",
            "Nothing of the command was recorded. That does not mean that it did no I/O.",
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
    if view.unseen:
        text = "The kernel counted other bytes than were recorded. Totals, times and files lack them."
        yield Statement("caution", text, (unseen_words(view.unseen),), says="trace_unseen")
    for text in view.warnings:
        yield Statement("caution", text, says="trace_warning")
    for note, count in view.notes.items():
        words = blind_words(note, count, view.mode)
        if words:
            yield Statement("caution", f"{words[:1].upper()}{words[1:]}.", says="trace_blind")
    if view.mapped.files:
        words = mapped_words(view.mapped, rest_word(view.whole))
        yield Statement("caution", f"{words}.", says="trace_mapped")


def ran_words(view: TraceView) -> str:
    """Who ran for how long."""
    runs = [copy.run_s for copy in view.copies if copy.run_s is not None]
    several = len(view.copies) > 1
    beside = "at once" if view.at_once else "one after another, or in part at once,"
    who = f"{len(view.copies)} copies ran {beside}" if several else "The command ran"
    if runs:
        mean = sum(runs) / len(runs)
        who += f" for {units.format_duration(mean)}{' on average' if several else ''}"
        if view.outlived and view.speeds.wall_s is not None:
            left = _count(view.outlived, "process", "processes")
            who += f", and {left} that it left until {units.format_duration(view.speeds.wall_s)}"
    elif view.run_most_s is not None:
        who += f" for at most {units.format_duration(view.run_most_s)}"
    return f"{who} under strace" if view.whole.slowed else who


def time_words(view: TraceView) -> str:
    """Where the time went, in one sentence."""
    who, whole = ran_words(view), view.whole
    known = [value for value in whole.seconds.values() if value is not None]
    if not known:
        why = "the log does not tell them from strace's own" if whole.slowed else "the trace does not say"
        return f"{who}; the time of its I/O is unknown: {why}."
    shares = {kind: getattr(whole, kind) for kind in KINDS}
    if all(share is None for share in shares.values()):
        spent = units.format_duration(sum(known))
        return f"{who}; its calls took {spent} of all processes' time. Its share of the run is unknown."
    parts = [
        f"{units.format_percent(share)} {WORDS[kind]}"
        for kind, share in shares.items()
        if share is not None and share >= _SHARE_PRINTED
    ]
    parts += rest_words(whole)
    if not parts and whole.slowed:
        return f"{who}; none of its calls on files took longer than strace itself explains."
    return f"{who}:{_of_base(view)} {', '.join(parts)}." if parts else f"{who}."


def rest_word(whole: Share) -> str:
    """What time in no call on a file is called: nothing where it is not known."""
    if whole.rest is None:
        return ""
    return "waiting" if whole.compute is not None else "time outside of file calls"


def rest_words(whole: Share) -> list[str]:
    """The rest of the time: computing and waiting where CPU time is known, and what was waited for."""
    if whole.rest is None:
        return []
    if whole.compute is None or whole.wait is None:
        return [f"{units.format_percent(whole.rest)} outside of file calls (computing or waiting: not known)"]
    found = [f"{units.format_percent(whole.compute)} computing"]
    if whole.wait >= _SHARE_PRINTED:
        found.append(f"{units.format_percent(whole.wait)} waiting{_causes(whole)}")
    return found


def _causes(whole: Share) -> str:
    """The main causes of waiting, the longest first."""
    ordered = sorted(whole.waits.items(), key=lambda item: -item[1])
    told = [
        f"{units.format_duration(seconds)} for {CAUSES[cause]}"
        for cause, seconds in ordered[:_CAUSES_SAID]
        if seconds >= _CAUSE_SAID * whole.base_s
    ]
    return f" ({', '.join(told)})" if told else ""


def slowest_words(view: TraceView) -> str:
    """Who was in I/O for longest, where that is far from the mean of all: the run waits for it."""
    found, run_s = view.slowest, view.speeds.wall_s
    if found is None or run_s is None or found.processes < 2 or not view.at_once:
        return ""
    if found.io_s > run_s:  # its own requests were under way at once: a sum of theirs is no wait
        return ""
    if found.io_s < _SLOWEST_SAID * run_s or found.io_s < _SLOWEST_APART * found.mean_io_s:
        return ""
    return (
        f"The slowest of {found.processes:,} processes, {found.name}, was in I/O for"
        f" {units.format_duration(found.io_s)} of {units.format_duration(run_s)}; the mean is"
        f" {units.format_duration(found.mean_io_s)}."
    )


def _of_base(view: TraceView) -> str:
    """What the shares are of, where that is not the run: processes side by side, or shorter ones."""
    runs_s, base_s = sum(copy.run_s or 0.0 for copy in view.copies), view.whole.base_s
    if abs(base_s - runs_s) <= _BASE_APART * runs_s:
        return ""
    return f" of {units.format_duration(base_s)} of {view.whole.basis},"


def moved_words(view: TraceView) -> tuple[str, ...]:
    """What was moved in how many of the user's files by whom; then how many files there are besides."""
    own, speed = view.counted, view.speeds
    looked = f", {own.looked_at:,} more only looked at" if own.looked_at else ""
    found = [
        f"{units.format_size(own.bytes_read)} read, {units.format_size(own.bytes_written)} written"
        f" in {_count(own.own, 'file', 'files')}"
        f" by {_count(view.processes_count, 'process', 'processes')}{looked}"
    ]
    others = others_words(own.others)
    rest = {
        "read": max(0, speed.bytes_read - own.bytes_read),
        "written": max(0, speed.bytes_written - own.bytes_written),
    }
    besides = ", ".join(f"{units.format_size(amount)} {way}" for way, amount in rest.items() if amount)
    if others or besides:
        found.append(f"besides {others or 'in others'}{f' ({besides})' if besides else ''}")
    return tuple(found)


def _evidence(view: TraceView) -> tuple[str, ...]:
    speed = view.speeds
    found = [*moved_words(view)]
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
        what = "strace's own cost is in its times" if view.whole.slowed else "the trace has no times"
        return f"its cost is not known, as {what}"
    return f"{saved_words(item, view)} (estimate: {item.how})"


def saved_words(item: TraceFinding, view: TraceView) -> str:
    """The estimate as a part of the run, or of the time of processes that run side by side."""
    if item.cost_s is None:
        return "cost unknown"
    base, cost = view.whole.base_s, units.format_duration(item.cost_s)
    if item.time == "run":
        return f"up to {cost} of the run"
    share = f"{units.format_percent(item.cost_s / base)} of all process time" if base > 0 else ""
    if item.saves_s is None:
        return f"up to {share or f'{cost} of all process time'}"
    if item.saves_s >= item.cost_s * _ALIKE:
        return f"up to {cost}{f', {share}' if share else ''}"
    saved = units.format_duration(item.saves_s)
    return f"up to {share}, at most {saved} of the run"


def time_doubts(view: TraceView) -> tuple[str, ...]:
    """What makes a source's times less than exact; each casts doubt on the whole."""
    if not view.whole.slowed:
        return view.time_doubts
    if view.call_cost_s is None and view.time_doubts:  # the log has no times at all, or says why
        return view.time_doubts
    if view.call_cost_s is None:
        own = (
            "the times are those of the program under strace, and its log has too few calls without work of"
            " their own to tell what strace took of each: no time is claimed"
        )
    else:
        own = (
            "the times are those of the program under strace. What strace itself explains was taken out,"
            f" {units.format_latency(view.call_cost_s * 1e9)} a call at most, as long as calls without work"
            " of their own took"
        )
    return (own, *view.time_doubts)


def _base(view: TraceView) -> str:
    """What shares are of. What the tracer itself took is in none."""
    text = f"shares are of {view.whole.basis}, {units.format_duration(view.whole.base_s)}"
    took_s = sum((process.tracer_s or 0.0) / max(1, process.threads or 1) for process in view.processes)
    if took_s < view.whole.base_s * _SHARE_SAID:
        return text
    return f"{text}, without {units.format_duration(took_s)} that recording took"


def _cautions(view: TraceView) -> Iterator[Statement]:
    failed = [copy for copy in view.copies if copy.ended not in ("exit code 0", "unknown", "exec", "running")]
    for copy in failed[:3]:
        name = f"Copy {copy.copy}" if len(view.copies) > 1 else "The command"
        how = "was" if copy.ended.startswith("killed") else "ended with"
        yield Statement("caution", f"{name} {how} {copy.ended}.", says="trace_ended")
    for text in time_doubts(view):
        yield Statement("caution", f"{text[:1].upper()}{text[1:]}.", says="trace_times")
    if view.whole.overlapped:
        yield Statement(
            "caution",
            "I/O overlapped: threads spent more time in it than their process lived, or requests ran at the"
            " same time as the program (asynchronous I/O). How much it computed meanwhile is unknown.",
            says="trace_overlapped",
        )
    elif view.whole.rest is not None:
        text = "Computing is CPU time outside of file calls; waiting is the time off the CPU there."
        if view.whole.compute is None:
            text = "CPU time was not recorded: the time outside of file calls may be computing or waiting."
        yield Statement("caution", text, (_base(view),), says="trace_remainder")
    more = len(view.findings) - len(said(view))
    if more:
        text = f"{_count(more, 'smaller finding is', 'smaller findings are')} in the report."
        yield Statement("caution", text, says="trace_more_findings")
