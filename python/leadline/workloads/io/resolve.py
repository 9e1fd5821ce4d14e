"""From the options of a work and the facts of a target to a job with nothing left open.

Each choice that the user left to leadline comes with its reason, in words.
"""

from __future__ import annotations

from leadline import _core, units
from leadline.study import schemes
from leadline.study.kind.face import Resolved, Surroundings
from leadline.study.kind.resolving import choose_direct, fail, server_may_answer
from leadline.study.kind.sizes import as_split, common_step
from leadline.study.target import Target, TargetFacts
from leadline.workloads.io.distribution import MAP
from leadline.workloads.io.job import MIXED, READ_ONLY, Engine, Job
from leadline.workloads.io.options import IoOptions
from leadline.workloads.io.rules_data import sizes_of
from leadline.written.fields import AUTO, OTHER

RWMIXREAD_DEFAULT = 50  # fio's default


def resolve_io(
    work: str, options: IoOptions, target: Target, facts: TargetFacts, around: Surroundings
) -> Resolved:
    """The job of one work on one target. Raises SpecError for what this target cannot do."""
    if options.rw is None:
        fail(work, target, "rw", "the work does not say what it does", "add rw")
    if options.verify and not facts.has_storage:
        fail(work, target, "verify", "null:// keeps nothing that could be verified", "leave it out")
    notes: list[str] = []
    sizes = sizes_of(options)
    block_bytes = sizes[0]
    numjobs, nrfiles, depth = options.numjobs or 1, options.nrfiles or 1, options.iodepth or 1
    size_bytes = _size(work, options, target, around, notes)
    direct = _direct(work, options, target, facts, sizes, notes)
    writes = options.rw not in READ_ONLY and not (options.rw in MIXED and options.rwmixread == 100)
    end_fsync = options.end_fsync
    if end_fsync is None:
        cached = not direct and not facts.in_memory and facts.has_storage and _syncs(facts)
        end_fsync = writes and cached
        if end_fsync:
            notes.append("end_fsync true: buffered writes are not done before they are on storage")
    engine = _engine(work, options, target, facts, direct, around, notes)
    _check_sync(work, options, target, facts)
    job = Job(
        rw=options.rw,
        rwmixread=_read_share(options),
        bs=block_bytes,
        size=size_bytes,
        nrfiles=nrfiles,
        numjobs=numjobs,
        iodepth=depth,
        engine=engine,
        direct=direct,
        overwrite=options.rw not in (*READ_ONLY, "write") or bool(options.overwrite),
        fsync=options.fsync or 0,
        end_fsync=end_fsync,
        time_based=bool(options.time_based),
        runtime_ns=options.runtime or 0,
        ramp_time_ns=options.ramp_time or 0,
        rate_bytes_per_s=None,
        rate_iops=options.rate_iops,
        arrival=options.arrival or "constant",
        verify=bool(options.verify),
        read_back="other" if options.verify == OTHER else "same",
        incompressible=options.incompressible is not False and not _shares(options),
        bssplit=as_split(options.bs, options.bssplit),
        fdatasync=options.fdatasync or 0,
        thinktime_ns=options.thinktime or 0,
        thinktime_blocks=options.thinktime_blocks or 1,
        offset=options.offset or 0,
        offset_increment=options.offset_increment or 0,
        random_distribution=options.random_distribution or MAP,
        buffer_compress_percentage=options.buffer_compress_percentage or 0,
        dedupe_percentage=options.dedupe_percentage or 0,
        shared=options.shared or "none",
        sqthread_poll=_sqthread_poll(options, engine, notes),
    )
    rate = _rate(work, options, target, job.mean_bs, around, notes)
    job = job.model_copy(update={"rate_bytes_per_s": rate})
    _check_memory(work, target, job, around)
    _check_offset(work, target, job)
    if writes:
        _check_objects(work, target, sizes)
    return Resolved(job, _measures_caches(job, facts, around, notes), tuple(notes))


