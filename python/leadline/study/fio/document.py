"""A job file as a study's document: jobs to works, each option by its meaning, and what differs from fio."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from leadline import units
from leadline.errors import SpecError
from leadline.study.fio.job_options import (
    BS_DEFAULT_BYTES,
    CALLS,
    QUEUES,
    Converted,
    JobOptionValues,
    is_off,
    leave,
    read_amounts,
    read_files,
    steps,
)
from leadline.study.fio.sections import (
    FioOption,
    FioSection,
    ReadFile,
    percent,
    read_sections,
    size,
    split,
    switch,
    time_ns,
    whole,
)
from leadline.study.kind.options import parse_bssplit
from leadline.study.work import JOBS_MAX
from leadline.yamlio.yaml_source import Document, Path, WrittenAt, shorten

_SECTOR_BYTES = 512
_PATTERNS = ("read", "write", "randread", "randwrite", "rw", "randrw")
_LATENCIES = {50.0: "p50", 95.0: "p95", 99.0: "p99", 99.9: "p99.9", 100.0: "p100"}


def convert(section: FioSection, ignored: Collection[str]) -> Converted:
    """The work of a job. Raises SpecError that names the option, the file and the line.

    `ignored` are options, by any of their names, that are left out though they mean something.
    """
    asked = JobOptionValues(section, ignored)
    named = asked.get("name")
    begins_group = asked.on("stonewall") or asked.on("new_group")
    own = named is not None and named.section == section.number  # that of [global] names no job
    work = Converted(named.value if named and own else section.name, section.at, begins_group)
    for read in (
        _pattern,
        read_amounts,
        read_files,
        _engine,
        _pace,
        _times,
        _order,
        _content,
        _syncs,
        _latency,
    ):
        read(asked, work)
    work.delayed, work.ends_others = asked.given("startdelay"), asked.given("exitall")
    work.notes += asked.differences()
    return work


def _pattern(asked: JobOptionValues, work: Converted) -> None:
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
        for mix in (asked.found[name] for name in asked.found if name in ("rwmixread", "rwmixwrite")):
            share = percent(mix)  # the one that is written last holds
            work.put("rwmixread", share if mix.name == "rwmixread" else 100 - share, mix)
    overwrite = asked.get("overwrite")
    if overwrite is not None and switch(overwrite) and "write" in chosen:
        work.put("overwrite", True, overwrite)
    _blocks(asked, work, one_way=None if chosen in ("rw", "randrw") else "write" in chosen)


def _blocks(asked: JobOptionValues, work: Converted, *, one_way: bool | None) -> None:
    """Sizes of operations; a job of one direction has that direction's size only (`one_way`: writes)."""
    bs, shares = asked.get("bs"), asked.get("bssplit")
    if shares is not None:
        written = ",".join(split(shares, part) for part in _direction(shares.value, one_way, most=3))
        try:
            parsed = parse_bssplit(written)
        except SpecError as error:
            raise shares.fail(error.message, error.remedy) from None
        _check_blocks(shares, parsed.sizes)
        work.put("bssplit", written, shares)
        return
    if bs is None:
        work.put("bs", BS_DEFAULT_BYTES)
        return
    sizes = [size(bs, part) for part in _direction(bs.value, one_way, most=3)]
    _check_blocks(bs, sizes)
    work.put("bs", ",".join(map(str, sizes)) if len(set(sizes)) > 1 else sizes[0], bs)


def _check_blocks(option: FioOption, sizes: Collection[int]) -> None:
    """Here and not in the study, as only here it can be said how fio reads what was written."""
    wrong = next((found for found in sizes if found == 0 or found % _SECTOR_BYTES), None)
    if wrong is not None:
        words = f"{wrong} bytes are no operation of whole sectors"
        raise option.fail(words, "write for example 4k, which is 4096 (and fio's 4KiB is 4000)")


