"""What is said of acknowledgements, against the table of them as it is stored."""

from __future__ import annotations

import re

import numpy as np
from kit import Said, checks, close, number, seconds
from numpy.typing import NDArray

from leadline.store.own import Acks, read_acks

_NAME = r"\w+ on \w+"
_TIME = r"[\d,.]+ (?:ns|us|ms|s)"


def _acks(said: Said, trial: str) -> Acks:
    acks = read_acks(said.result, trial)
    assert acks is not None, f"{trial} has none"
    assert said.statement.cells == (next(row.cell for row in said.trials if row.trial == trial),)
    return acks


def _by_stream(acks: Acks) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Submitted and acknowledged, seconds, of each stream."""
    rows = [np.flatnonzero(acks.stream == stream) for stream in np.unique(acks.stream)]
    return [(acks.submitted_ns[own] / 1e9, np.sort(acks.acked_ns[own]) / 1e9) for own in rows]


def _trials(said: Said, found: str | None) -> None:
    """`n of m` trials: m are the complete ones."""
    if found:
        assert int(found) == len(said.complete(said.statement.cells[0])), said.text


@checks("transfer_stalls")
def transfer_stalls(said: Said) -> None:
    part = said.match(
        rf"{_NAME}: acks of (?P<silent>\d+) of (?P<all>\d+) streams stopped for (?P<lasts>{_TIME}) at"
        rf" (?P<at>{_TIME}) of (?P<trial>t\d+)(?:; (?P<stalls>\d+) stalls in \d+ of (?P<trials>\d+) trials)?\."
    )
    at, lasts = seconds(part["at"]), seconds(part["lasts"])
    error = 0.006 * (at + lasts)  # as far as they are printed
    first, last = at + error, at + lasts - error
    silent = under_way = 0
    for submitted, acked in _by_stream(_acks(said, part["trial"])):
        under_way += bool(submitted.min() <= last and acked[-1] >= first)
        waiting = (submitted <= first).sum() > (acked <= first).sum()
        silent += bool(waiting and not ((acked > first) & (acked < last)).any())
    assert int(part["silent"]) <= silent, said.text
    assert int(part["all"]) <= under_way, said.text
    assert int(part.get("stalls", 1)) >= 1
    _trials(said, part.get("trials"))


@checks("transfer_ended_together")
def transfer_ended_together(said: Said) -> None:
    part = said.match(
        rf"{_NAME}: all (?P<all>\d+) files ended within (?P<within>{_TIME}) of each other in (?P<trial>t\d+);"
        rf" the pace of each by itself would have spread them over (?P<paced>{_TIME})"
        r"(?:; together in \d+ of (?P<trials>\d+) trials)?\."
    )
    streams = _by_stream(_acks(said, part["trial"]))
    assert int(part["all"]) == len(streams)
    ends = [acked[-1] for _, acked in streams]
    close(seconds(part["within"]), max(ends) - min(ends))
    paced = []
    for submitted, acked in streams:  # requests of one size
        place = -(-3 * len(acked) // 4) - 1
        paced.append(submitted.min() + (acked[place] - submitted.min()) * len(acked) / (place + 1))
    close(seconds(part["paced"]), max(paced) - min(paced))
    assert 4 * (max(ends) - min(ends)) <= max(paced) - min(paced)
    _trials(said, part.get("trials"))


@checks("transfer_bursts")
def transfer_bursts(said: Said) -> None:
    part = said.match(
        rf"{_NAME}: acks of (?P<all>\d+) streams come in bursts at the same moments: their number in"
        rf" (?P<bin>{_TIME}) varies (?P<times>[\d,.]+)x as much as that of independent streams, in"
        r" (?P<trial>t\d+)(?:; so in \d+ of (?P<trials>\d+) trials)?\."
    )
    streams = _by_stream(_acks(said, part["trial"]))
    assert int(part["all"]) == len(streams)
    times = number(part["times"])
    assert 3 <= times <= len(streams) * 1.001, said.text
    first = max(acked[0] for _, acked in streams)
    last = min(submitted.max() for submitted, _ in streams)
    edges = np.arange(first, last, seconds(part["bin"]))
    counts = np.array([np.histogram(acked, edges)[0] for _, acked in streams])
    found = counts.sum(axis=0).var() / counts.var(axis=1).sum()
    assert 0.7 <= found / times <= 1.4, (said.text, found)
    _trials(said, part.get("trials"))


@checks("transfer_acks_late")
def transfer_acks_late(said: Said) -> None:
    part = said.match(
        rf"{_NAME}: acks came up to (?P<drain>{_TIME}) after the last request of (?P<trial>t\d+): half of"
        rf" (?P<after>[\d,]+) took (?P<half>{_TIME}) or longer, nine of ten before them at most"
        rf" (?P<usual>{_TIME})(?:; late in \d+ of (?P<trials>\d+) trials)?\."
    )
    acks = _acks(said, part["trial"])
    last = acks.submitted_ns.max()
    took = (acks.acked_ns - acks.submitted_ns) / 1e9
    after = acks.acked_ns > last
    close(seconds(part["drain"]), float(acks.acked_ns.max() - last) / 1e9)
    assert int(number(part["after"])) == after.sum()
    close(seconds(part["half"]), float(np.median(took[after])))
    assert abs((took[~after] <= seconds(part["usual"]) * 1.006).mean() - 0.9) <= 0.02
    _trials(said, part.get("trials"))


@checks("transfer_acks_lost")
def transfer_acks_lost(said: Said) -> None:
    part = said.match(rf"{_NAME}: (?P<lost>[\d,]+) acks of (?P<all>[\d,]+) exceeded what a trial stores\..*")
    own = [read_acks(said.result, row.trial) for row in said.complete(said.statement.cells[0])]
    lost = sum(one.lost for one in own if one)
    kept = sum(len(one) for one in own if one and one.lost)
    assert number(part["lost"]) == lost
    assert number(part["all"]) == lost + kept
    assert not re.search(r"\d", said.text.partition(": ")[2].partition("trial keeps")[2])
