"""The result in fio's `json+` shape (as fio 3.33 prints it), for the tools that read fio."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from leadline.errors import UsageError
from leadline.report import format as fmt
from leadline.report.renderers.show_json import finite, plain
from leadline.verdict.model import Cell, Curve, Findings, Line

_CLASSES = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
_UNITS = (
    ("latency_ns", 1, _CLASSES),
    ("latency_us", 1_000, _CLASSES),
    ("latency_ms", 1_000_000, (*_CLASSES, 2000)),
)
_SLOWEST = ">=2000"
_SAMPLED = (("bw", ("min", "max", "agg", "mean", "dev")), ("iops", ("min", "max", "mean", "stddev")))
# As fio writes it where it took no samples, which `bw_samples` and `iops_samples` say.
NO_SAMPLES: dict[str, int] = {f"{rate}_{name}": 0 for rate, names in _SAMPLED for name in (*names, "samples")}


def shares_of_cpu(cell: Cell) -> dict[str, float]:
    """`usr_cpu` and `sys_cpu`, percent of the time of all its jobs."""
    numjobs = cell.job.get("numjobs")
    trials = [trial.values for trial in cell.trials if trial.state == "complete"]
    known = [one for one in trials if None not in (one.get("cpu_user_s"), one.get("cpu_system_s"))]
    seconds = sum(one.get("measured_s") or 0.0 for one in known) * (
        numjobs if isinstance(numjobs, int) else 0
    )
    if not seconds or len(known) < len(trials):
        return {}
    names = (("usr_cpu", "cpu_user_s"), ("sys_cpu", "cpu_system_s"))
    return {key: 100 * sum(one[name] or 0.0 for one in known) / seconds for key, name in names}


def rate_samples(cell: Cell, direction: str) -> dict[str, Any]:
    """KiB/s and operations per second over the intervals of a job of one direction and one size."""
    size = cell.job.get("bs")
    if cell.shown.directions != (direction,) or cell.job.get("bssplit") or not isinstance(size, int):
        return {}
    rates = [value for line in cell.lines for value in _measured(line)]
    if len(rates) < 2:
        return {}
    iops, kib = [one / size for one in rates], [one / 1024 for one in rates]
    return {
        "bw_min": int(min(kib)),
        "bw_max": int(max(kib)),
        "bw_agg": 100.0,  # of all jobs of its group: a cell has all of them
        "bw_mean": statistics.fmean(kib),
        "bw_dev": statistics.stdev(kib),
        "bw_samples": len(kib),
        "iops_min": int(min(iops)),
        "iops_max": int(max(iops)),
        "iops_mean": statistics.fmean(iops),
        "iops_stddev": statistics.stdev(iops),
        "iops_samples": len(iops),
    }


def _measured(line: Line) -> list[float]:
    """Of the intervals after the ramp."""
    end_s = line.measured_to_s
    return [
        value
        for second, value in line.points
        if second > line.measured_from_s and (end_s is None or second <= end_s + 1e-6)
    ]


def latency_shares(cell: Cell) -> dict[str, dict[str, float]]:
    """Percent of all reads and writes in each of fio's classes; nothing where latencies were not kept."""
    buckets = [
        bucket
        for curve in cell.curves
        if (curve.clock, curve.direction) in (("total", "read"), ("total", "write"))
        for bucket in curve.buckets
    ]
    operations = sum(count for _, count in buckets)
    if not operations:
        return {}
    found = {name: {str(limit): 0.0 for limit in limits} for name, _, limits in _UNITS}
    found["latency_ms"][_SLOWEST] = 0.0
    for latency_ns, count in buckets:
        name, limit = _class_of(latency_ns)
        found[name][limit] += 100 * count / operations
    return found


def _class_of(latency_ns: int) -> tuple[str, str]:
    for name, unit_ns, limits in _UNITS:
        for limit in limits:
            if latency_ns <= limit * unit_ns:
                return name, str(limit)
    return "latency_ms", _SLOWEST


# fio's own list (`percentile_list`).
PERCENTILES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
# Our clocks in fio's words: submission to completion is clat, all of it from the actual start is lat.
_CLOCKS = {"submission": "slat_ns", "completion": "clat_ns", "total": "lat_ns"}
_DIRECTIONS = ("read", "write", "trim")
# What fio writes where nothing was measured: it says so by `N` and by `samples`.
_NO_LATENCY: dict[str, Any] = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
_AMOUNTS = (
    "io_bytes",
    "io_kbytes",
    "bw_bytes",
    "bw",
    "iops",
    "runtime",
    "total_ios",
    "short_ios",
    "drop_ios",
)
_IDLE: dict[str, Any] = {
    **dict.fromkeys(_AMOUNTS, 0),
    **{clock: _NO_LATENCY for clock in _CLOCKS.values()},
    **NO_SAMPLES,
}


