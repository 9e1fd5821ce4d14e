"""`leadline model`: what storage should give by simple models, to hold what was measured against.

What it is told are sizes, rates, protections, pairs such as 4k=260082, and a topology with its links.
"""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leadline.cli.console import echo, echo_text
from leadline.cli.options import AskedPath
from leadline.errors import SpecError, UsageError
from leadline.units import parse_bit_rate, parse_duration, parse_rate, parse_size

if TYPE_CHECKING:
    from leadline.analysis.models.law import Station
    from leadline.analysis.models.links import Wired
    from leadline.analysis.models.simple import Computed, ModelSaid, Protection
    from leadline.lab.network.topology import Link, Topology


_SHARDS_MAX = 64
_NUMBER_MAX = 1e15


class _Written(click.ParamType[Any]):
    """A value as a person writes it."""

    def __init__(self, name: str, reader: Callable[[object], Any]) -> None:
        self.name = name
        self._reader = reader

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value. Raises what click says of a bad one."""
        if not isinstance(value, str):
            return value
        try:
            return self._reader(value)
        except SpecError as error:
            self.fail(f"{error.message}; {error.remedy}", param, ctx)


def _some_size(value: object) -> int:
    size = parse_size(value)
    if size == 0:
        raise SpecError("a size of 0 is none", "for example: 4M")
    return size


def _some_time(value: object) -> int:
    duration = parse_duration(value)
    if duration == 0:
        raise SpecError("a time of 0 is none", "for example: 200us")
    return duration


def _protection(value: object) -> Protection:
    from leadline.analysis.models.simple import Protection

    text = str(value).strip()
    coded = re.fullmatch(r"([0-9]{1,2})\+([0-9]{1,2})", text)
    if coded and int(coded[1]) and int(coded[2]) and int(coded[1]) + int(coded[2]) <= _SHARDS_MAX:
        return Protection(k=int(coded[1]), m=int(coded[2]))
    if re.fullmatch(r"[1-9]", text):
        return Protection(copies=int(text))
    raise SpecError(f"{text!r} is no protection", "write copies (3) or data and coding shards (8+3)")


SIZE = _Written("size", _some_size)
RATE = _Written("rate", parse_rate)
BIT_RATE = _Written("rate of a link", parse_bit_rate)
DURATION = _Written("time", _some_time)
PROTECTION = _Written("protection", _protection)


def number_pairs(
    words: Sequence[str], what: str, *, whole: bool = False, numbered: bool = False
) -> list[tuple[str, float]]:
    """`name=number` of each word; names once, numbers above 0. Raises UsageError."""
    found: dict[str, float] = {}
    for word in words:
        name, equals, text = word.partition("=")
        number = _positive_number(text, whole)
        if not equals or not name or number is None or (numbered and _positive_number(name, False) is None):
            raise UsageError(f"{word!r} is not {what}", "numbers above 0, for example 4=943")
        if name in found:
            raise UsageError(f"{name} is given twice", "give each once")
        found[name] = number
    return list(found.items())


def size_pairs(words: Sequence[str], what: str, *, rates: bool = False) -> list[tuple[int, float]]:
    """`size=number` of each word, or with `rates` `size=rate`. Raises UsageError."""
    found = []
    for word in words:
        name, _, text = word.partition("=")
        try:
            value = float(parse_rate(text)) if rates else _positive_number(text, False)
            size = _some_size(name)
        except SpecError as error:
            raise UsageError(f"{what} {word}: {error.message}", error.remedy) from None
        if value is None:
            raise UsageError(f"{what} {word}: no number above 0 after '='", "for example: 4k=260082")
        found.append((size, value))
    return found


def stations(words: Sequence[str]) -> list[Station]:
    """`name=time` or `name=timexservers` of each word. Raises UsageError."""
    from leadline.analysis.models.law import Station

    found = []
    for word in words:
        name, _, text = word.partition("=")
        time_words, times, servers = text.partition("x")
        try:
            if not name or (times and not re.fullmatch(r"[0-9]{1,4}", servers)):
                raise SpecError(
                    f"{word!r} is no station", "for example: mds=120us, journal=1msx8, network=200usx0"
                )
            found.append(Station(name, _some_time(time_words) / 1e9, int(servers) if times else 1))
        except SpecError as error:
            raise UsageError(error.message, error.remedy) from None
    return found


def _positive_number(text: str, whole: bool) -> float | None:
    pattern = r"[0-9]{1,15}" if whole else r"[0-9]{1,15}(\.[0-9]{1,9})?"
    value = float(text) if re.fullmatch(pattern, text) else 0.0
    return value if 0 < value <= _NUMBER_MAX else None


# Of a full frame: Ethernet's header, which tc(8) counts, and IP's and TCP's with time stamps: no user's data.
_FRAME_HEADER, _INNER_HEADERS = 14, 52


def wired_of(file: Path | None, reference: str | None, through: str | None) -> Wired:
    """The links of a topology. Raises UsageError, or SpecError for what is wrong in the file."""
    from leadline.analysis.models.links import Wired
    from leadline.lab.network.topology_file import load_topology, read_topology, reference_text

    if (file is None) == (reference is None):
        raise UsageError("which links are meant?", "give --topology FILE or --reference NAME")
    if file is not None:
        shape = load_topology(file, os.environ, made_here=False).topology
    else:
        shape = read_topology(
            reference_text(reference or ""), f"{reference} (built-in)", {}, made_here=False
        ).topology
    if not shape.clients:
        raise UsageError(
            "the topology has no clients", "add `clients` to it: it is their bytes that are asked for"
        )
    proxies = tuple(host.name for host in shape.hosts if through and through in host.runs)
    if through and not proxies:
        roles = ", ".join(shape.gateways) or "none"
        raise UsageError(f"no host of the topology runs {through!r}", f"it has: {roles}")
    above, rates, behind = cables_of(shape)
    return Wired(
        above,
        rates,
        {host.name: host.osds for host in shape.hosts if host.name not in shape.metadata},
        tuple(client.name for client in shape.clients),
        proxies,
        behind,
    )


def cables_of(shape: Topology) -> tuple[dict[str, str], dict[str, float], dict[str, str]]:
    """What is above each, the bytes per second of each cable, and by which OSDs speak where it is apart."""
    above = {switch.name: switch.above for switch in shape.switches}
    rates: dict[str, float] = {}
    behind: dict[str, str] = {}
    for switch in shape.switches:
        _limit(rates, switch.name, switch.uplink)
    for member in shape.members:
        above[member.name] = member.switch
        _limit(rates, member.name, member.link)
    for host in shape.hosts:
        if host.cluster_switch:
            back = behind[host.name] = f"{host.name} (cluster)"
            above[back] = host.cluster_switch
            _limit(rates, back, host.cluster_link)
    return above, rates, behind


def _limit(rates: dict[str, float], name: str, link: Link) -> None:
    if link.rate_bit_s:
        share = (link.mtu_bytes - _INNER_HEADERS) / (link.mtu_bytes + _FRAME_HEADER)
        rates[name] = link.rate_bit_s / 8 * share


_Command = TypeVar("_Command", bound=Callable[..., Any])
_WIDTH = 100
_MEASURED = "A measured value, shown as % of the limit."


def _common(measured: click.ParamType[Any] | type = float) -> Callable[[_Command], _Command]:
    """`--measured` and `--json`, which every model has."""

    def decorate(command: _Command) -> _Command:
        command = click.option("--json", "as_json", is_flag=True, help="Print JSON of leadline.model/1.")(
            command
        )
        return click.option("--measured", type=measured, metavar="VALUE", help=_MEASURED)(command)

    return decorate


@click.group(short_help="Compute theoretical limits of storage, by published models")
def command() -> None:
    """Compute theoretical limits of storage, by models with their sources and limits of validity.

    Sizes and rates use powers of 1024, as in fio (64M, 300M). Link rates are decimal bits (10Gbit).
    """


@command.command("stream")
@click.option("--buffer", type=SIZE, required=True, help="Size of one request.")
@click.option(
    "--in-flight",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Outstanding requests (queue depth).",
)
@click.option("--link", type=BIT_RATE, required=True, help="Slowest link on the I/O path, such as 10Gbit.")
@click.option("--latency", type=DURATION, help="Latency of a request without its transfer time.")
@click.option(
    "--seen",
    metavar="SIZE=RATE",
    help="Instead of --latency: a measured rate with one outstanding request, such as 2M=62M.",
)
@click.option(
    "--object", "object_bytes", type=SIZE, default="4M", show_default=True, help="Size of an object."
)
@click.option(
    "--hops",
    type=click.IntRange(1),
    multiple=True,
    help="Links that a buffer passes one after another: 2 through a proxy. Twice for a range.",
)
@_common(RATE)
def stream(
    buffer: int,
    in_flight: int,
    link: int,
    latency: int | None,
    seen: str | None,
    object_bytes: int,
    hops: tuple[int, ...],
    measured: int | None,
    as_json: bool,
) -> None:
    """Compute the rate of one stream from latency, buffer, queue depth and parallel objects.

    For example: leadline model stream --buffer 32M --link 10Gbit --seen 2M=62M --hops 1 --hops 2
    """
    from leadline.analysis.models.storage import Stream, by_another, by_latency

    if (latency is None) == (seen is None):
        raise UsageError("the time of a request is to come from --latency or --seen", "give one of the two")
    asked = Stream(buffer, link / 8, in_flight, object_bytes, (min(hops, default=1), max(hops, default=1)))
    if latency is not None:
        said = by_latency(asked, latency / 1e9)
    else:
        (size, rate) = size_pairs([seen or ""], "--seen", rates=True)[0]
        said = by_another(asked, size, rate)
    _show("stream", said, measured, as_json)


@command.command("aggregate")
@click.option(
    "--topology", type=AskedPath(exists=True, dir_okay=False), help="A topology file, as for `lab up`."
)
@click.option("--reference", help="A scaled-down cluster of a document, as for `lab up`.")
@click.option("--protection", type=PROTECTION, default="3", show_default=True, help="Replicas, or K+M.")
@click.option("--reads", is_flag=True, help="Compute reads instead of writes.")
@click.option("--through", metavar="ROLE", help="A gateway that all bytes pass, such as xrootd.")
@click.option("--groups", type=click.IntRange(1), help="Placement groups. Their primaries are random.")
@click.option(
    "--primaries",
    multiple=True,
    metavar="HOST=COUNT",
    help="Placement groups whose primary is on HOST.",
)
@_common(RATE)
def aggregate(
    topology: Path | None,
    reference: str | None,
    protection: Protection,
    reads: bool,
    through: str | None,
    groups: int | None,
    primaries: tuple[str, ...],
    measured: int | None,
    as_json: bool,
) -> None:
    """Compute the aggregate rate of all clients from links, uplinks and replication or erasure coding.

    For example: leadline model aggregate --reference castor --protection 8+3 --groups 8
    """
    from leadline.analysis.models.links import aggregate as computed
    from leadline.cli.explain.model import wired_of

    counts = {name: int(count) for name, count in number_pairs(primaries, "--primaries", whole=True)}
    said = computed(
        wired_of(topology, reference, through),
        protection,
        reads=reads,
        primaries=counts or None,
        groups=groups,
    )
    _show("aggregate", said, measured, as_json)


@command.command("ec")
@click.option("--bs", type=SIZE, required=True, help="Size of a write, aligned to itself.")
@click.option("--protection", type=PROTECTION, required=True, help="Replicas, or K+M.")
@click.option(
    "--stripe-unit",
    type=SIZE,
    default="4k",
    show_default=True,
    help="Stripe unit: the part of a stripe on one shard.",
)
@click.option(
    "--seen",
    multiple=True,
    metavar="SIZE=IOPS",
    help="Measured write IOPS with replication, for two sizes: predicts erasure coding.",
)
@click.option(
    "--copies", type=click.IntRange(1), default=3, show_default=True, help="Replicas of the measured pool."
)
@click.option("--devices", type=click.IntRange(1), help="Devices under both pools.")
@click.option("--read-iops", type=click.FloatRange(1), help="Random read IOPS of one device.")
@_common()
def erasure(
    bs: int,
    protection: Protection,
    stripe_unit: int,
    seen: tuple[str, ...],
    copies: int,
    devices: int | None,
    read_iops: float | None,
    measured: float | None,
    as_json: bool,
) -> None:
    """Compute what erasure coding or replication costs a write: network, stored bytes, device operations.

    For example: leadline model ec --bs 4k --protection 6+3 --seen 4k=260082 --seen 64k=136306 --devices 120
    --read-iops 18000
    """
    from dataclasses import replace

    from leadline.analysis.models.storage import coded_rate, costs

    said = costs(bs, protection, stripe_unit)
    if seen:
        if devices is None or read_iops is None:
            raise UsageError("a prediction needs the devices, too", "add --devices and --read-iops")
        pairs = size_pairs(seen, "--seen")
        rate = coded_rate(bs, protection, pairs, copies, devices, read_iops, stripe_unit)
        said = replace(said, computed=(rate, *said.computed))
    elif measured is not None:
        raise UsageError("nothing here is writes per second", "give --seen twice, --devices and --read-iops")
    _show("ec", said, measured, as_json)


@command.command("sync")
@click.option("--rate", type=RATE, required=True, help="Write rate of all clients, in bytes per second.")
@click.option("--object", "object_bytes", type=SIZE, default="4M", show_default=True, help="Size of a write.")
@click.option("--protection", type=PROTECTION, required=True, help="Replicas, or K+M.")
@click.option("--devices", type=click.IntRange(1), help="Devices that share the commits.")
@click.option("--commit", type=DURATION, help="Flush latency of one OSD (BlueStore's kv_sync_lat).")
@_common()
def sync(
    rate: int,
    object_bytes: int,
    protection: Protection,
    devices: int | None,
    commit: int | None,
    measured: float | None,
    as_json: bool,
) -> None:
    """Compute the commits per second that writes cause, and what devices can do.

    For example: leadline model sync --rate 1G --object 5M --protection 8+3 --devices 540
    """
    from leadline.analysis.models.storage import commits

    said = commits(rate, object_bytes, protection, devices, None if commit is None else commit / 1e9)
    _show("sync", said, measured, as_json)


@command.command("metadata")
@click.argument("places", nargs=-1, required=True, metavar="NAME=TIME[xSERVERS]...")
@click.option(
    "--in-flight",
    type=click.IntRange(1, 100_000),
    required=True,
    help="Outstanding operations of all clients.",
)
@_common()
def metadata(places: tuple[str, ...], in_flight: int, measured: float | None, as_json: bool) -> None:
    """Compute operations per second through a chain of stations, and the one that saturates first.

    TIME is the service time of one operation; SERVERS is the number of servers (1), or 0 for a pure delay.
    For example: leadline model metadata --in-flight 16 network=200usx0 mds=120us journal=1msx8
    """
    from leadline.analysis.models.law import operations

    _show("metadata", operations(stations(places), in_flight), measured, as_json)


@command.command("copies")
@click.argument("times", nargs=-1, required=True, metavar="N=SECONDS...")
@click.option("--cpus", type=click.FloatRange(0.01), required=True, help="CPUs that the copies share.")
@click.option("--copies", type=click.IntRange(1), required=True, help="Number of copies to predict.")
@_common()
def copies(times: tuple[str, ...], cpus: float, copies: int, measured: float | None, as_json: bool) -> None:
    """Predict the run time of N concurrent copies of a program from the times of fewer.

    For example: leadline model copies 1=813 2=847 4=943 --cpus 4 --copies 6
    """
    from leadline.analysis.models.storage import run_time

    seen = {float(name): seconds for name, seconds in number_pairs(times, "N=SECONDS", numbered=True)}
    _show("copies", run_time(seen, cpus, copies), measured, as_json)


@command.command("scaling")
@click.argument("rates", nargs=-1, required=True, metavar="N=RATE...")
@_common()
def scaling(rates: tuple[str, ...], measured: float | None, as_json: bool) -> None:
    """Fit the Universal Scalability Law to rates by the number of clients.

    For example: leadline model scaling 1=955 2=1878 4=3548 8=5531 16=7500
    """
    from leadline.analysis.models.law import scaling as fitted

    if measured is not None:
        raise UsageError("--measured has nothing to be held against here", "give the rate as N=RATE")
    seen = {float(name): rate for name, rate in number_pairs(rates, "N=RATE", numbered=True)}
    _show("scaling", fitted(seen), None, as_json)


def _show(model: str, said: ModelSaid, measured: float | None, as_json: bool) -> None:
    against = None if measured is None else said.computed[0].against(measured)
    if as_json:
        found = {"format": "leadline.model/1", "model": model, **asdict(said)}
        if against is not None:
            found["measured"] = {"value": measured, "of_should_be": list(against)}
        echo_text(json.dumps(found, indent=1))
        return
    for one in said.computed:
        _say(f"{one.what}: {_span(one)}")
        _say(f"  {one.formula}")
    if against is not None and measured is not None:
        words = _range([100 * one for one in against], lambda value: f"{_number(value)} %")
        unit = said.computed[0].unit
        _say(f"measured: {_quantity(measured, unit)}, {words} of the first limit")
    _say(f"By: {said.source}.")
    _say(f"Not where: {said.ends}")


def _say(words: str) -> None:
    """One line, or more where it is a long one: what follows is indented."""
    indent = words[: len(words) - len(words.lstrip())] + "  "
    for line in textwrap.wrap(words, _WIDTH, subsequent_indent=indent, break_long_words=False):
        echo(line)


def _span(one: Computed) -> str:
    return _range([one.low, one.high], lambda value: _quantity(value, one.unit))


def _range(ends: Sequence[float], words: Callable[[float], str]) -> str:
    first, last = (words(end) for end in ends)
    return first if first == last else f"{first} to {last}"


def _number(value: float) -> str:
    from leadline.units import format_number

    return format_number(value)


def _quantity(value: float, unit: str) -> str:
    from leadline.units import format_latency, format_quantity

    if value == float("inf"):
        return "without a limit"
    if unit in ("", "x"):
        return f"{_number(value)}{' times' if unit else ''}"
    return format_latency(value * 1e9) if unit == "s" and value < 1 else format_quantity(value, unit)
