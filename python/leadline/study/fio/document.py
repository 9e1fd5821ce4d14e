"""A job file as a study's document: groups of jobs to works, and what is otherwise than in fio, once each."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from leadline.errors import SpecError
from leadline.study.fio.job_options import Converted
from leadline.study.fio.jobs import convert
from leadline.study.fio.sections import ReadFile, read_sections
from leadline.study.work import JOBS_MAX
from leadline.yamlio.yaml_source import Document, Path, WrittenAt, shorten

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
        "works": {},
        "notes": _notes(jobs, ignored),
    }
    places: dict[Path, WrittenAt] = {(): WrittenAt(source)}
    for group in _groups(jobs):
        _add_work(group, value["works"], places)
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
    places[("works", first.name)] = first.at
    if len(group) == 1:
        works[first.name] = dict(first.options)
        if first.search is not None:
            works[first.name]["search"] = first.search
        _place(first, ("works", first.name), places)
        return
    lasting = {tuple(job.options.get(key) for key in _LASTING) for job in group}
    alike = len(lasting) == 1 and group[0].options.get("time_based")
    order = "together" if alike else "start_together"
    works[first.name] = {"order": order, "jobs": {job.name: dict(job.options) for job in group}}
    for job in group:
        _check_beside_others(job, end_at_once=order == "together")
        path = ("works", first.name, "jobs", job.name)
        places[path] = job.at
        _place(job, path, places)


def _check_beside_others(job: Converted, *, end_at_once: bool) -> None:
    """What a job can be only where no other begins with it, or only where all of them end at once."""
    if job.search is not None:
        at, words = job.places["search"], "is of a job that runs alone; others run beside this one"
        raise SpecError(words, "add stonewall", source=at.source, line=at.line, key="latency_target")
    if job.delayed is not None:
        raise job.delayed.fail("is not supported beside other jobs: all of them begin at once", _STONEWALL)
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
