"""The transport by Dask's client: calls of workers that a scheduler knows. Nothing else here knows its calls.

No task is handed to Dask: it runs a task again whose worker it believes dead, a finished one too
(dask/distributed#7870), and its scheduler loads pickles for it. Each call goes to one worker, by the
scheduler.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from leadline.errors import UsageError
from leadline.hosts.worker_rpc import serve
from leadline.hosts.workers.calls import POLL_S, WORDS_MAX, CallResult, CrewWorker, scheduler_lost, value_of

if TYPE_CHECKING:
    from distributed import Client

_NOTE_S = 2.0  # the scheduler says soon why a worker is gone
_ENDED = "its Dask worker ended, or lost the scheduler"


class DaskTransport:
    """The workers of one scheduler."""

    process = "Dask worker"
    gone_remedy = "see what its Dask worker printed, and start the worker again"
    unlike_remedy = "start its Dask worker with the Python and the leadline that are here"

    def __init__(self, client: Client, scheduler: str) -> None:
        self._client, self._scheduler = client, scheduler
        self.place = f"the Dask scheduler at {scheduler}"
        self._gone: dict[str, str] = {}

    def on_loss(self, note: Callable[[str, str], None]) -> None:
        """See `Transport`; called in the client's thread."""

        def heard(event: tuple[float, Any]) -> None:
            message = event[1]
            if isinstance(message, dict) and message.get("action") == "remove-worker":
                self._gone.setdefault(str(message.get("worker")), _ENDED)
                note(str(message.get("worker")), _ENDED)

        self._client.subscribe_topic("all", heard)

    def workers(self) -> list[CrewWorker]:
        """See `Transport`."""
        try:
            found = self._client.scheduler_info(n_workers=-1)["workers"]
            return [CrewWorker(str(one["name"]), _checked(address)) for address, one in found.items()]
        except (TimeoutError, OSError) as error:
            raise scheduler_lost(self.place) from error
        except Exception as error:
            if not self.runs():
                raise scheduler_lost(self.place) from error
            raise UsageError(
                f"what answers at {self._scheduler} names its workers as no Dask scheduler does",
                "see what listens there, and give the address of your own scheduler",
            ) from error

    def runs(self) -> bool:
        """See `Transport`."""
        return bool(self._client.status == "running")

    def within(self, doing: Callable[..., Any], *arguments: Any) -> Any:
        """See `Transport`."""
        return self._client.sync(doing, *arguments)

    async def versions(self, address: str, end: float) -> dict[str, Any]:
        """Asked without a call of ours. A connection that Dask gives up earlier is tried again until then.

        Dask's own `get_versions` waits forever for one stopped process.
        """
        message = {"op": "versions", "packages": ["leadline"]}
        while (left_s := end - time.monotonic()) > 0 and address not in self._gone:
            asked = self._client.scheduler.broadcast(msg=message, workers=[address], on_error="ignore")
            with suppress(Exception):
                found: dict[str, Any] = await asyncio.wait_for(asked, left_s)
                if found:
                    return dict(found[address]["packages"])
            await asyncio.sleep(POLL_S)
        return {}

    async def call(self, function: Callable[..., Any], address: str, arguments: Sequence[Any]) -> CallResult:
        """See `Transport`."""
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
        while address not in self._gone and self.runs() and time.monotonic() < until:
            await asyncio.sleep(POLL_S)
        return CallResult(problem=self._gone.get(address, why), lost=True)


def _checked(address: object) -> str:
    if not isinstance(address, str) or not address.startswith(("tcp://", "tls://")):
        raise ValueError(f"{address!r} is no address of a worker")
    return address


def _said(function: Callable[..., Any], response: object) -> CallResult:
    """What Dask's worker sent."""
    if not isinstance(response, dict) or response.get("status") != "OK":
        words = response.get("exception_text") if isinstance(response, dict) else None
        first = (str(words or "").strip().splitlines() or ["no answer of a worker"])[0][:WORDS_MAX]
        return CallResult(problem=f"it could not be called: {first}")
    return value_of(function, response.get("result"))


def _in_a_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:WORDS_MAX]}" if lines else type(error).__name__
