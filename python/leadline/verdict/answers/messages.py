"""Answers in a sentence or two, from decided comparisons only; what is undecided is called so.

Each function answers one shape of question. A factor is an estimate with its confidence interval; where
several comparisons share one, it is what is certain of the least of them.

The first of each work by its figure is held against all others, and all these comparisons of a study are
decided together. That the best was chosen by what was measured does no harm: a two-sided comparison of the
winner with the others keeps its level (Hung and Fithian, "Rank verification for exponential families", Annals
of Statistics 47, 2019).

Works are many and blocks are few, so all works are taken together as well: of each block the works'
logarithmic ratios are averaged, and these means, one a block, are compared as any figure is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.analysis.cells import CellTable, compare_cells
from leadline.analysis.statistics.means import paired_ratio
from leadline.units import format_quantity
from leadline.verdict.certainty import clauses, factor_words, named, split, times, usable
from leadline.verdict.comparisons.deciding import Pair, decide
from leadline.verdict.kinds import metric_kind
from leadline.verdict.model import UNUSABLE, Comparison, worst
from leadline.verdict.sections import numbers
from leadline.verdict.sections.section import AskedFigure

WORKS_MIN = 6
BLOCKS_MIN = 3


@dataclass(frozen=True)
class Together:
    """Over so many works `target` is better than the base, or worse; `factor` is what is certain of it."""

    target: str
    works: int
    better: bool
    factor: float


def together(
    figures: Sequence[AskedFigure], base: str, tables: Mapping[str, CellTable], alpha: float
) -> tuple[Together, ...]:
    """Each target that is told apart from `base` so, though most of its works are not by themselves.

    `alpha` is shared by the targets that are asked about.
    """
    anchors = {(one.work, one.metric): one for one in figures if one.target == base}
    rows: dict[str, list[tuple[AskedFigure, AskedFigure]]] = {}
    for one in figures:
        anchor = anchors.get((one.work, one.metric))
        if one.target != base and anchor and _counts(one) and _counts(anchor):
            rows.setdefault(one.target, []).append((anchor, one))
    asked = {target: pairs for target, pairs in rows.items() if _is_open(pairs)}
    found = [_mean_over_all(target, pairs, tables, alpha / len(asked)) for target, pairs in asked.items()]
    return tuple(one for one in found if one)


def _is_open(pairs: Sequence[tuple[AskedFigure, AskedFigure]]) -> bool:
    undecided = sum(one.comparison is None or one.comparison.verdict == "undecided" for _, one in pairs)
    return len(pairs) >= WORKS_MIN and 2 * undecided > len(pairs)


def _mean_over_all(
    target: str,
    pairs: Sequence[tuple[AskedFigure, AskedFigure]],
    tables: Mapping[str, CellTable],
    alpha: float,
) -> Together | None:
    sides = [[_by_block(one, tables) for one in side] for side in zip(*pairs, strict=True)]
    blocks = sorted(set.intersection(*(set(values) for side in sides for values in side)))
    if len(blocks) < BLOCKS_MIN:
        return None
    means = [[_mean([values[block] for values in side]) for block in blocks] for side in sides]
    ratio = paired_ratio(means[0], means[1], blocks)
    estimate = ratio.estimate(alpha) if ratio else None
    if (
        estimate is None
        or estimate.low is None
        or estimate.high is None
        or estimate.low <= 1 <= estimate.high
    ):
        return None
    better = estimate.low > 1
    return Together(target, len(pairs), better, estimate.low if better else 1 / estimate.high)


def _by_block(figure: AskedFigure, tables: Mapping[str, CellTable]) -> dict[int, float]:
    """A cell's figure in each block, as more is better; nothing of a block without one."""
    table = tables.get(figure.cell)
    values = {
        block: measured.values[figure.metric]
        for block, measured in (table.by_block.items() if table else ())
        if measured.values.get(figure.metric, 0) > 0
    }
    return values if figure.higher_is_better else {block: 1 / value for block, value in values.items()}


def _mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


