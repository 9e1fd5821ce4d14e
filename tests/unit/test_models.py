"""Models against the published figures of four documents, each with the error that its docstring states."""

from __future__ import annotations

from itertools import pairwise

import pytest

from leadline.analysis.models.law import Station, operations, scaling
from leadline.analysis.models.links import Wired, aggregate, carried, ceiling
from leadline.analysis.models.simple import Protection
from leadline.analysis.models.storage import (
    Stream,
    by_another,
    by_latency,
    coded_rate,
    commits,
    costs,
    run_time,
)
from leadline.errors import UsageError

TEN_GBIT = 1.25e9
CODED, CASTOR, COPIES = Protection(k=6, m=3), Protection(k=8, m=3), Protection(copies=3)
SUSE = [(4096, 260082.0), (65536, 136306.0)]  # random writes with three copies, by size


def castors(size: float) -> tuple[float, float]:
    stream = Stream(size, TEN_GBIT, object_bytes=4 << 20, hops=(1, 2))
    found = by_another(stream, 2e6, 65e6).computed[0]
    return found.low / 1e6, found.high / 1e6


def test_castors_streams_lie_within_what_the_smallest_says() -> None:
    assert castors(2e6) == pytest.approx((65, 65))
    low, high = castors(32e6)
    assert (round(low), round(high)) == (294, 584)
    assert low < 300 < high
    low, high = castors(64e6)
    assert low < 500 < high


def test_a_stream_is_its_bytes_in_flight_over_the_latency_up_to_the_link() -> None:
    rates = [by_latency(Stream(1e6, 1e8, n), 0.04).computed[0].low for n in (1, 2, 4, 8, 16)]
    assert rates[:2] == [pytest.approx(1e6 / 0.05), pytest.approx(2e6 / 0.05)]
    assert rates[-1] == 1e8
    assert all(a <= b for a, b in pairwise(rates))
    with pytest.raises(UsageError, match="more than the link carries"):
        by_another(Stream(1e6, 1e8), 1e6, 2e8)


def test_castors_commits() -> None:
    found = commits(1e9, 5e6, CASTOR, 540).computed
    assert [one.low for one in found] == pytest.approx([2200, 2200 / 540])


@pytest.mark.parametrize(
    ("size", "published", "least", "most"), [(4096, 56489, 1.03, 1.24), (65536, 50362, 0.96, 1.18)]
)
def test_suses_coded_writes_from_its_copies(size: int, published: float, least: float, most: float) -> None:
    found = coded_rate(size, CODED, SUSE, 3, 120, 18000)
    assert (found.low / published, found.high / published) == pytest.approx((least, most), abs=0.01)


def test_what_a_small_coded_write_costs() -> None:
    between, stored, writes, reads = (one.low for one in costs(4096, CODED).computed)
    assert (between, stored, writes, reads) == (pytest.approx(8 / 6), 9.0, 9.0, 6.0)
    whole = costs(6 * 4096, CODED).computed
    assert [one.low for one in whole[1:]] == [1.5, 9.0, 0.0]  # a whole stripe: nothing is read
    assert [one.low for one in costs(4096, COPIES).computed] == [2.0, 3.0, 3.0]


FERMILAB = {1: 813, 2: 847, 4: 943, 6: 1344, 7: 1529}


@pytest.mark.parametrize(("copies", "published"), FERMILAB.items())
def test_fermilabs_copies_within_three_percent(copies: int, published: float) -> None:
    found = run_time({n: float(FERMILAB[n]) for n in (1, 2, 4)}, 4, copies).computed[0]
    assert found.high == pytest.approx(published, rel=0.03)


def test_fermilabs_eighth_copy_is_where_the_model_ends() -> None:
    found = run_time({n: float(FERMILAB[n]) for n in (1, 2, 4)}, 4, 8).computed[0]
    assert found.low < 1529 * 1.001 < found.high
    with pytest.raises(UsageError, match="fewer than three"):
        run_time({1: 1.0, 8: 2.0}, 4, 2)


def tree(*, hosts: int = 11, uplink: float = 200e6 / 8) -> Wired:
    """Castor's shape in small: hosts behind six uplinks, clients beyond."""
    above = {"core": "", **{f"s{n}": "core" for n in range(6)}, "clients": "core", "c1": "clients"}
    above |= {f"h{n}": f"s{n * 6 // hosts}" for n in range(hosts)}
    rates = {name: uplink for name in above if name.startswith("s")}
    return Wired(above, rates, {f"h{n}": 1 for n in range(hosts)}, ("c1",))


def test_what_uplinks_carry_is_the_documents_formula() -> None:
    """Down f + (1 - f) h / 8, up f (11 - h) / 8, with f the primaries below a switch of h hosts."""
    wired = tree()
    primaries = {"h0": 1 / 8, "h1": 2 / 8, "h2": 3 / 8, "h10": 2 / 8}
    load = carried(wired, CASTOR, primaries)
    below = [name for name, up in wired.above.items() if up == "s0"]
    share, count = sum(primaries.get(name, 0.0) for name in below), len(below)
    assert load["s0", "down"] == pytest.approx(share + (1 - share) * count / 8)
    assert load["s0", "up"] == pytest.approx(share * (11 - count) / 8)
    assert load["c1", "up"] == pytest.approx(1.0)
    assert ("c1", "down") not in load


