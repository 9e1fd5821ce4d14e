"""What of a job fio cannot do as planned, and what must be there for it: refused before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.study.kind.interface import Surroundings
from leadline.study.kind.lookups import FioLook
from leadline.study.kind.resolving import fail
from leadline.study.kind.rule import Problem
from leadline.study.target import Target
from leadline.workloads.io.job import FIO, Job
from leadline.workloads.io.options import IoOptions

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
