"""The first screen of a trace: where the time went, what was moved in whose files, what to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from leadline.tracing.messages import moved_words
from leadline.tracing.model import TraceView
from leadline.tracing.view.tables import files_table
from leadline.verdict.model import Cell, Statement
from leadline.verdict.sections.answer import NextStep, StudyAnswer

_FILES = 8
_FINDINGS = 3
_QUESTION_MAX = 60  # letters of a command line
_ANSWER = "trace_time"
# What codes say already, or the words "the remainder" do.
_SAID_ELSEWHERE = frozenset(
    (
        "trace_warning",
        "trace_blind",
        "trace_lost",
        "trace_times",
        "trace_remainder",
        "trace_more_findings",
        _ANSWER,
    )
)
_TOGETHER = "I/O time is that of all processes together."
_SOUND = "nothing is known to be lost or unseen"


def trace_answer(
    views: Sequence[TraceView],
    cells: Sequence[Cell],
    statements: Sequence[Statement],
    name: str,
    steps: Sequence[str],
) -> StudyAnswer:
    """Made of the statements as they are weighed already, so that none is surer here than in the report."""
    heads = [one for one in statements if one.says == _ANSWER]
    rest = [one for one in statements if one.says not in _SAID_ELSEWHERE]
    cautions = [one.text for one in rest if one.tone == "caution"]
    findings = [one.text for one in rest if one.tone == "finding"][:_FINDINGS]
    shown = next((view for view in views if view.files), None)
    together = _TOGETHER if shown is not None and shown.processes_count > 1 else ""
    table = None if shown is None else replace(files_table(shown, brief=_FILES), note=together)
    return StudyAnswer(
        question=f"Where did the time of {_cut(name)} go, and what did it move?",
        text=" ".join(one.text for one in heads) or "Nothing of the command was recorded.",
        said=(
            *(line for view in views if view.processes for line in moved_words(view)),
            *cautions,
            *findings,
        ),
        matrix=table,
        steps=tuple(NextStep(step) for step in steps),
        sound=_SOUND if all(cell.validity.state == "VALID" for cell in cells) else "",
    )


def _cut(name: str) -> str:
    """Whole words of a command line: what is cut out of one could not be told to be private."""
    words = name.split(" ")
    found = words[0]
    for word in words[1:]:
        if len(found) + len(word) > _QUESTION_MAX:
            return f"{found} \u2026"
        found = f"{found} {word}"
    return found
