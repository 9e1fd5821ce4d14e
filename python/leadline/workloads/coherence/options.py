"""The options of a work that asks what one way sees of what another writes, as a study may write them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from leadline.study.kind.options import Options
from leadline.workloads.coherence.job import Question
from leadline.yamlio.fields import Duration, Whole


class CoherenceOptions(Options):
    """Which questions, how often, and how long a reader looks."""

    questions: list[Question] | None = Field(
        None, description="instead of rw: what a reader on another target is asked of what this one writes"
    )
    repetitions: Annotated[int, Whole(1, 1_000)] | None = Field(
        None, description="with questions: times that each is asked in a trial; 5"
    )
    give_up: Duration | None = Field(
        None, description="with questions: how long a reader looks for what it has not seen; 30s"
    )
