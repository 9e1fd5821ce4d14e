"""What a design carries while something of it is lost: each figure held against arithmetic done here by hand.

The design: hosts of ten devices of 10 TB on links of 10 Gbit/s, so 1.25 GB/s times the goodput each way.
"""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from leadline.analysis.models.simple import Protection
from leadline.cli.main import leadline
from leadline.cli.predict.sized import answer_words, state_lines
from leadline.errors import SpecError
from leadline.sizing.designs import (
    DegradedDesign,
    PerDeviceRate,
    degraded,
    design_of,
    designs,
    device_times,
    lacks,
)
from leadline.sizing.hardware import GOODPUT, Catalogue, read_catalogue
from leadline.sizing.moved import Inputs
from leadline.sizing.request import AskedSizing
from leadline.verdict.requirements import read_requirements

_HEAD = "format: leadline.requirements/1\nsizing:\n  capacity: 100 TB\n  protection: ['3', '4+2']\n"
_BOTH = "  clients: {reads: {clients: 10, read: 300 MB/s}, writes: {clients: 10, write: 100 MB/s}}\n"
_NETWORK = "  network: {hosts_per_switch: 4, uplink: 10 Gb/s}\n"
_HARDWARE = """format: leadline.hardware/1
currency: EUR
hosts:
  small: {source: own, date: '2026-11-01', bays: 10, device: 10 TB, link: 10 Gb/s, price: 9000}
"""
LINK = 1.25e9 * GOODPUT
COPIES, CODED = Protection(copies=3), Protection(k=4, m=2)


def _asked(body: str) -> AskedSizing:
    found = read_requirements(_HEAD + body, "asked.yaml", {}).sizing
    assert found is not None
    return found


def _catalogue(text: str = _HARDWARE) -> Catalogue:
    return read_catalogue(text, "ours.yaml", {})


def _state(body: str, protection: Protection, hosts: int, state: str) -> DegradedDesign:
    return degraded(_asked(body), _catalogue().hosts["small"], protection, hosts, state)


def test_a_host_lost_leaves_the_links_of_the_others() -> None:
    """3 GB/s read and 1 written in three copies: 5 GB/s out of hosts, 3 in. Nine of ten hosts are left."""
    found = _state(_BOTH, COPIES, 10, "host")
    assert found.carried == pytest.approx(9 * LINK / 5e9)
    assert (found.bound, found.devices) == ("links of the hosts, out", 90)


def test_each_work_has_what_the_others_leave_and_its_own_bound() -> None:
    """Reads go out only: 2 of 5 GB/s are copies of writes. Writes fill what reads leave of it first."""
    found = _state(_BOTH, COPIES, 10, "host")
    reads, writes = found.works
    assert (reads.name, reads.bound) == ("reads", "links of the hosts, out")
    assert reads.times == pytest.approx((9 * LINK - 2e9) / 3e9)
    out, into = (9 * LINK - 3e9) / 2e9, 9 * LINK / 3e9
    assert writes.times == pytest.approx(min(out, into))
    assert writes.bound == ("links of the hosts, in" if into < out else "links of the hosts, out")


def test_a_device_lost_fills_the_hosts_that_have_all_of_theirs() -> None:
    """Of 99 devices a whole host has ten: its link carries 10/99 of all bytes and not a tenth."""
    found = _state(_BOTH, COPIES, 10, "device")
    assert found.carried == pytest.approx(LINK / (5e9 * 10 / 99))
    assert found.devices == 99


def test_a_switch_lost_takes_its_hosts_and_its_uplink() -> None:
    """Twelve hosts on three switches; eight are left on two. 3 GB/s read out of two uplinks bound it.

    Of what hosts send each other, 2 GB/s of copies, four of a host's seven others are behind the uplink.
    """
    found = _state(_BOTH + _NETWORK, COPIES, 12, "switch")
    assert found.stopped == ""
    assert found.carried == pytest.approx(2 * LINK / (3e9 + 2e9 * 4 / 7))
    assert found.bound == "links of the switches, uplinks, out"
    assert found.devices == 80


@pytest.mark.parametrize(
    ("protection", "hosts", "words"),
    [
        (COPIES, 12, ""),  # three switches, a copy on each: two copies are enough
        (COPIES, 8, "2 of 3 shards"),  # two switches: two copies on one of them
        (COPIES, 4, "the only switch has 3 of 3 shards"),
        (COPIES, 10, "not as many on each of 3 switches"),
        (CODED, 12, "2 of 6 shards"),  # three switches with two shards each: four are left, five are needed
        (CODED, 24, ""),
        (
            Protection(k=4, m=3),
            16,
            "",
        ),  # seven shards on four switches: two lost, five of five needed are left
    ],
)
def test_data_are_served_without_a_switch_only_where_enough_shards_are_elsewhere(
    protection: Protection, hosts: int, words: str
) -> None:
    body = "  clients: {reads: {clients: 10, read: 1 MB/s}}\n" + _NETWORK
    found = _state(body, protection, hosts, "switch")
    assert words in found.stopped
    assert bool(words) == bool(found.stopped)
    assert found.carries is not bool(words)


