"""What is said of a proof, against its stored trials: ratios, verdict, mechanism, and what stands beside."""

from __future__ import annotations

import re
from collections.abc import Mapping

from check_studies import values
from kit import Said, checks, geometric, number

_VERDICT = (
    r"dial=2 (?P<verdict>helps, but not by its mechanism|helps|does nothing here, within (?P<margin>\d+) %"
    r"|harms|is undecided|cannot be judged): (?P<rest>.+)\."
)
_ONE = re.compile(
    r"(?P<work>\w+) (?P<metric>\w+) (?:(?P<ratio>[\d.e+-]+) times(?: \((?P<span>[^)]+)\))?"
    r"|not comparable \((?P<state>INVALID|NOT_RUN)\))"
)
_BAD = ("INVALID", "NOT_RUN")


def _cells(said: Said, work: str) -> tuple[str, str]:
    own = {cell.target: cell.id for cell in said.findings.cells if cell.work == work}
    return own["without"], own["with"]


def _is_bad(said: Said, work: str) -> bool:
    return any(said.cell(one).validity.state in _BAD for one in _cells(said, work))


def _ratio(said: Said, work: str, metric: str) -> float:
    without, proved = (values(said, one, metric) for one in _cells(said, work))
    return geometric(proved[block] / without[block] for block in without.keys() & proved.keys())


def _held(said: Said, text: str) -> dict[str, tuple[float, float, float]]:
    """Every ratio of a list, each worked out again; by its work with its ends (0 and infinity: none)."""
    found = {}
    for part in _ONE.finditer(text):
        work = part["work"]
        assert bool(part["state"]) == _is_bad(said, work), said.text
        if part["state"]:
            continue
        ratio = _ratio(said, work, part["metric"])
        assert abs(number(part["ratio"]) / ratio - 1) < 0.006, f"{said.text}: it is {ratio}"
        ends = [number(one) for one in re.findall(r"[\d.]+", part["span"] or "")]
        low, high = ends if len(ends) == 2 else (0.0, float("inf"))
        if (part["span"] or "").startswith("at least"):
            low = ends[0]
        if (part["span"] or "").startswith("at most"):
            high = ends[0]
        assert low * 0.99 <= ratio <= high * 1.01, said.text
        found[work] = (ratio, low, high)
    return found


@checks("proof_verdict")
def proof_verdict(said: Said) -> None:
    part = said.match(_VERDICT)
    held = _held(said, part["rest"])
    match part["verdict"].partition(",")[0]:
        case "helps":
            assert held, said.text
            assert all(low > 0.994 and ratio > 1 for ratio, low, _ in held.values()), said.text
            _hold_mechanism(said, part["verdict"], part["rest"], held)
        case "harms":
            assert held, said.text
            assert all(high < 1.006 and ratio < 1 for ratio, _, high in held.values()), said.text
        case "does nothing here":
            most = 1 + number(part["margin"]) / 100 + 0.006
            assert held, said.text
            assert all(1 / most <= low <= high <= most for _, low, high in held.values()), said.text
        case "is undecided":
            within = [low > 1 / 1.05 + 0.006 and high < 1.05 - 0.006 for _, low, high in held.values()]
            assert not (within and all(within)), said.text
            assert all(low <= 1.006 for _, low, _ in held.values()), said.text
        case _:
            assert not held, said.text
            assert all(_is_bad(said, work) for work in ("stream", "textures")), said.text


def _hold_mechanism(said: Said, verdict: str, text: str, gained: Mapping[str, object]) -> None:
    moves = [one["figure"] for one in said.result.manifest["proof"]["settings"][0]["moves"]]
    ratios = [_figure(said, work) for work in gained] if moves == ["osd_read_bytes"] else []
    seen = [one for one in ratios if one is not None]
    if not moves:
        assert text.endswith("which counter it must move is not known to leadline"), said.text
    elif not seen:
        assert text.endswith("what it must move could not be seen here"), said.text
    elif verdict == "helps":
        assert text.endswith("osd_read_bytes moved as it must"), said.text
        assert min(seen) < 1, said.text
    else:
        assert text.endswith("osd_read_bytes did not move as it must"), said.text
        assert max(seen) > 0.55, said.text  # half as much is far outside of all noise that is made


def _figure(said: Said, work: str) -> float | None:
    """Bytes that OSDs read for each of the program's, with the setting over without it."""
    sides = []
    for cell in _cells(said, work):
        rows = said.complete(cell)
        if any(row.osd_read_bytes is None for row in rows):
            return None
        sides.append(
            {
                row.block: (row.osd_read_bytes or 0) / (row.total_read_bytes + row.total_write_bytes)
                for row in rows
            }
        )
    both = sides[0].keys() & sides[1].keys()
    if both and not all(side[block] for side in sides for block in both):
        return sum(sides[1][block] for block in both) / sum(sides[0][block] for block in both)
    return geometric(sides[1][block] / sides[0][block] for block in both) if both else None


@checks("proof_side_effects")
def proof_side_effects(said: Said) -> None:
    part = said.match(
        r"(?:No work and no percentile was seen to lose|It harms (?P<lost>.+?))\."
        r"(?: Undecided: (?P<open>\d+) of (?P<rest>\d+) others\.)?"
    )
    held = _held(said, part.get("lost", ""))
    assert ("lost" in part) == bool(held), said.text
    assert all(high < 1.006 for _, _, high in held.values()), said.text
    clear = [work for work in ("stream", "textures") if not _is_bad(said, work) and _far(said, work)]
    assert {*clear} <= held.keys(), f"{said.text}: nothing of {clear}"
    if "open" in part:
        assert 0 < int(part["open"]) <= int(part["rest"]) < 4, said.text


def _far(said: Said, work: str) -> bool:
    """Every block lost a third, and there are enough to say so."""
    without, proved = (values(said, one, "iops") for one in _cells(said, work))
    ratios = [proved[block] / without[block] for block in without.keys() & proved.keys()]
    return len(ratios) >= 6 and all(0.57 < one < 0.63 for one in ratios)


@checks("proof_mechanism")
def proof_mechanism(said: Said) -> None:
    part = said.match(
        r"dial in (?P<work>\w+): (?P<figure>\w+) must go down and (?P<did>did|went the other way"
        r"|was not seen to move|was not seen in both states)"
        r"(?:: (?P<ratio>[\d.]+) times(?:, (?P<span>.+))? in (?P<blocks>\d+) blocks)?\."
    )
    ratio = _figure(said, part["work"]) if part["figure"] == "osd_read_bytes" else None
    unseen = ratio is None or _is_bad(said, part["work"])
    assert unseen == (part["did"] == "was not seen in both states"), said.text
    if unseen or ratio is None:
        return
    assert abs(number(part["ratio"]) - ratio) < 0.006 * max(ratio, 0.01), f"{said.text}: it is {ratio}"
    if part["did"] == "did":
        assert ratio < 1, said.text
    if part["did"] == "went the other way":
        assert ratio > 1, said.text
