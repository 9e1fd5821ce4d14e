"""Transfers by the engine: checksums as other programs compute them, and every acknowledgement on record."""

from __future__ import annotations

import base64
import hashlib
import json
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_jobs import MIB, RUN_IN_PROCESS, SECOND_NS
from numpy.typing import NDArray

from leadline import _core
from leadline.study.schemes import table

SIZE = 3 * MIB + 12_345
RECORD = np.dtype(
    [
        ("stream", "<u4"),
        ("direction", "u1"),
        ("pad", "V3"),
        ("offset", "<u8"),
        ("length", "<u8"),
        ("submitted_ns", "<u8"),
        ("acked_ns", "<u8"),
        ("result", "<i8"),
    ]
)


def transfer(directory: Path, **changes: Any) -> str:
    """A transfer's JSON: two streams of some MiB are written, unless `changes` say otherwise."""
    value: dict[str, Any] = {
        "format": "leadline.transfer/1",
        "trial": "t0001",
        "directory": str(directory),
        "prefix": "data",
        "transfer": "write",
        "streams": 2,
        "readers": 0,
        "buffer": 256 * 1024,
        "in_flight": 4,
        "size": SIZE,
        "engine": "io_uring",
        "direct": False,
        "checksum": None,
        "sources": [],
        "time_based": False,
        "runtime_ns": 0,
        "ramp_time_ns": 0,
        "end_sync": False,
        "rate_bytes_per_s": None,
        "incompressible": True,
        "seed": 7,
        "generation": 1,
        "interval_ns": SECOND_NS // 10,
        "deadline_ns": 60 * SECOND_NS,
        "parent_pid": None,
        "acks": str(directory / "acks"),
        "acks_max": 1_000_000,
    }
    value.update(changes)
    return json.dumps(value)


def run(directory: Path, **changes: Any) -> dict[str, Any]:
    """The summary of one transfer, after the layout of what it reads."""
    asked = transfer(directory, **changes)
    _core.layout(asked)
    return _core.run_trial(asked, directory / "trial.llrec")


def acks(directory: Path) -> NDArray[np.void]:
    """The log of acknowledgements."""
    path = directory / "acks"
    assert path.read_bytes()[:16] == b"LLACKS\x01\0" + RECORD.itemsize.to_bytes(4, "little") + b"\2\0\0\0"
    return np.fromfile(path, RECORD, offset=32)


def crc32c(data: bytes) -> str:
    """By the polynomial, bit by bit (RFC 3720, B.4), a table of bytes at a time."""
    bytewise = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        bytewise.append(crc)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ bytewise[(crc ^ byte) & 0xFF]
    return f"{crc ^ 0xFFFFFFFF:08x}"


KNOWN: dict[str, Callable[[bytes], str]] = {
    "adler32": lambda data: f"{zlib.adler32(data):08x}",
    "crc32c": crc32c,
    "md5": lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest(),
}


@pytest.mark.parametrize("checksum", KNOWN)
@pytest.mark.parametrize(("way", "readers"), [("write", 0), ("read", 2)])
def test_a_stream_has_the_checksum_of_its_file(tmp_path: Path, checksum: str, way: str, readers: int) -> None:
    summary = run(tmp_path, transfer=way, readers=readers, checksum=checksum)
    assert summary["state"] == "complete", summary["error"]
    for row in summary["streams"]:
        content = (tmp_path / f"data.{row['stream']}.0").read_bytes()
        assert len(content) == row["checksum_bytes"] == row["bytes"] == SIZE
        assert row["checksum"] == KNOWN[checksum](content)


