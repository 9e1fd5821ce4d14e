"""What a study of pipelines says in sentences; its thresholds are in `thresholds.yaml`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from leadline import units
from leadline.analysis.statistics.differences import MeanDifference
from leadline.store.own import StageRow
from leadline.verdict.interface import KindAnswer
from leadline.verdict.model import UNUSABLE, FigureRow, FigureTable, Quantity, Statement, worst
from leadline.workloads.pipeline.tables import (
    WHOLE,
    PipelineBeside,
    PipelineSeries,
    SeriesTimes,
    compute_s,
    cpu_s,
    series_name,
    series_times,
    several_works,
    stages_of,
    thresholds,
)

_CLOCK_S = 0.005  # timestamps of two processes
_SAID_MAX = 6
_LINES = 3  # pipelines on a target that the answer names
_STAGES = 3  # that a sentence names
_SHOWN_SHARE = 0.02  # of the time in calls: stages below it are summed up
_WHOLE_SECONDS, _SECONDS_MAX = 100.0, 1e6
_TARGETS_FULL = 2  # beside each other with calls and intervals
_CALLS_NOTE = " In calls: on files of the target, by the trace; the rest is computing and waiting for CPUs."
_BEHIND_NOTE = " Behind: how much longer than on {}."
_MARK_NOTE = " ?: not significantly different."


def pipeline_statements(
    lines: Sequence[PipelineSeries], beside: Sequence[PipelineBeside] = ()
) -> tuple[Statement, ...]:
    """What the stages of pipelines say, beyond the comparison of their run times."""
    shown = [line for line in lines if line.shown]
    several = several_works(lines)
    found = [_longer(one, several) for one in beside]
    for line in shown:
        name = series_name(line, several)
        found += [*_bound(line, name), *_passes(line, name), *_adds_up(line, name), *_links(line, name)]
        found += [*_digests(line, name), *_failed(line, name)]
    found += _enlarged(shown)
    return tuple(found)


def pipeline_answer(lines: Sequence[PipelineSeries], beside: Sequence[PipelineBeside] = ()) -> KindAnswer:
    """Whether it is the mount: of what the whole took on each target, what were calls on its files, by stage;
    and which stages take longer than on the base, by how many seconds."""
    several = several_works(lines)
    compared = {one.base.cell.id for one in beside} | {one.other.cell.id for one in beside}
    said = [
        text
        for line in lines
        if (text := _in_calls(line, series_name(line, several), brief=line.cell.id in compared))
    ]
    more = f" {len(said) - _LINES} more are in --all." if len(said) > _LINES else ""
    found = [_mount_words(one, several) for one in beside[: _LINES - 1]]
    text = " ".join([*found, *said[:_LINES]]) + more
    return KindAnswer(text, stage_matrix(lines, beside), adds=True, leads=bool(found))


_MOST = 0.5  # of the time that it takes longer, in calls: then it is the mount
_ALIKE = 0.1  # of the base's time: a difference that is certainly below it answers no


def _mount_words(beside: PipelineBeside, several: bool) -> str:
    """`Yes: on fuse it takes 36 s longer than on local, 35 s of it in calls on files: ingest 22 s, …`"""
    whole, calls = beside.whole.longer, beside.calls_longer
    other, base = beside.other.cell.target, beside.base.cell.target
    where = f" for {beside.other.cell.work}" if several else ""
    parts = [f"on {other} it takes {_signed(whole.value)} than on {base}{where}"]
    if not whole.found:
        parts = [f"{other} and {base} are not significantly different{where} ({_difference(whole)})"]
    elif calls is not None and calls.found:
        parts[0] += f", {_signed(calls.value)} in calls on files" if calls.value < 0 else ""
        share = "all" if calls.value >= whole.value else _s(calls.value)
        parts[0] += f", {share} of it in calls on files" if calls.value >= 0 else ""
    found = sorted((one for one in beside.stages if one.longer.found), key=lambda one: -abs(one.longer.value))
    stages = [f"{one.stage} {_signed(one.longer.value)}" for one in found[:_STAGES]]
    stages += [f"{len(found) - _STAGES} more by less"] if len(found) > _STAGES else []
    named = f": {', '.join(stages)}" if stages else ""
    text = f"{_mount_verdict(beside)}: {parts[0]}{named}"
    left = [one.stage for one in beside.stages if not one.longer.found]
    if left:
        names = _listed(left) if len(left) <= _STAGES else f"{len(left)} stages"
        text += f"; {names} {'is' if len(left) == 1 else 'are'} not significantly different"
    return f"{text}."


def _mount_verdict(beside: PipelineBeside) -> str:
    """Whether it is the mount, by the time that the whole takes longer and how much of that is in calls."""
    whole, calls = beside.whole.longer, beside.calls_longer
    if not whole.found:
        alike = whole.high is not None and whole.high < _ALIKE * beside.whole.base_s
        return "No" if alike else "Inconclusive"
    if whole.value <= 0:
        return "No"
    if calls is None:
        return "Slower, and not traced why"
    if not calls.found:
        return "Not by calls on files"
    return "Yes" if calls.value >= _MOST * whole.value else "In part"


def _in_calls(line: PipelineSeries, name: str, *, brief: bool) -> str:
    """`Of 25.9 s end to end on mount, 2.04 s (8 %) were calls on its files: publish 0.889 s, ….`"""
    if line.cell.validity.state in UNUSABLE:
        return ""
    took = series_times(line)
    if took is None:
        return ""
    whole_s, calls_s = took[WHOLE]
    if calls_s is None:
        return f"{name} took {_s(whole_s)} end to end; calls on its files were not traced."
    by_stage = {stage: own_s or 0.0 for stage, (_, own_s) in took.items() if stage != WHOLE}
    ranked = sorted(by_stage.items(), key=lambda item: -item[1])
    shown = [(stage, own_s) for stage, own_s in ranked[:_STAGES] if own_s >= _SHOWN_SHARE * calls_s > 0]
    rest_s = calls_s - sum(own_s for _, own_s in shown)
    parts = [f"{stage} {_s(own_s)}" for stage, own_s in shown]
    parts += [f"others {_s(rest_s)}"] if len(shown) < len(by_stage) and rest_s > 0 else []
    share = units.whole_percent(calls_s / whole_s) if whole_s > 0 else "unknown"
    of_stages = f": {', '.join(parts)}" if parts and not brief else ""
    return (
        f"Of {_s(whole_s)} end to end on {name}, {_s(calls_s)} ({share}) were calls on its files{of_stages}."
    )


def _longer(beside: PipelineBeside, several: bool) -> Statement:
    evidence = tuple(
        f"{one.stage}: {_s(one.base_s)} and {_s(one.other_s)}: {_signed(one.longer.value)}"
        f" ({_difference(one.longer)}, {100 * one.longer.confidence:.4g} %, blocks: {one.longer.blocks})"
        for one in (beside.whole, *beside.stages)
    )
    cells = (beside.base.cell.id, beside.other.cell.id)
    return Statement("finding", _longer_words(beside, several), evidence, says="stages_compared", cells=cells)


def _longer_words(beside: PipelineBeside, several: bool) -> str:
    """What takes longer on the other target, by how much; and what is not significantly different."""
    where = f"{beside.other.cell.target} compared with {beside.base.cell.target}"
    where += f", {beside.base.cell.work}" if several else ""
    parts = [f"the whole {_verdict(beside.whole.longer)}"]
    parts += [f"all calls on files {_verdict(beside.calls_longer, 'are')}"] if beside.calls_longer else []
    found = sorted((one for one in beside.stages if one.longer.found), key=lambda one: -abs(one.longer.value))
    parts += [f"{one.stage} {_verdict(one.longer)}" for one in found[:_STAGES]]
    parts += [f"{len(found) - _STAGES} more stages differ by less"] if len(found) > _STAGES else []
    left = [one for one in beside.stages if not one.longer.found]
    if left:
        names = _listed([one.stage for one in left]) if len(left) <= _STAGES else f"{len(left)} stages"
        ends = [abs(end) for one in left for end in (one.longer.low, one.longer.high) if end is not None]
        bound = f", by {_s(max(ends))} at most" if ends else ""
        parts.append(f"{names} {'is' if len(left) == 1 else 'are'} not significantly different{bound}")
    return f"{where}: {'; '.join(parts)}."


def _verdict(longer: MeanDifference, verb: str = "is") -> str:
    """`is 0.76 s longer (0.5 s to 1.02 s)`."""
    if not longer.found:
        return f"{verb} not significantly different ({_difference(longer)})"
    return f"{verb} {_signed(longer.value)} ({_difference(longer)})"


def _difference(longer: MeanDifference) -> str:
    """`1.2 s shorter to 9 s longer`, `0.5 s to 1.02 s`."""
    if longer.low is None or longer.high is None:
        return "1 block: no CI"
    if longer.found:
        ends = sorted((abs(longer.low), abs(longer.high)))
        return f"{_s(ends[0])} to {_s(ends[1])}" if ends[0] > 0 else f"by {_s(ends[1])} at most"
    return f"{_signed(longer.low)} to {_signed(longer.high)}"


def stage_matrix(lines: Sequence[PipelineSeries], beside: Sequence[PipelineBeside]) -> FigureTable | None:
    """For the first screen: each stage on each target, how much of it was calls, and by how much it is longer
    than on the base; of several works or more than two targets a column each. None where nothing ended."""
    several = several_works(lines)
    targets = tuple(dict.fromkeys(line.cell.target for line in lines))
    took = {(line.cell.work, line.cell.target): (line, series_times(line)) for line in lines}
    against = {(one.other.cell.work, one.other.cell.target): one for one in beside}
    if not any(found for _, found in took.values()):
        return None
    full = not several and len(targets) <= _TARGETS_FULL
    columns: list[str] = []
    for target in targets:
        columns += [target, "in calls"] if full else [target]
        columns += (
            [f"longer than {beside[0].base.cell.target}"]
            if full and (lines[0].cell.work, target) in against
            else []
        )
    rows = []
    for work in dict.fromkeys(line.cell.work for line in lines):
        own = [line for line in lines if line.cell.work == work]
        for stage in (*stages_of(own), WHOLE):
            texts: list[str] = []
            for target in targets:
                texts += _matrix_texts(
                    took.get((work, target)), against.get((work, target)), stage, full=full
                )
            state = worst([line.cell.validity.state for line in own])
            values = tuple(Quantity(None, "", text=text) for text in texts)
            rows.append(FigureRow((*([work] if several else []), stage), values, state))
    keys = ("work", "operation") if several else ("operation",)
    note = _CALLS_NOTE if full else _BEHIND_NOTE.format(beside[0].base.cell.target) if beside else ""
    marks = _MARK_NOTE if beside else ""
    title = "Stages in seconds"
    return FigureTable(
        "stage_seconds", title, keys, tuple(columns), tuple(rows), f"Means over the blocks.{note}{marks}"
    )


def _matrix_texts(
    found: tuple[PipelineSeries, SeriesTimes | None] | None,
    beside: PipelineBeside | None,
    stage: str,
    *,
    full: bool,
) -> list[str]:
    """`0.77 s`, `0.754 s`, `0.762 s (0.375 s to 1.15 s)`; or all that in a column, `0.77 s, 0.762 s`."""
    own = found[1].get(stage) if found and found[1] else None
    if found is not None and found[0].cell.validity.state in UNUSABLE:
        texts = [found[0].cell.validity.state.replace("_", " "), ""]
    elif own is None:
        texts = ["\u2013", ""]
    else:
        texts = [_s(own[0]), "not traced" if own[1] is None else _s(own[1])]
    if beside is None:
        return texts if full else texts[:1]
    longer = next(one for one in (*beside.stages, beside.whole) if one.stage == stage).longer
    mark = "" if longer.found else "? "
    if not full:
        return [f"{texts[0]}, {mark}{_plain(longer.value)}"]
    if longer.low is None or longer.high is None:
        return [*texts, f"{mark}{_plain(longer.value)}"]
    return [*texts, f"{mark}{_plain(longer.value)} ({_plain(longer.low)} to {_plain(longer.high)})"]


def _plain(seconds: float) -> str:
    return f"{'-' if seconds < 0 else ''}{_s(abs(seconds))}"


def _signed(seconds: float) -> str:
    return f"{_s(abs(seconds))} {'longer' if seconds >= 0 else 'shorter'}"


def _s(seconds: float) -> str:
    """Three digits, and every second of long times: they stand beside others that they are added to."""
    if seconds >= _SECONDS_MAX:  # the end of an interval of too few blocks
        return f"over {_SECONDS_MAX:,.0f} s"
    return f"{seconds:,.0f} s" if seconds >= _WHOLE_SECONDS else f"{units.format_number(seconds)} s"


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
            f"{stage}: {100 * io:.0f} % of its time in calls on files of the target, {cpus:.2g} CPUs busy"
            f" with it; the host's were busy {100 * host:.0f} % of the time"
        )
        if io <= limit["io_share_max"] and cpus >= limit["cpu_share"]:
            by_cpu[stage] = words
        elif io <= limit["io_share_max"] and host >= limit["host_busy_share"]:
            by_others[stage] = words
        elif io >= limit["io_share_min"]:
            by_files[stage] = words
    bounds = (
        (by_cpu, "CPU"),
        (by_others, "CPUs that other processes keep busy, not files of the target"),
        (by_files, "reading, writing and metadata"),
    )
    for found, words in bounds:
        if found:
            text = f"{name}: the bottleneck of {_listed(list(found))} is {words}."
            yield Statement(
                "finding", text, tuple(found.values()), says="stages_bound", cells=(line.cell.id,)
            )


def _passes(line: PipelineSeries, name: str) -> Iterator[Statement]:
    said = []
    for stage in (one.stage for one in line.job.pipeline):
        passes = line.mean(stage, lambda row: row.passes, "passes")
        if passes.value is not None and passes.value >= thresholds()["passes_said"]:
            said.append(f"{stage} reads its input {units.format_number(passes.value)} times")
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
