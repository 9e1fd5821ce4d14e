"""Job files, run by fio and by leadline in turns: bytes that are moved, and rates.

    python bench/fio_examples.py DIR... --directory /on/the/disk      writes its section of bench/results.md

Each DIR holds job files: Debian's package fio-examples, or those of a suite. Each is run by both as
it is, but for what would take hours: sizes, times and loops are cut, and what names a device or a
directory is left out. Before each job both have the host's disks synced and its caches dropped (root).
The section is written anew after each file, so that a run which ends early
loses one; rows of other files stay.

What may be the reason of a difference is tried by rows of their own: an option that both are given
(`--add`), caches that stay as they are (`--kept`), or fio in leadline's place (`--twice`).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psutil

from harness import PROGRAM, RESULTS, ROOT, made, put, scratch, spread, table, text
from leadline.errors import SpecError
from leadline.study.fio.document import read_job_file
from leadline.study.fio.sections import FioOption, size, time_ns
from leadline.study.study import parse_study
from leadline.yamlio.yaml_source import WrittenAt

MIB = 1 << 20
SIZE_BYTES, RUNTIME_S, RAMP_S, LOOPS, NUMJOBS = 256 * MIB, 2, 1, 100, 4
LIMIT_S = 150.0
SECTION = "job files"
SURE_PAIRS = 6  # all of fewer leave 1 out by chance too often
MEASURED = (0, 3)  # 3: leadline says that a figure is not to be used, as of jobs so short
# Nothing of what was before is left in memory or on its way to the disk.
_CLEAN = "sync && echo 3 | tee /proc/sys/vm/drop_caches"
_OPTION = re.compile(r"^\s*([a-z_]+)\s*=\s*([^;#\n]*?)\s*(?:[;#].*)?$")
_ROW = re.compile(r"^\| (`[^`]+\.fio`(?: with `[^`]+`)?) \|")
_PLACES = ("directory", "filename")
_OTHER_SEEDS = 1000  # more than there are pairs


Side = Callable[[Path, Path, int, bool], "dict[str, Done]"]


class NotEndedError(Exception):
    """One of both had to be killed."""


@dataclass(frozen=True)
class Done:
    """A job's bytes, and how many of them each second; `ended`: by its bytes, and not by the clock.

    `cpu_ns` is its threads' time on a processor for each byte, `busy` which share of their time that was;
    `unusable` are leadline's reasons why the figure must not be used.
    """

    bytes: int
    bytes_per_s: float
    cpu_ns: float
    busy: float
    ended: bool
    unusable: str = ""


@dataclass(frozen=True)
class Pairing:
    """Who run a job file in turns, what is `added` to its options for both, where, and from which state."""

    sides: tuple[Side, Side]
    added: tuple[str, ...]
    place: Path
    caches_kept: bool


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("examples", type=Path, nargs="+")
    parser.add_argument("--directory", type=Path, default=ROOT / "target", help="on a disk")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--only", action="append", metavar="NAME", help="this job file; may be repeated")
    parser.add_argument(
        "--add", action="append", default=[], metavar="OPTION=VALUE", help="of all jobs: rows of their own"
    )
    parser.add_argument(
        "--twice", action="store_true", help="fio against itself: what the disk alone scatters"
    )
    parser.add_argument("--kept", action="store_true", help="drop no caches before a job")
    parser.add_argument("--print", action="store_true", help="print the section, and write nothing")
    asked = parser.parse_args()
    files = [path for one in asked.examples for path in sorted(one.glob("*.fio")) if _runs(path)]
    chosen = [path for path in files if not asked.only or path.stem in asked.only]
    rows = {} if asked.print else _rows_there()
    with scratch("leadline-bench", asked.directory.resolve()) as place:  # fio runs in it
        for path in chosen:
            print(path.name, file=sys.stderr, flush=True)
            words = (("fio twice", asked.twice), ("caches kept", asked.kept))
            with_ = [word for word, is_so in words if is_so] + asked.add
            name = f"`{path.name}`" + (f" with `{' '.join(with_)}`" if with_ else "")
            sides = (_by_fio, _by_fio_again if asked.twice else _by_leadline)
            found = _rows(path, Pairing(sides, tuple(asked.add), place, asked.kept), asked.rounds)
            rows[name] = [f"| {name} {row}" for row in found]
            if not asked.print:
                put(SECTION, section(rows))
    if asked.print:
        print("\n".join(section(rows)))
    return 0


def section(rows: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The section's lines."""
    prose = text("fio")
    limits = {
        "size": SIZE_BYTES // MIB,
        "runtime": RUNTIME_S,
        "ramp": RAMP_S,
        "loops": LOOPS,
        "numjobs": NUMJOBS,
    }
    yield from [
        "## Job files, run by fio and by leadline",
        "",
        made(),
        "",
        prose["about"].format(**limits),
        "",
    ]
    if any("|  |" in line for lines in rows.values() for line in lines):
        yield from [prose["older"], ""]
    headings = "job file | job | bytes | leadline / fio | CPU, fio / leadline | busy: fio, leadline | >pairs"
    yield from table(headings, ())
    for _, lines in sorted(rows.items()):
        yield from lines


