"""The planner of transfers: from options and the facts of a target and a host to a job, and what contradicts.

Each choice comes with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from leadline import _core, units
from leadline.errors import SpecError, TargetError
from leadline.study import schemes
from leadline.study.kind.interface import (
    BS_MAX_BYTES,
    BS_MIN_BYTES,
    NOMINAL_BYTES_PER_S,
    Layout,
    Planned,
    Problem,
    Resolved,
    Surroundings,
    WorkBytes,
    files_layout,
    size_words,
)
from leadline.study.kind.lookups import HostRoom, SourceFile, SourceLook
from leadline.study.kind.resolving import (
    AskedEngine,
    capped_rate,
    choose_direct,
    choose_engine,
    fail,
    measures_caches,
    refuse_sync,
)
from leadline.study.schemes import uses_storage
from leadline.study.target import Target, TargetFacts
from leadline.workloads.transfer.job import TransferJob, TransferOptions
from leadline.yamlio.fields import AUTO

BUFFER_DEFAULT_BYTES = units.MIB
IN_FLIGHT_DEFAULT = 4
_BUFFER_UNIT_BYTES = 4_096
# What a copy between two servers leaves to them.
_OF_THIS_CLIENT = (
    *("buffer", "in_flight", "readers", "checksum", "end_sync", "input", "engine", "direct"),
    *("time_based", "ramp_time", "rate", "incompressible"),
)


def transfer_rules(options: TransferOptions) -> Iterator[Problem]:
    """All that can be wrong with a transfer."""
    for rule in _RULES:
        yield from rule(options)


def streams_of(options: TransferOptions) -> tuple[int, int]:
    """How many streams there are, and how many of them read."""
    streams = options.streams or 1
    if options.transfer == "duplex":
        return streams, options.readers or streams // 2
    return streams, streams if options.transfer == "read" else 0


def _times(options: TransferOptions) -> Iterator[Problem]:
    if options.time_based and not options.runtime:
        yield Problem("time_based", "needs a runtime above 0", "add runtime, for example runtime: 30s")
    if options.ramp_time and not options.time_based:
        yield Problem(
            "ramp_time",
            "needs time_based: true; a transfer that ends with its size may be over before it is measured",
            "add time_based: true and a runtime, or leave ramp_time out",
        )


def _readers(options: TransferOptions) -> Iterator[Problem]:
    streams = options.streams or 1
    if options.transfer != "duplex":
        if options.readers is not None:
            words = f"means nothing with transfer: {options.transfer}, where all streams do the same"
            yield Problem("readers", words, "leave it out, or write transfer: duplex")
    elif streams < 2:
        yield Problem("streams", "duplex needs one stream that reads and one that writes", "write 2, or more")
    elif (options.readers or 1) >= streams:
        words = f"{options.readers} of {streams} streams read, so that none writes"
        yield Problem("readers", words, "write fewer, or transfer: read")


def _writes(options: TransferOptions) -> Iterator[Problem]:
    if options.transfer != "read":
        return
    for key in ("end_sync", "input"):
        if getattr(options, key):
            yield Problem(key, "means nothing with transfer: read, which sends nothing", "leave it out")


def _content(options: TransferOptions) -> Iterator[Problem]:
    if options.input is not None and options.incompressible is not None:
        yield Problem("incompressible", "is of generated data, and input names files", "keep one of the two")


def _sizes(options: TransferOptions) -> Iterator[Problem]:
    if options.transfer == "copy":
        return
    buffer = BUFFER_DEFAULT_BYTES if options.buffer is None else options.buffer
    if not _BUFFER_UNIT_BYTES <= buffer <= BS_MAX_BYTES or buffer % _BUFFER_UNIT_BYTES:
        words = f"{units.exact_size(buffer)} is no size of a request: multiples of 4k up to 1g are"
        yield Problem("buffer", words, "write for example 64k, 1m or 64m")
    elif isinstance(options.size, int) and options.size < buffer:
        words = f"{units.exact_size(options.size)} does not hold one buffer of {units.exact_size(buffer)}"
        yield Problem("size", words, f"write {units.exact_size(buffer)} or more, or a smaller buffer")
    elif isinstance(options.size, int) and options.size % BS_MIN_BYTES:
        below = options.size // BS_MIN_BYTES * BS_MIN_BYTES
        words = f"{options.size} is no multiple of 512, as direct I/O needs"
        yield Problem("size", words, f"write {below} or {below + BS_MIN_BYTES}")


def _engine(options: TransferOptions) -> Iterator[Problem]:
    if options.engine in (None, AUTO):
        return
    chosen = schemes.engine(str(options.engine))
    in_flight = options.in_flight or 1
    if chosen.blocking and in_flight > 1:
        yield Problem(
            "in_flight",
            f"engine {chosen.name} does one operation at a time, so {in_flight} cannot be outstanding",
            "write engine: io_uring, or in_flight: 1 with more streams",
        )
    if not chosen.direct and options.direct is True:
        words = f"engine {chosen.name} works through the page cache"
        yield Problem("direct", words, "write direct: false or engine: psync")


def _copy(options: TransferOptions) -> Iterator[Problem]:
    if options.transfer != "copy":
        if options.source is not None:
            words = f"means nothing with transfer: {options.transfer}"
            yield Problem("source", words, "leave it out, or write transfer: copy")
        return
    if options.source is None:
        remedy = "add source: and the URL of the file on the server that sends it"
        yield Problem("source", "a copy between two servers needs the one that sends", remedy)
    for key in _OF_THIS_CLIENT:
        if getattr(options, key) is not None:
            words = "the two servers choose it: with transfer: copy this client moves no data"
            yield Problem(key, words, "leave it out")
    if not isinstance(options.size, int):
        yield Problem("size", "the size of the source's file is missing", "write size: and its bytes")


_RULES: tuple[Callable[[TransferOptions], Iterator[Problem]], ...] = (
    _copy,
    _times,
    _readers,
    _writes,
    _content,
    _sizes,
    _engine,
)


BESIDE_BYTES = 100 * units.MIB  # what a trial takes besides its buffers, at most


def needed_bytes(job: TransferJob) -> int:
    """The most that it takes: buffers of all requests in flight, what the engine's library keeps besides, and
    what a process takes."""
    if job.copies:
        return BESIDE_BYTES
    return _core.transfer_memory(job.engine, job.writers, job.readers, job.buffer, job.in_flight)


def memory_problem(job: TransferJob, available_bytes: int, words: str) -> str | None:
    """Why it does not fit, with the figures; None where it does."""
    needed = needed_bytes(job)
    if needed <= available_bytes:
        return None
    return f"{memory_words(job)}, and there are {units.format_size(available_bytes)} of {words}"


def memory_words(job: TransferJob) -> str:
    """`streams x buffer x in_flight, 16 x 64m x 4, take 4 GiB, and 8.1 GiB in all as …`."""
    parts = f"{job.streams} x {units.exact_size(job.buffer)} x {job.in_flight}"
    buffers, needed = units.format_size(job.bytes_in_flight), units.format_size(needed_bytes(job))
    return (
        f"streams x buffer x in_flight, {parts}, are {buffers} outstanding, which take {needed} of memory"
        f" with engine {job.engine}"
    )


FILES_MAX = 1_024  # each stands in the plan by its name


def largest_share(files: Sequence[SourceFile], writers: int) -> int:
    """Bytes of the stream that has most, where the files are dealt out one after another."""
    return max(sum(file.bytes for file in files[first::writers]) for first in range(min(writers, len(files))))


def resolve_transfer(
    work: str, options: TransferOptions, target: Target, facts: TargetFacts, around: Surroundings
) -> Resolved:
    """The job of one work on one target. Raises SpecError for what this target or this host cannot do."""
    room = around.lookup(HostRoom) or HostRoom(around.memory_bytes, "memory")
    _check_clients(work, options, target, room)
    if options.transfer == "copy":
        return _copy_between(work, options, target, facts, around)
    notes: list[str] = []
    streams, readers = streams_of(options)
    writers = streams - readers
    buffer = BUFFER_DEFAULT_BYTES if options.buffer is None else options.buffer
    in_flight = options.in_flight or _default_in_flight(options, notes)
    _defaults(options, readers, notes)
    sources = _sources(work, options, target, around)
    wanted = options.engine or AUTO
    buffered = wanted != AUTO and not schemes.engine(wanted).direct and options.direct is not True
    if buffered:
        notes.append(f"direct false: engine {wanted} works through the page cache")
    asked = False if buffered else options.direct
    direct = choose_direct(work, asked, (buffer,), target, facts, notes, "buffer")
    engine = choose_engine(
        work,
        AskedEngine(wanted, in_flight, writers > 0, depth_key="in_flight", many_key="streams"),
        direct,
        target,
        facts,
        around,
        notes,
    )
    job = TransferJob(
        transfer=options.transfer or "write",
        streams=streams,
        readers=readers,
        buffer=buffer,
        in_flight=in_flight,
        size=_size(work, options, target, around, sources, notes),
        clients=options.clients,
        engine=engine,
        direct=direct,
        checksum=None if options.checksum in (None, "none") else options.checksum,
        sources=tuple(file.path for file in sources),
        end_sync=_end_sync(work, options, target, facts, direct, writers, notes),
        time_based=bool(options.time_based),
        runtime_ns=options.runtime or 0,
        ramp_time_ns=options.ramp_time or 0,
        rate_bytes_per_s=capped_rate(work, "rate", options.rate, target, around, notes),
        incompressible=options.incompressible is not False,
    )
    _check_memory(work, target, job, room, notes)
    if writers:
        _check_objects(work, target, buffer)
        means = schemes.ack_means(engine, direct=direct)
        notes += [f"an acknowledged write is {means}"] if means else []
    return Resolved(job, measures_caches(job, facts, around, notes), tuple(notes))


def _copy_between(
    work: str, options: TransferOptions, target: Target, facts: TargetFacts, around: Surroundings
) -> Resolved:
    """A copy between two servers of one protocol, which this client asks for and watches."""
    scheme, engine = schemes.scheme_of(target.url), facts.own_engine
    if scheme is None or engine is None or scheme.third_party is None:
        able = ", ".join(f"{one.name}://" for one in schemes.table() if one.third_party)
        words = f"{facts.words}: servers there have no copy between each other"
        remedy = f"name targets of {able}" if able else "write transfer: write"
        fail(work, target, "transfer", words, remedy)
    if schemes.scheme_of(options.source or "") is not scheme:
        words = f"{options.source} is no URL of {scheme.name}://, as the target is"
        fail(work, target, "source", words, "name a file on a server of the same protocol")
    if around.max_rate_bytes_per_s is not None:
        words = "nothing holds two servers to limits.max_rate"
        fail(work, target, "transfer", words, "leave limits.max_rate out")
    job = TransferJob(
        transfer="copy",
        streams=options.streams or 1,
        readers=0,
        buffer=units.MIB,
        in_flight=1,
        size=options.size if isinstance(options.size, int) else units.MIB,
        clients=options.clients,
        engine=engine,
        direct=True,
        checksum=None,
        end_sync=False,
        time_based=False,
        runtime_ns=options.runtime or 0,
        ramp_time_ns=0,
        rate_bytes_per_s=None,
        incompressible=True,
        source=options.source,
    )
    notes = (
        "the servers choose buffers and queue depth; nothing passes through this client",
        f"a copy between servers needs {scheme.third_party.needs}",
    )
    return Resolved(job, False, notes)


def _default_in_flight(options: TransferOptions, notes: list[str]) -> int:
    """One request after another where the engine that was asked for cannot do otherwise."""
    if options.engine not in (None, AUTO) and schemes.engine(str(options.engine)).blocking:
        notes.append(f"in_flight 1: engine {options.engine} does one operation at a time")
        return 1
    notes.append(f"in_flight {IN_FLIGHT_DEFAULT}: default; a sweep over it finds a sufficient value")
    return IN_FLIGHT_DEFAULT


def _defaults(options: TransferOptions, readers: int, notes: list[str]) -> None:
    if options.buffer is None:
        notes.append(f"buffer {units.exact_size(BUFFER_DEFAULT_BYTES)}: default")
    if options.transfer == "duplex" and options.readers is None:
        notes.append(f"readers {readers}: half of the streams")


def _check_clients(work: str, options: TransferOptions, target: Target, room: HostRoom) -> None:
    if (options.clients or 1) > room.hosts:
        there = "this host alone takes part" if room.hosts == 1 else f"{room.hosts} hosts take part"
        remedy = "run it with --hosts, or write clients: 1" if room.hosts == 1 else f"write {room.hosts}"
        fail(work, target, "clients", f"{options.clients} are asked for, and {there}", remedy)


def _sources(
    work: str, options: TransferOptions, target: Target, around: Surroundings
) -> Sequence[SourceFile]:
    """The user's files; none where the data is generated."""
    if options.input is None:
        return ()
    look = around.lookup(SourceLook)
    if look is None:
        fail(work, target, "input", "nobody can look at files here", "leave it out")
    try:
        return look.find(options.input)
    except TargetError as error:
        source = f"workload {work} on target {target.name}"
        raise SpecError(error.message, error.remedy, source=source, key="input") from error


