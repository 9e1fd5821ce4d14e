"""Which packets a faulty link drops, as programs of classic BPF for `tc filter … bpf … direct-action`.

The kernel's classifier draws random numbers and reads headers: no module made for faults is needed. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import NamedTuple

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


def share(fraction: float) -> str:
    """Drops this share of the packets at random, each for itself."""
    # Not one more than a register holds: 1 drops all but one of 4 billion.
    bound = min(round(fraction * 2**32), 2**32 - 1)
    at_least = BpfInstruction(_JUMP_AT_LEAST, 1, 0, bound)
    return _text((BpfInstruction(_LOAD_WORD, value=_RANDOM), at_least, _DROP, _PASS))


def larger_than(mtu_bytes: int) -> str:
    """Drops what a port of this MTU would."""
    longer = BpfInstruction(_JUMP_GREATER, 0, 1, mtu_bytes + _ETHERNET_BYTES)
    return _text((BpfInstruction(_LOAD_LENGTH), longer, _DROP, _PASS))


def coming_from(addresses: Iterable[str]) -> str:
    """Drops IPv4 and ARP that one of these addresses sent."""
    return _text(_about(_SOURCE, addresses))


def going_to(addresses: Iterable[str]) -> str:
    """Drops IPv4 and ARP that is for one of these addresses."""
    return _text(_about(_DESTINATION, addresses))


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


def _text(program: Iterable[BpfInstruction]) -> str:
    """As `tc` reads it (tc-bpf(8), `bytecode`)."""
    lines = [" ".join(map(str, instruction)) for instruction in program]
    return ",".join([str(len(lines)), *lines])
