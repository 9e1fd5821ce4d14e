"""Which options of a job contradict each other, and what to do about it. Nothing is adjusted silently.

Each rule looks at the merged options of one work and yields the first problem that it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from leadline import units
from leadline.study import schemes
from leadline.study.kind.rule import Problem
from leadline.study.kind.sizes import common_step
from leadline.workloads.io.fio.rules import fio_rules
from leadline.workloads.io.job import MIXED, READ_ONLY
from leadline.workloads.io.options import IoOptions
from leadline.workloads.io.rules_data import (
    amount_rules,
    block_rules,
    content_rules,
    distribution_rules,
    pause_rules,
    place_rules,
    sizes_of,
    sync_rules,
)
from leadline.written.fields import AUTO


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
            f"rw: {options.rw} always works on files that were laid out beforehand",
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
