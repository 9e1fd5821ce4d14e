"""After a parent was lost: what the hosts finished is taken in, what they hold beside that is forgotten."""

from __future__ import annotations

from collections.abc import Mapping

from leadline.errors import ResultError
from leadline.hosts.crew.calls import Order
from leadline.hosts.crew.crewed import Crewed
from leadline.hosts.crew.taking import Taking
from leadline.hosts.crew.trying import Tried
from leadline.hosts.model import AttemptEnd
from leadline.run.model import Display, RunRequest
from leadline.store.writer import ResultWriter

_HELD_S = 60.0


def take_in(
    crewed: Crewed, taking: Taking, writer: ResultWriter, request: RunRequest, display: Display
) -> None:
    """Store the trials that every host of an attempt has whole and the result lacks; then have all forgotten.

    Hosts that cannot be asked keep what they have.
    """
    crew, remote = crewed.crew, crewed.remote
    arguments = {host: (request.id, host) for host in crew.present}
    said = crew.ask(Order(remote.held, arguments, _HELD_S))
    held = {host: one.value for host, one in said.items() if not one.problem}
    cells = {cell.id: cell for cell in request.plan.cells}
    slots = {tuple(trial.id for trial in slot): slot for slot in request.plan.slots()}
    known = set()
    for event in writer.events():
        if event.event != "attempt_begun":
            continue
        attempt, hosts = str(event.details["attempt"]), tuple(map(str, event.details["hosts"]))
        known.add(attempt)
        tried = _tried(attempt, hosts, held)
        slot = slots.get(tuple(event.details["trials"]), ())
        lacking = slot and not writer.finished() & {trial.id for trial in slot}
        if tried is not None and lacking:
            taking.fetch(tried)
            stored = [] if tried.lost else taking.joined(tried, slot, [cells[one.cell] for one in slot])
            if len(stored) == len(slot):
                writer.write_trials(stored)
                names = ", ".join(trial.id for trial in slot)
                display.say(f"{names}: finished on the hosts before, taken in now")
        here = tuple(host for host in hosts if attempt in held.get(host, {}))
        taking.done(Tried(attempt, here))
    for attempt in {one for files in held.values() for one in files} - known:
        raise ResultError(
            f"hosts hold attempt {attempt}, which the journal of {writer.path} does not know",
            "go on with the copy of the result that knows it",
        )
    taking.forget()


def _tried(
    attempt: str, hosts: tuple[str, ...], held: Mapping[str, Mapping[str, Mapping[str, int]]]
) -> Tried | None:
    """The attempt as if it had just ended; None where some host does not have all of it."""
    if any(not held.get(host, {}).get(attempt) for host in hosts):
        return None
    ends = {host: AttemptEnd(host, attempt, "finished", files=dict(held[host][attempt])) for host in hosts}
    return Tried(attempt, hosts, ends)
