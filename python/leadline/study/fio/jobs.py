"""A job of fio to the options of a work: each option by its meaning, and in words what is otherwise."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from leadline import units
from leadline.errors import SpecError
from leadline.study import schemes
from leadline.study.fio.sections import FioOption, FioSection
from leadline.study.fio.table import Known, known_options
from leadline.study.fio.values import percent, size, switch, time_ns, whole
from leadline.study.kind.sizes import block_sizes, common_step, parse_block_size, parse_bssplit
from leadline.written.yaml_source import WrittenAt, shorten

_PATTERNS = ("read", "write", "randread", "randwrite", "rw", "randrw")
_CALLS = ("sync", "psync", "vsync", "pvsync", "pvsync2")  # one call at a time
_QUEUES = ("libaio", "io_uring", "posixaio")
_BS_DEFAULT_BYTES = 4096
_LATENCIES = {50.0: "p50", 95.0: "p95", 99.0: "p99", 99.9: "p99.9"}


@dataclass
class Converted:
    """A job as a work: its options in a study's notation, where each was written, what has to be said."""

    name: str
    at: WrittenAt
    begins_group: bool
    options: dict[str, Any] = field(default_factory=dict)
    places: dict[str, WrittenAt] = field(default_factory=dict)
    search: dict[str, str] | None = None
    notes: list[str] = field(default_factory=list)

    def put(self, key: str, value: Any, option: FioOption | None = None) -> None:
        """One option of the work, written where fio's was."""
        self.options[key] = value
        self.places[key] = option.at if option else self.at


def convert(section: FioSection, ignored: Collection[str]) -> Converted:
    """The work of a job. Raises SpecError that names the option, the file and the line.

    `ignored` are options, by any of their names, that are left out though they mean something.
    """
    asked = _AskedOptions(section, ignored)
    work = Converted(section.name, section.at, asked.on("stonewall"))
    for read in (_pattern, _amounts, _files, _engine, _pace, _times, _order, _content, _syncs, _latency):
        read(asked, work)
    work.notes += asked.differences()
    return work


class _AskedOptions:
    """A job's options under the first name of each, without those that are ignored."""

    def __init__(self, section: FioSection, ignored: Collection[str]) -> None:
        table = known_options()
        skipped = {table[name].name if name in table else name for name in ignored}
        self.section = section
        self.found: dict[str, FioOption] = {}
        self.known: dict[str, Known] = {}
        for option in sorted(section.options.values(), key=lambda one: one.name != "ioengine"):
            known = table.get(option.name)
            name = known.name if known else option.name
            if name in skipped:
                continue
            if known is None:
                raise option.fail(*_unknown(option.name, table))
            if known.how == "refused" and not _is_off(option):
                raise option.fail(f"is not supported: {known.words}", _leave(option))
            self.found[name] = option
            self.known[name] = known
            if name == "ioengine":
                _check_engine(option)  # before its own options, which nobody else knows

    def get(self, name: str) -> FioOption | None:
        return self.found.get(name)

    def on(self, name: str) -> bool:
        option = self.found.get(name)
        return option is not None and switch(option)

    def number(self, name: str, otherwise: int, least: int = 0) -> int:
        option = self.found.get(name)
        return otherwise if option is None else whole(option, least)

    def refuse(self, name: str, message: str, remedy: str) -> SpecError:
        """An error at an option that was given, or at the job."""
        option = self.found.get(name)
        if option is not None:
            return option.fail(message, remedy)
        at = self.section.at
        return SpecError(message, remedy, source=at.source, line=at.line, key=name)

    def differences(self) -> Iterator[str]:
        for name, known in self.known.items():
            if known.how == "differs" and not _is_off(self.found[name]):
                yield f"{name}: {known.words}"


def _check_engine(option: FioOption) -> None:
    if option.value not in (*_CALLS, *_QUEUES, "mmap", schemes.storageless().name):
        ways = ", ".join(f"{scheme.name}://" for scheme in schemes.located())
        remedy = f"use libaio, io_uring, psync or mmap; another storage is a target here ({ways})"
        words = f"leadline has no engine {shorten(option.value)!r}"
        raise option.fail(words, f"{remedy}; or --ignore ioengine")


