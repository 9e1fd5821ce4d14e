"""What a proof said of settings, as values: whoever judged it hands them in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PROVED = frozenset({"helps"})


@dataclass(frozen=True)
class Evidence:
    """`verdict` as a proof gives it, `says` its sentence, `source` the result."""

    setting: str
    value: str
    verdict: str
    says: str
    source: str

    @property
    def proved(self) -> bool:
        """True where it helps, and nothing that was seen speaks against its mechanism."""
        return self.verdict in PROVED

    @property
    def words(self) -> str:
        """The verdict and its sentence."""
        return f"{self.verdict}: {self.says}" if self.says else self.verdict


def evidence_of(
    settings: Sequence[tuple[str, str]], verdict: str, says: str, source: str
) -> tuple[Evidence, ...]:
    """One proof's, for each of the settings with their values that it measured.

    Several were measured as one set: what that does proves none of them alone.
    """
    if len(settings) > 1:
        verdict = f"{verdict}, with {len(settings) - 1} more settings as one set"
    return tuple(Evidence(name, value, verdict, says, source) for name, value in settings)
