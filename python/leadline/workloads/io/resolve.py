"""From the options of a work and the facts of a target to a job with nothing left open.

Each choice that the user left to leadline comes with its reason, in words. What fio cannot do as planned is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline import _core, units
from leadline.study import schemes
from leadline.study.kind.interface import BS_DEFAULT_BYTES, Problem, Resolved, Surroundings
from leadline.study.kind.lookups import FioLook
from leadline.study.kind.options import as_split, block_sizes, common_step
from leadline.study.kind.resolving import (
    AskedEngine,
    capped_rate,
    choose_direct,
    choose_engine,
    fail,
    measures_caches,
    refuse_sync,
)
from leadline.study.schemes import EngineName
from leadline.study.target import Target, TargetFacts
from leadline.workloads.io.job import FIO, MAP, MIXED, READ_ONLY, IoOptions, Job
from leadline.yamlio.fields import AUTO, OTHER

_OURS = "or write generator: leadline"
# Option, what it would need of fio, and which values of it ask for nothing.
_REFUSED: tuple[tuple[str, str, tuple[object, ...]], ...] = (
    ("verify", "leadline's ledger tells what was written, and fio keeps none", (None, False)),
    ("rate", "fio does not count how late an operation is against its schedule", (None,)),
    ("rate_iops", "fio does not count how late an operation is against its schedule", (None,)),
)


def fio_rules(options: IoOptions) -> Iterator[Problem]:
    """Options that mean something else in fio, or nothing."""
    if options.generator != FIO:
        return
    for key, why, nothing in _REFUSED:
        if getattr(options, key) not in nothing:
            yield Problem(key, f"cannot be done by generator: fio: {why}", f"leave it out, {_OURS}")
    if options.shared == "whole" and (options.nrfiles or 1) > 1:
        yield Problem("nrfiles", "with shared: whole is one for generator: fio", f"write nrfiles: 1, {_OURS}")
    if options.shared == "strided":
        yield Problem("shared", "strided cannot be done by generator: fio", f"write segmented, {_OURS}")
    if (options.offset or options.offset_increment) and (options.nrfiles or 1) > 1:
        yield Problem(
            "offset", "with several files fio means another place by it", f"write nrfiles: 1, {_OURS}"
        )


def check_fio(work: str, target: Target, job: Job, around: Surroundings) -> tuple[str, ...]:
    """What the plan notes of fio, where it is asked for. Raises SpecError where it cannot be used."""
    if job.generator != FIO:
        return ()
    if not target.is_path:
        fail(work, target, "generator", "fio makes its load in files of a directory", _OURS)
    if job.rate_bytes_per_s is not None:
        fail(work, target, "generator", "fio cannot keep to limits.max_rate as it is counted here", _OURS)
    look = around.lookup(FioLook)
    version, why = look.find(FIO) if look is not None else (None, "")
    if version is None and look is not None:
        fail(work, target, "generator", f"fio cannot be started: {why}", f"install it, {_OURS}")
    return (
        f"generator fio: {version or 'the fio of each host'} makes the load; its ramp is a job of its own",
    )


RWMIXREAD_DEFAULT = 50  # fio's default
_BATCHES_IN_FLIGHT = 4


def sizes_of(options: IoOptions) -> tuple[int, ...]:
    """Every size of an operation, ascending."""
    return block_sizes(options.bs, options.bssplit, BS_DEFAULT_BYTES)


def resolve_io(
    work: str, options: IoOptions, target: Target, facts: TargetFacts, around: Surroundings
) -> Resolved:
    """The job of one work on one target. Raises SpecError for what this target cannot do."""
    if options.rw is None:
        fail(work, target, "rw", "the workload has no rw", "add rw")
    if options.verify and not facts.has_storage:
        fail(work, target, "verify", "null:// keeps nothing that could be verified", "leave it out")
    notes: list[str] = []
    sizes = sizes_of(options)
    block_bytes = sizes[0]
    size_bytes = _size(work, options, target, around, notes)
    options, size_bytes = _threads_for_depth(options, size_bytes, facts, around, notes)
    numjobs, nrfiles, depth = options.numjobs or 1, options.nrfiles or 1, options.iodepth or 1
    direct = _direct(work, options, target, facts, sizes, notes)
    writes = options.rw not in READ_ONLY and not (options.rw in MIXED and options.rwmixread == 100)
    end_fsync = _end_fsync(options, facts, notes, cached_writes=writes and not direct)
    asked = AskedEngine(options.engine or AUTO, depth, writes, polled=bool(options.sqthread_poll))
    engine = choose_engine(work, asked, direct, target, facts, around, notes)
    _check_sync(work, options, target, facts)
    job = Job(
        rw=options.rw,
        rwmixread=read_share(options),
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
        io_size=options.io_size or 0,
        percentage_random=100 if options.percentage_random is None else options.percentage_random,
        generator=options.generator or "leadline",
        invalidate=bool(options.invalidate),
        one_map=bool(options.one_map),
        sqthread_poll=_sqthread_poll(options, engine, notes),
        iodepth_batch=_iodepth_batch(options, depth),
    )
    _tell_read_again(job, notes)
    rate = _rate(work, options, target, job.mean_bs, around, notes)
    job = job.model_copy(update={"rate_bytes_per_s": rate})
    notes += check_fio(work, target, job, around)
    _check_memory(work, target, job, around)
    _check_offset(work, target, job)
    if writes:
        _check_objects(work, target, sizes)
    return Resolved(job, measures_caches(job, facts, around, notes), tuple(notes))


def _threads_for_depth(
    options: IoOptions, size_bytes: int, facts: TargetFacts, around: Surroundings, notes: list[str]
) -> tuple[IoOptions, int]:
    """Threads of one request each, where no engine of this host keeps several outstanding.

    As many requests are outstanding as was asked for, and the data set is as large: each thread has files of
    its own, a part of the size. Options that mean something else with more jobs are left as they are, and
    `choose_engine` refuses them with the remedy.
    """
    depth, ring = options.iodepth or 1, schemes.ring_engine()
    chosen = options.engine not in (None, AUTO) or facts.own_engine is not None or options.sqthread_poll
    told = any((options.shared, options.rate, options.rate_iops, options.offset, options.offset_increment))
    if depth == 1 or ring not in around.unavailable or chosen or told:
        return options, size_bytes
    step_bytes = common_step(sizes_of(options), options.nrfiles or 1)
    part_bytes = size_bytes // depth // step_bytes * step_bytes
    if part_bytes == 0:
        return options, size_bytes
    jobs = (options.numjobs or 1) * depth
    notes.append(
        f"numjobs {jobs}, iodepth 1: {ring} does not work here, so {depth} threads with one request each"
        f" stand for iodepth {depth}; each has files of {units.exact_size(part_bytes)}"
    )
    return options.model_copy(update={"iodepth": 1, "numjobs": jobs}), part_bytes


def _end_fsync(options: IoOptions, facts: TargetFacts, notes: list[str], *, cached_writes: bool) -> bool:
    if options.end_fsync is not None:
        return options.end_fsync
    wanted = cached_writes and not facts.in_memory and facts.has_storage and _syncs(facts)
    if wanted:
        notes.append("end_fsync true: buffered writes are not done before they are on storage")
    return wanted


def _tell_read_again(job: Job, notes: list[str]) -> None:
    if job.shared == "whole" and job.numjobs > 1 and job.rw in ("read", "rw"):
        notes.append(
            f"shared whole: each of {job.numjobs} numjobs reads the same bytes in the same order, so that"
            " caches answer all but the first"
        )


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
    if asked is not None:
        refuse_sync(work, asked, target, facts)


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


def read_share(options: IoOptions) -> int:
    """Percent of its operations."""
    if options.rw in MIXED:
        return RWMIXREAD_DEFAULT if options.rwmixread is None else options.rwmixread
    return 100 if options.rw in READ_ONLY else 0


def _size(work: str, options: IoOptions, target: Target, around: Surroundings, notes: list[str]) -> int:
    if isinstance(options.size, int):
        return options.size
    numjobs = 1 if options.shared == "whole" else options.numjobs or 1
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


def _iodepth_batch(options: IoOptions, depth: int) -> int:
    """Whole batches make a device's queue run empty while the next one is made; a quarter costs no more CPU
    time for each operation, and the device stays busy. fio itself hands over one by one unless told."""
    by_default = 1 if options.generator == "fio" else max(1, depth // _BATCHES_IN_FLIGHT)
    return min(options.iodepth_batch or by_default, depth)


def _sqthread_poll(options: IoOptions, engine: EngineName, notes: list[str]) -> bool:
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
    if around.max_rate_bytes_per_s is not None and options.thinktime:
        words = "pauses cannot be held under limits.max_rate, which sets the pace"
        fail(work, target, "thinktime", words, "leave one of them out")
    if options.rate_iops is None:
        return capped_rate(work, "rate", options.rate, target, around, notes)
    capped_rate(work, "rate_iops", options.rate_iops * mean_bytes, target, around, notes)
    return None


def _check_memory(work: str, target: Target, job: Job, around: Surroundings) -> None:
    buffers_bytes = job.largest_bs * job.iodepth * job.numjobs
    if buffers_bytes > around.memory_bytes // 2:
        words = f"bs x iodepth x numjobs needs {units.format_size(buffers_bytes)} of buffers"
        memory = units.format_size(around.memory_bytes)
        fail(work, target, "iodepth", f"{words}, more than half of memory ({memory})", "lower one of them")
