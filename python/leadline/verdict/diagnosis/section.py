"""The bottleneck of each cell, as reports and documents have it: a line each, the I/O path of some as a
picture, the causes that cannot be ruled out, and the values of `diagnose --json` (leadline.diagnosis/1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from leadline.units import format_count, format_latency, format_rate
from leadline.verdict.diagnosis.budget import LatencyBudget, bar_of, nothing_seen
from leadline.verdict.diagnosis.ceilings import RateCeilings
from leadline.verdict.diagnosis.judge import CauseNamed, CauseOpen, Diagnosed
from leadline.verdict.diagnosis.results import CellDiagnosed
from leadline.verdict.sections.charts import PlacesChain, PlaceUse
from leadline.verdict.sections.section import Item, Panels, Section, TextTable, Words

MOST = 3

# Figures by the beginning of their names, and what shows them. The first that fits counts.
_STEPS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("osd_stopped", "osd_throttled", "osd_thread", "osd_cores", "blocked_", "logging_"),
        "On each OSD's host, look at `top -H -p PID` of ceph-osd and at cpu.stat of its control group.",
    ),
    (
        ("mds_stopped", "mds_throttled", "mds_thread", "mds_cores"),
        "On the metadata server's host, look at `top -H -p PID` and at cpu.stat of its control group.",
    ),
    (("proxy_",), "On the gateway's host, look at `top -H -p PID` and at cpu.stat of its control group."),
    (
        ("port_", "ports_", "slowest_port"),
        "Read the counters of the switches' ports. leadline reads those of a lab.",
    ),
    (
        ("resent_",),
        "On the servers' hosts, watch `nstat TcpRetransSegs`. leadline reads it where the servers run here.",
    ),
    (
        ("link_share", "faster_link_factor", "half_duplex"),
        "Run `ethtool` on the interface to the servers. A virtual interface has no speed.",
    ),
    (("unanswered_", "receiver_full_"), "Run leadline as root, with trials of 10 s or more."),
    (
        ("connections_per_s",),
        "Run a job for 10 s or more, as root, with a key for which `ceph tell osd.0 perf dump` answers.",
    ),
    (
        ("client_", "cut_into", "read_ahead_bytes"),
        "Run leadline as root on the host of the mount, where ceph-fuse has an admin socket.",
    ),
    (
        ("mds_", "metadata_per_operation"),
        "Use a key for which `ceph tell mds.0 perf dump` answers, and trials of 10 s or more.",
    ),
    (
        (
            "pings_slow",
            "cache_oversized",
            "journal_behind",
            "caps_recalled",
            "osds",
            "recovering",
            "osds_down_part",
            "scrubbing_part",
            "pgs_",
            "full_count",
            "monitors_down",
            "paused",
            "managers_down",
            "clocks_apart",
            "versions_differ",
            "groups_per_osd",
            "pool_groups",
            "coded",
        ),
        "Use a key for which `ceph status` and `ceph osd dump` answer.",
    ),
    (
        (
            "osd_",
            "slow_osd",
            "loaded_osd",
            "chance_factor",
            "last_",
            "operations_joined",
            "mclock_",
            "outside_osd_share",
            "store_amplification",
        ),
        "Use a key for which `ceph tell osd.0 perf dump` answers.",
    ),
    (("transfer_bytes", "server_connections"), "Run `nfsstat -m`: this mount does not show its options."),
    (
        ("governor", "wake_s", "memory_nodes", "addresses_translated"),
        "Ask the operator of the physical host: a virtual machine does not show it.",
    ),
    (("device_",), "Run `iostat -x` on the host that has the target's device."),
    (
        ("cpu_", "other_cpu_", "steal_", "throttled_", "memory_stalled_"),
        "Run leadline outside a container, where /proc and the control group show the host.",
    ),
    (
        (
            "asked",
            "in_flight",
            "latency_s",
            "operation_s",
            "operations_per_s",
            "sync_latency_s",
            "pause_s",
            "streamed",
            "engine_share",
            "request_bytes",
            "syncs_per_write",
            "no_room",
        ),
        "Measure the workload as a study: leadline cannot see what other programs request.",
    ),
)


@dataclass(frozen=True)
class UnseenStep:
    """Something to do, and the causes that it would name or rule out."""

    words: str
    causes: tuple[CauseOpen, ...]


def steps(open_causes: Sequence[CauseOpen]) -> tuple[UnseenStep, ...]:
    """What to do, that first which settles most causes; of as many that whose causes are told most surely."""
    found: dict[str, list[CauseOpen]] = {}
    for one in open_causes:
        found.setdefault(step_of(one.lacks[0]), []).append(one)
    made = [UnseenStep(words, tuple(causes)) for words, causes in found.items()]
    return tuple(sorted(made, key=lambda one: (-_surely(one), -len(one.causes))))


def measured_by(cause: CauseNamed) -> str:
    """What would measure how much a cause takes that is only present."""
    if cause.entry.measured_by or not cause.lacks:
        return cause.entry.measured_by or cause.entry.experiment
    return step_of(cause.lacks[0])


def step_of(figure: str) -> str:
    """What shows a figure. Raises LookupError where nobody said it."""
    for beginnings, words in _STEPS:
        if figure.startswith(beginnings):
            return words
    raise LookupError(figure)


def _surely(step: UnseenStep) -> int:
    """How many of its causes a counter tells, and not only what is left where nothing else holds."""
    return sum(one.entry.told != "rest" for one in step.causes)


FORMAT = "leadline.diagnosis/1"


def cell_json(one: CellDiagnosed) -> dict[str, Any]:
    """A cell and what bounds it, but for the figures of its trials."""
    cell = one.cell
    return {
        "cell": cell.id,
        "target": cell.target,
        "work": cell.work,
        "factors": cell.factors,
        "validity": cell.validity.state,
        "should": _should_json(one.should),
        "notes": list(one.notes),
        **found_json(one.found),
    }


def found_json(found: Diagnosed) -> dict[str, Any]:
    """What bounds it, by which evidence, and what nobody could tell."""
    return {
        "outcome": found.outcome,
        "named": [_cause_json(cause) for cause in found.named],
        "behind": [_cause_json(cause) for cause in found.behind],
        "apart": [_cause_json(cause) for cause in found.apart],
        "open": [{"cause": part.entry.name, "lacks": list(part.lacks)} for part in found.open],
        "places": [_place_json(part) for part in found.uses],
        "budget": None if found.budget is None else _budget_json(found.budget),
    }


def figures_json(found: Diagnosed) -> dict[str, Any]:
    """The figures of each trial that all of it was judged by."""
    return {"figures": [dict(figures) for figures in found.figures]}


def _budget_json(budget: LatencyBudget) -> dict[str, Any]:
    """Seconds of a mean request; null where a segment was not observed."""
    segments = [
        {
            "segment": one.name,
            "title": one.title,
            "seconds": one.seconds.value if one.seconds else None,
            "seconds_low": one.seconds.low if one.seconds else None,
            "seconds_high": one.seconds.high if one.seconds else None,
            "share": one.share,
            "shown_by": one.shown_by or None,
        }
        for one in budget.segments
    ]
    return {"seconds": budget.whole_s, "segments": segments}


def _place_json(part: PlaceUse) -> dict[str, Any]:
    return {
        "place": part.place,
        "what": part.what,
        "use": part.use,
        "bounds": part.bounds,
        "saturation": dict(part.saturation),
        "waits": part.waits,
    }


def _should_json(should: RateCeilings | None) -> dict[str, Any] | None:
    if should is None:
        return None
    ceilings = [{"bytes_per_s": one.bytes_per_s, "by": one.by} for one in should.ceilings]
    return {"measured_bytes_per_s": should.measured, "share": should.share, "ceilings": ceilings}


def _cause_json(cause: CauseNamed) -> dict[str, Any]:
    entry = cause.entry
    return {
        "cause": entry.name,
        "place": entry.place,
        "title": cause.title,
        "share": cause.share,
        "share_kind": None if cause.share is None else entry.share_kind,
        "share_low": cause.shares[0] if cause.shares else None,
        "share_high": cause.shares[1] if cause.shares else None,
        "measured_by": None if cause.share is not None else measured_by(cause),
        "held": cause.held,
        "trials": cause.trials,
        "evidence": cause.evidence,
        "experiment": entry.experiment,
        "remedy": entry.remedy,
        "price": entry.price,
        "source": entry.source,
    }


PICTURES_MAX = 6  # a result may have hundreds of cells, and most of them are bound alike
_LINES_MAX = 40  # in reports that are no page
_NOTE = (
    "The limit is the lowest of what a link, the device or the queue depth allows. The percentage of a cause"
    " is its share of a request's time, its utilization, or its share of the measured time. Present means"
    " that no counter measures how much time it takes. For all evidence and the next bottleneck:"
    " leadline diagnose DIR --cell TARGET.WORKLOAD"
)
_HEADINGS = ("Cell", "Measured", "Theoretical limit", "% of limit", "Limiting factor", "Bottleneck")
_PICTURES = (
    "From the workload to the device: the utilization of each part, and what waited there. The bottleneck is"
    " marked. A part with a dashed frame was not observed."
)


def bounds_section(cells: Sequence[CellDiagnosed]) -> Section | None:
    """None where of no cell anything is named, nor known what it should reach."""
    if not any(one.found.named or one.should for one in cells):
        return None
    pictured = _pictured(cells)
    lines = TextTable(
        "Measured, and the theoretical limit",
        _HEADINGS,
        tuple(_line(one) for one in cells),
        right=frozenset({1, 2, 3}),
        total=len(cells),
        brief=_LINES_MAX,
    )
    times = [(one, one.found.budget) for one in pictured]
    time = tuple(_time(one, budget) for one, budget in times if budget is not None)
    why = Words(tuple(_why(one) for one in pictured), title="Why")
    return Section(
        "bounds",
        "The bottleneck of each cell",
        (
            lines,
            *_pictures(pictured, len(cells)),
            *([Words(time, title="Where the time of a request goes")] if time else []),
            *([why] if pictured else []),
        ),
        "Bottlenecks",
        _NOTE,
        json={"bounds": {"cells": [cell_json(one) for one in cells]}},
        in_csv=False,
    )


def _pictures(pictured: Sequence[CellDiagnosed], every: int) -> tuple[Panels, ...]:
    if not pictured:
        return ()
    some = f" {len(pictured)} of {every} cells are shown, at least one for each cause."
    some = some if len(pictured) < every else ""
    chains = tuple(_chain(place, one) for place, one in enumerate(pictured))
    return (Panels((chains,), "The I/O path of a cell, part by part", _PICTURES + some),)


def _pictured(cells: Sequence[CellDiagnosed]) -> list[CellDiagnosed]:
    """One cell of each set of causes, then others, in the order of the report; none without a cause."""
    named = [one for one in cells if one.found.named]
    first: dict[tuple[str, ...], CellDiagnosed] = {}
    for one in named:
        first.setdefault(tuple(cause.entry.name for cause in one.found.named), one)
    unlike = list(first.values())[:PICTURES_MAX]
    others = [one for one in named if not any(one is other for other in unlike)]
    chosen = [*unlike, *others[: PICTURES_MAX - len(unlike)]]
    return [one for one in named if any(one is other for other in chosen)]


def _line(one: CellDiagnosed) -> tuple[str, ...]:
    should, word = one.should, _word(one)
    if should is None:
        return (one.name, _measured(one), "", "", "unknown", f"{word}{one.found.words}")
    least = should.ceilings[0]
    return (
        one.name,
        f"{word}{format_rate(should.measured)}",
        format_rate(least.bytes_per_s),
        f"{word}{100 * should.share:.0f} %",
        least.by,
        f"{word}{one.found.words}",
    )


def _measured(one: CellDiagnosed) -> str:
    """What was moved a second, where any of it is known; a metadata cell moves nothing."""
    rates = [rate for figures in one.found.figures if isinstance(rate := figures["bytes_per_s"], float)]
    return f"{_word(one)}{format_rate(fmean(rates))}" if any(rates) else ""


def _word(one: CellDiagnosed) -> str:
    """No value of an INVALID cell stands without that word."""
    return "INVALID " if one.cell.validity.state == "INVALID" else ""


def _chain(place: int, one: CellDiagnosed) -> PlacesChain:
    bound = f"{_word(one)}bottleneck: {one.found.words}"
    return PlacesChain(f"places-{place}", one.name, bound, one.found.uses, one.cell.validity.state)


def _time(one: CellDiagnosed, budget: LatencyBudget) -> Item:
    """The bar of a cell, and what its letters are."""
    whole = format_latency(budget.whole_s * 1e9)
    if words := nothing_seen(budget):
        return Item(f"{_word(one)}{whole}", one.name, details=(words,))
    letters, said, unseen = bar_of(budget)
    details = (*said, *([unseen] if unseen else []))
    return Item(f"{_word(one)}[{letters}] {whole}", one.name, details=details)


def _why(one: CellDiagnosed) -> Item:
    behind = [f"Next bottleneck: {cause.words}: {cause.evidence}." for cause in one.found.behind[:1]]
    details = [line for cause in one.found.named for line in _of_cause(cause)]
    seen = "; ".join(
        f"{cause.evidence}, in {cause.held} of {format_count(cause.trials, 'trial')}"
        for cause in one.found.named
    )
    text = f"{_word(one)}bottleneck: {one.found.words}: {seen}"
    return Item(text, one.name, details=(*details, *behind))


def _of_cause(cause: CauseNamed) -> tuple[str, ...]:
    entry = cause.entry
    return (
        entry.means,
        *([f"To measure how much it takes: {measured_by(cause)}"] if cause.share is None else []),
        *(f"Evidence against it: {words}." for words in cause.against),
        f"To verify: {entry.experiment}",
        f"Remedy: {entry.remedy} (trade-off: {entry.price})",
    )
