"""Rules on the run itself: what became of its trials and data, whether they were enough, long and steady,
and had their settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from leadline.analysis.statistics.drift import TrialShift
from leadline.units import format_duration, format_quantity
from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.codes.hosts import is_lost
from leadline.verdict.degraded import conditions, faults_of
from leadline.verdict.model import Code


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
            f" {100 * trial.steady_range:.1f} % of their mean (at most {100 * asked.range:.1f} %), and their"
            f" line of best fit moved by {100 * trial.steady_slope:.1f} % (at most {100 * asked.slope:.1f} %)"
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


STEADINESS_RULES: tuple[Rule, ...] = (_no_steady_state, _level_shift)


def _not_in_force(case: Case) -> Iterator[Code]:
    """One trial is enough: its figures are of the other state, and blocks pair them with the wrong one."""
    for trial in case.good:
        said: Mapping[str, Any] = json.loads(trial.states) if trial.states else {}
        for moment in ("before", "after"):
            for name, read in said.get(moment, {}).items():
                if read["found"] is None:
                    why = read.get("reason") or "no reason is known"
                    yield _fired(f"{moment} {trial.trial} {name} could not be read: {why}")
                    return
                if read["found"] != read["wanted"]:
                    yield _fired(f"{moment} {trial.trial} {name} was {read['found']}, not {read['wanted']}")
                    return


def _fired(evidence: str) -> Code:
    return catalogue()["setting_not_in_force"].fire(evidence)


SETTINGS_RULES: tuple[Rule, ...] = (_not_in_force,)


def _few_blocks(case: Case) -> Iterator[Code]:
    kind = catalogue()["few_blocks"]
    if case.cell.swept is not None:
        return  # its neighbours tell how far it scatters
    count = len({trial.block for trial in case.good})
    if 0 < count < kind.thresholds["blocks"]:
        yield kind.fire(f"{count} {'block was' if count == 1 else 'blocks were'} completed")


def _too_short(case: Case) -> Iterator[Code]:
    kind = catalogue()["too_short"]
    found = case.work.too_short(case, kind.thresholds) if case.good else None
    if found is not None:
        evidence, invalid = found
        yield kind.fire(evidence, worse=invalid)


DURATION_RULES: tuple[Rule, ...] = (_few_blocks, _too_short)


def _compressible(case: Case) -> Iterator[Code]:
    words = case.work.compressible(case.cell.job)
    if words is not None and case.facts.has_storage:
        yield catalogue()["compressible_data"].fire(f"the study asked for it: {words}")


DATA_RULES: tuple[Rule, ...] = (_compressible,)


def _completeness(case: Case) -> Iterator[Code]:
    if not case.trials:
        reason = case.not_run_reason or "the run ended before it was measured"
        yield catalogue()["not_run"].fire(reason)
    elif len(case.trials) < case.blocks_planned:
        evidence = f"{len(case.trials)} of {case.blocks_planned} blocks"
        yield catalogue()["incomplete"].fire(
            f"{evidence}: {case.not_run_reason}" if case.not_run_reason else evidence
        )


def _errors(case: Case) -> Iterator[Code]:
    bad = [trial for trial in case.trials if trial.state != "complete"]
    failed = [trial for trial in bad if "(verify)" in (trial.error or "")]
    if failed:
        yield catalogue()["verification_failed"].fire(f"{failed[0].trial}: {failed[0].error}")
    others = [trial for trial in bad if trial not in failed and not is_lost(trial)]
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


COMPLETENESS_RULES: tuple[Rule, ...] = (_completeness, _errors, _unwritten_blocks)


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


def _imported(case: Case) -> Iterator[Code]:
    words = case.work.not_seen(case)
    if words and case.trials:
        yield catalogue()["imported"].fire(words)


def _replay_differs(case: Case) -> Iterator[Code]:
    kind = catalogue()["replay_differs"]
    for evidence in case.work.differs(case, kind.thresholds):
        yield kind.fire(evidence)


def _fault_in_force(case: Case) -> Iterator[Code]:
    """Faults of a lab that were not asked for, or under which not all of the cell was measured alike."""
    kind = catalogue()["fault_in_force"]
    under = {trial.trial: faults_of(trial) for trial in case.good}
    surprised = [trial.trial for trial in case.good if under[trial.trial] and not trial.under_fault]
    unknown = {trial.trial: why for trial in case.good if (why := json.loads(trial.reasons).get("faults"))}
    partly = [name for name, found in under.items() if not all(one.whole for one in found)]
    if surprised:
        words = dict.fromkeys(one.fault.words for name in surprised for one in under[name])
        which = f"{len(surprised)} of {len(under)} trials, the first {surprised[0]}"
        yield kind.fire(f"injected while it was measured ({which}): {', '.join(words)}")
    elif partly:
        words = dict.fromkeys(one.fault.words for one in under[partly[0]] if not one.whole)
        yield kind.fire(f"in a part of {partly[0]} only: {', '.join(words)}")
    elif len({conditions(found) for found in under.values()}) > 1:
        some = [name for name, found in under.items() if found]
        words = dict.fromkeys(one.fault.words for name in some for one in under[name])
        yield kind.fire(f"trials are not under the same faults ({', '.join(words)})")
    elif unknown:
        name, why = next(iter(unknown.items()))
        yield kind.fire(f"what was in force during {name} is not known: {why}")


def _target_changed(case: Case) -> Iterator[Code]:
    """The target's mount around each trial, held against the one when the study was planned.

    Settings that are proved may be options of mounts: then only what changes within a trial counts.
    """
    kind = catalogue()["target_changed"]
    facts = case.facts
    planned = {"file_system": facts.file_system, "source": facts.source, "options": list(facts.options)}
    for trial in case.good:
        if trial.mounts is None:
            continue
        before, after = (json.loads(trial.mounts)[moment] for moment in ("before", "after"))
        same_plan = trial.states is None and trial.hosts is None
        was = {**before, **planned} if same_plan and facts.source is not None else before
        for moment, earlier, later in (("before", was, before), ("during", before, after)):
            words, other = _mount_change(earlier, later)
            if words:
                yield kind.fire(f"{moment} {trial.trial} {words}", worse=other)
                return


def _mount_change(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, bool]:
    """What differs, or "", and whether another file system is there."""
    if any(was[name] != now[name] for name in ("file_system", "source", "subtree")):
        return f"another file system took its place ({was['file_system']}, then {now['file_system']})", True
    added = [name for name in now["options"] if name not in was["options"]]
    removed = [name for name in was["options"] if name not in now["options"]]
    if added or removed:
        changes = [f"{_public(name)} was added" for name in added]
        changes += [f"{_public(name)} was removed" for name in removed]
        return f"its mount options changed: {', '.join(changes)}", False
    if was["mount_id"] != now["mount_id"]:
        return "it was mounted anew", False
    return "", False


def _public(option: str) -> str:
    """An option without a value that may name a host or an account."""
    name, equals, value = option.partition("=")
    return option if not equals or value.isdigit() else name


RUN_RULES: tuple[Rule, ...] = (
    _events_lost,
    _emulated_host,
    _imported,
    _replay_differs,
    _fault_in_force,
    _target_changed,
)
