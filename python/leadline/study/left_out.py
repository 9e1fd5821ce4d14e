"""What a study asks for and a target cannot give, kept with its reason so that a report can say it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LeftOut:
    """A work that a target cannot do, or with `work` None a target that is not there at all."""

    target: str
    work: str | None
    reason: str
    url: str = ""
