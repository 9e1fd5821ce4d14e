"""Whether a search of settings finds more than random search in as many blocks, where the truth is known.

The course is the product's own (`cli/change/searching/course.py`), from which sampler, early stops and the
choice of the winner come; only what a block measures is computed here. Writes `search.md`.

    python bench/search.py [SECTION ...]       # all sections, from bench/search.jsonl what was seen on labs
    python bench/search.py run                 # on labs: seeds that are not in bench/search.jsonl

On labs it is reading ahead over a long way: OSDs hold each message of a client for 0.2 s, so that a stream is
as fast as what is asked for ahead, until the link is full; the cache must hold that. The default was made a
bad one. Both sides begin with the same proposals, as in the product, and are proved in the same fresh blocks.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness import HERE, PROGRAM, Document, Row, kept, leadline, scratch, table
from leadline.analysis.proposing import ProposalSeen, SearchLimits, best_proposal, judge_proposals
from leadline.analysis.statistics.means import paired_ratio
from leadline.cli.change.searching.course import SIDES, SearchCourse, next_block
from leadline.store.own import StoredProposal
from leadline.tuning.searching.sampler import SamplerKind
from leadline.tuning.searching.space import SearchDimension
from leadline.units import format_ratio_interval

MIB = 1 << 20
NOISE = 0.08
FURTHER, NULLS = 20, 40  # searches
SEEDS, LABS = 10, 3
CLIENT = "near"
STUDY = """
format: leadline.study/1
defaults: {runtime: 2s, time_based: true}
works:
  stream: {rw: read, bs: 64k, size: 128M, direct: false}
"""
LAB_MADE = {
    "osd": {
        "ms_inject_delay_type": "client",
        "ms_inject_delay_max": "0.4",
        "ms_inject_delay_probability": "1",
    },
    "client": {"client_readahead_max_bytes": "131072"},
}
LAB_SPACE = (
    "client_readahead_max_bytes=16k..16M",
    "client_readahead_max_periods=1..16",
    "client_oc_size=1M..256M",
)
PROPOSALS, BUDGET, SEARCH_S = "12", "8m", 900.0
LAB_GOAL, NEAR = 8, 2 / 3
TITLE = """# Searching settings: is it worth more than chance?

Made by `make search-bench` (`bench/search.py`), but for what was seen on a lab. The course of a search is the
product's own: sampler, early stops, choice of the winner; only what a block measures is computed. The surface
is like that of a link with a delay: a cache without which all is slow, its size, readahead that gains until
the link is full, a window with a best value. How many proposals are drawn before the model decides was chosen
on other seeds (1000 to 1023). Where random search wins, it had a good draw on the plateau of the readahead,
and time for more proposals: those of TPE are seldom bad enough to be stopped early. Both begin
with the same five proposals, as in the product.
"""
SPACE = (
    SearchDimension("client_oc", ("true", "false")),
    SearchDimension("client_oc_size", low=16 * MIB, high=1024 * MIB, logarithmic=True, step=4096),
    SearchDimension("client_readahead_max_bytes", low=MIB // 8, high=64 * MIB, logarithmic=True, step=4096),
    SearchDimension("objecter_inflight_ops", low=16, high=4096, logarithmic=True),
)
DEFAULT = {
    "client_oc": "true",
    "client_oc_size": str(200 * MIB),
    "client_readahead_max_bytes": str(MIB // 8),
    "objecter_inflight_ops": "1024",
}
Surface = Callable[[Mapping[str, str]], float]


def delayed_link(values: Mapping[str, str]) -> float:
    """The logarithm of a rate over a link with a delay, as cache, window and readahead bound it.

    Without the cache there is neither readahead nor write-back. Readahead gains until the link is full, and
    costs memory beyond; a window gains until the link is full, and queues beyond.
    """
    cached = values["client_oc"] == "true"
    size = int(values["client_oc_size"]) / MIB
    ahead = int(values["client_readahead_max_bytes"]) / MIB
    window = int(values["objecter_inflight_ops"])
    link = 8.0  # MiB in flight fill it
    if not cached:
        return -3.0 - 0.1 * abs(math.log2(window / 256))
    gain = math.log(1 + min(ahead, link, size / 4) / 0.5)
    gain -= 0.08 * max(0.0, math.log2(ahead / link)) + 0.1 * math.log2(max(96 / size, 1.0))
    return gain - 0.1 * abs(math.log2(window / 256))


def nothing(_values: Mapping[str, str]) -> float:
    """No setting matters."""
    return 0.0


@dataclass(frozen=True)
class Searched:
    """The winner of a side by the search, what it truly gains, and what was measured for it."""

    values: Mapping[str, str]
    seemed: float
    truth: float
    proposals: int


def search(
    surface: Surface, side: SamplerKind, seed: int, blocks: int = 18, noise: float = NOISE
) -> Searched:
    """One search of so many blocks. `noise` is how the logarithm of a block's ratio scatters."""
    course = SearchCourse(SPACE, DEFAULT, (side,), SearchLimits(2), seed)
    chance = random.Random(f"noise {seed} {side}")  # noqa: S311 - reproducible
    found: tuple[StoredProposal, ...] = ()
    gains: dict[str, list[float]] = {}

    def seen() -> list[ProposalSeen]:
        return [ProposalSeen(one.name, side, tuple(gains[one.name]), len(gains[one.name])) for one in found]

    for block in range(1, blocks + 1):
        step = next_block(course, found, seen(), block)
        if step is None:
            break
        found, name = step
        values = next(one.values for one in found if one.name == name)
        gains.setdefault(name, []).append(surface(values) - surface(DEFAULT) + chance.gauss(0, noise))
    judged = judge_proposals(seen(), course.limits)
    best = best_proposal(judged, side)
    if best is None:
        return Searched(DEFAULT, 1.0, 1.0, len(found))
    values = next(one.values for one in found if one.name == best.seen.name)
    truth = math.exp(surface(values) - surface(DEFAULT))
    return Searched(values, best.value or 1.0, truth, len(found))


