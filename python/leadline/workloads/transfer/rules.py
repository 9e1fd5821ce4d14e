"""Contradictions in a transfer: foreign options, streams that do nothing, sizes that hold no request."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from leadline import units
from leadline.study import schemes
from leadline.study.kind.rule import BS_MAX_BYTES, BS_MIN_BYTES, Problem
from leadline.workloads.transfer.options import TransferOptions
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
            f"engine {chosen.name} does one operation at a time, so {in_flight} cannot be in flight",
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
        yield Problem("size", "how large the source's file is has to be said", "write size: and its bytes")


_RULES: tuple[Callable[[TransferOptions], Iterator[Problem]], ...] = (
    _copy,
    _times,
    _readers,
    _writes,
    _content,
    _sizes,
    _engine,
)