def _check_objects(work: str, target: Target, sizes: tuple[int, ...]) -> None:
    """Objects that never change: what is written is one or more of them, whole."""
    scheme = schemes.scheme_of(target.url)
    if scheme is None or not scheme.whole_objects:
        return
    object_bytes = int(_core.parse_location(target.url)["object_bytes"])
    small = next((size for size in sizes if size % object_bytes), None)
    if small is not None:
        wanted = units.exact_size(small)
        fail(
            work,
            target,
            "bs",
            f"a write of {wanted} would change a part of an object of {units.exact_size(object_bytes)},"
            f" which {scheme.name.upper()} cannot",
            f"write object_size={wanted} in the target's URL, or a bs of its multiples",
        )


def _syncs(facts: TargetFacts) -> bool:
    return schemes.access(facts.access).syncs


def _check_sync(work: str, options: IoOptions, target: Target, facts: TargetFacts) -> None:
    asked = next((key for key in ("fsync", "fdatasync", "end_fsync") if getattr(options, key)), None)
    if asked is not None and not _syncs(facts):
        words = f"{facts.access} has no call that syncs a file"
        fail(work, target, asked, words, "leave it out, or mount the share and give the path")


def _shares(options: IoOptions) -> bool:
    return bool(options.buffer_compress_percentage or options.dedupe_percentage)


def _check_offset(work: str, target: Target, job: Job) -> None:
    """Where `size` is auto, only now it is known whether the offsets lie within the files."""
    last = job.offset + job.offset_increment * (job.numjobs - 1)
    file_bytes = job.size // job.nrfiles
    if last + job.largest_bs > file_bytes:
        key = "offset" if job.offset_increment == 0 else "offset_increment"
        words = (
            f"the last numjob would begin at {units.exact_size(last)} of files of "
            f"{units.exact_size(file_bytes)}, which leaves no block"
        )
        fail(work, target, key, words, "lower it, or raise size")


def _read_share(options: IoOptions) -> int:
    if options.rw in MIXED:
        return RWMIXREAD_DEFAULT if options.rwmixread is None else options.rwmixread
    return 100 if options.rw in READ_ONLY else 0


def _size(work: str, options: IoOptions, target: Target, around: Surroundings, notes: list[str]) -> int:
    if isinstance(options.size, int):
        return options.size
    numjobs = options.numjobs or 1
    step_bytes = common_step(sizes_of(options), options.nrfiles or 1)
    size_bytes = around.auto_bytes // numjobs // step_bytes * step_bytes
    if size_bytes == 0:
        fail(
            work,
            target,
            "size",
            f"auto is {units.format_size(around.auto_bytes)} here, which does not hold {numjobs} x "
            f"{units.format_size(step_bytes)}",
            "free space on the targets, or give a size, for example --set size=64M",
        )
    notes.append(
        f"size {units.exact_size(size_bytes)} per numjob: auto, a sixteenth of memory "
        f"({units.format_size(around.memory_bytes)}) from 256 MiB to 2 GiB, at most a tenth of free space"
    )
    return size_bytes


def _direct(
    work: str,
    options: IoOptions,
    target: Target,
    facts: TargetFacts,
    sizes: tuple[int, ...],
    notes: list[str],
) -> bool:
    chosen = None if options.engine in (None, AUTO) else schemes.engine(options.engine)
    undecided = options.direct not in (True, False)
    if chosen is not None and not chosen.direct and undecided and facts.has_storage:
        notes.append(f"direct false: engine {chosen.name} works through the page cache")
        return False
    places = (*sizes, options.offset or 0, options.offset_increment or 0)
    return choose_direct(work, options.direct, places, target, facts, notes)


