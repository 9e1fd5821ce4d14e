"""The regression check from the command line, on two real results and one made worse."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as Tree

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from openmetrics_grammar import parse
from support import Command


def slowed(result: Path, other: Path, factor: float) -> Path:
    """A copy in which every trial of the writes took `factor` times as long."""
    shutil.copytree(result, other)
    for file in (other / "trials").iterdir():
        table = pq.read_table(file)
        place = table.schema.get_field_index("measured_ns")
        longer = pc.cast(pc.multiply(table["measured_ns"], factor), pa.int64(), safe=False)
        pq.write_table(table.set_column(place, table.schema.field(place), longer), file)
    return other


def test_a_loss_fails_and_every_output_says_so(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    base = tmp_path / "base"
    arguments = ("--set", "works.randread_4k.rw=write", "--set", "works.randread_4k.bs=64k", "--blocks", "6")
    done = leadline("run", str(study), "--target", f"a={target}", "--out", str(base), "--no-ceph", *arguments)
    assert done.returncode == 0, done.stderr
    same = leadline("gate", str(base), "--baseline", str(base), "--allow", "50%", "--metric", "bandwidth")
    assert same.returncode == 0, same.stdout
    worse = slowed(base, tmp_path / "worse", 30.0)
    files = ("--junit", str(tmp_path / "j.xml"), "--openmetrics", str(tmp_path / "o.txt"))
    gate = ("gate", str(worse), "--baseline", str(base), "--metric", "bandwidth", *files)
    lost = leadline(*gate, "--json")
    assert lost.returncode == 4, lost.stderr
    found = json.loads(lost.stdout)
    assert found["format"] == "leadline.gate/1"
    assert {check["passed"] for check in found["checks"]} == {"lost"}
    root = Tree.fromstring((tmp_path / "j.xml").read_text())  # noqa: S314 - our own text
    assert root.get("failures") == "2"
    assert "leadline_gate_ratio" in parse((tmp_path / "o.txt").read_text())
    shown = leadline(*gate)
    assert "2 lost; 5.0% of loss is allowed" in shown.stdout
    metrics = leadline("report", str(base), "--format", "openmetrics")
    assert "leadline_bandwidth_bytes_per_second" in parse(metrics.stdout)


def test_what_cannot_be_checked_is_one_clear_error(leadline: Command, tmp_path: Path) -> None:
    for arguments, message in (
        (("gate", str(tmp_path), "--baseline", str(tmp_path)), "no result of leadline"),
        (("gate", str(tmp_path), "--baseline", str(tmp_path), "--metric", "speed"), "no metric is called"),
        (("gate", str(tmp_path), "--baseline", str(tmp_path), "--allow", "much"), "not a percentage"),
    ):
        refused = leadline(*arguments)
        assert refused.returncode == 2
        assert message in refused.stderr