@dataclass(frozen=True)
class Leader:
    """The first of a work. `compared` are its ratios to each of `others`."""

    figure: AskedFigure
    others: tuple[str, ...]
    compared: tuple[Comparison, ...]

    @property
    def decided(self) -> bool:
        """It is before every other one for certain."""
        return all(one.verdict == "faster" for one in self.compared)

    @property
    def lead(self) -> float:
        """How many times it is before the next at least."""
        return min(one.least_factor for one in self.compared)

    @property
    def in_front(self) -> tuple[str, ...]:
        """It, and those that are not told apart from it."""
        pairs = zip(self.others, self.compared, strict=True)
        return (self.figure.target, *(other for other, one in pairs if one.verdict != "faster"))


def find_leaders(
    figures: Sequence[AskedFigure],
    passed_by: frozenset[str],
    tables: Mapping[str, CellTable],
    margin: float,
    alpha: float,
) -> tuple[Leader, ...]:
    """The first of each work that several targets have figures of; those in `passed_by` are no choice."""
    chosen: list[tuple[AskedFigure, tuple[str, ...], list[Pair]]] = []
    for work in dict.fromkeys(one.work for one in figures):
        own = [one for one in figures if one.work == work and _counts(one)]
        remote = [one for one in own if one.target not in passed_by]
        ranked = sorted(remote or own, key=_value, reverse=all(one.higher_is_better for one in own))
        if len(ranked) > 1:
            names = tuple(other.target for other in ranked[1:])
            chosen.append((ranked[0], names, [_pair(ranked[0], other, tables) for other in ranked[1:]]))
    decided = iter(decide([pair for *_, pairs in chosen for pair in pairs], margin, alpha))
    return tuple(Leader(best, names, tuple(next(decided) for _ in pairs)) for best, names, pairs in chosen)


def _counts(figure: AskedFigure) -> bool:
    return figure.leads and figure.quantity.value is not None and figure.state not in UNUSABLE


def _value(figure: AskedFigure) -> float:
    return figure.quantity.value or 0.0


def _pair(best: AskedFigure, other: AskedFigure, tables: Mapping[str, CellTable]) -> Pair:
    sides = [tables.get(one.cell) for one in (other, best)]
    ratio = compare_cells(sides[0], sides[1], best.metric) if sides[0] and sides[1] else None
    state = worst((best.state, other.state))
    return Pair(best.work, other.cell, best.cell, best.metric, ratio, state)


_TARGETS = 3  # with a clause of their own
_ALIKE = 8  # targets named in a sentence about all of them
_FIGURES = 6  # named one by one
_WAYS = 3
_COUNTED = 4


def against_base(figures: Sequence[AskedFigure], base: str, together: Sequence[Together] = ()) -> str:
    """How each other target does beside the base, and over all works where that decides more."""
    led = [one for one in figures if one.comparison and one.leads]
    others = list(dict.fromkeys(one.target for one in led if one.target != base))
    alike: dict[tuple[str, str], list[str]] = {}  # targets of which the same is said, by what is said
    said: list[str] = []
    told = 0
    for other in others:
        rows = _rows([one for one in figures if one.target == other])
        same = _nothing_known(rows)
        if same:
            alike.setdefault(same, []).append(other)
        elif told < _TARGETS:
            said.append(_one_target(other, base, rows))
            told += 1
    own = len(others) - sum(map(len, alike.values()))
    rest = [f"{own - told} more targets are in the table."] if own > told else []
    of_all = [_over_all(one, base) for one in together[:_TARGETS]]
    grouped = [_together(same, names, base) for same, names in alike.items()]
    return " ".join([*of_all, *said, *grouped, *rest])


def _over_all(found: Together, base: str) -> str:
    than = f"{'faster' if found.better else 'slower'} than {base}"
    factor = factor_words(found.factor)
    return f"Over {found.works} workloads together {found.target} is {than}: at least {factor} on average."


def _rows(figures: Sequence[AskedFigure]) -> list[Comparison]:
    return [replace(one.comparison, work=one.work) for one in figures if one.comparison and one.leads]


def _nothing_known(rows: Sequence[Comparison]) -> tuple[str, str] | None:
    """What is said of a target of which no work is decided, and where; None: some is."""
    good = usable(rows)
    if rows and not good:
        return "lost", _in_all(rows)
    if len(good) == len(rows) == len(split(good)["undecided"]):
        return "undecided", _in_all(rows)
    return None


