"""What two results of one name were measured with: the jobs, the access methods, the clients, the releases.

A ratio of two different jobs is no gain and no loss. What else differs may be the very question, and is said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.errors import UsageError
from leadline.foreign import reading
from leadline.plan.model import Plan, PlannedCell
from leadline.study.kinds import compared_words
from leadline.units import format_size

ACROSS_JOBS = "--across-jobs"
_METHOD = "access method"
_MOUNT_OPTION = "mount option "
# What an access method brings along: between two methods it belongs to them, and not to the job.
_OF_METHOD = frozenset({"engine", "direct"})
# The program that makes the load: two of them are compared on purpose.
_GENERATOR = "generator"
# Mount options that say who asks and where, and not how.
_PLACES = frozenset(
    {"addr", "clientaddr", "fd", "group_id", "lowerdir", "mountaddr", "upperdir", "user_id", "workdir"}
)
_SHOWN_MAX, _NAMED_MAX, _TEXT_MAX = 12, 3, 60


@dataclass(frozen=True)
class Conditions:
    """Of one cell, in words by name: its `job`, the `access` to storage with its software, the `client`."""

    job: Mapping[str, str]
    access: Mapping[str, str]
    client: Mapping[str, str]

    def digests(self) -> tuple[str, str]:
        """Of the job and of all else: equal texts are equal conditions."""
        return _digest(self.job), _digest({**self.access, **self.client})


def conditions_of(manifest: Mapping[str, Any], plan: Plan) -> dict[str, Conditions]:
    """Of each cell of a study's result, by its id."""
    client = _client(manifest)
    access = {target.name: _access(manifest, target.name) for target in plan.targets}
    return {
        cell.id: Conditions(
            _job(manifest, plan, cell),
            {**access.get(cell.target, {}), _GENERATOR: compared_words(cell.job).get(_GENERATOR, "")},
            client,
        )
        for cell in plan.cells
    }


def stored_conditions(path: Path, manifest: Mapping[str, Any]) -> dict[str, Conditions]:
    """The same of a result as it lies there. Raises ResultError where its plan is damaged."""
    with reading(path):
        return conditions_of(manifest, Plan.from_json(manifest["plan"]))


def _job(manifest: Mapping[str, Any], plan: Plan, cell: PlannedCell) -> dict[str, str]:
    """The job, what runs beside it, and on how many clients."""
    words = {name: text for name, text in compared_words(cell.job).items() if name != _GENERATOR}
    hosts, options = manifest.get("hosts"), manifest.get("options") or {}
    words |= {"kind": cell.kind, "clients": str(len(hosts) if isinstance(hosts, list) else 1)}
    if cell.group is not None:
        others = sorted(one.work for one in plan.cells if one.group == cell.group and one.id != cell.id)
        words |= {"runs with": ", ".join(others), "order": str(cell.order)}
    if cell.search is not None:
        words["search"] = json.dumps(cell.search.model_dump(mode="json"), sort_keys=True)
    cold = cell.job.reads and not cell.job.direct and options.get("drop_caches")
    return words | {"caches dropped": "yes" if cold else "no"}


def _access(manifest: Mapping[str, Any], target: str) -> dict[str, str]:
    facts = manifest.get("targets", {}).get(target, {})
    mount = [str(one).partition("=") for one in facts.get("options") or ()]
    ceph = facts.get("ceph")
    release = ceph.get("client_version") if isinstance(ceph, dict) else None
    found = {_METHOD: facts.get("access"), "file system": facts.get("file_system")}
    found |= {"release of the Ceph client": release, "release of leadline": manifest.get("version")}
    options = {f"{_MOUNT_OPTION}{name}": value or "set" for name, _, value in mount if name not in _PLACES}
    return {name: str(value) for name, value in {**found, **options}.items() if value is not None}


def _client(manifest: Mapping[str, Any]) -> dict[str, str]:
    host = manifest.get("host") or {}
    names = {"host": "host", "kernel": "kernel", "cpu_model": "CPU", "cpus_usable": "CPUs"}
    found = {name: str(host[key]) for key, name in names.items() if host.get(key) is not None}
    memory = str(host.get("memory_bytes", ""))
    return found | ({"memory": format_size(int(memory))} if memory.isdecimal() and len(memory) < 20 else {})


@dataclass(frozen=True)
class Difference:
    """What differs between `base` and `other`, in words, and in which `cells`."""

    name: str
    base: str
    other: str
    cells: tuple[str, ...]

    def words(self, sides: tuple[str, str], *, every: bool) -> str:
        """`bs: 4k in A, 64k in B (randread)`; without the cells where it is in every one."""
        named = ", ".join(self.cells[:_NAMED_MAX]) + (", …" if len(self.cells) > _NAMED_MAX else "")
        words = f"{self.name}: {_short(self.base)} in {sides[0]}, {_short(self.other)} in {sides[1]}"
        return words if every else f"{words} ({named})"