def to_fio(findings: Findings) -> str:
    """JSON text with fio's top-level keys and one entry of `jobs` per cell that was run."""
    if findings.frame.no_jobs:
        raise UsageError(findings.frame.no_jobs, "use --format html, md, csv, json or openmetrics")
    places = enumerate(findings.cells)
    return _document(findings, [(place, cell) for place, cell in places if _was_run(cell)])


def fio_files(findings: Findings) -> dict[str, str]:
    """The same with a file for each cell of reads or writes, by name: directories as fio-plot reads them.

    fio-plot adds up all jobs of a file and tells files of a directory apart by `rw`, `iodepth` and `numjobs`.
    """
    if findings.frame.no_jobs:
        raise UsageError(findings.frame.no_jobs, "use --format html, md, csv, json or openmetrics")
    found = {}
    for place, cell in enumerate(findings.cells):
        if _was_run(cell) and {"rw", "bs"} <= cell.job.keys():
            target, work = (re.sub(r"[^A-Za-z0-9_-]", "_", name) for name in (cell.target, cell.work))
            found[f"{target}/{work}.json"] = _document(findings, [(place, cell)])
    if not found:
        raise UsageError("the result has no cell of reads and writes", "use --format json")
    return found


def _was_run(cell: Cell) -> bool:
    return bool(cell.metrics) and cell.validity.state != "NOT_RUN"


