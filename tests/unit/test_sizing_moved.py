"""What `leadline size` says with another input, side by side, for a lab, on a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from leadline.analysis.models.links import Wired, aggregate
from leadline.analysis.models.simple import Protection
from leadline.cli.main import leadline
from leadline.cli.predict.sized import asked_words, sizing_findings
from leadline.cli.predict.sources import MeasuredRates
from leadline.errors import SpecError, UsageError
from leadline.lab.network.topology_file import read_topology
from leadline.report import render
from leadline.sizing.designs import designs, link_headroom
from leadline.sizing.hardware import GOODPUT, Catalogue, read_catalogue
from leadline.sizing.moved import Inputs, changed, sensitivity
from leadline.sizing.small import Carried, in_small
from leadline.verdict.requirements import read_requirements

_HEAD = "format: leadline.requirements/1\nsizing:\n  capacity: 100 TB\n  protection: ['3', '4+2']\n"
_WRITES = "  clients: {a: {clients: 10, write: 100 MB/s}}\n"
_NETWORK = "  network: {hosts_per_switch: 5, uplink: 5 Gb/s}\n"
_HARDWARE = """format: leadline.hardware/1
currency: EUR
hosts:
  small: {source: own, date: '2026-11-01', bays: 10, device: 10 TB, link: 10 Gb/s, price: 9000, power_w: 300}
