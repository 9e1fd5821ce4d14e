"""Calls of an agent, over the streams of the program that reaches it: frames as those of `hosts/stdio.py`.

Any thread may call. A call that is not answered in time raises TargetError: it is some path there that hangs.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any

from leadline import _core
from leadline.errors import LeadlineError, TargetError
from leadline.foreign import parse_json
from leadline.hosts.stdio import HEADER

GREETING = b"leadline-agent/1 "
PROTOCOL = 1
ANSWER_BYTES_MAX = 16 << 20
_NOISE_BYTES_MAX = 1 << 16
_LINE_BYTES_MAX = 1 << 16
_ITEMS_MAX = 1 << 16
CALL_S = 30.0


class AgentLostError(LeadlineError):
    """The agent has ended, or its connection."""


class AgentError(LeadlineError):
    """What an agent refuses, in its words."""


def read_greeting(answers: IO[bytes]) -> dict[str, Any]:
    """What an agent says of itself. Raises AgentError for another version, EOFError where it ended."""
    noise = 0
    while line := answers.readline(_LINE_BYTES_MAX):
        if line.startswith(GREETING):
            found = parse_json(line[len(GREETING) :])
            if not isinstance(found, dict):
                raise AgentError("the agent greets as none of leadline's", "name another file")
            own = {"leadline": _core.version(), "protocol": PROTOCOL}
            if any(found.get(name) != value for name, value in own.items()):
                raise AgentError(
                    f"the agent is of leadline {found.get('leadline')} (protocol {found.get('protocol')}),"
                    f" and {own['leadline']} ({PROTOCOL}) runs here",
                    "use the agent of this installation",
                )
            if not isinstance(found.get("directory"), str):
                raise AgentError("the agent names no directory of its own", "use that of this installation")
            return found
        noise += len(line)
        if noise > _NOISE_BYTES_MAX:
            break
    raise EOFError


class AgentConnection:
    """An agent that has greeted. `ended` is called once it answers no more, before anybody hears so."""

    def __init__(
        self,
        to: IO[bytes],
        answers: IO[bytes],
        greeting: Mapping[str, Any],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self.greeting = greeting
        self._to, self._answers, self._ended = to, answers, ended
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()  # of what is written
        self._waiting: dict[int, queue.SimpleQueue[bytes | None]] = {}
        self._over = self._told = False
        self._telling = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="leadline-agent", daemon=True)

    def start(self) -> None:
        """Begin to hear; introduce this side. Raises AgentError where the agent refuses this version."""
        self._reader.start()
        self.call("hello", _core.version(), PROTOCOL)

    @property
    def over(self) -> bool:
        """Whether it answers no more."""
        return self._over

    def call(self, name: str, *arguments: Any, within_s: float = CALL_S) -> Any:
        """What it answers. Raises AgentError, AgentLostError, and TargetError after `within_s`."""
        import msgpack  # type: ignore[import-untyped]

        number, answers = next(self._numbers), queue.SimpleQueue[bytes | None]()
        data = msgpack.packb([name, list(arguments)], unicode_errors="surrogateescape")
        self._waiting[number] = answers
        try:
            with self._lock:
                if self._over:
                    raise self._lost()
                self._to.write(HEADER.pack(number, len(data)) + data)
                self._to.flush()
            found = answers.get(timeout=within_s)
        except queue.Empty:
            raise TargetError(
                f"the agent did not answer {name!r} within {within_s:g} s", "look at the targets of that host"
            ) from None
        except (OSError, ValueError):
            raise self._lost() from None
        finally:
            self._waiting.pop(number, None)
        if found is None:
            raise self._lost()
        return _value(name, found)

    def _read(self) -> None:
        with suppress(OSError, ValueError):
            while len(header := self._answers.read(HEADER.size)) == HEADER.size:
                number, size = HEADER.unpack(header)
                if size > ANSWER_BYTES_MAX:
                    break
                data = self._answers.read(size)
                if len(data) < size:
                    break
                answers = self._waiting.get(number)
                if answers is not None:
                    answers.put(data)
        with self._lock:
            self._over = True
        self._lost()
        for waiting in list(self._waiting.values()):
            waiting.put(None)

    def _lost(self) -> AgentLostError:
        """Nobody hears of it before `ended` was called, which may end this process."""
        with self._telling:
            if not self._told:
                self._told = True
                self._ended()
        return AgentLostError("the agent on this host has ended", "see that `ssh HOST` works, then go on")

    def close(self) -> None:
        """Have it end: its input ends."""
        with suppress(OSError, ValueError):
            self._to.close()


def _value(name: str, data: bytes) -> Any:
    import msgpack

    try:
        found = msgpack.unpackb(
            data,
            unicode_errors="surrogateescape",
            strict_map_key=False,
            max_array_len=_ITEMS_MAX,
            max_map_len=_ITEMS_MAX,
            max_ext_len=0,
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise AgentError(
            f"the agent's answer to {name!r} cannot be read: {type(error).__name__}",
            "use that of this version",
        ) from None
    if isinstance(found, dict) and "refused" in found:
        raise AgentError(str(found["refused"])[:2000], str(found.get("remedy") or "")[:2000])
    return found