def proves(surface: Surface, values: Mapping[str, str], seed: int, blocks: int = 8) -> bool:
    """Whether fresh blocks prove a winner, by the interval that a proof has."""
    chance = random.Random(f"proof {seed}")  # noqa: S311 - reproducible
    gain = surface(values) - surface(DEFAULT)
    ratios = [math.exp(gain + chance.gauss(0, NOISE)) for _ in range(blocks)]
    found = paired_ratio([1.0] * blocks, ratios, range(1, blocks + 1))
    low = found.estimate().low if found is not None else None
    return low is not None and low > 1


def against_random() -> Iterator[str]:
    """Ten seeds, a row each."""
    yield "## Against random search\n"
    yield (
        "18 blocks each, every block a proposal beside the default, whose ratio scatters by"
        f" {100 * NOISE:.0f} %. `truth` is what the winner gains on the surface, `seemed` what the search"
        " measured of it.\n"
    )
    rows = []
    for seed in range(10):
        tpe, chance = (search(delayed_link, side, seed) for side in SIDES)
        figures = (tpe.truth, chance.truth, tpe.seemed, chance.seemed)
        better = "TPE" if tpe.truth > chance.truth else "random"
        rows.append((seed, *(f"{one:.2f}" for one in figures), tpe.proposals, chance.proposals, better))
    yield from table(
        "seed | truth, TPE | random | seemed, TPE | random | proposals, TPE | random | better", rows
    )
    won = sum(row[-1] == "TPE" for row in rows)
    yield f"\nTPE is better in {won} of 10.\n"


def further() -> Iterator[str]:
    """Seeds that nothing was looked at with before."""
    seeds, won = range(100, 100 + FURTHER), 0
    for seed in seeds:
        tpe, chance = (search(delayed_link, side, seed).truth for side in SIDES)
        won += tpe > chance
    yield "## Further seeds\n"
    yield f"In {won} of {FURTHER} further seeds TPE is better in as many blocks.\n"


def of_nothing() -> Iterator[str]:
    """Where no setting matters, what seems best is not proved."""
    seemed, proved, count = 0, 0, NULLS
    for seed in range(count):
        found = search(nothing, "tpe", seed)
        seemed += found.seemed > 1
        proved += found.seemed > 1 and proves(nothing, found.values, seed)
    yield "## Where no setting matters\n"
    yield (
        f"In {seemed} of {count} searches a proposal seemed better than the default. Eight fresh blocks"
        f" proved {proved} of them ({100 * proved / count:.1f} %; a proof may err in 2.5 %, as its interval"
        " of 95 % has two sides).\n"
    )


