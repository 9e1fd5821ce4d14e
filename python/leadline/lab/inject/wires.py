"""What faults do to a lab's cables, and how it is undone.

Only ends in the lab's own namespaces are touched. What a cable was made with is in the topology, so that
undoing needs no memory. Where a namespace is gone, all that was done to it is undone.

Which packets a faulty link drops, as programs of classic BPF for `tc filter … bpf … direct-action`.

The kernel's classifier draws random numbers and reads headers: no module made for faults is needed. Pure.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from leadline.errors import LabError
from leadline.foreign import parse_json
from leadline.lab import mounts
from leadline.lab.cluster.process import ProcessIdentity, find_marked, run_tool
from leadline.lab.journal import LabJournal
from leadline.lab.network.links import LIMITING
from leadline.lab.network.make import entered
from leadline.lab.network.placement import Cable, End, cables, shaping
from leadline.lab.record import LabRecord
from leadline.wires import read_wires, write_wires

# linux/bpf_common.h: load a word, a half word or the length; compare and jump; return.
_LOAD_WORD, _LOAD_HALF, _LOAD_LENGTH, _JUMP, _RETURN = 0x20, 0x28, 0x80, 0x05, 0x06
_JUMP_EQUAL, _JUMP_GREATER, _JUMP_AT_LEAST = 0x15, 0x25, 0x35
_RANDOM = 0xFFFFF000 + 56  # linux/filter.h: SKF_AD_OFF + SKF_AD_RANDOM
_SHOT, _UNSPECIFIED = 2, 0xFFFFFFFF  # linux/pkt_cls.h: drop it; let the next filter say
_ETHERNET_BYTES = 14
_ETHER_TYPE, _IPV4, _ARP = 12, 0x0800, 0x0806
# Where in the frame source and destination are: of IPv4, and of ARP.
_SOURCE, _DESTINATION = (26, 28), (30, 38)


class BpfInstruction(NamedTuple):
    """One instruction: the offsets of jumps count from the next one."""

    code: int
    if_true: int = 0
    if_false: int = 0
    value: int = 0


_DROP, _PASS = BpfInstruction(_RETURN, value=_SHOT), BpfInstruction(_RETURN, value=_UNSPECIFIED)


def drop_share(fraction: float) -> str:
    """Drops this share of the packets at random, each for itself."""
    # Not one more than a register holds: 1 drops all but one of 4 billion.
    bound = min(round(fraction * 2**32), 2**32 - 1)
    at_least = BpfInstruction(_JUMP_AT_LEAST, 1, 0, bound)
    return _bytecode((BpfInstruction(_LOAD_WORD, value=_RANDOM), at_least, _DROP, _PASS))


def larger_than(mtu_bytes: int) -> str:
    """Drops what a port of this MTU would."""
    longer = BpfInstruction(_JUMP_GREATER, 0, 1, mtu_bytes + _ETHERNET_BYTES)
    return _bytecode((BpfInstruction(_LOAD_LENGTH), longer, _DROP, _PASS))


def coming_from(addresses: Iterable[str]) -> str:
    """Drops IPv4 and ARP that one of these addresses sent."""
    return _bytecode(_about(_SOURCE, addresses))


def going_to(addresses: Iterable[str]) -> str:
    """Drops IPv4 and ARP that is for one of these addresses."""
    return _bytecode(_about(_DESTINATION, addresses))


def _about(places: tuple[int, int], addresses: Iterable[str]) -> Iterator[BpfInstruction]:
    in_ipv4, in_arp = places
    yield BpfInstruction(_LOAD_HALF, value=_ETHER_TYPE)
    yield BpfInstruction(_JUMP_EQUAL, 0, 2, _IPV4)
    yield BpfInstruction(_LOAD_WORD, value=in_ipv4)
    yield BpfInstruction(_JUMP, value=3)
    yield BpfInstruction(_JUMP_EQUAL, 1, 0, _ARP)
    yield _PASS
    yield BpfInstruction(_LOAD_WORD, value=in_arp)
    for address in addresses:
        yield BpfInstruction(_JUMP_EQUAL, 0, 1, int(ipaddress.IPv4Address(address)))
        yield _DROP
    yield _PASS


def _bytecode(program: Iterable[BpfInstruction]) -> str:
    """As `tc` reads it (tc-bpf(8), `bytecode`)."""
    lines = [" ".join(map(str, instruction)) for instruction in program]
    return ",".join([str(len(lines)), *lines])


TO, FROM = "to", "from"  # towards the member or lower switch, and away from it
DIRECTIONS = (TO, FROM)
_DEADLINE_S = 20.0
_SEGMENTS_MAX = 65_535  # the kernel's GSO_MAX_SEGS, which every new device has
_NETEM_PACKETS = 100_000  # what may be on its way: a second of 1 Gbit/s
# In which order the filters of one device are asked; each kind has one of its own.
_PLACES = {"share": 10, "larger": 11, "parted": 12}


def links(record: LabRecord) -> list[Cable]:
    """The cables of a lab that has hosts: all but the one to the machine itself."""
    if record.network is None:
        return []
    found = cables(record.network.topology, record.network.console)
    return [cable for cable in found if all(end.namespace for end in cable.ends)]


def addresses(record: LabRecord, members: list[str]) -> list[str]:
    """All addresses of these hosts and clients, each once."""
    if record.network is None:
        return []
    found = ((record.network.address(name), record.network.cluster_address(name)) for name in members)
    return list(dict.fromkeys(address for pair in found for address in pair))


def osds_of(record: LabRecord, thing: str) -> tuple[str, str, list[str]]:
    """Whom Ceph's configuration names for an OSD or for all of a host, that host, and which OSDs those are.

    Raises LabError where there is none.
    """
    homes = {osd: record.network.host_of(osd) for osd in record.daemons("osd")} if record.network else {}
    if thing in homes:
        return thing, homes[thing], [thing]
    osds = [osd for osd, host in homes.items() if host == thing]
    if not osds:
        raise LabError(f"lab {record.name} has no OSD on {thing}", "Nothing was changed.")
    return f"osd/host:{thing}", thing, osds


def processes_on(record: LabRecord, member: str) -> list[ProcessIdentity]:
    """The lab's processes that run in the network of a host or client."""
    held = record.paths.namespace(member)
    if not mounts.is_mounted(held):
        return []
    there = held.stat()
    return [item for item in find_marked(record.fsid) if _is_in(item, there)]


