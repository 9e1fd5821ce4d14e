"""Transfers of several streams by every library: each opens its own client and is acknowledged in full."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leadline import lab as leadline_lab
from leadline.cli.measure.labs import lab_hosts
from leadline.errors import UsageError
from leadline.store.own import read_acks
from leadline.store.reader import open_result
from support import Command

pytestmark = pytest.mark.ceph

STREAMS, BUFFER, SIZE = 4, 1 << 20, 8 << 20
STUDY = f"""
format: leadline.study/1
blocks: 1
limits: {{reserve: 100M}}
works:
  several:
    {{transfer: write, streams: {STREAMS}, buffer: {BUFFER}, in_flight: 2, size: {SIZE}, checksum: adler32}}
"""
WAYS = ("libcephfs", "rados", "radosstriper", "xrootd", "s3")


def test_several_streams_are_acknowledged_in_full_by_every_library(
    lab: leadline_lab.Lab, leadline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "several.yaml").write_text(STUDY)
    ways = {target.name: target for target in lab.targets()}
    for name, value in ways["s3"].variables.items():
        monkeypatch.setenv(name, value)
    # S3 writes objects whole, a buffer each.
    where = {name: ways[name].where for name in WAYS} | {"s3": f"{ways['s3'].where}&object_size=1M"}
    targets = [word for name, url in where.items() for word in ("--target", f"{name}={url}")]
    out = tmp_path / "r"
    done = leadline("run", str(tmp_path / "several.yaml"), *targets, "--out", str(out), "--quiet")
    assert done.returncode in (0, 3), done.stderr  # 3: one block, and the lab's own load, are doubts
    result = open_result(out)
    trials = {row.target: row for row in result.trials()}
    assert {name: (row.state, row.error) for name, row in trials.items()} == dict.fromkeys(
        WAYS, ("complete", None)
    )
    for name, row in trials.items():
        acks = read_acks(result, row.trial)
        assert acks is not None
        assert (len(acks.length), acks.length.sum()) == (STREAMS * SIZE // BUFFER, STREAMS * SIZE), name
        streams = json.loads(row.summary)["streams"]
        assert len({one["checksum"] for one in streams}) == STREAMS, name  # each has data of its own


def test_a_lab_without_clients_has_no_hosts_for_a_study(lab: leadline_lab.Lab) -> None:
    with pytest.raises(UsageError, match="has no hosts"):
        lab_hosts(str(lab.directory))
