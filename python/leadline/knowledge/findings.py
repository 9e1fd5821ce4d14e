"""What rules say of what was seen: one type for checks, audits, mounts, watches, traces and diagnoses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from leadline.knowledge.tables import Value

Severity = Literal["serious", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """A rule that was asked: `holds` is None where nobody can tell, and `evidence` then says why.

    `name` is its entry's, `shared` the facts of `shared.yaml` that the entry names. `severity` was decided by
    who wrote the rule, `share` (0 to 1) was measured; where neither is known, it is only seen. `direct`: a
    counter says by itself that requests wait. What to do is `remedy`, by which `setting` of `leadline tune`,
    if any; `verify` is a command that shows the same.
    """

    name: str
    title: str
    evidence: str
    remedy: str
    holds: bool | None = True
    means: str = ""
    severity: Severity | None = None
    share: float | None = None
    direct: bool = False
    verify: str = ""
    setting: str = ""
    source: str = ""
    shared: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[bool, int, bool, float]:
        """What a counter says first, the serious before notes, a larger share before a smaller or unknown."""
        rank = SEVERITIES.index(self.severity) if self.severity else 0
        return not self.direct, rank, self.share is None, -(self.share or 0.0)


def meets(
    value: float | str | bool,
    one_of: Collection[Value] | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> bool | None:
    """Whether a value is as expected; None where it is to be a number and is none."""
    if one_of is not None:
        return value in one_of
    if isinstance(value, bool | str):
        return None
    return (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