def test_ceph_serves_down_to_min_size() -> None:
    """Ceph's defaults: two of three copies, one of two; k+1 shards, and k where there is one more only."""
    assert [Protection(copies=number).min_size for number in (2, 3, 4)] == [1, 2, 2]
    assert [Protection(k=4, m=number).min_size for number in (1, 2, 3)] == [4, 5, 5]


@pytest.mark.parametrize(("protection", "times"), [(COPIES, 1), (CODED, 4)])
def test_a_rebuild_takes_its_part_of_the_links(protection: Protection, times: int) -> None:
    """80 TB of a host, four times that from coded shards, within 20 hours over nine hosts; 1 GB/s is read."""
    body = "  rebuild: 20 h\n  clients: {reads: {clients: 10, read: 100 MB/s}}\n"
    found = _state(body, protection, 10, "rebuild")
    rebuilt, read = 80e12 * times / 72000, 1e9 + (0.75e9 if times == 4 else 0)
    assert found.carried == pytest.approx((9 * LINK - rebuilt) / read)
    assert found.held_s == 72000
    assert found.rebuild_s == pytest.approx(80e12 * times / (9 * LINK - read))


def test_a_rebuild_that_clients_leave_no_room_for_never_ends() -> None:
    """20 GB/s read from nine links."""
    found = _state("  clients: {reads: {clients: 10, read: 2 GB/s}}\n", COPIES, 10, "rebuild")
    assert found.rebuild_s == math.inf
    assert not found.carries


def test_nothing_is_rebuilt_where_no_host_is_left_for_a_shard() -> None:
    found = _state(_BOTH + "  hosts_lost: 0\n", CODED, 6, "rebuild")
    assert "5 hosts are left for 6 shards" in found.stopped


def test_what_may_fail_decides_the_number_of_hosts() -> None:
    """Capacity needs five hosts. Their copies are served without a switch from three switches on."""
    plain = _asked(_BOTH.replace("300 MB/s", "30 MB/s") + _NETWORK)
    strict = plain.model_copy(update={"may_fail": ["switch"]})
    catalogue = _catalogue()
    before = {one.protection: one for one in designs(plain, catalogue)[0]}
    after = {one.protection: one for one in designs(strict, catalogue)[0]}
    assert (before["3"].hosts, after["3"].hosts) == (5, 9)
    assert after["4+2"].hosts == 24
    fewer = design_of(strict, catalogue, "small", "3", 8)
    assert lacks(strict, fewer) == ("data served, with a switch lost",)


def test_a_bound_that_does_not_hold_while_something_is_lost_is_said() -> None:
    """3 GB/s and two copies of 1 GB/s over four links of 1.19 GB/s: carried by five hosts, not by four."""
    body = _BOTH.replace("300 MB/s", "280 MB/s") + "  hosts_lost: 0\n  may_fail: [device, host]\n"
    asked, catalogue = _asked(body), _catalogue()
    fewer = design_of(asked, catalogue, "small", "3", 5)
    assert fewer.headroom > 1
    assert lacks(asked, fewer) == ("links of the hosts, out, with a host lost",)
    assert not lacks(asked, design_of(asked, catalogue, "small", "3", 6))
    lines = state_lines(Inputs(asked, catalogue), fewer, ())
    assert "with a device lost: carried by links, as has to be" in lines[0]
    assert "with a host lost: NOT carried by links, and it has to be" in lines[1]


def test_devices_that_are_left_are_judged_by_measured_cells_only() -> None:
    """100 MB/s each of 99 devices for 9.95 GB/s: what was measured bears neither yes nor no."""
    asked = _asked("  clients: {reads: {clients: 10, read: 995 MB/s}}\n")
    rate = PerDeviceRate("cell", 1.00e8, 1.01e8, 30, True)
    low, high = device_times(asked, 99, [rate]) or (0, 0)
    assert (low, high) == pytest.approx((9.9 / 9.95, 9.999 / 9.95))
    assert device_times(asked, 99, [PerDeviceRate("few", 1e8, 2e8, 24, True)]) is None  # 4.1 times as many
    assert device_times(asked, 99, [PerDeviceRate("other", 1e8, 2e8, 30, False)]) is None
    inputs = Inputs(asked, _catalogue())
    ten = design_of(asked, inputs.catalogue, "small", "3", 10)
    lines = state_lines(inputs, ten, [rate])
    assert lines[0].endswith("99 devices, measured, 0.99 to 1.00 times: inconclusive")
    assert lines[1].endswith("90 devices, measured, 0.90 to 0.91 times: NOT carried")
    assert "measured" not in lines[2]


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("  may_fail: [switch]\n", 3, "which hosts are below one is not given"),
        ("  may_fail: [rack]\n", 5, "not one of them"),
        ("  may_fail: [host, host]\n", 3, "twice"),
        ("  may_fail: host\n", 5, "a list is needed"),
        ("  while_rebuilding: true\n", 3, "needs a pace"),
        ("  rebuild: 2 h\n  while_rebuilding: 5\n", 6, "neither true nor false"),
    ],
)
def test_what_may_fail_is_refused_with_its_line(body: str, line: int, words: str) -> None:
    with pytest.raises(SpecError, match=words) as refused:
        _asked(body)
    assert refused.value.line in (line, 2)


