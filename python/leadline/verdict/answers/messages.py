"""Answers in a sentence or two, from decided comparisons only; what is undecided is called so.

Each function answers one shape of question. A factor is the bound of its interval next to 1, never an
estimate; figures are named only where nothing is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from leadline.units import format_quantity
from leadline.verdict.answers.certain import clauses, factor_words, named, split, times, usable
from leadline.verdict.answers.leading import Leader
from leadline.verdict.answers.together import Together
from leadline.verdict.kinds import metric_kind
from leadline.verdict.model import UNUSABLE, Comparison
from leadline.verdict.sections.answer import AskedFigure

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
    return f"Over {found.works} works together {found.target} is {than}: at least {factor}, as their mean."


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
    good = usable(rows)
    found = split(good)
    parts = []
    for verdict in ("faster", "slower"):
        if found[verdict]:
            parts.append(
                f"{verdict} than {base} {_in_works(found[verdict], rows)} ({_bounds(found[verdict])})"
            )
    if found["same"]:
        same = found["same"]
        parts.append(f"equivalent within {same[0].margin:.0%} {_in_works(same, rows)}")
    if found["undecided"]:
        parts.append(f"inconclusive {_in_works(found['undecided'], rows)}")
    if len(rows) > len(good):
        lost = [row for row in rows if row not in good]
        parts.append(f"not comparable {_in_works(lost, rows)}: INVALID or not run")
    return f"{other} is {'; '.join(parts)}."


def _in_works(found: Sequence[Comparison], every: Sequence[Comparison]) -> str:
    if len(every) == 1:
        return f"in {every[0].work}"
    return f"in {len(found)} of {len(every)} works"


def _in_all(every: Sequence[Comparison]) -> str:
    return f"in {every[0].work}" if len(every) == 1 else f"in all {len(every)} works"


def _bounds(found: Sequence[Comparison]) -> str:
    """The largest certain difference, and the least of several."""
    most, least = found[0], found[-1]
    if len(found) == 1:
        return f"{most.work}: {times(most)}"
    return f"{times(most)} in {most.work}, {times(least)} in {least.work}"


def beside_others(figures: Sequence[AskedFigure]) -> str:
    """By how much jobs that ran together slowed each other."""
    said = []
    for one in figures:
        found = one.comparison
        if found is None or not one.leads or found.validity in UNUSABLE:
            continue
        kind, job = metric_kind(one.metric), one.work.rpartition(".")[2]
        higher = (found.verdict == "faster") == kind.higher_is_better
        changed = f"{kind.words} {times(found)} {'higher' if higher else 'lower'}"
        words = {"undecided": "inconclusive", "same": f"equivalent within {found.margin:.0%}"}
        said.append((found.least_factor, f"{job} on {one.target}: {words.get(found.verdict, changed)}"))
    return f"Together with the others, against alone: {clauses(said)}." if said else ""


def within_target(figures: Sequence[AskedFigure], against: str) -> str:
    """How works of one target compare with another work of it."""
    said = [
        (one.comparison.least_factor, f"{one.work} on {one.target} {_outcome(one.comparison)}")
        for one in figures
        if one.leads and one.comparison and one.comparison.validity not in UNUSABLE
    ]
    return f"Against {against}: {clauses(said)}." if said else ""


def _outcome(comparison: Comparison) -> str:
    if comparison.verdict == "same":
        return f"is equivalent within {comparison.margin:.0%}"
    if comparison.verdict == "undecided":
        return "is inconclusive"
    return f"is {times(comparison)} {comparison.verdict}"


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
        said.append(f"{target} in {named([one.figure.work for one in own])} (at least {lead})")
    more = f" and {len(said) - _WAYS} more targets in others" if len(said) > _WAYS else ""
    parts = [f"First for certain: {'; '.join(said[:_WAYS])}{more}."] if said else []
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
        yield f"Which is first: inconclusive {where}."
        return
    counted = [_share(front[target], did[target], len(leaders)) for target in ranked[:_COUNTED]]
    shares = [f"{target} in {share}" for target, share in zip(ranked, counted, strict=False)]
    rest = f", {len(ranked) - _COUNTED} more in fewer" if len(ranked) > _COUNTED else ""
    yield f"First {_in(leaders)}, or not told apart from it: {', '.join(shares)}{rest}."
    behind = [target for target in did if target not in front]
    if behind:
        yield f"Always behind: {named(behind, _COUNTED)}."


def _share(front: int, did: int, every: int) -> str:
    """`6`, or `6 of 7` where it did not all of them."""
    return f"{front}" if did == every else f"{front} of {did}"


def _in(leaders: Sequence[Leader]) -> str:
    return f"of {len(leaders)} works" if len(leaders) > 1 else f"in {leaders[0].figure.work}"


def _where(count: int, every: int) -> str:
    return f"in all {every} works" if count == every else f"in {count} of {every} works"


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
        parts = [f"{_value(one)} in {one.work}" for one in shown]
    else:
        parts = []
        for unit in dict.fromkeys(one.quantity.unit for one in shown):
            own = sorted((one for one in shown if one.quantity.unit == unit), key=_size)
            ends = f"{_value(own[0])} ({own[0].work}) to {_value(own[-1])} ({own[-1].work})"
            parts.append(f"{ends}" if len(own) > 1 else f"{_value(own[0])} in {own[0].work}")
    lost = len(every) - len(shown)
    rest = f" {lost} of {len(every)} works have no figure to use." if lost else ""
    return f"{target} gives {', '.join(parts)}.{rest}"


def _size(figure: AskedFigure) -> float:
    return figure.quantity.value or 0.0


def _value(figure: AskedFigure) -> str:
    return format_quantity(figure.quantity.value, figure.quantity.unit)
