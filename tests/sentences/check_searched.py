"""What is said of a search, against the stored trials of its proposals and of its proof."""

from __future__ import annotations

import json
import re
from typing import Any

from check_studies import values
from kit import Said, checks, geometric, number

from leadline.store.reader import open_result
from leadline.verdict.findings import build_findings

_ONE = re.compile(
    r"textures iops (?:(?:([\d.,]+)x (faster|slower)|equivalent|inconclusive) \((?:[\d.]+ % CI ([^,]+), )?\d+ blocks?[^)]*\)"
    r"|not comparable \(\w+\))"
)
_SEEMED = (
    r"The best of (?P<count>\d+) proposals?, dial=(?P<value>\d), looked (?P<ratio>[\d.]+)x faster \(CI .+?\) than"
    r" the default in the search that chose it\."
)


def _proposals(said: Said, side: str = "tpe") -> list[dict[str, Any]]:
    stored = json.loads((said.result.path / "proposals.json").read_text())["proposals"]
    return [one for one in stored if one["side"] == side]


def _gain(said: Said, one: dict[str, Any]) -> float | None:
    """The mean ratio of a proposal's blocks, from the rows."""
    found = []
    for block in one["blocks"]:
        rates = [
            row.read_operations / row.measured_ns
            for target in ("without", one["state"])
            for row in said.trials
            if (row.block, row.target, row.state) == (block, target, "complete")
        ]
        if len(rates) == 2:
            found.append(rates[1] / rates[0])
    return geometric(found) if found else None


def _proof(said: Said) -> Said:
    result = open_result(said.result.path / "proof")
    return Said(said.statement, build_findings(result, with_charts=False), result, result.trials())


def _held(said: Said, text: str, base: str) -> list[tuple[float, float, float]]:
    """Ratios with their ends, each worked out again from the fresh trials."""
    proof, found = _proof(said), []
    for times, way, span in _ONE.findall(text):
        if not span:
            continue
        sides = [values(proof, f"{name}.textures", "iops") for name in (base, "with")]
        ratio = geometric(sides[1][block] / sides[0][block] for block in sides[0].keys() & sides[1].keys())
        shown = 1 / ratio if way == "slower" else ratio
        off = 0.006 if shown < 2 else 0.06
        assert not times or abs(number(times) / shown - 1) < off, f"{said.text}: it is {ratio}"
        ends = [number(one) for one in re.findall(r"[\d.]+", span)]
        low, high = ends if len(ends) == 2 else (0.0, float("inf"))
        low = ends[0] if span.startswith("at least") else low
        high = ends[0] if span.startswith("at most") else high
        assert low * 0.95 <= shown <= high * 1.05, said.text
        found.append((ratio, 1 / high, 1 / max(low, 1e-9)) if way == "slower" else (ratio, low, high))
    return found


@checks("search_proved")
def search_proved(said: Said) -> None:
    own = _proposals(said)
    gains = {one["values"]["dial"]: gain for one in own if not one["ended"] and (gain := _gain(said, one))}
    if "looked better than the default" in said.text:
        part = said.match(r"None of (?P<count>\d+) proposals? looked better than the default\.")
        assert int(part["count"]) == len(own)
        assert all(gain <= 1.0 for gain in gains.values()), f"{said.text}: {gains}"
        return
    fresh = r"In (?P<blocks>\d+) fresh blocks?: (?P<rest>.+?)"
    if said.text.startswith("Proved"):
        part = said.match(rf"Proved better than the default: dial=(?P<value>\d)\. {fresh}\.")
        held = _held(said, part["rest"], "without")
        assert held, said.text
        assert all(low > 0.994 and ratio > 1 for ratio, low, _ in held), said.text
        assert gains[part["value"]] > 1, said.text
        assert _proof(said).result.complete, said.text
        return
    part = said.match(
        rf"(?:Not proved yet|No setting is proved better than the default)\. {_SEEMED}"
        rf"(?: Its proof has not finished\. {fresh.replace('blocks>', 'some>').replace('rest>', 'part>')}\."
        rf"| {fresh}\.)?"
    )
    assert int(part["count"]) == len(own)
    assert abs(number(part["ratio"]) / gains[part["value"]] - 1) < 0.06, f"{said.text}: {gains}"
    if "rest" in part:
        assert all(low <= 1.006 for _, low, _ in _held(said, part["rest"], "without")), said.text


@checks("search_against")
def search_against(said: Said) -> None:
    part = said.match(
        r"Compared with (?P<other>what the documents advise|what random search found in as many blocks)"
        r" \(dial=\d\): (?P<rest>.+)\."
    )
    _held(said, part["rest"], "advised" if "documents" in part["other"] else "random")


@checks("search_course")
def search_course(said: Said) -> None:
    part = said.match(
        r"The search measured (?P<count>\d+) proposals?(?:, (?P<stopped>\d+) stopped early as worse)?"
        r"(?:, (?P<ended>\d+) stopped for another reason)?(?:, and random search (?P<random>\d+) proposals?)?,"
        r" each in blocks together with the default: (?P<blocks>\d+) blocks? in .+?\.(?P<open> It has not finished\.)?"
    )
    own, chance = _proposals(said), _proposals(said, "random")
    assert int(part["count"]) == len(own)
    assert int(part.get("random", 0)) == len(chance)
    assert int(part["blocks"]) == sum(len(one["blocks"]) for one in (*own, *chance))
    assert ("open" in part) == (not said.result.complete)
    marked = sum(bool(one["ended"]) for one in own)
    unseen = sum(not one["ended"] and _gain(said, one) is None for one in own)
    assert marked <= int(part.get("ended", 0)) <= marked + unseen, said.text
    assert int(part.get("stopped", 0)) <= len(own) - marked, said.text
