"""Whole programs as verdicts see them: asked for their run time, explained by what a trace tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from leadline import units
from leadline.analysis.metrics import PROGRAM_METRICS, Measured, MetricKind
from leadline.analysis.statistics.means import typical
from leadline.plan.model import PlannedCell
from leadline.store.tables import LatencyRow, TrialRow
from leadline.verdict.interface import ColdInput, JudgedWork, KindAnswer, Limits, OwnCells, WithinTarget
from leadline.verdict.model import CellShown, Statement
from leadline.verdict.sections.section import Section
from leadline.workloads.application.figures import (
    CopyTrace,
    account_of,
    application_metrics,
    copies_of,
    copy_traces,
)
from leadline.workloads.application.job import ApplicationJob
from leadline.workloads.application.messages import application_answer, application_statements
from leadline.workloads.application.tables import application_section, places_of

if TYPE_CHECKING:
    from leadline.store.reader import Result
    from leadline.verdict.codes.case import Case

_ProgramT = TypeVar("_ProgramT", bound=ApplicationJob)
Traces = Mapping[str, Mapping[int, CopyTrace]]
COMPARED = ("run_time", "read_write_time", "agg_perf_by_slowest")  # the first is what is asked
# Figures of a copy, the mean over those of a trial.
_OF_COPIES = {
    "read_write_time": MetricKind(
        "s", False, "time in reading, writing and syncing", asked=False, leads=False
    ),
    "cpu_time": MetricKind("s", False, "CPU time"),
    "memory_max": MetricKind("B", False, "largest memory"),
}
_METRICS = {**_OF_COPIES, **PROGRAM_METRICS}


class JudgedPrograms(JudgedWork[_ProgramT]):
    """How long a program takes is the figure, whatever limits it, even busy CPUs: that is said in words."""

    metric_kinds = _METRICS
    exempt = frozenset({"host_cpu_saturated"})
    findings_first = True

    def read(self, result: Result) -> Any:
        """What was traced of each trial, by copy."""
        from leadline.tracing.store import read_trace_without_segments, traced_trials

        return {
            trial: copy_traces(read_trace_without_segments(result, trial)) for trial in traced_trials(result)
        }

    def metrics(
        self,
        trial: TrialRow,
        latency: Sequence[LatencyRow],
        *,
        open_loop: bool,
        extra: Traces | None,
    ) -> Measured:
        """Each copy's figures, their mean; `extra` are the traces of each trial's copies."""
        return Measured(*application_metrics(copies_of(trial, (extra or {}).get(trial.trial, {}))))

    def default_metrics(self, job: _ProgramT) -> tuple[str, ...]:
        """The run time and what explains it."""
        return COMPARED[: 1 if job.trace == "off" else None]

    def progress(self, trial: TrialRow) -> str | None:
        """The run time of its copies."""
        each = [copy["wall_ns"] / 1e9 for copy in account_of(trial)]
        if not each:
            return None
        mean, slowest = units.format_duration(typical(each) or 0.0), units.format_duration(max(each))
        more = f", geometric mean of {len(each)} copies, slowest {slowest}" if each[1:] else ""
        return f"run time {mean}{more}"

    def shown(self, job: _ProgramT) -> CellShown:
        """By its run time, in charts of its own."""
        asked = (("", self.default_metrics(job)[0]),)
        return CellShown(leading=("run_time",), asked=asked, own_charts=True)

    def too_short(self, case: Case, limits: Limits) -> tuple[str, bool] | None:
        """Programs end when they are done; one that is over at once was mostly being started."""
        seconds = min(trial.measured_ns / 1e9 for trial in case.good)
        words = f"a copy ran for {seconds:.3g} s: much of it is starting the program"
        return (words, False) if seconds < limits["seconds_invalid"] else None

    def cold_input(self, job: _ProgramT) -> ColdInput | None:
        """Copies share it, so that it has to come from storage once at most."""
        wanted = job.cache == "cold" and job.input_bytes
        return ColdInput(job.input_bytes, job.copies) if wanted else None


class JudgedApplication(JudgedPrograms[ApplicationJob]):
    """One command, so many copies of it at once."""

    kind = ApplicationJob.kind

    def within(self, planned: Sequence[PlannedCell]) -> WithinTarget:
        """Each number of copies against the fewest."""
        found: dict[tuple[str, ApplicationJob], list[tuple[int, PlannedCell]]] = {}
        for cell in planned:
            if isinstance(cell.job, ApplicationJob):
                apart = cell.job.model_copy(update={"copies": 1})
                found.setdefault((cell.target, apart), []).append((cell.job.copies, cell))
        pairs = []
        for own in found.values():
            fewest, *more = sorted(own, key=lambda one: one[0])
            pairs += [(fewest[1], cell) for _, cell in more]
        return WithinTarget("the fewest copies", tuple(pairs))

    def answer(self, own: OwnCells) -> KindAnswer:
        """Where it is not storage that copies wait for."""
        return application_answer(_places(own))

    def statements(self, own: OwnCells) -> Iterable[Statement]:
        """What the cells say beyond the comparison of their run times."""
        return application_statements(_places(own), own.comparisons, own.within)

    def section(self, own: OwnCells) -> Section | None:
        """Run times, speeds and shares by copies and target."""
        return application_section(_places(own))


def _places(own: OwnCells) -> Any:
    return places_of(own.planned, own.cells, own.tables, own.extra or {})
