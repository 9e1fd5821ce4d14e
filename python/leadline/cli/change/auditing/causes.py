"""What an audit is for: the causes that a result's diagnosis names, and which ways a work's data go."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leadline.errors import SpecError, UsageError
from leadline.knowledge.findings import Finding


@dataclass(frozen=True)
class AuditedWork:
    """`name` as it was given, the `study` to prove changes with, `directions`: read, write."""

    name: str = ""
    study: str = ""
    directions: frozenset[str] = frozenset()
    causes: tuple[Finding, ...] = ()


def work_of(given: str | None) -> AuditedWork:
    """A result where it is a directory, else a study. Raises UsageError where it is neither."""
    if given is None:
        return AuditedWork()
    from leadline.observe.hang_guard import check_answers

    check_answers([given])
    if Path(given).is_dir():
        return _of_result(Path(given))
    return _of_study(given)


def _of_result(path: Path) -> AuditedWork:
    from leadline.store.reader import open_result
    from leadline.verdict.diagnosis.results import diagnose_result

    result = open_result(path)
    cells = diagnose_result(result)
    shares: dict[str, float] = {}
    present: Counter[str] = Counter()
    findings: dict[str, Finding] = {}
    for one in cells:
        for cause in one.found.named:
            name = cause.entry.name
            findings.setdefault(name, cause.finding)
            present[name] += 1
            if cause.share is not None:
                shares[name] = shares.get(name, 0.0) + cause.share / len(cells)
    order = sorted(findings, key=lambda name: (name not in shares, -shares.get(name, present[name])))
    return AuditedWork(
        str(path),
        str(result.manifest.get("study", {}).get("name") or "STUDY"),
        directions([one.cell.job for one in cells]),
        tuple(replace(findings[name], share=shares.get(name)) for name in order),
    )


def _of_study(given: str) -> AuditedWork:
    from leadline.study.library import load_study

    try:
        study = load_study(given, os.environ)
    except SpecError as error:
        raise UsageError(f"--for {given}: {error.message}", error.remedy) from error
    return AuditedWork(given, given, directions([study.as_json()]))


def directions(values: Iterable[Any]) -> frozenset[str]:
    """Whether anything of these jobs reads or writes, by their `rw`; none where nothing tells."""
    found: set[str] = set()
    for word in _words(list(values)):
        found |= {way for way in ("read", "write") if way in word}
        found |= {"read", "write"} if word.endswith("rw") else set()
    return frozenset(found)


def _words(value: Any, key: str = "") -> Iterable[str]:
    if isinstance(value, dict):
        for name, inside in value.items():
            yield from _words(inside, name)
    elif isinstance(value, list | tuple):
        for inside in value:
            yield from _words(inside, key)
    elif key == "rw" and isinstance(value, str):
        yield value