def _is_off(option: FioOption) -> bool:
    return option.value in ("0", "none")


def _leave(option: FioOption) -> str:
    return f"change the job, or leave the option out with --ignore {option.name}"


def _unknown(name: str, table: Collection[str]) -> tuple[str, str]:
    near = get_close_matches(name, table, 1, 0.8)
    meant = f"did you mean {near[0]}? or " if near else ""
    words = "is not supported: leadline does not know this option of fio's"
    return words, f"{meant}leave it out with --ignore {shorten(name)}"


def _pattern(asked: _AskedOptions, work: Converted) -> None:
    option = asked.get("rw")
    chosen = option.value if option else "read"
    chosen = {"readwrite": "rw"}.get(chosen, chosen)
    if chosen not in _PATTERNS:
        words = (
            "an offset between operations"
            if ":" in chosen or "," in chosen
            else "no pattern that leadline has"
        )
        raise asked.refuse("rw", f"{shorten(chosen)!r} is {words}", f"write one of {', '.join(_PATTERNS)}")
    work.put("rw", chosen, option)
    if chosen in ("rw", "randrw"):
        reads, writes = asked.get("rwmixread"), asked.get("rwmixwrite")
        if reads:
            work.put("rwmixread", percent(reads), reads)
        elif writes:
            work.put("rwmixread", 100 - percent(writes), writes)
    overwrite = asked.get("overwrite")
    if overwrite is not None and switch(overwrite) and "write" in chosen:
        work.put("overwrite", True, overwrite)
    _blocks(asked, work, one_way=None if chosen in ("rw", "randrw") else "write" in chosen)


def _blocks(asked: _AskedOptions, work: Converted, *, one_way: bool | None) -> None:
    """Sizes of operations; a job of one direction has that direction's size only (`one_way`: writes)."""
    bs, split = asked.get("bs"), asked.get("bssplit")
    if split is not None:
        written = ",".join(_direction(split.value, one_way, most=3))
        try:
            parse_bssplit(written)
        except SpecError as error:
            raise split.fail(error.message, error.remedy) from None
        work.put("bssplit", written, split)
        return
    if bs is None:
        work.put("bs", _BS_DEFAULT_BYTES)
        return
    sizes = [size(bs, part) for part in _direction(bs.value, one_way, most=3)]
    work.put("bs", ",".join(map(str, sizes)) if len(set(sizes)) > 1 else sizes[0], bs)


def _direction(text: str, one_way: bool | None, most: int) -> list[str]:
    """fio's `reads,writes,trims`: those that matter; one that is left out is as the one before it."""
    parts = [part.strip() for part in text.split(",")][:most]
    reads = parts[0]
    writes = parts[1] if len(parts) > 1 and parts[1] else reads
    if one_way is None:
        return [reads, writes] if len(parts) > 1 else [reads]
    return [writes if one_way else reads]


def _steps(work: Converted) -> tuple[int, ...]:
    split = work.options.get("bssplit")
    bs = work.options.get("bs")
    parsed = parse_block_size(bs) if bs is not None else None
    return block_sizes(parsed, parse_bssplit(split) if split else None, _BS_DEFAULT_BYTES)


