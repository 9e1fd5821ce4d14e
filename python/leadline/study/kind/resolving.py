"""What kinds of work have in common in resolving options: how to refuse, and whether I/O can be direct."""

from __future__ import annotations

from typing import NoReturn

from leadline import units
from leadline.errors import SpecError
from leadline.study.target import Target, TargetFacts


def fail(work: str, target: Target, key: str, message: str, remedy: str) -> NoReturn:
    """Raise the SpecError of what this target, or this host, cannot do."""
    raise SpecError(message, remedy, source=f"work {work} on target {target.name}", key=key)


def choose_direct(
    work: str,
    wanted: bool | str | None,
    places: tuple[int, ...],
    target: Target,
    facts: TargetFacts,
    notes: list[str],
) -> bool:
    """Whether operations of these sizes and places go past the caches; `notes` hear why."""
    aligned = all(place % max(1, facts.direct_alignment_bytes) == 0 for place in places)
    if not facts.has_storage:
        return False
    if wanted is True:
        if not facts.direct_io:
            remedy = "write direct: auto or false; the page cache is then part of what is measured"
            fail(work, target, "direct", f"{facts.words} has no direct I/O", remedy)
        if not aligned:
            step = units.exact_size(facts.direct_alignment_bytes)
            words = f"direct I/O on this target needs multiples of {step}"
            fail(work, target, "bs", words, f"write bs: {step}")
        return True
    return False if wanted is False else _where_possible(target, facts, aligned, notes)


def _where_possible(target: Target, facts: TargetFacts, aligned: bool, notes: list[str]) -> bool:
    if facts.in_memory:
        notes.append(f"direct false: {facts.file_system} is memory, there is no cache to go past")
        return False
    if not facts.direct_io:
        notes.append(f"direct false: {facts.file_system} has no direct I/O")
        return False
    if not aligned:
        notes.append(f"direct false: bs is no multiple of {units.exact_size(facts.direct_alignment_bytes)}")
        return False
    cache = "the page cache of this host" if target.location is None else "the client's cache"
    notes.append(f"direct true: the target can, and it keeps {cache} out")
    return True
