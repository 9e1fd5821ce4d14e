"""Do the intervals and verdicts hold? Simulation of every statistic, and real studies whose answer is known.

    python bench/coverage.py                        # everything that is simulated: some minutes
    python bench/coverage.py --only fresh,budget    # these sections
    python bench/coverage.py --real /dev/shm        # a directory against itself, at most 8 minutes
    python bench/coverage.py --real-few /dev/shm    # the same in few blocks, at most 8 minutes
    python bench/coverage.py --lab                  # a lab's CephFS against itself, at most 8 minutes
    python bench/coverage.py --slowdown /dev/shm    # a slowdown by a known 10 %, at most 6 minutes
    python bench/coverage.py --all /dev/shm         # all of it

Writes `bench/coverage.md` (or --output FILE). A section that is not made anew stays as it is; each says when
it was made, and how busy the machine was. --minutes bounds each of the real studies.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import few_blocks
import known_slowdown
import real_studies
import simulated
import simulated_runs
import stragglers
import sweep
from document import Document

INTRODUCTION = """# Do the intervals and verdicts hold?

Made by `bench/coverage.py`; simulations have a fixed seed. Scenarios are described in `bench/scenarios.py`,
in units of the standard deviation of a log ratio from block to block; the code under test is that which
judges results.

How the method came about: nine weightings of the correlations were tried on the first set of scenarios, with
other random numbers, and the narrowest was kept whose lower bounds clear 93 % up to a correlation of 0.5.
Which scenarios count as "beyond" was settled after seeing what could be held. The level of 3 % for `--until`
is one of eight variants of the rule that were tried; five did not hold. So the tables of the first set
confirm a choice. The second set is the test on scenarios unseen.

Intervals of few blocks (`few_blocks_*`) came about on sixteen scenarios that are not kept, and were then
tried on those of `bench/few_blocks_scenarios.py`, drawn anew for each study. One thing was changed after
that, on other random numbers of three of them: a cell tells no more of correlation than three blocks do,
since targets that drift came out at 92 with six blocks.
"""
OUTPUT = Path(__file__).parent / "coverage.md"
Section = Callable[[], Iterator[str]]

SIMULATED: Mapping[str, Section] = {
    "coverage": simulated.coverage,
    "fresh": simulated.fresh,
    "warnings": simulated.warnings,
    "apart": simulated.apart,
    "multiplicity": simulated.multiplicity,
    "percentiles": simulated.percentiles,
    "over_time": simulated.over_time,
    "power": simulated.power,
    "few_blocks_three": few_blocks.coverage_of_three,
    "few_blocks_six": few_blocks.coverage_of_six,
    "few_blocks_two_targets_three": few_blocks.two_targets_of_three,
    "few_blocks_two_targets_six": few_blocks.two_targets_of_six,
    "few_blocks_odd_ones": few_blocks.odd_ones,
    "few_blocks_power": few_blocks.power,
    "sequential": simulated_runs.sequential,
    "budget": simulated_runs.budget,
    "level_shift": simulated_runs.level_shift,
    "stragglers_equal": stragglers.equal_hosts,
    "stragglers_power": stragglers.power,
    "sweep_knees": sweep.knees,
    "sweep_grids": sweep.grids,
}
MEASURED = ("real", "real_few", "lab", "slowdown")


def arguments() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--only", metavar="SECTIONS", help=f"of these, comma-separated: {', '.join(SIMULATED)}"
    )
    parser.add_argument("--real", metavar="DIR", type=Path)
    parser.add_argument("--real-few", metavar="DIR", type=Path)
    parser.add_argument("--lab", action="store_true")
    parser.add_argument("--slowdown", metavar="DIR", type=Path)
    parser.add_argument("--all", metavar="DIR", type=Path)
    parser.add_argument(
        "--minutes", type=float, help="at most that long for each of --real, --real-few, --lab, --slowdown"
    )
    parser.add_argument("--output", metavar="FILE", type=Path, default=OUTPUT)
    found = parser.parse_args()
    unknown = set(found.only.split(",")) - set(SIMULATED) if found.only else set()
    if unknown:
        parser.error(f"--only: no section {', '.join(sorted(unknown))}; there are {', '.join(SIMULATED)}")
    return found


def chosen(asked: argparse.Namespace) -> dict[str, Section]:
    """The sections to make anew, in the order of the document."""
    measured: dict[str, Section] = {}
    if real := asked.real or asked.all:
        measured["real"] = lambda: real_studies.on_directory(real, asked.minutes or 8.0)
    if few := asked.real_few or asked.all:
        measured["real_few"] = lambda: real_studies.of_few_blocks(few, asked.minutes or 8.0)
    if asked.lab or asked.all:
        measured["lab"] = lambda: real_studies.on_lab(asked.minutes or 8.0)
    if slowdown := asked.slowdown or asked.all:
        measured["slowdown"] = lambda: known_slowdown.measured(slowdown, asked.minutes or 6.0)
    if asked.only:
        return {name: SIMULATED[name] for name in asked.only.split(",")} | measured
    return measured if measured and not asked.all else {**SIMULATED, **measured}


def main() -> int:
    """Make the sections asked for, and write the document after each: nothing is lost on the way."""
    asked = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # mounts and labs are left by unwinding
    document = Document(asked.output, INTRODUCTION, (*SIMULATED, *MEASURED))
    for name, section in chosen(asked).items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        document.make(name, section)
    print(f"written: {asked.output}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
