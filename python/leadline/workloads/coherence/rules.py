"""Contradictions in a work of coherence: foreign options, questions that are asked twice."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.study.rule import Problem
from leadline.workloads.io.job import JOB_OPTIONS, JobOptions

OWN = ("questions", "repetitions", "give_up")


def without_questions(options: JobOptions) -> Iterator[Problem]:
    """Options that mean something only with questions."""
    for key in OWN:
        if key != "questions" and getattr(options, key) is not None:
            yield Problem(
                key, "means nothing without questions", "add questions: [name, bytes_closed], or leave it out"
            )


def coherence_rules(options: JobOptions) -> Iterator[Problem]:
    """All that can be wrong with a work that asks what another way sees."""
    for key in JOB_OPTIONS:
        if key not in OWN and getattr(options, key) is not None:
            yield Problem(
                key,
                "is of other kinds of work, and means nothing with questions",
                "leave it out, or make two works of it",
            )
    names = options.questions or []
    if not names:
        yield Problem("questions", "asks nothing", "write for example [name, size_closed, bytes_closed]")
    for place, name in enumerate(names):
        if name in names[:place]:
            yield Problem("questions", f"{name} is given twice", "keep one")
    if options.give_up == 0:
        yield Problem("give_up", "no time to look at all", "write for example give_up: 30s")
