"""The shim of `root://`: what XRootD's client throws leaves it as an errno: C and Rust cannot be unwound."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADERS = Path(os.environ.get("XROOTD_INCLUDE", "/usr/include/xrootd"))


@pytest.mark.skipif(
    not (HEADERS / "XrdCl" / "XrdClFile.hh").exists() or shutil.which("g++") is None,
    reason="XRootD's headers or g++ are not installed",
)
def test_what_the_client_throws_is_an_errno(tmp_path: Path) -> None:
    fakes, program, store = ROOT / "tests" / "fakes", tmp_path / "shim_throws", tmp_path / "store"
    store.mkdir()
    later = tmp_path / "later.o"
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-c", "-o", later, fakes / "later.c"], check=True)
    sources = [
        fakes / "shim_throws.cc",
        fakes / "xrdcl.cc",
        ROOT / "crates" / "engine" / "xrootd" / "shim.cc",
    ]
    subprocess.run(
        ["g++", "-std=c++17", "-O0", "-pthread", "-isystem", HEADERS, "-o", program, *sources, later],
        check=True,
    )
    done = subprocess.run(
        [program], env={"FAKE_STORE": str(store)}, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
