"""How long a study took beside what its plan had said, from its journal: estimates are held against it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadline.plan.model import Plan
from leadline.store.journal import Event

_ENDS = ("study_finished", "interrupted", "stopped", "block_added")


@dataclass(frozen=True)
class TimeTaken:
    """Seconds of a study as planned and as they were; `layout_s` and `trials_s` are parts of the latter.

    Blocks that were added while it ran, and what a crash left behind, are in none of them.
    """

    planned_s: float
    taken_s: float
    layout_s: float
    trials_s: float

    @property
    def off(self) -> float:
        """By how much of itself the plan was wrong; 0 where it was right, negative where less was needed."""
        return self.taken_s / self.planned_s - 1


def time_taken(events: Sequence[Event], plan: Plan) -> TimeTaken | None:
    """The time of a study whose planned trials were all run; None where some were not."""
    finished = {name for event in events for name in event.finished}
    blocks = [trial.id for trial in plan.trials if trial.block <= plan.blocks]
    if plan.seconds <= 0 or not finished.issuperset(blocks):
        return None
    spans = list(_spans(events))
    if not spans:
        return None
    layouts = (event.details.get("elapsed_ns", 0) for event in events if event.event == "layout_finished")
    return TimeTaken(plan.seconds, sum(spans), sum(layouts) / 1e9, sum(_trials(events)))


def finished_trials(events: Sequence[Event]) -> int:
    """How many trials came to their end."""
    return len({name for event in events for name in event.finished})


def block_seconds(events: Sequence[Event], plan: Plan) -> float | None:
    """How long a block took here, with all that surrounds its trials; None where no trial was finished."""
    done, took_s = finished_trials(events), spent_s(events)
    of_block = max(len(plan.trials) // max(plan.blocks, 1), 1)
    return took_s / done * of_block if done and took_s else None


def spent_s(events: Sequence[Event]) -> float:
    """Time that the run has taken so far, without the gaps between a run and its resumption."""
    return sum(_spans(events, ends=()))


def _spans(events: Sequence[Event], ends: Sequence[str] = _ENDS) -> Iterator[float]:
    """Seconds of each time that the study ran, to its end or the last that was journalled of it."""
    begin_ns = last_ns = None
    for event in events:
        if event.event == "run_started":
            if begin_ns is not None and last_ns is not None:
                yield (last_ns - begin_ns) / 1e9
            begin_ns = event.t_ns
        last_ns = event.t_ns
        if event.event in ends and begin_ns is not None:
            yield (event.t_ns - begin_ns) / 1e9
            begin_ns = None
    if begin_ns is not None and last_ns is not None:
        yield (last_ns - begin_ns) / 1e9


def _trials(events: Sequence[Event]) -> Iterator[float]:
    """Seconds of each trial, or of those that ran in one slot, until it was stored."""
    begin_ns: int | None = None
    for event in events:
        if event.event == "trial_started" and begin_ns is None:
            begin_ns = event.t_ns
        elif event.finished and begin_ns is not None:
            yield (event.t_ns - begin_ns) / 1e9
            begin_ns = None
        elif event.event in ("trial_interrupted", "run_started"):
            begin_ns = None
