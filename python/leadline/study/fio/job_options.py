"""A job's options under their first names, what `options.yaml` makes of each, and how much the job moves."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal

from leadline import units
from leadline.errors import SpecError
from leadline.knowledge.tables import table_of
from leadline.study import schemes
from leadline.study.fio.sections import FioOption, FioSection, percent, power, size, switch, whole
from leadline.study.kind.options import block_sizes, common_step, parse_block_size, parse_bssplit
from leadline.yamlio.yaml_source import WrittenAt, shorten

BS_DEFAULT_BYTES = 4096


def read_amounts(asked: JobOptionValues, work: Converted) -> None:
    """size, filesize, io_size, number_ios and loops, in whole blocks."""
    whole_size, each_file = asked.get("size"), asked.get("filesize")
    nrfiles = len(_names(asked)) or asked.number("nrfiles", 1, 1)
    option = each_file or whole_size
    if option is None:
        raise asked.refuse("size", "the job does not say its size", "add size, for example size=1g")
    step = common_step(steps(work), nrfiles)
    file_bytes = _file_bytes(each_file, work, nrfiles, step // nrfiles) if each_file else 0
    bytes_each = file_bytes * nrfiles if each_file else size(option)
    whole_bytes = bytes_each // step * step
    if whole_bytes == 0:
        words = f"{units.exact_size(bytes_each)} does not hold a block in each of its files"
        raise option.fail(words, f"write at least {units.exact_size(step)}")
    if whole_bytes != bytes_each:
        if each_file:
            words = f"{units.exact_size(file_bytes)} is not of whole blocks"
            raise option.fail(words, f"write a multiple of {units.exact_size(step // nrfiles)}")
        work.notes.append(f"size: {units.exact_size(whole_bytes)}, in whole blocks of every file")
    work.put("size", whole_bytes, option)
    work.put("nrfiles", nrfiles, asked.get("nrfiles") or asked.get("filename"))
    work.put("numjobs", asked.number("numjobs", 1, 1), asked.get("numjobs"))
    if not asked.on("time_based"):
        limit = min(size(whole_size), bytes_each) if whole_size else bytes_each
        _moved(asked, work, limit if each_file else limit // nrfiles * nrfiles, whole_bytes)


def _file_bytes(option: FioOption, work: Converted, nrfiles: int, step: int) -> int:
    """The size of each file. fio draws it from a range; here all files have the middle, in whole blocks."""
    low, dash, high = option.value.partition("-")
    if not dash:
        return size(option)
    ends = size(option, low.strip()), size(option, high.strip())
    if ends[0] > ends[1]:
        raise option.fail(f"{shorten(option.value)!r} ends before it begins", "write the smaller size first")
    middle = max(sum(ends) // 2 // step, 1) * step
    files = "1 file" if nrfiles == 1 else f"{nrfiles} files"
    words = f"{files} of {units.exact_size(middle)}, the middle of {option.value}"
    work.notes.append(f"filesize: {words}; fio draws the size of each")
    return middle


def _moved(asked: JobOptionValues, work: Converted, limit: int, whole_bytes: int) -> None:
    """io_size, where a numjob does not move every block of its files once."""
    loops, count, moved = asked.number("loops", 1, 1), asked.given("number_ios"), asked.given("io_size")
    option = count or moved or asked.get("loops") or asked.get("size")
    sizes = steps(work)
    if count is not None and len(sizes) > 1:
        raise count.fail("counts operations of several sizes", "write io_size, in bytes")
    if moved is not None and moved.value.endswith("%") and asked.get("filesize") is not None:
        raise moved.fail("is a share of size, and filesize is given", "write bytes, for example io_size=1g")
    asked_bytes = limit if moved is None else _io_size(moved, limit)
    if len(sizes) > 1:
        found = asked_bytes * loops if moved or loops > 1 else whole_bytes
    else:
        pass_bytes = _pass_bytes(asked, work, limit, asked_bytes)
        most = None if count is None else whole(count, 1)
        found = moved_bytes(pass_bytes, sizes[0], asked_bytes, loops, most, again=moved is not None)
    if found != whole_bytes:
        work.put("io_size", found, option)


def moved_bytes(pass_bytes: int, step: int, limit: int, loops: int, most: int | None, *, again: bool) -> int:
    """What fio moves with operations of `step` bytes, in passes of `pass_bytes` over the files.

    It makes `loops` passes, then (`again`: where io_size is said) more while a whole operation is left of
    `limit`; and stops within a pass where it has moved `limit` times `loops`, or done `most` operations times
    `loops`.
    """
    end = _blocks(limit * loops, step)
    if most is not None:
        end = min(end, most * loops * step)
    total = min(pass_bytes * loops, end)
    left = limit - total
    if not again or left < step or total == end:
        return total
    total = min(total + left // pass_bytes * pass_bytes, end)
    return total if limit - total < step else min(total + pass_bytes, end)


def _pass_bytes(asked: JobOptionValues, work: Converted, limit: int, asked_bytes: int) -> int:
    """What fio moves before it begins with the files again: their blocks, or without a map what is asked."""
    step, share, rw = steps(work)[0], asked.get("percentage_random"), work.options["rw"]
    mapless = asked.on("norandommap") and str(rw).startswith("rand") and (not share or percent(share) > 0)
    if not mapless:
        return min(int(work.options["size"]), _blocks(limit, step))
    return _blocks(limit if rw == "randread" else max(limit, asked_bytes), step)


def _blocks(size_bytes: int, step: int) -> int:
    return -(-size_bytes // step) * step


def _io_size(option: FioOption, once_bytes: int) -> int:
    return once_bytes * percent(option) // 100 if option.value.endswith("%") else size(option)


def steps(work: Converted) -> tuple[int, ...]:
    """Sizes of a job's operations, the smallest first."""
    split, bs = work.options.get("bssplit"), work.options.get("bs")
    parsed = None if bs is None else parse_block_size(bs)
    return block_sizes(parsed, parse_bssplit(split) if split else None, BS_DEFAULT_BYTES)