def _is_in(found: ProcessIdentity, there: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(f"/proc/{found.pid}/ns/net"), there)  # noqa: PTH116
    except OSError:
        return False


def rate(journal: LabJournal, name: str, direction: str, rate_bit_s: str = "") -> None:
    """Holds one direction to a rate; without one, to what the topology says."""
    cable = _cable(journal, name)
    end = _sending(cable, direction)
    link = replace(cable.link, rate_bit_s=int(rate_bit_s)) if rate_bit_s else cable.link
    line = shaping(end.device, link)
    if line:
        _run(journal, end, "tc", *line.split(), undoing=not rate_bit_s)
    elif _root_queue(journal, end) not in ("", "noqueue"):
        _run(journal, end, "tc", "qdisc", "del", "dev", end.device, "root", undoing=True)
    _say_rate(journal, cable)


def _say_rate(journal: LabJournal, cable: Cable) -> None:
    """Keeps the lab's list of wires true: the slower way of a cable counts, and of a delayed one what it was
    made with."""
    limits = [_limit_bit_s(journal, end) for end in cable.ends]
    now = min((limit for limit in limits if limit), default=cable.link.rate_bit_s) or None
    known = read_wires(journal.record.directory)
    said = tuple(replace(w, rate_bits_per_s=now) if w.name == cable.name else w for w in known)
    if said != known:
        write_wires(journal.record.directory, said)


def _limit_bit_s(journal: LabJournal, end: End) -> int:
    """What a device is held to; 0 where nothing holds it, or a delay does besides."""
    for item in _shown(journal, end, "qdisc"):
        if item.get("root") and item["kind"] == LIMITING:
            return 8 * int(item["options"]["rate"])  # tc counts it in bytes
    return 0


def delay(journal: LabJournal, name: str, direction: str, delay_us: str) -> None:
    """Delays one direction by netem, at the rate of the topology; `rate` ends it."""
    cable = _cable(journal, name)
    end, rate_bit_s = _sending(cable, direction), cable.link.rate_bit_s
    words = ["delay", f"{int(delay_us)}us", "limit", str(_NETEM_PACKETS)]
    words += ["rate", f"{rate_bit_s}bit"] if rate_bit_s else []
    _run(journal, end, "tc", "qdisc", "replace", "dev", end.device, "root", "netem", *words)


def carrier(journal: LabJournal, name: str, state: str) -> None:
    """Takes the cable out at the switch above (`down`), or puts it in again (`up`)."""
    end = _cable(journal, name).upper
    words = ("link", "set", "dev", end.device, "up" if state == "up" else "down")
    _run(journal, end, "ip", *words, undoing=state == "up")


