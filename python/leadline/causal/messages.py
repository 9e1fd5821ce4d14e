"""A profile in words: the first screen, line by line, for somebody who has never seen one."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from leadline import units
from leadline.analysis.sensitivity import PredictedTime, SensitivityFit
from leadline.analysis.statistics.means import Estimate
from leadline.causal.judge import Elsewhere
from leadline.causal.model import CLASSES, CausalProfile

EXAMPLE_S = 1e-3  # what more a call takes, in the column that says what that does to the run
_IN_TURN = 0.8
_HIDDEN = 0.1
_FEW = 5  # blocks
_COMMAND_MAX = 60  # characters

Row = tuple[str, str, str, str, str]
HEADINGS: Row = ("class", "calls", "a call here", "with 1 ms more on each", "so these calls are")


def headline(profile: CausalProfile, fit: SensitivityFit) -> Iterator[str]:
    """How long the program runs, and which class it is sensitive to."""
    yield (
        f"{_command(profile.program)} runs for {_seconds(fit.run)} here: {len(fit.without_s)} blocks of"
        f" {profile.per_block} runs"
    )
    costly = [name for name in profile.classes if _matters(fit.classes[name].slope)]
    costly.sort(key=lambda name: -_longer(profile, fit, name).value)
    if not costly:
        if all(_ends(fit.classes[name].slope)[1] < _HIDDEN for name in profile.classes):
            yield "It waits for none of these calls: what they take is hidden behind other work."
        else:
            yield (
                "Whether it waits for these calls is inconclusive: the confidence intervals include 0."
                " More blocks (--blocks) or longer delays (--delay) narrow them."
            )
        return
    name = costly[0]
    longer = _longer(profile, fit, name)
    yield (
        f"It is most sensitive to {name} calls: 1 ms more on each of its {profile.calls(name):,.0f} makes it"
        f" run {_seconds(longer)} longer, {_share(longer.value, fit.run.value)} its time here."
    )


def rows(profile: CausalProfile, fit: SensitivityFit) -> Iterator[Row]:
    """One line a class that was asked for, the most costly first."""
    known = sorted(profile.classes, key=lambda name: -_longer(profile, fit, name).value)
    for name in known:
        latency_s = profile.latency_s(name) or 0.0
        longer = _longer(profile, fit, name)
        yield (
            name,
            f"{profile.calls(name):,.0f}",
            units.format_latency(latency_s * 1e9),
            f"{_signed(longer.value)} ({_bounds(longer)})",
            waits(fit.classes[name].slope),
        )
    for name in CLASSES:
        if name in profile.asked and name not in known:
            yield (name, "0", "", "", "not made below these directories")


def waits(slope: Estimate) -> str:
    """What a slope means."""
    low, high = _ends(slope)
    number = f"slope {slope.value:.2f} ({low:.2f} to {high:.2f})"
    if low <= 0 <= high:
        return f"hidden behind other work: {number}" if high < _HIDDEN else f"perhaps hidden: {number}"
    if high < 0:
        return f"not understood, shorter with delays: {number}"
    if low > _IN_TURN:
        return f"waited for in turn: {number}"
    if high < _IN_TURN:
        return f"overlapped in part: {number}"
    return f"waited for: {number}"


def bent(profile: CausalProfile, fit: SensitivityFit) -> Iterator[str]:
    """Classes whose slope depends on the delay."""
    for name in profile.classes:
        found = fit.classes[name]
        if found.bends:
            parts = ", ".join(
                f"{slope.value:.2f} at {units.format_latency(delay_s * 1e9)}"
                for delay_s, slope in found.by_delay
            )
            yield f"{name}: the slope depends on the delay ({parts}), so no straight line holds"


def elsewhere_words(fit: SensitivityFit, found: Elsewhere) -> Iterator[str]:
    """What it would take there."""
    at = ", ".join(
        f"{name} {units.format_latency(latency.value * 1e9)}" for name, latency in found.there.items()
    )
    yield f"Where a call takes {at}: {_predicted(found.time)}"
    ratio = found.time.mean.value / fit.run.value if fit.run.value > 0 else 0.0
    yield f"  {units.format_number(ratio)} times as long as here; all else is taken to be as here"
    for doubt in found.doubts:
        yield f"  {doubt}"


def cautions(profile: CausalProfile) -> Iterator[str]:
    """What must be borne in mind."""
    yield from profile.cautions
    if len(profile.blocks()) < _FEW:
        yield f"{len(profile.blocks())} blocks are few: confidence intervals are wide"


def _predicted(found: PredictedTime) -> str:
    low, high = _ends(found.one)
    return (
        f"{units.format_number(found.mean.value)} s on average ({_bounds(found.mean)}), one run"
        f" {units.format_number(low)} to {units.format_number(high)} s (95 %)"
    )


def _longer(profile: CausalProfile, fit: SensitivityFit, name: str) -> Estimate:
    """How much longer a run gets where each call of a class takes EXAMPLE_S more."""
    slope, factor = fit.classes[name].slope, profile.calls(name) * EXAMPLE_S
    low, high = _ends(slope)
    return Estimate(slope.value * factor, low * factor, high * factor, slope.count, slope.confidence)


def _command(words: Sequence[str]) -> str:
    """As it would be typed; of a long one the beginning."""
    text = shlex.join(words)
    return text if len(text) <= _COMMAND_MAX else f"{text[: _COMMAND_MAX - 4]} ..."


def _share(part_s: float, whole_s: float) -> str:
    if whole_s <= 0:
        return "an unknown share of"
    if part_s < whole_s:
        return f"{units.format_percent(part_s / whole_s)} of"
    return f"{units.format_number(part_s / whole_s)} times"


def _matters(slope: Estimate) -> bool:
    return _ends(slope)[0] > 0


def _ends(found: Estimate) -> tuple[float, float]:
    low = found.value if found.low is None else found.low
    return low, found.value if found.high is None else found.high


def _bounds(found: Estimate) -> str:
    low, high = _ends(found)
    return f"{units.format_number(low)} to {units.format_number(high)} s"


def _seconds(found: Estimate) -> str:
    return f"{units.format_number(found.value)} s ({_bounds(found)})"


def _signed(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else ''}{units.format_number(seconds)} s"
