"""Every reader of stored or foreign bytes, on seeded damage: a result or one clear error, in bounded time.

`make fuzz` looks for more; what it found is in tests/data/fuzz and is tried here first.
"""

from __future__ import annotations

import random
import resource
import time
from contextlib import suppress
from pathlib import Path

import pytest
from mutations import mutated
from targets import DATA, READERS, Reader

from leadline import _core

ONE_INPUT_MAX_S = 10.0
GROWTH_MAX_KIB = 512 << 10
# How many inputs of each: together some 15 s. What takes a process for each input is left to `make fuzz`.
INPUTS = {
    "strace": 40,
    "darshan": 0,
    "log": 20,
    "manifest": 30,
    "journal": 30,
    "trials": 15,
    "latency": 10,
    "processes": 5,
    "files": 5,
    "segments": 0,
    "call_latency": 5,
    "index": 15,
    "bundle": 30,
    "bundled_trials": 10,
    "bundled_series": 20,
    "study": 50,
    "job_file": 100,
    "topology": 60,
    "opencast": 600,
    "fio-results": 200,
    "tuning": 400,
    "published": 30,
    "emit": 150,
    "s3": 40,
    "nfs": 40,
    "script": 1500,
    "record": 300,
}


def _try(reader: Reader, place: Path, data: bytes) -> None:
    place.write_bytes(data)
    begun = time.process_time()  # of its own: others may be busy here
    with suppress(*reader.errors):
        reader.read(place)
    assert time.process_time() - begun < ONE_INPUT_MAX_S


@pytest.mark.parametrize("name", INPUTS)
def test_damage_is_a_result_or_a_clear_error(tmp_path: Path, name: str) -> None:
    reader = READERS[name]
    if name == "darshan":
        pytest.importorskip("darshan")
    if name == "nfs" and not any(
        engine["name"] == "libnfs" and engine["available"] for engine in _core.engines()
    ):
        pytest.skip("libnfs is not installed")
    corpus, work = tmp_path / "corpus", tmp_path / "work"
    for directory in (corpus, work):
        directory.mkdir()
    reader.seed(corpus, work)
    true = [path.read_bytes()[: reader.bytes_max] for path in sorted(corpus.iterdir())]
    assert true
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = DATA / "fuzz"
    for path in sorted(found.glob(f"{name}-*")):
        _try(reader, work / "input", path.read_bytes())
    chance = random.Random(name)  # noqa: S311 - the same in each run
    for number in range(INPUTS[name]):
        data = mutated(chance.choice(true), chance)[: reader.bytes_max]
        try:
            _try(reader, work / "input", data)
        except BaseException:
            kept = Path("target/fuzz")
            kept.mkdir(parents=True, exist_ok=True)
            (kept / f"{name}-seeded-{number}").write_bytes(data)
            raise
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH_MAX_KIB
