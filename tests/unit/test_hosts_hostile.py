"""What a scheduler or a host may do to the command that asks it: nothing but lie about its own figures."""

from __future__ import annotations

import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostile_dask import (
    USUAL,
    WORKER,
    hostile_scheduler,
    loose,
    pickled,
    serialized,
    typed,
)
from leadline.errors import LeadlineError, UsageError
from leadline.hosts import procedures
from leadline.hosts.directory import places_below, tidy
from leadline.hosts.model import StudyHost
from leadline.hosts.replies import REPLY_BYTES_MAX, ReplyError, pack_reply, read_reply
from leadline.hosts.worker_rpc import remote
from leadline.hosts.workers.checks import look
from leadline.hosts.workers.connect import connected
from leadline.hosts.workers.request import HostsAsked


def asked(address: str, **more: Any) -> HostsAsked:
    return HostsAsked(scheduler=address, answer_s=1.0, wait_s=1.0, plain_tcp=True, **more)


def ask_all(address: str) -> str:
    """Connect and ask as a study does; the error's text, or nothing."""
    try:
        with connected(asked(address), lambda _: None, lambda: False) as crew:
            crew.assign({"alpha": WORKER})
            crew.versions(0.3)
            crew.tell(remote().clock, timeout_s=1.0)
    except LeadlineError as error:
        return error.message
    return ""


def of(op: str, message: Callable[[Path], Any]) -> Callable[[Path], Any]:
    return lambda mark: lambda asked, _: message(mark) if asked == op else USUAL


def in_answers(value: Callable[[Path], Any]) -> Callable[[Path], Any]:
    def made(mark: Path) -> Any:
        def answer(op: str, message: dict[str, Any]) -> Any:
            is_call = op == "broadcast" and message["msg"]["op"] == "run"
            return {WORKER: value(mark)} if is_call else USUAL

        return answer

    return made


def on_the_stream(message: Callable[[Path], Any]) -> Callable[[Path], Any]:
    return of("register-client", lambda mark: [{"op": "stream-start"}, message(mark)])


