"""What is said of a study that was measured while its cluster was not clean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from leadline.store.tables import TrialRow
from leadline.units import format_duration
from leadline.verdict.degraded.states import MOODS, moods_of, rebuilt
from leadline.verdict.model import Statement, Tone

_WORDS = {"degraded": "degraded", "rebuilding": "while data were rebuilt", "clean": "clean"}


def unclean_statements(trials: Sequence[TrialRow], *, asked: bool) -> Iterator[Statement]:
    """Nothing where it was not asked for: then a code says that the cluster was not clean."""
    if not asked:
        return
    counted = Counter(_state(trial) for trial in trials)
    parts = [f"{counted[mood]} {_WORDS[mood]}" for mood in MOODS if counted[mood]]
    parts += [f"{counted['changed']} while that changed"] if counted["changed"] else []
    parts += [f"{counted['']} of which it is not known"] if counted[""] else []
    text = f"To be measured while the cluster is not clean: {', '.join(parts)}, of {len(trials)} trials."
    tone: Tone = "finding" if len(counted) < 2 else "caution"  # figures of several states are in one mean
    yield Statement(tone, text, says="cluster_unclean_as_asked")
    found = rebuilt(trials)
    if found is None:
        return
    ends = [format_duration(float(round(seconds))) for seconds in (found.least_s, found.most_s)]
    lost = (
        "" if found.degraded_objects is None else f"; most copies missing at once: {found.degraded_objects}"
    )
    after = f"{ends[0]} to {ends[1]} after it was first seen otherwise"
    text = f"The cluster was clean again {after}, under this load"
    yield Statement("finding", f"{text}{lost}.", says="cluster_clean_again")


def _state(trial: TrialRow) -> str:
    moods = moods_of(trial)
    return "changed" if len(moods) > 1 else moods[0] if moods else ""
