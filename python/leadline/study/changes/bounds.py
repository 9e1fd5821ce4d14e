"""`--bound p99=20ms`: every work that has a rate becomes a search for the highest one under that latency.

It changes a study before it is validated, as `--set` does, so that it is checked like the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from leadline.errors import SpecError
from leadline.study.kinds import PLANNED
from leadline.study.problems import suggest
from leadline.study.work import Latency
from leadline.yamlio.yaml_source import Path, WrittenAt

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
    works = study.get("works")
    chosen = [name for name, work in _mapping(works).items() if _is_searchable(work, study)]
    if not chosen:
        raise SpecError(
            "no work of this study has a rate to be searched for",
            "it is for works with `rw`, one job each: name another study, or leave --bound out",
            source=source,
        )
    for name in chosen:
        work = _mapping(works)[name]
        search = dict(_mapping(work.get("search"))) | {"latency": latency, "bound": bound}
        work["search"] = search
        place = WrittenAt(source)
        places |= {("works", name, "search", key): place for key in ("latency", "bound")}
        places.setdefault(("works", name, "search"), place)


def _is_searchable(work: object, study: Mapping[str, Any]) -> bool:
    """By the words that choose a kind of work, as they may also stand in `defaults` and `factors`."""
    if not isinstance(work, dict) or "jobs" in work or "sweep" in work:
        return False
    said = {*work, *_mapping(study.get("defaults")), *_mapping(study.get("factors"))}
    paced = {face.told_by for face in PLANNED.values() if face.paces and face.no_rate is None}
    others = {face.told_by for face in PLANNED.values()} - paced
    return bool(said & paced) and not said & others


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