def _rows_there() -> dict[str, list[str]]:
    """By job file the rows that the section has already."""
    rows: dict[str, list[str]] = {}
    for line in RESULTS.read_text(encoding="utf-8").splitlines():
        if match := _ROW.match(line):
            rows.setdefault(match[1], []).append(line)
    return rows


def _rows(path: Path, pairing: Pairing, rounds: int) -> Iterator[str]:
    """For each job of a file what follows its name in the table."""
    try:
        pairs = [_pair(path, pairing, turn) for turn in range(rounds)]
    except NotEndedError as error:
        yield f"| | | {error} | | | {rounds} |"
        return
    for job in pairs[0][0]:
        theirs, ours = ([pair[side][job] for pair in pairs] for side in (0, 1))
        ratio = spread([own.bytes_per_s / other.bytes_per_s for own, other in zip(ours, theirs, strict=True)])
        why = f"; INVALID: {ours[0].unusable}" if ours[0].unusable else ""
        words = ratio.bold() if rounds >= SURE_PAIRS else ratio.words(2)
        cpu = spread([other.cpu_ns / own.cpu_ns for own, other in zip(ours, theirs, strict=True)])
        busy = ", ".join(f"{statistics.median(done.busy for done in side):.2f}" for side in (theirs, ours))
        found = f"{_bytes_words(theirs, ours)} | {words}{why} | {cpu.words(2)} | {busy} | {rounds}"
        yield f"| {job} | {found} |"


def _bytes_words(theirs: Sequence[Done], ours: Sequence[Done]) -> str:
    if not all(done.ended for done in (*theirs, *ours)):
        return "ended by the clock"
    counts = {done.bytes for done in (*theirs, *ours)}
    if len(counts) == 1:
        return f"{counts.pop():,}, equal"
    return f"**{theirs[0].bytes:,} by fio, {ours[0].bytes:,} by leadline**"


def _runs(path: Path) -> bool:
    try:
        text = cut(path.read_text(encoding="utf-8", errors="replace"), ())
        parse_study(read_job_file(text, path.name, {}, (), Path.read_text))
    except SpecError:
        return False
    return True


def cut(text: str, added: Sequence[str]) -> str:
    """The job file, but short, and with what is `added` in place of its own: what both sides are given."""
    instead = {one.partition("=")[0] for one in added}
    lines = [_cut_line(line) for line in text.splitlines()]
    kept = [line for line in lines if line is not None and line.partition("=")[0].strip() not in instead]
    if not any(line.startswith("runtime=") for line in kept):
        kept = [f"[global]\nruntime={RUNTIME_S}", *kept]
    if any(line.strip() == "ioengine=null" for line in kept):
        kept = ["[global]\ntime_based", *kept]  # without storage its bytes are moved at once
    return "\n".join(("[global]", *added, *kept)) + "\n"


def _cut_line(line: str) -> str | None:
    match = _OPTION.match(line)
    if match is None:
        return line
    name, value = match[1], match[2]
    option = FioOption(name, value, WrittenAt("", 0), 0)
    if (name in _PLACES and ("/" in value or name == "directory")) or name == "allow_file_create":
        return None
    if name in ("size", "filesize", "io_size"):
        return f"{name}={min(size(option), SIZE_BYTES)}"
    if name in ("runtime", "ramp_time"):
        most = RUNTIME_S if name == "runtime" else RAMP_S
        return f"{name}={min(time_ns(option, 's') // 10**9, most)}"
    if name in ("loops", "numjobs"):
        return f"{name}={min(int(value), LOOPS if name == 'loops' else NUMJOBS)}"
    return line


def _pair(path: Path, pairing: Pairing, turn: int) -> tuple[dict[str, Done], dict[str, Done]]:
    """Both, each time another one first, each in a directory that nobody has used."""
    place = pairing.place
    job = place / path.name
    text = cut(path.read_text("utf-8", errors="replace"), pairing.added)
    found = {}
    for side in pairing.sides if turn % 2 == 0 else pairing.sides[::-1]:
        own = place / side.__name__
        own.mkdir()
        job.write_text(text)
        try:
            found[side] = side(job, own, turn + 1, pairing.caches_kept)
        finally:
            shutil.rmtree(own)
    return found[pairing.sides[0]], found[pairing.sides[1]]


