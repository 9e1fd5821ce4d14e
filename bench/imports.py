"""`make imports-bench`: what becomes of other programs' files: read, refused, or accused, and why.

    python bench/imports.py DIR [--rows FILE]    # writes bench/imports.md; goes on with the lines of FILE

DIR has files as their programs wrote them, in any tree. A file is of the first kind that knows it. Each is
imported (a job file of fio is planned) and shown. To accuse a correct result is worse than to miss a wrong
one, so every reason is counted by itself: whoever changes a reader looks here whether a reason that is not so
came back.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import HERE, Runs, table
from leadline.cli.main import run_command_line

HEAD_BYTES = 1 << 16
REASONS_MAX = 40
_BY_PID = re.compile(r"(.+)\.\d+")
ABOUT = """\
# Files of other programs: read, refused, accused

`make imports-bench ARCHIVE=DIR` imports every file in DIR and counts what leadline says of it. **Refused**:
nothing is made of it. **Accused**: its result is DOUBTFUL or INVALID for a reason that does not hold for
every file of its kind. What holds for every file, such as `published`, says where the metrics come from, and
accuses nobody. No file of an archive is kept here.
"""


@dataclass(frozen=True)
class Outcome:
    """One file: `refused` is the error, `reasons` are codes and doubts of what was made of it."""

    kind: str
    file: str
    refused: str
    reasons: list[str]


@dataclass(frozen=True)
class Kind:
    """A kind of foreign file: how it is known, and the words of the command that reads it."""

    name: str
    knows: Callable[[Path, bytes], bool]
    words: tuple[str, ...]
    planned: bool = False


def _summary(path: Path, head: bytes) -> bool:
    return path.name.endswith(".txt") and "summary" in path.name and b"IOPS" in head


KINDS = (
    Kind("IO500 summary", _summary, ("import", "io500")),
    Kind("fio job file", lambda path, _: path.suffix == ".fio", ("plan",), planned=True),
    Kind(
        "fio result",
        lambda path, head: path.suffix == ".json" and b'"fio version"' in head,
        ("import", "fio"),
    ),
    Kind("strace log", lambda path, _: path.suffix == ".strace", ("import", "strace")),
    Kind(
        "elbencho result",
        lambda _, head: b"[last]" in head or b'"phase_type"' in head,
        ("import", "elbencho"),
    ),
    Kind("Darshan log", lambda path, _: path.suffix == ".darshan", ("import", "darshan")),
)


def sources(archive: Path) -> Iterator[tuple[Kind, Path]]:
    """Every file that some kind knows; of the files FILE.PID of `strace -ff` the one name FILE."""
    seen: set[Path] = set()
    for place, folders, names in os.walk(archive):
        folders.sort()
        for name in sorted(names):
            path = Path(place) / name
            by_pid = _BY_PID.fullmatch(name)
            if by_pid and by_pid[1].endswith(".strace"):
                path = path.with_name(by_pid[1])
            if path in seen or name.startswith("._"):  # what macOS keeps of a file beside it
                continue
            seen.add(path)
            head = b""
            if path.is_file():
                with path.open("rb") as file:
                    head = file.read(HEAD_BYTES)
            kind = next((one for one in KINDS if one.knows(path, head)), None)
            if kind is not None:
                yield kind, path


def judged(kind: Kind, path: Path, archive: Path, scratch: Path) -> Outcome:
    """Import one file, and look what is said of it."""
    out = scratch / "result"
    target = ("--target", f"here={scratch}")
    code, _, errors = _command(*kind.words, str(path), *(target if kind.planned else ("-o", str(out))))
    name = str(path.relative_to(archive))
    if code:
        return Outcome(kind.name, name, _plain(errors, path, scratch) or f"exit code {code}", [])
    if kind.planned:
        return Outcome(kind.name, name, "", [])
    doubts = [line for line in errors.splitlines() if line.startswith("DOUBTFUL: ")]
    _, text, _ = _command("show", str(out), "--json")
    shown = json.loads(text)
    codes = {f"{one['state']} {one['code']}" for cell in shown["cells"] for one in cell["validity"]["codes"]}
    shutil.rmtree(out)
    return Outcome(kind.name, name, "", sorted(codes) + [_plain(one, path, scratch) for one in doubts])


def _command(*words: str) -> tuple[int, str, str]:
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        code = run_command_line(list(words))
    return code, said.getvalue(), complained.getvalue()


def _plain(text: str, path: Path, scratch: Path) -> str:
    return text.replace(str(path), "FILE").replace(str(scratch), "DIR").replace(path.name, "FILE").strip()


def page(outcomes: Sequence[Outcome], about: str) -> str:
    """All of it as Markdown: counts by kind, then every reason with how many files have it."""
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        by_kind[one.kind].append(one)
    rows, parts = [], []
    for kind, found in by_kind.items():
        read = [one for one in found if not one.refused]
        always = set.intersection(*(set(map(_form, one.reasons)) for one in read)) if read else set()
        accused = [one for one in read if set(map(_form, one.reasons)) - always]
        rows.append((kind, len(found), len(read), len(found) - len(read), len(accused)))
        refusals = Counter(_form(one.refused) for one in found if one.refused)
        doubts = Counter(form for one in read for form in set(map(_form, one.reasons)) - always)
        parts += ["", f"## {kind}", ""]
        if always:
            parts.append(f"Of every file: {', '.join(sorted(always))}.\n")
        parts += _listed("refused, because", refusals) + _listed("accused, because", doubts)
    lines = [ABOUT, *((about, "") if about else ())]
    lines += table("kind | >files | >read | >refused | >accused", rows)
    return "\n".join([*lines, *parts]).rstrip() + "\n"


def _listed(title: str, counted: Counter[str]) -> list[str]:
    if not counted:
        return []
    rows = [(form.replace("|", "/"), count) for form, count in counted.most_common(REASONS_MAX)]
    rest = sum(count for _, count in counted.most_common()[REASONS_MAX:])
    rows += [(f"{len(counted) - REASONS_MAX} other reasons", rest)] if rest else []
    return [*table(f"{title} | >files", rows), ""]


def _form(text: str) -> str:
    """A reason without its numbers and its remedy, so that the same reason of two files is one."""
    plain = " ".join(text.partition("\n  ")[0].split()).removeprefix("leadline: ")
    return re.sub(r"(?<![A-Za-z_])\d[\d.,]*", "N", plain)[:300]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--rows", type=Path, help="what was said of each")
    parser.add_argument("--about", default="", help="where the files are from, for the page")
    parser.add_argument("--kind", help="this kind only; nothing is written to the page")
    asked = parser.parse_args()
    archive = asked.archive.resolve(strict=True)
    rows = Runs(asked.rows) if asked.rows else None
    outcomes = [Outcome(**row) for row in rows or ()]
    done = {one.file for one in outcomes}
    found = sorted(sources(archive), key=lambda one: KINDS.index(one[0]))
    with tempfile.TemporaryDirectory(prefix="imports-") as place:
        for kind, path in found:
            if asked.kind in (None, kind.name) and str(path.relative_to(archive)) not in done:
                outcomes.append(judged(kind, path, archive, Path(place)))
                if rows:
                    rows.keep(asdict(outcomes[-1]))
    text = page(outcomes, asked.about)
    if asked.kind is None:
        (HERE / "imports.md").write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
