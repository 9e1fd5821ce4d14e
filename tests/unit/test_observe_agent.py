"""Marks and samples from a real agent on this host; differences of marks; admin sockets that misbehave."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leadline.errors import ObserverError
from leadline.interpreter import module_command, module_environment
from leadline.observe.agent import merge
from leadline.observe.ceph.client import NotObservableError, ask_socket, connect
from leadline.observe.client import ClusterState, Mark, Observer, delta
from leadline.observe.mounts.mounts import inspect
from leadline.observe.reading import Counters, missing
from leadline.study.target import CephAccess, TargetFacts

NULL = TargetFacts(access="null", file_system="null", words="")


@pytest.fixture
def observer(tmp_path: Path) -> Iterator[Observer]:
    observer = Observer({"here": inspect(str(tmp_path)), "null": NULL}, interval_s=0.1)
    observer.start()
    yield observer
    observer.stop()


def until(condition: Callable[[], bool], deadline_s: float = 10.0) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, "the deadline passed"
        time.sleep(0.02)


def test_marks_give_the_bytes_of_a_write(observer: Observer, tmp_path: Path) -> None:
    before = observer.mark("t0001:start", "here", os.getpid())
    with (tmp_path / "file").open("wb") as file:
        file.write(os.urandom(8 << 20))
        file.flush()
        os.fsync(file.fileno())
    change = delta(before, observer.mark("t0001:end", "here", os.getpid()))
    assert change.elapsed_ns > 0
    assert change.cpu_busy_share is None or 0 <= change.cpu_busy_share <= 1
    if change.device_written_bytes is None:
        assert change.reasons["device_written_bytes"]
    else:
        assert change.device_written_bytes >= 8 << 20
        # Pages of other files that this process dirtied meanwhile are in it too.
        assert change.process_written_bytes is not None
        assert 8 << 20 <= change.process_written_bytes < 16 << 20
    assert change.wire_sent_bytes is None
    assert change.osd_written_bytes is None
    assert "cluster" in change.reasons["osd_written_bytes"]
    assert change.observer_cpu_ns is not None
    assert change.state_start is None


def test_every_missing_figure_has_its_reason(observer: Observer) -> None:
    for target in ("here", "null"):
        change = delta(observer.mark("a", target, None), observer.mark("b", target, None))
        for name, value in change.as_json().items():
            if value is None and name.endswith("_bytes"):
                assert change.reasons[name].startswith("not observable")


def test_samples_arrive_in_order(observer: Observer) -> None:
    samples = []

    def enough() -> bool:
        samples.extend(observer.drain())
        return sum(sample.metric == "busy" and sample.subject == "cpu" for sample in samples) >= 3

    until(enough)
    assert {"host"} <= {sample.source for sample in samples}
    times = [sample.t_ns for sample in samples if sample.source == "host"]
    assert times == sorted(times)
    assert observer.cpu_ns


def test_dead_agent_never_raises_and_says_so(observer: Observer) -> None:
    assert observer.pid is not None
    os.kill(observer.pid, signal.SIGKILL)
    began = time.monotonic()
    mark = observer.mark("a", "here", None, deadline_s=2.0)
    assert time.monotonic() - began < 3
    assert mark.counters == {}
    change = delta(mark, mark)
    assert change.device_read_bytes is None
    assert "ended" in change.reasons["device_read_bytes"] or "answer" in change.reasons["device_read_bytes"]


def test_stopped_agent_is_given_up_at_the_deadline(observer: Observer) -> None:
    assert observer.pid is not None
    os.kill(observer.pid, signal.SIGSTOP)
    began = time.monotonic()
    mark = observer.mark("a", "here", None, deadline_s=0.3)
    observer.stop(deadline_s=0.3)
    assert time.monotonic() - began < 2
    assert "0.3 s" in mark.reasons["*"]


def test_agent_ends_with_its_parent() -> None:
    script = (
        "import os,sys,time\n"
        "from leadline.observe.client import Observer\n"
        "o = Observer({}); o.start(); print(o.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    parent = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env=module_environment(), check=False, timeout=60
    )
    agent = int(parent.stdout)

    def gone() -> bool:
        try:
            stat = Path(f"/proc/{agent}/stat").read_text()
        except FileNotFoundError:
            return True
        return stat.rpartition(")")[2].split()[0] == "Z"

    until(gone)


def test_configuration_that_is_no_configuration_is_an_error() -> None:
    done = subprocess.run(
        module_command("leadline.observe.agent"),
        input=b"{}\n",
        capture_output=True,
        env=module_environment(),
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["false"], ["sh", "-c", "exec >&-; sleep 2"]])
def test_agent_that_cannot_start_is_an_observer_error(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it has closed its output and has not ended yet."""
    monkeypatch.setattr("leadline.observe.client.module_command", lambda _module: words)
    with pytest.raises(ObserverError, match="did not start"):
        Observer({}).start(deadline_s=5)


def test_cluster_that_cannot_be_reached_is_not_observable(tmp_path: Path) -> None:
    facts = TargetFacts(
        access="ceph-fuse",
        file_system="fuse.ceph-fuse",
        words="",
        ceph=CephAccess(
            conf=str(tmp_path / "absent.conf"),
            client_socket=str(tmp_path / "absent.asok"),
            client_pid=os.getpid(),
        ),
    )
    observer = Observer({"far": facts})
    observer.start()
    try:
        mark = observer.mark("a", "far", None, deadline_s=5)
    finally:
        observer.stop()
    assert mark.state is None
    assert mark.reasons["state"]
    assert mark.counters["osd_read_bytes"] is None
    assert mark.counters["wire_sent_bytes"] is None
    assert mark.reasons["wire_sent_bytes"]


