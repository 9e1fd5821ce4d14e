"""Which known pitfalls hold for a mount, which do not, and which not known."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from leadline.knowledge.findings import Finding
from leadline.knowledge.releases import KnownVersions
from leadline.knowledge.tables import entries, text_of

_SOURCE = "pitfalls.yaml"
HOLDS = {True: "holds", False: "does not hold", None: "not known"}
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
    setting: str = ""
    shared: tuple[str, ...] = ()

    @property
    def versions(self) -> KnownVersions:
        """The upstream kernels in which it can hold."""
        return KnownVersions(self.kernel_from, self.kernel_before, self.source)

    def finding(self, holds: bool | None, why: str) -> Finding:
        """Whether it holds here, and why one says so."""
        return Finding(
            self.name,
            self.name.replace("-", " "),
            why,
            self.remedy,
            holds,
            means=self.symptom,
            verify=self.check,
            setting=self.setting,
            source=self.source,
            shared=self.shared,
        )


@cache
def pitfalls() -> tuple[Pitfall, ...]:
    """Every entry, in the order of the file."""
    return read_pitfalls(text_of("leadline.knowledge", _SOURCE))


def first_kernel(name: str) -> str:
    """The kernel from which on a pitfall can hold."""
    return next(one.kernel_from for one in pitfalls() if one.name == name)


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
    """Every pitfall of this kind of client. `facts` by name; None is "not known", for a reason."""
    entries = pitfalls() if table is None else table
    return tuple(_assess(entry, kernel, facts, reasons) for entry in entries if client in entry.client)


def cleared(findings: tuple[Finding, ...], measure: str, why: str) -> tuple[Finding, ...]:
    """The findings after a check on the mount itself went well: what it would have met does not hold."""
    measured = {one.name for one in pitfalls() if one.measure == measure}
    return tuple(
        replace(finding, holds=False, evidence=why) if finding.name in measured else finding
        for finding in findings
    )


def _assess(
    entry: Pitfall, kernel: str, facts: Mapping[str, bool | None], reasons: Mapping[str, str]
) -> Finding:
    inside, why = _kernel(entry, kernel)
    if not inside:
        return entry.finding(False, why)
    unknown = [name for name in entry.needs if facts.get(name) is None]
    for name in entry.needs:
        if facts.get(name) is False:
            return entry.finding(False, reasons.get(name, f"{words(name)}: no"))
    if unknown:
        told = "; ".join(reasons.get(name, f"{words(name)}: not known") for name in unknown)
        return entry.finding(None, told)
    return entry.finding(True, "; ".join([why, *(reasons.get(name, words(name)) for name in entry.needs)]))


def plain(found: Finding) -> dict[str, Any]:
    """A pitfall's entry with what was found of it, as plain values."""
    (entry,) = (one for one in pitfalls() if one.name == found.name)
    told = {name: value for name, value in asdict(entry).items() if name not in ("setting", "shared")}
    return {"pitfall": told, "holds": HOLDS[found.holds], "why": found.evidence}


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
