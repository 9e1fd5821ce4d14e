"""From the trials of a cell to what bounds it: one cause or several, or what nobody could tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from leadline.knowledge.findings import Finding
from leadline.verdict.diagnosis.budget import LatencyBudget, budget_of
from leadline.verdict.diagnosis.causes import (
    SHARE_KINDS,
    CauseEntry,
    CauseInTrial,
    causes,
    judged,
)
from leadline.verdict.diagnosis.places import places
from leadline.verdict.diagnosis.samples import Figures
from leadline.verdict.sections.charts import PlaceUse

Outcome = Literal["named", "undecided", "unusable"]
_IN_TRIALS = 2 / 3  # of a cell's trials a cause must hold in
_SHARE = 0.3  # less than that does not bound anything
_OTHERS, _OTHERS_SHARE = "others_here", 0.15  # of the CPUs: from there on a host is not this run's alone
_BESIDE = 0.5  # a second cause is named with at least that part of the largest share of its kind
_OWN, _REST = ("direct", "full"), "rest"
PRESENT = "present"


@dataclass(frozen=True)
class CauseNamed:
    """A cause that holds for a cell. `shares` are the least and the most of its trials.

    `share` is None where nothing measures it here: it is present. `lacks` are figures that would have.
    """

    entry: CauseEntry
    title: str
    evidence: str
    share: float | None
    shares: tuple[float, float] | None
    held: int
    trials: int
    against: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    @property
    def finding(self) -> Finding:
        """What holds, as every table's findings are."""
        entry = self.entry
        return Finding(
            entry.name,
            self.title,
            self.evidence,
            entry.remedy,
            means=entry.means,
            share=self.share,
            direct=entry.told == "direct",
            verify=entry.experiment,
            setting=entry.setting,
            source=entry.source,
            shared=entry.shared,
        )

    @property
    def words(self) -> str:
        """Its title, with a share only where that was measured."""
        return f"{self.title} ({PRESENT if self.share is None else f'{100 * self.share:.0f} %'})"


@dataclass(frozen=True)
class CauseOpen:
    """A cause that nobody can rule out here, and the figures that were not observable."""

    entry: CauseEntry
    lacks: tuple[str, ...]


@dataclass(frozen=True)
class Diagnosed:
    """What bounds a cell: `named` causes first, `behind` what comes next, `open` what could not be judged."""

    outcome: Outcome
    named: tuple[CauseNamed, ...] = ()
    behind: tuple[CauseNamed, ...] = ()
    open: tuple[CauseOpen, ...] = ()
    uses: tuple[PlaceUse, ...] = ()
    figures: tuple[Figures, ...] = ()
    apart: tuple[CauseNamed, ...] = ()
    budget: LatencyBudget | None = None

    @property
    def words(self) -> str:
        """The bottleneck, with the share of each cause."""
        if self.outcome == "unusable":
            return "no usable trial"
        said = titled(self.named) if self.named else "unknown"
        if not self.apart:
            return said
        return f"{said}; without other processes: {titled(self.apart)}"


def titled(named: Sequence[CauseNamed]) -> str:
    """Causes with the share of each."""
    return " and ".join(one.words for one in named)


def without_others(trials: Sequence[Figures]) -> list[Figures]:
    """The figures as they would be without the load of other processes; none where most trials had little."""
    found = [_without(one) for one in trials]
    busy = [one for one in found if one is not None]
    if not busy or len(busy) < _IN_TRIALS * len(found):
        return []
    return [quiet if quiet is not None else one for one, quiet in zip(trials, found, strict=True)]


def _without(figures: Figures) -> Figures | None:
    others, cpu = figures["other_cpu_share"], figures["cpu_share"]
    if not isinstance(others, float) or not isinstance(cpu, float) or others < _OTHERS_SHARE:
        return None
    return {**figures, "other_cpu_share": 0.0, "cpu_share": max(cpu - others, 0.0)}


def diagnose(
    trials: Sequence[Figures],
    table: tuple[CauseEntry, ...] | None = None,
    said: Sequence[Mapping[str, CauseInTrial]] | None = None,
    said_apart: Sequence[Mapping[str, CauseInTrial]] | None = None,
) -> Diagnosed:
    """The causes that hold for a cell, by the figures of its trials.

    `said`: these are judged already, `said_apart`: those `without_others`, where that is asked.
    """
    if not trials:
        return Diagnosed("unusable")
    entries = causes() if table is None else table
    quiet = without_others(trials)
    if said is None:
        said, said_apart = judged(trials, entries), judged(quiet, entries)
    holding = _holding(entries, said, trials)
    named = _named(holding)
    return Diagnosed(
        "named" if named else "undecided",
        named,
        tuple(one for one in holding if one not in named),
        tuple(_open(entries, said)),
        places(trials, [(one.entry, one.words) for one in named], entries),
        tuple(trials),
        _apart(named, holding, _named(_holding(entries, said_apart, quiet))) if said_apart else (),
        budget_of(trials, {entry.place for entry in entries}),
    )