def test_what_is_sent_is_received() -> None:
    for protection in (CASTOR, COPIES):
        for reads in (False, True):
            load = carried(tree(), protection, {"h0": 0.5, "h5": 0.5}, reads=reads)
            ends = [name for name in tree().above if name.startswith(("h", "c1"))]
            up, down = (sum(load.get((name, way), 0.0) for name in ends) for way in ("up", "down"))
            assert up == pytest.approx(down)
            parts = {
                (CASTOR, False): 10 / 8,
                (CASTOR, True): 7 / 8,
                (COPIES, False): 2.0,
                (COPIES, True): 0.0,
            }
            assert up == pytest.approx(1 + parts[protection, reads])


def test_the_ceiling_is_the_cable_that_is_full_first() -> None:
    wired = tree()
    rate, full = ceiling(wired, carried(wired, CASTOR, {"h0": 1.0}))
    assert rate == pytest.approx(25e6 / max(1.0, 9 / 8))
    assert full == (("s0", "up"),)
    even = aggregate(wired, CASTOR).computed[0]
    assert aggregate(tree(uplink=400e6 / 8), CASTOR).computed[0].low == pytest.approx(2 * even.low)


def test_chance_deals_worse_than_even_hands_and_less_so_with_many_groups() -> None:
    few, even = aggregate(tree(), CASTOR, groups=8).computed
    many, _ = aggregate(tree(), CASTOR, groups=4096).computed
    assert few.low < few.high <= even.low * 1.001
    assert many.low > few.low
    assert many.low > 0.9 * even.low


def test_a_proxy_passes_every_byte_once_more() -> None:
    wired = tree()
    over = {**wired.above, "p": "clients"}
    load = carried(Wired(over, wired.rates, wired.storage, wired.clients, ("p",)), COPIES, {"h0": 1.0})
    assert load["p", "down"] == load["p", "up"] == pytest.approx(1.0)


def test_a_cluster_network_of_its_own_carries_what_osds_say_to_each_other() -> None:
    above = {
        "a": "",
        "b": "",
        "c1": "a",
        **{f"h{n}": "a" for n in range(3)},
        **{f"h{n}/b": "b" for n in range(3)},
    }
    behind = {f"h{n}": f"h{n}/b" for n in range(3)}
    wired = Wired(above, {}, dict.fromkeys(behind, 1), ("c1",), (), behind)
    load = carried(wired, COPIES, {"h0": 1.0})
    assert load["h0/b", "up"] == pytest.approx(2.0)
    assert ("h0", "up") not in load
    assert ceiling(wired, load) == (float("inf"), ())


def test_hosts_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match="11 copies or shards do not fit on 10 hosts"):
        aggregate(tree(hosts=10), CASTOR)
    with pytest.raises(UsageError, match="x: no host with OSDs"):
        aggregate(tree(), CASTOR, primaries={"x": 1})


def test_a_closed_loop_is_littles_law_where_nobody_waits() -> None:
    rate, latency = operations([Station("network", 0.0335, 0)], 8704).computed
    assert rate.low == pytest.approx(8704 / 0.0335)
    assert latency.low == pytest.approx(0.0335)  # SUSE: 33 ms at 260,082


def test_mean_values_of_one_server_and_thinking() -> None:
    """Two customers, thinking Z and served S: X = 2 (Z + S) / ((Z + S)^2 + S^2), by hand."""
    think, served = 3.0, 1.0
    rate = operations([Station("think", think, 0), Station("disk", served)], 2).computed[0]
    first = 1 / (think + served)
    queue = first * served
    assert rate.low == pytest.approx(2 / (think + served * (1 + queue)))
    assert rate.high == pytest.approx(0.5)
    full, _, knee = operations([Station("think", think, 0), Station("disk", served)], 400).computed
    assert full.high == 1.0
    assert full.low == pytest.approx(1.0, rel=1e-3)
    assert knee.low == 4.0


def test_the_scalability_law_finds_what_made_the_rates() -> None:
    a, s, k = 1000.0, 0.05, 0.002
    seen = {float(n): a * n / (1 + s * (n - 1) + k * n * (n - 1)) for n in (1, 2, 4, 8, 16, 32)}
    contention, crosstalk, off, most = scaling(seen).computed
    assert contention.low == pytest.approx(s, rel=1e-3)
    assert crosstalk.high == pytest.approx(k, rel=1e-3)
    assert off.low < 1e-6
    assert "at 21.8" in most.formula
    with pytest.raises(UsageError, match="3 points cannot tell"):
        scaling({1.0: 1.0, 2.0: 2.0, 3.0: 3.0})
