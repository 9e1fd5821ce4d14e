"""Where the time of a request goes on a real cluster: its counters reach the segments, and they sum to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_network import inside

from leadline import lab as leadline_lab
from leadline.store.reader import open_result
from leadline.verdict.diagnosis.results import diagnose_result
from support import Command, command_line

pytestmark = pytest.mark.ceph
STUDY = """
format: leadline.study/1
blocks: 1
defaults: {direct: true, time_based: true, ramp_time: 4s, runtime: 6s}
works:
  one: {rw: randwrite, bs: 4k, size: 4M, iodepth: 1}
"""


def test_the_segments_of_a_real_write_sum_to_what_its_client_measured(
    network_lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    (rados,) = [one for one in network_lab.targets_from("client1") if one.name == "rados"]
    study, out = tmp_path / "study.yaml", tmp_path / "out"
    study.write_text(STUDY)
    words = command_line("run", str(study), "--target", f"rados={rados.where}", "-o", str(out))
    # 3: a loaded machine may make a cell INVALID.
    guarded = ("sh", "-c", '"$@" || test $? = 3', "sh", *words, "--ignore-health")
    inside(leadline, network_lab, "client1", *guarded)
    (cell,) = diagnose_result(open_result(out))
    budget = cell.found.budget
    assert budget is not None
    seconds = {one.name: one.seconds.value for one in budget.seen if one.seconds is not None}
    assert sum(seconds.values()) == pytest.approx(budget.whole_s)
    assert {"wire", "osd_queue", "osd_work", "store_log", "peers"} <= seconds.keys()
    assert [one.name for one in budget.unseen] == ["client"], "a library has no socket that shows its queue"
