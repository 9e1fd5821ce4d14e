"""The probes of searches: what was found so far in a block, also before a resume, and the next one's rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from leadline.plan.model import PlannedCell, Trial
from leadline.run.model import Pilot
from leadline.store.reader import open_result
from leadline.store.tables import LatencyRow, TrialRow
from leadline.workloads.conducted import conducted

_Found = tuple[TrialRow, Sequence[LatencyRow]]


class Probes:
    """Stored probes by cell and block. Of latencies only the whole interval's are kept."""

    def __init__(self, result: Path, cells: Sequence[PlannedCell], pilot: Pilot) -> None:
        self._pilot = pilot
        self._found: dict[tuple[str, int], list[_Found]] = {}
        searched = {cell.id for cell in cells if cell.search}
        if searched and (result / "trials").is_dir():
            self._read(result, searched)

    def _read(self, result: Path, searched: set[str]) -> None:
        stored = open_result(result)
        latency: dict[str, list[LatencyRow]] = {}
        for row in stored.latency():
            latency.setdefault(row.trial, []).append(row)
        for trial in stored.trials():
            if trial.cell in searched:
                self.add(trial, latency.get(trial.trial, ()))

    def add(self, row: TrialRow, latency: Sequence[LatencyRow]) -> None:
        """Keep a probe that was stored."""
        whole = [one for one in latency if one.interval < 0]
        self._found.setdefault((row.cell, row.block), []).append((row, whole))

    def with_rate(self, trial: Trial, cell: PlannedCell) -> PlannedCell:
        """The cell with the rate of its next probe; any other cell as it is."""
        if cell.search is None:
            return cell
        rate = self._pilot(cell.search, self._found.get((trial.cell, trial.block), ()))
        if rate is None:
            return cell
        return replace(cell, job=conducted(cell.job).at_rate(cell.job, rate))
