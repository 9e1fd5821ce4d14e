"""What a study of pipelines says in sentences; its thresholds are in `pipeline.yaml`."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources

from leadline import units
from leadline.store.stages import StageRow
from leadline.study.yaml_source import read_yaml
from leadline.verdict.face import KindAnswer
from leadline.verdict.model import UNUSABLE, Comparison, Statement
from leadline.workloads.pipeline.figures import metric_stage
from leadline.workloads.pipeline.tables import PipelineSeries, compute_s, cpu_s, series_name, several_works

_CLOCK_S = 0.005  # timestamps of two processes
_SAID_MAX = 6
_WIDE = 10.0  # an interval that reaches ten times as far says nothing


@functools.cache
def thresholds() -> Mapping[str, float]:
    """The table of `pipeline.yaml`."""
    text = (resources.files("leadline.workloads.pipeline") / "thresholds.yaml").read_text(encoding="utf-8")
    return {str(name): float(value) for name, value in read_yaml(text, "pipeline.yaml", {}).value.items()}


def pipeline_statements(
    lines: Sequence[PipelineSeries], comparisons: Sequence[Comparison]
) -> tuple[Statement, ...]:
    """What the stages of pipelines say, beyond the comparison of their run times."""
    shown = [line for line in lines if line.shown]
    several = several_works(lines)
    found = [*_compared(comparisons, several)]
    for line in shown:
        name = series_name(line, several)
        found += [*_bound(line, name), *_passes(line, name), *_adds_up(line, name), *_links(line, name)]
        found += [*_digests(line, name), *_failed(line, name)]
    found += _enlarged(shown)
    return tuple(found)


def pipeline_answer(lines: Sequence[PipelineSeries]) -> KindAnswer:
    """The most that files of each target can have to do with the time: the share of it in calls on them."""
    several, said = several_works(lines), []
    for line in lines:
        rows = [row for trial in line.good for row in trial]
        if line.cell.validity.state in UNUSABLE or not rows or any(compute_s(row) is None for row in rows):
            continue
        whole_s = sum(row.seconds for row in rows)
        if whole_s > 0:
            share = 1 - sum(compute_s(row) or 0.0 for row in rows) / whole_s
            said.append(f"{share:.1%} on {series_name(line, several)}")
    if not said:
        return KindAnswer()
    return KindAnswer(f"Of the time of all stages, calls on files of the target took {', '.join(said)}.")


def _compared(comparisons: Sequence[Comparison], several: bool) -> Iterator[Statement]:
    """Which operations differ between two targets, and by how much."""
    own = [c for c in comparisons if metric_stage(c.metric) and c.validity not in UNUSABLE]
    for work, base, other in dict.fromkeys((c.work, c.base, c.other) for c in own):
        pairs = [c for c in own if (c.work, c.base, c.other) == (work, base, other)]
        parts = [_times(c) for c in pairs if c.verdict in ("faster", "slower")]
        for verdict, words in (("same", "do not differ"), ("undecided", "are undecided")):
            names = [str(metric_stage(c.metric)) for c in pairs if c.verdict == verdict]
            if names:
                margin = f" (within {pairs[0].margin:.0%})" if verdict == "same" else ""
                one = len(names) == 1
                verb = (
                    {"do not differ": "does not differ", "are undecided": "is undecided"}[words]
                    if one
                    else words
                )
                parts.append(f"{_listed(names)} {verb}{margin}")
        where = f"{work}, {other} against {base}" if several else f"{other} against {base}"
        evidence = tuple(
            f"{metric_stage(c.metric)}: {units.format_number(c.ratio)} times the time, {_bounds(c)}:"
            f" {c.verdict}"
            for c in pairs
            if c.ratio is not None
        )
        yield Statement(
            "finding",
            f"{where}, operation by operation: {'; '.join(parts)}.",
            evidence,
            says="stages_compared",
            cells=(f"{base}.{work}", f"{other}.{work}"),
        )


def _times(comparison: Comparison) -> str:
    """`ingest is 6.1 to 6.5 times faster`."""
    low, high = comparison.low or 1.0, comparison.high or 1.0
    if comparison.verdict == "faster":
        low, high = 1 / high, 1 / low
    span = f"{units.format_number(low)} to {units.format_number(high)}"
    return f"{metric_stage(comparison.metric)} is {span} times {comparison.verdict}"


def _bounds(comparison: Comparison) -> str:
    if comparison.low is None or comparison.high is None:
        return f"no interval: {comparison.blocks} block"
    if comparison.high > _WIDE * (comparison.ratio or 1) or comparison.low < (comparison.ratio or 1) / _WIDE:
        return f"{comparison.blocks} blocks give no useful interval"
    low, high = (units.format_number(bound) for bound in (comparison.low, comparison.high))
    return f"{low} to {high} ({comparison.blocks} blocks)"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _bound(line: PipelineSeries, name: str) -> Iterator[Statement]:
    """Which stages wait for CPUs, and which for files."""
    by_cpu: dict[str, str] = {}
    by_others: dict[str, str] = {}
    by_files: dict[str, str] = {}
    limit = thresholds()
    for stage in (one.stage for one in line.job.pipeline):
        rows = line.rows(stage)
        traced = [row for row in rows if compute_s(row) is not None and row.seconds > 0]
        if not traced or len(traced) < len(rows):
            continue
        whole_s = sum(row.seconds for row in traced)
        if whole_s < limit["seconds_min"] * len(traced):
            continue
        io = 1 - sum(compute_s(row) or 0.0 for row in traced) / whole_s
        cpus = sum(cpu_s(row) for row in traced) / whole_s
        busy = [row.host_busy_share for row in traced if row.host_busy_share is not None]
        host = sum(busy) / len(busy) if busy else 0.0
        words = (
            f"{stage}: {io:.0%} of its time in calls on files of the target, {cpus:.2g} CPUs busy with it;"
            f" the host's were busy {host:.0%} of the time"
        )
        if io <= limit["io_share_max"] and cpus >= limit["cpu_share"]:
            by_cpu[stage] = words
        elif io <= limit["io_share_max"] and host >= limit["host_busy_share"]:
            by_others[stage] = words
        elif io >= limit["io_share_min"]:
            by_files[stage] = words
    bounds = (
        (by_cpu, "bound by CPU"),
        (by_others, "bound by CPUs that were busy with something else, not by files of the target"),
        (by_files, "bound by reading, writing and metadata"),
    )
    for found, words in bounds:
        if found:
            verb = "is" if len(found) == 1 else "are"
            text = f"{name}: {_listed(list(found))} {verb} {words}."
            yield Statement(
                "finding", text, tuple(found.values()), says="stages_bound", cells=(line.cell.id,)
            )


def _passes(line: PipelineSeries, name: str) -> Iterator[Statement]:
    said = []
    for stage in (one.stage for one in line.job.pipeline):
        passes = line.mean(stage, lambda row: row.passes, "passes")
        if passes.value is not None and passes.value >= thresholds()["passes_said"]:
            said.append(f"{stage} reads its input {units.format_number(passes.value)} times over")
    if said:
        yield Statement(
            "finding", f"{name}: {'; '.join(said)}.", says="stages_read_again", cells=(line.cell.id,)
        )


def _adds_up(line: PipelineSeries, name: str) -> Iterator[Statement]:
    """The stages' durations, what settling took and what lies between, against the timestamps."""
    limit = thresholds()
    off: list[str] = []
    words: list[str] = []
    for trial in line.good:
        for client in sorted({row.client for row in trial}):
            own = [row for row in trial if row.client == client]
            whole_s = (max(row.ended_ns for row in own) - min(row.started_ns for row in own)) / 1e9
            stages_s = sum(row.seconds for row in own)
            settle_s = sum(row.settle_ns for row in own[:-1]) / 1e9
            rest_s = whole_s - stages_s - settle_s
            allowed_s = max(limit["unaccounted_share"] * whole_s, limit["starting_s"] * len(own))
            words.append(
                f"{own[0].trial}, client {client}: {stages_s:.3f} s in stages, {settle_s:.3f} s settling,"
                f" {rest_s:.3f} s between; {whole_s:.3f} s from the first start to the last end"
            )
            if not -_CLOCK_S <= rest_s <= allowed_s:
                off.append(words[-1])
    if off:
        yield Statement(
            "caution",
            f"{name}: times of stages do not add up to the time from the first start to the last end.",
            tuple(off[:_SAID_MAX]),
            says="stages_do_not_add_up",
        )
    elif words:
        yield Statement(
            "finding",
            f"{name}: stages add up to the whole, by their timestamps.",
            tuple(words[:_SAID_MAX]),
            says="stages_add_up",
            cells=(line.cell.id,),
        )