def _apart(
    named: Sequence[CauseNamed], holding: Sequence[CauseNamed], quiet: tuple[CauseNamed, ...]
) -> tuple[CauseNamed, ...]:
    """What would be named without others, where nothing is named but them.

    What a counter of its own tells and full CPUs explain is not told by it: others' load made the counter so.
    """
    known, held = ({one.entry.name for one in some} for some in (named, holding))
    if known - {_OTHERS}:
        return ()
    found = [one for one in quiet if one.entry.told not in ("direct", "aside") or one.entry.name in held]
    return tuple(one for one in found if one.entry.name not in known)


def _held(
    entry: CauseEntry, said: Sequence[Mapping[str, CauseInTrial]], trials: Sequence[Figures]
) -> list[CauseInTrial]:
    """The trials that it holds in; of a cause that names one of several, those that name the same."""
    held = [
        (figures[entry.which] if entry.which else None, one[entry.name])
        for one, figures in zip(said, trials, strict=True)
        if one[entry.name].holds
    ]
    if not held:
        return []
    ((usual, _),) = Counter(name for name, _ in held).most_common(1)
    return [one for name, one in held if name == usual]


def _holding(
    entries: Sequence[CauseEntry], said: Sequence[Mapping[str, CauseInTrial]], trials: Sequence[Figures]
) -> list[CauseNamed]:
    found = []
    for entry in entries:
        held = _held(entry, said, trials)
        if not held or len(held) < _IN_TRIALS * len(said):
            continue
        found.append(_of_trials(entry, held, len(said)))
    return sorted(found, key=_order)


def _of_trials(entry: CauseEntry, held: Sequence[CauseInTrial], trials: int) -> CauseNamed:
    """With the median of its shares, where most of these trials measured one."""
    shares = sorted(one.share for one in held if one.share is not None)
    measured = bool(shares) and len(shares) >= _IN_TRIALS * len(held)
    middle = median(shares) if measured else 0.0
    shown = min(held, key=lambda one: abs((one.share or 0.0) - middle))
    return CauseNamed(
        entry,
        shown.title,
        shown.evidence,
        middle if measured else None,
        (shares[0], shares[-1]) if measured else None,
        len(held),
        trials,
        tuple(dict.fromkeys(words for one in held for words in one.against)),
        tuple(dict.fromkeys(name for one in held for name in one.lacks)),
    )


def _order(one: CauseNamed) -> tuple[bool, float]:
    """What is measured by its share, then what is present by how many of the trials show it."""
    return one.share is None, -(one.held / one.trials if one.share is None else one.share)


def _named(holding: Sequence[CauseNamed]) -> tuple[CauseNamed, ...]:
    """What a counter says or what is used up, where it has a share to speak of; else what is left over.

    What is only present stands after what is measured, and of what is left over only where nothing is.
    """
    own = [one for one in holding if one.entry.told in _OWN]
    present = [one for one in own if one.share is None]
    direct_first = sorted(_large(own), key=lambda one: _OWN.index(one.entry.told))
    if direct_first or present:
        return (*direct_first, *present)
    rest = [one for one in holding if one.entry.told == _REST]
    large = _large(rest)
    for kind in SHARE_KINDS:  # a part of the time says more than a depth that is used up
        if of_kind := [one for one in large if one.entry.share_kind == kind]:
            return tuple(of_kind)
    return tuple(one for one in rest if one.share is None)


def _large(causes_held: Sequence[CauseNamed]) -> list[CauseNamed]:
    """Those with a share to speak of, beside the largest of its kind."""
    most: dict[str, float] = {}
    for one in causes_held:
        if one.share is not None:
            most[one.entry.share_kind] = max(most.get(one.entry.share_kind, 0.0), one.share)
    return [
        one
        for one in causes_held
        if one.share is not None and one.share >= max(_SHARE, _BESIDE * most[one.entry.share_kind])
    ]


def _open(entries: Sequence[CauseEntry], said: Sequence[Mapping[str, CauseInTrial]]) -> list[CauseOpen]:
    found = []
    for entry in entries:
        unknown = [one[entry.name] for one in said if one[entry.name].holds is None]
        if len(unknown) > (1 - _IN_TRIALS) * len(said):
            found.append(CauseOpen(entry, unknown[0].lacks))
    return found
