"""The page of `bench/drishti.py`: made of the lines of `drishti.jsonl` and of nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from drishti_cases import CASES, NO_ACCUSATION, NO_MPI_IO, RANKED, HabitCase

TOOLS = {
    "leadline": "leadline, its own trace",
    "leadline_darshan": "leadline, Darshan's log",
    "drishti": "Drishti, Darshan's log",
}
_LOUD = ("critical", "warning")
_INTRODUCTION = """
Written by `make drishti-bench` from `bench/drishti.jsonl`. Each program has one habit, or none that is wrong
(`bench/floors/io_habits.c`). It runs twice with the same seed, on files in the page cache: under
`leadline trace`, and under Darshan's library, whose log Drishti (`drishti-io`) reads,
and `leadline import darshan`, too. Counts differ by the seed by up to a third.

- Of leadline counts what `leadline diagnose TRACE` names (not what it puts behind it), whatever its share;
  `bound_by_compute` accuses nobody and is not counted.
- Of Drishti count the triggers of the levels critical and warning, by their code (`--code --csv`), with its
  own thresholds; a code's level is what Drishti's source gives it. `M01` (a low-performance interface) it
  says of every program without MPI-IO, and none here has any: it is in no other column.
- **Right** is a program of which a finding that names its habit stands among those named, **silent** one of
  which nothing that is wrong and nothing that names the habit is named, **wrong** one of which only other
  things are. Which code names which habit is in `bench/drishti_cases.py`, and so is what is true of a program
  beside (reads of 4 KiB anywhere are small, too): that is not counted as wrong.
- **Beside** counts the findings that neither name the habit nor are true by how the program was made."""
_LIMITS = """
## What this does not say

- The programs and the table of what is right are ours. The rules were mended with them at
  hand, and all kept traces diagnosed by the mended ones. By the rules before, leadline's own traces of
  `read_again` were silent in both seeds (there was no `reread`), and `rewritten` stood beside `random_writes`
  in both. On Darshan's logs leadline was right in 18 of 32 runs by the rules before, fewer than Drishti (20):
  `read_again` and `written_again` were silent. So leadline's figures here are what it was made to reach, and
  prove nothing about other programs.
- `balance`: what leadline accuses is the MPI library, which reads `/proc/net/route` some hundred times.
- Drishti was made for parallel programs on large systems. Its triggers for MPI-IO (collective operations,
  aggregators, non-blocking calls), HDF5 and Lustre have no counterpart in leadline, and no program here has
  them.
- Its threshold for metadata is 30 s of a rank in one file. No program here is so long: of `many_opens`,
  `polling` and `small_files` it can say nothing. It has no trigger for syncs. Its `S01` is about the
  interface: whether the buffer is small it does not say.
- Drishti 0.8 calls reads redundant (`P09`, writes `P10`) where the furthest byte is beyond the sum of what
  was moved. That is so of sparse accesses, and not of data that is read again.
- leadline's own tracer sees more than Darshan's log holds (syncs apart from writes, sizes of stdio's
  requests, stats on this C library), hence its column on the same log. `leadline diagnose` says what such a
  log leaves open.
- Misalignment and small requests are what Darshan counts, by blocks of 4 KiB here; whether they cost anything
  on a given storage neither tool measured. leadline's shares are of a run in the page cache.
