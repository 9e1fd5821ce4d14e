"""What `leadline size` says of designs, held against arithmetic done here by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.analysis.models.simple import Protection
from leadline.cli.gate_options import read_required, required_of
from leadline.cli.main import run_command_line
from leadline.errors import SpecError, UsageError
from leadline.sizing.designs import (
    PerDeviceRate,
    designs,
    device_words,
    least_rebuild_s,
    link_headroom,
)
from leadline.sizing.hardware import GOODPUT, Catalogue, built_in, read_catalogue
from leadline.sizing.request import AskedSizing
from leadline.verdict.requirements import Requirements, read_requirements

_EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
_HEAD = "format: leadline.requirements/1\nrequirements: {a: {metric: iops, at_least: 5}}\nsizing:\n"
_PLAIN = "  capacity: 100 TB\n  protection: ['3']\n"
_HARDWARE = """format: leadline.hardware/1
currency: EUR
hosts:
  small: {source: own, date: '2026-11-01', bays: 10, device: 10 TB, link: 10 Gb/s, price: 9000, power_w: 300}
  large: {source: own, date: '2026-11-01', bays: 20, device: 10 TB, link: 10 Gb/s, price: 30000, power_w: 700}
"""


def _asked(body: str = _PLAIN) -> AskedSizing:
    found = read_requirements(_HEAD + body, "asked.yaml", {}).sizing
    assert found is not None
    return found


def _catalogue(text: str = _HARDWARE) -> Catalogue:
    return read_catalogue(text, "ours.yaml", {})


def test_the_fewest_hosts_hold_what_is_asked_while_one_is_lost() -> None:
    """100 TB in three copies filled to 80 % are 375 TB raw: four hosts of 100 TB, and one to be lost."""
    front, _ = designs(_asked(), _catalogue())
    found = [(one.kind, one.hosts, one.price) for one in front]
    assert found == [("small", 5, 45000.0), ("large", 4, 120000.0)]  # dearer, but of fewer hosts


def test_what_another_design_beats_is_left_out() -> None:
    """A host that holds less, for more money and power."""
    dear = _catalogue(_HARDWARE.replace("bays: 20", "bays: 9"))
    front, _ = designs(_asked(), dear)
    assert [one.kind for one in front] == ["small"]


def test_growth_counts_to_the_last_year() -> None:
    """Doubled twice, 400 TB need 1,500 TB raw."""
    front, _ = designs(_asked(_PLAIN + "  growth: 1\n  years: 2\n"), _catalogue())
    assert front[0].hosts == 16


def test_links_carry_a_write_and_its_copies() -> None:
    """1 GB/s in three copies is 3 GB/s into the hosts; ten links of 10 Gbit/s take 12.5 x goodput."""
    asked = _asked(_PLAIN + "  clients: {a: {clients: 10, write: 100 MB/s}}\n")
    headroom, bound = link_headroom(asked, _catalogue().hosts["small"], Protection(copies=3), 10)
    assert headroom == pytest.approx(12.5 * GOODPUT / 3)
    assert bound == "links of the hosts, in"


def test_a_coded_read_fetches_the_other_shards() -> None:
    """1 GB/s from 4+2 is 1 GB/s out and 0.75 between OSDs."""
    asked = _asked(_PLAIN + "  clients: {a: {clients: 10, read: 100 MB/s}}\n")
    headroom, bound = link_headroom(asked, _catalogue().hosts["small"], Protection(k=4, m=2), 10)
    assert headroom == pytest.approx(12.5 * GOODPUT / 1.75)
    assert bound == "links of the hosts, out"


def test_a_coded_host_is_rebuilt_from_k_times_its_bytes() -> None:
    """80 TB from four shards each onto nine hosts."""
    seconds = least_rebuild_s(_asked(), _catalogue().hosts["small"], Protection(k=4, m=2), 10)
    assert seconds == pytest.approx(80e12 * 4 / (9 * 1.25e9 * GOODPUT))


def test_the_busiest_hour_counts() -> None:
    """One hour of a day has all clients, the others half."""
    hours = ", ".join(["0.5"] * 23 + ["1"])
    asked = _asked(_PLAIN + f"  clients: {{a: {{clients: 4, read: 10 MB/s, active: [{hours}]}}}}\n")
    assert asked.peak() == (40e6, 0.0, 23)


def test_an_ingest_is_its_bytes_over_its_time() -> None:
    """60 GB within 10 minutes."""
    asked = _asked(_PLAIN + "  clients: {a: {clients: 1, ingest: 60 GB, within: 10 min}}\n")
    assert asked.peak()[1] == pytest.approx(100e6)


def test_what_no_design_does_is_said_with_the_nearest() -> None:
    """Money for one host."""
    front, others = designs(_asked(_PLAIN + "  money: 9000\n"), _catalogue())
    assert not front
    assert {one.kind for one in others} == {"small", "large"}


@pytest.mark.parametrize(
    ("most", "hosts", "also"), [(3, 4, ""), (10, 10, ", the most that hosts_max allows")]
)
def test_the_nearest_design_says_what_it_holds_and_that_more_hosts_would_do(
    most: int, hosts: int, also: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three copies with a host lost need four hosts, and 150 TB many more."""
    file = tmp_path / "asked.yaml"
    lines = ("capacity: 150 TB", "years: 1", "hosts_lost: 1", f"hosts_max: {most}", 'protection: ["3"]')
    clients = "  clients: {a: {clients: 1, read: 1 GB/s}}\n"
    text = "".join(f"  {line}\n" for line in lines)
    file.write_text(f"format: leadline.requirements/1\nsizing:\n{text}{clients}")
    assert run_command_line(["size", str(file)]) == 4
    said = " ".join(capsys.readouterr().out.split())
    assert f"Nearest suse_2019/3, {hosts} hosts{also}: holds" in said
    assert "of 136 TiB, links at most" in said
    assert "what would have to give: capacity, hosts_max" in said


