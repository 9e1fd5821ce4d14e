"""Telling hosts what to do, and hearing from them, over Dask's client: nothing else here knows its calls.

No task is handed to Dask: it runs a task again whose worker it believes dead, a finished one too
(dask/distributed#7870), and its scheduler loads pickles for it. Each call goes to one worker, by the
scheduler, and is answered by bytes that `answers` reads. A worker that the scheduler has removed counts as
lost from then on, also where it comes back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leadline.errors import StudyError, UsageError
from leadline.hosts.answers import AnswerError, answer_of
from leadline.hosts.worker_rpc import serve

if TYPE_CHECKING:
    from distributed import Client

_POLL_S = 0.1
_WORDS_MAX = 300
_HALT_S = 30.0  # the engine finishes what is in flight; then a host that was told to end has ended
_NOTE_S = 2.0  # the scheduler says soon why a worker is gone
QUICK_S = 10.0  # for a call that a host answers at once, in the middle of a study


class SchedulerLostError(StudyError):
    """The scheduler does not answer any more: nothing is known of any host."""


@dataclass(frozen=True)
class CallResult:
    """What came of a call on one host: its `value`, or in words why there is none.

    `lost`: the host is gone or does not answer, so that nobody knows what it does; otherwise it refused.
    """

    value: Any = None
    problem: str = ""
    remedy: str = ""
    lost: bool = False


@dataclass(frozen=True)
class CrewWorker:
    """A Dask worker as its scheduler has it."""

    name: str
    address: str


@dataclass(frozen=True)
class Order:
    """One call on each of some hosts, with each one's own arguments.

    `ends` is asked often, with what was said so far: once it
    is true, `cancel` is sent to all, and who has not answered soon after is lost.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Sequence[Any]]
    deadline_s: float
    ends: Callable[[Mapping[str, CallResult]], bool] = lambda _: False
    cancel: tuple[Any, ...] = ()


@dataclass
class _Unanswered:
    """The calls of an order that nobody has answered yet, by host."""

    tasks: dict[str, asyncio.Task[CallResult]]
    said: dict[str, CallResult] = field(default_factory=dict)

    def settle(self, host: str, said: CallResult) -> None:
        self.tasks.pop(host).cancel()
        self.said[host] = said


