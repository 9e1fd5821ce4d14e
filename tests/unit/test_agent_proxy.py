"""The process that stands here for a host without leadline: its answers, also where its agent is strange."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

import agents
from leadline import _core
from leadline.hosts.agent.copying import LINE
from leadline.hosts.worker_rpc import remote
from leadline.hosts.workers.calls import Crew
from leadline.hosts.workers.request import HostAsked
from leadline.hosts.workers.ssh import PROXY, SshTransport
from leadline.interpreter import module_command

MACHINE = agents.machine()
GREETING = {"leadline": _core.version(), "protocol": 1, "machine": MACHINE, "directory": "/nonexistent"}


def asked(program: Path, temporary: Path) -> HostAsked:
    """A host that is a shell here, and gets that program as its agent."""
    words = ["env", f"TMPDIR={temporary}", "sh", "-c", LINE]
    files = {MACHINE: str(program)}
    told = json.dumps({"name": "a", "command": words, "files": files})
    return HostAsked("a", through=tuple(module_command(PROXY, told)))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the agent is put; what the process here makes goes elsewhere."""
    own, there = tmp_path / "here", tmp_path / "there"
    own.mkdir()
    there.mkdir()
    monkeypatch.setenv("TMPDIR", str(own))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return there


def wait_until_none_is_left(temporary: Path) -> None:
    end = time.monotonic() + 30
    while list(temporary.iterdir()) or list(temporary.with_name("here").iterdir()):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_host_answers_through_its_agent(tmp_path: Path, temporary: Path) -> None:
    transport = SshTransport([asked(agents.stand_in_script(tmp_path), temporary)])
    try:
        assert transport.connect(60.0) == {}
        assert transport.with_agents == ["a"]
        crew = Crew(transport)
        crew.assign({one.name: one.address for one in crew.workers()})
        clock = crew.tell(remote().clock)["a"].value
        assert abs(clock - time.time_ns()) < 5_000_000_000
        need = {"targets": {"here": str(tmp_path), "none": "/nonexistent"}, "directory": None}
        found = crew.tell(remote().probe, need, timeout_s=60.0)["a"]
        assert found.problem == ""
        assert found.value["targets"]["none"]["error"] == "/nonexistent: No such file or directory"
        assert found.value["targets"]["here"]["access"]
        assert found.value["facts"]["agent"] == "yes"
        part = crew.tell(remote().check_part, ["leadline", "check"], 5.0, timeout_s=60.0)["a"]
        assert part.problem == "a check needs leadline on that host, and only its agent runs there"
    finally:
        transport.close()
    wait_until_none_is_left(temporary)


def fake(directory: Path, answer: str) -> Path:
    """An agent that greets, and answers each call by what Python's `answer(number, name)` gives."""
    script = directory / "fake"
    text = f"""#!{sys.executable}
import sys, struct, json
sys.path[:0] = {sys.path!r}
import msgpack
frame = lambda number, value: struct.pack(">QQ", number, len(data := msgpack.packb(value))) + data
out = sys.stdout.buffer
out.write(b"leadline-agent/1 " + {json.dumps(GREETING).encode()!r} + b"\\n"); out.flush()
while len(head := sys.stdin.buffer.read(16)) == 16:
    number, size = struct.unpack(">QQ", head)
    name = msgpack.unpackb(sys.stdin.buffer.read(size))[0]
    out.write({answer}); out.flush()
"""
    script.write_text(text)
    return script


_STRANGE: dict[str, tuple[str, str]] = {
    "nothing": ("frame(number, None)", "what answers there is no agent of leadline's"),
    "texts": ('frame(number, "x")', "what answers there is no agent of leadline's"),
    "a clock alone": (
        'frame(number, {"monotonic_ns": 1, "unix_ns": 1} if name == "clock" else {})',
        "what answers there is no agent of leadline's",
    ),
    "no msgpack": (
        'struct.pack(">QQ", number, 1) + b"\\xc1"',
        "the agent's answer to 'hello' cannot be read",
    ),
    "a refusal": ('frame(number, {"refused": "not today"})', "not today"),
    "an end": ('b"" if name == "hello" and sys.exit() else b""', "the agent ended"),
    "a frame without end": ('struct.pack(">QQ", number, 1 << 60)', "the agent ended"),
}


@pytest.mark.parametrize("name", _STRANGE)
def test_a_strange_agent_is_said_and_leaves_nothing(tmp_path: Path, temporary: Path, name: str) -> None:
    answer, words = _STRANGE[name]
    transport = SshTransport([asked(fake(tmp_path, answer), temporary)])
    try:
        why = transport.connect(60.0)["a"]
    finally:
        transport.close()
    assert why.startswith("starts no leadline: ")
    assert words in why
    assert "Traceback" not in why
    wait_until_none_is_left(temporary)


def test_an_agent_that_is_gone_is_a_lost_host(tmp_path: Path, temporary: Path) -> None:
    lost: list[str] = []
    transport = SshTransport([asked(agents.stand_in_script(tmp_path), temporary)])
    transport.on_loss(lambda _address, why: lost.append(why))
    try:
        assert transport.connect(60.0) == {}
        agents.end_stand_ins(temporary)
        end = time.monotonic() + 60
        while not lost:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert lost[0].startswith("its process ended with exit code 137")
    finally:
        transport.close()
    wait_until_none_is_left(temporary)
