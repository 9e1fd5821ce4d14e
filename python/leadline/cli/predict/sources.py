"""What files say for sizing: clients' work by studies, job files and traces, rates of one part by results.

Every problem is said at the line of the requirement that named the file, with the file's own place in it. Of
cells that say nothing the reason is kept.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.errors import SpecError, UsageError

if TYPE_CHECKING:
    from leadline.sizing.designs import PerDeviceRate
    from leadline.sizing.gateways import PerGatewayRate, PerRankRate
    from leadline.sizing.request import AskedSizing, ReadWork, WorkedOut, WorkFrom
    from leadline.store.reader import Result
    from leadline.store.tables import TrialRow
    from leadline.study.kind.interface import WorkBytes
    from leadline.study.study import Work
    from leadline.tracing.model import TraceView
    from leadline.verdict.diagnosis.results import CellDiagnosed
    from leadline.verdict.model import Cell, TargetView, Validity
    from leadline.verdict.protections import PerDevice
    from leadline.yamlio.yaml_source import Document


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
                f"Not divided by devices: {path}: values of a document, which no counter explains"
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
            found.refused.append(
                f"Not divided by devices: {cell.id}: one block, and so no confidence interval"
            )
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
        why = "one block, and so no confidence interval"
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
        why = "one block, and so no confidence interval"
    if why is not None or not rate.low:
        found.refused.append(f"No rate of a gateway: {cell.id}: {why}")
        return
    found.gateways.append(PerGatewayRate(cell.id, protocol, (True, False) in ways, rate.low))


_AS_FAST = "it runs as fast as it can"
_IN_TURN = "its jobs run one after the other, none of them all the time"


class _NameError(UsageError):
    """The file is good, and what was named in it is not there."""


def with_works(
    asked: AskedSizing, document: Document, beside: Path
) -> tuple[AskedSizing, tuple[WorkedOut, ...]]:
    """All clients in figures, and of those that a file speaks for what it said.

    Paths are seen from `beside`, the directory of the requirements. Raises SpecError with file and line.
    """
    from leadline.sizing.request import worked_out

    clients, works = dict(asked.clients), []
    for name, one in asked.clients.items():
        if one.work is None:
            continue
        path = ("sizing", "clients", name, "workload")
        try:
            clients[name], found = worked_out(name, one, _read(one.work, beside))
        except _NameError as error:
            document.fail((*path, "name"), f"{one.work.file}: {error.message}", error.remedy)
        except UsageError as error:
            document.fail((*path, one.work.kind), f"{one.work.file}: {error.message}", error.remedy)
        works.append(found)
    return asked.model_copy(update={"clients": clients}), tuple(works)


def _read(work: WorkFrom, beside: Path) -> ReadWork:
    from leadline.observe.hang_guard import check_answers
    from leadline.study.library import builtin_names

    if work.kind == "study" and work.file in builtin_names():
        return _of_study(work.file, work.name)
    path = str(beside / work.file)
    check_answers([path])
    if work.kind == "trace":
        return _of_trace(path, work.name, work.only)
    return (_of_study if work.kind == "study" else _of_result)(path, work.name)


def _of_study(path: str, name: str | None) -> ReadWork:
    """A study, or a job file of fio."""
    from leadline.sizing.request import ReadWork
    from leadline.study.kinds import work_bytes
    from leadline.study.library import load_study
    from leadline.study.study import expand

    works = _named(expand(load_study(path, os.environ)), name)
    parts = [work_bytes(one.options) for one in works]
    in_turn = works[0].order == "sequence"
    moved, read = _moved(parts)
    paces = [one.pace_bytes_s for one in parts if one.pace_bytes_s is not None]
    # Jobs one after the other have no pace of all: the mix of what they move tells.
    pace = sum(paces) if len(paces) == len(parts) and (not in_turn or len(parts) == 1) else None
    share = read if pace is None else _share(parts, [one.pace_bytes_s or 0.0 for one in parts])
    called = works[0].group or works[0].name
    flights = [one.at_once for one in parts]
    return ReadWork(
        source=f"{Path(path).name}, workload {called}",
        read_share=share,
        moved_bytes=moved,
        pace_bytes_s=pace,
        seconds=None,
        without_pace=_IN_TURN if in_turn else _AS_FAST,
        requests=" and ".join(dict.fromkeys(one.requests for one in parts)),
        at_once=max(flights) if in_turn else sum(flights),
    )


def _moved(parts: Sequence[WorkBytes]) -> tuple[float | None, float | None]:
    """All bytes, and the share of them that is read: of one job, or of several that have the same, always."""
    shares = {one.read_share for one in parts}
    alike = shares.pop() if len(shares) == 1 else None
    known = [one.moved_bytes for one in parts if one.moved_bytes is not None]
    if len(known) < len(parts):
        return None, alike
    return sum(known), _share(parts, known)


def _share(parts: Sequence[WorkBytes], weights: Sequence[float]) -> float:
    return sum(one.read_share * weight for one, weight in zip(parts, weights, strict=True)) / sum(weights)


def _named(works: Sequence[Work], name: str | None) -> list[Work]:
    """The work of that name, or the jobs of one; the only one where none is named."""
    names = list(dict.fromkeys(one.group or one.name for one in works))
    chosen = name if name is not None else names[0]
    if name is None and len(names) > 1:
        raise _NameError(f"it has {len(names)} workloads", f"add name: one of {_listed(names)}")
    found = [one for one in works if chosen in (one.name, one.group)]
    if not found:
        raise _NameError(f"no workload is called {chosen[:60]!a}", f"write one of {_listed(names)}")
    return found


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return ", ".join(names[:12]) + more


def _of_trace(path: str, name: str | None, only: str | None) -> ReadWork:
    """A trial that `leadline trace` stored: each copy is one client."""
    from leadline.sizing.request import ReadWork
    from leadline.store.reader import open_result
    from leadline.tracing.findings import trace_cells

    result = open_result(Path(path))
    views, cells = trace_cells(result, with_charts=False)
    by_name = {one.trial: (one, cell) for one, cell in zip(views, cells, strict=True)}
    if not by_name:
        raise SpecError("it has no trace", "trace the program: leadline trace -o DIR -- COMMAND")
    view, cell = by_name[_only(list(by_name), name, "trial")]
    doubts = _doubts(cell.validity)
    copies = max(1, len(view.copies))
    runs = [one.run_s for one in view.copies if one.run_s]
    read, written = view.speeds.bytes_read, view.speeds.bytes_written
    if only is not None:
        read, written = _of_files(result, view.trial, only)
    moved = read + written
    if not moved:
        where = "" if only is None else f" in files like {only}"
        raise SpecError(f"the program read and wrote nothing{where}", "leave these clients out")
    files = "whatever files they were of" if only is None else f"of files like {only} only"
    known = len(runs) == copies and not view.whole.slowed
    io_s = [view.whole.seconds.get(kind) for kind in ("read", "write")]
    busy = None if None in io_s or not known else sum(one or 0.0 for one in io_s) / sum(runs)
    return ReadWork(
        source=f"the trace {Path(path).name}, trial {view.trial}",
        read_share=read / moved,
        moved_bytes=moved / copies,
        pace_bytes_s=None,
        seconds=sum(runs) / copies if known else None,
        without_pace="the tracer slowed it" if view.whole.slowed else "how long it ran is not known",
        requests=_traced_requests(view) + ("" if only is None else ", of all files"),
        at_once=busy if only is None else None,
        doubts=(*doubts, f"Its calls are counted {files}, wherever they were answered"),
    )


def _of_files(result: Result, trial: str, only: str) -> tuple[int, int]:
    """Bytes read and written of files whose path matches, of all copies."""
    from leadline.tracing.store import read_files

    columns = read_files(result, trial).select(["path", "BYTES_READ", "BYTES_WRITTEN"]).to_pydict()
    rows = zip(*columns.values(), strict=True)
    found = [(read, written) for path, read, written in rows if fnmatch.fnmatchcase(path, only)]
    return sum(read or 0 for read, _ in found), sum(written or 0 for _, written in found)


def _traced_requests(view: TraceView) -> str:
    """Mean sizes of its accesses."""
    from leadline.units import format_size

    found = []
    moved = (("read", view.speeds.bytes_read), ("write", view.speeds.bytes_written))
    for verb, size in moved:
        count = sum(view.sizes.get(verb, {}).values())
        if count:
            found.append(f"{verb}s of {format_size(size / count)} in the mean")
    return " and ".join(found) or "sizes are not known"


def _of_result(path: str, name: str | None) -> ReadWork:
    """A cell of a pipeline that was run and traced: what each client read and wrote on the target."""
    from leadline.sizing.request import ReadWork
    from leadline.store.own import read_stages
    from leadline.store.reader import open_result
    from leadline.verdict.findings import build_findings

    result = open_result(Path(path))
    stages = read_stages(result)
    cells = {row.trial: row.cell for row in result.trials() if row.state == "complete"} if stages else {}
    rows = [row for row in stages if row.trial in cells]
    if not rows:
        raise SpecError(
            "it has no stages of a pipeline",
            "give a result of one, or write workload: {study: FILE, name: WORKLOAD}",
        )
    chosen = _only(list(dict.fromkeys(cells[row.trial] for row in rows)), name, "cell")
    rows = [row for row in rows if cells[row.trial] == chosen]
    judged = build_findings(result, with_charts=False, explained=False).cells
    doubts = _doubts(next(one.validity for one in judged if one.id == chosen))
    read = [row.target_read_bytes for row in rows if row.target_read_bytes is not None]
    written = [row.target_written_bytes for row in rows if row.target_written_bytes is not None]
    if len(read) < len(rows) or len(written) < len(rows):
        raise SpecError(
            "it was not traced: which of its bytes were of the target is not known",
            "run it again with trace: auto",
        )
    ends: dict[tuple[str, int], tuple[int, int]] = {}
    for row in rows:
        begun, ended = ends.get((row.trial, row.client), (row.started_ns, row.ended_ns))
        ends[row.trial, row.client] = min(begun, row.started_ns), max(ended, row.ended_ns)
    moved = sum(read) + sum(written)
    if not moved:
        raise SpecError("its stages read and wrote nothing on the target", "leave these clients out")
    return ReadWork(
        source=f"the result {Path(path).name}, {chosen}",
        read_share=sum(read) / moved,
        moved_bytes=moved / len(ends),
        pace_bytes_s=None,
        seconds=sum(end - begin for begin, end in ends.values()) / len(ends) / 1e9,
        without_pace="",
        requests=f"{len({row.stage for row in rows})} stages, mean of {len(ends)} runs",
        at_once=None,
        doubts=doubts,
    )


def _only(names: Sequence[str], name: str | None, noun: str) -> str:
    if name is None and len(names) > 1:
        raise _NameError(f"it has {len(names)} {noun}s", f"add name: one of {_listed(names)}")
    chosen = names[0] if name is None else name
    if chosen not in names:
        raise _NameError(f"no {noun} is called {chosen[:60]!a}", f"write one of {_listed(names)}")
    return chosen


def _doubts(validity: Validity) -> tuple[str, ...]:
    """What is said of a doubtful one. Raises SpecError where it is INVALID."""
    words = tuple(f"{one.state}, {one.code}: {one.evidence}" for one in validity.codes)
    if validity.state == "INVALID":
        raise SpecError(f"it is no value to size by: {words[0]}", "measure it again")
    return words
