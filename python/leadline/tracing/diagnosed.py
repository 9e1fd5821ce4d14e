"""The diagnosis of a trace: what of the program's way of I/O costs it, by the rules that `show` states, too.

It is no judge of its own: `named` is what the first screen says, `behind` what held and costs little beside.
"""

from __future__ import annotations

from dataclasses import dataclass

from leadline.foreign import UNTOUCHED, reading
from leadline.store.reader import Result
from leadline.tracing.findings import trace_cells
from leadline.tracing.messages import cost_words, said, statements
from leadline.tracing.model import RuleUnasked, TraceFinding, TraceView
from leadline.tracing.tables import KINDS
from leadline.verdict.model import Cell

_DONE = {"read": "reading", "write": "writing", "meta": "metadata", "sync": "syncs"}


@dataclass(frozen=True)
class TraceCause:
    """A rule that held. `share` is the most of the run that it costs, None where the trace has no times."""

    finding: TraceFinding
    share: float | None
    words: str

    @property
    def evidence(self) -> str:
        """The costliest places."""
        return "; ".join(self.finding.examples)


@dataclass(frozen=True)
class TraceDiagnosed:
    """One trial of a trace. `open` are rules that no record could answer, `uses` the shares of the time.

    `outcome` is `named`, `nothing` (every rule was asked, or said why not, and none holds) or `unusable`.
    """

    cell: Cell
    outcome: str
    named: tuple[TraceCause, ...] = ()
    behind: tuple[TraceCause, ...] = ()
    open: tuple[RuleUnasked, ...] = ()
    uses: tuple[tuple[str, float | None], ...] = ()
    notes: tuple[str, ...] = ()


def diagnose_trace(result: Result) -> tuple[TraceDiagnosed, ...]:
    """Each trial of a trace, imported ones too. Segments and histograms are not read."""
    with reading(result.path, UNTOUCHED):
        views, cells = trace_cells(result, with_charts=False)
        return tuple(_diagnosed(view, cell) for view, cell in zip(views, cells, strict=True))


def _diagnosed(view: TraceView, cell: Cell) -> TraceDiagnosed:
    cautions = tuple(one.text for one in statements(view, cell.id) if one.tone == "caution")
    if not view.processes:
        return TraceDiagnosed(cell, "unusable", notes=cautions)
    first = said(view)
    return TraceDiagnosed(
        cell,
        "named" if first else "nothing",
        tuple(_cause(item, view) for item in first),
        tuple(_cause(item, view) for item in view.findings if item not in first),
        view.unasked,
        (
            *((_DONE[kind], getattr(view.whole, kind)) for kind in KINDS),
            ("computing", view.whole.compute),
            ("waiting", view.whole.wait),
        ),
        cautions,
    )


def _cause(item: TraceFinding, view: TraceView) -> TraceCause:
    return TraceCause(item, _share(item, view), cost_words(item, view))


def _share(item: TraceFinding, view: TraceView) -> float | None:
    """Of the run where its length is known, else of all process time."""
    if item.cost_s is None:
        return None
    runs = [copy.run_s for copy in view.copies if copy.run_s is not None]
    run_s = max(runs, default=view.speeds.wall_s or 0.0)
    if item.saves_s is not None and run_s > 0:
        return min(item.saves_s / run_s, 1.0)
    return min(item.cost_s / view.whole.base_s, 1.0) if view.whole.base_s > 0 else None
