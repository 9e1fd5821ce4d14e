"""Files that a program maps into memory: named with their size, and what they moved is not called 0."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from leadline.store.reader import open_result
from leadline.tracing.sources import bpf
from leadline.tracing.store import read_trace
from support import Command, show

MIB = 1 << 20
SIZE = 32 * MIB
# Touches every page of a mapped file; prints how many page faults had to read, as the kernel counts them.
TOUCH = """
import mmap, resource, sys
writes = sys.argv[2] == "writes"
with open(sys.argv[1], "r+b" if writes else "rb") as file:
    whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if writes else mmap.ACCESS_READ)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    for place in range(0, len(whole), 4096):
        if writes:
            whole[place] = 1
        else:
            whole[place]
    print(resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before)
"""


@pytest.fixture(params=["preload", "bpf"])
def via(request: pytest.FixtureRequest) -> str:
    if request.param == "bpf" and (why_not := bpf.unavailable()):
        pytest.skip(why_not)
    return str(request.param)


@pytest.fixture
def data(place: Path) -> Path:
    """A file on storage, of which nothing is in memory."""
    path = place / "data"
    with path.open("wb") as file:
        file.write(os.urandom(SIZE))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path


def touch(place: Path, data: Path, how: str) -> list[str]:
    script = place.with_name("touch.py")
    script.write_text(TOUCH)
    return [sys.executable, "-I", "-S", str(script), str(data), how]


def codes(found: dict[str, Any]) -> set[str]:
    return {code["code"] for cell in found["cells"] for code in cell["validity"]["codes"]}


@pytest.mark.provokes("mapped_files")
@pytest.mark.parametrize("how", ["reads", "writes"])
def test_a_mapped_file_is_named_with_its_size_and_makes_it_doubtful(
    leadline: Command, via: str, how: str, place: Path, data: Path
) -> None:
    out = place.with_name("r")
    done = leadline("trace", "--via", via, "-o", str(out), "--", *touch(place, data, how), cwd=place)
    assert done.returncode == 0, done.stderr
    faults = int(done.stdout)
    found = show(leadline, out)
    assert found["state"] == "DOUBTFUL"
    assert "mapped_files" in codes(found)
    (mapped,) = found["trace"]["mapped"]
    assert (mapped["path"], mapped["mapped_bytes"], mapped["mappings"]) == (str(data), SIZE, 1)
    assert mapped["write_mappings"] == (1 if how == "writes" else 0)
    assert found["trace"]["copies"][0]["faults_major"] >= faults > 0
    screen = " ".join(leadline("show", str(out)).stdout.split())
    assert f"{data} was mapped into memory (32 MiB in 1 mapping): totals of bytes" in screen
    moved = "read and written" if how == "writes" else "read"
    assert f"lack what was {moved} through it; the time of its page faults is unknown" in screen
    assert "computing is the bottleneck" not in screen.lower()


def test_a_mapping_that_is_small_beside_what_calls_moved_casts_no_doubt(
    leadline: Command, via: str, place: Path, data: Path
) -> None:
    code = (
        f"import mmap; f=open('{data}','rb',0); m=mmap.mmap(f.fileno(), {2 * MIB}, access=mmap.ACCESS_READ); "
        f"m[0]; [f.read({4 * MIB}) for _ in range(8)]"
    )
    out = place.with_name("r")
    leadline("trace", "--via", via, "-o", str(out), "--", sys.executable, "-I", "-S", "-c", code, cwd=place)
    found = show(leadline, out)
    assert (codes(found), found["state"]) == (set(), "VALID")


# What every program maps: libraries, locales, caches of the loader and of character sets.
PLAIN = {
    "cat": "cat /etc/passwd",
    "python3": f"{sys.executable} -c 'import json, ssl, sqlite3; print(1)'",
    "git": "git init -q a && echo 1 > a/f && git -C a add . && git -C a -c user.name=n -c user.email=e@x"
    " commit -qm 1 && git -C a log --stat",
    "localized": "LC_ALL=C.UTF-8 sort /etc/passwd",
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_program_maps_no_data(leadline: Command, via: str, name: str, place: Path) -> None:
    out = place.with_name("r")
    done = leadline("trace", "--via", via, "-o", str(out), "--", "sh", "-c", PLAIN[name], cwd=place)
    assert done.returncode == 0, done.stderr
    found = show(leadline, out)
    assert "mapped_files" not in codes(found)
    assert found["trace"]["mapped"] == []
    assert "mapped into memory" not in " ".join(leadline("show", str(out)).stdout.split())
    rows = read_trace(open_result(out)).files.to_pylist()
    libraries = [row for row in rows if re.search(r"\.so(\.[0-9]+)*$", row["path"])]
    assert sum(row["MMAPS"] for row in libraries) >= (3 if via == "bpf" else 0)
    assert [row["path"] for row in libraries if row["mapped_bytes"]] == []


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
def test_an_strace_log_names_mapped_files_too(leadline: Command, place: Path, data: Path) -> None:
    log, out = place.with_name("log"), place.with_name("r")
    command = ["strace", "-f", "-ttt", "-T", "-y", "-o", str(log), *touch(place, data, "reads")]
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    leadline("import", "strace", str(log), "-o", str(out))
    found = show(leadline, out)
    assert "mapped_files" in codes(found)
    (mapped,) = found["trace"]["mapped"]
    assert (mapped["path"], mapped["mapped_bytes"], mapped["mappings"]) == (str(data), SIZE, 1)
    assert f"{data} was mapped" in " ".join(leadline("show", str(out)).stdout.split())
