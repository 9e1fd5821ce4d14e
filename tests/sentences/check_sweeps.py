"""What is said of sweeps, against the stored trials of their cells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from check_studies import values
from kit import Said, checks, close, geometric, number, size

_HEAD = r"(?P<sweep>\w+) on (?P<target>\w+): "
_KNEE = (
    _HEAD
    + r"(?P<knee>.+) \((?P<amount>[^)]+)\) is the smallest level that gives 95 % of the plateau of (?P<rate>.+)"
    r" \(95 % CI (?P<low>.+) to (?P<high>.+)\);"
    r" 95 % CI of the level: (?:(?P<only>.+) alone|(?P<from>.+) to (?P<to>.+?))\."
    r"(?: The next smaller level tried, (?P<below>.+) \((?P<less>[^)]+)\), gives (?P<share>\d+) %\.)?"
)


def _cells(said: Said, part: Mapping[str, str]) -> list[dict[str, Any]]:
    """The planned cells of the sweep that a sentence is about."""
    return [
        cell
        for cell in said.plan["cells"]
        if cell["swept"] and (cell["swept"]["name"], cell["target"]) == (part["sweep"], part["target"])
    ]


def _amount(cell: Mapping[str, Any]) -> float:
    return float(cell["job"]["bs"] * cell["job"]["iodepth"])


def _words(cell: Mapping[str, Any]) -> str:
    kib = cell["job"]["bs"] // 1024
    return f"bs {f'{kib} KiB' if kib < 1024 else f'{kib // 1024} MiB'} x iodepth {cell['job']['iodepth']}"


def _means(said: Said, part: Mapping[str, str]) -> dict[str, float]:
    """The mean rate of each cell with figures that can be used, by its words."""
    states = {cell.id: cell.validity.state for cell in said.findings.cells}
    return {
        _words(cell): geometric(found)
        for cell in _cells(said, part)
        if states.get(cell["id"], "NOT_RUN") not in ("INVALID", "NOT_RUN")
        and (found := list(values(said, cell["id"], "bandwidth").values()))
    }


@checks("sweep_knee")
def sweep_knee(said: Said) -> None:
    part = said.match(_KNEE)
    amounts = {_words(cell): _amount(cell) for cell in _cells(said, part)}
    means = _means(said, part)
    own = amounts[part["knee"]]
    close(size(part["amount"]), own)
    assert size(part["low"]) <= size(part["rate"]) <= size(part["high"]), said.text
    ends = [size(part.get("only") or part[key]) for key in ("from", "to")] if "only" not in part else None
    if ends:
        assert ends[0] <= own * 1.01, said.text
        assert own <= ends[1] * 1.01, said.text
    else:
        close(size(part["only"]), own)
    beyond = [mean for words, mean in means.items() if amounts[words] >= own]
    if beyond:  # the plateau is about what the cells beyond the knee give
        assert abs(math.log(geometric(beyond) / size(part["rate"]))) < 0.25, said.text
    less = {words: amounts[words] for words in means if amounts[words] < own}
    assert bool(less) == ("below" in part), said.text
    if less:
        assert less[part["below"]] == max(less.values()), said.text
        close(size(part["less"]), less[part["below"]])
        assert abs(number(part["share"]) - 100 * means[part["below"]] / size(part["rate"])) < 1.6, said.text


@checks("sweep_no_plateau")
def sweep_no_plateau(said: Said) -> None:
    part = said.match(
        _HEAD + r"no plateau: the rate, at most (?P<rate>.+), still rises at (?P<end>.+)"
        r" \((?P<amount>.+)\)\. Add larger levels of bs and iodepth\."
    )
    last = max(_cells(said, part), key=_amount)
    assert part["end"] == _words(last)
    close(size(part["amount"]), _amount(last))
    means = _means(said, part)
    assert size(part["rate"]) >= 0.5 * max(means.values()), said.text


@checks("sweep_made_of")
def sweep_made_of(said: Said) -> None:
    part = said.match(_HEAD + r"bottleneck of the (?:plateau|rate)(?P<rest>.+)")
    rows = [row for cell in said.statement.cells for row in said.complete(cell)]
    for words, column in (
        ("this host's processors", "cpu_busy_share"),
        ("the engine's busiest thread", "busy_share_max"),
    ):
        known = [value for row in rows if (value := getattr(row, column)) is not None]
        said_of_it = f"{words} {100 * fmean(known):.0f} %" if known else words
        assert (said_of_it in part["rest"]) == bool(known), said.text
        if known:
            full, _, below = part["rest"].partition("Below their limits:")
            if below:
                assert (said_of_it in full) == (fmean(known) >= 0.9), said.text
            else:
                assert fmean(known) < 0.9, said.text


@checks("sweep_tried")
def sweep_tried(said: Said) -> None:
    part = said.match(
        _HEAD + r"(?P<tried>\d+) of (?P<every>\d+) cells? of its grid were tried, in (?P<trials>\d+) trials?"
        r"(?P<rest>; the others were not needed)?\.(?P<more>.*)"
    )
    ids = {cell["id"] for cell in _cells(said, part)}
    rows = [row for row in said.trials if row.cell in ids]
    assert int(part["every"]) == len(ids)
    assert int(part["trials"]) == len(rows)
    assert ("rest" in part) == (int(part["tried"]) < int(part["every"])), said.text
    assert int(part["tried"]) == len({row.cell for row in rows})
