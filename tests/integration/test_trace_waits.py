"""Programs that wait outside of their calls on files: no waiting is taken for computing, by either tracer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import slow_fuse
from leadline.tracing.sources import bpf
from support import Command, show

MIB = 1 << 20
# Touches a page of each mebibyte of a mapped file: no read-ahead serves the next.
TOUCH = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for place in range(0, len(whole), 1 << 20):
        whole[place]
"""
COMPUTES = "import time\nwhile time.process_time() < 0.6: pass"
WAITING = {
    *("waiting_for_pages", "unseen_calls", "waiting_asleep", "waiting_for_locks", "waiting_for_others"),
    *("mostly_reads", "mostly_metadata", "library_cost"),
}


@pytest.fixture(scope="module")
def program() -> Path:
    if why_not := slow_fuse.missing():
        pytest.skip(why_not)
    return slow_fuse.build()


@pytest.fixture
def mount(program: Path, tmp_path: Path) -> Iterator[slow_fuse.SlowMount]:
    """A mount through the page cache, of which each read takes 20 ms."""
    with slow_fuse.mounted(program, tmp_path, cached=True, believed_s=60) as found:
        found.rules(read_ms=20)
        yield found


@pytest.fixture(params=["preload", "bpf"])
def via(request: pytest.FixtureRequest) -> str:
    if request.param == "bpf" and (why_not := bpf.unavailable()):
        pytest.skip(why_not)
    return str(request.param)


def traced(leadline: Command, via: str, out: Path, *words: str) -> tuple[dict[str, Any], set[str]]:
    """The trace's JSON, and the rules that hold."""
    done = leadline("trace", "--via", via, "-o", str(out), "--", *words)
    assert done.returncode == 0, done.stderr
    found = show(leadline, out)["trace"]
    return found, {item["rule"] for item in found["findings"]}


def python(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", *words)


def test_waiting_for_pages_of_a_mapped_file_is_no_computing(
    leadline: Command, via: str, mount: slow_fuse.SlowMount, tmp_path: Path
) -> None:
    (mount.backing / "data").write_bytes(os.urandom(MIB) * 40)
    found, rules = traced(leadline, via, tmp_path / "r", *python(TOUCH, str(mount.path / "data")))
    assert "waiting_for_pages" in rules
    assert "bound_by_compute" not in rules
    shares = found["shares"]
    assert shares["waits"]["page"] > shares["compute"] * shares["base_s"]


def test_loading_a_program_and_its_libraries_from_slow_storage_is_no_computing(
    leadline: Command, via: str, mount: slow_fuse.SlowMount, tmp_path: Path
) -> None:
    """The loader's calls and the pages of the library are before the preloaded tracer begins."""
    source = tmp_path / "l.c"
    size = 8 * MIB
    source.write_text(f"char table[{size}] = {{1}};\nint touch(void) {{ return table[0]; }}\n")
    library = mount.backing / "libl.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    main = tmp_path / "m.c"
    main.write_text(
        f"extern char table[{size}];\nint touch(void);\n"
        f"int main(void) {{ int sum = touch(); for (long at = 0; at < {size}; at += 262144) sum += table[at];"
        " return sum == 0; }\n"
    )
    program = tmp_path / "m"
    rpath = f"-Wl,-rpath,{mount.path}"
    subprocess.run(["cc", "-o", program, main, f"-L{mount.backing}", "-ll", rpath], check=True)
    found, rules = traced(leadline, via, tmp_path / "r", str(program))
    assert "bound_by_compute" not in rules
    assert rules & {"waiting_for_pages", "unseen_calls", "library_cost"}
    run_s = found["copies"][0]["run_s"]
    assert found["shares"]["base_s"] == pytest.approx(run_s, rel=0.1)  # from its exec on, loading included


def test_a_program_that_sleeps_does_not_compute(leadline: Command, via: str, tmp_path: Path) -> None:
    _, rules = traced(leadline, via, tmp_path / "r", "sleep", "0.7")
    assert "waiting_asleep" in rules
    assert "bound_by_compute" not in rules


def test_a_program_that_computes_waits_for_nothing_but_a_cpu(
    leadline: Command, via: str, tmp_path: Path
) -> None:
    found, rules = traced(leadline, via, tmp_path / "r", *python(COMPUTES))
    assert not rules & WAITING
    shares = found["shares"]
    assert shares["compute"] * shares["base_s"] >= 0.5