class Crew:
    """The workers that take part, by the names of their hosts."""

    def __init__(self, client: Client, scheduler: str) -> None:
        self._client = client
        self.scheduler = scheduler
        self._addresses: dict[str, str] = {}
        self._gone: dict[str, str] = {}  # address -> why
        self._client.subscribe_topic("all", self._note)

    # -- who is there ---------------------------------------------------------------------------------

    def workers(self) -> list[CrewWorker]:
        """Those that the scheduler knows now, sorted by name."""
        self._require_scheduler()
        try:
            found = self._client.scheduler_info(n_workers=-1)["workers"]
            workers = [CrewWorker(str(one["name"]), _checked(address)) for address, one in found.items()]
        except (TimeoutError, OSError) as error:
            raise self._scheduler_lost() from error
        except Exception as error:
            if not self._runs():
                raise self._scheduler_lost() from error
            raise UsageError(
                f"what answers at {self.scheduler} names its workers as no Dask scheduler does",
                "see what listens there, and give the address of your own scheduler",
            ) from error
        return sorted(workers, key=lambda one: one.name)

    def versions(self, within_s: float) -> dict[str, dict[str, Any]]:
        """Python's and leadline's version of each worker by its address, asked without a call of ours.

        Dask's own `get_versions` waits forever for one stopped process; here such a worker is left out after
        `within_s`. A connection that Dask gives up earlier is tried again until then.
        """
        addresses = [one.address for one in self.workers()]
        found: dict[str, dict[str, Any]] = self._within(
            self._versions, addresses, time.monotonic() + within_s
        )
        return found

    async def _versions(self, addresses: Sequence[str], end: float) -> dict[str, Any]:
        async def of(address: str) -> dict[str, Any]:
            message = {"op": "versions", "packages": ["leadline"]}
            while (left_s := end - time.monotonic()) > 0 and address not in self._gone:
                asked = self._client.scheduler.broadcast(msg=message, workers=[address], on_error="ignore")
                with suppress(Exception):
                    found: dict[str, Any] = await asyncio.wait_for(asked, left_s)
                    if found:
                        return {address: dict(found[address]["packages"])}
                await asyncio.sleep(_POLL_S)
            return {}

        answers = await asyncio.gather(*map(of, addresses))
        return {address: one for answer in answers for address, one in answer.items()}

    def assign(self, addresses: Mapping[str, str]) -> None:
        """From here on hosts are known by these names."""
        self._addresses = dict(addresses)

    def back(self, host: str, address: str) -> None:
        """A host that was lost is there again."""
        self._addresses[host] = address
        self._gone.pop(address, None)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of all hosts."""
        return tuple(self._addresses)

    @property
    def present(self) -> tuple[str, ...]:
        """Those that were not lost."""
        return tuple(name for name, address in self._addresses.items() if address not in self._gone)

    def address(self, host: str) -> str:
        """Where a host's worker is."""
        return self._addresses[host]

    def lose(self, host: str, reason: str) -> None:
        """Nothing more is asked of a host."""
        self._gone.setdefault(self._addresses[host], reason)

    def why_gone(self, host: str) -> str | None:
        """Why a host counts as lost; None where it is there."""
        return self._gone.get(self._addresses[host])

    def is_known(self, host: str) -> bool:
        """Whether the scheduler still has the host's worker: one that does not answer is then only slow."""
        return self.why_gone(host) is None and any(
            one.address == self._addresses[host] for one in self.workers()
        )

    def _note(self, event: tuple[float, Any]) -> None:
        """What the scheduler says of all workers; called in the client's thread."""
        message = event[1]
        if isinstance(message, dict) and message.get("action") == "remove-worker":
            self._gone.setdefault(str(message.get("worker")), "its Dask worker ended, or lost the scheduler")

    def _require_scheduler(self) -> None:
        if not self._runs():
            raise self._scheduler_lost()

    def _runs(self) -> bool:
        return bool(self._client.status == "running")

    def _within(self, doing: Callable[..., Any], *arguments: Any) -> Any:
        """Do it in the client's loop. Raises SchedulerLostError."""
        try:
            return self._client.sync(doing, *arguments)
        except (CancelledError, OSError, RuntimeError) as error:
            if not self._runs():
                raise self._scheduler_lost() from error
            raise

    def _scheduler_lost(self) -> SchedulerLostError:
        return SchedulerLostError(
            f"the Dask scheduler at {self.scheduler} is gone",
            "what is stored is kept; start a scheduler and workers again, then go on with --resume",
        )

    # -- calls that may last --------------------------------------------------------------------------

    def ask(self, order: Order) -> dict[str, CallResult]:
        """Run a function on each host, once; what each said. Raises SchedulerLostError."""
        self._require_scheduler()
        found: dict[str, CallResult] = self._within(self._ask, order)
        return found

    async def _ask(self, order: Order) -> dict[str, CallResult]:
        waiting = _Unanswered({})
        for host, arguments in order.arguments.items():
            why = self.why_gone(host)
            if why is not None:
                waiting.said[host] = CallResult(problem=why, lost=True)
                continue
            call = self._call(order.function, self._addresses[host], arguments)
            waiting.tasks[host] = asyncio.ensure_future(call)
        try:
            await self._collect(order, waiting)
        finally:
            for task in waiting.tasks.values():
                task.cancel()
        return waiting.said

    async def _call(self, function: Callable[..., Any], address: str, arguments: Sequence[Any]) -> CallResult:
        """One call of one worker."""
        from distributed.protocol.pickle import dumps

        from leadline.hosts.workers.messages import UnusableMessageError

        message = {"op": "run", "function": dumps(serve), "args": dumps((function, *arguments)), "wait": True}
        try:
            found = await self._client.scheduler.broadcast(msg=message, workers=[address], on_error="ignore")
        except UnusableMessageError as error:
            return CallResult(problem=f"its answer cannot be used: {error}", lost=True)
        except Exception as error:  # the scheduler says that something failed there, or is gone itself
            found, why = None, f"its Dask worker does not answer: {_in_a_line(error)}"
        else:
            why = "its Dask worker does not answer"
        if isinstance(found, dict) and address in found:
            return _said(function, found[address])
        until = time.monotonic() + _NOTE_S
        while address not in self._gone and self._runs() and time.monotonic() < until:
            await asyncio.sleep(_POLL_S)
        return CallResult(problem=self._gone.get(address, why), lost=True)

    async def _collect(self, order: Order, waiting: _Unanswered) -> None:
        end, halted = time.monotonic() + order.deadline_s, False
        while waiting.tasks:
            await asyncio.wait(waiting.tasks.values(), timeout=_POLL_S, return_when=asyncio.FIRST_COMPLETED)
            self._require_scheduler()
            for host, task in list(waiting.tasks.items()):
                why = self.why_gone(host)
                if task.done():
                    waiting.settle(host, task.result())
                elif why is not None:
                    waiting.settle(host, CallResult(problem=why, lost=True))
                elif time.monotonic() > end:
                    limit_s = _HALT_S if halted else order.deadline_s
                    waiting.settle(
                        host, CallResult(problem=f"it did not answer within {limit_s:.3g} s", lost=True)
                    )
            if not halted and waiting.tasks and order.ends(waiting.said):
                halted, end = True, time.monotonic() + _HALT_S
                if order.cancel:
                    await self._told(order.cancel[0], order.cancel[1:], tuple(waiting.tasks), QUICK_S)

    # -- calls that are over at once ------------------------------------------------------------------

    def tell(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        hosts: Collection[str] | None = None,
        timeout_s: float = QUICK_S,
    ) -> dict[str, CallResult]:
        """Run a quick function in the workers' own threads, also while a task runs there.

        Hosts that do not answer in time are not in what is returned.
        """
        self._require_scheduler()
        present = self.present
        names = tuple(present if hosts is None else (host for host in hosts if host in present))
        if not names:  # a host that is lost for good is asked for again and again
            return {}
        found: dict[str, CallResult] = self._within(self._told, function, arguments, names, timeout_s)
        return found

    async def _told(
        self, function: Callable[..., Any], arguments: Sequence[Any], hosts: Sequence[str], timeout_s: float
    ) -> dict[str, CallResult]:
        calls = {
            host: asyncio.ensure_future(self._call(function, self._addresses[host], arguments))
            for host in hosts
            if self.why_gone(host) is None
        }
        if not calls:
            return {}
        answered, late = await asyncio.wait(calls.values(), timeout=timeout_s)
        for call in late:
            call.cancel()
        said = {host: call.result() for host, call in calls.items() if call in answered}
        return {host: one for host, one in said.items() if not one.lost}

    def rounds(
        self,
        function: Callable[[], int],
        host: str,
        count: int,
        now_ns: Callable[[], int],
        timeout_s: float = QUICK_S,
    ) -> list[tuple[int, int, int]]:
        """Of `count` calls one after another: when each was sent, what it gave, when that was here.

        The first that is not answered within `timeout_s` is the last.
        """
        self._require_scheduler()
        found: list[tuple[int, int, int]] = self._within(
            self._rounds, function, host, count, now_ns, timeout_s
        )
        return found

    async def _rounds(
        self,
        function: Callable[[], int],
        host: str,
        count: int,
        now_ns: Callable[[], int],
        timeout_s: float,
    ) -> list[tuple[int, int, int]]:
        found: list[tuple[int, int, int]] = []
        for _ in range(count):
            begun = now_ns()
            said = (await self._told(function, (), (host,), timeout_s)).get(host)
            if said is None or said.problem:
                break
            found.append((begun, int(said.value), now_ns()))
        return found


def _checked(address: object) -> str:
    if not isinstance(address, str) or not address.startswith(("tcp://", "tls://")):
        raise ValueError(f"{address!r} is no address of a worker")
    return address


def _said(function: Callable[..., Any], response: object) -> CallResult:
    """What Dask's worker sent. What a host cannot do it answers by `refused`."""
    if not isinstance(response, dict) or response.get("status") != "OK":
        words = response.get("exception_text") if isinstance(response, dict) else None
        first = (str(words or "").strip().splitlines() or ["no answer of a worker"])[0][:_WORDS_MAX]
        return CallResult(problem=f"it could not be called: {first}")
    try:
        value = answer_of(function.__name__, response.get("result"))
    except AnswerError as error:
        return CallResult(problem=f"its answer cannot be used: {error}"[:_WORDS_MAX])
    if isinstance(value, dict) and "refused" in value:
        return CallResult(problem=str(value["refused"]), remedy=str(value.get("remedy") or ""))
    return CallResult(value)


def _in_a_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:_WORDS_MAX]}" if lines else type(error).__name__