def drop(journal: LabJournal, name: str, direction: str, kind: str, *words: str) -> None:
    """Drops packets of one direction where they come in: a `share` of them, those `larger` than an MTU,
    or all between this end and the hosts and clients `words` (`parted`).
    """
    cable = _cable(journal, name)
    program = _program(journal.record, direction, kind, list(words))
    if kind != "parted":  # else the kernel would lose up to 64 KiB at once, and see no packet's size
        _segment(journal, _sending(cable, direction), 1)
    end = _receiving(cable, direction)
    _run(journal, end, "tc", "qdisc", "replace", "dev", end.device, "clsact")
    place = ("pref", str(_PLACES[kind]), "handle", "1", "protocol", "all")
    filtered = ("filter", "replace", "dev", end.device, "ingress", *place)
    _run(journal, end, "tc", *filtered, "bpf", "bytecode", program, "direct-action")


def drop_no_more(journal: LabJournal, name: str, direction: str, kind: str) -> None:
    """The inverse of `drop`."""
    cable = _cable(journal, name)
    end = _receiving(cable, direction)
    there = set(_filters(journal, end))
    if _PLACES[kind] in there:
        which = ("dev", end.device, "ingress", "pref", str(_PLACES[kind]))
        _run(journal, end, "tc", "filter", "del", *which, undoing=True)
    if not there - {_PLACES[kind]} and "clsact" in _queues(journal, end):
        _run(journal, end, "tc", "qdisc", "del", "dev", end.device, "clsact", undoing=True)
    if kind != "parted":
        _segment(journal, _sending(cable, direction), _SEGMENTS_MAX)


def lose_connections(journal: LabJournal, member: str, *, undoing: bool = False) -> None:
    """Ends the TCP connections of a host or client, so that they are made anew.

    Raises LabError where this kernel cannot, unless `undoing`.
    """
    network = journal.record.network
    if network is None or network.topology.member(member) is None:
        raise LabError(f"lab {journal.record.name} has no {member}", "Nothing was changed.")
    end = End(member, "")
    before = set(_connections(journal, end))
    _run(journal, end, "ss", "--kill", "--tcp", "dst", network.base, undoing=True)
    if before & set(_connections(journal, end)) and not undoing:
        raise LabError(
            "this kernel ends no connection of others (ss --kill)",
            "Use one with CONFIG_INET_DIAG_DESTROY.",
        )


def _program(record: LabRecord, direction: str, kind: str, words: list[str]) -> str:
    if kind == "share":
        return drop_share(float(words[0]))
    if kind == "larger":
        return larger_than(int(words[0]))
    program: Callable[[list[str]], str] = coming_from if direction == TO else going_to
    return program(addresses(record, words))


def _cable(journal: LabJournal, name: str) -> Cable:
    for cable in links(journal.record):
        if cable.name == name:
            return cable
    raise LabError(f"lab {journal.record.name} has no link {name}", "Nothing was changed.")


def _sending(cable: Cable, direction: str) -> End:
    return cable.upper if direction == TO else cable.lower


def _receiving(cable: Cable, direction: str) -> End:
    return cable.lower if direction == TO else cable.upper


def _segment(journal: LabJournal, end: End, count: int) -> None:
    """How many segments of TCP may leave a device as one packet."""
    words = ("link", "set", "dev", end.device, "gso_max_segs", str(count))
    _run(journal, end, "ip", *words, undoing=count == _SEGMENTS_MAX)


def _root_queue(journal: LabJournal, end: End) -> str:
    found = (item["kind"] for item in _shown(journal, end, "qdisc") if item.get("root"))
    return next(found, "")


def _queues(journal: LabJournal, end: End) -> list[str]:
    return [item["kind"] for item in _shown(journal, end, "qdisc")]


def _filters(journal: LabJournal, end: End) -> Iterator[int]:
    if "clsact" in _queues(journal, end):  # else `tc` calls the question an error
        yield from (int(item["pref"]) for item in _shown(journal, end, "filter", "ingress"))


def _shown(journal: LabJournal, end: End, what: str, *where: str) -> list[dict[str, Any]]:
    text = _run(journal, end, "tc", "-json", what, "show", "dev", end.device, *where, undoing=True)
    found: list[dict[str, Any]] = parse_json(text or "[]")
    return found


def _connections(journal: LabJournal, end: End) -> Iterator[tuple[str, ...]]:
    text = _run(journal, end, "ss", "--no-header", "--numeric", "--tcp", "state", "established", undoing=True)
    yield from (tuple(line.split()[2:4]) for line in text.splitlines())


def _run(journal: LabJournal, end: End, *words: str, undoing: bool = False) -> str:
    """Runs a program in the namespace of an end. `undoing`: where that is gone, nothing is to be done."""
    paths = journal.record.paths
    if not mounts.is_mounted(paths.namespace(end.namespace)):
        if undoing:
            return ""
        raise LabError(
            f"lab {journal.record.name}: the network of {end.namespace} is gone",
            f"Take the lab down: leadline lab down {journal.record.directory}",
        )
    command = [*entered(paths, end.namespace), *words]
    return run_tool(command, journal.variables, deadline_s=_DEADLINE_S)