def _size(
    work: str,
    options: TransferOptions,
    target: Target,
    around: Surroundings,
    sources: Sequence[SourceFile],
    notes: list[str],
) -> int:
    if isinstance(options.size, int):
        return options.size
    streams, readers = streams_of(options)
    buffer = BUFFER_DEFAULT_BYTES if options.buffer is None else options.buffer
    if sources:
        share = largest_share(sources, streams - readers)
        size = -(-share // buffer) * buffer
        notes.append(f"size {units.exact_size(size)} per stream: the largest share of the files, in buffers")
        return size
    size = around.auto_bytes // (streams * (options.clients or 1)) // buffer * buffer
    if size == 0:
        words = f"auto is {units.format_size(around.auto_bytes)} here, which does not hold {streams} x "
        remedy = "free space on the targets, or give a size, for example --set size=64M"
        fail(work, target, "size", words + units.format_size(buffer), remedy)
    notes.append(
        f"size {units.exact_size(size)} per stream: auto, a sixteenth of memory "
        f"({units.format_size(around.memory_bytes)}) from 256 MiB to 2 GiB, at most a tenth of free space"
    )
    return size


def _end_sync(
    work: str,
    options: TransferOptions,
    target: Target,
    facts: TargetFacts,
    direct: bool,
    writers: int,
    notes: list[str],
) -> bool:
    if options.end_sync is not None:
        if options.end_sync:
            refuse_sync(work, "end_sync", target, facts)
        return options.end_sync
    syncs = schemes.access(facts.access).syncs and facts.has_storage and not facts.in_memory
    chosen = bool(writers) and syncs and not direct
    if chosen:
        notes.append("end_sync true: buffered writes are not done before they are on storage")
    return chosen


def _check_memory(work: str, target: Target, job: TransferJob, room: HostRoom, notes: list[str]) -> None:
    problem = memory_problem(job, room.available_bytes, room.words)
    if problem is not None:
        fail(work, target, "in_flight", problem, "lower one of the three, or measure from a host with more")
    notes.append(memory_words(job))


def _check_objects(work: str, target: Target, buffer: int) -> None:
    """Objects that never change: what is written is one or more of them, whole."""
    scheme = schemes.scheme_of(target.url)
    if scheme is None or not scheme.whole_objects:
        return
    object_bytes = int(_core.parse_location(target.url)["object_bytes"])
    if buffer % object_bytes:
        wanted = units.exact_size(buffer)
        words = (
            f"a write of {wanted} would change a part of an object of {units.exact_size(object_bytes)},"
            f" which {scheme.name.upper()} cannot"
        )
        fail(work, target, "buffer", words, f"write object_size={wanted} in the target's URL")


class TransferPlanned(Planned[TransferOptions, TransferJob]):
    """Streams, a file each."""

    kind = "transfer"
    job = TransferJob
    told_by = "transfer"
    options = TransferOptions
    example = "transfer: write, read, duplex or copy"
    no_rate = "transfers"
    plain_levels = ("buffer", "size")
    rates = ("bandwidth", "iops")
    byte_fields = ("buffer", "size", "rate_bytes_per_s")

    def needs_leadline(self, options: TransferOptions) -> str:
        """See the base; a copy between servers is asked for by their programs."""
        return "transfer: copy" if options.transfer == "copy" else ""

    def problems(self, options: TransferOptions, foreign: Iterator[Problem]) -> Iterator[Problem]:
        """See the base."""
        yield from foreign
        yield from transfer_rules(options)

    def resolve(
        self, work: str, options: TransferOptions, target: Target, facts: TargetFacts, around: Surroundings
    ) -> Resolved:
        """See the base."""
        return resolve_transfer(work, options, target, facts, around)

    def work_bytes(self, options: TransferOptions) -> WorkBytes:
        """See the base. A rate is of all clients together, a size of each of a client's streams."""
        if options.transfer == "copy":
            raise SpecError(
                "two servers move the data, and not these clients", "write read: or write: with a value"
            )
        streams, readers = streams_of(options)
        known = isinstance(options.size, int) and not options.time_based
        return WorkBytes(
            readers / streams,
            float(options.size) * streams if known and options.size is not None else None,
            None if options.rate is None else options.rate / (options.clients or 1),
            f"{options.transfer} in buffers of {size_words((options.buffer or BUFFER_DEFAULT_BYTES,))}",
            streams * (options.in_flight or IN_FLIGHT_DEFAULT),
        )

    def told_engine(self, job: TransferJob) -> Mapping[str, Any] | None:
        """Nothing of a copy between two servers."""
        return None if job.copies else job.as_engine_json()

    def hosts_wanted(self, job: TransferJob) -> int | None:
        """Its clients."""
        return job.clients

    def layout(self, job: TransferJob) -> Layout | None:
        """The files that are read. Those that a duplex writes are among them, so that nobody shares them."""
        if not job.reads or not uses_storage(job.engine):
            return None
        content = "" if job.incompressible else "-compressible"
        content += f"-duplex{job.readers}" if job.writes else ""
        return files_layout(job.streams, 1, job.size, content, incompressible=job.incompressible)

    def untimed_seconds(self, job: TransferJob) -> float:
        """By size, at the pace that was asked for, and no longer than its runtime."""
        speed = min(float(NOMINAL_BYTES_PER_S), float(job.rate_bytes_per_s or NOMINAL_BYTES_PER_S))
        by_size_s, limit_s = job.data_set_bytes / speed, job.runtime_ns / units.NS_PER_S
        return min(by_size_s, limit_s) if limit_s else by_size_s

    def option_words(self, job: TransferJob, name: str, value: Any) -> str | None:
        """Files that are sent by how many they are."""
        del value
        return f"{len(job.sources)} files" if name == "sources" and job.sources else None