ATTACKS: dict[str, Callable[[Path], Any]] = {
    "identity": of("identity", pickled),
    "registration": of("register-client", pickled),
    "registration, serialized": of("register-client", lambda mark: [serialized(mark)]),
    "an event": of("subscribe-topic", lambda mark: [{"op": "event", "event": pickled(mark)}]),
    "a warning": of(
        "subscribe-topic",
        lambda mark: [{"op": "event", "topic": "warn", "event": (1, {"message": loose(mark)})}],
    ),
    "an error on the stream": of(
        "subscribe-topic", lambda mark: [{"status": "error", "exception": loose(mark)}]
    ),
    "an answer": in_answers(lambda mark: {"status": "OK", "result": pickled(mark)}),
    "an answer, serialized": in_answers(lambda mark: {"status": "OK", "result": serialized(mark)}),
    "an answer's type": in_answers(lambda mark: {"status": "OK", "result": typed(mark)}),
    "an answer's error": in_answers(lambda mark: {"status": "error", "exception": loose(mark)}),
    "an answer's lost connection": in_answers(loose),
    "an error of the scheduler": of(
        "broadcast",
        lambda mark: {"status": "uncaught-error", "exception": loose(mark), "exception_text": "x"},
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_pickle_of_a_scheduler_or_a_worker_is_loaded(name: str, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with hostile_scheduler(ATTACKS[name](mark)) as address:
        ask_all(address)
    assert not mark.exists()


@pytest.mark.parametrize("message", [pickled, serialized, typed])
def test_no_pickle_is_loaded_before_a_peer_is_known(message: Callable[[Path], Any], tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with hostile_scheduler(lambda *_: USUAL, message(mark)) as address:
        error = ask_all(address)
    assert not mark.exists()
    assert "no Dask scheduler answers" in error


def claims(frames: bytes) -> Callable[..., Any]:
    """What is sent in place of an answer to a call: frames as they are."""

    def answer(op: str, message: dict[str, Any]) -> Any:
        return frames if op == "broadcast" and message["msg"]["op"] == "run" else USUAL

    return answer


def framed(body: bytes) -> bytes:
    prelude = struct.pack("QQ", 1, len(body))
    return struct.pack("Q", len(prelude) + len(body)) + prelude + body


@pytest.mark.parametrize(
    "frames",
    [
        struct.pack("Q", 1 << 60),
        struct.pack("QQQ", 16, 1, 1 << 60),
        struct.pack("QQQ", 16, 1 << 60, 1),
        framed(b"\xdd\xff\xff\xff\xff"),  # a list of four milliards, of which none comes
        framed(b"\x91" * 100_000),  # lists in lists
        framed(b"\xc1"),  # no msgpack
        b"",
    ],
    ids=["bytes", "missing bytes", "frames", "items", "depth", "nonsense", "silence"],
)
def test_a_message_without_bounds_costs_nothing_but_the_host(frames: bytes) -> None:
    with (
        hostile_scheduler(claims(frames)) as address,
        connected(asked(address), lambda _: None, lambda: False) as crew,
    ):
        crew.assign({"alpha": WORKER})
        assert crew.tell(remote().clock, timeout_s=1.0) == {}


def in_call(result: Any) -> Callable[..., Any]:
    def answer(op: str, message: dict[str, Any]) -> Any:
        is_call = op == "broadcast" and message["msg"]["op"] == "run"
        return {WORKER: {"status": "OK", "result": result}} if is_call else USUAL

    return answer


def nested(depth: int) -> Any:
    found: Any = None
    for _ in range(depth):
        found = {"x": found}
    return found


WRONG: dict[str, Any] = {
    "no bytes": 7,
    "text": "x" * 1_000_000,
    "no compressed bytes": b"x",
    "nested text": zlib.compress(b'{"x":' * 100_000),
    "nested": zlib.compress(b"\x81\xa1x" * 100_000 + b"\xc0"),
    "a bomb": zlib.compress(bytes(REPLY_BYTES_MAX + 1), 1),
    "a list without its items": zlib.compress(b"\xdd\xff\xff\xff\xff"),
    "nothing": pack_reply(None),
    "a list": pack_reply([]),
    "missing keys": pack_reply({"leadline": "1"}),
    "wrong types": pack_reply({"leadline": 1, "targets": [], "memory_room": {}, "facts": 3}),
    "no text": pack_reply({"refused": ["x"]}),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_answer_of_no_form_is_an_error_that_names_the_host(name: str) -> None:
    with (
        hostile_scheduler(in_call(WRONG[name])) as address,
        connected(asked(address), lambda _: None, lambda: False) as crew,
    ):
        crew.assign({"alpha": WORKER})
        with pytest.raises(UsageError, match="host alpha: its answer cannot be used: ") as caught:
            look(crew, asked(address), (StudyHost("alpha", WORKER),), {}, remote().probe)
    assert len(caught.value.message) < 500


@pytest.mark.parametrize(
    ("function", "value", "words"),
    [
        ("clock", 1 << 63, "it: "),
        ("clock", True, "it: "),
        ("begin", {"end": {"state": "finished", "files": {"../x": 1}}, "bytes": {}}, "no file of a result"),
        (
            "begin",
            {"end": {"state": "finished", "files": {"a": 1, "a/b": 1}}, "bytes": {}},
            "a directory, too",
        ),
        ("begin", {"end": {"state": "finished", "files": {"a": 1 << 60}}, "bytes": {}}, "GiB of one attempt"),
        ("begin", {"end": {"state": "done"}, "bytes": {}}, "state"),
        ("prepare", {"state": "finished", "reason": "x" * 100_000}, "reason"),
        ("held", {"x": {"/etc/passwd": 1}}, "no file of a result"),
        ("undo", {"removed": [1], "left": {}}, "removed.0"),
        ("check_part", {"output": "text"}, "output"),
        ("fetch", {"t" * 2000: b""}, "at most 1000"),
    ],
)
def test_no_answer_is_used_that_is_not_of_its_functions_form(function: str, value: Any, words: str) -> None:
    with pytest.raises(ReplyError, match=words):
        read_reply(function, pack_reply(value))


def test_what_a_host_answers_comes_as_it_was_said() -> None:
    end = {"state": "finished", "files": {"trials/t0001.parquet": 3, "output/x": 0}, "target": None}
    value = {"end": end, "bytes": {"trials/t0001.parquet": b"abc"}}
    assert read_reply("begin", pack_reply(value)) == value
    assert read_reply("prepare", pack_reply({"prepared": True})) == {"prepared": True}
    assert read_reply("undo", pack_reply({"refused": "no", "remedy": ""})) == {"refused": "no", "remedy": ""}


def test_a_scheduler_whose_workers_are_none_is_an_error_that_names_it() -> None:
    def answer(op: str, _: dict[str, Any]) -> Any:
        return (
            {"type": "Scheduler", "id": "s", "address": "x", "workers": {"x": 7}}
            if op == "identity"
            else USUAL
        )

    with hostile_scheduler(answer) as address:
        assert "names its workers as no Dask scheduler does" in ask_all(address)


_SQUAT = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


def test_a_port_that_another_account_listens_at_is_refused_whatever_was_allowed() -> None:
    words = [
        "setpriv",
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        "/usr/bin/python3",
        "-I",
        "-c",
    ]
    squatter = subprocess.Popen([*words, _SQUAT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert squatter.stdout is not None
        address = f"tcp://127.0.0.1:{int(squatter.stdout.readline())}"
        with (
            pytest.raises(UsageError, match=r"another account \(uid 65534\) listens at tcp://127\.0\.0\.1:"),
            connected(asked(address), lambda _: None, lambda: False),
        ):
            pass
    finally:
        squatter.communicate("")


@pytest.mark.parametrize("host", ["client2", None])
def test_a_removal_that_was_killed_is_finished_by_undo(tmp_path: Path, host: str | None) -> None:
    """Its manifest went first: what is left is no result, and nobody would ever name it."""
    place = tmp_path / "0efa416a" / "client2"
    (place / "trials").mkdir(parents=True)
    (place / "trials" / "t0001.parquet").write_bytes(b"")
    place.parent.chmod(0o700)
    found = procedures.undo("0efa416a", host, str(tmp_path))
    assert found == {"removed": [str(place)], "left": {}, "damage": ""}
    assert list(tmp_path.iterdir()) == []


def test_a_removal_that_was_killed_is_finished_by_the_next_session_of_the_host(tmp_path: Path) -> None:
    place = tmp_path / "0efa416a" / "client2"
    (place / "trials").mkdir(parents=True)
    place.parent.chmod(0o700)
    assert list(places_below(tmp_path)) == [place]
    tidy(place)
    assert list(tmp_path.iterdir()) == []
