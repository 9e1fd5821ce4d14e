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


def server_may_answer(facts: TargetFacts, read_bytes: int, notes: list[str]) -> bool:
    """True where a server's memory could hold all that is read; `notes` hear which, and who will tell."""
    memory = None if facts.server is None else facts.server.memory_bytes
    if not facts.behind_server or (memory is not None and read_bytes > memory):
        return False
    room = "its memory" if memory is None else f"its memory of {units.format_size(memory)}"
    told = (
        "what it keeps there is told by the counters of the OSDs behind it"
        if facts.ceph is not None
        else "nothing is counted behind it, so that reads are DOUBTFUL (--conf, --server-memory)"
    )
    size = units.format_size(read_bytes)
    notes.append(f"measures caches: the server may have {size} in {room}; {told}")
    return True


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
    if not facts.host_caches:
        notes.append("direct true: what reaches the target has no cache on this host")
        return True
    cache = "the page cache of this host" if target.location is None else "the client's cache"
    notes.append(f"direct true: the target can, and it keeps {cache} out")
    return True