def _details(row: StageRow) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(row.details)
    return found


def _links(line: PipelineSeries, name: str) -> Iterator[Statement]:
    """Where a stage had to copy what it would have linked."""
    for stage in (one.stage for one in line.job.pipeline):
        why = {
            str(said.get("why"))
            for row in line.rows(stage)
            for said in _details(row)
            if said.get("how") == "copy" and said.get("why") != "asked for"
        }
        if why:
            yield Statement(
                "finding",
                f"{name}: {stage} copies, since links do not work there.",
                tuple(sorted(why)),
                says="stage_copies",
            )


def _digests(line: PipelineSeries, name: str) -> Iterator[Statement]:
    """A file that is read again must have the digest with which it was taken in."""
    for trial in line.shown:
        for client in {row.client for row in trial}:
            found: dict[tuple[object, int], dict[str, str]] = {}
            for row in (row for row in trial if row.client == client):
                for said in _details(row):
                    if "digest" in said:
                        key = (said["bytes"], len(str(said["digest"])))
                        found.setdefault(key, {})[str(said["digest"])] = row.stage
            for key, digests in found.items():
                if len(digests) > 1 and key[0] == line.job.source_bytes:
                    yield Statement(
                        "caution",
                        f"{name}: what was read is not what was written: digests differ in {trial[0].trial}.",
                        tuple(f"{stage}: {digest}" for digest, stage in digests.items()),
                        says="digests_differ",
                    )


def _failed(line: PipelineSeries, name: str) -> Iterator[Statement]:
    """What was measured before a stage failed is kept, and said to be only that."""
    for trial in line.failed:
        done = [row.stage for row in trial if row.state == "complete"]
        broken = next((row for row in trial if row.state != "complete"), None)
        where = f"failed in {broken.stage}: {broken.error}" if broken else "did not come to its end"
        kept = f" {_listed(done)} had been measured before." if done else ""
        yield Statement("caution", f"{name}: {trial[0].trial} {where}.{kept}", says="pipeline_failed")


def _enlarged(lines: Sequence[PipelineSeries]) -> list[Statement]:
    wide = list(
        dict.fromkeys(row.stage for line in lines for trial in line.shown for row in trial if row.enlarges)
    )
    if not wide:
        return []
    width = next(line.job.source_width for line in lines if line.job.source_width)
    verb = "makes" if len(wide) == 1 else "make"
    text = f"{_listed(wide)} {verb} a larger picture than the source has ({width} wide): done all the same."
    return [Statement("finding", text, says="picture_enlarged")]
