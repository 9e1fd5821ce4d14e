"""What passes each link of a lab now: two readings of the kernel's counters at both of its ends.

Where a link is limited, the bytes are those of its queue, which counts against the rate as the wire would:
with the headers of every packet. 100 % is a link that carries all that it may.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from leadline.foreign import parse_json
from leadline.lab.cluster.process import run_tool
from leadline.lab.network.make import entered
from leadline.lab.network.placement import Cable, End, LabNetwork, cables
from leadline.lab.network.topology import Topology
from leadline.lab.paths import LabPaths

PAUSE_S = 0.5
_DEADLINE_S = 10.0
LIMITING = "tbf"
_SIDE_BY_SIDE = 8
_ASK = "tc -s -j qdisc show && echo && ip -s -j link show"  # a line of JSON each


@dataclass(frozen=True)
class EndCounters:
    """One device at `time_s`: bytes and packets that it has sent and dropped, and its limit; 0 is none."""

    time_s: float
    sent_bytes: int
    dropped: int
    limit_bit_s: int
    is_up: bool


@dataclass(frozen=True)
class LinkFlow:
    """One direction of a link: its rate over a moment, the limit in force (0 is none), packets lost."""

    rate_bit_s: float
    limit_bit_s: int
    dropped: int

    @property
    def share(self) -> float | None:
        """The part of the limit that is used; None where there is none."""
        return self.rate_bit_s / self.limit_bit_s if self.limit_bit_s else None


@dataclass(frozen=True)
class LinkRates:
    """One link: what the host, client or lower switch `name` sends into `switch`, and receives from it."""

    name: str
    switch: str
    sends: LinkFlow
    receives: LinkFlow
    is_up: bool


@dataclass(frozen=True)
class NetworkStatus:
    """A lab's network now. `links` has the machine's own link too, which is called `console`."""

    topology: Topology
    base: str
    placement: dict[str, str]
    addresses: dict[str, str]
    links: tuple[LinkRates, ...]

    def link(self, name: str) -> LinkRates | None:
        """The link of a host, client or lower switch; a host's on the cluster network is called NAME-back."""
        return next((item for item in self.links if item.name == name), None)


def measure(
    network: LabNetwork,
    paths: LabPaths,
    variables: Mapping[str, str],
    pause: Callable[[float], None] = time.sleep,
) -> NetworkStatus:
    """What passes each link, over half a second. Raises LabError where a namespace cannot be asked."""
    found = list(cables(network.topology, network.console))
    before = _read(found, paths, variables)
    pause(PAUSE_S)
    after = _read(found, paths, variables)
    names = [member.name for member in network.topology.members]
    return NetworkStatus(
        topology=network.topology,
        base=network.base,
        placement=network.placement,
        addresses={name: network.address(name) for name in names},
        links=tuple(_rates(cable, before, after) for cable in found),
    )


def _rates(cable: Cable, before: dict[End, EndCounters], after: dict[End, EndCounters]) -> LinkRates:
    sends, receives = (flow(before[end], after[end]) for end in cable.ends)
    is_up = all(after[end].is_up for end in cable.ends)
    return LinkRates(cable.name, cable.switch, sends, receives, is_up)


def flow(before: EndCounters, after: EndCounters) -> LinkFlow:
    """What one end sent between two readings. A queue that was made anew meanwhile has begun at nothing."""
    sent = after.sent_bytes - before.sent_bytes
    dropped = after.dropped - before.dropped
    seconds = after.time_s - before.time_s
    return LinkFlow(max(0, sent) * 8 / seconds, after.limit_bit_s, max(0, dropped))


def _read(found: list[Cable], paths: LabPaths, variables: Mapping[str, str]) -> dict[End, EndCounters]:
    """Every end, at nearly one time: the namespaces are asked side by side."""
    ends = [end for cable in found for end in cable.ends]
    namespaces = list(dict.fromkeys(end.namespace for end in ends))

    def ask(namespace: str) -> dict[str, EndCounters]:
        command = [*entered(paths, namespace), "sh", "-c", _ASK]
        text = run_tool(command, variables, deadline_s=_DEADLINE_S)
        queues, devices = (parse_json(line) for line in text.splitlines() if line)
        return parse(queues, devices, time.monotonic())

    with ThreadPoolExecutor(max_workers=_SIDE_BY_SIDE) as pool:
        counters = dict(zip(namespaces, pool.map(ask, namespaces), strict=True))
    # A device that was taken away sends nothing.
    gone = EndCounters(time.monotonic(), 0, 0, 0, is_up=False)
    return {end: counters[end.namespace].get(end.device, gone) for end in ends}


def parse(
    queues: list[dict[str, Any]], devices: list[dict[str, Any]], time_s: float
) -> dict[str, EndCounters]:
    """The counters of a namespace's devices by their names, of what tc(8) and ip(8) print as JSON."""
    limits = {item["dev"]: item for item in queues if item.get("root") and item["kind"] == LIMITING}
    found = {}
    for device in devices:
        name, sent = device["ifname"], device["stats64"]["tx"]
        queue = limits.get(name, {})
        found[name] = EndCounters(
            time_s,
            queue.get("bytes", sent["bytes"]),
            queue.get("drops", sent["dropped"]),
            8 * queue.get("options", {}).get("rate", 0),  # tc counts it in bytes
            "UP" in device["flags"],
        )
    return found
