"""The planner of metadata operations: what a target can do by name, defaults, phases that cannot follow."""

from __future__ import annotations

from collections.abc import Iterator

from leadline import units
from leadline.errors import SpecError
from leadline.study.kind.interface import (
    BS_DEFAULT_BYTES,
    NOMINAL_OPERATIONS_PER_S,
    Layout,
    Planned,
    Problem,
    Resolved,
    Surroundings,
    WorkBytes,
    files_layout,
)
from leadline.study.kind.resolving import choose_direct, fail, server_may_answer
from leadline.study.schemes import Scheme, scheme_of
from leadline.study.target import Target, TargetFacts
from leadline.workloads.metadata.job import (
    DIRECTORIES_MAX,
    FIRST_BYTE,
    NEEDS_FILES,
    MetadataJob,
    MetadataOptions,
    tree_directories,
)

_TREE = ("branch", "depth", "private")
_FILE_MAX_BYTES = units.GIB
_LAID_OUT_FILES_MAX = 1 << 20  # the engine's limit of files of one job


def metadata_rules(options: MetadataOptions) -> Iterator[Problem]:
    """All that can be wrong with a work that has operations."""
    yield from _times(options)
    yield from _phases(options)
    if FIRST_BYTE in (options.operations or ()):
        yield from _first_byte(options)
    else:
        yield from _tree(options)


def _times(options: MetadataOptions) -> Iterator[Problem]:
    if options.time_based and not options.runtime:
        yield Problem("time_based", "needs a runtime above 0", "add runtime, for example runtime: 30s")
    if options.runtime and not options.time_based:
        yield Problem(
            "runtime",
            "operations end when each file was met once",
            "add time_based: true for whole passes until runtime is over, or leave it out",
        )


def _phases(options: MetadataOptions) -> Iterator[Problem]:
    """Follows what exists from phase to phase; what was never said to be made is made beforehand."""
    names = options.operations or []
    if not names:
        yield Problem("operations", "names no operation", "write for example [create, stat, unlink]")
    exists: dict[str, bool] = {}
    for place, name in enumerate(names):
        if name in names[:place]:
            yield Problem("operations", f"{name} is given twice", "keep one; phases have one place each")
        kind = "directories" if name in ("mkdir", "rmdir") else "files"
        if name in ("create", "mkdir"):
            if exists.get(kind):
                yield Problem(
                    "operations",
                    f"{name} comes when the {kind} are there already",
                    f"put {name} before what needs them",
                )
            exists[kind] = True
        elif name in (*NEEDS_FILES, "rmdir"):
            if exists.get(kind) is False:
                gone = "rmdir" if kind == "directories" else "unlink"
                yield Problem("operations", f"{name} comes after {gone}", f"put {gone} last")
            exists[kind] = name not in ("unlink", "rmdir")


def _first_byte(options: MetadataOptions) -> Iterator[Problem]:
    if len(options.operations or ()) > 1:
        yield Problem(
            "operations",
            "first_byte reads cold prefilled files, so it must be alone",
            "make it a separate workload",
        )
    for key in _TREE:
        if getattr(options, key) is not None:
            yield Problem(key, "means nothing with first_byte, whose files lie side by side", "leave it out")
    file_size = options.file_size or 0
    bs = BS_DEFAULT_BYTES if options.bs is None else options.bs
    if file_size == 0:
        yield Problem("file_size", "first_byte needs files with data", "add file_size, for example 64k")
    elif isinstance(bs, tuple) or not 1 <= bs <= file_size:
        yield Problem("bs", "first_byte reads one block of at most file_size", "write a smaller bs")
    if (options.files or 1) * (options.numjobs or 1) > _LAID_OUT_FILES_MAX:
        yield Problem("files", f"more than {_LAID_OUT_FILES_MAX:,} files in all are prefilled", "write fewer")
    if file_size > _FILE_MAX_BYTES:
        yield Problem("file_size", f"{units.exact_size(file_size)} is above 1g", "write at most 1g")


def _tree(options: MetadataOptions) -> Iterator[Problem]:
    if options.bs is not None:
        yield Problem("bs", "means nothing but with first_byte", "leave it out; file_size is what is written")
    if options.direct is not None:
        yield Problem("direct", "means nothing but with first_byte, which reads data", "leave it out")
    if options.branch is not None and not options.depth:
        yield Problem("branch", "means nothing without depth", "add depth, for example depth: 2")
    branch, depth = options.branch or 1, options.depth or 0
    if tree_directories(branch, depth) > DIRECTORIES_MAX:
        yield Problem(
            "depth",
            f"branch {branch} and depth {depth} make more than {DIRECTORIES_MAX:,} directories",
            "lower one of them",
        )
    if (options.file_size or 0) > _FILE_MAX_BYTES:
        yield Problem(
            "file_size", f"{units.exact_size(options.file_size or 0)} is above 1g", "write at most 1g"
        )


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


class MetadataPlanned(Planned[MetadataOptions, MetadataJob]):
    """Operations in phases, on trees of files."""

    kind = "metadata"
    job = MetadataJob
    told_by = "operations"
    options = MetadataOptions
    example = "operations: [create, stat, unlink]"
    foreign = "is of jobs that move data, and means nothing with"
    no_rate = "operations"
    plain_levels = ("file_size",)
    byte_fields = ("bs", "file_size")

    def problems(self, options: MetadataOptions, foreign: Iterator[Problem]) -> Iterator[Problem]:
        """See the base."""
        yield from foreign
        yield from metadata_rules(options)

    def resolve(
        self, work: str, options: MetadataOptions, target: Target, facts: TargetFacts, around: Surroundings
    ) -> Resolved:
        """See the base."""
        del around
        return resolve_metadata(work, options, target, facts)

    def work_bytes(self, options: MetadataOptions) -> WorkBytes:
        """None: what it asks of is the metadata servers."""
        del options
        raise SpecError(
            "its operations are of metadata, and how many of them a client needs is not in it",
            "write them: metadata: {create: 5, stat: 40}, operations a second of each client",
        )

    def layout(self, job: MetadataJob) -> Layout | None:
        """The files that `first_byte` reads; everything else makes its own."""
        return None if job.fresh_files else files_layout(job.numjobs, job.files, job.file_size)

    def untimed_seconds(self, job: MetadataJob) -> float:
        """One pass over all phases."""
        return job.pass_operations / NOMINAL_OPERATIONS_PER_S
