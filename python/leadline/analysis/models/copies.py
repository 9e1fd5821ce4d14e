"""How long copies of a program run at once, from the times of fewer of them."""

from __future__ import annotations

from collections.abc import Mapping

from leadline.analysis.models.computed import Computed, ModelSaid, exactly
from leadline.analysis.models.simple import copies_time_s, fit_copies
from leadline.errors import UsageError
from leadline.units import format_number


def run_time(times_s: Mapping[float, float], cpus: float, copies: int) -> ModelSaid:
    """Seconds by `copies_time_s`, fitted to as many copies as there are CPUs.

    Beyond the CPUs from what copies at storage share with as many as fit, to computing alone. Raises
    UsageError for fewer than three numbers of copies up to the CPUs.
    """
    fitted = fit_copies(times_s, cpus)
    if fitted is None:
        raise UsageError(
            f"fewer than three numbers of copies up to {cpus:g} CPUs: nothing could contradict the fit",
            "measure 1, 2 and 3 copies, for example",
        )
    compute_s, shared_s = fitted
    seconds = copies_time_s(copies, compute_s, shared_s, cpus)
    numbers = f"C = {format_number(compute_s)} s, s = {format_number(shared_s)} s, c = {cpus:g}"
    formula = f"C max(1, N / c) + s min(N, c), {numbers}"
    off = max(abs(seen / copies_time_s(n, compute_s, shared_s, cpus) - 1) for n, seen in times_s.items())
    least = max(compute_s * max(1.0, copies / cpus), compute_s + shared_s)
    low = seconds if copies <= cpus else least
    return ModelSaid(
        (
            Computed(f"run time of {copies}", min(low, seconds), seconds, "s", formula),
            exactly(
                "furthest of what was given", off, "1", "measured / model - 1, those beyond the CPUs too"
            ),
        ),
        "a line up to the CPUs; beyond, copies share them, and no more than these are at storage at once",
        "Copies that wait long for storage leave their CPU to others: then it is too high.",
    )
