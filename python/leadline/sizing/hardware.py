"""A catalogue of hosts with source and date, what their pools hold, and what their links carry.

Links carry an upper bound: clients' bytes, what OSDs send each other (docs/models.md, `aggregate`) and what a
rebuild moves, evenly over hosts. Pools have devices of a class of their own, and their bytes on links do not
count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from leadline.analysis.models.simple import Protection, network_bytes
from leadline.sizing.request import AskedSizing, Flow, Pool, Size, Switched, protection_of, quantity
from leadline.yamlio.fields import Whole
from leadline.yamlio.problems import Vocabulary, translate
from leadline.yamlio.yaml_source import DocumentKind, Path, read_yaml


@dataclass(frozen=True)
class PoolHeld:
    """One pool: what it has to hold in the last year, what its devices hold; None where a host has none."""

    name: str
    device_class: str
    protection: str
    asked_bytes: float
    usable_bytes: float | None

    @property
    def lacks(self) -> str:
        """What is in the way; "" where it holds all."""
        if self.usable_bytes is None:
            return f"devices of class {self.device_class}"
        return "" if self.usable_bytes >= self.asked_bytes else f"pool {self.name}"


def pools_held(asked: AskedSizing, one: HardwareHost, hosts: int) -> Iterator[PoolHeld]:
    """Each pool by itself. Several on one class share its devices in parts of what each stores."""
    raw = {name: _raw_bytes(asked, pool) for name, pool in asked.pools.items()}
    for name, pool in asked.pools.items():
        devices = one.classes.get(pool.device_class)
        usable = None
        if devices is not None:
            beside = sum(
                raw[other] for other, two in asked.pools.items() if two.device_class == pool.device_class
            )
            left = (hosts - asked.hosts_lost) * devices.bytes_held * asked.filled
            usable = left * raw[name] / beside / protection_of(pool.protection).amplification
        wanted = pool.bytes_in(asked.growth, asked.years)
        yield PoolHeld(name, pool.device_class, pool.protection, wanted, usable)


def fewest_hosts(asked: AskedSizing, text: str) -> int:
    """One for each shard of the pool with most, and those that may be lost."""
    texts = (text, *(pool.protection for pool in asked.pools.values()))
    return max(protection_of(one).shards for one in texts) + asked.hosts_lost


def rebuilt_of_pools(asked: AskedSizing, one: HardwareHost) -> float:
    """What hosts send each other to make one host's devices of all classes anew that pools use."""
    found = 0.0
    for device_class in {pool.device_class for pool in asked.pools.values()} & one.classes.keys():
        own = [pool for pool in asked.pools.values() if pool.device_class == device_class]
        whole = sum(_raw_bytes(asked, pool) for pool in own)
        sent = sum(_raw_bytes(asked, pool) / whole * (protection_of(pool.protection).k or 1) for pool in own)
        found += one.classes[device_class].bytes_held * asked.filled * sent
    return found


def _raw_bytes(asked: AskedSizing, pool: Pool) -> float:
    return pool.bytes_in(asked.growth, asked.years) * protection_of(pool.protection).amplification


GOODPUT = 0.949  # of a link with frames of 1500 bytes: 1448 of 1526 bytes on the wire are data
NO_LINK = "nothing: no rate is asked"


