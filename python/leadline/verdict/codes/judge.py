"""Which validity codes fire on a cell. One small function a code; thresholds are in `codes.yaml`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leadline.analysis.metrics import operation_phases
from leadline.analysis.origin import Bytes, bytes_read, bytes_written
from leadline.analysis.statistics.level_shift import TrialShift
from leadline.store.tables import TrialRow
from leadline.units import format_duration, format_quantity, format_rate, format_size
from leadline.verdict.codes.case import Case, worst_trial
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.codes.implausible import implausible
from leadline.verdict.codes.load import other_load
from leadline.verdict.model import Code, State, Validity
from leadline.workloads.application.job import ApplicationJob
from leadline.workloads.coherence.job import CoherenceJob
from leadline.workloads.io.job import Job
from leadline.workloads.metadata.job import MetadataJob
from leadline.workloads.replay.job import ReplayJob

_COUNTED = ("wire", "osd", "device")
# A cluster with room on average may hold one OSD, or a pool with a quota, that has none.
_FULL_CHECKS = frozenset(
    f"{what}_{how}" for what in ("OSD", "POOL") for how in ("NEARFULL", "NEAR_FULL", "BACKFILLFULL", "FULL")
)
_RANK: dict[State, int] = {"VALID": 0, "DOUBTFUL": 1, "INVALID": 2, "NOT_RUN": 3}


def judge(case: Case) -> Validity:
    """All codes that fire, worst first."""
    codes = [code for rule in _RULES for code in rule(case)]
    codes.sort(key=lambda code: -_RANK[code.state])
    return Validity(worst(code.state for code in codes), tuple(codes))


def worst(states: Iterator[State] | Sequence[State]) -> State:
    """The worst of some states; VALID when there is none."""
    return max(states, key=_RANK.__getitem__, default="VALID")


def _few_blocks(case: Case) -> Iterator[Code]:
    kind = catalogue()["few_blocks"]
    count = len({trial.block for trial in case.good})
    if 0 < count < kind.thresholds["blocks"]:
        yield kind.fire(f"{count} {'block was' if count == 1 else 'blocks were'} completed")


def _too_short(case: Case) -> Iterator[Code]:
    kind = catalogue()["too_short"]
    if not case.good or isinstance(case.cell.job, CoherenceJob):
        return
    if isinstance(case.cell.job, MetadataJob):
        yield from _short_phases(case)
        return
    seconds = min(trial.measured_ns / 1e9 for trial in case.good)
    operations = min(trial.read_operations + trial.write_operations for trial in case.good)
    limit = kind.thresholds
    if isinstance(case.cell.job, ReplayJob):
        if seconds < limit["phase_seconds"]:
            yield kind.fire(f"the replay took {seconds:.3g} s")
        return
    if isinstance(case.cell.job, ApplicationJob):
        if seconds < limit["seconds_invalid"]:
            yield kind.fire(f"a copy ran for {seconds:.3g} s: much of it is starting the program")
        return
    if seconds < limit["seconds"]:
        yield kind.fire(f"{seconds:.3g} s were measured", worse=seconds < limit["seconds_invalid"])
    elif operations < limit["operations"]:
        yield kind.fire(f"{operations} operations in {seconds:.3g} s")


def _short_phases(case: Case) -> Iterator[Code]:
    """Phases end when their files are done: many operations make up for a short time."""
    kind = catalogue()["too_short"]
    for trial in case.good:
        for name, phase in operation_phases(trial).items():
            seconds = phase["elapsed_ns"] / 1e9
            if (
                phase["operations"] < kind.thresholds["operations"]
                or seconds < kind.thresholds["phase_seconds"]
            ):
                yield kind.fire(f"{phase['operations']} x {name} in {seconds:.3g} s in {trial.trial}")
                return


def _generator_saturated(case: Case) -> Iterator[Code]:
    if not case.facts.has_storage:
        return  # there the generator is what is measured
    kind = catalogue()["generator_saturated"]
    busy, trial = worst_trial(case.good, lambda row: row.busy_share_max)
    if busy >= kind.thresholds["busy_share"]:
        yield kind.fire(f"a thread was on CPU {min(busy, 1):.0%} of the time in {trial}")
    late_ms, trial = worst_trial(case.good, _own_late_ms)
    if late_ms >= kind.thresholds["own_late_ms"]:
        yield kind.fire(
            f"operations began {late_ms:.3g} ms late on average in {trial}, not waiting for storage"
        )


def _own_late_ms(trial: TrialRow) -> float | None:
    """Lateness that the pacer itself caused; waiting for a slow target is not the generator's fault."""
    late_ns = (json.loads(trial.summary).get("pacer") or {}).get("own_late_ns_mean")
    return None if late_ns is None else float(late_ns) / 1e6