def test_money_needs_prices() -> None:
    """The built-in example has none, and none is made up."""
    with pytest.raises(UsageError, match="no price of suse_2019"):
        designs(_asked(_PLAIN + "  money: 9000\n"), built_in())


def test_beyond_four_times_what_was_measured_the_answer_is_to_measure() -> None:
    """200 devices from 40 that were measured, but not from 60."""
    asked = _asked(_PLAIN + "  hosts_lost: 0\n  clients: {a: {clients: 1, read: 1 GB/s}}\n")
    front, _ = designs(asked, _catalogue())
    rates = [PerDeviceRate("few", 1e8, 2e8, 5, True), PerDeviceRate("many", 1e8, 2e8, 30, True)]
    few, many = device_words(asked, front[0], 10, rates)
    assert "measure first on 10 devices or more" in few
    assert "4.00 to 8.00 times what is asked" in many


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("  capacity: 100 MB/s\n  protection: ['3']\n", 4, "no such value"),
        ("  capacity: 0 TB\n  protection: ['3']\n", 4, "nothing is asked with 0"),
        ("  capacity: 100\n  protection: ['3']\n", 4, "no such value"),
        ("  capacity: 1 TB\n  protection: ['8-3']\n", 5, "no protection"),
        ("  capacity: 1 TB\n  protection: ['2']\n  hosts_lost: 2\n", 3, "bears 1"),
        (_PLAIN + "  growth: -1\n", 6, "out of range"),
        (_PLAIN + "  clients: {a: {clients: 1, ingest: 1 GB}}\n", 6, "belong together"),
        (_PLAIN + "  clients: {a: {clients: 1}}\n", 6, "do nothing"),
        (_PLAIN + "  capacitie: 1\n", 6, "unknown key"),
    ],
)
def test_bad_input_is_refused_with_its_line(body: str, line: int, words: str) -> None:
    """Each in a file of its own."""
    with pytest.raises(SpecError, match=words) as refused:
        _asked(body)
    assert refused.value.line == line


def test_a_catalogue_says_where_its_figures_are_from() -> None:
    """A host without a source is none."""
    with pytest.raises(SpecError, match="missing"):
        _catalogue(_HARDWARE.replace("source: own, ", ""))


@pytest.mark.parametrize("name", ["suse", "castor", "fermilab", "opencast"])
def test_the_examples_of_four_documents_are_answered(name: str) -> None:
    """Each with a design, and stored as it was written."""
    text = (_EXAMPLES / f"{name}-sizing.yaml").read_text(encoding="utf-8")
    found = read_requirements(text, name, {})
    assert found.sizing is not None
    assert designs(found.sizing, built_in())[0]
    assert Requirements.from_json(found.as_json()) == found


def test_a_file_may_have_only_what_is_to_be_bought(tmp_path: Path) -> None:
    """It is sized, but no result is held against it."""
    file = tmp_path / "asked.yaml"
    file.write_text("format: leadline.requirements/1\nsizing:\n" + _PLAIN)
    assert read_required(file).sizing == _asked()
    with pytest.raises(SpecError, match="only"):
        required_of([str(file)])
    with pytest.raises(SpecError, match="nothing is required"):
        read_requirements("format: leadline.requirements/1\n", "none.yaml", {})