def on_lab() -> Iterator[str]:
    """What `run` stored, a row each."""
    found = sorted(kept("search"), key=lambda one: one["seed"])
    yield "## On a lab\n"
    yield (
        f"{len(found)} searches by the verb itself (`make search-lab-bench`), three labs at once beside other"
        " work on two cores: a stream over a way of 0.2 s, reading ahead 128 KiB as a bad default. TPE and"
        " random search had as many proposals each, in turns; the winner was proved in fresh blocks beside"
        " the default, what random search had found, and what the documents advise (64 MiB ahead, a cache of"
        " 800 MiB). A dash: both found the same proposal.\n"
    )
    counts, rows = Counter(_lab_better(one["search"]) for one in found), []
    for one in found:
        said = one["search"]
        sides = Counter(proposal["side"] for proposal in said["proposals"])
        gains = (_lab_gain(said, name) for name in ("default", "random", "advised"))
        rows.append((one["seed"], sides["tpe"], sides["random"], *gains, _lab_better(said)))
    headings = "seed | TPE's proposals | random's | over the default | over random's | over advice | better"
    yield from table(headings, rows)
    told = ", ".join(f"{name} in {count}" for name, count in sorted(counts.items()))
    proved = sum(one["search"]["proved"] for one in found)
    pairs = [row for one in found for row in one["search"]["gains"].get("random", ()) if row["ratio"]]
    clear = sum(row["low"] > 1 or row["high"] < 1 for row in pairs)
    yield (
        f"\nA winner was proved in {proved} of {len(found)}. Better by what the proof measured: {told};"
        f" {clear} of {len(pairs)} intervals against random's leave 1 out. The goal, eight of ten, is"
        f" {'met' if counts['TPE'] >= LAB_GOAL else 'missed'}: five proposals are the same on both sides,"
        f" and in {_lab_near(found)} of {len(found)} random's best seemed at least two thirds of TPE's,"
        " since every value that fills the link does as well.\n"
    )


def _lab_near(found: Sequence[Mapping[str, Any]]) -> int:
    """In how many searches the best that random search measured is near TPE's best."""

    def best(said: Mapping[str, Any], side: str) -> float:
        return max(one["ratio"] or 0.0 for one in said["proposals"] if one["side"] == side)

    return sum(best(one["search"], "random") >= NEAR * best(one["search"], "tpe") for one in found)


def _lab_gain(said: Mapping[str, Any], name: str) -> str:
    """A gain with its interval; a dash where the two are the same proposal."""
    if not said["gains"].get(name):
        return "-"
    (one,) = said["gains"][name]
    if one["ratio"] is None:
        return "not comparable"
    return f"{one['ratio']:.3g} ({format_ratio_interval(one['low'], one['high'])})"


def _lab_better(said: Mapping[str, Any]) -> str:
    """Whose winner was faster in the proof, by its mean."""
    rows = said["gains"].get("random")
    if not rows or rows[0]["ratio"] is None:
        return "neither"
    return "TPE" if rows[0]["ratio"] > 1 else "random"


# -- on labs -------------------------------------------------------------------------------------------


def searched(there: Any, seed: int) -> Row:
    """One search by the verb itself, and what its result says."""
    with scratch("search", "/tmp") as place:
        study, out = place / "stream.yaml", place / "out"
        study.write_text(STUDY)
        words = ["tune", "search", study, "--target", f"a={there.target(CLIENT, 'libcephfs')}"]
        words += [word for one in LAB_SPACE for word in ("--space", one)]
        words += ["--proposals", PROPOSALS, "--budget", BUDGET, "--compare-random", "--seed", str(seed)]
        start = time.monotonic()
        there.inside(CLIENT, *PROGRAM, *words, "--out", out, "--quiet", timeout=SEARCH_S, allowed=(0, 3))
        seconds = round(time.monotonic() - start)
        found = json.loads(leadline("show", out, "--json"))["search"]
    return {"seed": seed, "seconds": seconds, "load": os.getloadavg()[0], "search": found}


def search_labs() -> None:
    """Search with the seeds that are not there yet, on labs side by side."""
    from tuning import tuning_lab

    runs, choosing = kept("search"), threading.Lock()
    left = [seed for seed in range(1, SEEDS + 1) if (seed,) not in runs.done("seed")]

    def work(number: int) -> None:
        with tuning_lab(f"search{number}") as there:
            for who, options in LAB_MADE.items():
                for option, value in options.items():
                    there.ceph("config", "set", who, option, value)
            for option, value in LAB_MADE["osd"].items():
                there.in_force(option, value)
            while True:
                with choosing:
                    if not left:
                        return
                    seed = left.pop(0)
                try:
                    found = searched(there, seed)
                except (RuntimeError, subprocess.TimeoutExpired, ValueError) as error:
                    print(f"seed {seed}: {error}", flush=True)
                    continue
                runs.keep(found)
                print(seed, found["seconds"], found["search"].get("winner"), flush=True)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(min(LABS, len(left)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


MADE = {"against": against_random, "further": further, "nothing": of_nothing, "lab": on_lab}

if __name__ == "__main__":
    if sys.argv[1:] == ["run"]:
        search_labs()
    else:
        Document.command(HERE / "search.md", TITLE, MADE, __doc__)