def _together(same: tuple[str, str], names: Sequence[str], base: str) -> str:
    """One sentence for all of them."""
    what, where = same
    if what == "undecided":
        return f"{named(names, _ALIKE)} compared with {base}: inconclusive {where}."
    verb = "is" if len(names) == 1 else "are"
    return f"{named(names, _ALIKE)} {verb} not comparable {where}: INVALID or not run."


def _one_target(other: str, base: str, rows: Sequence[Comparison]) -> str:
    """`fuse is slower than local in 2 of 3 workloads: 5.1x in a (CI 4.2 to 6.0), 2.0x in b (CI …).`"""
    good = usable(rows)
    found = split(good)
    if len(rows) == 1 and good and numbers.factor_of(row := good[0]):
        return f"{other} is {_factor_of(row, f'{row.verdict} than {base} in {row.work}')}."
    parts = []
    for verdict in ("slower", "faster"):
        if found[verdict]:
            where = _in_works(found[verdict], rows)
            parts.append(f"{verdict} than {base} {where}: {_named_factors(found[verdict])}")
    if found["same"]:
        same = found["same"]
        parts.append(f"equivalent to {base} (within {same[0].margin:.0%}) {_in_works(same, rows)}")
    if found["undecided"]:
        parts.append(f"inconclusive {_in_works(found['undecided'], rows)}")
    if len(rows) > len(good):
        lost = [row for row in rows if row not in good]
        parts.append(f"not comparable {_in_works(lost, rows)}, which is INVALID or not run")
    return f"{other} is {'; '.join(parts)}."


def _factor_of(row: Comparison, words: str) -> str:
    """`5.1x slower than local in ingest (CI 4.2 to 6.0)`."""
    factor, _, interval = times(row).partition(" ")
    return " ".join(filter(None, (factor, words, interval)))


def _named_factors(found: Sequence[Comparison]) -> str:
    """The largest difference and the least, by what is printed: `120x in a (CI …) to 4.9x in b (CI …)`."""
    ranked = sorted(found, key=lambda row: -(numbers.factor_of(row) or 0.0))
    shown = ranked if len(ranked) <= _NAMED_FACTORS else (ranked[0], ranked[-1])
    middle = ", ".join(_factor_of(row, f"in {row.work}") for row in shown[:-1])
    last = _factor_of(shown[-1], f"in {shown[-1].work}")
    if not middle:
        return last
    return f"{middle} to {last}" if len(found) > len(shown) else f"{middle} and {last}"


_NAMED_FACTORS = 2


def _in_works(found: Sequence[Comparison], every: Sequence[Comparison]) -> str:
    if len(every) == 1 or (len(found) == 1 and found[0].verdict in ("undecided", "same")):
        return f"in {found[0].work}"
    return _where(len(found), len(every))


def _in_all(every: Sequence[Comparison]) -> str:
    return f"in {every[0].work}" if len(every) == 1 else f"in all {len(every)} workloads"


def beside_others(figures: Sequence[AskedFigure]) -> str:
    """By how much jobs that ran together slowed each other."""
    said = []
    for one in figures:
        found = one.comparison
        if found is None or not one.leads or found.validity in UNUSABLE:
            continue
        kind, job = metric_kind(one.metric), one.work.rpartition(".")[2]
        higher = (found.verdict == "faster") == kind.higher_is_better
        more = f"{'higher' if higher else 'lower'} {kind.words}"
        changed = f"has {_factor_of(found, more)}"
        words = {"undecided": "is inconclusive", "same": f"is equivalent within {found.margin:.0%}"}
        said.append((found.least_factor, f"{job} on {one.target} {words.get(found.verdict, changed)}"))
    return f"Run together instead of alone: {clauses(said)}." if said else ""


def within_target(figures: Sequence[AskedFigure], against: str) -> str:
    """How works of one target compare with another work of it."""
    said = [
        (one.comparison.least_factor, f"{one.work} on {one.target} {_outcome(one.comparison)}")
        for one in figures
        if one.leads and one.comparison and one.comparison.validity not in UNUSABLE
    ]
    return f"Compared with {against}: {clauses(said)}." if said else ""