def _by_fio(job: Path, own: Path, seed: int, caches_kept: bool) -> dict[str, Done]:
    """Of each job of the file, its clones added up."""
    before = "" if caches_kept else f"exec_prerun={_CLEAN}\n"
    job.write_text(f"[global]\ndirectory={own}\n{before}randseed={seed}\n{job.read_text()}")
    text = _output(["fio", "--output-format=json", str(job)], own, (0,))
    clones: dict[str, list[Done]] = {}
    for found in json.loads(text[text.index("{") :])["jobs"]:
        ways = [found[way] for way in ("read", "write")]
        seconds = max(way["runtime"] for way in ways) / 1e3
        moved = sum(way["io_bytes"] for way in ways)
        ended = seconds < RUNTIME_S * 0.99
        busy = (found["usr_cpu"] + found["sys_cpu"]) / 100
        done = Done(
            moved, moved / max(seconds, 1e-3), busy * found["job_runtime"] * 1e6 / max(moved, 1), busy, ended
        )
        clones.setdefault(_plain(found["jobname"]), []).append(done)
    return {
        name: Done(
            sum(one.bytes for one in done),
            sum(one.bytes_per_s for one in done),
            sum(one.cpu_ns * one.bytes for one in done) / max(sum(one.bytes for one in done), 1),
            statistics.mean(one.busy for one in done),
            all(one.ended for one in done),
        )
        for name, done in clones.items()
    }


def _by_fio_again(job: Path, own: Path, seed: int, caches_kept: bool) -> dict[str, Done]:
    """The other side of fio against itself, with another order and other shares of reads."""
    return _by_fio(job, own, seed + _OTHER_SEEDS, caches_kept)


def _by_leadline(job: Path, own: Path, seed: int, caches_kept: bool) -> dict[str, Done]:
    """Of each job of the file, from the result's own table."""
    out = own / "result"
    where = "null://" if "ioengine=null" in job.read_text() else str(own)
    words = ["run", str(job), "--target", f"here={where}", "--blocks", "1", "--no-ceph", "--quiet"]
    words += [*(() if caches_kept else ("--drop-caches",)), "--seed", str(seed), "--out", str(out)]
    _output([*PROGRAM, *words], own, MEASURED)
    columns = "work, read_bytes + write_bytes, measured_ns / 1e9"
    # What the threads needed is of the ramp, too.
    whole = "total_read_bytes + total_write_bytes, ramp_ns, cpu_user_ns + cpu_system_ns, threads"
    query = f"SELECT {columns}, {whole} FROM read_parquet(?) WHERE error IS NULL"  # noqa: S608 - names of columns
    rows = duckdb.execute(query, [f"{out}/trials/*.parquet"]).fetchall()
    unusable = _unusable(out, own)
    return {
        work.rpartition(".")[2]: Done(
            moved,
            moved / took,
            cpu_ns / whole_bytes,
            cpu_ns / (took * 1e9 + ramp_ns) / len(json.loads(threads)),
            took < RUNTIME_S * 0.99,
            unusable.get(work, ""),
        )
        for work, moved, took, whole_bytes, ramp_ns, cpu_ns, threads in rows
    }


def _unusable(out: Path, own: Path) -> dict[str, str]:
    """By work: the titles of what makes its figures INVALID."""
    cells = json.loads(_output([*PROGRAM, "show", str(out), "--json"], own, MEASURED))["cells"]
    return {
        cell["work"]: ", ".join(
            one["title"] for one in cell["validity"]["codes"] if one["state"] == "INVALID"
        )
        for cell in cells
    }


def _plain(name: str) -> str:
    """As leadline names a work."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")[:50]


def _output(words: Sequence[str], own: Path, fine: Sequence[int]) -> str:
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=own)
    try:
        output, errors = running.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        _end(running)
        running.communicate()
        raise NotEndedError(f"{Path(words[0]).name} did not end within {LIMIT_S:.0f} s") from None
    except BaseException:  # Ctrl-C among them
        _end(running)
        raise
    if running.returncode not in fine:
        raise RuntimeError(f"{' '.join(words)}: {errors[-800:]}")
    return output


def _end(running: subprocess.Popen[str]) -> None:
    """With its jobs: fio's are processes with a session of their own, which hold its output open."""
    parent = psutil.Process(running.pid)
    for process in (*parent.children(recursive=True), parent):
        with suppress(psutil.NoSuchProcess):
            process.kill()


if __name__ == "__main__":
    sys.exit(main())