def _amounts(asked: _AskedOptions, work: Converted) -> None:
    """size, io_size and loops, in whole blocks."""
    option = asked.get("size") or asked.get("filesize")
    nrfiles = asked.number("nrfiles", 1, 1)
    names = _names(asked)
    nrfiles = max(nrfiles, len(names))
    if option is None:
        raise asked.refuse("size", "the job does not say its size", "add size, for example size=1g")
    bytes_each = size(option) * (nrfiles if asked.get("size") is None else 1)
    step = common_step(_steps(work), nrfiles)
    whole_bytes = bytes_each // step * step
    if whole_bytes == 0:
        words = f"{units.exact_size(bytes_each)} does not hold a block in each of its files"
        raise option.fail(words, f"write at least {units.exact_size(step)}")
    if whole_bytes != bytes_each:
        work.notes.append(f"size: {units.exact_size(whole_bytes)}, in whole blocks of every file")
    work.put("size", whole_bytes, option)
    work.put("nrfiles", nrfiles, asked.get("nrfiles"))
    work.put("numjobs", asked.number("numjobs", 1, 1), asked.get("numjobs"))
    moved, loops, count = asked.get("io_size"), asked.number("loops", 1, 1), asked.get("number_ios")
    if asked.on("time_based"):
        return
    if count is not None:
        if len(_steps(work)) > 1:
            raise count.fail("counts operations of several sizes", "write io_size, in bytes")
        work.put("io_size", whole(count, 1) * _steps(work)[0] * loops, count)
    elif moved is not None:
        work.put("io_size", size(moved) * loops, moved)
    elif loops > 1:
        work.put("io_size", whole_bytes * loops, asked.get("loops"))


def _names(asked: _AskedOptions) -> list[str]:
    option = asked.get("filename")
    if option is None:
        return []
    names = re.split(r"(?<!\\):", option.value)
    device = next((name for name in names if name.startswith("/dev/")), None)
    if device is not None:
        words = f"{shorten(device)!r} is a device, which leadline does not write to"
        raise option.fail(
            words, "give a file system with --target, and leave filename out: --ignore filename"
        )
    return names


def _files(asked: _AskedOptions, work: Converted) -> None:
    """What is touched of which files."""
    jobs, bytes_each, nrfiles = (int(work.options[key]) for key in ("numjobs", "size", "nrfiles"))
    shared = asked.get("filename") if jobs > 1 else None
    first, step = asked.get("offset"), asked.get("offset_increment")
    begin, apart = (size(option) if option else 0 for option in (first, step))
    if shared and apart == bytes_each and not begin and nrfiles == 1:
        work.put("shared", "segmented", shared)  # a part of one file for each, exactly
        return
    if shared:
        work.put("shared", "whole", shared)
    if begin or apart:
        # fio's size begins at the offset, ours at the file's first byte.
        work.put("size", bytes_each + (begin + apart * (jobs - 1)) * nrfiles, asked.get("size"))
        work.put("offset", begin, first)
    if apart and jobs > 1:
        work.put("offset_increment", apart, step)
        work.notes.append("offset_increment: each numjob may go on to the end of the last one's part")
        if not asked.on("time_based") and "io_size" not in work.options:
            work.put("io_size", bytes_each, asked.get("size"))


def _engine(asked: _AskedOptions, work: Converted) -> None:
    option = asked.get("ioengine")
    depth = asked.number("iodepth", 1, 1)
    name = "psync" if option is None else option.value
    if name in _CALLS:
        if depth > 1:
            work.notes.append(f"iodepth: 1, as fio's {name} has one operation in flight, whatever is asked")
            depth = 1
        if option is not None:
            work.put("engine", "psync", option)
    elif name in _QUEUES:
        work.put("engine", "io_uring", option)
    else:
        work.put("engine", name, option)
    work.put("iodepth", depth, asked.get("iodepth"))
    direct, buffered = asked.get("direct"), asked.get("buffered")
    past_caches = switch(direct) if direct else (not switch(buffered) if buffered else False)
    work.put("direct", past_caches and name != "mmap", direct or buffered)
    if asked.on("sqthread_poll"):
        work.put("sqthread_poll", True, asked.get("sqthread_poll"))


