"""What is said of requirements, against the stored trials and what was stored as required."""

from __future__ import annotations

import re
from typing import Any

from check_studies import values
from kit import Said, checks, close, geometric, number, size

_FIGURE = (
    r"(?P<metric>bandwidth|iops) of (?P<cell>\w+\.\w+) is (?P<seen>[\d,.e+-]+ (?:\w+(?:/s)?))"
    r"(?: \((?P<low>.+?) to (?P<high>.+?), (?P<blocks>\d+) blocks\))?"
)
_HEAD = r"Requirement (?P<name>\w+)(?: \((?P<source>section [\d.]+)\))?, (?P<asked>.+?), is "


def _amount(text: str) -> float:
    return number(text.removesuffix(" IOPS")) if text.endswith(" IOPS") else size(text)


def _asked(said: Said, part: dict[str, str]) -> tuple[float, bool]:
    """What is required of the metric in the sentence, and whether it is the least."""
    own = _required(said)[part["name"]]
    figures = own.get("figures") or [own]
    found = next(one for one in figures if one["metric"] == part["metric"])
    least = "at_least" in found
    value, _, unit = str(found["at_least" if least else "at_most"]).partition(" ")
    return float(value) * {"": 1.0, "B/s": 1.0, "kB/s": 1000.0}[unit], least


def _required(said: Said) -> dict[str, Any]:
    found: dict[str, Any] = said.result.manifest["requirements"]["requirements"]
    return found


def _measured(said: Said, verdict: str) -> tuple[dict[str, str], float, float, float, bool]:
    """The sentence's parts, the ends of its interval, what is required, and whether that is the least."""
    part = said.match(_HEAD + verdict + ": " + _FIGURE + r"(?:: (?P<why>.+))?\.")
    found = values(said, part["cell"], part["metric"])
    close(_amount(part["seen"]), geometric(found.values()))
    asked, least = _asked(said, part)
    assert ("at least" if least else "at most") in part["asked"], said.text
    seen = _amount(part["seen"])
    ends = [_amount(part[end]) if end in part else seen for end in ("low", "high")]
    assert ends[0] <= seen <= ends[1], said.text
    assert int(part.get("blocks", "1")) == len(found), said.text
    return part, ends[0], ends[1], asked, least


@checks("requirements_judged")
def requirements_judged(said: Said) -> None:
    """As many as are said one by one, with the names of those that are not met."""
    part = said.match(
        r"Of (?P<all>\d+) requirements? (?P<met>\d+) met"
        r"(?:, (?P<failed>\d+) not met \((?P<bad>[^)]*)\))?(?:, (?P<left>\d+) inconclusive \((?P<open>[^)]*)\))?\."
    )
    names = _required(said)
    assert int(part["all"]) == len(names)
    assert int(part["met"]) + int(part.get("failed", 0)) + int(part.get("left", 0)) == len(names), said.text
    said_so = {}
    for one in said.findings.statements:
        if one.says.startswith("requirement_"):
            found = re.match(_HEAD + r"(?P<verdict>met|not met|inconclusive)", one.text)
            assert found, one.text
            said_so[found["name"]] = found["verdict"]
    for verdict, key in (("not met", "bad"), ("inconclusive", "open")):
        named = re.split(r", | and \d+ more", part.get(key, ""))
        own = [name for name, found in said_so.items() if found == verdict]
        assert {name for name in named if name} <= {*own, *(names.keys() - said_so.keys())}, said.text
    assert list(said_so.values()).count("met") == int(part["met"]), said.text


@checks("requirement_met")
def requirement_met(said: Said) -> None:
    _, low, high, asked, least = _measured(said, "met")
    assert low < high, said.text
    assert (low >= asked * 0.994) if least else (high <= asked * 1.006), said.text


@checks("requirement_not_met")
def requirement_not_met(said: Said) -> None:
    _, low, high, asked, least = _measured(said, "not met")
    assert low < high, said.text
    assert (high <= asked * 1.006) if least else (low >= asked * 0.994), said.text


@checks("requirement_undecided")
def requirement_undecided(said: Said) -> None:
    """Its interval lies on both sides, there is none, or a cell cannot be used or is doubtful."""
    unusable = re.search(
        r": (?:\w+): (?P<cell>\w+\.\w+) (?:is (?P<state>INVALID)|could not be run)", said.text
    )
    if unusable:
        state = said.cell(unusable["cell"]).validity.state
        assert state == (unusable["state"] or "NOT_RUN"), said.text
        return
    if re.search(r": \w+: not measured: ", said.text):
        return
    part, low, high, asked, _ = _measured(said, "inconclusive")
    why, state = part["why"], said.cell(part["cell"]).validity.state
    assert ("is DOUBTFUL" in why) == (state == "DOUBTFUL"), said.text
    if "the CI contains" in why:
        assert low * 0.994 <= asked <= high * 1.006, said.text
    elif "no CI" in why:
        assert len(values(said, part["cell"], part["metric"])) == 1, said.text
    else:
        assert state == "DOUBTFUL", said.text


@checks("requirement_unmeasured")
def requirement_unmeasured(said: Said) -> None:
    part = said.match(_HEAD + r"inconclusive: no cell is called (?P<cell>\S+)\.")
    target, _, work = part["cell"].partition(".")
    assert not [one for one in said.plan["cells"] if one["work"] == work and target in ("*", one["target"])]