def _outcome(comparison: Comparison) -> str:
    if comparison.verdict == "same":
        return f"is equivalent within {comparison.margin:.0%}"
    if comparison.verdict == "undecided":
        return "is inconclusive"
    return f"is {_factor_of(comparison, comparison.verdict)}"


def leaders_of(leaders: Sequence[Leader]) -> str:
    """Which target is first in which works, and where that is undecided."""
    first: dict[str, list[Leader]] = {}
    for one in leaders:
        if one.decided:
            first.setdefault(one.figure.target, []).append(one)
    said = []
    for target, own in sorted(first.items(), key=lambda item: -len(item[1])):
        least = min(own, key=lambda one: one.lead)
        lead = factor_words(least.lead)
        said.append(f"{target} in {named([one.figure.work for one in own])} (at least {lead} ahead)")
    more = f" and {len(said) - _WAYS} more targets in others" if len(said) > _WAYS else ""
    parts = [f"Best: {'; '.join(said[:_WAYS])}{more}."] if said else []
    if all(one.decided for one in leaders):
        return " ".join(parts)
    return " ".join([*parts, *_in_front(leaders)])


def _in_front(leaders: Sequence[Leader]) -> Iterator[str]:
    """Who is first or not told apart from it, in how many of the works that it did; and who never is."""
    did = Counter(target for one in leaders for target in (one.figure.target, *one.others))
    front = Counter(target for one in leaders for target in one.in_front)
    ranked = [target for target, _ in front.most_common()]
    if len(front) == len(did) and set(front.values()) == {len(leaders)}:
        where = f"in {leaders[0].figure.work}" if len(leaders) == 1 else _where(len(leaders), len(leaders))
        yield f"Which is best is inconclusive {where}."
        return
    counted = [_share(front[target], did[target], len(leaders)) for target in ranked[:_COUNTED]]
    shares = [f"{target} in {share}" for target, share in zip(ranked, counted, strict=False)]
    rest = f", {len(ranked) - _COUNTED} more in fewer" if len(ranked) > _COUNTED else ""
    yield f"Best, or not significantly different from it, {_in(leaders)}: {', '.join(shares)}{rest}."
    behind = [target for target in did if target not in front]
    if behind:
        yield f"Never best: {named(behind, _COUNTED)}."


def _share(front: int, did: int, every: int) -> str:
    """`6`, or `6 of 7` where it did not all of them."""
    return f"{front}" if did == every else f"{front} of {did}"


def _in(leaders: Sequence[Leader]) -> str:
    return f"of {len(leaders)} workloads" if len(leaders) > 1 else f"in {leaders[0].figure.work}"


def _where(count: int, every: int) -> str:
    return f"in all {every} workloads" if count == every else f"in {count} of {every} workloads"


def figures_alone(figures: Sequence[AskedFigure]) -> str:
    """What the works of one target gave, by unit; their figures where there are few, else the extremes."""
    shown = [
        one for one in figures if one.leads and one.quantity.value is not None and one.state not in UNUSABLE
    ]
    if not shown:
        return ""
    every = [one for one in figures if one.leads]
    target = shown[0].target
    if len(shown) <= _FIGURES:
        parts = [f"{_value_words(one)} in {one.work}" for one in shown]
    else:
        parts = []
        for unit in dict.fromkeys(one.quantity.unit for one in shown):
            own = sorted((one for one in shown if one.quantity.unit == unit), key=_size)
            ends = f"{_value_words(own[0])} ({own[0].work}) to {_value_words(own[-1])} ({own[-1].work})"
            parts.append(f"{ends}" if len(own) > 1 else f"{_value_words(own[0])} in {own[0].work}")
    lost = len(every) - len(shown)
    rest = f" {lost} of {len(every)} workloads have no value to use." if lost else ""
    return f"{target} gives {', '.join(parts)}.{rest}"


def _size(figure: AskedFigure) -> float:
    return figure.quantity.value or 0.0


def _value_words(figure: AskedFigure) -> str:
    return format_quantity(figure.quantity.value, figure.quantity.unit)
