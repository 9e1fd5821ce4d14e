"""What a command line changes of a study before it is validated: `--set`, `--bound`, `-- COMMAND`.

So it is checked like the file. `--bound p99=20ms` makes a search of every work that has a rate.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from leadline.errors import SpecError
from leadline.study.kinds import ASKED, JOB_OPTIONS, PLANNED, is_list
from leadline.study.schemes import storageless
from leadline.study.study import KNOWN_KEYS
from leadline.study.work import Latency
from leadline.study.yaml_source import RENAMED, read_study, suggest
from leadline.yamlio.yaml_source import Document, Path, WrittenAt, name_of

BOUND = "--bound "  # what changes of a study begin with that are none of `--set`
LATENCIES: tuple[str, ...] = get_args(Latency)
_EXAMPLE = "write for example: --bound p99=20ms"
_OTHER_NAMES = {"average": "mean", "avg": "mean", "median": "p50"}


def apply_bound(text: str, study: dict[str, Any], places: dict[Path, WrittenAt]) -> None:
    """Let every work that can be searched be a search. Raises SpecError where none can.

    Jobs of a composition, sweeps and works without a rate stay what they are.
    """
    written = text.removeprefix(BOUND)
    latency, equals, bound = (part.strip() for part in written.partition("="))
    source = text
    if not equals or not bound:
        raise SpecError("a bound is LATENCY=TIME", _EXAMPLE, source=source)
    if latency not in LATENCIES:
        remedy = suggest(_OTHER_NAMES.get(latency, latency), LATENCIES)
        raise SpecError(f"{latency!a} is no latency that can be bounded", remedy, source=source)
    works = study.get("workloads")
    chosen = [name for name, work in _as_mapping(works).items() if _is_searchable(work, study)]
    if not chosen:
        raise SpecError(
            "no workload of this study has a rate to search for",
            "it is for workloads with `rw` and one job: name another study, or leave --bound out",
            source=source,
        )
    for name in chosen:
        work = _as_mapping(works)[name]
        search = dict(_as_mapping(work.get("search"))) | {"latency": latency, "bound": bound}
        work["search"] = search
        place = WrittenAt(source)
        places |= {("workloads", name, "search", key): place for key in ("latency", "bound")}
        places.setdefault(("workloads", name, "search"), place)


def _is_searchable(work: object, study: Mapping[str, Any]) -> bool:
    """By the words that choose a kind of work, as they may also stand in `defaults` and `factors`."""
    if not isinstance(work, dict) or "jobs" in work or "sweep" in work:
        return False
    said = {*work, *_as_mapping(study.get("defaults")), *_as_mapping(study.get("factors"))}
    paced = {face.told_by for face in PLANNED.values() if face.paces and face.no_rate is None}
    others = {face.told_by for face in PLANNED.values()} - paced
    return bool(said & paced) and not said & others


def _as_mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


TOP_LEVEL = ("title", "about", "label", "blocks", "seed")
_TEXTS = ("title", "about", "label")  # `{work}` would be a mapping in YAML
_SECTIONS = ("defaults", "factors", "compare", "enough", "observe", "limits")
_EXAMPLES = (
    "write KEY=VALUE, for example --set size=64M, --set workloads.read_1m.bs=4M or --set factors.bs=[4k,64k]"
)


def apply_overrides(document: Document, sets: Iterable[str], environment: Mapping[str, str]) -> Document:
    """The document with each override applied in order: KEY=VALUE, or `--bound LATENCY=TIME`.

    Raises SpecError that names the option.
    """
    value: dict[str, Any] = copy.deepcopy(document.value) if isinstance(document.value, dict) else {}
    places = dict(document.places)
    for text in sets:
        if text.startswith(BOUND):
            apply_bound(text, value, places)
            continue
        key, equals, written = text.partition("=")
        source = f"--set {text}"
        if not equals or not key.strip():
            raise SpecError("no KEY=VALUE", _EXAMPLES, source=source)
        level = _parse(key.strip(), written, source, environment)
        for path in _paths(key.strip(), value, source):
            _store(value, path, level, source)
            places = {known: place for known, place in places.items() if known[: len(path)] != path}
            places[path] = WrittenAt(source)
    given = {path[0] for path, place in places.items() if place.source.startswith("--set")}
    if "blocks" in given and "enough" not in given:
        value.pop("enough", None)  # who says how many blocks wants these
    return document.with_value(value, places)


def apply_application(document: Document, command: tuple[str, ...], input_path: str | None) -> Document:
    """The document with a command line's `-- COMMAND` and `--input` in every work that runs a command.

    Raises SpecError where the study has no such work.
    """
    value: dict[str, Any] = copy.deepcopy(document.value) if isinstance(document.value, dict) else {}
    places = dict(document.places)
    works = _mapping(value, "workloads")
    given = {"command": (list(command) or None, "-- COMMAND"), "input": (input_path, "--input")}
    for key, (level, source) in given.items():
        kinds = {PLANNED[kind].told_by for kind, options in ASKED.items() if key in options.model_fields}
        chosen = [name for name, work in works.items() if isinstance(work, dict) and kinds & set(work)]
        if level is None:
            continue
        if not chosen:
            raise SpecError(
                "no workload of this study runs a command",
                "leave it out, or name a study that has one, for example: analysis",
                source=source,
            )
        for name in chosen:
            _without_replaced(key, works[name], name, places)
            works[name][key] = level
            places[("workloads", name, key)] = WrittenAt(source)
    return document.with_value(value, places)


def _without_replaced(key: str, work: dict[str, Any], name: str, places: Mapping[Path, WrittenAt]) -> None:
    """What is named takes the place of what the study would make instead, such as a film; what was asked for
    with --set stays, and contradicts it."""
    for option in (one for face in PLANNED.values() for one in face.replaced_by.get(key, ())):
        place = places.get(("workloads", name, option))
        if option in work and not (place and place.source.startswith("--set")):
            del work[option]


def _takes_list(option: object) -> bool:
    return option in JOB_OPTIONS and is_list(str(option))


def _parse(key: str, written: str, source: str, environment: Mapping[str, str]) -> Any:
    """VALUE as YAML; free texts as they are; `engine=null` means the engine of that name."""
    if not written.strip():
        raise SpecError("has no value", _EXAMPLES, source=source, key=key)
    if key in _TEXTS:
        return written
    value = read_study(written, source, environment).value
    return storageless().name if value is None and key.rpartition(".")[2] == "engine" else value


def _paths(key: str, study: dict[str, Any], source: str) -> list[Path]:
    parts = key.split(".")
    parts[0] = name_of((parts[0],), RENAMED)
    if len(parts) == 1:
        return _plain_key(key, study, source)
    head, last = parts[0], parts[-1]
    if head == "workloads" and len(parts) >= 3:
        return [_path_in_work(key, parts, study, source)]
    if head == "defaults" and len(parts) == 3 and parts[1] == "steady_state":
        _check_option(key, last, KNOWN_KEYS["steady_state"], source)
        return [("defaults", "steady_state", last)]
    if head in _SECTIONS and len(parts) == 2:
        _check_option(key, last, KNOWN_KEYS[head], source)
        return [(head, last)]
    if head == "targets":
        raise _unknown(key, source, "targets are not set this way", "write --target NAME=PATH")
    raise _unknown(
        key, source, "unknown key", suggest(head, ("workloads.NAME.OPTION", *(f"{s}.KEY" for s in _SECTIONS)))
    )


def _path_in_work(key: str, parts: list[str], study: dict[str, Any], source: str) -> Path:
    """`workloads.NAME.OPTION`, `….jobs.JOB.OPTION`, `….steady_state.KEY`, `….search.KEY`, `….sweep.KEY`,
    `….sweep.over.OPTION`."""
    works, name, last = _mapping(study, "workloads"), parts[1], parts[-1]
    if name not in works:
        raise _unknown(key, source, f"{name!r} is no workload of the study", suggest(name, works))
    if len(parts) == 3:
        _check_option(key, last, (*JOB_OPTIONS, "order"), source)
        return _reach(study, ("workloads", name, last))
    if len(parts) == 5 and parts[2:4] == ["sweep", "over"]:
        _check_option(key, last, JOB_OPTIONS, source)
        return ("workloads", name, "sweep", "over", last)
    if len(parts) == 4 and parts[2] in ("steady_state", "search", "sweep"):
        _check_option(key, last, KNOWN_KEYS[parts[2]], source)
        return ("workloads", name, parts[2], last)
    jobs = _jobs(works[name])
    if len(parts) == 5 and parts[2] == "jobs":
        if parts[3] not in jobs:
            raise _unknown(key, source, f"{parts[3]!r} is no job of workload {name}", suggest(parts[3], jobs))
        _check_option(key, last, JOB_OPTIONS, source)
        return _reach(study, ("workloads", name, "jobs", parts[3], last))
    forms = "workloads.NAME.OPTION", "workloads.NAME.jobs.JOB.OPTION", "workloads.NAME.search.KEY"
    raise _unknown(key, source, "unknown key", f"known are {', '.join(forms)}")


def _jobs(work: object) -> dict[str, Any]:
    """The jobs of a composition as written; none for a work of one job."""
    jobs = work.get("jobs") if isinstance(work, dict) else None
    return jobs if isinstance(jobs, dict) else {}


def _plain_key(key: str, study: dict[str, Any], source: str) -> list[Path]:
    """A top-level scalar, or an option of every work (a factor of that name keeps this one level)."""
    if key in TOP_LEVEL:
        return [(key,)]
    _check_option(key, key, (*JOB_OPTIONS, *TOP_LEVEL), source)
    if key in _mapping(study, "factors"):
        return [("factors", key)]
    works = _mapping(study, "workloads")
    paths: list[Path] = [("workloads", name, key) for name in works]
    for name, work in works.items():  # where a job of a composition says it itself, that would hold over it
        said = [job for job, options in _jobs(work).items() if isinstance(options, dict) and key in options]
        paths += [("workloads", name, "jobs", job, key) for job in said]
    return paths


def _reach(study: dict[str, Any], path: Path) -> Path:
    """The path itself, unless a factor gives the option: then the override could have no effect."""
    option, work = path[-1], _mapping(study, "workloads").get(str(path[1]))
    varies = work.get("varies") if isinstance(work, dict) else None
    if option in _mapping(study, "factors") and (not isinstance(varies, list) or option in varies):
        raise SpecError(
            f"{option} is a factor, which overrides workloads",
            f"write --set factors.{option}=[…]",
            source=f"--set {'.'.join(str(part) for part in path)}",
        )
    return path


def _check_option(key: str, word: str, known: Iterable[str], source: str) -> None:
    names = tuple(known)
    if word not in names:
        raise _unknown(key, source, "unknown key", suggest(word, names))


def _unknown(key: str, source: str, message: str, remedy: str) -> SpecError:
    return SpecError(message, remedy, source=source, key=key)


def _mapping(study: dict[str, Any], key: str) -> dict[str, Any]:
    return _as_mapping(study.get(key))


def _store(study: dict[str, Any], path: Path, level: Any, source: str) -> None:
    head, option = path[0], path[-1]
    if (
        isinstance(level, list)
        and head in ("workloads", "defaults")
        and not (_takes_list(option) or "over" in path[2:-1])
    ):
        raise SpecError(
            "a list makes a factor of it", f"write --set factors.{option}=[…]", source=source, key=str(option)
        )
    inner: Any = study
    for part in path[:-1]:
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            return  # the file itself is wrong here: validation says so, with its line
    inner[option] = [level] if head == "factors" and not isinstance(level, list) else level