def _names(asked: JobOptionValues) -> list[str]:
    option = asked.get("filename")
    if option is None:
        return []
    names = re.split(r"(?<!\\):", option.value)
    if option.earlier is not None:
        words = f"adds to that of line {option.earlier.line}, as fio has it: files of both are used"
        raise option.fail(words, "write all of them once, for example filename=a:b")
    device = next((name for name in names if name.startswith("/dev/")), None)
    if device is not None:
        words = f"{shorten(device)!r} is a device, which leadline does not write to"
        raise option.fail(
            words, "give a file system with --target, and leave filename out: --ignore filename"
        )
    return names


def _shared(asked: JobOptionValues) -> FioOption | None:
    """What makes all numjobs open the same files: names that do not tell them apart."""
    pattern = asked.get("filename_format")
    apart = pattern is None or pattern.value == "" or "$jobnum" in pattern.value
    return asked.get("filename") or (None if apart else pattern)


def _common(asked: JobOptionValues) -> frozenset[str]:
    """Names by which other jobs may open the same files: written ones, or a format that tells no job."""
    names = _names(asked)
    pattern = asked.get("filename_format")
    if names or pattern is None or "$job" in pattern.value:
        return frozenset(names)
    return frozenset({pattern.value} - {""})


def read_files(asked: JobOptionValues, work: Converted) -> None:
    """What is touched of which files."""
    work.files = _common(asked)
    jobs, bytes_each, nrfiles = (int(work.options[key]) for key in ("numjobs", "size", "nrfiles"))
    shared = _shared(asked) if jobs > 1 else None
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


How = Literal["kept", "differs", "kept_on", "free", "refused"]