def _direction(text: str, one_way: bool | None, most: int) -> list[str]:
    """fio's `reads,writes,trims`: those that matter; one that is left out is as the one before it."""
    parts = [part.strip() for part in text.split(",")][:most]
    reads = parts[0]
    writes = parts[1] if len(parts) > 1 and parts[1] else reads
    if one_way is None:
        return [reads, writes] if len(parts) > 1 else [reads]
    return [writes if one_way else reads]


def _engine(asked: JobOptionValues, work: Converted) -> None:
    option = asked.get("ioengine")
    depth = asked.number("iodepth", 1, 1)
    name = "psync" if option is None else option.value
    direct, buffered = asked.get("direct"), asked.get("buffered")
    past_caches = switch(direct) if direct else (not switch(buffered) if buffered else False)
    one_by_one = name in CALLS or (name == "libaio" and not past_caches)
    if one_by_one:
        if depth > 1:
            of = "libaio, buffered," if name == "libaio" else name
            work.notes.append(f"iodepth: 1, as fio's {of} has one outstanding operation, at any iodepth")
            depth = 1
        if option is not None:
            work.put("engine", "psync", option)
        elif past_caches:
            work.notes.append(
                "ioengine: none is named, which is psync in fio, and here what is cheapest there"
            )
    elif name in QUEUES:
        work.put("engine", "io_uring", option)
    else:
        work.put("engine", name, option)
    work.put("iodepth", depth, asked.get("iodepth"))
    if depth > 1:  # fio hands over one by one unless told
        work.put("iodepth_batch", min(asked.number("iodepth_batch", 1, 1), depth), asked.get("iodepth_batch"))
    work.put("direct", past_caches and name != "mmap", direct or buffered)
    if asked.on("sqthread_poll"):
        work.put("sqthread_poll", True, asked.get("sqthread_poll"))
    if not past_caches and name in (*CALLS, *QUEUES):
        _forgetting(asked, work)
    memory = asked.get("iomem") or asked.get("mem")
    if memory is not None and "huge" in memory.value:
        work.notes.append(
            "iomem: buffers are of ordinary pages, in which requests merge less than in huge ones"
        )


def _forgetting(asked: JobOptionValues, work: Converted) -> None:
    """fio drops cached pages whenever a job begins its bytes anew, unless it is told not to.

    Of a job that writes, too: what is dirty is then handed to the disk, which costs it what it had gained.
    """
    invalidate, again = asked.get("invalidate"), asked.on("time_based") or asked.number("loops", 1, 1) > 1
    if again and (invalidate is None or switch(invalidate)):
        work.put("invalidate", True, invalidate)


