"""The knowledge base: which known pitfalls hold for a mount, which do not, and which cannot be told."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from leadline.knowledge.tables import entries, text_of

Holds = Literal["holds", "does not hold", "cannot be told"]
_SOURCE = "knowledge.yaml"
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Pitfall:
    """One entry of the table; see the head of the file."""

    name: str
    client: tuple[str, ...]
    symptom: str
    check: str
    remedy: str
    source: str
    needs: tuple[str, ...] = ()
    kernel_from: str = ""
    kernel_before: str = ""
    kernels: tuple[str, ...] = ()
    measure: str = ""


@dataclass(frozen=True)
class Finding:
    """A pitfall, whether it holds here, and why one says so."""

    pitfall: Pitfall
    holds: Holds
    why: str


@cache
def pitfalls() -> tuple[Pitfall, ...]:
    """Every entry, in the order of the file."""
    return read_pitfalls(text_of("leadline.mounting", _SOURCE))


def read_pitfalls(text: str) -> tuple[Pitfall, ...]:
    """The entries of a table. Raises SpecError where one lacks a part or has one too many."""
    return entries(text, _SOURCE, Pitfall)


def kernel_version(release: str) -> tuple[int, ...]:
    """(5, 16, 5) of `5.16.5-arch1`: what stands before the first letter or dash. () where there is none."""
    head = re.match(r"[0-9.]+", release)
    return tuple(int(part) for part in _NUMBER.findall(head.group())) if head else ()


def assess(
    client: str,
    kernel: str,
    facts: Mapping[str, bool | None],
    reasons: Mapping[str, str],
    table: tuple[Pitfall, ...] | None = None,
) -> tuple[Finding, ...]:
    """Every pitfall of this kind of client. `facts` by name; None is "cannot be told", for a reason."""
    entries = pitfalls() if table is None else table
    return tuple(_assess(entry, kernel, facts, reasons) for entry in entries if client in entry.client)


def cleared(findings: tuple[Finding, ...], measure: str, why: str) -> tuple[Finding, ...]:
    """The findings after a check on the mount itself went well: what it would have met does not hold."""
    return tuple(
        Finding(finding.pitfall, "does not hold", why) if finding.pitfall.measure == measure else finding
        for finding in findings
    )


def _assess(
    entry: Pitfall, kernel: str, facts: Mapping[str, bool | None], reasons: Mapping[str, str]
) -> Finding:
    inside, why = _kernel(entry, kernel)
    if not inside:
        return Finding(entry, "does not hold", why)
    unknown = [name for name in entry.needs if facts.get(name) is None]
    for name in entry.needs:
        if facts.get(name) is False:
            return Finding(entry, "does not hold", reasons.get(name, f"{words(name)}: no"))
    if unknown:
        told = "; ".join(reasons.get(name, f"{words(name)}: not known") for name in unknown)
        return Finding(entry, "cannot be told", told)
    return Finding(
        entry, "holds", "; ".join([why, *(reasons.get(name, words(name)) for name in entry.needs)])
    )


def words(name: str) -> str:
    """A fact's name as words."""
    return name.replace("_", " ")


def _kernel(entry: Pitfall, kernel: str) -> tuple[bool, str]:
    if not (entry.kernel_from or entry.kernel_before or entry.kernels):
        return True, "any kernel"
    if any(fnmatch.fnmatchcase(kernel, pattern) for pattern in entry.kernels):
        return True, f"kernel {kernel} is one in which it was seen"
    version = kernel_version(kernel)
    if entry.kernel_from and version < kernel_version(entry.kernel_from):
        return False, f"kernel {kernel} is older than {entry.kernel_from}"
    if entry.kernel_before and version >= kernel_version(entry.kernel_before):
        return False, f"kernel {kernel} is {entry.kernel_before} or later"
    return True, f"kernel {kernel}"
