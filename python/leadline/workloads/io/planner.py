"""The planner of I/O: which options of a job contradict each other, and what a job is taken to cost.

Nothing is adjusted silently. Each rule yields the first problem that it finds in the merged options of one
work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from leadline import units
from leadline.errors import SpecError
from leadline.study import schemes
from leadline.study.kind.interface import (
    BS_MAX_BYTES,
    BS_MIN_BYTES,
    NOMINAL_BYTES_PER_S,
    NOMINAL_OPERATIONS_PER_S,
    Layout,
    Planned,
    Problem,
    Resolved,
    Surroundings,
    WorkBytes,
    files_layout,
    size_words,
)
from leadline.study.kind.options import SizeSplit, as_split, common_step
from leadline.study.schemes import uses_storage
from leadline.study.target import Target, TargetFacts
from leadline.workloads.io.job import MAP, MIXED, READ_ONLY, IoOptions, Job
from leadline.workloads.io.resolve import fio_rules, read_share, resolve_io, sizes_of
from leadline.yamlio.fields import AUTO

_VERIFIED_BYTES = 4096  # the engine's unit of verification
DIVIDED = ("segmented", "strided")  # a file of which each numjob has a part
_SHARES = ("buffer_compress_percentage", "dedupe_percentage")


def block_rules(options: IoOptions) -> Iterator[Problem]:
    """Sizes of operations."""
    key = "bs" if options.bssplit is None else "bssplit"
    if options.bs is not None and options.bssplit is not None:
        yield Problem("bssplit", "bs says the size already", "leave one of the two out")
    sizes = sizes_of(options)
    for size in sizes:
        if not BS_MIN_BYTES <= size <= BS_MAX_BYTES or size % BS_MIN_BYTES:
            yield Problem(
                key,
                f"{units.exact_size(size)} is not a block size: multiples of 512 up to 1g are",
                "write for example 4k, 64k or 1m",
            )
        elif size % sizes[0]:
            small = units.exact_size(sizes[0])
            yield Problem(
                key,
                f"{units.exact_size(size)} is no multiple of {small}, the smallest",
                "write sizes that are multiples of the smallest, for example 4k and 64k",
            )
    one_way = options.rw not in (*MIXED, None)
    parts = options.bssplit
    if one_way and (isinstance(options.bs, tuple) or (parts is not None and parts.read != parts.write)):
        other = "randrw" if str(options.rw).startswith("rand") else "rw"
        yield Problem(
            key,
            f"gives reads and writes their own sizes, and rw: {options.rw} has one direction",
            f"write one of the two, or rw: {other}",
        )


def sync_rules(options: IoOptions) -> Iterator[Problem]:
    """fdatasync."""
    if options.fdatasync and options.rw in READ_ONLY:
        yield Problem(
            "fdatasync", f"means nothing with rw: {options.rw}, which writes nothing", "leave it out"
        )
    if options.fdatasync and options.fsync:
        yield Problem("fdatasync", "fsync does the same and more", "keep one of them")


def pause_rules(options: IoOptions) -> Iterator[Problem]:
    """thinktime."""
    if options.thinktime and (options.rate is not None or options.rate_iops is not None):
        yield Problem("thinktime", "a rate sets the pace already", "keep one of them")
    if options.thinktime_blocks is not None and not options.thinktime:
        yield Problem("thinktime_blocks", "means nothing without thinktime", "add it, or leave this out")


def place_rules(options: IoOptions) -> Iterator[Problem]:
    """offset, offset_increment and shared."""
    step_bytes = sizes_of(options)[0]
    numjobs = options.numjobs or 1
    for key in ("offset", "offset_increment"):
        value = getattr(options, key) or 0
        if value and options.shared in DIVIDED:
            yield Problem(
                key, f"shared: {options.shared} says already where each numjob works", "keep one of them"
            )
        if value % max(step_bytes, 1):
            yield Problem(
                key,
                f"{units.exact_size(value)} is no multiple of the block size, {units.exact_size(step_bytes)}",
                f"write {units.exact_size(value // step_bytes * step_bytes)} or more",
            )
    last = (options.offset or 0) + (options.offset_increment or 0) * (numjobs - 1)
    if last and isinstance(options.size, int):
        file_bytes = options.size // (options.nrfiles or 1)
        if last + sizes_of(options)[-1] > file_bytes:
            key = "offset" if options.offset and options.offset >= file_bytes else "offset_increment"
            key = key if getattr(options, key) else "offset"
            yield Problem(
                key,
                f"the last numjob would begin at {units.exact_size(last)} of files of "
                f"{units.exact_size(file_bytes)}, which leaves no block",
                "lower it, or raise size: offset is within the file",
            )
    if options.shared in DIVIDED:
        yield from _shared(options)


def _shared(options: IoOptions) -> Iterator[Problem]:
    if (options.nrfiles or 1) > 1:
        yield Problem("nrfiles", f"shared: {options.shared} is one file for all numjobs", "leave it out")
    if options.shared == "strided" and len(sizes_of(options)) > 1:
        key = "bs" if options.bssplit is None else "bssplit"
        yield Problem(key, "shared: strided needs blocks of one size", "write one size, or shared: segmented")


def distribution_rules(options: IoOptions) -> Iterator[Problem]:
    """random_distribution."""
    chosen = options.random_distribution
    if chosen is not None and options.rw is not None and not options.rw.startswith("rand"):
        yield Problem(
            "random_distribution",
            f"means nothing with rw: {options.rw}, which is sequential",
            "leave it out, or write rw: randread, randwrite or randrw",
        )


def amount_rules(options: IoOptions) -> Iterator[Problem]:
    """io_size, one_map and percentage_random."""
    if options.io_size is not None and options.time_based:
        yield Problem("io_size", "a time_based job ends by the clock, not by its bytes", "keep one of them")
    step_bytes = sizes_of(options)[0]
    if options.io_size is not None and options.io_size < step_bytes:
        words = f"{units.exact_size(options.io_size)} is less than a block of {units.exact_size(step_bytes)}"
        yield Problem("io_size", words, "raise it, or lower bs")
    mapped = options.random_distribution in (None, MAP) and options.percentage_random in (None, 100)
    at_random = (options.rw or "").startswith("rand")
    if options.one_map and not (mapped and at_random and len(sizes_of(options)) > 1):
        words = "is of random operations of several sizes, without repeats"
        remedy = "leave it out, or write bssplit and rw: randread, randwrite or randrw"
        yield Problem("one_map", words, remedy)
    one_after_another = options.rw is not None and not options.rw.startswith("rand")
    if options.percentage_random is not None and one_after_another:
        yield Problem(
            "percentage_random",
            f"means nothing with rw: {options.rw}, which is sequential",
            "leave it out, or write rw: randread, randwrite or randrw",
        )


def content_rules(options: IoOptions) -> Iterator[Problem]:
    """What the data is like, and whether it can be verified."""
    for key in _SHARES:
        if getattr(options, key) and options.incompressible is not None:
            yield Problem(
                key, "incompressible says already what the data is like", "leave incompressible out"
            )
    if not options.verify:
        return
    if sizes_of(options)[0] % _VERIFIED_BYTES:
        yield Problem("verify", "blocks are verified in units of 4k", "write a bs that is a multiple of 4k")
    if options.dedupe_percentage == 100:
        yield Problem(
            "verify",
            "with dedupe_percentage: 100 all writings are alike, so that a lost one is not seen",
            "leave it out, or write a smaller share",
        )
    if options.shared == "whole" and (options.numjobs or 1) > 1 and options.rw not in READ_ONLY:
        yield Problem(
            "verify",
            "with shared: whole several numjobs write the same blocks, and nobody knows which came last",
            "leave it out, or write numjobs: 1",
        )
    if options.rw == "rw":
        yield Problem("verify", "with rw: rw a block can be read while it is written", "write rw: randrw")
    repeats = (
        len(sizes_of(options)) > 1
        or options.random_distribution not in (None, MAP)
        or options.percentage_random not in (None, 100)
    )
    if options.rw == "randrw" and repeats:
        yield Problem(
            "verify",
            "with several sizes, or blocks that repeat, one can be read while it is written",
            "leave it out, or write one size and random_distribution: map",
        )


def io_problems(options: IoOptions, foreign: Iterator[Problem]) -> Iterator[Problem]:
    """All that can be wrong with a job that moves data; `foreign` are options of other kinds of work."""
    for rule in _RULES:
        yield from rule(options)
    yield from foreign
    for rule in _FINER_RULES:
        yield from rule(options)


def _pattern(options: IoOptions) -> Iterator[Problem]:
    if options.rw is not None and options.rwmixread is not None and options.rw not in MIXED:
        other = "randrw" if options.rw.startswith("rand") else "rw"
        yield Problem(
            "rwmixread", f"means nothing with rw: {options.rw}", f"leave it out, or write rw: {other}"
        )


def _writes(options: IoOptions) -> Iterator[Problem]:
    if options.rw in READ_ONLY:
        for key in ("fsync", "end_fsync", "overwrite"):
            if getattr(options, key):
                yield Problem(
                    key, f"means nothing with rw: {options.rw}, which writes nothing", "leave it out"
                )
    elif options.rw not in ("write", None) and options.overwrite is False:
        yield Problem(
            "overwrite",
            f"rw: {options.rw} always uses prefilled files",
            "leave it out, or write rw: write",
        )


def _time(options: IoOptions) -> Iterator[Problem]:
    if options.time_based and not options.runtime:
        yield Problem("time_based", "needs a runtime above 0", "add runtime, for example runtime: 30s")
    if options.ramp_time and not options.time_based:
        yield Problem(
            "ramp_time",
            "needs time_based: true; a job that ends with its size may be over before it is measured",
            "add time_based: true and a runtime, or leave ramp_time out",
        )


def _rate(options: IoOptions) -> Iterator[Problem]:
    if options.rate is not None and options.rate_iops is not None:
        yield Problem("rate_iops", "rate and rate_iops both set the pace", "keep one of them")
    if options.arrival is not None and options.rate is None and options.rate_iops is None:
        yield Problem(
            "arrival", "means nothing without rate or rate_iops", "add one of them, or leave it out"
        )


def _engine(options: IoOptions) -> Iterator[Problem]:
    depth = options.iodepth or 1
    chosen = None if options.engine in (None, AUTO) else schemes.engine(options.engine)
    if chosen is not None and chosen.blocking and depth > 1:
        yield Problem(
            "iodepth",
            f"engine {options.engine} does one operation at a time, so iodepth {depth} cannot be kept",
            f"write engine: io_uring, or iodepth: 1 with numjobs: {depth}",
        )
    if options.sqthread_poll and chosen is not None and not chosen.submission_thread:
        yield Problem(
            "sqthread_poll",
            f"engine {options.engine} has no submission thread",
            "write engine: io_uring, or leave it out",
        )
    if chosen is not None and not chosen.direct and options.direct is True:
        yield Problem(
            "direct",
            f"engine {chosen.name} works through the page cache",
            "write direct: false or engine: psync",
        )


def _sizes(options: IoOptions) -> Iterator[Problem]:
    if not isinstance(options.size, int):
        return
    sizes = sizes_of(options)
    block_bytes = sizes[-1]
    per_file = options.nrfiles or 1
    step_bytes = common_step(sizes, per_file)
    if options.size < step_bytes:
        of_files = "" if per_file == 1 else f" in each of {per_file} files"
        block = units.exact_size(block_bytes)
        yield Problem(
            "size",
            f"{units.exact_size(options.size)} does not hold one block of {block}{of_files}",
            f"write a size of at least {units.exact_size(step_bytes)}",
        )
    elif options.size % step_bytes:
        below = options.size // step_bytes * step_bytes
        what = "bs" if len(sizes) == 1 else "all sizes"
        what += "" if per_file == 1 else " times nrfiles"
        yield Problem(
            "size",
            f"{units.exact_size(options.size)} is not a multiple of {what}, {units.exact_size(step_bytes)}",
            f"write {units.exact_size(below)} or {units.exact_size(below + step_bytes)}",
        )


_RULES: tuple[Callable[[IoOptions], Iterator[Problem]], ...] = (_pattern, _writes, _time, _rate, _engine)
_FINER_RULES: tuple[Callable[[IoOptions], Iterator[Problem]], ...] = (
    block_rules,
    _sizes,
    sync_rules,
    pause_rules,
    place_rules,
    distribution_rules,
    amount_rules,
    content_rules,
    fio_rules,
)


class IoPlanned(Planned[IoOptions, Job]):
    """One job that moves data."""

    kind = "io"
    job = Job
    told_by = "rw"
    options = IoOptions
    example = "rw: read, write, randread, randwrite, rw or randrw"
    rates = ("bandwidth", "iops")
    paces = ("rate", "rate_iops")
    plain_levels = ("bs", "size", "io_size", "rate", "offset", "offset_increment", "rw", "engine", "direct")
    byte_fields = ("bs", "size", "io_size", "rate_bytes_per_s", "offset", "offset_increment")

    def needs_leadline(self, options: IoOptions) -> str:
        """See the base; fio's output is read there."""
        return "" if options.generator in (None, "leadline") else f"generator: {options.generator}"

    def problems(self, options: IoOptions, foreign: Iterator[Problem]) -> Iterator[Problem]:
        """See the base."""
        return io_problems(options, foreign)

    def resolve(
        self, work: str, options: IoOptions, target: Target, facts: TargetFacts, around: Surroundings
    ) -> Resolved:
        """See the base."""
        return resolve_io(work, options, target, facts, around)

    def work_bytes(self, options: IoOptions) -> WorkBytes:
        """See the base. A share of operations is none of bytes where reads and writes differ in size."""
        sizes, share = sizes_of(options), read_share(options) / 100
        split = as_split(options.bs, options.bssplit) or SizeSplit(
            read=((sizes[0], 100),), write=((sizes[0], 100),)
        )
        mean = split.mean_bytes(share)
        each = options.io_size or options.size
        known = isinstance(each, int) and not options.time_based
        pace = options.rate if options.rate_iops is None else options.rate_iops * mean
        return WorkBytes(
            split.mean_bytes(1) * share / mean,
            float(each) * (options.numjobs or 1) if known and each is not None else None,
            None if pace is None else float(pace),
            f"{options.rw} of {size_words(sizes)}",
            (options.iodepth or 1) * (options.numjobs or 1),
        )

    def check_search(self, job: Job, rate: float, source: str, around: Surroundings) -> None:
        """See the base."""
        limit = around.max_rate_bytes_per_s
        if limit is not None and rate * job.bs > limit:
            raise SpecError(
                f"{rate:g} operations of {units.exact_size(job.bs)} a second are above limits.max_rate,"
                f" {units.format_rate(limit)}",
                "search lower rates, or raise limits.max_rate",
                source=source,
                key="search",
            )

    def check_steady(self, job: Job, source: str) -> None:
        """See the base."""
        if job.generator != "leadline":
            raise SpecError(
                f"cannot be done by generator: {job.generator}, whose record is made at its end",
                "leave it out, or write generator: leadline",
                source=source,
                key="steady_state",
            )

    def layout(self, job: Job) -> Layout | None:
        """Files in full, one for each of a numjob's or the one that all share."""
        if not uses_storage(job.engine) or job.fresh_files:
            return None
        file_bytes = job.size * job.parts // job.nrfiles
        return files_layout(
            job.owners, job.nrfiles, file_bytes, _content(job), incompressible=job.incompressible
        )

    def spread(self, job: Job, targets: Sequence[str]) -> Sequence[tuple[str, Job]]:
        """As it is; what is read back by another way needs one."""
        if job.read_back == "other" and len(targets) == 1:
            raise SpecError(
                "verify: other reads back through other targets, and there is this one alone",
                "add a target that is the same directory by another way, or write verify: true",
                source=f"target {targets[0]}",
                key="verify",
            )
        return super().spread(job, targets)

    def seconds(self, job: Job) -> float:
        """With the time in which what was written is read back."""
        looks = {"same": 1, "other": 2}[job.read_back] if job.verify and job.writes else 0
        return super().seconds(job) + looks * job.data_set_bytes / NOMINAL_BYTES_PER_S

    def untimed_seconds(self, job: Job) -> float:
        """By size, at the pace that was asked for, and no longer than its runtime."""
        speed = float(min(NOMINAL_BYTES_PER_S, NOMINAL_OPERATIONS_PER_S * job.mean_bs))
        if job.rate_bytes_per_s is not None:
            speed = min(speed, float(job.rate_bytes_per_s))
        if job.rate_iops is not None:
            speed = min(speed, job.rate_iops * job.mean_bs)
        by_size_s, limit_s = job.moved_bytes / speed, job.runtime_ns / units.NS_PER_S
        return min(by_size_s, limit_s) if limit_s else by_size_s

    def option_words(self, job: Job, name: str, value: Any) -> str | None:
        """Sizes with their shares in fio's notation."""
        del value
        return job.bssplit.as_text() if name == "bssplit" and job.bssplit is not None else None


def _content(job: Job) -> str:
    """What tells files apart: data that is not incompressible, and what only verified works write to."""
    verified = "-verified" if job.verify else ""
    if job.incompressible:
        return verified
    compressed, equal = job.buffer_compress_percentage, job.dedupe_percentage
    kind = f"-compressible{compressed or ''}" if compressed or not equal else ""
    return kind + (f"-dedupe{equal}x{units.exact_size(job.bs)}" if equal else "") + verified