"""


def _catalogue(text: str = _HARDWARE) -> Catalogue:
    return read_catalogue(text, "ours.yaml", {})


def _inputs(body: str = _WRITES, hardware: str = _HARDWARE) -> Inputs:
    found = read_requirements(_HEAD + body, "asked.yaml", {}).sizing
    assert found is not None
    return Inputs(found, _catalogue(hardware))


@pytest.mark.parametrize("protection", [Protection(copies=3), Protection(k=4, m=2)])
@pytest.mark.parametrize("reads", [False, True])
def test_uplinks_carry_what_the_model_of_a_whole_tree_says(protection: Protection, reads: bool) -> None:
    """Ten hosts on two switches: `leadline model aggregate` counts each flow, here it is a formula."""
    hosts = {f"h{number}": f"rack{number % 2}" for number in range(10)}
    above = {"core": "", "rack0": "core", "rack1": "core", "client": "core", **hosts}
    rates = {"rack0": 5e9 / 8, "rack1": 5e9 / 8, **dict.fromkeys(hosts, 10e9 / 8)}
    wired = Wired(above, rates, dict.fromkeys(hosts, 1), ("client",))
    most = aggregate(wired, protection, reads=reads).computed[0].low
    verb = "read" if reads else "write"
    inputs = _inputs(f"  clients: {{a: {{clients: 10, {verb}: 100 MB/s}}}}\n" + _NETWORK)
    headroom, bound = link_headroom(inputs.asked, inputs.catalogue.hosts["small"], protection, 10)
    assert headroom * 1e9 == pytest.approx(most * GOODPUT)
    assert "uplinks" in bound


def test_twice_the_link_is_twice_the_headroom_and_nothing_else() -> None:
    before = _inputs()
    for text in ("link=2x", "link=20 Gb/s"):
        after = changed(before, text).every()
        for name, one in before.every().items():
            assert after[name].headroom == pytest.approx(2 * one.headroom)
            assert (after[name].hosts, after[name].usable_bytes) == (one.hosts, one.usable_bytes)


def test_a_number_of_hosts_that_is_given_is_kept() -> None:
    assert {one.hosts for one in changed(_inputs(), "hosts=40").every().values()} == {40}


def test_a_wider_uplink_needs_an_uplink_that_is_asked() -> None:
    """And doubles what bounds, where it does."""
    with pytest.raises(UsageError, match="no uplink"):
        changed(_inputs(), "uplink=2x")
    before = _inputs(_WRITES + "  network: {hosts_per_switch: 5, uplink: 1 Gb/s}\n")
    one, other = (inputs.every()["small/4+2"] for inputs in (before, changed(before, "uplink=1.5x")))
    assert other.hosts <= one.hosts
    assert other.headroom / other.hosts > one.headroom / one.hosts


@pytest.mark.parametrize(
    "text",
    ["link", "link=0x", "link=-2x", "link=nanx", "link=2 TB", "speed=2x", "hosts=1.5", "hosts=0", "fill=1.2"],
)
def test_what_is_no_change_is_refused(text: str) -> None:
    with pytest.raises((UsageError, SpecError)):
        changed(_inputs(), text)


def test_what_moves_the_answer_most_is_first() -> None:
    """375 TB raw are four hosts and one to be lost; a tenth more are five and one, a fifth dearer."""
    inputs = _inputs()
    best = inputs.best()
    assert best is not None
    found = {one.name: one.by(best) for one in sensitivity(inputs)}
    assert list(found)[-1] not in ("capacity", "fill", "device")
    assert {name for name, by in found.items() if by == pytest.approx(0.2)} == {"capacity", "fill", "device"}
    assert (found["clients"], found["link"], found["growth"]) == (0, 0, 0)


@pytest.mark.parametrize("network", ["", _NETWORK, "  network: {hosts_per_switch: 1, uplink: 40 Gb/s}\n"])
@pytest.mark.parametrize("name", ["small/3", "small/4+2"])
def test_a_design_in_small_is_one_that_a_lab_reads(name: str, network: str) -> None:
    """With a host for each shard and for those that may be lost, and uplinks in proportion."""
    inputs = _inputs(_WRITES + network)
    one = inputs.every()[name]
    lab = read_topology(in_small(inputs, one).text, "small.yaml", {}, made_here=False)
    hosts = lab.topology.hosts
    assert len(hosts) == min(one.hosts, 4 if name == "small/3" else 7)
    assert {host.link.rate_bit_s for host in hosts} == {10**9}
    if network == _NETWORK:  # 5 Gbit/s for five hosts of 10: a tenth of a host's link for each
        below = max(
            sum(host.switch == rack.name for host in hosts) for rack in lab.topology.switches if rack.above
        )
        assert {rack.uplink.rate_bit_s for rack in lab.topology.switches if rack.above} == {below * 10**8}
    assert name == "small/3" or lab.erasure == (4, 2)


def test_what_a_design_in_small_carries_is_of_its_own_links_and_clients() -> None:
    """10 Gbit/s made 1: of three copies one link of four takes 3/4; four clients have a link each."""
    inputs = _inputs(_WRITES)
    small = in_small(inputs, inputs.every()["small/3"])
    link = 1e9 / 8 * GOODPUT
    assert small.hosts == 4
    assert small.written == Carried(pytest.approx(link / (3 / 4)), "links of the hosts, in")
    assert small.read == Carried(pytest.approx(link * 4), "links of the hosts, out")
    tenth = in_small(inputs, inputs.every()["small/3"], 1e8)
    assert tenth.written.bytes_s == pytest.approx(small.written.bytes_s / 10)
    one_client = in_small(_inputs("  clients: {a: {clients: 1, write: 5 MB/s}}\n"), inputs.every()["small/3"])
    assert one_client.read == Carried(pytest.approx(link), "links of the clients")


def test_a_page_takes_a_kind_of_host_as_text() -> None:
    evil = "<script>alert(1)</script>"
    inputs = _inputs(hardware=_HARDWARE.replace("small:", f"'{evil}':"))
    front, others = designs(inputs.asked, inputs.catalogue)
    text = render(sizing_findings(inputs, front, others, MeasuredRates()), "html")
    assert evil not in text
    assert "&lt;script&gt;alert(1)" in text


def _size(tmp_path: Path, *words: str) -> tuple[int, str]:
    asked, ours = tmp_path / "asked.yaml", tmp_path / "ours.yaml"
    asked.write_text(_HEAD + _WRITES)
    ours.write_text(_HARDWARE)
    ended = CliRunner().invoke(
        leadline, ["size", str(asked), "--hardware", str(ours), *words], standalone_mode=False
    )
    if ended.exception is not None:
        raise ended.exception
    return ended.return_value, ended.output


def test_the_first_lines_are_the_answer(tmp_path: Path) -> None:
    code, text = _size(tmp_path)
    assert code == 0
    answer = text.split("\n\n")[0]
    assert "5 hosts small with protection 3 for 45,000 EUR" in " ".join(answer.split())
    assert "measure before you buy" in " ".join(answer.split())


def test_programs_get_the_same_as_people(tmp_path: Path) -> None:
    code, text = _size(tmp_path, "--json")
    found = json.loads(text)
    assert (code, found["format"]) == (0, "leadline.sizing/1")
    assert [(one["name"], one["hosts"], one["price"]) for one in found["designs"]] == [
        ("small/3", 5, 45000.0),
        ("small/4+2", 7, 63000.0),
    ]
    assert found["designs"][0]["rack_units"] is None


def test_two_designs_stand_side_by_side(tmp_path: Path) -> None:
    _, text = _size(tmp_path, "--compare", "small/3", "small/4+2")
    rows = {words[0]: words[1] for line in text.splitlines() if (words := line.split()) and "/" in words[0]}
    assert rows == {"small/3": "5", "small/4+2": "7"}
    with pytest.raises(UsageError, match="no design is called"):
        _size(tmp_path, "--compare", "small/3", "small/9")


def test_files_are_written_whole_and_none_beside_a_question(tmp_path: Path) -> None:
    out, page, table = (tmp_path / name for name in ("centre.yaml", "designs.html", "designs.csv"))
    _size(tmp_path, "-o", str(out), "--design", "small/4+2", "--page", str(page), "--csv", str(table))
    assert read_topology(out.read_text(), "", {}, made_here=False).erasure == (4, 2)
    assert "45,000 EUR" in page.read_text()
    assert table.read_text().splitlines()[1].startswith("small,5,3,")
    with pytest.raises(UsageError, match="write no file"):
        _size(tmp_path, "--what-if", "link=2x", "-o", str(tmp_path / "other.yaml"))


@pytest.mark.parametrize("option", ["-o", "--page", "--csv"])
def test_a_file_of_a_result_is_not_overwritten(tmp_path: Path, option: str) -> None:
    result = tmp_path / "result"
    result.mkdir()
    for name in ("manifest.json", "journal.jsonl"):
        (result / name).write_text("mine")
    manifest = next(iter(sorted(result.iterdir(), reverse=True)))
    with pytest.raises(UsageError, match="not overwritten"):
        _size(tmp_path, option, str(manifest))
    assert manifest.read_text() == "mine"


@pytest.mark.parametrize(("hours", "said"), [("0.5", False), ("[" + "0.5, " * 23 + "1]", True)])
def test_an_hour_is_said_where_hours_differ(hours: str, said: bool) -> None:
    inputs = _inputs(f"  clients: {{a: {{clients: 10, write: 100 MB/s, active: {hours}}}}}\n")
    assert ("at 23:00" in asked_words(inputs)) is said