def _document(findings: Findings, cells: Sequence[tuple[int, Cell]]) -> str:
    words = {target.name: target.words for target in findings.targets}
    document: dict[str, Any] = {
        "fio version": f"leadline-{findings.version}",
        **_when(findings.created),
        "global options": {},
        "leadline": {"study": findings.title, "state": findings.state, "complete": findings.complete},
        "jobs": [_job(cell, place, words.get(cell.target, "")) for place, cell in cells],
        "disk_util": [],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _when(created: str) -> dict[str, Any]:
    """The time of the result in fio's three keys."""
    try:
        at = datetime.fromisoformat(created)
    except ValueError:
        return {"time": created}
    seconds = at.timestamp()
    return {
        "timestamp": int(seconds),
        "timestamp_ms": int(seconds * 1000),
        "time": f"{at:%a %b %e %H:%M:%S %Y}",
    }


def _job(cell: Cell, place: int, words: str) -> dict[str, Any]:
    state = cell.validity.state
    job: dict[str, Any] = {
        "jobname": f"{cell.id} [{state}]" if state == "INVALID" else cell.id,
        "groupid": place,
        "error": int(any(trial.state in ("error", "hung") for trial in cell.trials)),
        "job options": _options(cell.job),
    }
    failed = bool(cell.trials) and all(trial.state != "complete" for trial in cell.trials)
    for direction in _DIRECTIONS:
        moved = not failed and direction in cell.shown.directions and not _is_idle(cell, direction)
        found = _IDLE | (_direction(cell, direction) if moved else {})
        job[direction] = {key: value for key, value in found.items() if value is not None}
    job["sync"] = _sync(cell)
    if (seconds := _seconds(cell)) is not None:
        job |= {"job_runtime": round(1000 * seconds), "elapsed": math.ceil(seconds)}
    job |= shares_of_cpu(cell) | latency_shares(cell)
    job["leadline"] = {
        "target": cell.target,
        "target_words": words,
        "work": cell.work,
        "validity": state,
        "codes": [{"code": code.code, "evidence": code.evidence} for code in cell.validity.codes],
        "intended_lat_ns": {
            curve.direction: _latency(curve) for curve in cell.curves if curve.clock == "intended"
        },
        "notes": plain(cell.job.get("notes", [])),
        "blocks": max((item.blocks for item in cell.metrics.values()), default=0),
        "metrics": {name: _interval(cell, name) for name in cell.metrics},
    }
    return job


def _options(job: dict[str, Any]) -> dict[str, str]:
    """The job under fio's names: `ioengine`, and times in seconds."""
    found = {}
    for name, value in job.items():
        if value is None or name == "notes":
            continue
        if name.endswith("_ns") and isinstance(value, int):
            found[name.removesuffix("_ns")] = f"{value / 1e9:g}s"
        else:
            found["ioengine" if name == "engine" else name] = _option(value)
    return found


def _option(value: Any) -> str:
    """fio prints every option as the text that was given."""
    if isinstance(value, bool):
        return str(int(value))
    return json.dumps(plain(value)) if isinstance(value, list | dict) else fmt.printable(value)


def _interval(cell: Cell, name: str) -> dict[str, Any]:
    item = cell.metrics[name]
    values = {
        "value": finite(item.value),
        "low": finite(item.low),
        "high": finite(item.high),
        "unit": item.unit,
    }
    return values | ({"reason": item.reason or "not measured"} if values["value"] is None else {})


def _value(cell: Cell, direction: str, name: str) -> float | None:
    """A metric of one direction; the plain name serves a job that has only this direction."""
    names = [f"{direction}_{name}"]
    if cell.shown.directions == (direction,):
        names.append(name)
    for candidate in names:
        if candidate in cell.metrics:
            return finite(cell.metrics[candidate].value)
    return None


def _sum(cell: Cell, direction: str, name: str) -> float | None:
    """The sum over the trials, where every trial that was completed has the figure."""
    names = [f"{direction}_{name}"] + ([name] if cell.shown.directions == (direction,) else [])
    for candidate in names:
        values = [trial.values.get(candidate) for trial in cell.trials if trial.state == "complete"]
        known = [value for value in values if value is not None]
        if known and len(known) == len(values):
            return sum(known)
    return None


def _direction(cell: Cell, direction: str) -> dict[str, Any]:
    total = _sum(cell, direction, "bytes")
    rate = _value(cell, direction, "bandwidth")
    seconds = _seconds(cell)
    curves = [curve for curve in cell.curves if curve.direction == direction]
    operations = _sum(cell, direction, "operations")
    if operations is None and curves:
        operations = max(curve.operations for curve in curves)
    known = {
        "io_bytes": _whole(total),
        "io_kbytes": _whole(total, 1024),
        "bw_bytes": _whole(rate),
        "bw": _whole(rate, 1024),
        "iops": _value(cell, direction, "iops"),
        **rate_samples(cell, direction),
        "runtime": None if seconds is None else round(seconds * 1000),
        "total_ios": _whole(operations),
    }
    answer: dict[str, Any] = {**known, "short_ios": None, "drop_ios": None}  # None: not known, and so absent
    for curve in curves:
        if curve.clock in _CLOCKS:
            answer[_CLOCKS[curve.clock]] = _latency(curve)
    return answer


def _is_idle(cell: Cell, direction: str) -> bool:
    """True where a mix leaves nothing to a direction, or it moved nothing."""
    share = cell.job.get("rwmixread") if len(cell.shown.directions) > 1 else None
    return share == (0 if direction == "read" else 100) or _sum(cell, direction, "operations") == 0


def _seconds(cell: Cell) -> float | None:
    """The measured time of all blocks, which both directions of a mix have."""
    for name in ("measured_s", "runtime_s"):
        values = [trial.values.get(name) for trial in cell.trials if trial.state == "complete"]
        known = [value for value in values if value is not None]
        if known and len(known) == len(values):
            return sum(known)
    return None


def _sync(cell: Cell) -> dict[str, Any]:
    curve = next((item for item in cell.curves if (item.direction, item.clock) == ("sync", "total")), None)
    latency = {**_NO_LATENCY, **(_latency(curve) if curve else {})}
    return {"total_ios": curve.operations if curve else 0, "lat_ns": latency}


def _whole(value: float | None, divisor: int = 1) -> int | None:
    return None if value is None else int(value) // divisor


def _latency(curve: Curve) -> dict[str, Any]:
    points = dict(curve.points)
    known: dict[str, Any] = {
        "min": _whole(points.get(0.0)),
        "max": _whole(points.get(100.0)),
        "mean": curve.mean_ns,
        "stddev": curve.stdev_ns,
    }
    answer = {key: value for key, value in known.items() if value is not None}
    answer["N"] = curve.operations
    percentiles = {f"{wanted:.6f}": int(points[wanted]) for wanted in PERCENTILES if wanted in points}
    bins = {str(value): count for value, count in curve.buckets}
    return answer | ({"percentile": percentiles} if percentiles else {}) | ({"bins": bins} if bins else {})
