"""The jobs of one slot at the same time: a worker process each, released by one common start.

What observers count belongs to all of them together; the rows say so.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from leadline.plan.model import PlannedCell, Trial
from leadline.run.child import Answer, Worker
from leadline.run.model import Stopping
from leadline.run.site import Appointment
from leadline.store.tables import TrialRow

_LEAD_NS = 100_000_000  # from telling the first to the start: telling all takes far less
_LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class Member:
    """One job of a slot: its trial, its cell, the worker that runs it and what the engine is given.

    `shown`: its progress is what is shown of the slot; several at the same time have no one throughput.
    """

    trial: Trial
    cell: PlannedCell
    worker: Worker
    job: Mapping[str, Any]
    shown: bool


class Halt:
    """A stop request of the user, or the end of a group one of whose jobs has failed."""

    def __init__(self, stopping: Stopping) -> None:
        self._stopping = stopping
        self._failed = threading.Event()

    def __call__(self) -> bool:
        """True once a worker should end."""
        return self._stopping() or self._failed.is_set()

    def fail(self) -> None:
        """End the others."""
        self._failed.set()

    def clear(self) -> None:
        """All have ended: what follows is not to be ended too."""
        self._failed.clear()


class CommonStart:
    """Where the jobs of a slot come once they are open; the last one asks `when` all start."""

    def __init__(self, jobs: int, when: Appointment, off: Callable[[], bool]) -> None:
        self._missing, self._when, self._off = jobs, when, off
        self._changed = threading.Condition()
        self._asked = False
        self._start_ns: int | None = None

    def come(self) -> int | None:
        """When it starts (CLOCK_MONOTONIC, ns); None where it does not."""
        with self._changed:
            self._missing -= 1
            if self._missing == 0:
                self._ask()
            while not self._asked:
                if self._off():
                    return None
                self._changed.wait(_LOOK_EVERY_S)
            return self._start_ns

    def close(self) -> None:
        """All have ended: who keeps the appointment hears also of those that never came."""
        with self._changed:
            if not self._asked:
                self._ask()

    def _ask(self) -> None:
        self._start_ns, self._asked = self._when(), True
        self._changed.notify_all()


def run_together(calls: Sequence[Callable[[], Answer]], halt: Halt) -> list[Answer]:
    """Run the calls at the same time, each waiting for its own worker; the first to fail ends the others."""

    def one(call: Callable[[], Answer]) -> Answer:
        try:
            answer = call()
        except BaseException:
            halt.fail()
            raise
        if answer.outcome != "done" or answer.value.get("state", "complete") != "complete":
            halt.fail()
        return answer

    if len(calls) == 1:
        return [one(calls[0])]
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(one, call) for call in calls]]


def run_jobs(
    members: Sequence[Member],
    call: Callable[[Member, CommonStart | None], Answer],
    halt: Halt,
    forget_s: float,
    appointment: Appointment | None = None,
) -> list[Answer]:
    """One answer for each job. `call` runs it, not before a common start where there is one.

    There is with several jobs, or an `appointment`, which then says when, once all are open. It is ns on the
    clock that all processes of a host share (CLOCK_MONOTONIC). Caches are forgotten before it, at most for
    `forget_s`, so that no job waits for its own.
    """
    if len(members) > 1 or appointment is not None:
        forget = [partial(_forget, member, forget_s) for member in members]
        answers = run_together(forget, halt)
        if any(answer.outcome != "done" for answer in answers):
            unused = Answer("interrupted", message="a job that runs with it could not begin")
            return [unused if answer.outcome == "done" else answer for answer in answers]
        start = CommonStart(len(members), appointment or _soon, halt)
        try:
            return run_together([partial(call, member, start) for member in members], halt)
        finally:
            start.close()
    return run_together([partial(call, member, None) for member in members], halt)


def _soon() -> int:
    return time.monotonic_ns() + _LEAD_NS


def _forget(member: Member, deadline_s: float) -> Answer:
    return member.worker.call("forget_cached", deadline_s, job=member.job)


def join_rows(rows: Sequence[TrialRow]) -> list[TrialRow]:
    """The rows of jobs that ran together, with what is known of the group as a whole.

    Where one of them failed the others had nothing beside them: they are no measurement either.
    """
    if len(rows) == 1:
        return list(rows)
    started = [row.started_unix_ns for row in rows if row.started_unix_ns]
    skew_ns = max(started) - min(started) if len(started) == len(rows) else None
    failed = [row for row in rows if row.state in ("error", "hung")]
    words = f"counted for all {len(rows)} jobs of {rows[0].group} together"
    joined = []
    for row in rows:
        changed = replace(
            row,
            start_skew_ns=skew_ns,
            group_read_bytes=sum(other.total_read_bytes for other in rows),
            group_written_bytes=sum(other.total_write_bytes for other in rows),
            reasons=json.dumps({**json.loads(row.reasons), "group": words}),
        )
        if failed and row not in failed:
            reason = f"{failed[0].cell}, which ran with it, did not end: {failed[0].error}"
            changed = replace(changed, state="error", error=reason)
        joined.append(changed)
    return joined
