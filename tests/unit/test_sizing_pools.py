"""Pools on devices of another class: held against arithmetic done here by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from leadline.analysis.models.simple import Protection
from leadline.cli.main import leadline
from leadline.errors import SpecError
from leadline.lab.network.topology_file import read_topology
from leadline.sizing.designs import degraded, design_of, designs, lacks
from leadline.sizing.hardware import GOODPUT, Catalogue, read_catalogue
from leadline.sizing.moved import Inputs, sensitivity
from leadline.sizing.request import AskedSizing
from leadline.sizing.small import in_small
from leadline.verdict.requirements import Requirements, read_requirements

_HEAD = "format: leadline.requirements/1\nsizing:\n  capacity: 100 TB\n  protection: ['4+2']\n"
_POOL = "  pools: {metadata: {capacity: 4 TB, class: nvme}}\n"
_HARDWARE = """format: leadline.hardware/1
currency: EUR
hosts:
  both:
    source: own
    date: '2026-11-01'
    bays: 10
    device: 10 TB
    link: 10 Gb/s
    price: 9000
    classes: {nvme: {bays: 2, device: 1 TB}}
"""
LINK = 1.25e9 * GOODPUT


def _asked(body: str = _POOL) -> AskedSizing:
    found = read_requirements(_HEAD + body, "asked.yaml", {}).sizing
    assert found is not None
    return found


def _catalogue(text: str = _HARDWARE) -> Catalogue:
    return read_catalogue(text, "ours.yaml", {})


def test_a_pool_decides_the_number_of_hosts_by_the_devices_of_its_class() -> None:
    """4 TB in three copies filled to 80 % are 15 TB raw: eight hosts, and one to be lost. Data need seven."""
    (front,), _ = designs(_asked(), _catalogue())
    assert front.hosts == 9
    (pool,) = front.pools
    assert (pool.asked_bytes, pool.usable_bytes) == (4e12, pytest.approx(8 * 2e12 * 0.8 / 3))
    assert lacks(_asked(), design_of(_asked(), _catalogue(), "both", "4+2", 8)) == ("pool metadata",)
    assert designs(_asked(""), _catalogue())[0][0].hosts == 7


def test_pools_of_one_class_share_its_devices() -> None:
    """4 TB in three copies beside 6 TB in two: 24 TB at 80 % are 15 hosts, and one to be lost."""
    asked = _asked(
        "  pools:\n    a: {capacity: 4 TB, class: nvme}\n"
        "    b: {capacity: 6 TB, class: nvme, protection: '2'}\n"
    )
    (front,), _ = designs(asked, _catalogue())
    assert front.hosts == 16
    assert [pool.usable_bytes for pool in front.pools] == pytest.approx([4e12, 6e12])


def test_a_pool_grows_as_the_data_do() -> None:
    """Twice as much in a year."""
    (front,), _ = designs(_asked(_POOL + "  growth: 1\n"), _catalogue())
    assert front.pools[0].asked_bytes == 8e12
    assert front.hosts == 16


def test_a_host_without_that_class_is_no_design() -> None:
    front, (other,) = designs(_asked(_POOL.replace("nvme", "pmem")), _catalogue())
    assert front == ()
    assert lacks(_asked(_POOL.replace("nvme", "pmem")), other) == ("devices of class pmem",)


def test_a_rebuild_makes_the_devices_of_pools_anew_too() -> None:
    """80 TB of data four times over, and 1.6 TB of copies once."""
    one = _catalogue().hosts["both"]
    found = degraded(_asked(), one, Protection(k=4, m=2), 10, "rebuild")
    assert found.rebuild_s == pytest.approx((80e12 * 4 + 1.6e12) / (9 * LINK))


def test_a_pool_has_to_be_served_without_a_switch_too() -> None:
    """Copies of two on six switches are; a pool of four and one is not where it has three."""
    network = "  network: {hosts_per_switch: 4, uplink: 10 Gb/s}\n"
    one, data = _catalogue().hosts["both"], Protection(copies=3)
    for text, why in (("3", ""), ("4+1", "pool metadata: one of 3 switches has, at best, 2 of 5 shards")):
        asked = _asked(_POOL.replace("nvme}", f"nvme, protection: '{text}'}}") + network)
        assert degraded(asked, one, data, 12, "switch").stopped.startswith(why)


def test_a_tenth_of_the_pools_is_an_input() -> None:
    """Nine tenths need eight hosts, eleven need ten: 13.5 and 16.5 TB raw, and one to be lost."""
    found = {one.name: one for one in sensitivity(Inputs(_asked(), _catalogue()))}
    pools = found["pools"]
    assert pools.lower is not None
    assert pools.higher is not None
    assert (pools.lower.hosts, pools.higher.hosts) == (8, 10)
    assert "pools" not in {one.name for one in sensitivity(Inputs(_asked(""), _catalogue()))}


def test_a_design_in_small_says_that_it_has_one_class_only() -> None:
    inputs = Inputs(_asked(), _catalogue())
    text = in_small(inputs, inputs.every()["both/4+2"]).text
    assert "no devices of other classes: pools metadata" in text
    read_topology(text, "small.yaml", {}, made_here=False)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("  pools: {a: {capacity: 4 TB}}\n", "missing"),
        ("  pools: {a: {capacity: 0 TB, class: nvme}}\n", "nothing is asked with 0"),
        ("  pools: {a: {capacity: 4 TB, class: nvme, protection: '1'}}\n", "no protection"),
        ("  pools: {a: {capacity: 4 TB, class: nvme, protection: '2'}}\n  hosts_lost: 2\n", "2 bears 1"),
        ("  pools: {a: {capacity: 4 TB, clas: nvme}}\n", "did you mean class"),
        ("  pools: [a]\n", "a mapping is needed"),
    ],
)
def test_pools_that_are_none_are_refused(body: str, words: str) -> None:
    with pytest.raises(SpecError) as refused:
        _asked(body)
    assert words in f"{refused.value.message} {refused.value.remedy}"
    assert refused.value.line is not None


@pytest.mark.parametrize(
    ("classes", "words"),
    [("{nvme: {bays: 0, device: 1 TB}}", "out of range"), ("{nvme: {device: 1 TB}}", "missing")],
)
def test_classes_of_a_catalogue_are_checked(classes: str, words: str) -> None:
    with pytest.raises(SpecError, match=words) as refused:
        _catalogue(_HARDWARE.replace("{nvme: {bays: 2, device: 1 TB}}", classes))
    assert refused.value.line == 11


def test_pools_are_said_and_stored(tmp_path: Path) -> None:
    asked, ours = tmp_path / "asked.yaml", tmp_path / "ours.yaml"
    asked.write_text(_HEAD + _POOL)
    ours.write_text(_HARDWARE)
    words = ["size", str(asked), "--hardware", str(ours)]
    said = CliRunner().invoke(leadline, words, standalone_mode=False)
    assert "pool metadata on its nvme devices, protection 3: holds 3.88 TiB of 3.64 TiB asked" in " ".join(
        said.output.split()
    )
    assert "comes from: pool metadata." in " ".join(said.output.split())
    found = CliRunner().invoke(leadline, [*words, "--json"], standalone_mode=False)
    assert json.loads(found.output)["designs"][0]["pools"][0]["asked_bytes"] == 4e12
    whole = read_requirements(asked.read_text(), "asked.yaml", {})
    assert Requirements.from_json(whole.as_json()) == whole


def test_a_pool_of_more_shards_needs_as_many_hosts() -> None:
    """Eleven shards, and one host to be lost, where the data need seven hosts."""
    asked = _asked("  pools: {cold: {capacity: 1 GB, class: nvme, protection: '8+3'}}\n")
    assert designs(asked, _catalogue())[0][0].hosts == 12
