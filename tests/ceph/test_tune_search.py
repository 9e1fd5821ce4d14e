"""A search on a real cluster finds that a default was made bad, proves it, and leaves all as it was."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from leadline import lab as leadline_lab
from support import Command

pytestmark = pytest.mark.ceph

STUDY = """
format: leadline.study/1
limits: {reserve: 100M}
defaults: {size: 4M, runtime: 500ms, time_based: true, direct: false}
works:
  small_writes: {rw: write, bs: 16k}
"""
OPTION = "client_oc"


def config(lab: leadline_lab.Lab, *words: str) -> str:
    conf = str(lab.status().directory / "ceph.conf")
    line = ["ceph", "--conf", conf, "config", *words]
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_bad_default_is_found_and_proved_and_left_as_it_was(
    lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    (tmp_path / "small.yaml").write_text(STUDY)
    target = f"a=cephfs:///replicated?conf={lab.status().directory / 'ceph.conf'}"
    words = ("--target", target, "--space", f"{OPTION}=true|false", "--tries", "1", "--blocks", "4")
    config(lab, "set", "client", OPTION, "false")
    try:
        before = json.loads(config(lab, "dump", "--format", "json"))
        done = leadline(
            "tune",
            "search",
            str(tmp_path / "small.yaml"),
            *words,
            "--budget",
            "3m",
            "--out",
            str(tmp_path / "r"),
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(config(lab, "dump", "--format", "json")) == before
    finally:
        config(lab, "rm", "client", OPTION)
    assert f"Proved better than the default: {OPTION}=true." in " ".join(done.stdout.split()), done.stdout
    found = json.loads(leadline("show", str(tmp_path / "r"), "--json").stdout)["search"]
    assert found["winner"] == {OPTION: "true"}
    assert found["gains"]["default"][0]["low"] > 2, found["gains"]
