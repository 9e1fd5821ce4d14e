"""The pool of forks: what an item does to its process is done to no other item, and no fork is left."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from leadline.durable import written_whole
from leadline.errors import ResultError
from leadline.pool import ForkAnswer, in_forks

MIB = 1 << 20
BOUND = 64 * MIB


def _until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.005)


def _is_gone(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def _wait_for_ever() -> None:
    select.select([], [], [])


def test_each_item_gets_the_answer_of_another_process() -> None:
    answers = list(in_forks("abc", lambda one: [one, os.getpid()], BOUND, forks=2))
    assert sorted(answer.value[0] for answer in answers) == ["a", "b", "c"]
    assert all("abc"[answer.place] == answer.value[0] and not answer.problem for answer in answers)
    assert os.getpid() not in {answer.value[1] for answer in answers}
    assert list(in_forks([], str, BOUND)) == []


def test_an_item_that_ends_its_process_costs_no_other_item() -> None:
    def work(item: int) -> int:
        if item == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    answers = sorted(in_forks(range(4), work, BOUND, forks=2), key=lambda answer: answer.place)
    lost = ForkAnswer(1, None, "the process that read it ended by SIGKILL")
    assert answers == [ForkAnswer(0, 0), lost, ForkAnswer(2, 2), ForkAnswer(3, 3)]


def test_an_item_that_needs_more_memory_than_a_fork_may_have_is_named() -> None:
    def work(item: int) -> int:
        return len(bytearray(item))

    answers = {answer.place: answer for answer in in_forks([MIB, 4 * BOUND, 2 * MIB], work, BOUND, forks=1)}
    assert (answers[0].value, answers[2].value) == (MIB, 2 * MIB)
    assert "memory" in answers[1].problem


def test_a_process_that_met_a_damaged_item_meets_no_other() -> None:
    seen: list[int] = []

    def work(item: str) -> int:
        seen.append(1)
        if item == "damaged":
            raise ResultError("it is damaged")
        return len(seen)

    answers = list(in_forks(["good", "damaged", "good", "good"], work, BOUND, forks=1))
    assert [answer.value for answer in answers] == [1, None, 1, 2]
    assert answers[1].problem == "it is damaged"


def test_an_answer_that_is_no_json_is_the_items_problem() -> None:
    answers = list(in_forks([float("nan"), 1.0], lambda item: item, BOUND, forks=1))
    assert answers[0].problem
    assert answers[1] == ForkAnswer(1, 1.0)


def test_an_interrupted_pool_ends_its_forks_and_they_remove_what_they_were_writing(tmp_path: Path) -> None:
    def work(item: int) -> int:
        if not item:
            return os.getpid()
        with written_whole(tmp_path / "whole"):
            _wait_for_ever()
        return 0

    with closing(in_forks([0, 1], work, BOUND, forks=1)) as answers:
        pid = next(answers).value
        _until(lambda: any(tmp_path.iterdir()))
    assert _is_gone(pid)
    assert list(tmp_path.iterdir()) == []


def test_what_an_interrupted_fork_held_is_let_go_before_it_ends(tmp_path: Path) -> None:
    """An interrupt can come between a `with` and its block: only the exception holds the writer then."""

    def writer() -> Iterator[None]:
        try:
            yield
        finally:
            (tmp_path / "let go").touch()

    def work(_: int) -> None:
        held = writer()
        next(held)
        raise KeyboardInterrupt

    assert [answer.problem for answer in in_forks([0], work, BOUND)]
    assert (tmp_path / "let go").exists()


def test_forks_end_with_a_command_that_is_killed(tmp_path: Path) -> None:
    def work(item: int) -> None:
        (tmp_path / str(os.getpid())).touch()
        _wait_for_ever()

    command = os.fork()
    if command == 0:
        try:
            list(in_forks(range(2), work, 2 * BOUND, forks=2))
        finally:
            os._exit(0)
    _until(lambda: len(list(tmp_path.iterdir())) == 2)
    os.kill(command, signal.SIGKILL)
    os.waitpid(command, 0)
    _until(lambda: all(_is_gone(int(one.name)) for one in tmp_path.iterdir()))
