"""What the workers of a slot are handed: a cell's job with the names, times and places of its trial."""

from __future__ import annotations

import random
from typing import Any

from leadline.plan.model import PlannedCell, Trial
from leadline.run.interface import Assignment
from leadline.run.model import RunRequest
from leadline.run.places import Places
from leadline.store.writer import ResultWriter
from leadline.study.kind.interface import Layout
from leadline.workloads.runner import conducted

_LAYOUT_GENERATION = 0
_DEADLINE_NS_MAX = 2**63 - 1  # what the engine can count to
_SHORTEST_INTERVAL_NS = 100_000_000


class Jobs:
    """The jobs of one run."""

    def __init__(self, request: RunRequest, writer: ResultWriter, places: Places) -> None:
        self._request = request
        self._writer = writer
        self._places = places

    def worker_job(self, cell: PlannedCell, trial: Trial | None, layout: Layout | None) -> dict[str, Any]:
        """What a worker is handed, for a layout when `trial` is None."""
        options = self._request.options
        given = Assignment(
            cell,
            trial,
            self._places.of(cell.target),
            prefix=file_prefix(cell, trial, layout, self._owner(cell)),
            own_prefix=file_prefix(cell, trial, None),
            result=self._writer.path,
            logs=self._writer.logs_path(trial.id if trial else ""),
            ledger=self._writer.ledger_path(
                cell.id if layout is None else file_prefix(cell, trial, layout, self._owner(cell))
            ),
            seed=_own_seed(trial.seed if trial else self._request.plan.seed, options.host_number),
            generation=trial.order if trial else _LAYOUT_GENERATION,
            interval_ns=_interval_ns(cell, options.interval_s),
            deadline_ns=min(int(self.deadline_s(cell) * 1e9), _DEADLINE_NS_MAX),
            layout_rate_bytes_per_s=options.layout_rate_bytes_per_s,
        )
        return conducted(cell.job).as_worker_job(cell.job, given)

    def _owner(self, cell: PlannedCell) -> str:
        return next((one.owner for one in self._request.plan.targets if one.name == cell.target), cell.target)

    def deadline_s(self, cell: PlannedCell) -> float:
        """The longest that a trial of the cell may take."""
        return conducted(cell.job).deadline_s(cell.job) + self._request.options.grace_s


def _own_seed(seed: int, host: int) -> int:
    """Each host writes other bytes: storage may keep equal ones once, and take the work of many for one's."""
    if host == 0:
        return seed
    return random.Random(f"{seed}:{host}").getrandbits(53)  # noqa: S311 - exact in JSON too, no secret


def _interval_ns(cell: PlannedCell, interval_s: float) -> int:
    """The asked interval, but short enough that even a short trial has twenty of them; at least 100 ms.
    With fewer a shift of level could not be told from noise.

    Where a steady state is looked for, its window.
    """
    if cell.steady is not None:
        return cell.steady.window
    planned_ns = cell.job.ramp_time_ns + cell.job.runtime_ns
    asked_ns = int(interval_s * 1e9)
    return min(asked_ns, max(planned_ns // 20, _SHORTEST_INTERVAL_NS)) if planned_ns else asked_ns


def file_prefix(cell: PlannedCell, trial: Trial | None, layout: Layout | None, owner: str = "") -> str:
    """How a target's files begin; two targets may be one directory (a study of it against itself).

    Laid out files begin with their `owner`, which states of one target share.
    """
    if layout is not None:
        return f"{owner or cell.target}-data-{layout.key}"
    return f"{cell.target}-fresh-{trial.id if trial else ''}"
