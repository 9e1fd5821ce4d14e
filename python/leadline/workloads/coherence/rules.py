"""Contradictions in a work of coherence: foreign options, questions that are asked twice."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.study.kind.rule import Problem
from leadline.workloads.coherence.options import CoherenceOptions


def coherence_rules(options: CoherenceOptions) -> Iterator[Problem]:
    """All that can be wrong with a work that asks what another way sees."""
    names = options.questions or []
    if not names:
        yield Problem("questions", "asks nothing", "write for example [name, size_closed, bytes_closed]")
    for place, name in enumerate(names):
        if name in names[:place]:
            yield Problem("questions", f"{name} is given twice", "keep one")
    if options.give_up == 0:
        yield Problem("give_up", "no time to look at all", "write for example give_up: 30s")
