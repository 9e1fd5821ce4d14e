"""What a proof said of settings, as values: whoever judged it hands them in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PROVED = frozenset({"helps"})


@dataclass(frozen=True)
class Evidence:
    """`verdict` as a proof gives it, `says` its sentence; it is `called` otherwise in words."""

    setting: str
    value: str
    verdict: str
    says: str
    source: str
    called: str = ""

    @property
    def proved(self) -> bool:
        """True where it helps, and nothing that was seen speaks against its mechanism."""
        return self.verdict in PROVED

    @property
    def words(self) -> str:
        """The verdict and its sentence."""
        called = self.called or self.verdict
        return f"{called}: {self.says}" if self.says else called


def evidence_of(
    settings: Sequence[tuple[str, str]], verdict: str, says: str, source: str, called: str = ""
) -> tuple[Evidence, ...]:
    """One proof's, for each of the settings with their values that it measured.

    Several were measured as one set: what that does proves none of them alone.
    """
    if len(settings) > 1:
        beside = f", with {len(settings) - 1} more settings as one set"
        verdict, called = verdict + beside, (called or verdict) + beside
    return tuple(Evidence(name, value, verdict, says, source, called) for name, value in settings)