def _pace(asked: JobOptionValues, work: Converted) -> None:
    """Rates are of each numjob and each direction in fio, and of all of them here."""
    for key in ("rate", "rate_iops"):
        option = asked.given(key)
        if option is None:
            continue
        parts = [part.strip() for part in option.value.split(",")]
        if work.options["rw"] in ("rw", "randrw"):
            words = "is a pace of each direction, which leadline does not keep apart"
            raise option.fail(
                words, f"write two jobs, one that reads and one that writes, or {leave(option)}"
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
    pause = asked.given("thinktime")
    if pause is not None:
        work.put("thinktime", units.exact_duration(time_ns(pause, "us")), pause)
        if asked.get("thinktime_blocks"):
            work.put(
                "thinktime_blocks", asked.number("thinktime_blocks", 1, 1), asked.get("thinktime_blocks")
            )


def _times(asked: JobOptionValues, work: Converted) -> None:
    for key in ("runtime", "ramp_time"):
        option = asked.given(key)
        if option is not None and key == "ramp_time" and not asked.on("time_based"):
            work.notes.append("ramp_time: none, as the job ends with its size: all that it moves is measured")
        elif option is not None:
            work.put(key, units.exact_duration(time_ns(option, "s")), option)
    if asked.on("time_based"):
        work.put("time_based", True, asked.get("time_based"))


def _order(asked: JobOptionValues, work: Converted) -> None:
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
    elif len(steps(work)) > 1 and work.options.get("percentage_random", 100) == 100:
        work.put("one_map", True, asked.get("bssplit") or asked.get("bs"))


def _content(asked: JobOptionValues, work: Converted) -> None:
    for key in ("buffer_compress_percentage", "dedupe_percentage"):
        option = asked.given(key)
        if option is not None:
            work.put(key, percent(option), option)
    if asked.on("zero_buffers"):
        work.put("buffer_compress_percentage", 100, asked.get("zero_buffers"))
    option = asked.given("verify")
    if option is not None and not is_off(asked.get("do_verify") or option):
        work.put("verify", True, option)


def _syncs(asked: JobOptionValues, work: Converted) -> None:
    if str(work.options["rw"]) in ("read", "randread"):
        return
    for key in ("fsync", "fdatasync"):
        option = asked.given(key)
        if option is not None:
            work.put(key, whole(option), option)
    # fio counts buffered writes as done when the page cache has them, unless it is told.
    synced = asked.given("end_fsync") or asked.given("fsync_on_close")
    work.put("end_fsync", synced is not None and switch(synced), synced)


def _latency(asked: JobOptionValues, work: Converted) -> None:
    bound, percentile = asked.given("latency_target"), asked.get("latency_percentile")
    if bound is None:
        return
    text = percentile.value if percentile else "100"
    share = float(text) if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,15})?", text) else 0.0
    if not 0 < share <= 100:
        at = percentile or bound
        raise at.fail(f"latency_percentile {shorten(text)} is no percentile", "write 50, 95, 99, 99.9 or 100")
    bounded = min(one for one in _LATENCIES if one >= share)
    if bounded != share:
        work.notes.append(f"latency_percentile: {_LATENCIES[bounded]}, which is stricter than {text}")
    work.search = {"latency": _LATENCIES[bounded], "bound": units.exact_duration(time_ns(bound, "us"))}
    work.places["search"] = bound.at


_ONLY_WRITE = ("write", "randwrite")
_LASTING = ("time_based", "runtime", "ramp_time")  # by which jobs that begin at once end at once
_STONEWALL = "separate them by stonewall, or leave the option out with --ignore"
# What holds for every job file; a job's own differences come behind it.
_ALWAYS = (
    "each job is run once in each of 3 blocks, in random order (--blocks 1: once, as fio does)",
    "files that are read, or written over, are written in full beforehand, with data that does not compress"
    " unless the job says so",
)


def is_job_file(name: str, text: str) -> bool:
    """By its name, or by a section where a study has a key."""
    if name.endswith((".fio", ".job")):
        return True
    if name.endswith((".yaml", ".yml")):
        return False
    first = next(
        (line.strip() for line in text.splitlines() if line.strip() and line.strip()[0] not in ";#"), ""
    )
    return re.fullmatch(r"\[[^\],:]+\]", first) is not None


def read_job_file(
    text: str,
    source: str,
    environment: Mapping[str, str],
    ignored: Collection[str],
    read_file: ReadFile,
) -> Document:
    """The study that a job file asks for. Raises SpecError with file and line for what is not supported.

    `ignored` are options that are left out; each must be in the file.
    """
    sections = read_sections(text, source, environment, read_file)
    written = {name for section in sections for name in section.options}
    for name in ignored:
        if name not in written:
            raise SpecError(f"no job has the option {shorten(name)!r}", "leave it out", source="--ignore")
    jobs = [convert(section, ignored) for section in sections]
    _name_apart(jobs)
    _write_over(jobs)
    value: dict[str, Any] = {
        "format": "leadline.study/1",
        "title": f"fio's job file {source.rpartition('/')[2]}"[:200],
        "workloads": {},
        "notes": _notes(jobs, ignored),
    }
    places: dict[Path, WrittenAt] = {(): WrittenAt(source)}
    for group in _groups(jobs):
        _add_work(group, value["workloads"], places)
    return Document(value, places, source)


