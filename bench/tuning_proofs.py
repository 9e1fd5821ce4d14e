"""What bench/tuning.py found, as a page: judged from the kept proofs alone."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline.analysis.statistics.means import paired_ratio
from leadline.units import format_ratio_interval
from tuning_cases import CASES, LEFT_OUT, PLACEBO_WORKS, PLACEBOS, TuningCase

RUNS = Path(__file__).with_name("tuning.jsonl")
VERDICTS = {
    "helps": "helps",
    "not_by_mechanism": "helps, not by its mechanism",
    "nothing": "does nothing",
    "harms": "harms",
    "undecided": "undecided",
    "unusable": "cannot be judged",
}
_WORDS = """
`bench/tuning.py` proves settings on a lab with `leadline tune prove`, as anybody runs it, from a client
behind its link: four blocks (A B B A), trials of 2 s to 6 s. What a setting must do is known by how the lab
is made, and was written (`bench/tuning_cases.py`) before the case was proved. **Right**: the verdict is what
it must be. **Undecided**: the intervals allow several, or the work's figures are INVALID. **Otherwise**: what
must be was thought wrongly, as is explained below the table. **Wrong**: any other verdict. No threshold was
chosen by these proofs. Of some cases the work as it was first written could not show the effect: these stay,
with why, before the case as it was written then. The host has two cores, which others used, too: most cells
are DOUBTFUL for that.
"""
_PLACEBOS = """
Eight settings that cannot matter for reads and writes of objects, proved {proofs} times each, every time
with {works} works; four proofs of different settings ran at once on clients of their own, each a load to the
others on the host's two cores. A comparison is one work in one proof. The verdict of a proof errs for any of
its works in at most 5 % of proofs: "helps" in at most 2.5 %. A comparison alone, at its own 95 %, is above 1
by chance in 2.5 %. Trials of 1 s on a host of two cores, whose four proofs share them: so wide are their
intervals that "does nothing" could hardly be said. Alone, settings that must do nothing are among the
cases above.
"""


def kept(file: Path = RUNS) -> list[dict[str, Any]]:
    """The proofs that are stored."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def page(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The page's lines."""
    yield "# Proofs of settings whose effect is known, and of placebos"
    yield from _WORDS.splitlines()
    yield ""
    hand = {one["by_hand"]: one["iops"] for one in runs if isinstance(one.get("by_hand"), str)}
    yield from _cases([one for one in runs if "case" in one], hand)
    yield "## Placebos"
    yield from _placebos([one for one in runs if "placebo" in one])
    yield "## Not proved here"
    yield ""
    done = {one.get("case") for one in runs}
    for case in CASES:
        if case.name not in done:
            yield f"- {case.name} (`{case.setting}={case.value}`): a case that waits for its turn."
    for name, why in LEFT_OUT.items():
        yield f"- {name}: {why}."


def judged(case: TuningCase, outcome: str) -> str:
    """Right, undecided or wrong; `otherwise` where what must be was thought wrongly, and `found` says why."""
    if outcome in ("undecided", "unusable"):
        return "undecided"
    if outcome == case.must:
        return "right"
    return "otherwise" if case.thought_wrongly else "wrong"