def test_absent_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_arguments: object, **_options: object) -> object:
        raise OSError

    monkeypatch.setattr("ctypes.CDLL", absent)
    with pytest.raises(NotObservableError, match="librados2 is not installed"):
        connect(None, None, None)


def _mark(**counters: int | None) -> Mark:
    return Mark("m", 0, counters, sources=dict.fromkeys(counters, "x"), cpu_ns=5)


def test_what_happened_is_the_change_of_a_counter_and_not_the_counter() -> None:
    assert delta(_mark(osd_read_bytes=100), _mark(osd_read_bytes=107)).osd_read_bytes == 7


def test_a_counter_that_one_mark_lacks_is_not_observable_and_not_zero() -> None:
    for marks in ((_mark(), _mark(osd_read_bytes=7)), (_mark(osd_read_bytes=7), _mark())):
        change = delta(*marks)
        assert change.osd_read_bytes is None
        assert change.reasons["osd_read_bytes"].startswith("not observable at the ")


def test_counter_that_went_backwards_is_not_observable() -> None:
    change = delta(_mark(osd_read_bytes=100), _mark(osd_read_bytes=7))
    assert change.osd_read_bytes is None
    assert "backwards" in change.reasons["osd_read_bytes"]


def test_counter_from_another_source_is_not_observable() -> None:
    end = Mark("m", 9, {"wire_sent_bytes": 50}, sources={"wire_sent_bytes": "network interface lo"})
    change = delta(_mark(wire_sent_bytes=10), end)
    assert change.wire_sent_bytes is None
    assert "network interface lo" in change.reasons["wire_sent_bytes"]


def test_shares_of_cpu_time() -> None:
    start = _mark(cpu_total_ns=0, cpu_busy_ns=0, cpu_steal_ns=0)
    change = delta(start, _mark(cpu_total_ns=200, cpu_busy_ns=50, cpu_steal_ns=10))
    assert (change.cpu_busy_share, change.cpu_steal_share) == (0.25, 0.05)


def test_better_source_replaces_a_worse_one_and_a_missing_value_never_does() -> None:
    interface = Counters({"wire_sent_bytes": 1}, {"wire_sent_bytes": "interface"})
    daemon = Counters({"wire_sent_bytes": 2}, {"wire_sent_bytes": "daemon"})
    assert merge([interface, daemon]).sources["wire_sent_bytes"] == "daemon"
    found = merge([interface, missing(("wire_sent_bytes",), "the socket is closed")])
    assert found.values["wire_sent_bytes"] == 1
    assert "the socket is closed" in found.sources["wire_sent_bytes"]


def test_unknown_cluster_state_keeps_its_reason() -> None:
    found = merge([Counters(reasons={"state": "no monitor answers"})])
    assert found.state is None
    assert found.reasons["state"] == "no monitor answers"


def _serve(path: Path, answer: Callable[[socket.socket], None]) -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(1)

    def once() -> None:
        connection, _ = listener.accept()
        with connection, listener:
            command = b""
            while not command.endswith(b"\0"):
                command += connection.recv(4096)
            assert json.loads(command[:-1])["prefix"] == "perf dump"
            answer(connection)

    threading.Thread(target=once, daemon=True).start()


def test_admin_socket_answers_in_pieces(tmp_path: Path) -> None:
    def pieces(connection: socket.socket) -> None:
        for part in (b"\0\0", b"\0\x09", b'{"a"', b": 42}"[:5]):
            connection.sendall(part)
            time.sleep(0.01)

    _serve(tmp_path / "s", pieces)
    assert ask_socket(str(tmp_path / "s"), os.getpid(), "perf dump") == {"a": 42}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "closed"),
        (struct.pack(">I", 10) + b"{", "closed"),
        (struct.pack(">I", 0xFFFFFFFF), "announces"),
        (struct.pack(">I", 3) + b"no!", "no JSON"),
    ],
)
def test_admin_socket_that_misbehaves(tmp_path: Path, answer: bytes, why: str) -> None:
    _serve(tmp_path / "s", lambda connection: connection.sendall(answer))
    with pytest.raises(NotObservableError, match=why):
        ask_socket(str(tmp_path / "s"), os.getpid(), "perf dump")


def test_admin_socket_on_which_another_process_listens_is_not_asked(tmp_path: Path) -> None:
    _serve(tmp_path / "s", lambda connection: connection.sendall(struct.pack(">I", 2) + b"{}"))
    with pytest.raises(NotObservableError, match=f"process {os.getpid()} listens .* not process 1$"):
        ask_socket(str(tmp_path / "s"), 1, "perf dump")


def test_admin_socket_that_hangs_is_given_up(tmp_path: Path) -> None:
    release = threading.Event()
    _serve(tmp_path / "s", lambda _connection: void(release.wait(10)))
    began = time.monotonic()
    with pytest.raises(NotObservableError, match=r"within 0\.3 s"):
        ask_socket(str(tmp_path / "s"), os.getpid(), "perf dump", deadline_s=0.3)
    assert time.monotonic() - began < 2
    release.set()


def void(_value: object) -> None:
    """For handlers that return nothing."""


def test_state_round_trips() -> None:
    state = ClusterState(
        "HEALTH_OK", {}, {"active+clean": 1}, (), 0, 0, 0, False, 0, 1, 1, 1, 0.1, 0.85, 0.95
    )
    assert ClusterState.from_json(json.loads(json.dumps(state.as_json()))) == state
