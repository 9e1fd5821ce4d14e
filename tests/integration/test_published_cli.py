"""Published figures from the command line: import, show, report, reproduce."""

from __future__ import annotations

import json
from pathlib import Path

from measured import CACHED, assert_measured
from support import Command, assert_one_screen, show

DATA = Path(__file__).parents[2] / "python" / "leadline" / "published" / "documents"


def test_a_document_is_imported_shown_and_reported(leadline: Command, tmp_path: Path) -> None:
    out = tmp_path / "paper"
    done = leadline("import", "published", str(DATA / "fermilab.yaml"), "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert "checks of the document's values" in done.stdout
    shown = leadline("show", str(out))
    assert shown.returncode == 0
    assert "1529 s stands for both 7 and 8" in " ".join(shown.stdout.split())
    assert_one_screen(shown.stdout)
    assert show(leadline, out)["published"]["claims"]
    page = leadline("report", str(out), "-o", str(tmp_path / "x.html"))
    assert page.returncode == 0, page.stderr
    assert "published" in leadline("list", str(tmp_path)).stdout
    again = leadline("import", "published", str(DATA / "fermilab.yaml"), "-o", str(out))
    assert again.returncode == 2
    for verb in (("compare", str(out), str(out)), ("run", "--resume", str(out)), ("undo", str(out))):
        refused = leadline(*verb)
        assert refused.returncode == 2, refused.stdout
        assert "document's values" in refused.stderr


def test_figures_are_shown_beside_what_was_measured_here(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    result = tmp_path / "r"
    done = leadline(
        *("run", "render", "--target", f"ssd={target}", "--out", str(result), "--blocks", "2", "--no-ceph"),
        *("--set", "factors.bs=[4k]", "--set", "size=64M", "--set", "runtime=100ms", "--set", "ramp_time=0"),
    )
    assert_measured(done, result, CACHED)
    arguments = ("reproduce", str(DATA / "suse.yaml"), "--measured", str(result), "--json")
    found = leadline(*arguments, "--map", "replicated=ssd")
    assert found.returncode == 0, found.stderr
    tables = {table["name"]: table for table in json.loads(found.stdout)["tables"]}
    lines = {(line["row"], line["figure"]): line for line in tables["random_write"]["lines"]}
    line = lines["replicated, 4k", "latency"]
    assert line["published"] == "33 ms"
    assert line["measured"].split()[1] == "ms"
    assert line["models"] == [{"label": "closed loop: queue depth over rate", "value": "33.47 ms"}]
    assert lines["erasure, 4k", "latency"]["measured"] is None
    refused = leadline(*arguments)
    assert refused.returncode == 2
    assert "--map SYSTEM=TARGET" in refused.stderr


def test_a_document_that_comes_along_is_named_and_scaled(leadline: Command) -> None:
    done = leadline("reproduce", "castor", "--scale", "1/50", "--json")
    assert done.returncode == 0, done.stderr
    tables = {table["name"]: table["lines"] for table in json.loads(done.stdout)["tables"]}
    small = [line["models"][0]["value"] for line in tables["buffers"]]
    assert small == ["1.300 MB/s", "6.000 MB/s", ">10.00 MB/s"]
    assert tables["ceiling"][0]["models"][0] == {
        "label": "as published, at 1/50",
        "value": "44.00 MB/s",
    }
    assert tables["acks"][0]["models"] == []
    for wrong in ("0", "half", "1/0", "-1/2"):
        refused = leadline("reproduce", "castor", "--scale", wrong)
        assert refused.returncode == 2
        assert "--scale 1/50" in refused.stderr
