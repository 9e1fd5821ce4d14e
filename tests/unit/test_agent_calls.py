"""Calls of an agent: its greeting, its frames, what it refuses, and its end."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline import _core
from leadline.errors import TargetError
from leadline.hosts.agent.connection import (
    ANSWER_BYTES_MAX,
    PROTOCOL,
    AgentConnection,
    AgentError,
    AgentLostError,
    read_greeting,
)
from leadline.hosts.stdio import HEADER

GREETING = {"leadline": _core.version(), "protocol": PROTOCOL, "directory": "/tmp/d", "machine": "x86_64"}


def greeting(**changes: object) -> bytes:
    return b"leadline-agent/1 " + json.dumps(GREETING | changes).encode() + b"\n"


def test_a_greeting_after_what_a_login_shell_prints() -> None:
    assert read_greeting(io.BytesIO(b"Welcome\n\n" + greeting()))["directory"] == "/tmp/d"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (greeting(leadline="0.0.9"), "the agent is of leadline 0.0.9 (protocol 1), and"),
        (greeting(protocol=2), "(protocol 2), and"),
        (greeting(directory=None), "names no directory"),
        (b"leadline-agent/1 []\n", "greets as none of leadline's"),
    ],
    ids=["version", "protocol", "no directory", "no mapping"],
)
def test_a_greeting_that_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(AgentError) as error:
        read_greeting(io.BytesIO(data))
    assert words in error.value.message


@pytest.mark.parametrize("data", [b"", b"nothing\n", b"y\n" * (1 << 16)], ids=["end", "noise", "much noise"])
def test_no_greeting(data: bytes) -> None:
    with pytest.raises(EOFError):
        read_greeting(io.BytesIO(data))


Answer = Callable[[int, str, list[object]], bytes]


@contextmanager
def served(answer: Answer) -> Iterator[tuple[AgentConnection, threading.Event]]:
    """A connection to a thread that answers each call by these bytes, and ends at `b""`; and its end."""
    theirs, to = (os.fdopen(one, mode) for one, mode in zip(os.pipe(), ("rb", "wb"), strict=True))
    ours, back = (os.fdopen(one, mode) for one, mode in zip(os.pipe(), ("rb", "wb"), strict=True))
    ended = threading.Event()

    def serve() -> None:
        with back, theirs:
            while len(header := theirs.read(HEADER.size)) == HEADER.size:
                number, size = HEADER.unpack(header)
                data = answer(number, *msgpack.unpackb(theirs.read(size)))
                if not data:
                    return
                back.write(data)
                back.flush()

    thread = threading.Thread(target=serve)
    thread.start()
    connection = AgentConnection(to, ours, GREETING, ended.set)
    try:
        yield connection, ended
    finally:
        connection.close()
        thread.join(10)


def framed(number: int, value: object) -> bytes:
    data: bytes = msgpack.packb(value)
    return HEADER.pack(number, len(data)) + data


def test_both_sides_say_their_version() -> None:
    told: list[object] = []

    def answer(number: int, name: str, arguments: list[object]) -> bytes:
        told.append((name, arguments))
        return framed(number, {})

    with served(answer) as (connection, _):
        connection.start()
    assert told == [("hello", [_core.version(), PROTOCOL])]


def test_what_an_agent_refuses_is_an_error_in_its_words() -> None:
    def answer(number: int, name: str, _arguments: list[object]) -> bytes:
        return framed(number, {} if name == "hello" else {"refused": "no such file", "remedy": "look"})

    with served(answer) as (connection, _):
        connection.start()
        with pytest.raises(AgentError, match="no such file") as error:
            connection.call("read_file", "/tmp/d/x", 0, 1)
        assert error.value.remedy == "look"


def test_answers_come_to_who_asked_in_any_order() -> None:
    held: list[bytes] = []

    def answer(number: int, name: str, _arguments: list[object]) -> bytes:
        if name == "slow":
            held.append(framed(number, "slow"))
            return framed(1 << 40, "nobody's")
        return framed(number, name) + b"".join(held)

    with served(answer) as (connection, _):
        connection.start()
        found: list[object] = []
        asking = threading.Thread(target=lambda: found.append(connection.call("slow")))
        asking.start()
        while not held:
            pass
        assert connection.call("quick") == "quick"
        asking.join(10)
        assert found == ["slow"]


@pytest.mark.parametrize(
    "answer",
    [
        lambda *_: b"",
        lambda number, *_: HEADER.pack(number, ANSWER_BYTES_MAX + 1) + b"x",
        lambda *_: b"half a head",
    ],
    ids=["ends", "a frame that is too large", "half a frame"],
)
def test_an_agent_that_ends_or_sends_what_is_no_answer_is_lost(answer: Answer) -> None:
    def first(number: int, name: str, arguments: list[object]) -> bytes:
        return framed(number, {}) if name == "hello" else answer(number, name, arguments)

    with served(first) as (connection, ended):
        connection.start()
        errors: list[Exception] = []

        def ask() -> None:
            try:
                connection.call("clock", within_s=60.0)
            except AgentLostError as error:
                errors.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        if answer(1, "", []) == b"half a head":
            connection.close()
        asking.join(20)
        assert len(errors) == 1
        assert ended.wait(10)
        with pytest.raises(AgentLostError):
            connection.call("clock")


def test_a_call_that_is_not_answered_in_time_is_of_a_target() -> None:
    def answer(number: int, name: str, _arguments: list[object]) -> bytes:
        return framed(number if name == "hello" else 1 << 40, {})

    with served(answer) as (connection, _):
        connection.start()
        with pytest.raises(TargetError, match=r"did not answer 'statfs' within 0\.05 s"):
            connection.call("statfs", "/", within_s=0.05)


@given(data=st.binary(max_size=64))
def test_no_answer_ends_in_anything_but_a_value_or_an_error_in_words(data: bytes) -> None:
    def answer(number: int, name: str, _arguments: list[object]) -> bytes:
        return framed(number, {}) if name == "hello" else HEADER.pack(number, len(data)) + data

    with served(answer) as (connection, _):
        connection.start()
        with suppress(AgentError):
            connection.call("facts")
