"""A kind of work as verdicts see it: its figures, which validity codes apply and how, and what it has to say.

What is said here holds for most kinds; what one does otherwise is in `workloads/<kind>/judge.py`, and
`workloads/judge.py` lists them all. Values only: nothing here reads a file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from leadline.analysis.cells import CellTable
from leadline.analysis.chain import Bytes
from leadline.analysis.metrics import Measured, MetricKind, adds_up
from leadline.analysis.statistics.means import ALPHA
from leadline.plan.model import PlannedCell
from leadline.store.tables import LatencyRow, TrialRow
from leadline.study.target import LeftOut
from leadline.verdict.model import Cell, CellShown, Comparison, FigureTable, Statement
from leadline.verdict.sections.section import Section

if TYPE_CHECKING:
    from leadline.store.reader import Result
    from leadline.study.kind.interface import AnyJob
    from leadline.verdict.codes.case import Case

JobT = TypeVar("JobT", bound="AnyJob")
Limits = Mapping[str, float]


@dataclass(frozen=True)
class OwnCells:
    """The cells of one kind in one result, judged: what its sentences and tables are made of.

    `extra` is what `JudgedWork.read` gave; `comparisons` are of targets, `within` of cells of one target, as
    `JudgedWork.within` pairs them; at `alpha` they are decided.
    """

    manifest: Mapping[str, Any]
    planned: tuple[PlannedCell, ...]
    cells: tuple[Cell, ...]
    tables: Mapping[str, CellTable]
    comparisons: tuple[Comparison, ...]
    left_out: tuple[LeftOut, ...]
    extra: Any
    within: tuple[Comparison, ...] = ()
    alpha: float = ALPHA


@dataclass(frozen=True)
class KindAnswer:
    """What a kind of work adds to the answer of a study; `matrix` stands in the place of its figures.

    `adds`: it goes on from what the comparisons say, and does not answer in their place; `leads`: it stands
    before them; `instead`: what they say is in it already.
    """

    text: str = ""
    matrix: FigureTable | None = None
    adds: bool = False
    leads: bool = False
    instead: bool = False


@dataclass(frozen=True)
class WithinTarget:
    """Cells of one target that its question compares, (base, other); `against` says what the bases are."""

    against: str = ""
    pairs: tuple[tuple[PlannedCell, PlannedCell], ...] = ()


@dataclass(frozen=True)
class ColdInput:
    """An input that was to come from storage: its bytes, and how many read it in each trial."""

    bytes: int
    readers: int


class JudgedWork(ABC, Generic[JobT]):
    """One kind of work, judged. `kind` is the name of its folder."""

    kind: ClassVar[str]

    # Figures.

    metric_kinds: ClassVar[Mapping[str, MetricKind]] = {}  # metrics that only this kind has
    directions: ClassVar[tuple[str, ...]] = ("read", "write", "sync")  # of latencies, before metrics' names
    parts: ClassVar[tuple[str, ...]] = ()  # directions that are works of their own
    series: ClassVar[tuple[str, str]] = ("bandwidth", "B/s")  # what is drawn over time, and its unit

    def known_metrics(self) -> tuple[str, ...]:
        """Every metric that a cell can have and whose name is known beforehand."""
        return tuple(self.metric_kinds)

    def metric_kind(self, name: str) -> MetricKind | None:
        """The kind of a metric that only this kind of work has."""
        return self.metric_kinds.get(name)

    def read(self, result: Result) -> Any:
        """What a result holds of this kind besides trials, latencies and series."""
        return None

    @abstractmethod
    def metrics(
        self, trial: TrialRow, latency: Sequence[LatencyRow], *, open_loop: bool, extra: Any
    ) -> Measured:
        """Every metric of one complete trial. `latency` are its rows, `extra` is what `read` gave."""

    @abstractmethod
    def default_metrics(self, job: JobT) -> tuple[str, ...]:
        """What cells are compared in where the study does not say; the first is what a work is asked for."""

    def expected_metrics(self, job: JobT) -> tuple[str, ...]:
        """What a cell that nothing was measured of says that it lacks."""
        return self.default_metrics(job)

    def explaining_metrics(self, job: JobT) -> tuple[str, ...]:
        """What explains that: compared between two results; within one it has sections of its own."""
        del job
        return ()

    def trial_values(self, trial: TrialRow) -> Mapping[str, float]:
        """Figures of a trial for the table of trials, besides its metrics."""
        return {}

    def progress(self, trial: TrialRow) -> str | None:
        """A complete trial in one line while a study runs; None: its rates."""
        return None

    def shown(self, job: JobT) -> CellShown:
        """How a cell is laid out."""
        own = self.default_metrics(job)[:1]
        return CellShown(leading=own or CellShown().leading, asked=tuple(("", name) for name in own))

    # Validity codes: which apply, and what they ask.

    exempt: ClassVar[frozenset[str]] = frozenset()  # codes that never fire on this kind
    unbounded_writes: ClassVar[bool] = False  # servers write more for it than can be told, as journals

    def too_short(self, case: Case, limits: Limits) -> tuple[str, bool] | None:
        """Why an interval is too short for its figures, and whether that is INVALID."""
        seconds = min(trial.measured_ns / 1e9 for trial in case.good)
        job: JobT = case.cell.job  # type: ignore[assignment]
        if 0 < seconds < limits["seconds"] and self.ends_with_size(job):
            return f"the job moved all its bytes in {seconds:.3g} s; {_precision(case.good)}", False
        if seconds < limits["seconds"]:
            return f"{seconds:.3g} s were measured", seconds < limits["seconds_invalid"]
        few = self.few_operations(case, limits)
        return None if few is None else (few, False)

    def ends_with_size(self, job: JobT) -> bool:
        """True where a job is over when it has moved its bytes: however short that is, it is all of it."""
        del job
        return False

    def few_operations(self, case: Case, limits: Limits) -> str | None:
        """The operations of an interval that is long enough, where these are too few for a rate."""
        seconds = min(trial.measured_ns / 1e9 for trial in case.good)
        operations = min(trial.read_operations + trial.write_operations for trial in case.good)
        return f"{operations} operations in {seconds:.3g} s" if operations < limits["operations"] else None

    def read_cold(self, job: JobT, found: Bytes, trials: Sequence[TrialRow]) -> Bytes | None:
        """Of what was read in these trials, what must have come from storage; None: nothing."""
        return found if job.reads else None

    def cold_input(self, job: JobT) -> ColdInput | None:
        """The input that was to be cold, where there is one."""
        return None

    def compressible(self, job: JobT) -> str | None:
        """How the data can be compressed, where a study asked for it."""
        return None

    def must_be_slower(
        self,
        small: JobT,
        large: JobT,
        sizes: float,
    ) -> tuple[str, str] | None:
        """Words for two jobs of which no storage serves the first quicker than the second."""
        return None

    def differs(self, case: Case, limits: Limits) -> Iterable[str]:
        """In what a trial was not what it repeats."""
        return ()

    def not_seen(self, case: Case) -> str | None:
        """Who measured it instead of leadline, and what is odd in what they say; None where leadline did."""
        return None

    # Where written bytes went.

    def write_sizes(self, job: JobT) -> tuple[tuple[int, float], ...]:
        """(bytes, share of the bytes written) of each size in which it writes; none: not known."""
        return ()

    def syncs_each(self, job: JobT) -> bool:
        """True where each write is synced before the next."""
        return False

    def sent_one_by_one(self, job: JobT) -> bool:
        """True where writes reach storage as they were made, cached or not: no cache merges neighbours."""
        return self.syncs_each(job)

    # What it has to say.

    more_blocks: ClassVar[str] = ""  # how more blocks are had where it is not by another run with --blocks
    findings_first: ClassVar[bool] = False  # its findings are read before any caution

    def statements(self, own: OwnCells) -> Iterable[Statement]:
        """Sentences beyond the comparison of what it is asked for."""
        return ()

    def within(self, planned: Sequence[PlannedCell]) -> WithinTarget:
        """Which of its cells are compared with another one of the same target."""
        return WithinTarget()

    def answer(self, own: OwnCells) -> KindAnswer:
        """What of the study's question only this kind can answer."""
        return KindAnswer()

    def section(self, own: OwnCells) -> Section | None:
        """Tables and figures of its own."""
        return None

    def pair_tables(self, own: OwnCells) -> tuple[FigureTable, ...]:
        """Tables that stand where a study has that of all its targets."""
        return ()

    def private(self, extra: Any) -> Iterable[str]:
        """What programs printed, of all that `read` gave: a redacted report hides it."""
        return ()

    # The same for every kind.

    def measured(
        self, trial: TrialRow, latency: Sequence[LatencyRow], *, open_loop: bool = False, extra: Any = None
    ) -> Measured:
        """The metrics of a trial, told which of them add up."""
        found = self.metrics(trial, latency, open_loop=open_loop, extra=extra)
        names = (*found.values, *found.reasons)
        sums = (name for name in names if (kind := self.metric_kind(name)) is not None and adds_up(kind))
        return replace(found, sums=frozenset(sums))


def _precision(trials: Sequence[TrialRow]) -> str:
    """How precise a rate of short trials is: the spread of the rates, from the lowest to the highest."""
    rates = [(trial.read_operations + trial.write_operations) / trial.measured_ns for trial in trials]
    mean = sum(rates) / len(rates)
    if len(rates) < 2 or mean <= 0:
        return "one block does not show how precise its rate is: measure more blocks (--blocks 5)"
    spread = (max(rates) - min(rates)) / mean
    return f"the rates of its {len(rates)} blocks differ by up to {100 * spread:.2g} % of their mean"