def _host_cpu_saturated(case: Case) -> Iterator[Code]:
    kind = catalogue()["host_cpu_saturated"]
    if isinstance(case.cell.job, ApplicationJob):
        return  # how long a program takes is the figure, whatever limits it: that is said in words
    busy, trial = worst_trial(case.good, lambda row: row.cpu_busy_share)
    if busy >= kind.thresholds["busy_share"] and case.facts.has_storage:
        yield kind.fire(f"the host's CPUs were busy {busy:.0%} of the time in {trial}")


def _errors(case: Case) -> Iterator[Code]:
    bad = [trial for trial in case.trials if trial.state != "complete"]
    failed = [trial for trial in bad if "(verify)" in (trial.error or "")]
    if failed:
        yield catalogue()["verification_failed"].fire(f"{failed[0].trial}: {failed[0].error}")
    others = [trial for trial in bad if trial not in failed]
    if others:
        yield catalogue()["errors"].fire(
            f"{len(others)} of {len(case.trials)} trials; {others[0].trial}: {others[0].error}"
        )


def _unwritten_blocks(case: Case) -> Iterator[Code]:
    count = sum(trial.unwritten_blocks for trial in case.good)
    if count:
        yield catalogue()["unwritten_blocks"].fire(
            f"{count} blocks of 4 KiB were read that were never written"
        )


def _cached_reads(case: Case) -> Iterator[Code]:
    """Reads that no wire or device saw came from a cache of this host; on Ceph, OSDs have caches too."""
    job = case.cell.job
    if not job.reads or not case.good or not case.facts.has_storage or case.facts.in_memory:
        return
    kind = catalogue()["cached_reads"]
    found = bytes_read(case.good)
    if isinstance(job, ReplayJob):
        # What a program reads again may come from a cache; what it reads first may not.
        found = replace(found, application=min(found.application, job.cold_bytes * len(case.good)))
        if not found.application:
            return
    source = _nearest_source(found)
    if source is None:
        fits = case.memory_bytes is None or job.data_set_bytes < case.memory_bytes
        if not job.direct and fits:
            reasons = {reason for name, reason in found.reasons.items() if name in _COUNTED}
            yield catalogue()["origin_unknown"].fire("; ".join(sorted(reasons)))
        return
    words, value = source
    cached = _missing_share(value, found.application)
    if cached > kind.thresholds["share"]:
        yield kind.fire(
            f"{format_size(value)} {words} for {format_size(found.application)} read:"
            f" {cached:.0%} from a cache of this host{_together(found)}",
            worse=cached > kind.thresholds["share_invalid"],
        )
    elif found.osd and found.device is not None:
        inside = _missing_share(found.device, found.osd)
        if inside > kind.thresholds["share_osd"]:
            yield kind.fire(
                f"the OSDs read {format_size(found.device)} from their stores for {format_size(found.osd)}"
                f" that they sent: {inside:.0%} from their caches"
            )