@dataclass(frozen=True)
class KnownOption:
    """An option of fio under its first name, what becomes of it, and what has to be said of that."""

    name: str
    how: How
    words: str


@functools.cache
def known_options() -> Mapping[str, KnownOption]:
    """Every option that the table knows, under each of its names."""
    found: dict[str, KnownOption] = {}
    how: Any
    for how, rows in table_of("leadline.study.fio", "options.yaml").items():
        for names, words in rows.items():
            every = [name.strip() for name in names.split(",")]
            found |= {name: KnownOption(every[0], how, words) for name in every}
    return found


CALLS = ("sync", "psync", "vsync", "pvsync", "pvsync2")  # one call at a time
QUEUES = ("libaio", "io_uring", "posixaio")


@dataclass
class Converted:
    """A job as a work: its options in a study's notation, where each was written, what has to be said."""

    name: str
    at: WrittenAt
    begins_group: bool
    options: dict[str, Any] = field(default_factory=dict)
    places: dict[str, WrittenAt] = field(default_factory=dict)
    search: dict[str, str] | None = None
    delayed: FioOption | None = None
    ends_others: FioOption | None = None
    notes: list[str] = field(default_factory=list)
    files: frozenset[str] = frozenset()  # names that other jobs may have, too

    def put(self, key: str, value: Any, option: FioOption | None = None) -> None:
        """One option of the work, written where fio's was."""
        self.options[key] = value
        self.places[key] = option.at if option else self.at


class JobOptionValues:
    """A job's options under the first name of each, without those that are ignored."""

    def __init__(self, section: FioSection, ignored: Collection[str]) -> None:
        table = known_options()
        skipped = {table[name].name if name in table else name for name in ignored}
        self.section = section
        self.found: dict[str, FioOption] = {}
        self.known: dict[str, KnownOption] = {}
        prefix = section.options.get("kb_base")
        for option in sorted(section.options.values(), key=lambda one: one.name != "ioengine"):
            known = table.get(option.name)
            name = known.name if known else option.name
            if name in skipped:
                continue
            if known is None:
                raise option.fail(*_unknown(option.name, table))
            if known.how == "refused" and not is_off(option):
                raise option.fail(f"is not supported: {known.words}", leave(option))
            self.found.pop(name, None)
            acts = prefix is not None and prefix.section <= option.section
            self.found[name] = replace(option, prefix_power=power(prefix)) if prefix and acts else option
            self.known[name] = known
            if name == "ioengine":
                _check_engine(option)  # before its own options, which nobody else knows

    def get(self, name: str) -> FioOption | None:
        return self.found.get(name)

    def given(self, name: str) -> FioOption | None:
        """The option where it was given, and as more than 0 or none."""
        option = self.found.get(name)
        return None if option is None or is_off(option) else option

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
            off = is_off(self.found[name])
            if (known.how == "differs" and not off) or (known.how == "kept_on" and off):
                yield f"{name}: {known.words}"


def _check_engine(option: FioOption) -> None:
    if option.value not in (*CALLS, *QUEUES, "mmap", schemes.storageless().name):
        ways = ", ".join(f"{scheme.name}://" for scheme in schemes.located())
        remedy = f"use libaio, io_uring, psync or mmap; another storage is a target here ({ways})"
        words = f"leadline has no engine {shorten(option.value)!r}"
        raise option.fail(words, f"{remedy}; or --ignore ioengine")


def is_off(option: FioOption) -> bool:
    return option.value in ("0", "none")


def leave(option: FioOption) -> str:
    return f"change the job, or leave the option out with --ignore {option.name}"


def _unknown(name: str, table: Collection[str]) -> tuple[str, str]:
    near = get_close_matches(name, table, 1, 0.8)
    meant = f"did you mean {near[0]}? or " if near else ""
    words = "is not supported: leadline does not know this option of fio's"
    return words, f"{meant}leave it out with --ignore {shorten(name)}"
