"""The parent's side of a coherence trial: a writer and a reader in a process each, question after question.

The parent alone hears both, so that the writer acts only once the reader has looked and seen what was before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from leadline.run.child import Answer, Worker
from leadline.run.interface import plain_summary
from leadline.run.workspace import Place
from leadline.workloads.coherence.job import LAGS, LOCKS, CoherenceJob

_STEP_S = 60.0
_LEAD_NS = 50_000_000  # from sending commands to the common start of two writers


class _EndedError(Exception):
    """A side does not answer any more, or was interrupted: the trial ends here."""

    def __init__(self, answer: Answer, reader: bool) -> None:
        super().__init__(answer.message)
        self.answer, self.reader = answer, reader


def converse(
    writer: Worker,
    job: CoherenceJob,
    prefix: str,
    places: tuple[Place, Place],
    stopping: Callable[[], bool],
) -> tuple[Answer, bool]:
    """One trial, with a worker of the reader's own; true where the reader's way is not to be used again.

    `places` are the writer's, which `writer` may touch, and the reader's; `prefix` is how files are called.
    """
    with Worker(stopping, {job.kind}) as reader:
        conversation = Conversation(writer, reader, job, prefix)
        answer = conversation.run(places)
    if conversation.reader_gone or reader.stuck:
        return replace(answer, outcome="failed", stuck=False), True  # the writer's way is well
    return answer, False


class Conversation:
    """One trial. `reader_gone` is true once the reader's way hung or its worker died."""

    def __init__(self, writer: Worker, reader: Worker, job: CoherenceJob, prefix: str) -> None:
        self._writer, self._reader, self._job, self._prefix = writer, reader, job, prefix
        self.reader_gone = False

    def run(self, places: tuple[Place, Place]) -> Answer:
        """All questions; the writer's place comes first. What cannot be asked is in the summary."""
        started_unix_ns, begin_ns = time.time_ns(), time.monotonic_ns()
        found: dict[str, Any] = {}
        try:
            for worker, place in zip((self._writer, self._reader), places, strict=True):
                self._must(worker, "coherence_open", _STEP_S, **place._asdict())
            if not self._same_directory():
                return Answer(
                    "failed",
                    message=f"{places[1].words} does not show what was written in {places[0].words}",
                    remedy="name the same directory by both ways",
                )
            for question in self._job.questions:
                found[question] = self._ask(question)
        except _EndedError as ended:
            self.reader_gone = ended.reader and ended.answer.outcome in ("hung", "died")
            return ended.answer
        return Answer("done", value=self._summary(found, started_unix_ns, time.monotonic_ns() - begin_ns))

    def _must(self, worker: Worker, command: str, deadline_s: float, **arguments: Any) -> dict[str, Any]:
        """An answer; raises what ended the trial."""
        answer = worker.call(command, deadline_s, **arguments)
        if answer.outcome != "done":
            raise _EndedError(answer, worker is self._reader)
        return answer.value

    def _try(self, worker: Worker, command: str, deadline_s: float, **arguments: Any) -> Answer:
        """An answer, failed or not; raises where the side is gone or was interrupted."""
        answer = worker.call(command, deadline_s, **arguments)
        if answer.outcome not in ("done", "failed"):
            raise _EndedError(answer, worker is self._reader)
        return answer

    def _release(self) -> None:
        for worker in (self._writer, self._reader):
            self._must(worker, "coherence_release", _STEP_S)

    def _names(self, question: str) -> Iterator[str]:
        """A name for each repetition."""
        return (f"{self._prefix}.{question}-{number}" for number in range(self._job.repetitions))

    @property
    def _looking(self) -> dict[str, Any]:
        job = self._job
        return {"poll_ns": job.poll_ns, "give_up_ns": job.give_up_ns, "file_bytes": job.file_bytes}

    def _give_up_s(self) -> float:
        return self._job.give_up_ns / 1e9

    def _same_directory(self) -> bool:
        """The reader finds a file that the writer made, as long as it may look for anything."""
        name = f"{self._prefix}.same"
        self._must(self._writer, "coherence_prepare", _STEP_S, question="unlink", name=name, **self._looking)
        answer, _ = self._look_and_act("unlink", name)
        self._release()
        return answer.outcome == "failed" or bool(answer.value.get("prepared"))

    def _ask(self, question: str) -> dict[str, Any]:
        asked = self._lags if question in LAGS else self._locks if question in LOCKS else self._shared
        try:
            found = asked(question)
        except _EndedError as ended:
            if ended.reader:  # nobody is there to release it, and the writer's files are removed next
                self._writer.call("coherence_release", _STEP_S)
            raise
        self._release()
        return found

    # -- how soon ------------------------------------------------------------------------------------

    def _lags(self, question: str) -> dict[str, Any]:
        """Repetitions until one is not seen in time: more would say no more."""
        lags: list[int] = []
        resolution: list[int] = []
        for name in self._names(question):
            prepared = self._try(
                self._writer, "coherence_prepare", _STEP_S, question=question, name=name, **self._looking
            )
            if prepared.outcome != "done":
                return {"reason": f"the writer: {prepared.message}"}
            watched, acted = self._look_and_act(question, name)
            self._release()
            for side, answer in (("writer", acted), ("reader", watched)):
                if answer is not None and answer.outcome != "done":
                    return {"reason": f"the {side}: {answer.message}"}
            if not watched.value["prepared"] or acted is None:
                return {"lags_ns": lags, "unseen": 1, "reason": "the reader never saw what was there before"}
            seen_ns, unseen_ns = watched.value["seen_ns"], watched.value["unseen_ns"]
            if seen_ns is None:
                return {"lags_ns": lags, "resolution_ns": resolution, "unseen": 1}
            # Seen before the writer's call returned, or between two looks: no sooner than a look can tell.
            resolution.append(seen_ns - unseen_ns)
            lags.append(max(seen_ns - acted.value["done_ns"], seen_ns - unseen_ns))
        return {"lags_ns": lags, "resolution_ns": resolution, "unseen": 0}

    def _look_and_act(self, question: str, name: str) -> tuple[Answer, Answer | None]:
        """The reader looks in a thread of ours; once it has seen what was before, the writer acts."""
        watching, over = threading.Event(), threading.Event()

        def heard(message: dict[str, Any]) -> None:
            if message.get("event") == "watching":
                watching.set()

        def look() -> Answer:
            try:
                return self._reader.call(
                    "coherence_watch",
                    2 * self._give_up_s() + _STEP_S,
                    heard,
                    question=question,
                    name=name,
                    **self._looking,
                )
            finally:
                over.set()
                watching.set()

        with ThreadPoolExecutor(1) as pool:
            looking = pool.submit(look)
            watching.wait()
            acted = None
            if not over.is_set():
                arguments = {"question": question, "name": name, **self._looking}
                acted = self._writer.call("coherence_act", _STEP_S, **arguments)
            watched = looking.result()
        for answer, reader in ((acted, False), (watched, True)):
            if answer is not None and answer.outcome not in ("done", "failed"):
                raise _EndedError(answer, reader)
        return watched, acted

    # -- locks and shared files ------------------------------------------------------------------------

    def _locks(self, question: str) -> dict[str, Any]:
        """The writer holds a lock: is the reader refused it, and given it once the writer lets go?"""
        honoured = 0
        for name in self._names(question):
            steps = (
                (self._writer, "coherence_create", {"bytes": 1}),
                (self._writer, "coherence_lock", {"question": question}),
            )
            for worker, command, arguments in steps:
                answer = self._try(worker, command, _STEP_S, name=name, **arguments)
                if answer.outcome != "done":
                    return {"reason": f"the writer: {answer.message}"}
            found = self._reader_lock(question, name)
            self._release()
            if found.outcome != "done":
                return {"reason": f"the reader: {found.message}"}
            honoured += not found.value["locked"]
        return {"honoured": honoured, "asked": self._job.repetitions}

    def _reader_lock(self, question: str, name: str) -> Answer:
        """A file that the reader's way does not show yet is asked for again."""
        end = time.monotonic() + self._give_up_s()
        while True:
            answer = self._try(self._reader, "coherence_lock", _STEP_S, question=question, name=name)
            missing = answer.outcome == "failed" and answer.errno == 2
            if not missing or time.monotonic() > end:
                return answer
            time.sleep(self._job.poll_ns / 1e9)

    def _shared(self, question: str) -> dict[str, Any]:
        """Both write every second block of one file at the same time; then both read all of it."""
        job, wrong, rates = self._job, [0, 0], []
        for name in self._names(question):
            made = self._try(self._writer, "coherence_create", _STEP_S, name=name, bytes=1)
            if made.outcome != "done":
                return {"reason": f"the writer: {made.message}"}
            seen = self._wait_for(name)
            if seen is not None:
                return {"reason": seen}
            answers = self._write_together(name)
            for side, answer in zip(("writer", "reader"), answers, strict=True):
                if answer.outcome != "done":
                    return {"reason": f"the {side}: {answer.message}"}
            begin_ns = min(answer.value["begin_ns"] for answer in answers)
            end_ns = max(answer.value["done_ns"] for answer in answers)
            rates.append(2 * job.shared_blocks * job.shared_block_bytes / max(end_ns - begin_ns, 1) * 1e9)
            for place, worker in enumerate((self._writer, self._reader)):
                counted = self._must(
                    worker, "coherence_count", self._give_up_s() + _STEP_S, name=name, **self._blocks
                )
                wrong[place] += counted["wrong"]
            if any(wrong):
                break
        blocks = 2 * job.shared_blocks * len(rates)
        return {"bytes_per_s": rates, "wrong": wrong, "blocks": blocks}

    @property
    def _blocks(self) -> dict[str, Any]:
        job = self._job
        return {"block_bytes": job.shared_block_bytes, "blocks": job.shared_blocks, **self._looking}

    def _wait_for(self, name: str) -> str | None:
        """Until the reader's way shows the file; why not."""
        answer = self._try(
            self._reader, "coherence_appear", self._give_up_s() + _STEP_S, name=name, **self._looking
        )
        if answer.outcome != "done":
            return f"the reader: {answer.message}"
        return None if answer.value["seen"] else "the reader never saw the file"

    def _write_together(self, name: str) -> list[Answer]:
        start_ns = time.monotonic_ns() + _LEAD_NS
        sides = (self._writer, self._reader)

        def write(place: int) -> Answer:
            arguments = {"name": name, "first": place, "start_at_ns": start_ns, **self._blocks}
            return self._try(sides[place], "coherence_blocks", _STEP_S, **arguments)

        with ThreadPoolExecutor(2) as pool:
            return [future.result() for future in [pool.submit(write, place) for place in (0, 1)]]

    @staticmethod
    def _summary(found: dict[str, Any], started_unix_ns: int, elapsed_ns: int) -> dict[str, Any]:
        """In the shape of an engine's summary; no byte of it counts as throughput."""
        return plain_summary(started_unix_ns, elapsed_ns, coherence=found)