def test_no_switch_is_lost_where_there_is_none() -> None:
    inputs = Inputs(_asked(_BOTH), _catalogue())
    lines = state_lines(inputs, inputs.every()["small/3"], ())
    assert [line.split(":")[0] for line in lines][:2] == ["with a device lost", "with a host lost"]
    assert not any("switch" in line for line in lines)


def test_a_host_without_a_price_is_said_and_never_the_cheapest() -> None:
    """Twice the bays for a price that nobody wrote: fewer hosts, and yet not the answer."""
    more = "  large: {source: own, date: '2026-11-01', bays: 20, device: 10 TB, link: 10 Gb/s}\n"
    asked, catalogue = _asked(""), _catalogue(_HARDWARE + more)
    front, _ = designs(asked, catalogue)
    assert front[0].kind == "small"
    assert "large" in {one.kind for one in front}
    answer = answer_words(Inputs(asked, catalogue), front, ())
    assert "for 45,000 EUR" in answer
    assert "no price of large" in answer


def test_states_are_in_json_and_in_the_table(tmp_path: Path) -> None:
    asked, ours, table = (tmp_path / name for name in ("asked.yaml", "ours.yaml", "designs.csv"))
    asked.write_text(_HEAD + _BOTH + "  rebuild: 20 h\n  may_fail: [host]\n  while_rebuilding: true\n")
    ours.write_text(_HARDWARE)
    words = ["size", str(asked), "--hardware", str(ours), "--json", "--csv", str(table)]
    ended = CliRunner().invoke(leadline, words, standalone_mode=False)
    (first, *_) = json.loads(ended.output)["designs"]
    states = {one["state"]: one for one in first["states"]}
    assert set(states) == {"device", "host", "rebuild"}
    assert [states[name]["required"] for name in states] == [False, True, True]
    assert [one["name"] for one in states["host"]["works"]] == ["reads", "writes"]
    (row, *_) = csv.DictReader(table.read_text().splitlines())
    assert float(row["links_carry_host"]) == pytest.approx(states["host"]["carried"])
    assert row["links_carry_switch"] == ""


def test_uplinks_bound_the_least_time_of_a_rebuild() -> None:
    """80 TB onto seven hosts, four below one switch: 4/7 of what is sent, half of which leaves it."""
    found = design_of(_asked(_NETWORK.replace("10 Gb/s", "1 Gb/s")), _catalogue(), "small", "3", 8)
    assert found.rebuild_s == pytest.approx(80e12 * 4 / 7 * 3 / 6 / (LINK / 10))


def test_a_host_without_a_price_is_no_design_for_limited_money() -> None:
    """Those with a price are sized, and of the other it is said what is missing."""
    more = "  large: {source: own, date: '2026-11-01', bays: 20, device: 10 TB, link: 10 Gb/s}\n"
    asked = _asked("  money: 100000\n")
    front, others = designs(asked, _catalogue(_HARDWARE + more))
    assert {one.kind for one in front} == {"small"}
    assert {lacks(asked, one) for one in others} == {("price (the catalogue has none)",)}


def test_the_answer_says_that_measured_devices_do_not_carry_it() -> None:
    """Of seven hosts 60 devices without one, of 90 MB/s at most: 5.4 of 6 GB/s. 69 without a device: 6.2."""
    asked = _asked("  may_fail: [device]\n  clients: {reads: {clients: 10, read: 600 MB/s}}\n")
    inputs = Inputs(asked.model_copy(update={"protection": ["3"], "capacity": "130 TB"}), _catalogue())
    front, _ = designs(inputs.asked, inputs.catalogue)
    assert [one.hosts for one in front] == [7]
    slow, fast = (PerDeviceRate("cell", 0.5 * high, high, 30, True) for high in (0.9e8, 1.1e8))
    said = answer_words(inputs, front, [slow])
    assert "at most 0.90 times with 1 host lost." in said
    assert "devices do not carry" not in answer_words(inputs, front, [fast])
