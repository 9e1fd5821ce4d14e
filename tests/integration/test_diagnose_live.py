"""`leadline diagnose --live`: what others do on a mount, judged without a word of theirs."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import slow_fuse
from leadline.tracing.sources.bpf import unavailable
from slow_fuse import SlowMount
from support import Command

DELAY_MS = 30
# Reads a block that no cache has, one after the other, until it is told to end.
_READER = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
print('open', flush=True)
at = 0
while True:
    os.pread(file, 4096, at % (256 << 20))
    at += 1 << 20
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
"""


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[SlowMount]:
    if (reason := slow_fuse.missing()) is not None:
        pytest.skip(reason)
    with slow_fuse.mounted(slow_fuse.build(), tmp_path) as mount:
        with (mount.backing / "data").open("wb") as file:
            file.truncate(256 << 20)
        mount.rules(read_ms=DELAY_MS)
        yield mount


@contextlib.contextmanager
def reader(path: Path) -> Iterator[None]:
    words = [sys.executable, "-c", _READER, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            assert program.stdout.readline() == "open\n"
            yield
        finally:
            program.kill()
            program.wait(30)


@pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
def test_what_a_program_does_is_seen_with_its_latency(leadline: Command, slow: SlowMount) -> None:
    before = sorted(path.name for path in slow.backing.iterdir())
    with reader(slow.path / "data"):
        done = leadline("diagnose", "--live", str(slow.path), "--for", "4s", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["format"] == "leadline.diagnosis/1"
    (figures,) = found["live"]["figures"]
    assert figures["latency_s"] >= DELAY_MS / 1e3
    assert 1 <= figures["operations_per_s"] <= 1e3 / DELAY_MS
    assert 0.5 <= figures["in_flight"] <= 1.05
    assert figures["asked"] is None
    assert "latency_bound" in {one["cause"] for one in found["live"]["open"]}
    assert sorted(path.name for path in slow.backing.iterdir()) == before


def test_without_calls_the_host_is_judged_all_the_same(leadline: Command, tmp_path: Path) -> None:
    done = leadline("diagnose", "--live", str(tmp_path), "--for", "2s", "--no-bpf", "--json")
    assert done.returncode == 0, done.stderr
    (figures,) = json.loads(done.stdout)["live"]["figures"]
    assert figures["cpu_share"] is not None
    assert figures["operations_per_s"] is None
    screen = leadline("diagnose", "--live", str(tmp_path), "--for", "2s", "--no-bpf").stdout.splitlines()
    assert str(tmp_path) in screen[0]
    assert len(screen) <= 40
    assert max(map(len, screen[1:])) <= 100


def test_a_path_that_is_not_there_is_named(leadline: Command, tmp_path: Path) -> None:
    done = leadline("diagnose", "--live", str(tmp_path / "none"))
    assert done.returncode == 2
    assert "none" in done.stderr
