"""How many gateways are enough: held against arithmetic done here by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import trial_row
from click.testing import CliRunner

from leadline.cli.main import leadline
from leadline.cli.predict.sources import MeasuredRates, add_gateways
from leadline.errors import SpecError
from leadline.sizing.gateways import PerGatewayRate, gateway_words, gateways_counted
from leadline.sizing.request import AskedSizing, protocol_of, protocols
from leadline.verdict.model import Cell, Quantity, TargetView, Validity
from leadline.verdict.requirements import read_requirements

_HEAD = "format: leadline.requirements/1\nsizing:\n  capacity: 100 TB\n  protection: ['3']\n  clients:\n"
_BOTH = (
    "    a: {clients: 10, read: 150 MB/s, through: nfs}\n"
    "    b: {clients: 10, write: 40 MB/s, through: nfs}\n"
    "    c: {clients: 10, read: 1 GB/s}\n"
)
_RATES = (
    PerGatewayRate("large", "nfs", True, 1000e6),
    PerGatewayRate("small", "nfs", True, 500e6),
    PerGatewayRate("write", "nfs", False, 400e6),
    PerGatewayRate("other", "smb", False, 1.0),
)


def _asked(body: str = _BOTH) -> AskedSizing:
    found = read_requirements(_HEAD + body, "asked.yaml", {}).sizing
    assert found is not None
    return found


def test_reads_and_writes_share_a_gateways_time() -> None:
    """1.5 GB/s read are 1.5 gateways of 1 GB/s, 0.4 written are 1 more: three; of small requests four."""
    (one,) = gateways_counted(_asked(), _RATES)
    assert (one.protocol, one.read_bytes_s, one.written_bytes_s) == ("nfs", 1500e6, 400e6)
    assert (one.fastest, one.slowest) == (3, 4)
    assert (one.fastest_cells, one.slowest_cells) == (("large", "write"), ("small", "write"))
    (said,) = gateway_words(_asked(), _RATES)
    assert "3 at the rates of large and write, measured of one, 4 at those of small and write" in said


def test_the_hour_that_needs_most_gateways_counts() -> None:
    """Reads by day and writes by night are not added: two gateways for reads, one for writes."""
    day, night = (
        ", ".join(["1" if (hour >= 18) == late else "0.001" for hour in range(24)]) for late in (False, True)
    )
    asked = _asked(
        f"    a: {{clients: 10, read: 150 MB/s, through: nfs, active: [{day}]}}\n"
        f"    b: {{clients: 10, write: 39 MB/s, through: nfs, active: [{night}]}}\n"
    )
    assert gateways_counted(asked, _RATES)[0].fastest == 2


def test_what_was_not_measured_is_measured_first() -> None:
    (one,) = gateways_counted(_asked(), _RATES[:1])
    assert one.fastest is None
    assert "measure first how fast one writes: leadline run render" in one.why_not
    (one,) = gateways_counted(_asked(), ())
    assert "reads and writes" in one.why_not


def test_beyond_four_times_the_one_that_was_measured_more_are_measured_first() -> None:
    """7.5 GB/s are eight gateways of 1 GB/s: two at once are to be measured."""
    asked = _asked("    a: {clients: 50, read: 150 MB/s, through: nfs}\n")
    (one,) = gateways_counted(asked, _RATES)
    assert one.why_not.startswith("measure first with 2 at once; 8 by the fastest cells")


def test_clients_of_metadata_only_are_said_to_be_uncounted() -> None:
    (one,) = gateways_counted(_asked("    a: {clients: 1, metadata: {stat: 4}, through: s3}\n"), _RATES)
    assert "metadata" in one.why_not
    assert gateways_counted(_asked("    a: {clients: 1, read: 1 MB/s}\n"), _RATES) == ()


def test_a_library_and_a_mount_of_one_protocol_go_through_the_same_gateways() -> None:
    assert protocol_of("libnfs") == protocol_of("nfs") == "nfs"
    assert set(protocols()) == {"nfs", "smb", "root", "s3"}


def test_a_protocol_that_is_none_is_refused_with_its_line() -> None:
    with pytest.raises(SpecError, match="no protocol") as refused:
        _asked("    a:\n      clients: 1\n      read: 1 MB/s\n      through: ftp\n")
    assert refused.value.line == 9
    assert "nfs, root, s3, smb" in refused.value.remedy


_CELL = Cell("t.read", "t", "read", {}, {}, {"bandwidth": Quantity(2e9, "B/s", 1e9, 3e9)}, Validity("VALID"))


def _added(
    cell: Cell = _CELL, access: str = "libnfs", read: int = 5, written: int = 0, **facts: Any
) -> MeasuredRates:
    found = MeasuredRates()
    rows = [trial_row(cell="t.read", target="t", work="read", read_bytes=read, write_bytes=written)]
    add_gateways(found, cell, TargetView("t", "u", access, "w", facts), rows)
    return found


def test_a_cell_through_a_gateway_gives_what_one_does() -> None:
    assert _added().gateways == [PerGatewayRate("t.read", "nfs", True, 1e9)]
    assert _added(read=0, written=5).gateways == [PerGatewayRate("t.read", "nfs", False, 1e9)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ceph": {"lab": True}}, ["a lab's gateways"]),
        ({"cell": replace(_CELL, validity=Validity("INVALID"))}, ["INVALID"]),
        ({"cell": replace(_CELL, metrics={"bandwidth": Quantity(2e9, "B/s")})}, ["no confidence interval"]),
        ({"access": "ceph-fuse"}, []),
        ({"written": 5}, []),
    ],
)
def test_other_cells_give_nothing(changes: dict[str, Any], words: list[str]) -> None:
    """Where somebody could have expected it, why is said."""
    found = _added(**changes)
    assert found.gateways == []
    assert len(found.refused) == len(words)
    assert all(word in said for word, said in zip(words, found.refused, strict=True))


def test_the_command_says_what_goes_through_gateways(tmp_path: Path) -> None:
    file = tmp_path / "asked.yaml"
    file.write_text(_HEAD + _BOTH)
    said = CliRunner().invoke(leadline, ["size", str(file)], standalone_mode=False)
    words = " ".join(said.output.split())
    assert "Through gateways of nfs, 1.4 GiB/s read and 381 MiB/s written: how many is not known;" in words
    found = CliRunner().invoke(leadline, ["size", str(file), "--json"], standalone_mode=False)
    assert json.loads(found.output)["gateways"][0]["fastest"] is None
