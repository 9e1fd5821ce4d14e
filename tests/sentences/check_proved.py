"""What is said of a proof, against its stored trials: ratios, verdict, mechanism, and what stands beside."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations

from check_studies import values
from kit import Said, checks, geometric, number

_VERDICT = (
    r"(?P<name>\w+)=2 (?P<verdict>helps, but not by its mechanism|helps"
    r"|has no effect here, within (?P<margin>\d+) %"
    r"|depends on another setting|harms|is inconclusive|cannot be judged): (?P<rest>.+)\."
)
_ONE = re.compile(
    r"(?P<work>\w+) (?P<metric>\w+) (?:(?:(?P<ratio>[\d.,]+)x (?P<way>faster|slower)|equivalent|inconclusive)"
    r" \((?:[\d.]+ % CI (?P<span>[^,]+), )?(?P<blocks>\d+) blocks?(?:: no CI|: too noisy for a CI)?\)"
    r"|not comparable \((?P<state>INVALID|NOT_RUN)\))"
)
_BAD = ("INVALID", "NOT_RUN")
_WORKS = ("stream", "textures")
_PAIR = re.compile(r"(\w+) x (\w+)")


def _design(said: Said) -> tuple[str, dict[str, set[str]]]:
    """Its kind, and what is changed in each state."""
    proof = said.result.manifest["proof"]
    names = [one["setting"] for one in proof["settings"]]
    stored = proof.get("design", {"kind": "together", "states": {"without": [], "with": names}})
    return stored["kind"], {state: set(on) for state, on in stored["states"].items()}


def _states(said: Said, name: str) -> tuple[list[str], list[str]]:
    """The states that are held against each other for a setting: without it and with it."""
    kind, states = _design(said)
    if kind == "one_by_one":
        states = {state: on for state, on in states.items() if on <= {name}}
    without = [state for state, on in states.items() if name not in on]
    return without, [state for state in states if state not in without]


def _cells(said: Said, work: str, name: str = "dial") -> tuple[list[str], list[str]]:
    own = {cell.target: cell.id for cell in said.findings.cells if cell.work == work}
    without, proved = _states(said, name)
    return [own[state] for state in without], [own[state] for state in proved]


def _is_bad(said: Said, work: str, name: str = "dial") -> bool:
    return any(said.cell(one).validity.state in _BAD for side in _cells(said, work, name) for one in side)


def _by_block(sides: Sequence[Sequence[Mapping[int, float]]]) -> list[float]:
    """In each block that all have: the geometric mean of one side over that of the other."""
    blocks = set.intersection(*(set(found) for side in sides for found in side))
    means = [{block: geometric(found[block] for found in side) for block in sorted(blocks)} for side in sides]
    return [means[1][block] / means[0][block] for block in sorted(blocks)]


def _ratio(said: Said, work: str, metric: str, name: str = "dial") -> float:
    sides = [[values(said, cell, metric) for cell in side] for side in _cells(said, work, name)]
    return geometric(_by_block(sides))


def _held(said: Said, text: str, name: str = "dial") -> dict[str, tuple[float, float, float]]:
    """Every ratio of a list, each worked out again; by its work with its ends (0 and infinity: none)."""
    found = {}
    for part in _ONE.finditer(text):
        work = part["work"]
        assert bool(part["state"]) == _is_bad(said, work, name), said.text
        if part["state"]:
            continue
        ratio = _ratio(said, work, part["metric"], name)
        slower = part["way"] == "slower"
        low, high = _within(said, part["ratio"], part["span"], 1 / ratio if slower else ratio)
        found[work] = (ratio, 1 / high, 1 / max(low, 1e-9)) if slower else (ratio, low, high)
    return found


def _within(said: Said, shown: str | None, span: str | None, ratio: float) -> tuple[float, float]:
    """The ends of an interval that holds the ratio, which is what is shown."""
    if shown:
        off = 0.006 if ratio < 2 else 0.06
        assert abs(number(shown) / ratio - 1) < off, f"{said.text}: it is {ratio}"
    ends = [number(one) for one in re.findall(r"[\d.]+", span or "")]
    low, high = ends if len(ends) == 2 else (0.0, float("inf"))
    if (span or "").startswith("at least"):
        low = ends[0]
    if (span or "").startswith("at most"):
        high = ends[0]
    assert low * 0.95 <= ratio <= high * 1.05, said.text
    return low, high


@checks("proof_verdict")
def proof_verdict(said: Said) -> None:
    part = said.match(_VERDICT)
    name = part["name"]
    held = _held(said, part["rest"], name)
    match part["verdict"].partition(",")[0]:
        case "helps":
            assert held, said.text
            assert all(low > 0.994 and ratio > 1 for ratio, low, _ in held.values()), said.text
            _hold_mechanism(said, part["verdict"], part["rest"], held, name)
        case "harms":
            assert held, said.text
            assert all(high < 1.006 and ratio < 1 for ratio, _, high in held.values()), said.text
        case "has no effect here":
            most = 1 + number(part["margin"]) / 100 + 0.006
            assert held, said.text
            assert all(1 / most <= low <= high <= most for _, low, high in held.values()), said.text
        case "depends on another setting":
            assert any(name in pair for pair in _acting(said)), said.text
            assert all(low <= 1.006 and high >= 0.994 for _, low, high in held.values()), said.text
        case "is inconclusive":
            assert not any(name in pair for pair in _acting(said)), said.text
            within = [low > 1 / 1.05 + 0.006 and high < 1.05 - 0.006 for _, low, high in held.values()]
            assert not (within and all(within)), said.text
            assert all(low <= 1.006 for _, low, _ in held.values()), said.text
        case _:
            assert not held, said.text
            assert all(_is_bad(said, work, name) for work in _WORKS), said.text


def _acting(said: Said) -> list[tuple[str, str]]:
    """Pairs of settings of which it is said that they act on each other."""
    own = [one.text for one in said.findings.statements if one.says == "proof_interaction"]
    return [pair for text in own for pair in _PAIR.findall(text)]


def _hold_mechanism(said: Said, verdict: str, text: str, gained: Mapping[str, object], name: str) -> None:
    own = next(one for one in said.result.manifest["proof"]["settings"] if one["setting"] == name)
    moves = [one["figure"] for one in own["moves"]]
    ratios = [_figure(said, work, name) for work in gained] if moves == ["osd_read_bytes"] else []
    seen = [one for one in ratios if one is not None]
    if not moves:
        assert text.endswith("leadline does not know which counter it must move"), said.text
    elif not seen:
        assert text.endswith("the counter that it must move was not observed here"), said.text
    elif text.endswith("the mechanism is inconclusive: osd_read_bytes did not move significantly"):
        assert verdict == "helps", said.text
        assert max(seen) > 0.55, said.text
    elif verdict == "helps":
        assert text.endswith("osd_read_bytes moved as expected"), said.text
        assert min(seen) < 1, said.text
    else:
        assert text.endswith("osd_read_bytes did not move as expected"), said.text
        assert max(seen) > 0.55, said.text  # half as much is far outside of all noise that is made


def _figure(said: Said, work: str, name: str = "dial") -> float | None:
    """Bytes that OSDs read for each of the program's, with the setting over without it."""
    cells = _cells(said, work, name)
    rows = {cell: said.complete(cell) for side in cells for cell in side}
    if any(row.osd_read_bytes is None for own in rows.values() for row in own):
        return None
    sides = [
        [
            {
                row.block: (row.osd_read_bytes or 0) / (row.total_read_bytes + row.total_write_bytes)
                for row in rows[cell]
            }
            for cell in side
        ]
        for side in cells
    ]
    ratios = _by_block(sides)
    return geometric(ratios) if ratios else None


