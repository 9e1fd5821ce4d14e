"""What one way to a storage sees of another, as verdicts see it: a table of its own, writer by reader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from leadline.analysis.metrics import Measured, MetricKind
from leadline.store.tables import LatencyRow, TrialRow
from leadline.verdict.interface import JudgedWork, KindAnswer, OwnCells
from leadline.verdict.model import CellShown, FigureTable, Statement
from leadline.workloads.coherence.answer import coherence_answer
from leadline.workloads.coherence.figures import coherence_metrics
from leadline.workloads.coherence.job import LAGS, WORDS, CoherenceJob
from leadline.workloads.coherence.messages import (
    coherence_progress,
    coherence_statements,
    coherence_tables,
    pairs_of,
)

# What one way to a file system sees of another.
_SEEN = {
    **{f"seen_{name}": MetricKind("ns", False, f"time until seen: {WORDS[name]}") for name in LAGS},
    "shared_bandwidth": MetricKind("B/s", True, "bandwidth of two writers in one file"),
}


class JudgedCoherence(JudgedWork[CoherenceJob]):
    """Asked for nothing: a writer's readers are no alternatives to each other.

    A trial takes as long as its questions do, and so is never too short.
    """

    kind = CoherenceJob.kind
    metric_kinds = _SEEN
    # Its intervals are of repetitions, of which one block has enough.
    exempt = frozenset({"too_short", "few_blocks"})

    def metrics(
        self,
        trial: TrialRow,
        latency: Sequence[LatencyRow],
        *,
        open_loop: bool,
        extra: Any,
    ) -> Measured:
        """The median time of each question."""
        return Measured(*coherence_metrics(trial))

    def default_metrics(self, job: CoherenceJob) -> tuple[str, ...]:
        """None."""
        return ()

    def progress(self, trial: TrialRow) -> str | None:
        """What was seen, and what never was."""
        return coherence_progress(trial)

    def shown(self, job: CoherenceJob) -> CellShown:
        """Of two targets, and so in no target's table."""
        return CellShown(own_tables=True)

    def statements(self, own: OwnCells) -> Iterable[Statement]:
        """What a reader may rely on."""
        return coherence_statements(_pairs(own), own.left_out)

    def answer(self, own: OwnCells) -> KindAnswer:
        """A word for each writer and reader."""
        return coherence_answer(_pairs(own))

    def pair_tables(self, own: OwnCells) -> tuple[FigureTable, ...]:
        """Medians, locks and shared files; the worst times."""
        return coherence_tables(_pairs(own))


def _pairs(own: OwnCells) -> Any:
    return pairs_of(own.planned, own.cells, own.tables)
