"""Calls of the processes on a study's hosts: who is there, what each is told, what each answers.

What is called is a function of `worker_rpc.Remote`. How a call reaches a host is its transport's: `ssh` (the
standard streams of OpenSSH's program) or `dask` (a scheduler that runs already). Each answer is bytes that
`replies` reads. A host whose process is gone counts as lost from then on, also where it comes back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any, Protocol

from leadline.errors import StudyError
from leadline.hosts.replies import ReplyError, read_reply

POLL_S = 0.1
WORDS_MAX = 300
_HALT_S = 30.0  # the engine finishes what is in flight; then a host that was told to end has ended
QUICK_S = 10.0  # for a call that a host answers at once, in the middle of a study


class SchedulerLostError(StudyError):
    """No host can be asked any more, as the scheduler that all are reached by is gone."""


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
    """A process on a host that answers calls. It has another address when it was started again."""

    name: str
    address: str


class Transport(Protocol):
    """How calls reach the processes on hosts. What is `async` runs in the transport's own loop."""

    place: str
    """Where hosts are asked for, in words: a scheduler, or SSH."""
    process: str
    """What answers on a host, in words: `Dask worker`, `SSH connection`."""
    gone_remedy: str
    unlike_remedy: str

    def workers(self) -> list[CrewWorker]:
        """Those that are there now. Raises SchedulerLostError."""

    async def versions(self, address: str, end: float) -> dict[str, Any]:
        """Python's and leadline's version there, {} where it does not answer until `end` (monotonic, s)."""

    async def call(self, function: Callable[..., Any], address: str, arguments: Sequence[Any]) -> CallResult:
        """One call of one process."""

    def runs(self) -> bool:
        """Whether any host can still be asked."""

    def within(self, doing: Callable[..., Any], *arguments: Any) -> Any:
        """Run a coroutine function in the loop; what it returns."""

    def on_loss(self, note: Callable[[str, str], None]) -> None:
        """Have `note` called with an address and the reason, whenever a process is gone."""


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
    """The processes that take part, by the names of their hosts."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._addresses: dict[str, str] = {}
        self._gone: dict[str, str] = {}  # address -> why
        transport.on_loss(self._note)

    # -- who is there ---------------------------------------------------------------------------------

    def workers(self) -> list[CrewWorker]:
        """Those that are there now, sorted by name."""
        self._require_transport()
        return sorted(self.transport.workers(), key=lambda one: one.name)

    def versions(self, within_s: float) -> dict[str, dict[str, Any]]:
        """Python's and leadline's version of each worker by its address; who does not answer is left out."""
        addresses = [one.address for one in self.workers()]
        found: dict[str, dict[str, Any]] = self._within(
            self._versions, addresses, time.monotonic() + within_s
        )
        return found

    async def _versions(self, addresses: Sequence[str], end: float) -> dict[str, Any]:
        answers = await asyncio.gather(*(self.transport.versions(address, end) for address in addresses))
        return {address: one for address, one in zip(addresses, answers, strict=True) if one}

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

    def _note(self, address: str, why: str) -> None:
        """Called in the transport's thread."""
        self._gone.setdefault(address, why)

    def _require_transport(self) -> None:
        if not self.transport.runs():
            raise self._lost()

    def _within(self, doing: Callable[..., Any], *arguments: Any) -> Any:
        """Do it in the transport's loop. Raises SchedulerLostError."""
        try:
            return self.transport.within(doing, *arguments)
        except (CancelledError, OSError, RuntimeError) as error:
            if not self.transport.runs():
                raise self._lost() from error
            raise

    def _lost(self) -> SchedulerLostError:
        return scheduler_lost(self.transport.place)

    # -- calls that may last --------------------------------------------------------------------------

    def ask(self, order: Order) -> dict[str, CallResult]:
        """Run a function on each host, once; what each said. Raises SchedulerLostError."""
        self._require_transport()
        found: dict[str, CallResult] = self._within(self._ask, order)
        return found

    async def _ask(self, order: Order) -> dict[str, CallResult]:
        waiting = _Unanswered({})
        for host, arguments in order.arguments.items():
            why = self.why_gone(host)
            if why is not None:
                waiting.said[host] = CallResult(problem=why, lost=True)
                continue
            call = self.transport.call(order.function, self._addresses[host], arguments)
            waiting.tasks[host] = asyncio.ensure_future(call)
        try:
            await self._collect(order, waiting)
        finally:
            for task in waiting.tasks.values():
                task.cancel()
        return waiting.said

    async def _collect(self, order: Order, waiting: _Unanswered) -> None:
        end, halted = time.monotonic() + order.deadline_s, False
        while waiting.tasks:
            await asyncio.wait(waiting.tasks.values(), timeout=POLL_S, return_when=asyncio.FIRST_COMPLETED)
            self._require_transport()
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
        self._require_transport()
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
            host: asyncio.ensure_future(self.transport.call(function, self._addresses[host], arguments))
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
        self._require_transport()
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


def value_of(function: Callable[..., Any], data: object) -> CallResult:
    """What a process answered to a call. What a host cannot do it answers by `refused`."""
    try:
        value = read_reply(function.__name__, data)
    except ReplyError as error:
        return CallResult(problem=f"its answer cannot be used: {error}"[:WORDS_MAX])
    if isinstance(value, dict) and "refused" in value:
        return CallResult(problem=str(value["refused"]), remedy=str(value.get("remedy") or ""))
    return CallResult(value)


def scheduler_lost(place: str) -> SchedulerLostError:
    """The error for a transport that is gone."""
    return SchedulerLostError(
        f"{place} is gone",
        "what is stored is kept; start it again with its hosts, then go on with --resume",
    )
