"""Which things that a work says contradict each other: its jobs, its steadiness, its search.

The options of each job are judged by its kind; nothing is adjusted silently here either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from leadline import units
from leadline.study.kind.rule import Problem
from leadline.study.kinds import asked_kind, problem_of
from leadline.study.work import WorkOptions

if TYPE_CHECKING:
    from leadline.study.study import Work

_Found = Iterator[tuple[Problem, "Work"]]


def problem_of_works(own: WorkOptions, works: Sequence[Work]) -> tuple[Problem | None, Work]:
    """The first contradiction in what a work of the study says, with the work or job that is at fault."""
    found = next((one for rule in _RULES for one in rule(own, works)), None)
    return found or (None, works[0])


def _options(_own: WorkOptions, works: Sequence[Work]) -> _Found:
    """A search sets the pace itself, so that an `arrival` means something beside it."""
    for work in works:
        options, face = work.options, asked_kind(work.options)
        if work.search is not None and face is not None and face.paces:
            for key in face.paces:
                if getattr(options, key) is not None:
                    yield Problem(key, "search finds the rate itself", f"leave {key} out, or search"), work
            options = options.model_copy(update={face.paces[-1]: work.search.low})
        problem = problem_of(options)
        if problem is not None:
            yield problem, work


def _jobs(own: WorkOptions, works: Sequence[Work]) -> _Found:
    if own.jobs is None:
        if own.order is not None:
            yield Problem("order", "means nothing without jobs", "add jobs, or leave order out"), works[0]
        return
    for key, part in (("steady_state", works[0].steady), ("search", own.search)):
        if part is not None:
            remedy = f"give the job a work of its own, or leave {key} out of this one"
            yield Problem(key, "is of one job; this work has several", remedy), works[0]
    if works[0].order == "together":
        yield from _together(works)


def _together(works: Sequence[Work]) -> _Found:
    first = works[0].options
    for work in works:
        if not work.options.time_based or not work.options.runtime:
            remedy = "add time_based: true and a runtime for all of them, or write order: start_together"
            yield Problem("time_based", "jobs that run together must run for a time", remedy), work
        for key in ("runtime", "ramp_time"):
            times = [getattr(options, key) or 0 for options in (first, work.options)]
            if times[0] != times[1]:
                words = " and ".join(units.exact_duration(time) for time in times)
                message = f"jobs that run together are measured together, not for {words}"
                yield Problem(key, message, f"write {key} once, beside jobs"), work


def _kind(own: WorkOptions, works: Sequence[Work]) -> _Found:
    """What a kind of work cannot be: one of several jobs, steady, or searched for a rate."""
    for work in works:
        face = asked_kind(work.options)
        if face is None:
            continue
        if own.jobs is not None and face.alone is not None:
            yield Problem(face.told_by, face.alone, "give it a work of its own"), work
        for key, part in (("steady_state", work.steady), ("search", own.search)):
            if part is not None and own.jobs is None and face.no_rate is not None:
                message = f"is of reading and writing, not of {face.no_rate}"
                yield Problem(key, message, f"leave {key} out"), work


def _sweep(own: WorkOptions, works: Sequence[Work]) -> _Found:
    if own.sweep is None:
        return
    for key, part in (("search", own.search), ("jobs", own.jobs), ("steady_state", own.steady_state)):
        if part is not None:
            remedy = f"give each a work of its own, or leave {key} out of this one"
            yield Problem("sweep", f"goes by plain trials, not by {key}", remedy), works[0]
    for option in own.sweep.over:
        if getattr(own, option, None) is not None:
            yield Problem(option, "the sweep says it", f"leave {option} out of one of the two"), works[0]
    face = asked_kind(works[0].options)
    if face is not None and own.sweep.metric not in face.rates:
        remedy = f"choose one of: {', '.join(face.rates)}" if face.rates else "leave sweep out"
        yield Problem("sweep", f"a work with {face.told_by} has no {own.sweep.metric}", remedy), works[0]


def _steady(_own: WorkOptions, works: Sequence[Work]) -> _Found:
    for work in works:
        asked, options = work.steady, work.options
        if asked is None:
            continue
        if work.search is not None:
            yield Problem("steady_state", "search has its own trials", "keep one of the two"), work
        if not options.time_based or not options.runtime:
            remedy = "add time_based: true and a runtime: the longest that it may take"
            yield Problem("steady_state", "needs a job that goes on for a time", remedy), work
        elif options.runtime < asked.shortest_ns:
            least = units.exact_duration(asked.shortest_ns)
            message = f"{asked.windows} windows of {units.exact_duration(asked.window)} do not fit"
            yield (
                Problem("runtime", message, f"write a runtime of at least {least}, better several times"),
                work,
            )


def _search(_own: WorkOptions, works: Sequence[Work]) -> _Found:
    for work in works:
        asked, options = work.search, work.options
        if asked is None:
            continue
        if not options.time_based or not options.runtime:
            remedy = "add time_based: true and a runtime: that of each probe"
            yield Problem("search", "needs a job that goes on for a time", remedy), work
        if isinstance(asked.high, float) and asked.high <= asked.low:
            message = f"nothing lies between low {asked.low:g} and high {asked.high:g}"
            yield Problem("search", message, "write a high above low, or high: auto"), work


_RULES: tuple[Callable[[WorkOptions, Sequence[Work]], _Found], ...] = (
    _sweep,
    _kind,
    _jobs,
    _options,
    _steady,
    _search,
)
