"""Whether a trial had one rate: a steady state where it was asked for, no level that shifts."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.analysis.statistics.level_shift import TrialShift
from leadline.units import format_duration, format_quantity
from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
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


RULES: tuple[Rule, ...] = (_no_steady_state, _level_shift)
