"""`trend` and `list` over many results, with and without their summaries."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from many_results import copy_results
from measured import CACHED, assert_measured
from support import Command


def test_a_figure_is_followed_over_many_results(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    one = tmp_path / "one"
    done = leadline("run", str(study), "--target", f"fuse={target}", "--out", str(one), "--no-ceph")
    assert_measured(done, one, CACHED)
    assert (one / "cells-2.parquet").is_file()
    many = tmp_path / "many"
    many.mkdir()
    copy_results(one, many, 24, shift_at=12)
    assert "24 results have no fresh summary" in leadline("list", str(many)).stdout
    figure = "fuse.seqwrite_64k.bandwidth"
    first = leadline("trend", figure, str(many), "--json")
    assert first.returncode == 0, first.stderr
    series = json.loads(first.stdout)["series"][0]
    assert len(series["points"]) == 24
    assert series["points"][0]["created"].startswith("2026-01-01")
    assert series["shift"]["first_after"].endswith("r0012")
    assert series["shift"]["median_after"] < series["shift"]["median_before"]
    assert (many / "r0000" / "cells-2.parquet").is_file()
    again = leadline("trend", figure, str(many), "--json")
    assert again.stdout == first.stdout
    shown = leadline("trend", figure, str(many), "--since", "2026-01-13")
    assert "12 results" in shown.stdout
    assert "no level shift" in shown.stdout
    both = leadline("trend", "fuse.*.bandwidth", str(many))
    assert "level shift: median" in both.stdout
    assert "INVALID" in both.stdout  # the buffered reads of a small file
    for place, name in enumerate(("copy", "renamed")):
        shutil.copytree(many / "r0023", many / name)
        if place:  # a copy with an id of its own
            manifest = json.loads((many / name / "manifest.json").read_text())
            (many / name / "manifest.json").write_text(json.dumps({**manifest, "id": "0badcafe"}))
            (many / name / "cells-2.parquet").unlink()
    copied = leadline("trend", figure, str(many), "--json")
    points = json.loads(copied.stdout)["series"][0]["points"]
    assert len(points) == 24
    kept, *others = sorted([points[-1]["path"], *points[-1]["copies"]])
    assert [Path(path).name for path in (kept, *others)] == ["copy", "r0023", "renamed"]
    said = leadline("trend", figure, str(many))
    assert "24 results" in said.stdout
    assert said.stdout.count("each result counted once") == 1
    assert "r0023" in said.stdout
    for name in ("copy", "renamed"):
        shutil.rmtree(many / name)
    listed = json.loads(leadline("list", str(many), "--json").stdout)
    assert [row["trials"] for row in listed] == ["4/4"] * 24
    assert_figures_are_listed(leadline, many, figure)
    for arguments, message in (
        (("trend", "iops", str(many)), "names no metric"),
        (("trend", "a.b.iops", str(many)), "no result below"),
        (("trend", figure, str(many), "--since", "soon"), "is not a date"),
    ):
        refused = leadline(*arguments)
        assert refused.returncode == 2
        assert message in refused.stderr


def assert_figures_are_listed(leadline: Command, many: Path, figure: str) -> None:
    """`list` knows what `trend` knows: every figure that it names can be followed, and no other."""
    cell, _, metric = figure.rpartition(".")
    shown = leadline("list", str(many)).stdout
    line = next(line for line in shown.splitlines() if line.startswith(f"  {cell}."))
    assert metric in line.split("  ", 2)[2].split(", ")
    example = re.search(r"leadline trend '([^']+)'", shown)
    assert example is not None
    assert leadline("trend", example[1], str(many)).returncode == 0
    found = json.loads(leadline("list", str(many), "--figures", "--json").stdout)["figures"]
    (one,) = (row for row in found if row["figure"] == figure)
    assert (one["unit"], one["results"]) == ("B/s", 24)
    followed = json.loads(leadline("trend", "*.*.*", str(many), "--json").stdout)["series"]
    assert {row["figure"] for row in found} == {row["figure"] for row in followed}
    assert figure in leadline("list", str(many), "--figures").stdout
