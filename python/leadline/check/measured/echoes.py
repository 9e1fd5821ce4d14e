"""ICMP echoes to a peer, small ones and ones of full size that no router may cut: loss, round trips, MTU.

A process of its own asks (`python -m leadline.check.measured.echoes ADDRESS...`) and prints JSON, as hosts of
a lab have networks of their own.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from leadline.check.rows import Fact, told
from leadline.knowledge.tables import Value

ECHOES = 10
_ECHO_REQUEST, _ECHO_REPLY = 8, 0
_HEADERS = 28  # of IP and ICMP
_SMALL = 56  # as ping has
_WORDS_MAX = 300  # of another host
_ANSWER_S = 0.3
_MTU_DISCOVER, _PROBE = 10, 3  # IP_MTU_DISCOVER, IP_PMTUDISC_PROBE: never cut, whatever was learnt
_MTU = 14  # IP_MTU


def echo_all(addresses: Sequence[str], count: int = ECHOES) -> dict[str, dict[str, Any]]:
    """By address: round trips in µs of small echoes, and how many of full size came back, of as many."""
    found: dict[str, dict[str, Any]] = {}
    for name in addresses:
        try:
            address = socket.gethostbyname(name)
            payload = _mtu_towards(address) - _HEADERS
            with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as asking:
                asking.setsockopt(socket.IPPROTO_IP, _MTU_DISCOVER, _PROBE)
                small = [_echo(asking, address, number, _SMALL) for number in range(count)]
                large = [_echo(asking, address, count + number, payload) for number in range(count)]
        except OSError as error:
            found[name] = {"error": error.strerror or str(error)}
            continue
        found[name] = {"small_us": [one for one in small if one is not None], "sent": count}
        found[name]["large"] = sum(one is not None for one in large)
    return found


def _mtu_towards(address: str) -> int:
    """What this host believes that it may send there in one piece."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect((address, 9))  # sends nothing
        mtu: int = asked.getsockopt(socket.IPPROTO_IP, _MTU)
        return mtu


def _echo(asking: socket.socket, address: str, number: int, payload: int) -> float | None:
    """The round trip in µs, None where nothing came back in time, or it is too long to be sent."""
    own = os.getpid() & 0xFFFF
    body = bytes(payload)
    head = struct.pack("!BBHHH", _ECHO_REQUEST, 0, 0, own, number)
    packet = struct.pack("!BBHHH", _ECHO_REQUEST, 0, _checksum(head + body), own, number) + body
    begun = time.monotonic()
    try:
        asking.sendto(packet, (address, 0))
    except OSError:
        return None
    while (left := begun + _ANSWER_S - time.monotonic()) > 0:
        if not select.select([asking], [], [], left)[0]:
            return None
        answer, peer = asking.recvfrom(65_535)
        kind, _, _, who, which = struct.unpack_from("!BBHHH", answer, (answer[0] & 15) * 4)
        if (kind, who, which, peer[0]) == (_ECHO_REPLY, own, number, address):
            return (time.monotonic() - begun) * 1e6
    return None


def _checksum(data: bytes) -> int:
    """RFC 1071."""
    padded = data + b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(~total & 0xFFFF)


def path_facts(host: str, peers: Mapping[str, str], answers: Mapping[str, Mapping[str, Any]]) -> list[Fact]:
    """What echoes from `host` say of the ways to its peers (name by address)."""
    found: list[Fact] = []
    for address, peer in peers.items():
        answer = answers.get(address, {"error": "it was not asked"})
        values: dict[str, Value] = dict.fromkeys(("echo_loss", "full_size_loss", "round_trip_us"))
        try:
            if "error" in answer:
                why = dict.fromkeys(values, str(answer["error"])[:_WORDS_MAX])
            else:
                values = _of_echoes(
                    [float(one) for one in answer["small_us"]], answer["sent"], answer["large"]
                )
                why = dict.fromkeys(values, f"{peer} answers no echo")
        except (KeyError, TypeError, ValueError, ArithmeticError):
            why = dict.fromkeys(values, f"{host} answers with no echoes")
        found += told("path", f"{host} > {peer}", values, why)
    return found


def _of_echoes(round_trips_us: list[float], sent: int, large: int) -> dict[str, Value]:
    """Of a peer that answers nothing small nothing is known of large ones."""
    small = sorted(round_trips_us)
    return {
        "echo_loss": 1 - len(small) / sent,
        "full_size_loss": max(0.0, 1 - large / len(small)) if small else None,
        "round_trip_us": small[len(small) // 2] if small else None,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(echo_all(sys.argv[1:])))
