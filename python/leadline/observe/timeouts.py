"""How long this program waits for parts of its own: longer where the processor is emulated."""

from __future__ import annotations

from functools import cache

from leadline.observe.host import host

EMULATED_FACTOR = 10.0  # an emulated processor takes ten times as long for the same Python, or more


@cache
def _factor() -> float:
    return 1.0 if host.emulation() == "none seen" else EMULATED_FACTOR


def patient_s(seconds: float) -> float:
    """A deadline for what should take a fraction of `seconds` on a machine that is real."""
    return seconds * _factor()