def _engine(
    work: str,
    options: IoOptions,
    target: Target,
    facts: TargetFacts,
    direct: bool,
    around: Surroundings,
    notes: list[str],
) -> Engine:
    wanted, depth = options.engine or AUTO, options.iodepth or 1
    own = facts.own_engine
    if own is not None:
        if wanted not in (AUTO, own):
            place = "null:// has no storage" if not facts.has_storage else f"{facts.words}: there is no mount"
            fail(work, target, "engine", f"{place} for engine {wanted}", "write engine: auto")
        return own
    if wanted == schemes.storageless().name:
        fail(
            work,
            target,
            "engine",
            "engine null does no I/O on a path",
            "write engine: auto, or target null://",
        )
    chosen, reason = _choose(depth, direct, facts) if wanted == AUTO else (wanted, "")
    if options.sqthread_poll and wanted == AUTO:
        chosen, reason = schemes.ring_engine(), "sqthread_poll needs it"
    if chosen in around.unavailable and wanted == AUTO and depth == 1 and not options.sqthread_poll:
        chosen, reason = schemes.plain_engine(), f"io_uring does not work here ({around.unavailable[chosen]})"
    if chosen in around.unavailable:
        remedy = (
            f"write iodepth: 1, engine: psync and numjobs: {depth}" if depth > 1 else "write engine: auto"
        )
        why = around.unavailable[chosen]
        fail(work, target, "engine", f"{chosen} does not work on this host: {why}", remedy)
    if reason:
        notes.append(f"engine {chosen}: {reason}")
    if chosen == schemes.ring_engine() and facts.in_memory:
        notes.append(
            "io_uring on a file system in memory: the kernel hands each operation to a worker thread"
        )
    elif chosen == schemes.ring_engine() and not direct and options.rw not in READ_ONLY:
        notes.append("buffered writes through io_uring: the kernel may hand them to worker threads")
    return chosen


def _choose(depth: int, direct: bool, facts: TargetFacts) -> tuple[str, str]:
    ring, plain = schemes.ring_engine(), schemes.plain_engine()
    if depth > 1:
        return ring, f"keeps {depth} operations in flight in each numjob"
    if facts.in_memory:
        return plain, "plain calls are quickest on a file system in memory"
    if facts.access == "ceph-fuse" or facts.file_system.startswith("fuse"):
        return plain, "one operation at a time through FUSE gains nothing from io_uring"
    if not direct:
        return plain, "one buffered operation at a time is quickest with plain calls"
    return ring, "direct I/O at the least cost per operation"


def _sqthread_poll(options: IoOptions, engine: Engine, notes: list[str]) -> bool:
    if not options.sqthread_poll:
        return False
    if not schemes.engine(engine).submission_thread:
        notes.append(f"sqthread_poll false: engine {engine} has no submission thread")
        return False
    notes.append("sqthread_poll true: the kernel's thread keeps a processor of this host busy")
    return True


def _rate(
    work: str,
    options: IoOptions,
    target: Target,
    mean_bytes: float,
    around: Surroundings,
    notes: list[str],
) -> int | None:
    limit = around.max_rate_bytes_per_s
    asked = options.rate_iops * mean_bytes if options.rate_iops is not None else options.rate
    if limit is not None and options.thinktime:
        words = "pauses cannot be held under limits.max_rate, which sets the pace"
        fail(work, target, "thinktime", words, "leave one of them out")
    if limit is None or (asked is not None and asked <= limit):
        return options.rate
    if asked is not None:
        key = "rate" if options.rate is not None else "rate_iops"
        remedy = "lower it, or raise limits.max_rate"
        words = f"{units.format_rate(asked)} is above limits.max_rate, {units.format_rate(limit)}"
        fail(work, target, key, words, remedy)
    notes.append(f"rate {units.format_rate(limit)}: limits.max_rate")
    return limit


def _check_memory(work: str, target: Target, job: Job, around: Surroundings) -> None:
    buffers_bytes = job.largest_bs * job.iodepth * job.numjobs
    if buffers_bytes > around.memory_bytes // 2:
        words = f"bs x iodepth x numjobs needs {units.format_size(buffers_bytes)} of buffers"
        memory = units.format_size(around.memory_bytes)
        fail(work, target, "iodepth", f"{words}, more than half of memory ({memory})", "lower one of them")


def _measures_caches(job: Job, facts: TargetFacts, around: Surroundings, notes: list[str]) -> bool:
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
