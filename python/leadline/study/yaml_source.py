"""A study's YAML: what may be written in it, what its errors say, and the engine named like YAML's null."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from leadline.study.schemes import storageless
from leadline.yamlio import problems
from leadline.yamlio.problems import Vocabulary
from leadline.yamlio.yaml_source import Document, DocumentKind, Path, read_yaml

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
    "description": "about",
    "steadystate": "steady_state",
    "stonewall": "order",
}

RENAMED: Mapping[Path, str] = {("works",): "workloads"}  # keys that had another name, which is still read
_INNER = ("jobs", "steady_state", "search", "sweep", "pipeline", "do")  # sections within a work


def suggest(word: str, known: Iterable[str]) -> str:
    """A remedy for an unknown word of a study: the nearest known one, and what there is."""
    return problems.suggest(word, known, SYNONYMS)


def vocabulary(keys: Mapping[str, tuple[str, ...]]) -> Vocabulary:
    """The words of a study. `keys` may stand below a section (`""` is the top, `workloads` any workload)."""
    return Vocabulary(lambda path: keys.get(_section(path), ()), "see docs/study.md", SYNONYMS)


def _section(path: Path) -> str:
    """The name by which `keys` has the keys of the mapping that the last key of `path` stands in."""
    if len(path) == 1:
        return ""
    inside = path[2:-1] if path[0] == "workloads" else path[1:-1]
    return next((str(part) for part in reversed(inside) if part in _INNER), str(path[0]))


def read_study(text: str, source: str, environment: Mapping[str, str]) -> Document:
    """A study, or a value of one. Raises SpecError with file and line for whatever is wrong in it."""
    kind = DocumentKind(
        noun="study",
        manual="see docs/study.md",
        example="see `leadline studies quick` for an example",
        instead_of_merge="put shared options under `defaults`",
        nulls={"engine": storageless().name},
        renamed=RENAMED,
    )
    return read_yaml(text, source, environment, kind)