@checks("proof_side_effects")
def proof_side_effects(said: Said) -> None:
    part = said.match(
        r"(?:(?P<name>\w+)=2: )?(?:No workload or percentile is significantly worse|It harms (?P<lost>.+?))\."
        r"(?: Inconclusive: (?P<open>\d+) of the (?P<rest>\d+) others\.)?"
    )
    assert ("name" in part) == (_design(said)[0] != "together"), said.text
    name = part.get("name", "dial")
    held = _held(said, part.get("lost", ""), name)
    assert ("lost" in part) == bool(held), said.text
    assert all(high < 1.006 for _, _, high in held.values()), said.text
    clear = [work for work in _WORKS if not _is_bad(said, work, name) and _far(said, work, name)]
    assert {*clear} <= held.keys(), f"{said.text}: nothing of {clear}"
    if "open" in part:
        assert 0 < int(part["open"]) <= int(part["rest"]) < 4, said.text


def _far(said: Said, work: str, name: str) -> bool:
    """Every block lost a third, and there are enough to say so."""
    sides = [[values(said, cell, "iops") for cell in side] for side in _cells(said, work, name)]
    ratios = _by_block(sides)
    return len(ratios) >= 6 and all(0.57 < one < 0.63 for one in ratios)


@checks("proof_interaction")
def proof_interaction(said: Said) -> None:
    part = said.match(
        r"(?P<names>.+?) in (?P<work>\w+) (?P<metric>\w+): both together give (?P<ratio>[\d.e+-]+)x"
        r"(?: \((?P<span>[^)]+)\))? the product of their separate effects; (?P<best>.+)\."
    )
    pairs = _PAIR.findall(part["names"])
    assert (len(pairs) > 1) == ("the design cannot distinguish them" in part["names"]), said.text
    _, states = _design(said)
    for pair in pairs:
        own = {cell.target: cell.id for cell in said.findings.cells if cell.work == part["work"]}
        rates = {state: values(said, own[state], part["metric"]) for state in states}
        sides: list[list[Mapping[int, float]]] = [[], []]
        for state, on in states.items():
            sides[(pair[0] in on) == (pair[1] in on)].append(rates[state])
        ratio = geometric(_by_block(sides)) ** 2
        low, high = _within(said, part["ratio"], part.get("span"), ratio)
        assert low > 0.99 or high < 1.01, said.text
        _hold_best(said, part["best"], pair, rates, single=len(pairs) == 1)


