"""What a proof said of a setting, read from a result's manifest: values only, whoever judged them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
        """True where it helps, and by its mechanism."""
        return self.verdict in PROVED

    @property
    def words(self) -> str:
        """The verdict and its sentence."""
        return f"{self.verdict}: {self.says}" if self.says else self.verdict


def evidence_of(manifest: Mapping[str, Any], source: str) -> tuple[Evidence, ...]:
    """The verdicts in `proof.verdicts`, one a setting; none where the result is no proof or not yet judged.

    Rows that are not of that shape are passed over: they prove nothing.
    """
    proof = manifest.get("proof")
    rows = proof.get("verdicts") if isinstance(proof, Mapping) else None
    found = []
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, Mapping) and all(
            isinstance(row.get(key), str) for key in ("name", "value", "verdict")
        ):
            says = row.get("says")
            found.append(
                Evidence(
                    row["name"], row["value"], row["verdict"], says if isinstance(says, str) else "", source
                )
            )
    return tuple(found)
