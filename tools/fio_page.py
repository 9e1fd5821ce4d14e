"""Writes the tables of docs/fio.md: what becomes of fio's options, and of job files in directories.

python tools/fio_page.py [DIR [SUITES]]    DIR: fio's own examples (Debian's package fio-examples)
                                           SUITES: OWNER/NAME/PATH, as the suites' repositories have them
Those whose suites call fio with options are written as job files in tests/data/fio/suites.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from leadline.errors import SpecError
from leadline.study import schemes
from leadline.study.fio.document import read_job_file
from leadline.study.fio.job_options import How, KnownOption, known_options
from leadline.study.study import parse_study

PAGE = Path(__file__).parent.parent / "docs" / "fio.md"
WRITTEN = Path(__file__).parent.parent / "tests" / "data" / "fio" / "suites"
BEGIN, END = "<!-- made by tools/fio_page.py: {} -->", "<!-- end -->"
_HEADS: tuple[tuple[How, str], ...] = (
    ("kept", "Keep their meaning"),
    ("free", "Taken, and change nothing here"),
)


def page(examples: Path | None = None, suites: Path | None = None) -> str:
    """The whole page, with its tables made anew; those of job files only where these are given."""
    made = {"options": list(_options()), "written": list(_written())}
    if examples is not None:
        made["examples"] = list(_examples(examples))
    if suites is not None:
        made["suites"] = list(_suites(suites))
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in made.items():
        begin = BEGIN.format(name)
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(END)}", re.DOTALL)
        table = "\n".join([begin, *lines, END])
        text = pattern.sub(lambda _, table=table: table, text)
    return text


def _options() -> Iterator[str]:
    names: dict[KnownOption, list[str]] = {}
    for name, known in known_options().items():
        names.setdefault(known, []).append(name)
    for how, head in _HEADS:
        listed = [f"`{'`, `'.join(every)}`" for known, every in names.items() if known.how == how]
        yield f"{head}: {', '.join(listed)}."
        yield ""
    for how, head in (("differs", "what is otherwise"), ("refused", "refused, because or in favour of")):
        yield f"| option | {head} |"
        yield "|---|---|"
        for known, every in names.items():
            if known.how == how:
                yield f"| `{'`, `'.join(every)}` | {known.words} |"
        yield ""
    yield "Fio has these on by default; with 0 they differ:"
    yield ""
    yield "| option | with 0 |"
    yield "|---|---|"
    for known, every in names.items():
        if known.how == "kept_on":
            yield f"| `{'`, `'.join(every)}` | {known.words} |"
    yield ""


class _AnyVariable(dict[str, str]):
    """An environment in which every variable is set, as an example's are by whoever runs it."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "1"


def _examples(directory: Path) -> Iterator[str]:
    yield "| job file | here |"
    yield "|---|---|"
    for path in sorted(directory.glob("*.fio")):
        yield f"| `{path.name}` | {_verdict(path)} |"


def _suites(directory: Path) -> Iterator[str]:
    yield "| suite | job file | here |"
    yield "|---|---|---|"
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        owner, name, *within = path.relative_to(directory).parts
        yield f"| {owner}/{name} | `{'/'.join(within)}` | {_verdict(path)} |"


def _written() -> Iterator[str]:
    yield "| job file | whose options | here |"
    yield "|---|---|---|"
    for path in sorted(WRITTEN.glob("*.fio")):
        source = re.search(r"github\.com/([^)]*)\)", path.read_text(encoding="utf-8"))
        yield f"| `{path.name}` | {source[1] if source else ''} | {_verdict(path)} |"


def _verdict(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        study = parse_study(read_job_file(text, path.name, _AnyVariable(), (), Path.read_text))
    except SpecError as error:
        words = error.message.rpartition(f"{error.key}: ")[2]
        return f"refused: line {error.line}, `{error.key}`: {words}"
    count = sum(len(work.jobs or (1,)) for work in study.workloads.values())
    only = (
        "" if schemes.storageless().name not in text else f", with `--target {schemes.storageless().name}://`"
    )
    return f"runs: {count} job{'' if count == 1 else 's'}{only}"


if __name__ == "__main__":
    PAGE.write_text(page(*map(Path, sys.argv[1:])), encoding="utf-8")
