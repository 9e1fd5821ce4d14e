"""Where bytes that were read through a gateway came from: each gateway's own cache, by the OSDs' counters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leadline import lab as leadline_lab
from measured import CACHED, SERVED, assert_measured
from support import Command

pytestmark = pytest.mark.ceph

STUDY = """
format: leadline.study/1
blocks: 1
limits: {reserve: 100M}
works:
  read: {rw: read, bs: 1M, iodepth: 2, size: 8M, time_based: true, runtime: 1500ms}
"""
DAEMONS = ("ceph-", "smbd", "ganesha", "radosgw", "xrootd")


@pytest.fixture
def read_through(
    target: Callable[[str], leadline_lab.LabTarget], leadline: Command, tmp_path: Path
) -> Callable[..., dict[str, Any]]:
    """The cell of reads that are repeated in a few seconds, through a gateway of the lab."""

    def read(name: str, *options: str) -> dict[str, Any]:
        way, study, out = target(name), tmp_path / "study.yaml", tmp_path / "r"
        study.write_text(STUDY)
        words = ("run", str(study), "--target", f"a={way.where}", "--out", str(out), "--quiet", *options)
        done = leadline(*words, **way.variables)
        assert_measured(done, out, SERVED, CACHED)
        (cell,) = json.loads(leadline("show", str(out), "--json").stdout)["cells"]
        return dict(cell)

    return read


def _codes(cell: dict[str, Any]) -> dict[str, str]:
    return {code["code"]: code["evidence"] for code in cell["validity"]["codes"]}


def _gateway_share(cell: dict[str, Any]) -> float:
    (chain,) = cell["chains"]
    (share,) = (place["share"] for place in chain["places"] if place["name"] == "gateway")
    return float(share)


@pytest.mark.parametrize("gateway", ["nfs", "nfs3", "smb"])
def test_what_a_gateway_read_once_and_gave_again_came_from_its_cache(
    read_through: Callable[..., dict[str, Any]], gateway: str
) -> None:
    cell = read_through(gateway)
    assert "from the gateway's cache" in _codes(cell)["cached_reads"]
    assert _gateway_share(cell) > 0.5
    assert cell["validity"]["state"] == "INVALID"


@pytest.mark.parametrize("gateway", ["s3", "xrootd"])
def test_a_gateway_that_keeps_no_data_is_not_said_to(
    lab: leadline_lab.Lab, read_through: Callable[..., dict[str, Any]], gateway: str
) -> None:
    # XRootD's server is an account of its own, whose word is not taken: the cluster is named.
    cell = read_through(gateway, "--conf", str(lab.record.paths.conf))
    assert "gateway" not in _codes(cell).get("cached_reads", "")
    assert _gateway_share(cell) < 0.05


def test_the_servers_of_a_target_are_not_accused_of_disturbing_it(
    read_through: Callable[..., dict[str, Any]],
) -> None:
    accused = _codes(read_through("smb")).get("other_load", "")
    assert not any(name in accused for name in DAEMONS)
    assert "OSDs" not in accused
