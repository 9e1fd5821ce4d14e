"""Starts the gateways of a lab, side by side. One that does not start says why and stops nothing else."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from leadline.errors import LabError
from leadline.lab.cluster import process
from leadline.lab.cluster.process import PORT_MAX, PORT_MIN, choose_port, poll
from leadline.lab.gateways.gateway import Gateway, GatewayPlace, accepts_connections, evict
from leadline.lab.gateways.kinds import KINDS
from leadline.lab.journal import LabJournal
from leadline.lab.record import GatewayRecord

_ATTEMPTS = 3
_START_DEADLINE_S = 60.0
_END_GRACE_S = 3.0
_PORT_TAKEN = ("in use", "cannot bind", "unable to bind", "failed to bind")


def gateway_of(name: str) -> Gateway:
    """The gateway of this name: a kind's, or one more of a kind: `xrootd-2`."""
    kind, dash, number = name.partition("-")
    gateway = KINDS[kind]
    helpers = tuple(f"{helper}{dash}{number}" for helper in gateway.helpers)
    return replace(gateway, name=name, helpers=helpers)


@dataclass(frozen=True)
class Starter:
    """What starting needs. `interrupted` is set where the user has had enough: nothing waits any longer."""

    journal: LabJournal
    say: Callable[[str], None]
    chance: random.Random
    interrupted: threading.Event = field(default_factory=threading.Event)

    def place(self, name: str, port: int) -> GatewayPlace:
        """Where a gateway runs."""
        record = self.journal.record
        host = record.network.host_of(name) if record.network else ""
        return GatewayPlace(
            name,
            replace(record.spec, address=record.address_of(name)),
            record.paths,
            port,
            self.journal.ceph,
            self.journal.tool,
            lambda helper, command: self.journal.start(helper, command, host=host),
            self.free_port,
        )

    def free_port(self) -> int:
        """A port of the lab's address that nothing listens on."""
        record = self.journal.record
        if record.network is not None:  # nothing but the lab listens there
            return self.chance.randint(PORT_MIN, PORT_MAX)
        return choose_port(record.spec.address, self.chance)


def start_all(starter: Starter, names: Sequence[str]) -> None:
    """Starts these gateways and records of each that it runs or why not."""
    if not names:
        return
    pool = ThreadPoolExecutor(max_workers=len(names))
    try:
        for found in pool.map(lambda name: _start_or_say_why(starter, gateway_of(name)), names):
            enter(starter.journal, found)
            starter.say(_words(found))
    finally:
        starter.interrupted.set()
        pool.shutdown(cancel_futures=True)


def enter(journal: LabJournal, found: GatewayRecord) -> None:
    """Records a gateway in the place of what was recorded of it before."""
    others = tuple(item for item in journal.record.gateways if item.name != found.name)
    journal.update(gateways=(*others, found))


def _words(found: GatewayRecord) -> str:
    words, name = gateway_of(found.name).words, found.name
    if found.reason:
        return f"{words} ({name}) does not run: {found.reason}"
    return "; ".join((f"{words} ({name}) answers on port {found.port}", *found.notes))


def _start_or_say_why(starter: Starter, gateway: Gateway) -> GatewayRecord:
    lacking = gateway.lacking()
    if lacking:
        install = f"apt-get install --no-install-recommends {' '.join(lacking)}"
        return GatewayRecord(gateway.name, reason=f"not installed: {', '.join(lacking)}; as root: {install}")
    try:
        return start(starter, gateway)
    except (LabError, OSError, ValueError, KeyError) as error:
        _end(starter, gateway)
        why = f"{error.message}. {error.remedy}" if isinstance(error, LabError) else repr(error)
        return GatewayRecord(gateway.name, reason=why)


def start(starter: Starter, gateway: Gateway, port: int = 0) -> GatewayRecord:
    """Starts one gateway, on `port` or a free one. Raises LabError where it does not serve in time."""
    starter.journal.require_own_sockets()
    _make_user(starter, gateway)
    for _ in range(_ATTEMPTS):
        place = starter.place(gateway.name, port or starter.free_port())
        launch = gateway.prepare(place)
        _forget_ended(starter, gateway)
        identity = starter.journal.start(gateway.name, launch.command, launch.variables)
        if _serves(starter, gateway, place, identity):
            gateway.finish(place)
            return GatewayRecord(gateway.name, place.port, "", launch.notes, launch.mount_port)
        words = _last_words(starter, gateway.name)
        running = process.is_running(identity)
        _end(starter, gateway)
        if running or not any(part in words.lower() for part in _PORT_TAKEN):
            what = f"does not serve within {_START_DEADLINE_S:.0f} s" if running else "has ended"
            raise LabError(f"it {what}: {words}", f"See {place.paths.log(gateway.name)}.")
    raise LabError("no port stayed free for it", "See `ss -ltn` for what holds them.")


def restart(starter: Starter, name: str) -> None:
    """Ends a gateway where it runs, and starts it on the port that it had. Raises LabError where it fails.

    What a dead one held of the file system is taken from it first: others would wait minutes for it.
    """
    gateway = gateway_of(name)
    before = [item for item in starter.journal.record.gateways if item.name == name]
    _end(starter, gateway)
    evict(starter.journal.ceph, name)
    enter(starter.journal, start(starter, gateway, before[0].port if before else 0))


def _serves(
    starter: Starter, gateway: Gateway, place: GatewayPlace, identity: process.ProcessIdentity
) -> bool:
    def settled() -> bool:
        if starter.interrupted.is_set() or not process.is_running(identity):
            return True
        return accepts_connections(place.spec.address, place.port) and gateway.serves(place)

    reached = poll(settled, _START_DEADLINE_S)
    return reached and process.is_running(identity) and not starter.interrupted.is_set()


def _make_user(starter: Starter, gateway: Gateway) -> None:
    place = starter.place(gateway.name, 0)
    place.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.keyring.touch(mode=0o600)
    capabilities = [word for pair in gateway.capabilities.items() for word in pair]
    starter.journal.ceph.run(
        "auth", "get-or-create", f"client.{gateway.name}", *capabilities, "-o", str(place.keyring)
    )


def _end(starter: Starter, gateway: Gateway) -> None:
    """Ends what was started of a gateway that does not serve: a dead process would count as a dead lab."""
    names = (gateway.name, *gateway.helpers)
    process.end(
        [item for item in starter.journal.record.processes if item.name in names], grace_s=_END_GRACE_S
    )
    starter.journal.forget(names)


def _forget_ended(starter: Starter, gateway: Gateway) -> None:
    """A helper that could not run is done without, as `prepare` has noted."""
    starter.journal.forget([item.name for item in starter.journal.ended() if item.name in gateway.helpers])


def _last_words(starter: Starter, name: str) -> str:
    lines = process.last_log_lines(starter.journal.record.paths.log(name))
    return " | ".join(lines) or "its log is empty"
