"""What the reports know about metrics: their headings, their order, and which few lead.

A metric that is not listed still appears: its heading is made from its name.
"""

from __future__ import annotations

import re

from leadline.verdict.model import LARGE_BLOCK_BYTES, Cell, Quantity, metric_stage

# The columns of the table that everybody reads.
KEY_METRICS = (
    *("bandwidth", "iops", "latency_mean", "latency_p99"),
    *("run_time", "read_write_time", "agg_perf_by_slowest"),
)
DIRECTIONS = ("read", "write", "sync")

_WORDS = {
    "iops": "IOPS",
    "cpu": "CPU",
    "osd": "OSD",
    "osds": "OSDs",
    "mds": "MDS",
    "io": "I/O",
    "p999": "p99.9",
}
_HEADINGS = {
    "read_write_time": "Reading and writing",
    "agg_perf_by_slowest": "Speed over I/O time",
    "wall_throughput": "Speed over run time",
}
_UNIT_SUFFIX = re.compile(r"_(ns|us|ms|s|bytes|bytes_per_s|per_s)$")


def heading(metric: str) -> str:
    """A metric's name as a person writes it: `latency_p99` becomes `Latency p99`."""
    if metric in _HEADINGS:
        return _HEADINGS[metric]
    stage = metric_stage(metric)
    if stage is not None:
        return f"Time of {stage}"
    words = [_WORDS.get(word, word) for word in _UNIT_SUFFIX.sub("", metric).split("_") if word]
    text = " ".join(words) or metric
    return text if text.startswith("p9") or text[:1].isupper() else text[:1].upper() + text[1:]


def directions(cell: Cell) -> tuple[str, ...]:
    """Which ways a cell's job moves data, from fio's `rw`."""
    if "script" in cell.job:
        return tuple(name for name in ("read", "write") if cell.job.get(f"{name}_bytes"))
    rw = str(cell.job.get("rw", ""))
    if rw in {"rw", "randrw", "readwrite"}:
        return ("read", "write")
    if rw.endswith("read"):
        return ("read",)
    return ("write",) if rw.endswith("write") else ()


def find(cell: Cell, metric: str) -> tuple[str, Quantity] | None:
    """A cell's metric and the name it is stored by; a mixed work's latencies are those of its reads."""
    for name in (metric, *(f"{direction}_{metric}" for direction in directions(cell))):
        if name in cell.metrics:
            return name, cell.metrics[name]
    return None


def rate_metric(cells: tuple[Cell, ...]) -> str:
    """What to draw for one work: bandwidth for large blocks, IOPS for small ones, a program's run time."""
    if any("command" in cell.job for cell in cells):
        return "run_time"
    sizes = [cell.job.get("bs") for cell in cells]
    small = any(isinstance(size, int) and size < LARGE_BLOCK_BYTES for size in sizes)
    wanted = ("iops", "bandwidth") if small else ("bandwidth", "iops")
    for metric in wanted:
        if any((found := find(cell, metric)) and found[1].value is not None for cell in cells):
            return metric
    return wanted[0]


def all_metrics(cells: tuple[Cell, ...]) -> tuple[str, ...]:
    """Every metric of any cell, the key ones first, then in the order met."""
    met = dict.fromkeys(name for cell in cells for name in cell.metrics)
    leading = [name for name in KEY_METRICS if name in met]
    return (*leading, *(name for name in met if name not in leading))
