"""Whether a search of settings finds more than random search in as many blocks, where the truth is known.

The course is the product's own (`cli/change/searching/course.py`), from which sampler, early stops and the
choice of the winner come; only what a block measures is computed here. Writes `search.md`.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from document import Document
from leadline.analysis.proposing import ProposalSeen, SearchLimits, best_proposal, judge_proposals
from leadline.analysis.statistics.means import paired_ratio
from leadline.cli.change.searching.course import SIDES, SearchCourse, next_block
from leadline.store.own.proposals import StoredProposal
from leadline.tuning.searching.sampler import SamplerKind
from leadline.tuning.searching.space import SearchDimension

MIB = 1 << 20
NOISE = 0.08
FURTHER, NULLS = 20, 40  # searches
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
    yield "| seed | truth, TPE | random | seemed, TPE | random | proposals, TPE | random | better |"
    yield "|---|---|---|---|---|---|---|---|"
    won = 0
    for seed in range(10):
        tpe, chance = (search(delayed_link, side, seed) for side in SIDES)
        won += tpe.truth > chance.truth
        figures = (tpe.truth, chance.truth, tpe.seemed, chance.seemed)
        cells = [str(seed), *(f"{one:.2f}" for one in figures), str(tpe.proposals), str(chance.proposals)]
        yield f"| {' | '.join(cells)} | {'TPE' if tpe.truth > chance.truth else 'random'} |"
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


MADE = {"against": against_random, "further": further, "nothing": of_nothing}


def main(names: list[str]) -> int:
    """Make the sections of these names, or all that are computed; what was seen on a lab stays."""
    made = Document(Path(__file__).with_suffix(".md"), TITLE, (*MADE, "lab"))
    for name in names or MADE:
        made.make(name, MADE[name])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
