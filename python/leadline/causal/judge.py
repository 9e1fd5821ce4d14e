"""From a profile to what it says: the slopes, and the run time elsewhere with what limits the prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline import units
from leadline.analysis.sensitivity import (
    ObservedRun,
    PredictedTime,
    SensitivityFit,
    fit_sensitivity,
    predict,
)
from leadline.analysis.statistics.means import Estimate
from leadline.causal.elsewhere import LatencyThere
from leadline.causal.model import CLASSES, CausalProfile, DelayedRun
from leadline.errors import UsageError

_BLOCKS_MIN = 3  # two leave one degree of freedom: such an interval says nothing


@dataclass(frozen=True)
class Elsewhere:
    """The run time where calls take other times: which (seconds, by class), how long, and what casts doubt on
    it."""

    there: Mapping[str, Estimate]
    time: PredictedTime
    doubts: tuple[str, ...]


def judge(profile: CausalProfile) -> SensitivityFit | None:
    """The fit over the whole blocks; None where there are too few for an interval."""
    blocks = profile.blocks()
    if len(blocks) < _BLOCKS_MIN:
        return None
    return fit_sensitivity([[_observed(run) for run in block] for block in blocks], profile.classes)


def _observed(run: DelayedRun) -> ObservedRun:
    name = run.condition.delayed
    waited_s = run.sums[name].waited_s if name and name in run.sums else 0.0
    return ObservedRun(run.run_s, name, run.condition.delay_ns / 1e9, waited_s)


def predict_elsewhere(
    profile: CausalProfile, fit: SensitivityFit, there: Mapping[str, LatencyThere], doubts: Sequence[str] = ()
) -> Elsewhere:
    """Raises UsageError where a latency was typed for a class that the program calls and that was not
    profiled; of what was recorded there such classes are left out, which is said.
    """
    for name, latency in there.items():
        if latency.typed and name not in profile.classes and profile.calls(name):
            raise UsageError(
                f"the command makes {profile.calls(name):,.0f} {name} calls, which were not delayed",
                f"profile it with --class {name} too, or leave {name} out",
            )
    used = {name: there[name] for name in profile.classes if name in there}
    if not used:
        raise UsageError(
            "none of the classes that have a latency there is called by the command",
            f"name some of: {', '.join(profile.classes)}",
        )
    calls = {name: profile.calls(name) for name in used}
    own_s = {name: [one.own_s for one in profile.plain_sums(name)] for name in used}
    latencies = {name: latency.call_s for name, latency in used.items()}
    return Elsewhere(
        latencies,
        predict(fit, calls, own_s, latencies),
        (*doubts, *_doubts(profile, fit, used), *_unsaid(profile, used)),
    )


def _doubts(profile: CausalProfile, fit: SensitivityFit, used: Mapping[str, LatencyThere]) -> list[str]:
    found = []
    longest_s = profile.delays_ns[-1] / 1e9
    for name, latency in used.items():
        here_s = profile.latency_s(name) or 0.0
        more_s = latency.call_s.value - here_s
        if more_s > 1.5 * longest_s:
            found.append(
                f"a {name} call takes {units.format_latency(more_s * 1e9)} more there than here, and at most"
                f" {units.format_latency(longest_s * 1e9)} were tried: that the line goes on is assumed"
            )
        if fit.classes[name].bends:
            found.append(f"the run time does not follow the delay of {name} calls in a straight line")
    return found


def _unsaid(profile: CausalProfile, used: Mapping[str, LatencyThere]) -> list[str]:
    missing = [name for name in CLASSES if profile.calls(name) and name not in used]
    return [f"{', '.join(missing)} calls are taken to be as fast there as here"] if missing else []
