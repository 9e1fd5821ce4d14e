"""From the trials of a cell to what bounds it: one cause or several, or what nobody could tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from leadline.verdict.diagnosed.causes import TOLD, CauseEntry, CauseInTrial, causes, judged
from leadline.verdict.diagnosed.places import places
from leadline.verdict.diagnosed.seen.values import Figures
from leadline.verdict.sections.charts import PlaceUse

Outcome = Literal["named", "undecided", "unusable"]
_IN_TRIALS = 2 / 3  # of a cell's trials a cause must hold in
_SHARE = 0.3  # of the time: less than that does not bound anything
_OTHERS, _OTHERS_SHARE = "others_here", 0.15  # of the CPUs: from there on a host is not this run's alone
_BESIDE = 0.5  # a second cause is named with at least that part of the first one's share


@dataclass(frozen=True)
class CauseNamed:
    """A cause that holds for a cell. `shares` are the least and the most of its trials."""

    entry: CauseEntry
    title: str
    evidence: str
    share: float
    shares: tuple[float, float]
    held: int
    trials: int
    against: tuple[str, ...] = ()


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

    @property
    def words(self) -> str:
        """By what it is bound, with the share of each."""
        if self.outcome == "unusable":
            return "no trial to judge by"
        said = titled(self.named) if self.named else "cannot tell"
        if not self.apart:
            return said
        return f"{said}; without other processes: {titled(self.apart)}"


def titled(named: Sequence[CauseNamed]) -> str:
    """Causes with the share of each."""
    return " and ".join(f"{one.title} ({100 * one.share:.0f} %)" for one in named)


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
        places(trials, [one.entry for one in named], entries),
        tuple(trials),
        _apart(named, holding, _named(_holding(entries, said_apart, quiet))) if said_apart else (),
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
    found = [one for one in quiet if one.entry.told != TOLD[0] or one.entry.name in held]
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
        shares = sorted(one.share for one in held)
        middle = min(held, key=lambda one: abs(one.share - median(shares)))
        against = tuple(dict.fromkeys(words for one in held for words in one.against))
        found.append(
            CauseNamed(
                entry,
                middle.title,
                middle.evidence,
                median(shares),
                (shares[0], shares[-1]),
                len(held),
                len(said),
                against,
            )
        )
    return sorted(found, key=lambda one: -one.share)


def _named(holding: Sequence[CauseNamed]) -> tuple[CauseNamed, ...]:
    """What a counter says or what is used up, where it has a share to speak of; else what is left over."""
    for told in (TOLD[:-1], TOLD[-1:]):
        own = [one for one in holding if one.entry.told in told and one.share >= _SHARE]
        if own:
            named = [one for one in own if one.share >= _BESIDE * own[0].share]
            return tuple(sorted(named, key=lambda one: (TOLD.index(one.entry.told), -one.share)))
    return ()


def _open(entries: Sequence[CauseEntry], said: Sequence[Mapping[str, CauseInTrial]]) -> list[CauseOpen]:
    found = []
    for entry in entries:
        unknown = [one[entry.name] for one in said if one[entry.name].holds is None]
        if len(unknown) > (1 - _IN_TRIALS) * len(said):
            found.append(CauseOpen(entry, unknown[0].lacks))
    return found
