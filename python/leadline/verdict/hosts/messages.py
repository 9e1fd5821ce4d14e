"""What is said of the hosts in sentences: which one is slow; and on the first screen in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from leadline.analysis.stragglers import HostAway
from leadline.store.tables import TrialRow
from leadline.units import format_duration, format_ratio_interval
from leadline.verdict.answers.certain import confidence_words
from leadline.verdict.hosts.seen import HostsSeen, is_straggler, stragglers
from leadline.verdict.model import UNUSABLE, State, Statement

_NAMED = 4


def host_statements(seen: HostsSeen, states: Mapping[str, State]) -> Iterator[Statement]:
    """A sentence for each straggler, the slowest first; of many the slowest few, and how many more."""
    found = _by_host(seen, states)
    for host, slow in list(found.items())[:_NAMED]:
        worst = slow[0]
        cells = [cell for cell in _cells_of(seen, host) if states.get(cell) not in UNUSABLE]
        where = (
            f" in {worst.cell}"
            if len(slow) == 1
            else f" in {len(slow)} of {len(cells)} cells; in {worst.cell}"
        )
        yield Statement(
            "caution",
            f"Host {host} is slower than the others{where}: {worst.ratio:.2f} times as fast as their median"
            f" ({interval_words(worst)}).",
            tuple(f"{one.cell}: {one.ratio:.2f} ({interval_words(one)})" for one in slow),
            says="host_slower",
            cells=tuple(one.cell for one in slow),
        )
    more = list(found)[_NAMED:]
    if more:
        rest = [one for host in more for one in found[host]]
        yield Statement(
            "caution",
            f"{len(more)} more hosts are slower than the others; the slowest of them, {rest[0].host},"
            f" {rest[0].ratio:.2f} times as fast as their median.",
            tuple(f"{host}: {found[host][0].ratio:.2f} in {found[host][0].cell}" for host in more),
            says="hosts_slower_more",
            cells=tuple(dict.fromkeys(one.cell for one in rest)),
        )


def host_line(seen: HostsSeen, trials: Sequence[TrialRow]) -> tuple[str, ...]:
    """The hosts in one line: how many, how far apart they began, which are slow."""
    joint = [trial for trial in trials if trial.hosts]
    if not seen or not joint:
        return ()
    most = max(trial.hosts or 0 for trial in joint)
    skew_ns = max(trial.start_skew_ns or 0 for trial in joint)
    slow = sorted({one.host for away in seen.away.values() for one in away if is_straggler(one)})
    named = ", ".join(slow[:_NAMED]) + (f" and {len(slow) - _NAMED} more" if len(slow) > _NAMED else "")
    blocks = max((one.blocks for away in seen.away.values() for one in away), default=0)
    if slow:
        words = f"slower than the others: {named}"
    else:
        words = (
            "none is known to be slower than the others"
            if blocks > 1
            else "one block tells of none whether it is slow"
        )
    return (f"{most} hosts, begun within {format_duration(skew_ns / 1e9)}: {words}.",)


def interval_words(one: HostAway) -> str:
    """Its interval, at the confidence of the decision."""
    if one.low is None or one.high is None:
        return "no interval"
    bounds = format_ratio_interval(one.low, one.high)
    return f"{confidence_words(one.confidence)} interval {bounds}, {one.blocks} blocks"


def _by_host(seen: HostsSeen, states: Mapping[str, State]) -> dict[str, list[HostAway]]:
    """Host -> the cells where it is slow, the slowest first; hosts in the order of their slowest."""
    every = [
        one
        for cell, away in seen.away.items()
        if states.get(cell) not in UNUSABLE
        for one in stragglers(away)
    ]
    found: dict[str, list[HostAway]] = {}
    for one in sorted(every, key=lambda one: one.ratio):
        found.setdefault(one.host, []).append(one)
    return found


def _cells_of(seen: HostsSeen, host: str) -> list[str]:
    return [cell for cell, away in seen.away.items() if any(one.host == host for one in away)]