def switches_for(per: int, hosts: int) -> int:
    """As few as hold so many hosts, `per` on each at most."""
    return -(-hosts // per)


def hosts_below(per: int, hosts: int) -> int:
    """On the switch with most of them, where they are spread over the switches as evenly as can be."""
    return -(-hosts // switches_for(per, hosts))


@dataclass(frozen=True)
class ClientFlow:
    """What clients of one population, or of all, read and write together, in bytes a second."""

    read: float
    written: float


@dataclass(frozen=True)
class FullestLink:
    """One direction of the fullest link of its kind: its bytes a second, and what of each byte passes it.

    `of_read` and `of_written` are of a byte that a client reads or writes, `of_sent` of a byte that one host
    sends to another.
    """

    name: str
    bytes_s: float
    of_read: float
    of_written: float
    of_sent: float

    def load(self, flow: ClientFlow) -> float:
        """Bytes a second through it."""
        return flow.read * self.of_read + flow.written * self.of_written


def fullest_links(
    one: HardwareHost,
    protection: Protection,
    hosts: int,
    network: Switched | None,
    weight: float = 1.0,
) -> tuple[FullestLink, ...]:
    """Of hosts, and of the switch with most hosts, in and out; none where no host is left.

    `weight` is how much more than an equal part the fullest host has: another lacks a device.
    """
    if hosts < 1:
        return ()
    _, between_written = network_bytes(1.0, protection)
    between_read = 0.0 if protection.k is None else (protection.k - 1) / protection.k
    own, own_bytes_s = weight / hosts, one.link_bytes_s * GOODPUT
    place = "links of the hosts"
    found = [
        FullestLink(f"{place}, in", own_bytes_s, between_read * own, (1 + between_written) * own, own),
        FullestLink(f"{place}, out", own_bytes_s, (1 + between_read) * own, between_written * own, own),
    ]
    if network is not None:
        below = hosts_below(network.hosts_per_switch, hosts)
        share = min(1.0, below * own)
        # Of what a host sends to others, so much leaves its switch.
        leaves = (hosts - below) / max(1, hosts - 1)
        read, written = between_read * leaves, between_written * leaves
        place, wide = "links of the switches, uplinks", network.uplink_bytes_s * GOODPUT
        found += [
            FullestLink(f"{place}, in", wide, read * share, (1 + written) * share, leaves * share),
            FullestLink(f"{place}, out", wide, (1 + read) * share, written * share, leaves * share),
        ]
    return tuple(found)


def times_carried(
    links: Sequence[FullestLink], flow: ClientFlow, others: ClientFlow, sent: float = 0.0
) -> tuple[float, str]:
    """How many times a flow is carried where others and a rebuild stay as they are, and what is full first.

    1 is just enough, 0 none of it, and infinity where nothing is asked.
    """
    if not flow.read and not flow.written:
        return math.inf, NO_LINK
    found = [
        (max(0.0, link.bytes_s - link.load(others) - sent * link.of_sent) / link.load(flow), link.name)
        for link in links
        if link.load(flow)
    ]
    return min(found, default=(0.0, "no host is left"))


def seconds_to_send(links: Sequence[FullestLink], flow: ClientFlow, sent_bytes: float) -> float:
    """How long bytes take between hosts beside what clients do; infinity where no room is left for them."""
    rates = [(link.bytes_s - link.load(flow)) / link.of_sent for link in links if link.of_sent]
    rate = min(rates, default=0.0)
    return sent_bytes / rate if rate > 0 else math.inf


MANUAL = "see docs/sizing.md"
BUILT_IN = "the built-in example"


class ClassDevices(BaseModel):
    """Devices of another class in the same host: bays of their own, all filled."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    bays: Annotated[int, Whole(1, 200)]
    device: Size

    @property
    def bytes_held(self) -> float:
        """Of all of them, raw."""
        return self.bays * quantity(self.device, "B", "")


class HardwareHost(BaseModel):
    """A kind of host with all of its bays filled. What is None is not known, and is never taken as 0.

    `classes` are devices beside those of `bays`, by the names that pools ask for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    source: str = Field(min_length=1, max_length=400)
    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    bays: Annotated[int, Whole(1, 200)]
    device: Size
    link: Flow
    classes: dict[str, ClassDevices] = Field(default_factory=dict, max_length=10)
    price: Annotated[float, Field(gt=0)] | None = None
    power_w: Annotated[float, Field(gt=0)] | None = None
    rack_units: Annotated[float, Field(gt=0)] | None = None

    @property
    def bytes_held(self) -> float:
        """Of all devices, raw."""
        return self.bays * quantity(self.device, "B", "")

    @property
    def link_bytes_s(self) -> float:
        """In each direction."""
        return quantity(self.link, "B/s", "")


class Catalogue(BaseModel):
    """A whole file."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Literal["leadline.hardware/1"]
    currency: str = Field(max_length=10)
    hosts: dict[str, HardwareHost] = Field(min_length=1, max_length=100)


def read_catalogue(text: str, source: str, environment: Mapping[str, str]) -> Catalogue:
    """Raises SpecError with file, line and key."""
    kind = DocumentKind("catalogue of hardware", MANUAL, "it begins with format: leadline.hardware/1")
    document = read_yaml(text, source, environment, kind)
    if not isinstance(document.value, dict):
        document.fail((), "a catalogue is a mapping of keys", MANUAL)
    try:
        return Catalogue.model_validate(document.value)
    except ValidationError as error:
        translate(error, document, Vocabulary(_known, MANUAL, {"cost": "price", "disks": "bays"}))


def built_in() -> Catalogue:
    """The example that comes along."""
    text = (resources.files("leadline.sizing") / "catalogue.yaml").read_text(encoding="utf-8")
    return read_catalogue(text, BUILT_IN, {})


def _known(path: Path) -> tuple[str, ...]:
    if "classes" in path[2:-1]:
        return tuple(ClassDevices.model_fields)
    return tuple((HardwareHost if len(path) > 2 else Catalogue).model_fields)
