"""The regression check from the command line, on two real results and one made worse."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as Tree
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from openmetrics_grammar import parse
from support import Command


def renamed(result: Path, other: Path) -> Path:
    """A copy with an id of its own."""
    shutil.copytree(result, other)
    manifest = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps({**manifest, "id": f"{crc32(other.name.encode()):08x}"}))
    return other


def slowed(result: Path, other: Path, factor: float) -> Path:
    """Another result, whose trials all move 100 MB/s within a percent, divided by `factor`.

    What the disk of this machine did meanwhile scatters by more than what is to be found.
    """
    for number, file in enumerate(sorted((renamed(result, other) / "trials").iterdir())):
        table = pq.read_table(file)
        moved = pc.add(table["write_bytes"], table["read_bytes"])
        longer = pc.cast(pc.multiply(moved, 10 * factor * (1 + 0.01 * (number % 3))), pa.int64(), safe=False)
        later = pc.add(table["started_unix_ns"], 3600 * 10**9)
        for name, values in (("measured_ns", longer), ("started_unix_ns", later)):
            place = table.schema.get_field_index(name)
            table = table.set_column(place, table.schema.field(place), values)
        pq.write_table(table, file)
    return other


def test_a_loss_fails_and_every_output_says_so(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    measured, base = tmp_path / "measured", tmp_path / "base"
    arguments = ("--set", "works.randread_4k.rw=write", "--set", "works.randread_4k.bs=64k", "--blocks", "6")
    done = leadline(
        "run", str(study), "--target", f"a={target}", "--out", str(measured), "--no-ceph", *arguments
    )
    assert done.returncode == 0, done.stderr
    slowed(measured, base, 1.0)
    again = slowed(base, tmp_path / "again", 1.0)
    same = leadline("gate", str(again), "--baseline", str(base), "--allow", "99%", "--metric", "bandwidth")
    assert same.returncode in (0, 5), same.stderr
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


def test_undecided_is_no_pass_unless_that_is_asked_for_and_a_copy_is_no_result(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    base = tmp_path / "base"
    writes = ("--set", "works.randread_4k.rw=write", "--blocks", "1")
    done = leadline("run", str(study), "--target", f"a={target}", "--out", str(base), "--no-ceph", *writes)
    assert done.returncode == 0, done.stderr
    junit = tmp_path / "j.xml"
    gate = (
        "gate",
        str(slowed(base, tmp_path / "other", 1.01)),
        "--baseline",
        str(base),
        "--junit",
        str(junit),
    )
    undecided = leadline(*gate, "--json")
    assert undecided.returncode == json.loads(undecided.stdout)["exit_code"] == 5
    types = {found.get("type") for found in Tree.fromstring(junit.read_text()).iter("failure")}  # noqa: S314
    assert types == {"undecided"}
    allowed = leadline(*gate, "--allow-undecided")
    assert allowed.returncode == 0, allowed.stdout
    assert "(1 block: no CI)" in allowed.stdout
    assert not list(Tree.fromstring(junit.read_text()).iter("failure"))  # noqa: S314 - our own text
    shutil.copytree(base, tmp_path / "copy")
    for new in (base, tmp_path / "copy", renamed(base, tmp_path / "renamed")):
        for verb in (("gate", str(new), "--baseline", str(base)), ("compare", str(base), str(new))):
            same = leadline(*verb)
            assert same.returncode == (2 if verb[0] == "gate" else 0)
            assert "same trials" in same.stderr, verb


def test_what_cannot_be_checked_is_one_clear_error(leadline: Command, tmp_path: Path) -> None:
    for arguments, message in (
        (("gate", str(tmp_path), "--baseline", str(tmp_path)), "no result of leadline"),
        (("gate", str(tmp_path), "--baseline", str(tmp_path), "--metric", "speed"), "no metric is called"),
        (("gate", str(tmp_path), "--baseline", str(tmp_path), "--allow", "much"), "not a percentage"),
    ):
        refused = leadline(*arguments)
        assert refused.returncode == 2
        assert message in refused.stderr