def test_the_log_has_every_request_and_the_record_the_same_bytes(tmp_path: Path) -> None:
    summary = run(tmp_path, transfer="duplex", readers=1, end_sync=True)
    found = acks(tmp_path)
    assert len(found) == summary["acks"] == 2 * 13
    assert set(found["direction"][found["stream"] == 0]) == {1}
    assert set(found["direction"][found["stream"] == 1]) == {0}
    for stream in (0, 1):
        own = found[found["stream"] == stream]
        assert list(own["acked_ns"]) == sorted(own["acked_ns"])
        assert sorted(own["offset"]) == [number * 256 * 1024 for number in range(13)]
        assert own["result"].sum() == SIZE
    intervals = _core.read_record(tmp_path / "trial.llrec")["intervals"]
    for direction in ("read", "write"):
        assert sum(one["bytes"] for one in intervals if one["direction"] == direction) == SIZE
    assert summary["streams"][0]["synced_ns"] >= summary["streams"][0]["last_acked_ns"]
    assert summary["streams"][1]["synced_ns"] is None
    assert summary["buffers_bytes"] == 2 * 4 * 256 * 1024


def test_a_request_that_fails_is_in_the_log_and_named(tmp_path: Path) -> None:
    asked = transfer(tmp_path, streams=2)
    limit = str(MIB + 1000)
    command = [sys.executable, "-c", RUN_IN_PROCESS, asked, str(tmp_path / "trial.llrec"), limit]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    summary = json.loads(ended.stdout.splitlines()[-1])
    assert summary["state"] == "error"
    error = summary["error"]
    assert (error["kind"], error["operation"]) == ("no_space", "write")
    assert Path(error["file"]).name in {"data.0.0", "data.1.0"}
    found = acks(tmp_path)
    failed = found[found["result"] < 0]
    assert len(failed) >= 1
    assert error["errno"] in set(-failed["result"])
    # What the file still took of the last request is no part of an acknowledgement of it.
    assert set(failed["offset"]) >= {MIB}


def test_a_signal_in_the_middle_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    asked = transfer(tmp_path, time_based=True, runtime_ns=40 * SECOND_NS, rate_bytes_per_s=20 * MIB)
    command = [sys.executable, "-c", RUN_IN_PROCESS, asked, str(tmp_path / "trial.llrec"), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 30
        while not (tmp_path / "data.1.0").exists() or (tmp_path / "data.1.0").stat().st_size < 2 * MIB:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        summary = json.loads(process.stdout.read().splitlines()[-1])
        assert process.wait(timeout=20) == 0
    assert summary["state"] == "interrupted"
    assert len(acks(tmp_path)) == summary["acks"] == summary["total"]["write"]["operations"]


def test_the_users_files_are_what_is_sent(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(base64.b64encode(hashlib.sha512(b"leadline").digest()) * 5000)
    summary = run(tmp_path, sources=[str(source)], checksum="md5")
    content = source.read_bytes()
    sent = (content * (SIZE // len(content) + 1))[:SIZE]
    assert (tmp_path / "data.1.0").read_bytes() == sent
    assert {row["checksum"] for row in summary["streams"]} == {KNOWN["md5"](sent)}


def test_memory_is_known_before_and_kept(tmp_path: Path) -> None:
    asked = transfer(tmp_path, buffer=8 * MIB, size=64 * MIB, in_flight=8, streams=1)
    most = _core.transfer_memory("io_uring", 1, 0, 8 * MIB, 8)
    assert 8 * 8 * MIB <= most <= 8 * 8 * MIB + 100 * MIB
    command = [sys.executable, "-c", RUN_IN_PROCESS, asked, str(tmp_path / "trial.llrec"), "0"]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    grown = json.loads(ended.stdout.splitlines()[-1])["memory_max_bytes"]
    assert 8 * 8 * MIB <= grown <= most


def test_every_scheme_says_what_an_acknowledgement_means() -> None:
    assert all(scheme.ack_means for scheme in table())


def test_memory_grows_with_what_each_engine_holds() -> None:
    for scheme in table():
        for engine in scheme.engines:
            some = _core.transfer_memory(engine.name, 1, 1, MIB, 1)
            assert some < _core.transfer_memory(engine.name, 2, 1, MIB, 1)
            assert some < _core.transfer_memory(engine.name, 1, 2, MIB, 1)
            assert some < _core.transfer_memory(engine.name, 1, 1, 64 * MIB, 1)
            assert _core.transfer_memory(engine.name, 0, 1, MIB, 4) >= 4 * MIB
    with pytest.raises(ValueError, match="engine: there is none"):
        _core.transfer_memory("none", 1, 0, MIB, 1)