def _groups(jobs: Sequence[Converted]) -> list[list[Converted]]:
    """Jobs that run at once: those up to the next one that waits for all before it."""
    groups: list[list[Converted]] = []
    for job in jobs:
        if job.begins_group or not groups:
            groups.append([])
        groups[-1].append(job)
    return groups


def _add_work(group: list[Converted], works: dict[str, Any], places: dict[Path, WrittenAt]) -> None:
    first = group[0]
    if len(group) > JOBS_MAX:
        words = f"{len(group)} jobs at once, more than {JOBS_MAX}"
        raise SpecError(words, "write numjobs, or stonewall", source=first.at.source, line=first.at.line)
    places[("workloads", first.name)] = first.at
    if len(group) == 1:
        works[first.name] = dict(first.options)
        if first.search is not None:
            works[first.name]["search"] = first.search
        _place(first, ("workloads", first.name), places)
        return
    lasting = {tuple(job.options.get(key) for key in _LASTING) for job in group}
    alike = len(lasting) == 1 and group[0].options.get("time_based")
    order = "together" if alike else "start_together"
    works[first.name] = {"order": order, "jobs": {job.name: dict(job.options) for job in group}}
    for job in group:
        _check_beside_others(job, end_at_once=order == "together")
        path = ("workloads", first.name, "jobs", job.name)
        places[path] = job.at
        _place(job, path, places)


def _check_beside_others(job: Converted, *, end_at_once: bool) -> None:
    """What a job can be only where no other begins with it, or only where all of them end at once."""
    if job.search is not None:
        at, words = (
            job.places["search"],
            "is for a job that runs alone; others run at the same time as this one",
        )
        raise SpecError(words, "add stonewall", source=at.source, line=at.line, key="latency_target")
    if job.delayed is not None:
        raise job.delayed.fail("is not supported with other jobs: all of them begin at once", _STONEWALL)
    if job.ends_others is not None and not end_at_once:
        words = "would end all jobs with one of them; here each comes to its own end"
        raise job.ends_others.fail(words, f"give all jobs time_based and one runtime, or {_STONEWALL}")


def _place(job: Converted, path: Path, places: dict[Path, WrittenAt]) -> None:
    for key, at in job.places.items():
        places[(*path, key)] = at


def _write_over(jobs: Sequence[Converted]) -> None:
    """What only writes finds a file there that an earlier job made, or that any reads: fio lays out first."""
    read = {name for job in jobs if job.options["rw"] not in _ONLY_WRITE for name in job.files}
    made: set[str] = set()
    for job in jobs:
        if job.options["rw"] in _ONLY_WRITE and "overwrite" not in job.options and job.files & (read | made):
            job.put("overwrite", True)
            job.notes.append("filename: another job has this file, too; so it is there, and is written over")
        made |= job.files


def _name_apart(jobs: Sequence[Converted]) -> None:
    """Names of works, each once."""
    taken: set[str] = set()
    for job in jobs:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "_", job.name).strip("_-")[:50] or "job"
        name, number = plain, 1
        while name in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name)
        job.name = name


def _notes(jobs: Sequence[Converted], ignored: Collection[str]) -> list[str]:
    """What differs, each once, with the jobs that it is said of where these are not all."""
    said: dict[str, list[str]] = {}
    for job in jobs:
        for note in job.notes:
            said.setdefault(note, []).append(job.name)
    notes = [f"{name}: left out, as --ignore says" for name in ignored]
    for note, names in said.items():
        few = "" if len(names) == len(jobs) else f" ({', '.join(names[:3])}{' …' if len(names) > 3 else ''})"
        notes.append(note + few)
    return [*notes, *_ALWAYS]