@dataclass(frozen=True)
class Differences:
    """Between the `cells` of two results that are compared; `sides` is how the two are called."""

    sides: tuple[str, str]
    cells: int
    jobs: tuple[Difference, ...] = ()
    access: tuple[Difference, ...] = ()
    client: tuple[Difference, ...] = ()

    def job_words(self) -> tuple[str, ...]:
        """A sentence for each difference of the jobs."""
        return self._words(self.jobs)

    def notes(self, *, clients: bool = True) -> tuple[str, ...]:
        """What the reader must know before any ratio, the jobs first; the access; the `clients`."""
        jobs, around = self.job_words(), self._words((*self.access, *(self.client if clients else ())))
        first = (f"DIFFERENT JOBS under one name, compared because of {ACROSS_JOBS}: {'; '.join(jobs)}",)
        return (*(first if jobs else ()), *around)

    def _words(self, found: Sequence[Difference]) -> tuple[str, ...]:
        words = [one.words(self.sides, every=len(one.cells) == self.cells) for one in found[:_SHOWN_MAX]]
        rest = len(found) - len(words)
        return (*words, *([f"{rest} more differences"] if rest else []))


def differences_of(
    pairs: Sequence[tuple[str, Conditions, Conditions]], sides: tuple[str, str] = ("A", "B")
) -> Differences:
    """What differs in cells of one name: each with its name, and how it was measured in both."""
    jobs, access, client = (
        _merged((name, part) for name, base, other in pairs for part in unlike(base, other))
        for unlike in (_of_jobs, _of_access, _of_clients)
    )
    return Differences(sides, len({name for name, _, _ in pairs}), jobs, access, client)


def require_same_jobs(
    found: Differences, where: tuple[Path | str, Path | str], *, across: bool, what: str = "one name"
) -> None:
    """Raises UsageError where jobs of one name differ, with the list, unless that is asked for (`across`)."""
    words = found.job_words()
    if words and not across:
        raise UsageError(
            f"{where[0]} ({found.sides[0]}) and {where[1]} ({found.sides[1]}) ran different jobs under"
            f" {what}: {'; '.join(words)}",
            f"run the same job in both, or compare them all the same: {ACROSS_JOBS}",
        )


_Unlike = Iterator[tuple[str, str, str]]  # name and both texts


def _of_jobs(base: Conditions, other: Conditions) -> _Unlike:
    if base.job["kind"] != other.job["kind"]:  # their options have little in common
        yield "kind of workload", base.job["kind"], other.job["kind"]
        return
    brought = _OF_METHOD if _methods_differ(base, other) else frozenset()
    yield from (one for one in _unlike(base.job, other.job, lacking="") if one[0] not in brought)


def _of_access(base: Conditions, other: Conditions) -> _Unlike:
    if not _methods_differ(base, other):
        yield from _unlike(base.access, other.access, lacking=_MOUNT_OPTION)
        return
    for name, first, second in _unlike(base.access, other.access):
        if not name.startswith(_MOUNT_OPTION):  # those of two file systems have nothing in common
            yield name, first, second
    yield from (one for one in _unlike(base.job, other.job) if one[0] in _OF_METHOD)


def _of_clients(base: Conditions, other: Conditions) -> _Unlike:
    return _unlike(base.client, other.client)


def _methods_differ(base: Conditions, other: Conditions) -> bool:
    return base.access.get(_METHOD) != other.access.get(_METHOD)


def _unlike(base: Mapping[str, str], other: Mapping[str, str], *, lacking: str | None = None) -> _Unlike:
    """What both have, and otherwise; and what one of them lacks where its name begins with `lacking`."""
    for name in dict.fromkeys((*base, *other)):
        first, second = (side.get(name, "not set") for side in (base, other))
        counts = (name in base and name in other) or (lacking is not None and name.startswith(lacking))
        if first != second and counts:
            yield name, first, second


def _merged(found: Iterator[tuple[str, tuple[str, str, str]]]) -> tuple[Difference, ...]:
    """The same difference in several cells is one."""
    cells: dict[tuple[str, str, str], list[str]] = {}
    for name, part in found:
        cells.setdefault(part, []).append(name)
    return tuple(Difference(*part, cells=tuple(dict.fromkeys(names))) for part, names in cells.items())


def _short(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"


def _digest(words: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode("utf-8", "replace")).hexdigest()[:16]
