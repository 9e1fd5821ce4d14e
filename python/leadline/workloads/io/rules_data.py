"""Contradictions among the finer options of a data job: sizes, places, pauses, syncs, content."""

from __future__ import annotations

from collections.abc import Iterator

from leadline import units
from leadline.study.kind.rule import BS_DEFAULT_BYTES, BS_MAX_BYTES, BS_MIN_BYTES, Problem
from leadline.study.kind.sizes import block_sizes
from leadline.workloads.io.distribution import MAP
from leadline.workloads.io.job import MIXED, READ_ONLY
from leadline.workloads.io.options import IoOptions

_VERIFIED_BYTES = 4096  # the engine's unit of verification
DIVIDED = ("segmented", "strided")  # a file of which each numjob has a part
_SHARES = ("buffer_compress_percentage", "dedupe_percentage")


def sizes_of(options: IoOptions) -> tuple[int, ...]:
    """Every size of an operation, ascending."""
    return block_sizes(options.bs, options.bssplit, BS_DEFAULT_BYTES)


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
