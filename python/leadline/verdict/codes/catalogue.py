"""The closed list of validity codes, read from its data file."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from leadline.verdict.model import Code, State
from leadline.written.yaml_source import read_table


@dataclass(frozen=True)
class CodeKind:
    """One entry of `codes.yaml`. `remedies` are for results that `remedy` does not fit, by their maker."""

    code: str
    state: State
    title: str
    means: str
    remedy: str
    worse: State | None = None
    thresholds: dict[str, float] = field(default_factory=dict)
    remedies: dict[str, str] = field(default_factory=dict)
    since: str | None = None

    def fire(self, evidence: str, *, worse: bool = False, of: str = "") -> Code:
        """This code with what was seen; `worse` for its second threshold, `of` what made the result."""
        state = self.worse if worse and self.worse else self.state
        return Code(self.code, state, self.title, evidence, self.remedies.get(of, self.remedy))


@cache
def catalogue() -> dict[str, CodeKind]:
    """Every code by its name."""
    text = resources.files("leadline.verdict.codes").joinpath("codes.yaml").read_text(encoding="utf-8")
    entries: dict[str, dict[str, Any]] = read_table(text, "codes.yaml").value
    return {name: CodeKind(code=name, **entry) for name, entry in entries.items()}
