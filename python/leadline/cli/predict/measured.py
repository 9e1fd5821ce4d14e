"""What results say of one device, metadata server or gateway, for sizing; of cells that say nothing, why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.sizing.designs import PerDeviceRate
    from leadline.sizing.gateways import PerGatewayRate, PerRankRate
    from leadline.sizing.request import AskedSizing
    from leadline.store.tables import TrialRow
    from leadline.verdict.diagnosis.results import CellDiagnosed
    from leadline.verdict.model import Cell, TargetView
    from leadline.verdict.protections import PerDevice

_SUFFIX = "_iops"


@dataclass
class MeasuredRates:
    """Rates of one device from cells that devices bounded, of one rank or gateway, or why none."""

    devices: list[PerDeviceRate] = field(default_factory=list)
    ranks: list[PerRankRate] = field(default_factory=list)
    gateways: list[PerGatewayRate] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def measured_in(results: Sequence[Path], asked: AskedSizing) -> MeasuredRates:
    """Of all results, what is asked for. Raises ResultError for what is no result."""
    from leadline.store.reader import open_result
    from leadline.verdict.diagnosis.results import diagnose_result
    from leadline.verdict.findings import build_findings
    from leadline.verdict.protections import per_device_of

    found = MeasuredRates()
    for path in results:
        result = open_result(path)
        if result.published:
            found.refused.append(
                f"Not divided by devices: {path}: figures of a document, which no counter explains"
            )
            continue
        targets = build_findings(result, with_charts=False, explained=False).targets
        diagnosed = diagnose_result(result)
        judged = per_device_of([one.cell for one in diagnosed], targets, diagnosed, result.trials())
        found.refused += [f"Not divided by devices: {path}: {one.text}" for one in judged.statements]
        clusters = {view.name: view.facts["ceph"] for view in targets if view.facts.get("ceph")}
        for one in diagnosed:
            _add_devices(found, one.cell, judged)
            if any(clients.metadata for clients in asked.clients.values()):
                add_ranks(found, one, clusters)
        views = {view.name: view for view in targets}
        for one in diagnosed if any(clients.through for clients in asked.clients.values()) else ():
            add_gateways(found, one.cell, views[one.cell.target], result.trials())
    return found


def _add_devices(found: MeasuredRates, cell: Cell, judged: PerDevice) -> None:
    from leadline.sizing.designs import PerDeviceRate

    count = judged.devices(cell)
    for name in ("read_bandwidth", "write_bandwidth", "bandwidth"):
        rate = cell.metrics.get(name)
        if count is None or rate is None or rate.value is None:
            continue
        if rate.low is None or rate.high is None:
            found.refused.append(f"Not divided by devices: {cell.id}: one block, and so no interval")
            return
        reads = "write" not in str(cell.job.get("rw"))
        found.devices.append(PerDeviceRate(cell.id, rate.low / count, rate.high / count, count, reads))
        return


def add_ranks(found: MeasuredRates, one: CellDiagnosed, clusters: Mapping[str, Mapping[str, Any]]) -> None:
    """Operations of metadata have rates of their own names."""
    from leadline.sizing.gateways import PerRankRate
    from leadline.sizing.request import MetadataNeed
    from leadline.verdict.model import UNUSABLE

    names = [name for name in MetadataNeed.model_fields if f"{name}{_SUFFIX}" in one.cell.metrics]
    if not names:
        return
    counts = {figures.get("mds_ranks") for figures in one.found.figures}
    ranks = counts.pop() if len(counts) == 1 else None
    rates = {
        name: (rate.low, rate.high)
        for name in names
        if (rate := one.cell.metrics[f"{name}{_SUFFIX}"]).low and rate.high
    }
    why = None
    if one.cell.target not in clusters:
        why = "no cluster of Ceph is behind it"
    elif clusters[one.cell.target].get("lab"):
        why = "a lab's metadata servers share one machine with all else"
    elif one.cell.validity.state in UNUSABLE:
        why = "INVALID or not run"
    elif not isinstance(ranks, int | float) or not ranks:
        why = "how many ranks were active was not seen, or changed"
    elif not rates:
        why = "one block, and so no interval"
    if why is not None or not isinstance(ranks, int | float):
        found.refused.append(f"No rate of a metadata server: {one.cell.id}: {why}")
        return
    each = {name: (low / ranks, high / ranks) for name, (low, high) in rates.items() if low and high}
    found.ranks.append(PerRankRate(one.cell.id, int(ranks), each))


def add_gateways(found: MeasuredRates, cell: Cell, target: TargetView, trials: Sequence[TrialRow]) -> None:
    """Of a target that a gateway answers: cells that only read, or only write."""
    from leadline.sizing.gateways import PerGatewayRate
    from leadline.sizing.request import protocol_of, protocols
    from leadline.verdict.model import UNUSABLE

    protocol, rate = protocol_of(target.access), cell.metrics.get("bandwidth")
    own = [row for row in trials if row.cell == cell.id and row.state == "complete"]
    ways = {(bool(row.read_bytes), bool(row.write_bytes)) for row in own}
    if protocol not in protocols() or rate is None or len(ways) != 1 or (True, True) in ways:
        return
    why = None
    if (target.facts.get("ceph") or {}).get("lab"):
        why = "a lab's gateways share one machine with all else"
    elif cell.validity.state in UNUSABLE:
        why = "INVALID or not run"
    elif not rate.low:
        why = "one block, and so no interval"
    if why is not None or not rate.low:
        found.refused.append(f"No rate of a gateway: {cell.id}: {why}")
        return
    found.gateways.append(PerGatewayRate(cell.id, protocol, (True, False) in ways, rate.low))
