"""What the reports know about metrics: their headings, their order, which few lead, and those of metadata."""

from __future__ import annotations

import re
from dataclasses import replace

from leadline.verdict.model import Cell, CellShown, Comparison, Findings, Quantity, part_label

# The columns of the table that everybody reads.
KEY_METRICS = (
    *("bandwidth", "iops", "latency_mean", "latency_p99"),
    *("run_time", "read_write_time", "agg_perf_by_slowest"),
)
# Of a program, where it was traced: they explain its run time.
EXPLAINING = ("read_write_time", "agg_perf_by_slowest")
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
_STAGE_TIME = "stage_time_"
_UNIT_SUFFIX = re.compile(r"_(ns|us|ms|s|bytes|bytes_per_s|per_s)$")


def heading(metric: str) -> str:
    """A metric's name as a person writes it: `latency_p99` becomes `Latency p99`."""
    if metric in _HEADINGS:
        return _HEADINGS[metric]
    if metric.startswith(_STAGE_TIME):
        return f"Time of {metric.removeprefix(_STAGE_TIME)}"
    words = [_WORDS.get(word, word) for word in _UNIT_SUFFIX.sub("", metric).split("_") if word]
    text = " ".join(words) or metric
    return text if text.startswith("p9") or text[:1].isupper() else text[:1].upper() + text[1:]


def find(cell: Cell, metric: str) -> tuple[str, Quantity] | None:
    """A cell's metric and the name it is stored by; a mixed work's latencies are those of its reads."""
    for name in (metric, *(f"{direction}_{metric}" for direction in cell.shown.directions)):
        if name in cell.metrics:
            return name, cell.metrics[name]
    return None


def rate_metric(cells: tuple[Cell, ...]) -> str:
    """What to draw for one work: bandwidth for large blocks, IOPS for small ones, a program's run time."""
    usual = CellShown().leading
    wanted = next((cell.shown.leading for cell in cells if cell.shown.leading != usual), usual)
    for metric in wanted:
        if any((found := find(cell, metric)) and found[1].value is not None for cell in cells):
            return metric
    return wanted[0]


def all_metrics(cells: tuple[Cell, ...]) -> tuple[str, ...]:
    """Every metric of any cell, the key ones first, then in the order met."""
    met = dict.fromkeys(name for cell in cells for name in cell.metrics)
    leading = [name for name in KEY_METRICS if name in met]
    return (*leading, *(name for name in met if name not in leading))


def by_operation(findings: Findings) -> Findings:
    """The findings with each metadata cell in parts, named `work operation`; others as they are."""
    cells = tuple(part for cell in findings.cells for part in parts(cell))
    comparisons = tuple(_part(comparison) for comparison in findings.comparisons)
    return replace(findings, cells=cells, comparisons=comparisons)


def parts(cell: Cell) -> tuple[Cell, ...]:
    """A cell for each operation, its metrics without its name; the cell itself where it has none."""
    found = []
    for operation in cell.shown.parts:
        prefix = f"{operation}_"
        metrics = {
            name.removeprefix(prefix): item for name, item in cell.metrics.items() if name.startswith(prefix)
        }
        curves = tuple(curve for curve in cell.curves if curve.direction == operation)
        found.append(
            replace(
                cell,
                work=part_label(cell.work, operation),
                metrics=metrics,
                curves=curves,
                lines=(),
                origin=None,
                chains=(),
            )
        )
    return tuple(found) or (cell,)


def _part(comparison: Comparison) -> Comparison:
    operation = comparison.part
    if operation is None:
        return comparison
    metric = comparison.metric.removeprefix(f"{operation}_")
    return replace(comparison, work=part_label(comparison.work, operation), metric=metric)
