"""Which host is slower than the others: medians without the host itself, and who is called slow."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.analysis.stragglers import HostAway, away_from_others, hosts_away


def study(factors: list[float], blocks: int = 6, noise: float = 0.01) -> list[HostAway]:
    """One cell; each host so fast, in blocks that all of them share."""
    random = np.random.default_rng(3)
    speeds = {
        block: {
            f"h{host}": factor * float(np.exp(random.normal(0, noise))) for host, factor in enumerate(factors)
        }
        for block in range(blocks)
    }
    return list(hosts_away({"cell": speeds}))


@pytest.mark.parametrize("hosts", [2, 4, 5, 8, 9])
def test_a_host_is_held_against_the_median_of_the_others(hosts: int) -> None:
    rows = np.random.default_rng(hosts).normal(size=(hosts, 4))
    for host, away in enumerate(away_from_others(rows)):
        others = np.median(np.delete(rows, host, axis=0), axis=0)
        assert away == pytest.approx(rows[host] - others)


def test_ties_are_no_trouble() -> None:
    assert away_from_others(np.ones((6, 3))).tolist() == np.zeros((6, 3)).tolist()


def test_one_fast_host_of_three_makes_no_stragglers() -> None:
    assert [one.found and one.ratio < 0.95 for one in study([1.5, 1.0, 1.0])] == [False, False, False]


def test_one_slow_host_of_three_is_found() -> None:
    found = study([1.0, 0.6, 1.0])
    assert [one.found and one.ratio < 0.95 for one in found] == [False, True, False]


@pytest.mark.parametrize("hosts", [2, 4, 16, 80])
def test_a_slow_host_is_found_with_its_interval(hosts: int) -> None:
    slow, *others = study([0.8, *[1.0] * (hosts - 1)])
    assert slow.found
    assert slow.low is not None
    assert slow.high is not None
    assert slow.low < 0.8 < slow.high < 1
    assert slow.ratio == pytest.approx(0.8, abs=0.02)
    assert not any(one.found and one.ratio < 0.95 for one in others)
    assert (others[0].low is None) == (hosts > 64)


def test_what_happens_to_all_hosts_in_a_block_is_nobodys() -> None:
    speeds = {
        block: {f"h{host}": 2.0**block * (1 + 0.001 * ((host + block) % 3)) for host in range(6)}
        for block in range(6)
    }
    assert not any(one.found and one.ratio < 0.95 for one in hosts_away({"cell": speeds}))


def test_many_hosts_are_as_sure_as_their_number_allows() -> None:
    few, many = study([0.8, 1.0, 1.0, 1.0])[0], study([0.8, *[1.0] * 63])[0]
    assert 0.95 < few.confidence < many.confidence


def test_one_block_gives_no_interval() -> None:
    assert all(one.low is None and not one.found for one in study([0.5, 1.0, 1.0, 1.0], blocks=1))


def test_hosts_that_lack_a_block_are_left_out() -> None:
    speeds = {1: {"a": 1.0, "b": 1.0, "c": 1.0}, 2: {"a": 1.0, "b": 1.0}}
    assert [one.host for one in hosts_away({"cell": speeds})] == ["a", "b"]
    assert hosts_away({"cell": {1: {"a": 1.0}}, "none": {}}) == ()
