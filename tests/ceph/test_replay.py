"""A trace is replayed on CephFS: first reads come from the OSDs, second ones from a cache of this host."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from trace_tables import file_row, files_table, segment, segments_table, tables

from leadline import lab as leadline_lab
from leadline.store.reader import open_result
from leadline.tracing import store as traces
from measured import BRIEF, CACHED, assert_measured
from support import Command, show

pytestmark = pytest.mark.ceph

MS = 1_000_000
BLOCK = 1 << 16


def test_a_replay_on_cephfs_begins_cold_and_leaves_nothing(
    lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    blocks = [*range(32), *range(32)]
    rows = [
        segment(call="openat", offset=None, length=None, result=3),
        *(
            segment(
                offset=block * BLOCK, length=BLOCK, result=BLOCK, start_ns=(n + 1) * MS, duration_ns=MS // 2
            )
            for n, block in enumerate(blocks)
        ),
        segment(file=1, call="openat", offset=None, length=None, result=4, start_ns=100 * MS),
        segment(file=1, call="write", offset=None, length=BLOCK, result=BLOCK, start_ns=110 * MS),
        segment(file=1, call="fsync", offset=None, length=None, result=0, start_ns=120 * MS),
    ]
    files = files_table([file_row(0, path="/data/in"), file_row(1, path="/data/out")])
    content = tables(files=files, segments=segments_table(rows))
    now = itertools.count(1).__next__
    traces.create_trace_result(
        tmp_path / "t", {"t0001": content}, title="prog", details={"command": ["prog"]}, now_ns=now
    )
    directory = lab.status().targets["replicated"]
    out = tmp_path / "r"
    done = leadline(
        *("replay", str(tmp_path / "t"), "--target", f"ceph={directory}", "--blocks", "2", "--out", str(out))
    )
    assert_measured(done, out, CACHED, BRIEF)
    trials = open_result(out).trials()
    assert [(trial.state, trial.read_operations) for trial in trials] == [("complete", 64)] * 2
    (cell,) = show(leadline, out)["cells"]
    assert "cached_reads" not in {code["code"] for code in cell["validity"]["codes"]}
    chains = {chain["direction"]: chain for chain in cell["chains"]}
    came_from = {place["name"]: place["share"] for place in chains["read"]["places"]}
    assert came_from["store"] + came_from["osd_cache"] >= 0.45
    assert came_from["page_cache"] + came_from["client_cache"] >= 0.2
    assert chains["write"]["places"][-1]["share"] >= 0.95
    assert not list(directory.glob("leadline-*"))
