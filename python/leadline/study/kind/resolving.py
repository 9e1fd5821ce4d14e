"""What kinds of work have in common in resolving options: refusals, direct I/O, engines, rates, caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from leadline import units
from leadline.errors import SpecError
from leadline.study import schemes
from leadline.study.kind.interface import AnyJob, Surroundings
from leadline.study.schemes import EngineName
from leadline.study.target import Target, TargetFacts
from leadline.yamlio.fields import AUTO


def fail(work: str, target: Target, key: str, message: str, remedy: str) -> NoReturn:
    """Raise the SpecError of what this target, or this host, cannot do."""
    raise SpecError(message, remedy, source=f"workload {work} on target {target.name}", key=key)


def choose_direct(
    work: str,
    wanted: bool | str | None,
    places: tuple[int, ...],
    target: Target,
    facts: TargetFacts,
    notes: list[str],
    key: str = "bs",
) -> bool:
    """Whether operations of these sizes and places go past the caches; `notes` hear why.

    `key` is the option that gives the sizes.
    """
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
            fail(work, target, key, words, f"write {key}: {step}")
        return True
    return False if wanted is False else _where_possible(target, facts, aligned, notes, key)


def server_may_answer(facts: TargetFacts, read_bytes: int, notes: list[str]) -> bool:
    """True where a server's memory could hold all that is read; `notes` hear which, and who will tell."""
    memory = None if facts.server is None else facts.server.memory_bytes
    if not facts.behind_server or (memory is not None and read_bytes > memory):
        return False
    room = "its memory" if memory is None else f"its memory of {units.format_size(memory)}"
    told = (
        "the counters of the OSDs behind it show what it keeps there"
        if facts.ceph is not None
        else "nothing is counted behind it, so that reads are DOUBTFUL (--conf, --server-memory)"
    )
    size = units.format_size(read_bytes)
    notes.append(f"measures caches: the server may have {size} in {room}; {told}")
    return True


def _where_possible(target: Target, facts: TargetFacts, aligned: bool, notes: list[str], key: str) -> bool:
    if facts.in_memory:
        notes.append(f"direct false: {facts.file_system} is memory, there is no cache to go past")
        return False
    if not facts.direct_io:
        notes.append(f"direct false: {facts.file_system} has no direct I/O")
        return False
    if not aligned:
        notes.append(
            f"direct false: {key} is no multiple of {units.exact_size(facts.direct_alignment_bytes)}"
        )
        return False
    if not facts.host_caches:
        notes.append("direct true: what reaches the target has no cache on this host")
        return True
    cache = "the page cache of this host" if target.location is None else "the client's cache"
    notes.append(f"direct true: the target can, and it keeps {cache} out")
    return True


@dataclass(frozen=True)
class AskedEngine:
    """What a work asks of its engine: a name or `auto`, and how many operations it keeps in flight.

    `polled`: a thread of the kernel submits. `depth_key` and `many_key` are the options that give the number
    in flight, and how many there are of those who have so many.
    """

    wanted: str
    depth: int
    writes: bool
    polled: bool = False
    depth_key: str = "iodepth"
    many_key: str = "numjobs"


def choose_engine(
    work: str,
    asked: AskedEngine,
    direct: bool,
    target: Target,
    facts: TargetFacts,
    around: Surroundings,
    notes: list[str],
) -> EngineName:
    """The engine of this work on this target; `notes` hear why. Raises SpecError where it cannot be."""
    wanted, depth, own = asked.wanted, asked.depth, facts.own_engine
    if own is not None:
        if wanted not in (AUTO, own):
            place = "null:// has no storage" if not facts.has_storage else f"{facts.words}: there is no mount"
            fail(work, target, "engine", f"{place} for engine {wanted}", "write engine: auto")
        return own
    if wanted == schemes.storageless().name:
        words = "engine null does no I/O on a path"
        fail(work, target, "engine", words, "write engine: auto, or target null://")
    chosen, reason = _choose(asked, direct, facts) if wanted == AUTO else (wanted, "")
    if asked.polled and wanted == AUTO:
        chosen, reason = schemes.ring_engine(), "sqthread_poll needs it"
    if chosen in around.unavailable and wanted == AUTO and depth == 1 and not asked.polled:
        chosen, reason = schemes.plain_engine(), f"io_uring does not work here ({around.unavailable[chosen]})"
    if chosen in around.unavailable:
        remedy = (
            f"write {asked.depth_key}: 1, engine: psync and {asked.many_key}: {depth}"
            if depth > 1
            else "write engine: auto"
        )
        why = around.unavailable[chosen]
        fail(work, target, "engine", f"{chosen} does not work on this host: {why}", remedy)
    if reason:
        notes.append(f"engine {chosen}: {reason}")
    if chosen == schemes.ring_engine() and facts.in_memory:
        notes.append(
            "io_uring on a file system in memory: the kernel hands each operation to a worker thread"
        )
    elif chosen == schemes.ring_engine() and not direct and asked.writes:
        notes.append("buffered writes through io_uring: the kernel may hand them to worker threads")
    return chosen


def _choose(asked: AskedEngine, direct: bool, facts: TargetFacts) -> tuple[str, str]:
    ring, plain = schemes.ring_engine(), schemes.plain_engine()
    if asked.depth > 1:
        return ring, f"keeps {asked.depth} outstanding operations in each {asked.many_key.removesuffix('s')}"
    if facts.in_memory:
        return plain, "plain calls are quickest on a file system in memory"
    if facts.access == "ceph-fuse" or facts.file_system.startswith("fuse"):
        return plain, "one operation at a time through FUSE gains nothing from io_uring"
    if not direct:
        return plain, "one buffered operation at a time is quickest with plain calls"
    return ring, "direct I/O at the least cost per operation"


def capped_rate(
    work: str, key: str, asked: float | None, target: Target, around: Surroundings, notes: list[str]
) -> int | None:
    """Bytes per second that `limits.max_rate` leaves of what the option `key` asks for; None: no limit."""
    limit = around.max_rate_bytes_per_s
    if asked is not None:
        if limit is not None and asked > limit:
            words = f"{units.format_rate(asked)} is above limits.max_rate, {units.format_rate(limit)}"
            fail(work, target, key, words, "lower it, or raise limits.max_rate")
        return int(asked)
    if limit is not None:
        notes.append(f"rate {units.format_rate(limit)}: limits.max_rate")
    return limit


def measures_caches(job: AnyJob, facts: TargetFacts, around: Surroundings, notes: list[str]) -> bool:
    """True where a cache may serve the job; `notes` hear which."""
    if not facts.has_storage:
        return False
    if facts.in_memory:
        notes.append(f"measures memory: {facts.file_system} keeps its files there")
        return False
    if job.reads and server_may_answer(facts, job.data_set_bytes, notes):
        return True
    if not facts.host_caches or job.direct or job.data_set_bytes >= around.memory_bytes:
        return False
    what = "reads can come from the page cache" if job.reads else "writes go to the page cache first"
    sizes = f"{units.format_size(job.data_set_bytes)} is less than memory"
    notes.append(f"measures caches: buffered and {sizes}, so {what}")
    return True


def refuse_sync(work: str, key: str, target: Target, facts: TargetFacts) -> None:
    """Raise SpecError where the way to the target has no call that syncs a file, as the option `key` asks."""
    if not schemes.access(facts.access).syncs:
        words = f"{facts.access} has no call that syncs a file"
        fail(work, target, key, words, "leave it out, or mount the share and give the path")
