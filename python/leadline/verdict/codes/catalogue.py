"""The closed list of validity codes, read from its data file."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from leadline.knowledge.tables import entries, text_of
from leadline.verdict.model import Code, State


@dataclass(frozen=True)
class CodeKind:
    """One entry of `codes.yaml`. `remedies` are for results that `remedy` does not fit, by their maker.

    `moves` says how what is measured may err, empty where nothing is known of it.
    """

    name: str
    state: State
    title: str
    means: str
    remedy: str
    worse: State | None = None
    thresholds: dict[str, int | float] = field(default_factory=dict)
    remedies: dict[str, str] = field(default_factory=dict)
    since: str | None = None
    moves: Literal["raises", "lowers", "scatters", ""] = ""

    def fire(self, evidence: str, *, worse: bool = False, of: str = "") -> Code:
        """This code with what was seen; `worse` for its second threshold, `of` what made the result."""
        state = self.worse if worse and self.worse else self.state
        return Code(self.name, state, self.title, evidence, self.remedies.get(of, self.remedy))


@cache
def catalogue() -> dict[str, CodeKind]:
    """Every code by its name."""
    found = entries(text_of(__package__, "codes.yaml"), "codes.yaml", CodeKind)
    return {one.name: one for one in found}
