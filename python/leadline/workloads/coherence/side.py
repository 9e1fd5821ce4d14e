"""A worker's side of a coherence trial: does one step as the writer, or looks as the reader until it sees.

The clock is CLOCK_MONOTONIC, which all processes of a host share.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leadline.workloads.coherence.ways import Ability, Way, open_way

Say = Callable[..., None]


def content(size: int, mark: int) -> bytes:
    """Bytes that tell generations of a file apart."""
    line = f"{mark:012d}\n".encode()
    return (line * (size // len(line) + 1))[:size]


@dataclass(frozen=True)
class Question:
    """`prepared`: what the reader must see before the writer acts; `seen`: what it then looks for.

    `needs` is what the writer's way must be able to, so that no reader waits for what is never done.
    """

    prepare: Callable[[Way, str, int], None]
    act: Callable[[Way, str, int], None]
    prepared: Callable[[Way, str, int], bool]
    seen: Callable[[Way, str, int], bool]
    held: bool = False
    needs: Ability | None = None


def _make(way: Way, name: str, size: int) -> None:
    way.create(name, content(size, 1))


def _nothing(_way: Way, _name: str, _size: int) -> None:
    """Nothing has to be there."""


def _there(way: Way, name: str, size: int) -> bool:
    return way.read(name) == content(size, 1)


def _changed(way: Way, name: str, size: int) -> bool:
    return way.read(name) == content(size, 2)


_QUESTIONS: dict[str, Question] = {
    "name": Question(
        _nothing,
        _make,
        lambda way, name, _: way.size(name) is None,
        lambda way, name, _: way.size(name) is not None,
    ),
    "size_written": Question(
        _make,
        lambda way, name, size: way.overwrite(name, content(size, 2), close=False, at=size),
        lambda way, name, size: way.size(name) == size,
        lambda way, name, size: way.size(name) == 2 * size,
        needs="keep_open",
    ),
    "size_closed": Question(
        _make,
        lambda way, name, size: way.overwrite(name, content(size, 2), close=True, at=size),
        lambda way, name, size: way.size(name) == size,
        lambda way, name, size: way.size(name) == 2 * size,
    ),
    "bytes_written": Question(
        _make,
        lambda way, name, size: way.overwrite(name, content(size, 2), close=False),
        _there,
        _changed,
        needs="keep_open",
    ),
    "bytes_closed": Question(
        _make,
        lambda way, name, size: way.overwrite(name, content(size, 2), close=True),
        _there,
        _changed,
    ),
    "bytes_held": Question(
        _make,
        lambda way, name, size: way.overwrite(name, content(size, 2), close=True),
        _there,
        lambda way, _, size: way.read_held() == content(size, 2),
        held=True,
    ),
    "rename": Question(
        _make,
        lambda way, name, _: way.rename(name, f"{name}.new"),
        lambda way, name, size: way.size(name) == size and way.size(f"{name}.new") is None,
        lambda way, name, size: way.size(name) is None and way.size(f"{name}.new") == size,
    ),
    "unlink": Question(
        _make,
        lambda way, name, _: way.unlink(name),
        lambda way, name, size: way.size(name) == size,
        lambda way, name, _: way.size(name) is None,
    ),
    "link": Question(
        _make,
        lambda way, name, _: way.link(name, f"{name}.link"),
        lambda way, name, _: way.links(name) == 1,
        lambda way, name, _: way.links(name) == 2,
        needs="link",
    ),
}


class CoherenceSide:
    """One side, with what it keeps open between two commands."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._way: Way | None = None

    @property
    def commands(self) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
        """By the name under which the parent sends them."""
        return {
            "coherence_open": self._open,
            "coherence_prepare": self._prepare,
            "coherence_act": self._act,
            "coherence_watch": self._watch,
            "coherence_lock": self._lock,
            "coherence_create": self._create,
            "coherence_appear": self._appear,
            "coherence_blocks": self._blocks,
            "coherence_count": self._count,
            "coherence_release": self._release,
        }

    def _to(self) -> Way:
        assert self._way is not None  # noqa: S101 - the parent opens first
        return self._way

    def _open(self, command: dict[str, Any]) -> dict[str, Any]:
        self._way = open_way(command["directory"], command.get("location"))
        return {}

    def _prepare(self, command: dict[str, Any]) -> dict[str, Any]:
        question, way = _QUESTIONS[command["question"]], self._to()
        if question.needs is not None:
            way.require(question.needs)
        question.prepare(way, command["name"], command["file_bytes"])
        return {}

    def _act(self, command: dict[str, Any]) -> dict[str, Any]:
        question, way = _QUESTIONS[command["question"]], self._to()
        begin_ns = time.monotonic_ns()
        question.act(way, command["name"], command["file_bytes"])
        return {"begin_ns": begin_ns, "done_ns": time.monotonic_ns()}

    def _watch(self, command: dict[str, Any]) -> dict[str, Any]:
        """Look until what was prepared is seen, say so, then look until the writer's act is seen."""
        question, way = _QUESTIONS[command["question"]], self._to()
        name, size, pause_s = command["name"], command["file_bytes"], command["poll_ns"] / 1e9
        if self._until(command, pause_s, lambda: question.prepared(way, name, size)) is None:
            return {"prepared": False}
        if question.held:
            way.hold(name)
            way.read_held()
        self._say(event="watching")
        seen = self._until(command, pause_s, lambda: question.seen(way, name, size))
        return {"prepared": True, "seen_ns": seen and seen[1], "unseen_ns": seen and seen[0]}

    @staticmethod
    def _until(command: dict[str, Any], pause_s: float, look: Callable[[], bool]) -> tuple[int, int] | None:
        """When the last look without it began, and when the first with it ended; None within give_up."""
        end_ns = time.monotonic_ns() + command["give_up_ns"]
        unseen_ns = time.monotonic_ns()
        while True:
            begin_ns = time.monotonic_ns()
            if look():
                return unseen_ns, time.monotonic_ns()
            unseen_ns = begin_ns
            if time.monotonic_ns() > end_ns:
                return None
            time.sleep(pause_s)

    def _lock(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"locked": self._to().lock(command["name"], command["question"])}

    def _create(self, command: dict[str, Any]) -> dict[str, Any]:
        self._to().create(command["name"], bytes(command["bytes"]))
        return {}

    def _appear(self, command: dict[str, Any]) -> dict[str, Any]:
        """Look until a file is there."""
        way, name = self._to(), command["name"]
        seen = self._until(command, command["poll_ns"] / 1e9, lambda: way.size(name) is not None)
        return {"seen": seen is not None}

    def _blocks(self, command: dict[str, Any]) -> dict[str, Any]:
        """Every second block of a file, from `first` on, not before a common start."""
        size, count, first = command["block_bytes"], command["blocks"], command["first"]
        blocks = [(place * size, content(size, place)) for place in range(first, 2 * count, 2)]
        time.sleep(max(0, command["start_at_ns"] - time.monotonic_ns()) / 1e9)
        begin_ns = time.monotonic_ns()
        self._to().write_blocks(command["name"], blocks)
        return {"begin_ns": begin_ns, "done_ns": time.monotonic_ns()}

    def _count(self, command: dict[str, Any]) -> dict[str, Any]:
        """How many blocks of a shared file are as written: looks until all are, or gives up."""
        size, count = command["block_bytes"], command["blocks"]
        wrong = 2 * count

        def whole() -> bool:
            nonlocal wrong
            found = self._to().read(command["name"]) or b""
            wrong = sum(
                found[place * size : (place + 1) * size] != content(size, place) for place in range(2 * count)
            )
            return wrong == 0

        seen = self._until(command, command["poll_ns"] / 1e9, whole)
        return {"wrong": wrong, "seen_ns": seen and seen[1]}

    def _release(self, _command: dict[str, Any]) -> dict[str, Any]:
        if self._way is not None:
            self._way.release()
        return {}