def _cases(runs: Sequence[Mapping[str, Any]], hand: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    cases = {case.name: case for case in CASES}
    runs = sorted((one for one in runs if one["case"] in cases), key=lambda one: [*cases].index(one["case"]))
    counts = Counter(judged(cases[one["case"]], one["outcome"]) for one in runs)
    numbers = ", ".join(f"{counts[name]} {name}" for name in ("right", "undecided", "otherwise", "wrong"))
    yield f"{len(runs)} proofs of {len({one['case'] for one in runs})} cases: {numbers}."
    yield ""
    yield "| case | setting | must | verdict | rate, times | its figure | by hand, times | |"
    yield "|---|---|---|---|---|---|--:|---|"
    for one in runs:
        case = cases[one["case"]]
        parts = (
            case.name,
            f"`{case.setting}={case.value}`",
            VERDICTS[case.must],
            VERDICTS[one["outcome"]],
            _rate(one),
            "; ".join(_moved(row) for row in one["moved"]) or "none known",
            _by_hand(hand.get(case.name, {})),
            judged(case, one["outcome"]),
        )
        yield f"| {' | '.join(parts)} |"
    yield ""
    yield "Why it must be so:"
    yield ""
    for case in CASES:
        besides = ", ".join(f"`{option}={value}`" for _, option, value in case.made)
        besides += ", ".join(f"`{key}={value}`" for key, value in case.kernel)
        lab = f"; the lab has {besides}" if besides else ""
        yield f"- **{case.name}** ({case.way}, client `{case.client}`{lab}): {case.why}.{_after(case.found)}"
    yield ""


_RATES = ("iops", "bandwidth", "stat_iops")


def _rate(one: Mapping[str, Any]) -> str:
    """Of a proof's rates, as they may be compared."""
    if one["outcome"] == "unusable":
        return "not comparable"
    return "; ".join(_times(row) for row in one["compared"] if row["metric"] in _RATES)


def _after(words: str) -> str:
    return f" *Found otherwise*: {words}." if words else ""


def _times(row: Mapping[str, Any]) -> str:
    if row["ratio"] is None:
        return "not comparable"
    span = "" if row["low"] is None else f" ({format_ratio_interval(row['low'], row['high'])})"
    return f"{row['ratio']:.3g}{span}"


def _moved(row: Mapping[str, Any]) -> str:
    head = f"`{row['figure']}` must go {row['direction']}"
    if row["moved"] == "not seen":
        return f"{head}: not seen"
    if row["ratio"] is None:
        return f"{head}: {row['moved']}"
    return f"{head}: {row['moved']}, {_times(row)}"


def _by_hand(found: Mapping[str, float]) -> str:
    return f"{found['with'] / found['without']:.2g}" if found and found["without"] else "-"


def _placebos(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    each = Counter(one["placebo"] for one in runs)
    yield from _PLACEBOS.format(proofs=_from_to(list(each.values())), works=len(PLACEBO_WORKS)).splitlines()
    yield ""
    yield (
        "| setting | why it cannot matter | proofs | helps | harms | does nothing | undecided or not judged "
        "| comparisons | alone above 1 | alone below 1 |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    whole: Counter[str] = Counter()
    for name, value, why, _ in PLACEBOS:
        counts = _counts([one for one in runs if one["placebo"] == name])
        whole += counts
        yield _row(f"`{name}={value}`", why, counts)
    yield _row("**all**", "", whole)
    yield ""
    if whole["proofs"]:
        proofs, comparisons = whole["proofs"], whole["comparisons"]
        chance, alone = 0.025 * proofs, 0.025 * comparisons
        yield f'By chance alone at most {chance:.1f} of {proofs} proofs say "helps": {whole["helps"]} did.'
        yield f'At most as many say "harms": {whole["harms"]} did.'
        yield (
            f"About {alone:.1f} of {comparisons} comparisons alone are above 1, and as many below: "
            f"{whole['above']} and {whole['below']} were."
        )
        seconds = sum(one["seconds"] for one in runs)
        yield f"A proof took {seconds / len(runs):.0f} s on average."
        yield ""


def _from_to(counts: Sequence[int]) -> str:
    least, most = min(counts, default=0), max(counts, default=0)
    return f"{least}" if least == most else f"{least} to {most}"


def _counts(runs: Sequence[Mapping[str, Any]]) -> Counter[str]:
    counts: Counter[str] = Counter(proofs=len(runs))
    for one in runs:
        counts["helps" if one["outcome"] == "not_by_mechanism" else one["outcome"]] += 1
        for sides in one["rates"].values():
            interval = alone(sides)
            if interval is not None:
                counts["comparisons"] += 1
                counts["above"] += interval[0] > 1
                counts["below"] += interval[1] < 1
    return counts


def _row(name: str, why: str, counts: Counter[str]) -> str:
    open_ = counts["undecided"] + counts["unusable"]
    numbers = (counts["proofs"], counts["helps"], counts["harms"], counts["nothing"], open_)
    return f"| {name} | {why} | {' | '.join(map(str, numbers))} | " + (
        f"{counts['comparisons']} | {counts['above']} | {counts['below']} |"
    )


def alone(sides: Mapping[str, Mapping[str, float]]) -> tuple[float, float] | None:
    """The 95 % interval of with/without of one work, as if nothing else had been compared."""
    if {"without", "with"} - sides.keys():
        return None
    shared = sorted(sides["without"].keys() & sides["with"].keys(), key=int)
    pairs = [[float(sides[state][block]) for block in shared] for state in ("without", "with")]
    ratio = paired_ratio(pairs[0], pairs[1], [int(block) for block in shared])
    if ratio is None or ratio.count < 2:
        return None
    estimate = ratio.estimate(0.05)
    return estimate.low or 0.0, estimate.high or math.inf


def moved_here(runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """By setting what it moved on this bench's lab, in a few words."""
    cases, found = {case.name: case for case in CASES}, dict[str, list[str]]()
    for one in runs:
        if "case" in one and one["case"] in cases:
            case = cases[one["case"]]
            moved = [f"`{row['figure']}` {_times(row)}" for row in one["moved"] if row["ratio"] is not None]
            words = f"{case.value}: {VERDICTS[one['outcome']]}, {'; '.join([f'rate {_rate(one)}', *moved])}"
            found.setdefault(case.setting, []).append(words)
    for name, value, _, _ in PLACEBOS:
        counts = _counts([one for one in runs if one.get("placebo") == name])
        if counts["proofs"]:
            words = f"{value}: helps in {counts['helps']} and harms in {counts['harms']} of "
            words += f"{counts['proofs']} proofs"
            found.setdefault(name, []).append(words)
    return {name: ". ".join(words) for name, words in found.items()}
