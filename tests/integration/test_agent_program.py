"""The agent as a program: what it answers, does on a target, counts and traces."""

from __future__ import annotations

import json
import os
import platform
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest

from leadline import _core
from leadline.errors import UsageError
from leadline.hosts.agent.copying import carried
from leadline.tracing.sources.launch import read_agent_logs
from support import command_line

BYTES = 1_000_000


@pytest.fixture(scope="module")
def agent() -> str:
    return str(carried()[platform.machine()].path)


class Calls:
    """One agent that serves, called as a command calls it."""

    def __init__(self, program: str, below: Path) -> None:
        words = [program, "serve", "--below", str(below)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._to, self._from = self.process.stdin, self.process.stdout
        assert self._from.readline() == b"\n"
        head, _, said = self._from.readline().partition(b" ")
        assert head == b"leadline-agent/1"
        self.greeting: dict[str, Any] = json.loads(said)
        self.lines = b""

    def call(self, name: str, *arguments: Any) -> Any:
        data = msgpack.packb([name, list(arguments)])
        self._to.write(struct.pack(">QQ", 7, len(data)) + data)
        self._to.flush()
        number, size = struct.unpack(">QQ", self._from.read(16))
        assert number == 7
        return msgpack.unpackb(self._from.read(size), strict_map_key=False)

    def line(self, child: int) -> dict[str, Any]:
        while b"\n" not in self.lines:
            self.lines += self.call("read", child, 20)
        line, _, self.lines = self.lines.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def obeyed(self, child: int, **command: Any) -> dict[str, Any]:
        self.call("write", child, json.dumps(command).encode() + b"\n")
        while (said := self.line(child))["event"] not in ("done", "failed"):
            pass
        return said

    def end(self) -> int:
        self._to.close()
        return self.process.wait(20)


@pytest.fixture
def calls(agent: str, tmp_path: Path) -> Iterator[Calls]:
    below = tmp_path / "below"
    below.mkdir()
    found = Calls(agent, below)
    assert found.call("hello", _core.version(), 1) is None
    yield found
    assert found.end() == 0
    assert not list(below.iterdir())


def run(words: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)


def test_it_is_of_the_commands_version_and_shows_what_the_host_has(agent: str, tmp_path: Path) -> None:
    assert run([agent, "--version"], tmp_path).stdout == f"leadline-agent {_core.version()}\n"
    found = json.loads(run([agent, "doctor", "--json"], tmp_path).stdout)
    ours = {one["name"]: one["available"] for one in _core.engines() if one["name"] != "xrootd"}
    assert {one["name"]: one["available"] for one in found["engines"] if one["name"] != "xrootd"} == ours
    assert found["kernel"] == platform.release()
    for name in ours:
        assert f"engine     {name}: " in run([agent, "doctor"], tmp_path).stdout


def test_an_agent_of_another_version_does_nothing(agent: str, tmp_path: Path) -> None:
    found = Calls(agent, tmp_path)
    for version, protocol in (("0.0.1", 1), (_core.version(), 2)):
        assert "refused" in found.call("hello", version, protocol)
    assert "refused" in found.call("clock")
    assert found.end() == 0


def job(directory: Path) -> dict[str, Any]:
    """One pass of reads over 2 MiB."""
    whole = {"size": 2 << 20, "nrfiles": 1, "numjobs": 1, "iodepth": 1, "engine": "psync", "bs": 4096}
    off = ("direct", "overwrite", "end_fsync", "time_based", "verify", "incompressible", "sqthread_poll")
    none = ("rate_bytes_per_s", "rate_iops", "parent_pid")
    times = {"runtime_ns": 0, "ramp_time_ns": 0, "interval_ns": 10**8, "deadline_ns": 30 * 10**9}
    kind = {"rw": "read", "rwmixread": 100, "arrival": "constant", "fsync": 0, "seed": 1, "generation": 1}
    place = {"format": "leadline.job/1", "trial": "t0001", "directory": str(directory), "prefix": "data"}
    return {**place, **kind, **whole, **times, **dict.fromkeys(off, False), **dict.fromkeys(none)}


def test_a_worker_makes_measures_and_removes_what_is_the_studys_alone(calls: Calls, tmp_path: Path) -> None:
    identifier = "0123456789abcdef"
    directory = tmp_path / f"leadline-{identifier}"
    place = {"directory": str(directory), "location": None, "id": identifier}
    child = calls.call("spawn", "worker", [])["id"]
    assert calls.line(child)["event"] == "ready"
    assert calls.obeyed(child, command="make_workspace", **place)["event"] == "done"
    laid_out = calls.obeyed(child, command="layout", job=job(directory))["answer"]
    assert (
        laid_out["bytes_written"] == sum(path.stat().st_size for path in directory.glob("data.*")) == 2 << 20
    )
    record = Path(calls.greeting["directory"]) / "t0001"
    summary = calls.obeyed(child, command="trial", job=job(directory), record=str(record))["answer"]
    assert (summary["state"], summary["directions"]["read"]["bytes"]) == ("complete", 2 << 20)
    data = calls.call("read_file", "t0001", 0, 32 << 20)
    (tmp_path / "record").write_bytes(data)
    assert _core.read_record(tmp_path / "record")["summary"]["state"] == "complete"
    (directory / "theirs").write_text("precious")
    removing = {"command": "remove_workspace", **place, "begins": ["data."], "was": None, "slice_s": 20}
    assert "theirs" in calls.obeyed(child, **removing)["message"]
    assert (directory / "theirs").read_text() == "precious"
    assert [path.name for path in directory.iterdir() if path.name != "theirs"] == [".leadline"]
    (directory / "theirs").unlink()
    (directory / ".leadline").write_text("another mark")
    assert "does not carry this study's mark" in calls.obeyed(child, **removing)["message"]
    (directory / ".leadline").unlink()
    assert calls.obeyed(child, **removing)["answer"] == {"more": False}
    assert not directory.exists()


def test_an_observer_counts_what_the_kernel_counts(calls: Calls) -> None:
    child = calls.call("spawn", "observe", [])["id"]
    config = {"interval_s": 0.1, "targets": {"d": {"access": "local", "file_system": "ext4"}}}
    calls.call("write", child, json.dumps(config).encode() + b"\n")
    own = os.getpid()

    def busy_ticks() -> int:
        fields = [int(field) for field in Path("/proc/stat").read_text().split()[1:9]]
        return fields[0] + fields[1] + fields[2] + fields[5] + fields[6]

    while calls.line(child)["kind"] != "sample":
        pass
    before = busy_ticks()
    calls.call("write", child, json.dumps({"mark": "m", "target": "d", "pid": own}).encode() + b"\n")
    while (said := calls.line(child))["kind"] != "mark":
        pass
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    assert before * tick_ns <= said["counters"]["cpu_busy_ns"] <= busy_ticks() * tick_ns
    amounts = dict(line.split(": ") for line in Path(f"/proc/{own}/io").read_text().splitlines())
    assert said["counters"]["process_read_bytes"] <= int(amounts["read_bytes"])
    assert abs(int(amounts["write_bytes"]) - said["counters"]["process_written_bytes"]) < 1 << 20
    assert said["counters"]["wire_sent_bytes"] is None
    assert "no network" in said["reasons"]["wire_sent_bytes"]
    assert said["counters"]["samples_due"] >= 1


def test_what_it_traces_is_imported_with_every_byte_and_exit_code(agent: str, tmp_path: Path) -> None:
    script = f"head -c {BYTES} /dev/zero >file; cat file >copy; exit 3"
    traced = run(
        [agent, "trace", "--out", "logs", "--segments", "1000000", "--", "sh", "-c", script], tmp_path
    )
    assert traced.returncode == 3, traced.stderr
    assert {path.name for path in (tmp_path / "logs").iterdir()} == {"copy-0", "trace.json"}
    tables = read_agent_logs(tmp_path / "logs")
    processes = {Path(row.executable or "").name: row for row in tables.processes}
    head, cat = processes["head"], processes["cat"]
    assert head.bytes_written == BYTES
    assert cat.bytes_written == BYTES
    assert 0 < tables.extra["wall_s"] < 60
    assert tables.segments is not None
    out = tmp_path / "result"
    imported = run(command_line("import", "agent", "logs", "-o", str(out)), tmp_path)
    assert imported.returncode == 0, imported.stderr
    shown = run(command_line("show", str(out), "--json"), tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert f'"bytes_written": {2 * BYTES}' in shown.stdout


def test_logs_are_not_mixed_and_a_command_that_is_not_there_says_so(agent: str, tmp_path: Path) -> None:
    assert run([agent, "trace", "--out", "logs", "--", "true"], tmp_path).returncode == 0
    again = run([agent, "trace", "--out", "logs", "--", "true"], tmp_path)
    assert (again.returncode, "is there already" in again.stderr) == (125, True)
    absent = run([agent, "trace", "--out", "other", "--", "/nonexistent"], tmp_path)
    assert (absent.returncode, "/nonexistent" in absent.stderr) == (127, True)


@pytest.mark.parametrize("note", ["[]", "{}", '{"format": "leadline.tracelogs/1"}', "no JSON"])
def test_a_directory_that_it_did_not_make_is_refused(tmp_path: Path, note: str) -> None:
    (tmp_path / "trace.json").write_text(note)
    with pytest.raises(UsageError, match=r"trace\.json|JSON|tracelogs|no JSON|Expecting"):
        read_agent_logs(tmp_path)
