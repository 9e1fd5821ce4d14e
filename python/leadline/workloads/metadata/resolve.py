"""From the options of a work of metadata operations to a job: what a target can do by name, and defaults."""

from __future__ import annotations

from leadline.study.kind.face import Resolved
from leadline.study.kind.resolving import choose_direct, fail, server_may_answer
from leadline.study.kind.rule import BS_DEFAULT_BYTES
from leadline.study.schemes import Scheme, scheme_of
from leadline.study.target import Target, TargetFacts
from leadline.workloads.metadata.job import FIRST_BYTE, NEEDS_FILES, MetadataJob
from leadline.workloads.metadata.options import MetadataOptions

FILES_DEFAULT = 1000


def resolve_metadata(work: str, options: MetadataOptions, target: Target, facts: TargetFacts) -> Resolved:
    """The job of one work on one target. Raises SpecError for what this target cannot do."""
    if not facts.has_storage:
        fail(work, target, "operations", "null:// has no files", "leave this target out")
    scheme = scheme_of(target.url)
    if scheme is not None:
        _check_operations(work, options, target, scheme)
    notes: list[str] = []
    bs = options.bs if isinstance(options.bs, int) else BS_DEFAULT_BYTES
    direct = False
    if facts.in_memory:
        notes.append(f"measures memory: {facts.file_system} keeps its files there")
    if FIRST_BYTE in (options.operations or ()):
        direct = choose_direct(work, options.direct, (bs,), target, facts, notes)
        notes.append(
            "first_byte: pages of the files are dropped before each trial; names and attributes only with"
            " --drop-caches"
            if scheme is None
            else "first_byte: each trial is a new client, whose caches are empty"
        )
    elif not options.time_based:
        notes.append("operations end when each file was met once; time_based and a runtime repeat them")
    job = MetadataJob(
        operations=tuple(options.operations or ()),
        files=options.files or FILES_DEFAULT,
        branch=options.branch or 1,
        depth=options.depth or 0,
        private=options.private is not False,
        file_size=options.file_size or 0,
        bs=bs,
        direct=direct,
        numjobs=options.numjobs or 1,
        time_based=bool(options.time_based),
        runtime_ns=options.runtime or 0,
    )
    cached = FIRST_BYTE in job.operations and server_may_answer(facts, job.data_set_bytes, notes)
    return Resolved(job, cached, tuple(notes))


def _check_operations(work: str, options: MetadataOptions, target: Target, scheme: Scheme) -> None:
    """What a trial makes beforehand and removes afterwards must be there too."""
    asked = options.operations or []
    needed: list[str] = list(asked)
    for making, removing, others in (("create", "unlink", NEEDS_FILES), ("mkdir", "rmdir", ())):
        if {making, removing, *others} & set(asked):
            needed += [making, removing]
    has = scheme.operations
    lacking = next((name for name in needed if name not in has), None)
    if lacking is None:
        return
    names = f"it has {', '.join(has)}" if has else "it has no metadata operations"
    remedy = "leave it out, or leave this target out"
    fail(work, target, "operations", f"{scheme.name}:// has no {lacking}; {names}", remedy)
