"""What a study of one local directory loads, which is how long it takes to start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from leadline.interpreter import module_environment

_PROGRAM = """
import atexit, pathlib, sys
from leadline.cli.main import run_command_line
atexit.register(lambda: pathlib.Path(sys.argv[1]).write_text(chr(10).join(sys.modules)))
sys.exit(run_command_line(sys.argv[2:]))
"""
_STUDY = """
format: leadline.study/1
blocks: 2
limits: {reserve: 1M}
works: {reads: {rw: randread, bs: 64k, size: 1M, runtime: 200ms}}
"""
_ELSEWHERE = ("causal", "hosts", "lab", "published", "simulation", "sizing", "tracing", "tuning", "workflows")
_MOST = 245  # 239 when it was written; a tenth of a second for each 30 or so


def test_a_study_of_one_directory_loads_nothing_of_labs_hosts_traces_and_models(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "s.yaml").write_text(_STUDY)
    words = ["run", str(tmp_path / "s.yaml"), "--target", f"a={tmp_path / 'data'}", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", _PROGRAM, tmp_path / "modules", *words, "--out", tmp_path / "r"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=module_environment(),
    )
    assert done.returncode in (0, 3), done.stderr  # 3: trials of 0.2 s may be called too short
    loaded = {name for name in (tmp_path / "modules").read_text().split() if name.startswith("leadline.")}
    assert "leadline.verdict.findings" in loaded
    assert sorted(name for name in loaded if name.split(".")[1] in _ELSEWHERE) == []
    assert len(loaded) <= _MOST