def _hold_best(
    said: Said,
    text: str,
    pair: tuple[str, str],
    rates: Mapping[str, Mapping[int, float]],
    *,
    single: bool,
) -> None:
    """No way to have the two is better than the one that is named."""
    _, states = _design(said)
    ways: dict[frozenset[str], list[float]] = {}
    for state, on in states.items():
        ways.setdefault(frozenset(on & {*pair}), []).extend(rates[state].values())
    means = {way: geometric(own) for way, own in ways.items()}
    best = max(means, key=lambda way: means[way])
    words = {0: "best with neither", 1: f"best with {'/'.join(best)} alone"}.get(
        len(best), f"best with {pair[0]} and {pair[1]}"
    )
    head = words if single else f"if {pair[0]} x {pair[1]}, {words}"
    named = re.search(re.escape(head) + r"(?: \((?P<times>[\d.e+]+)x neither\))?", text)
    assert named, f"{said.text}: it is {head}"
    if best:
        assert abs(number(named["times"]) / (means[best] / means[frozenset()]) - 1) < 0.006, said.text


@checks("proof_design")
def proof_design(said: Said) -> None:
    kind, states = _design(said)
    names = [one["setting"] for one in said.result.manifest["proof"]["settings"]]
    if kind == "one_by_one":
        said.match(rf"{len(names)} settings, one by one: interactions of two settings were not measured\.")
        return
    part = said.match(
        r"(?P<count>\d+) settings in (?P<states>\d+) of (?P<all>[\d,]+) combinations: .+; (?:the interaction of"
        r" (?:the pair|all (?P<pairs>\d+) pairs) is estimated|(?P<alone>\d+) of (?P<of>\d+) interactions are estimated,"
        r" .+ up to (?P<most>\d+))\."
    )
    assert (int(part["count"]), int(part["states"])) == (len(names), len(states)), said.text
    assert number(part["all"]) == 2 ** len(names), said.text
    columns: dict[tuple[bool, ...], list[str]] = {}
    for first, second in combinations(names, 2):
        column = tuple((first in on) == (second in on) for on in states.values())
        columns.setdefault(column, []).append(f"{first} x {second}")
    together = [set(own) for own in columns.values() if len(own) > 1]
    said_so = [{f"{a} x {b}" for a, b in _PAIR.findall(line)} for line in said.statement.evidence]
    assert sorted(map(sorted, said_so)) == sorted(map(sorted, together)), said.statement.evidence
    assert ("most" in part) == bool(together), said.text


@checks("proof_mechanism")
def proof_mechanism(said: Said) -> None:
    part = said.match(
        r"(?P<name>\w+) in (?P<work>\w+): (?P<figure>\w+) must go down and (?P<did>did not|did|went the other way"
        r"|whether it did is open|was not observed in both states)"
        r"(?:: ratio (?P<ratio>[\d.]+)(?: \(CI (?P<span>.+)\))? in (?P<blocks>\d+) blocks?)?\."
    )
    name = part["name"]
    ratio = _figure(said, part["work"], name) if part["figure"] == "osd_read_bytes" else None
    unseen = ratio is None or _is_bad(said, part["work"], name)
    assert unseen == (part["did"] == "was not observed in both states"), said.text
    if unseen or ratio is None:
        return
    assert abs(number(part["ratio"]) / ratio - 1) < 0.006, f"{said.text}: it is {ratio}"
    if part["did"] == "did":
        assert ratio < 1, said.text
    if part["did"] == "went the other way":
        assert ratio > 1, said.text