def _cold_input(case: Case) -> Iterator[Code]:
    """An input that was to be cold: copies share it, so that it has to come from storage once at most.

    They may read less than the whole input, so that only next to nothing tells.
    """
    job = case.cell.job
    if not isinstance(job, ApplicationJob) or job.cache != "cold" or not job.input_bytes or not case.good:
        return
    if case.facts.in_memory:
        return
    found = bytes_read(case.good)
    source = _nearest_source(found)
    if source is None:
        reasons = {reason for name, reason in found.reasons.items() if name != "application"}
        yield catalogue()["origin_unknown"].fire("; ".join(sorted(reasons)))
        return
    words, value = source
    each = min(job.input_bytes, found.application // (job.copies * len(case.good)))
    wanted = each * len(case.good)
    cached = _missing_share(value, wanted)
    if cached > catalogue()["cached_reads"].thresholds["share_cold"]:
        yield catalogue()["cached_reads"].fire(
            f"a cold start was asked for; {format_size(value)} {words} in {len(case.good)} trials, each of"
            f" which read at least {format_size(each)}"
        )


def _nearest_source(found: Bytes) -> tuple[str, int] | None:
    """Where bytes were counted nearest to this host, and the smallest such count.

    A wire's counter may hold what others sent, and so may the OSDs' and the device's: the smallest is nearest
    the truth. What the run's own processes fetched is counted for block devices only.
    """
    near = [
        (count, words)
        for count, words in ((found.wire, "came over the wire"), (found.osd, "came from the OSDs"))
        if count is not None
    ]
    if near:
        count, words = min(near)
        return words, count
    if found.device is None:
        return None
    if found.own is not None and found.own < found.device:
        return "were fetched by this run's processes", found.own
    return "came from the device", found.device


def _missing_share(seen: int, wanted: int) -> float:
    return 1 - seen / wanted if wanted else 0.0


def _buffered_writes(case: Case) -> Iterator[Code]:
    job = case.cell.job
    if isinstance(job, ReplayJob):
        return  # the program itself left them there
    if not job.writes or job.direct or not case.good or not case.facts.has_storage or case.facts.in_memory:
        return
    kind = catalogue()["buffered_writes"]
    found = bytes_written(case.good)
    source = next((v for n in ("wire", "device", "osd") if (v := getattr(found, n)) is not None), None)
    if source is None:
        yield kind.fire("writes were buffered, and nothing shows how much of them left memory")
        return
    kept = _missing_share(source, found.application)
    if kept > kind.thresholds["share"]:
        yield kind.fire(
            f"{format_size(found.application)} were written, {format_size(source)} had left memory at the end"
            f"{_together(found)}"
        )


def _together(found: Bytes) -> str:
    """Jobs that ran together share what was observed; the words that say so, or none."""
    return f" ({found.reasons['application']})" if "application" in found.reasons else ""


def _clock_skew(case: Case) -> Iterator[Code]:
    kind = catalogue()["clock_skew"]
    skew_ns, trial = worst_trial(case.good, lambda row: row.start_skew_ns)
    if skew_ns > kind.thresholds["seconds"] * 1e9:
        yield kind.fire(f"the jobs of {trial} began within {skew_ns / 1e9:.3g} s")


def _no_steady_state(case: Case) -> Iterator[Code]:
    asked = case.cell.steady
    bad = [trial for trial in case.good if trial.steady is False]
    if asked is None or not bad:
        return
    trial = bad[0]
    if trial.steady_range is None or trial.steady_slope is None:
        seen = "the trial was too short, or the rate was 0"
    else:
        seen = (
            f"the last {asked.windows} windows of {format_duration(asked.window / 1e9)} spread by"
            f" {trial.steady_range:.1%} of their mean (at most {asked.range:.1%}) and their line"
            f" of best fit moved by {trial.steady_slope:.1%} (at most {asked.slope:.1%})"
        )
    yield catalogue()["no_steady_state"].fire(f"{len(bad)} of {len(case.good)} trials; {trial.trial}: {seen}")


def _level_shift(case: Case) -> Iterator[Code]:
    """At least half of the trials, each at its own level: by Rueger's inequality (1978) the chance that they
    all err is at most twice that level, however they depend on each other."""
    limit = catalogue()["level_shift"].thresholds
    found = [(name, case.shifts[name]) for trial in case.good if (name := trial.trial) in case.shifts]
    shifted = [(name, one) for name, one in found if is_shift(one)]
    if not shifted or len(shifted) < limit["share_of_trials"] * len(found):
        return
    name, one = min(shifted, key=lambda item: item[1].shift.p_value)
    before, after = (format_quantity(value, "1/s") for value in (one.shift.before, one.shift.after))
    yield catalogue()["level_shift"].fire(
        f"{len(shifted)} of {len(found)} trials; {name}: {before} until {one.at_s:.3g} s, {after} from there"
        f" on (p = {one.shift.p_value:.1g})"
    )


def is_shift(found: TrialShift) -> bool:
    """Whether a trial's step is larger than chance makes it, and large enough to matter."""
    limit = catalogue()["level_shift"].thresholds
    return found.shift.p_value <= limit["p_value"] and found.shift.size >= limit["size"]


def _memory_target(case: Case) -> Iterator[Code]:
    if case.facts.in_memory:
        yield catalogue()["memory_target"].fire(f"{case.facts.mount_point} is {case.facts.file_system}")


def _cluster(case: Case) -> Iterator[Code]:
    """Codes on the cluster's state, as seen at the start and the end of each trial and by samples between."""
    seen: dict[str, str] = {}
    for trial in case.good:
        for moment, text in (("start", trial.start_state), ("end", trial.end_state)):
            state = json.loads(text)
            if state:
                for code, evidence in _cluster_problems(state):
                    seen.setdefault(code, f"at the {moment} of {trial.trial}: {evidence}")
    for trial in case.good:
        for code, count, what in (
            ("cluster_not_clean", trial.pgs_not_clean_max, "not clean"),
            ("scrub_or_recovery", trial.pgs_scrubbing_max, "scrubbing"),
        ):
            if count:
                seen.setdefault(code, f"during {trial.trial}: {count} PGs {what}")
    for code, evidence in seen.items():
        yield catalogue()[code].fire(evidence)


def _cluster_problems(state: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    unclean = {n: c for n, c in state["pgs"].items() if not {"active", "clean"} <= set(n.split("+"))}
    if unclean:
        yield "cluster_not_clean", ", ".join(f"{count} PGs {name}" for name, count in unclean.items())
    elif state["osds"] is not None and state["osds_up"] is not None and state["osds_up"] < state["osds"]:
        yield "cluster_not_clean", f"{state['osds_up']} of {state['osds']} OSDs were up"
    if state["scrubbing"] or state["recovering"]:
        what = "recovery" if state["recovering"] else f"{state['scrubbing']} PGs scrubbing"
        yield "scrub_or_recovery", what
    used, near = state["used_share"], state["nearfull_share"]
    full = {code: text for code, text in state["checks"].items() if code in _FULL_CHECKS}
    if full:
        yield "nearly_full", ", ".join(f"{code}: {text}" for code, text in full.items())
    elif used is not None and near is not None and used >= near:
        yield "nearly_full", f"{used:.0%} used, nearfull at {near:.0%}"


def _throttled(case: Case) -> Iterator[Code]:
    count, trial = worst_trial(case.good, lambda row: row.cgroup_throttled)
    if count > 0:
        yield catalogue()["throttled"].fire(f"the control group was throttled {count:.0f} times in {trial}")
    limit = case.max_rate_bytes_per_s
    if limit and case.good:
        rate = max((t.read_bytes + t.write_bytes) / max(t.measured_ns / 1e9, 1e-9) for t in case.good)
        kind = catalogue()["throttled"]
        if rate >= kind.thresholds["rate_share"] * limit:
            yield kind.fire(f"the study's limit of {format_rate(limit)} was reached")


def _noisy_host(case: Case) -> Iterator[Code]:
    kind = catalogue()["noisy_host"]
    steal, trial = worst_trial(case.good, lambda row: row.cpu_steal_share)
    if steal >= kind.thresholds["steal_share"]:
        yield kind.fire(f"{steal:.0%} of the CPUs' time was stolen in {trial}")


def _compressible(case: Case) -> Iterator[Code]:
    job = case.cell.job
    if not isinstance(job, Job) or job.incompressible or not case.facts.has_storage:
        return
    shares = (
        (job.buffer_compress_percentage, "of each block can be compressed"),
        (job.dedupe_percentage, "of the blocks equal one another"),
    )
    words = " and ".join(f"{percent} % {what}" for percent, what in shares if percent)
    yield catalogue()["compressible_data"].fire(f"the study asked for it: {words or 'all of it'}")


def _events_lost(case: Case) -> Iterator[Code]:
    """Samples that were due and were not taken, or not kept."""
    kind = catalogue()["events_lost"]
    limit = kind.thresholds
    for trial in case.good:
        lost, due = trial.samples_missed or 0, trial.samples_due or 0
        if lost >= limit["samples"] and lost >= limit["share"] * due:
            yield kind.fire(
                f"the observers took {due - lost} of {due} samples that were due in {trial.trial}"
            )
            return


def _emulated_host(case: Case) -> Iterator[Code]:
    if case.emulation:
        yield catalogue()["emulated_host"].fire(case.emulation)


def _replay_differs(case: Case) -> Iterator[Code]:
    job = case.cell.job
    if not isinstance(job, ReplayJob):
        return
    kind = catalogue()["replay_differs"]
    if job.bytes_of_trace:
        left = 1 - (job.read_bytes + job.write_bytes) / job.bytes_of_trace
        if left > kind.thresholds["bytes_left_out"]:
            yield kind.fire(f"{left:.0%} of the trace's bytes were not replayed")
    share, trial = worst_trial(case.good, _otherwise)
    if share > kind.thresholds["calls_otherwise"]:
        yield kind.fire(f"{share:.1%} of the calls of {trial} failed or read less, unlike in the trace")


def _otherwise(trial: TrialRow) -> float | None:
    """The share of a replay's calls that did not go as in the trace."""
    found = json.loads(trial.summary).get("replay") or {}
    return (found["differed"] + found["short"]) / found["calls"] if found.get("calls") else None


def _completeness(case: Case) -> Iterator[Code]:
    if not case.trials:
        reason = case.not_run_reason or "the run ended before it"
        yield catalogue()["not_run"].fire(reason)
    elif len(case.trials) < case.blocks_planned:
        evidence = f"{len(case.trials)} of {case.blocks_planned} blocks"
        yield catalogue()["incomplete"].fire(
            f"{evidence}: {case.not_run_reason}" if case.not_run_reason else evidence
        )


_RULES: tuple[Callable[[Case], Iterator[Code]], ...] = (
    _completeness,
    _errors,
    _unwritten_blocks,
    _cached_reads,
    _cold_input,
    _buffered_writes,
    _few_blocks,
    _too_short,
    _cluster,
    _memory_target,
    _generator_saturated,
    _host_cpu_saturated,
    _throttled,
    _noisy_host,
    _clock_skew,
    _no_steady_state,
    _level_shift,
    _compressible,
    implausible,
    other_load,
    _events_lost,
    _emulated_host,
    _replay_differs,
)
