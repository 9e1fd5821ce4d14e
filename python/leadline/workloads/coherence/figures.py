"""What trials of coherence found: times until a reader saw, locks, bytes of shared files. Pure functions."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.store.tables import TrialRow
from leadline.workloads.coherence.job import LAGS, SHARED, CoherenceJob

_ALPHA = 0.05


@dataclass(frozen=True)
class Lag:
    """Every repetition of one question between a writer and a reader, of all trials; times in ns.

    `unseen` counts repetitions that were given up; `reason` says why nothing was asked.
    """

    lags_ns: tuple[int, ...]
    unseen: int
    trials: int
    reason: str | None

    @property
    def median_ns(self) -> float | None:
        """Half of the repetitions took longer; one that was given up counts as longer than any."""
        every = [*self.lags_ns, *([math.inf] * self.unseen)]
        middle = statistics.median(every) if every else math.inf
        return middle if math.isfinite(middle) else None

    @property
    def worst_ns(self) -> float | None:
        """The longest; None where one was given up."""
        return None if self.unseen else float(max(self.lags_ns, default=0)) or None

    def median_interval_ns(self) -> tuple[float | None, float | None]:
        """The 95 % interval of the median by the order of the values, whatever their distribution."""
        count = len(self.lags_ns) + self.unseen
        ranked = [*sorted(self.lags_ns), *([math.inf] * self.unseen)]
        place = _rank(count)
        if place is None or not math.isfinite(ranked[count - 1 - place]):
            return None, None
        return float(ranked[place]), float(ranked[count - 1 - place])


def _rank(count: int) -> int | None:
    """The largest rank from either end whose interval covers the median with 95 %; None below six values.

    Source: the sign test: each value lies below the median with chance one half.
    """
    below, found = 0.0, None
    for rank in range(count // 2):
        below += math.comb(count, rank) / 2**count
        if 2 * below > _ALPHA:
            break
        found = rank
    return found


def answers_of(trials: Sequence[TrialRow], question: str) -> list[Mapping[str, Any]]:
    """What each trial found of a question."""
    found = (json.loads(trial.summary).get("coherence") or {} for trial in trials)
    return [answers[question] for answers in found if question in answers]


def lag_of(trials: Sequence[TrialRow], question: str) -> Lag:
    """All repetitions of a question."""
    answers = answers_of(trials, question)
    lags = tuple(int(value) for answer in answers for value in answer.get("lags_ns", ()))
    unseen = sum(int(answer.get("unseen", 0)) for answer in answers)
    reason = next((str(answer["reason"]) for answer in answers if "reason" in answer), None)
    return Lag(lags, unseen, len(answers), reason)


def coherence_metrics(trial: TrialRow) -> tuple[dict[str, float], dict[str, str]]:
    """A trial's metrics: `seen_QUESTION` is the median time, `shared_bandwidth` that of two writers."""
    job = CoherenceJob.model_validate(json.loads(trial.job))
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for question in job.questions:
        if question in LAGS:
            lag = lag_of([trial], question)
            if lag.median_ns is not None:
                values[f"seen_{question}"] = lag.median_ns
            else:
                late = f"not within {job.give_up_ns / 1e9:g} s"
                reasons[f"seen_{question}"] = lag.reason or late
        elif question == SHARED:
            for answer in answers_of([trial], SHARED):
                rates = answer.get("bytes_per_s") or []
                if rates:
                    values["shared_bandwidth"] = statistics.median(rates)
                else:
                    reasons["shared_bandwidth"] = str(answer.get("reason", "not measured"))
    return values, reasons
