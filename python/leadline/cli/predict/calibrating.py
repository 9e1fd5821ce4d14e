"""Cells of results as what a simulation is calibrated by, and its parameters as the file that it reads."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from leadline.errors import UsageError

if TYPE_CHECKING:
    from leadline.simulation.calibrate import Calibration, ObservedCell
    from leadline.simulation.model import SimulatedCluster
    from leadline.simulation.parameters import Parameters
    from leadline.store.tables import TrialRow
    from leadline.verdict.model import Cell

_DATA = ("read", "write", "randread", "randwrite")
_SMALL = 64 * 1024  # what flushes behind larger writes waits for their data, too
_SPREAD_ONE = 0.1  # of a single trial, which does not say how far it scatters


@dataclass(frozen=True)
class Usable:
    """Cells that a calibration takes, and why it does not take the others."""

    cells: tuple[ObservedCell, ...]
    left: tuple[str, ...]


def calibrated(
    cluster: SimulatedCluster, results: Sequence[Path], before: Parameters, device: str
) -> tuple[Calibration, tuple[str, ...]]:
    """Parameters of these results, and what was left out. Raises UsageError for an INVALID cell."""
    from leadline.simulation.calibrate import calibrate

    found = [usable_of(one, len(cluster.clients)) for one in results]
    cells = [cell for one in found for cell in one.cells]
    left = tuple(words for one in found for words in one.left)
    if not cells:
        raise UsageError(
            "nothing of these results calibrates a simulation" + "".join(f"; {words}" for words in left[:5]),
            "measure reads and writes of one block size on a Ceph pool",
        )
    names = ", ".join(str(one) for one in results)
    return calibrate(cluster, cells, before, device, names), left


def usable_of(path: Path, clients: int) -> Usable:
    """The cells of a result. Raises UsageError where one is INVALID."""
    from leadline.store.reader import open_result
    from leadline.verdict.diagnosis.results import diagnose_result
    from leadline.verdict.model import UNUSABLE

    result = open_result(path)
    if result.published:
        raise UsageError(
            f"{path} has figures of a document, and no counters", "give a result of `leadline run`"
        )
    targets: Mapping[str, Any] = result.manifest["targets"]
    trials = {one.trial: one for one in result.trials()}
    cells: list[ObservedCell] = []
    left: list[str] = []
    for one in diagnose_result(result):
        cell = one.cell
        if cell.validity.state in UNUSABLE:
            worst = [one.title for one in cell.validity.codes if one.state in UNUSABLE]
            codes = ", ".join(worst) or "it has no figures"
            raise UsageError(
                f"{path}: cell {cell.id} is {cell.validity.state} ({codes}), and calibrates nothing",
                "measure it again, or give a result without it",
            )
        mine = [
            trials[view.trial]
            for view in cell.trials
            if view.trial in trials and trials[view.trial].state == "complete"
        ]
        why = _unfit(cell, targets[cell.target].get("ceph"), mine, clients)
        if why:
            left.append(f"{path}: cell {cell.id} is not used: {why}")
        else:
            cells.append(_observed(cell, targets[cell.target]["ceph"], mine, one.found.figures))
    return Usable(tuple(cells), tuple(left))


def _unfit(cell: Cell, ceph: Mapping[str, Any] | None, trials: Sequence[TrialRow], clients: int) -> str:
    job = cell.job
    if not ceph or not (ceph.get("size") or ceph.get("k")):
        return "its target names no pool of Ceph's"
    if job.get("rw") not in _DATA or not {"bs", "iodepth", "numjobs"} <= set(job) or job.get("bssplit"):
        return "it is not reads alone or writes alone, of one size"
    if job.get("rate_iops") or job.get("rate_bytes_per_s") or job.get("fsync") or not job.get("direct"):
        return "it is paced, buffered or syncs"
    if not trials:
        return "no trial of it ended well"
    if any((one.hosts or 1) > clients for one in trials):
        return "it ran on more clients than the topology has"
    return ""


def _observed(
    cell: Cell, ceph: Mapping[str, Any], trials: Sequence[TrialRow], figures: Sequence[Mapping[str, Any]]
) -> ObservedCell:
    from leadline.simulation.calibrate import ObservedCell
    from leadline.simulation.model import parse_work

    job = cell.job
    shards = f"{ceph['k']}+{ceph['m']}" if ceph.get("k") else str(ceph["size"])
    depth = 1 if job["engine"] in ("sync", "psync") else job["iodepth"]
    text = f"rw={job['rw']},bs={job['bs']},iodepth={depth},numjobs={job['numjobs']},protection={shards}"
    work = parse_work(f"{text},clients={trials[0].hosts or 1}", 1)
    requests = [(one.read_operations + one.write_operations) / (one.measured_ns / 1e9) for one in trials]
    pieces = max(job["bs"] / work.piece_bytes, 1.0)
    rate = fmean(requests) * pieces
    logs = [math.log(one) for one in requests]
    spread = max(logs) - min(logs) if len(logs) > 1 else _SPREAD_ONE
    writes = job["rw"] in ("write", "randwrite")
    cores = _mean(figures, "osd_cores")
    stored = [
        one.store_written_bytes / (one.write_operations * pieces)
        for one in trials
        if one.store_written_bytes and one.write_operations
    ]
    # What the load generator spends between trials is in neither; its ramp is.
    spent = [(one.cpu_user_ns + one.cpu_system_ns) / one.measured_ns for one in trials]
    return ObservedCell(
        f"{cell.id}",
        work,
        rate,
        spread / 2,
        None if not cores else cores / rate,
        fmean(spent) / rate if fmean(spent) else None,
        fmean(stored) if stored and writes else None,
        _mean(figures, "osd_kv_sync_s") if writes and job["bs"] <= _SMALL else None,
    )


def _mean(figures: Sequence[Mapping[str, Any]], name: str) -> float | None:
    found = [value for one in figures if isinstance(value := one.get(name), float) and value > 0]
    return fmean(found) if found else None


def parameters_text(parameters: Parameters) -> str:
    """The file that `--parameters` reads."""
    return "\n".join(_lines(parameters)) + "\n"


def _lines(parameters: Parameters) -> Iterator[str]:
    yield f"# Parameters for `leadline simulate --parameters`: {json.dumps(parameters.source)}"
    yield "# Times in seconds, rates in bytes per second; low to high holds the value in 90 of 100 cases."
    for section, figures in parameters.sections.items():
        yield f"{json.dumps(section)}:"
        for name, one in figures.items():
            words = f"value: {one.value:.6g}, low: {one.low:.6g}, high: {one.high:.6g}, kind: {one.kind}"
            yield f"  {name}: {{{words}, source: {json.dumps(one.source)}}}"
