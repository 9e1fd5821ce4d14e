"""The verdict in sentences: what a manager reads first, each with the evidence it rests on.

No claim without its interval, no interval without its number of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from leadline.analysis.duration import TimeTaken
from leadline.units import format_count, format_times
from leadline.verdict.chains import chain_statements
from leadline.verdict.comparisons.deciding import FEW_BLOCKS
from leadline.verdict.kinds import metric_kind, metric_part
from leadline.verdict.model import UNUSABLE, Cell, Comparison, Outcome, Statement, TargetView, part_label
from leadline.verdict.sections import numbers

# What an estimate of time may be wrong by: a share of what was planned, and seconds, of which nobody plans.
_TIME_OFF, _TIME_OFF_S = 0.5, 30.0


def statements(
    targets: Sequence[TargetView],
    cells: Sequence[Cell],
    comparisons: Sequence[Comparison],
    complete: bool,
    beside: Sequence[Comparison] = (),
) -> tuple[Statement, ...]:
    """Headlines, findings, cautions, in the order of their weight.

    `comparisons` are of targets, `beside` of jobs with others at the same time against the same jobs alone.
    """
    found: list[Statement] = []
    views = {target.name: target for target in targets}
    primary = [_named(c) for c in comparisons if _leads(c.metric)]
    for target in targets:
        own = [c for c in primary if c.other == target.name]
        if own:
            found.append(_headline(views[own[0].base], target, own))
    if not comparisons:
        found.extend(_alone(targets, cells))
    found.extend(_rates(cells))
    found.extend(_beside(beside))
    found.extend(chain_statements(targets, cells))
    found.extend(_cautions(cells, (*comparisons, *beside), complete))
    found.extend(_lab(targets))
    return tuple(found)


def _leads(metric: str) -> bool:
    """A rate, or what a program is asked for; not a latency, nor what explains a run time."""
    kind = metric_kind(metric)
    return kind.leads and kind.unit != "ns"


def _named(comparison: Comparison) -> Comparison:
    """A rate of a metadata operation is named by it: a workload has several."""
    part = metric_part(comparison.metric)
    return replace(comparison, work=part_label(comparison.work, part)) if part else comparison


def _headline(base: TargetView, other: TargetView, found: Sequence[Comparison]) -> Statement:
    usable = [c for c in found if c.validity not in UNUSABLE]
    groups: list[str] = []
    outcomes: tuple[Outcome, ...] = ("faster", "slower", "same")
    for outcome in outcomes:
        part = _group(outcome, [c for c in usable if c.verdict == outcome])
        if part:
            groups.append(part)
    undecided = [c for c in usable if c.verdict == "undecided"]
    if undecided:
        groups.append(f"inconclusive in {_works(undecided)} ({_listed([c.work for c in undecided])})")
    lost = [c for c in found if c.validity in UNUSABLE]
    if lost:
        groups.append(f"not comparable in {_works(lost)}: a value is INVALID or was not measured")
    evidence = tuple(_evidence(c) for c in usable)
    subject = f"{other.name} ({other.words}) compared with {base.name} ({base.words})"
    return Statement(
        "headline",
        f"{subject}: {'; '.join(groups)}.",
        evidence,
        says="targets_compared",
        cells=_sides(usable),
    )


def _group(outcome: Outcome, found: Sequence[Comparison]) -> str:
    if not found:
        return ""
    if outcome == "same":
        return f"equivalent within {100 * found[0].margin:.0f} % in {_works(found)}"
    ranked = sorted(found, key=lambda one: numbers.times_apart(one.ratio) or 1.0)
    if len(ranked) == 1:
        return _times(ranked[0])
    return f"{outcome} in {_works(found)}, from {_times(ranked[0])} to {_times(ranked[-1])}"


def _times(comparison: Comparison) -> str:
    """How many times, in which workload, with the CI."""
    return f"{numbers.outcome(comparison)} in {comparison.work} ({numbers.interval(comparison)})"


def _evidence(comparison: Comparison) -> str:
    state = "" if comparison.validity == "VALID" else f", {comparison.validity}"
    return (
        f"{comparison.work}: {comparison.metric} of {comparison.other} compared with {comparison.base}:"
        f" {numbers.compared(comparison)}{state}"
    )


def _alone(targets: Sequence[TargetView], cells: Sequence[Cell]) -> Iterator[Statement]:
    """One target has nothing to be compared with: its best values, each with its CI."""
    cells = [cell for cell in cells if not cell.swept]
    for target in targets:
        own = [c for c in cells if c.target == target.name and c.validity.state not in UNUSABLE]
        parts = []
        for metric, words in (("bandwidth", "highest bandwidth"), ("iops", "highest rate")):
            ranked = sorted((_value(cell, metric), index) for index, cell in enumerate(own))
            if ranked and ranked[-1][0] > 0:
                best = own[ranked[-1][1]]
                parts.append(f"{words} {numbers.value(best.metrics[metric])} in {best.work}")
        parts += [words for cell in own if (words := _operations(cell))]
        if parts:
            yield Statement(
                "headline",
                f"{target.name} ({target.words}): {'; '.join(parts)}.",
                says="target_alone",
                cells=tuple(c.id for c in own),
            )


def _operations(cell: Cell) -> str:
    """The rate of each metadata operation of a cell."""
    rates = [
        f"{operation} {numbers.value(quantity)}"
        for name, quantity in cell.metrics.items()
        if (operation := metric_part(name)) and name.endswith("_iops") and quantity.value is not None
    ]
    return f"in {cell.work}: {', '.join(rates)}" if rates else ""


def _rates(cells: Sequence[Cell]) -> Iterator[Statement]:
    """The highest rate under a bound of latency, where one was searched."""
    for cell in cells:
        for metric in cell.metrics:
            if metric.startswith("rate_at_") and cell.validity.state not in UNUSABLE:
                quantity, bound = (
                    cell.metrics[metric],
                    metric.removeprefix("rate_at_").replace("_", " under "),
                )
                text = (
                    f"{cell.id} sustains {numbers.value(quantity)} with {bound}."
                    if quantity.value is not None
                    else f"{cell.id} sustains no tested rate with {bound}: {quantity.reason}."
                )
                yield Statement("finding", text, says="rate_searched", cells=(cell.id,))


def _beside(found: Sequence[Comparison]) -> Iterator[Statement]:
    """By how much a job that runs with others is slower than alone: rate and latency in one sentence."""
    for other in dict.fromkeys(c.other for c in found if c.validity not in UNUSABLE):
        own = [c for c in found if c.other == other]
        parts = [_beside_words(c) for c in own]
        group, _, job = other.rpartition(".")
        yield Statement(
            "finding",
            f"{job} next to the other jobs of {group}, compared with {own[0].base} alone:"
            f" {'; '.join(parts)}.",
            tuple(_evidence(c) for c in own),
            says="job_beside_others",
            cells=tuple(dict.fromkeys(name for c in own for name in (c.base, c.other))),
        )


def _beside_words(comparison: Comparison) -> str:
    kind = metric_kind(comparison.metric)
    if comparison.verdict == "same":
        return f"{kind.words} equivalent within {100 * comparison.margin:.0f} %"
    factor = numbers.factor_of(comparison)
    if factor is None:
        return f"{kind.words} inconclusive ({numbers.interval(comparison)})"
    way = "higher" if (comparison.ratio or 1.0) >= 1 else "lower"
    return f"{kind.words} {format_times(factor)} {way} ({numbers.interval(comparison)})"


def _value(cell: Cell, metric: str) -> float:
    quantity = cell.metrics.get(metric)
    return quantity.value if quantity is not None and quantity.value is not None else 0.0


def _cautions(
    cells: Sequence[Cell], comparisons: Sequence[Comparison], complete: bool
) -> Iterator[Statement]:
    if not complete:
        yield Statement(
            "caution",
            "The run did not finish: the values leave out the blocks that are missing.",
            says="run_not_ended",
        )
    for state, words in (
        ("NOT_RUN", "could not be run"),
        ("INVALID", "INVALID: do not use the values"),
        ("DOUBTFUL", "DOUBTFUL: read their codes before you use the values"),
    ):
        found = [cell for cell in cells if cell.validity.state == state]
        if found:
            codes = sorted({code.title for cell in found for code in cell.validity.codes})
            yield Statement(
                "caution",
                f"{len(found)} of {format_count(len(cells), 'cell')}"
                f"{'' if state == 'NOT_RUN' else ' is' if len(found) == 1 else ' are'} {words}"
                f" ({', '.join(codes)}).",
                tuple(f"{cell.id}: {code.evidence}" for cell in found for code in cell.validity.codes),
                says="cells_not_valid",
            )
    yield from _about_intervals(comparisons)


def _about_intervals(comparisons: Sequence[Comparison]) -> Iterator[Statement]:
    few = [c for c in comparisons if c.assumption and c.blocks < FEW_BLOCKS]
    if few:
        rests = dict.fromkeys(c.assumption for c in few if c.assumption)
        yield Statement(
            "caution",
            f"{len(few)} of {len(comparisons)} comparisons have few blocks: their CIs rest on assumptions."
            f" With {FEW_BLOCKS} blocks or more they do not.",
            tuple(rests),
            says="few_blocks",
        )
    unlike = [c for c in comparisons if c.unlike]
    if unlike:
        yield Statement(
            "caution",
            f"{len(unlike)} of {len(comparisons)} comparisons vary more or less than the other cells:"
            f" {_listed([f'{c.other} in {c.work}' for c in unlike])}. Their CIs rest on their own blocks.",
            tuple(f"{c.work} {c.metric}, {c.other}: {numbers.compared(c)}" for c in unlike),
            says="scatter_unlike",
        )
    uneven = [c for c in comparisons if c.skewness is not None]
    if uneven:
        yield Statement(
            "caution",
            f"{len(uneven)} of {len(comparisons)} comparisons have a few blocks far to one side of the"
            " others. Their CIs may be too narrow. Run more blocks, and look at what happened in these.",
            tuple(
                f"{c.work} {c.metric}, {c.other}: skewness {c.skewness:.1f}, {c.blocks} blocks"
                for c in uneven
            ),
            says="skewed_blocks",
        )


def _lab(targets: Sequence[TargetView]) -> Iterator[Statement]:
    names = [target.name for target in targets if (target.facts.get("ceph") or {}).get("lab")]
    if names:
        yield Statement(
            "caution",
            f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} on a lab cluster: its daemons share"
            " this host's disk and CPUs. Use the ratios, not the absolute numbers.",
            says="on_a_lab",
        )


def time_words(taken: TimeTaken) -> str:
    """How long a study took compared with its plan."""
    from leadline.units import format_duration

    taken_s, planned_s = format_duration(taken.taken_s), format_duration(taken.planned_s)
    return f"took {taken_s}, planned {planned_s}"


def time_off(taken: TimeTaken | None) -> Iterator[Statement]:
    """Said where the plan was wrong by more than half: who waits for it should know the next time."""
    from leadline.units import format_duration

    if taken is None or abs(taken.off) <= _TIME_OFF or abs(taken.taken_s - taken.planned_s) <= _TIME_OFF_S:
        return
    around_s = max(taken.taken_s - taken.layout_s - taken.trials_s, 0.0)
    parts = (
        ("prefill", taken.layout_s),
        ("trials", taken.trials_s),
        ("the rest (start, clean-up, reading the cluster)", around_s),
    )
    yield Statement(
        "caution",
        f"The estimate of time was wrong by more than half: the study {time_words(taken)}.",
        tuple(f"{name}: {format_duration(seconds)}" for name, seconds in parts),
        says="estimate_off",
    )


def _sides(found: Sequence[Comparison]) -> tuple[str, ...]:
    """The cells that targets were compared by; `work` may be an operation of one."""
    places = ((target, c.work.partition(" ")[0]) for c in found for target in (c.base, c.other))
    return tuple(dict.fromkeys(f"{target}.{work}" for target, work in places))


def _works(found: Sequence[Comparison]) -> str:
    """How many; a workload has several operations of metadata."""
    return format_count(len(found), "operation" if any(metric_part(c.metric) for c in found) else "workload")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