def _pace(asked: _AskedOptions, work: Converted) -> None:
    """Rates are of each numjob and each direction in fio, and of all of them here."""
    for key in ("rate", "rate_iops"):
        option = asked.get(key)
        if option is None or _is_off(option):
            continue
        parts = [part.strip() for part in option.value.split(",")]
        if work.options["rw"] in ("rw", "randrw"):
            words = "is a pace of each direction, which leadline does not keep apart"
            raise option.fail(
                words, f"write two jobs, one that reads and one that writes, or {_leave(option)}"
            )
        chosen = parts[1] if "write" in work.options["rw"] and len(parts) > 1 and parts[1] else parts[0]
        each = size(option, chosen)
        if each:
            work.put(key, each * work.options["numjobs"], option)
    process = asked.get("rate_process")
    if process is not None and {"rate", "rate_iops"} & set(work.options):
        known = {"linear": "constant", "poisson": "poisson"}
        if process.value not in known:
            raise process.fail(f"{shorten(process.value)!r} is no arrival", "write linear or poisson")
        work.put("arrival", known[process.value], process)
    pause = asked.get("thinktime")
    if pause is not None and not _is_off(pause):
        work.put("thinktime", units.exact_duration(time_ns(pause, "us")), pause)
        if asked.get("thinktime_blocks"):
            work.put(
                "thinktime_blocks", asked.number("thinktime_blocks", 1, 1), asked.get("thinktime_blocks")
            )


def _times(asked: _AskedOptions, work: Converted) -> None:
    for key in ("runtime", "ramp_time"):
        option = asked.get(key)
        if option is not None and not _is_off(option):
            work.put(key, units.exact_duration(time_ns(option, "s")), option)
    if asked.on("time_based"):
        work.put("time_based", True, asked.get("time_based"))


def _order(asked: _AskedOptions, work: Converted) -> None:
    """Which blocks come in which order."""
    if not str(work.options["rw"]).startswith("rand"):
        return
    share, chosen = asked.get("percentage_random"), asked.get("random_distribution")
    if share is not None:
        parts = {part.strip() for part in share.value.split(",")}
        if len(parts) > 1:
            raise share.fail("gives reads and writes shares of their own", "write one share")
        work.put("percentage_random", percent(share), share)
    if chosen is not None and chosen.value != "random":
        kind, _, theta = chosen.value.partition(":")
        if kind not in ("zipf", "pareto") or not theta or "/" in theta:
            words = f"{shorten(chosen.value)!r} is no distribution that leadline has"
            raise chosen.fail(words, "write random, zipf:THETA or pareto:H")
        work.put("random_distribution", chosen.value, chosen)
    elif asked.on("norandommap"):
        work.put("random_distribution", "random", asked.get("norandommap"))


def _content(asked: _AskedOptions, work: Converted) -> None:
    for key in ("buffer_compress_percentage", "dedupe_percentage"):
        option = asked.get(key)
        if option is not None and not _is_off(option):
            work.put(key, percent(option), option)
    if asked.on("zero_buffers"):
        work.put("buffer_compress_percentage", 100, asked.get("zero_buffers"))
    option = asked.get("verify")
    if option is not None and not _is_off(option) and not _is_off(asked.get("do_verify") or option):
        work.put("verify", True, option)


def _syncs(asked: _AskedOptions, work: Converted) -> None:
    if str(work.options["rw"]) in ("read", "randread"):
        return
    for key in ("fsync", "fdatasync"):
        option = asked.get(key)
        if option is not None and not _is_off(option):
            work.put(key, whole(option), option)
    # fio counts buffered writes as done when the page cache has them, unless it is told.
    work.put("end_fsync", asked.on("end_fsync"), asked.get("end_fsync"))


def _latency(asked: _AskedOptions, work: Converted) -> None:
    bound, percentile = asked.get("latency_target"), asked.get("latency_percentile")
    if bound is None or _is_off(bound):
        return
    text = percentile.value if percentile else "100"
    share = float(text) if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,6})?", text) else 0.0
    if share not in _LATENCIES:
        at = percentile or bound
        raise at.fail(
            f"latency_percentile {shorten(text)} is none that a search has", "write 50, 95, 99 or 99.9"
        )
    work.search = {"latency": _LATENCIES[share], "bound": units.exact_duration(time_ns(bound, "us"))}
    work.places["search"] = bound.at
