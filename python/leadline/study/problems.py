"""What may be written in a study, for the errors that `yamlio.problems` makes of pydantic's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from leadline.yamlio import problems
from leadline.yamlio.problems import Vocabulary
from leadline.yamlio.yaml_source import Path

# What people write who know other tools, and what it is called here (fio's words where fio has one).
SYNONYMS = {
    "ioengine": "engine",
    "blocksize": "bs",
    "block_size": "bs",
    "threads": "numjobs",
    "jobs": "numjobs",
    "filesize": "size",
    "files": "nrfiles",
    "duration": "runtime",
    "time": "runtime",
    "ramp": "ramp_time",
    "readwrite": "rw",
    "depth": "iodepth",
    "queue_depth": "iodepth",
    "rwmixwrite": "rwmixread",
    "rate_process": "arrival",
    "norandommap": "random_distribution",
    "filename": "shared",
    "think_time": "thinktime",
    "tree_depth": "depth",
    "branching": "branch",
    "unique_dir": "private",
    "compress_percentage": "buffer_compress_percentage",
    "repetitions": "blocks",
    "repeat": "blocks",
    "workloads": "works",
    "description": "about",
    "steadystate": "steady_state",
    "stonewall": "order",
}

_INNER = ("jobs", "steady_state", "search", "sweep", "pipeline", "do")  # sections within a work


def suggest(word: str, known: Iterable[str]) -> str:
    """A remedy for an unknown word of a study: the nearest known one, and what there is."""
    return problems.suggest(word, known, SYNONYMS)


def vocabulary(keys: Mapping[str, tuple[str, ...]]) -> Vocabulary:
    """The words of a study. `keys` may stand below a section (`""` is the top, `works` any work)."""
    return Vocabulary(lambda path: keys.get(_section(path), ()), "see docs/study.md", SYNONYMS)


def _section(path: Path) -> str:
    """The name by which `keys` has the keys of the mapping that the last key of `path` stands in."""
    if len(path) == 1:
        return ""
    inside = path[2:-1] if path[0] == "works" else path[1:-1]
    return next((str(part) for part in reversed(inside) if part in _INNER), str(path[0]))