- Darshan's library is in no package registry that this project uses: `LIB` was built from its source,
  `configure --without-mpi --disable-darshan-util --with-log-path-by-env=DARSHAN_LOGDIR
  --with-jobid-env=NONE`, and once more with MPICH for the programs of several ranks."""


@dataclass(frozen=True)
class Answer:
    """What a tool named of one run, and what that is worth."""

    case: HabitCase
    tool: str
    named: tuple[str, ...]

    @property
    def beside(self) -> tuple[str, ...]:
        """Accusations that are not true."""
        return tuple(code for code in self.named if code not in self.case.right(self.tool) | self.case.also)

    @property
    def outcome(self) -> str:
        """By the words of the page."""
        if self.case.clean:
            return "false alarm" if self.beside else "right"
        if set(self.named) & self.case.right(self.tool):
            return "right"
        return "wrong" if self.beside else "silent"


def page(lines: Sequence[dict[str, Any]]) -> str:
    """The whole of it."""
    about = [line for line in lines if "levels" in line][-1]
    runs = [line for line in lines if "case" in line]
    cases = [one for one in (*CASES, *RANKED) if any(line["case"] == one.name for line in runs)]
    answers = {
        (one.name, tool): [
            Answer(one, tool, _named(line, tool, about["levels"]))
            for line in runs
            if line["case"] == one.name
        ]
        for one in cases
        for tool in TOOLS
    }
    seeds = sorted({line["seed"] for line in runs})
    versions = ", ".join(f"{name} {version}" for name, version in sorted(about["versions"].items()))
    marked = sum(NO_MPI_IO in line["drishti"]["codes"] for line in runs)
    parts = [
        "# A program's way of I/O: leadline beside Drishti",
        *_INTRODUCTION.splitlines(),
        "",
        f"Seeds {', '.join(map(str, seeds))}; {versions}.",
        f"{len(runs)} runs of {len(cases)} programs; `{NO_MPI_IO}` in {marked} of them.",
        "",
        *_summary(cases, answers),
        "",
        "## Each program",
        "",
        *_details(cases, answers),
        *_LIMITS.splitlines(),
    ]
    return "\n".join(parts) + "\n"


def _named(line: dict[str, Any], tool: str, levels: dict[str, str]) -> tuple[str, ...]:
    if tool != "drishti":
        return tuple(code for code in line[tool]["named"] if code not in NO_ACCUSATION)
    codes = line["drishti"]["codes"]
    return tuple(code for code in codes if levels[code] in _LOUD and code != NO_MPI_IO)


def _summary(cases: Iterable[HabitCase], answers: dict[tuple[str, str], list[Answer]]) -> list[str]:
    bad, clean = ([one for one in cases if one.clean == state] for state in (False, True))
    lines = [
        "| | of bad habits: right | silent | wrong | beside | of clean programs: right | false alarm |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for tool, words in TOOLS.items():
        found = [one for case in bad for one in answers[case.name, tool]]
        quiet = [one for case in clean for one in answers[case.name, tool]]
        outcomes = [one.outcome for one in found]
        cells = [
            *(str(outcomes.count(state)) for state in ("right", "silent", "wrong")),
            str(sum(len(one.beside) for one in found)),
            str(sum(one.outcome == "right" for one in quiet)),
            str(sum(one.outcome == "false alarm" for one in quiet)),
        ]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return lines


def _details(cases: Iterable[HabitCase], answers: dict[tuple[str, str], list[Answer]]) -> list[str]:
    lines = [
        "What was named in any seed; in bold what names the habit, in brackets what is true beside. Where",
        "seeds differ the outcome says so.",
        "",
        f"| program | what it does | {' | '.join(TOOLS.values())} |",
        "|---|---|---|---|---|",
    ]
    for case in cases:
        cells = [_cell(answers[case.name, tool]) for tool in TOOLS]
        lines.append(f"| {case.name} | {case.words} | {' | '.join(cells)} |")
    return lines


def _cell(found: Sequence[Answer]) -> str:
    outcomes = [one.outcome for one in found]
    words = " and ".join(
        name if len(set(outcomes)) == 1 else f"{name} ({outcomes.count(name)} of {len(outcomes)})"
        for name in dict.fromkeys(outcomes)
    )
    codes = dict.fromkeys(code for one in found for code in one.named)
    return f"{words}: {', '.join(_marked(code, found[0]) for code in codes)}" if codes else words


def _marked(code: str, one: Answer) -> str:
    if code in one.case.right(one.tool):
        return f"**{code}**"
    return f"({code})" if code in one.case.also else code
