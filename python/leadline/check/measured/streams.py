"""TCP streams by iperf3 between hosts: along each way for itself, and along all of them at once.

Who calls hands over how hosts are asked; nothing here knows how they are reached. On each of them
`check/measured/exchange` does what it is told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from statistics import mean
from typing import Any

from leadline.check.rows import Fact, told
from leadline.foreign import parse_json
from leadline.knowledge.tables import Value, bound_of

SECONDS, AT_ONCE_SECONDS = 1, 4
STREAMS = 4
PORT = 5201
_MODULE = "leadline.check.measured.exchange"
_LIMIT_S = 45.0
_WORDS_MAX = 300  # of another host
_SEGMENT_BYTES = 1448  # payload of a frame of 1500
ALL_AT_ONCE = "all at once"  # what stands for the receiver
_OF_A_WAY = ("stream_bit_s", "streams_bit_s", "sent_again_share", "processors_busy")
Words = Sequence[str]


@dataclass(frozen=True)
class HostAnswer:
    """What a host printed; or the `problem`, in words that follow its name."""

    output: bytes = b""
    problem: str = ""


# Runs `python -m` with words of each host's own, on all of them at once, for at most so many seconds.
OnHosts = Callable[[Mapping[str, Words], float], Mapping[str, HostAnswer]]


class _NotMeasuredError(Exception):
    pass


def ways(addresses: Mapping[str, str]) -> list[tuple[str, str]]:
    """Each host to each other."""
    return list(permutations(addresses, 2))


def seconds_for(addresses: Mapping[str, str]) -> float:
    """About how long `stream_facts` takes."""
    count = len(ways(addresses))
    return count * (2 * SECONDS + 1) + (AT_ONCE_SECONDS + 2 if len(addresses) > 2 else 0)


def stream_facts(addresses: Mapping[str, str], on_hosts: OnHosts, port: int = PORT) -> list[Fact]:
    """What streams along each way carry alone, one way after the other; then all of them at once.

    `addresses` are those at which hosts are reached, by name. A fact without a value says why it has none.
    """
    found = [fact for way in ways(addresses) for fact in _of_way(way, addresses, on_hosts, port)]
    if len(addresses) > 2:  # of two hosts there is only their own link
        found += _at_once(addresses, on_hosts, port, _best_alone(found))
    return found


def _of_way(
    way: tuple[str, str], addresses: Mapping[str, str], on_hosts: OnHosts, port: int
) -> Iterator[Fact]:
    """One stream, then several."""
    source, sink = way
    ports = (port, port + 1)
    turns = [
        [{"to": sink, "address": addresses[sink], "port": own, "streams": streams}]
        for own, streams in zip(ports, (1, STREAMS), strict=True)
    ]
    values: dict[str, Value] = dict.fromkeys(_OF_A_WAY)
    reasons: dict[str, str] = {}
    try:
        words = {source: _words(addresses[source], (), turns), sink: _words(addresses[sink], ports, ())}
        answers, gone = _answers(words, on_hosts)
        if gone:
            raise _NotMeasuredError(next(iter(gone.values())))
        one, many = (parsed(_sent(answers, way, turn)) for turn in range(2))
        values = {
            "stream_bit_s": one["bit_s"],
            "streams_bit_s": many["bit_s"],
            "sent_again_share": one["sent_again_share"],
            "processors_busy": max(map(float, answers[source]["busy"])) >= bound_of("cpus_full"),
        }
    except _NotMeasuredError as error:
        reasons = dict.fromkeys(values, str(error))
    yield from told("path", f"{source} > {sink}", values, reasons)


def _best_alone(facts: Sequence[Fact]) -> dict[str, float]:
    """The most that each host sent along one way."""
    best: dict[str, float] = {}
    for fact in facts:
        if fact.name in ("stream_bit_s", "streams_bit_s") and isinstance(fact.value, int | float):
            host = fact.subject.partition(" > ")[0]
            best[host] = max(best.get(host, 0.0), fact.value)
    return best


def _at_once(
    addresses: Mapping[str, str], on_hosts: OnHosts, port: int, best: Mapping[str, float]
) -> Iterator[Fact]:
    """What each host sends when all send to all, of the most that it sent along one way."""
    listens: dict[str, list[int]] = {host: [] for host in addresses}
    sends: dict[str, list[dict[str, Any]]] = {host: [] for host in addresses}
    for number, (source, sink) in enumerate(ways(addresses)):
        listens[sink].append(port + number)
        sends[source].append({"to": sink, "address": addresses[sink], "port": port + number, "streams": 1})
    words = {
        host: _words(addresses[host], listens[host], [sends[host]], AT_ONCE_SECONDS) for host in addresses
    }
    answers, reasons = _answers(words, on_hosts)
    busy = max((float(answer["busy"][0]) for answer in answers.values()), default=0.0)
    gone = next(iter(reasons.values()), "")  # who sends to all cannot where one is missing
    for host in addresses:
        rate, why = None, reasons.get(host, gone)
        if not why:
            try:
                rate = sum(_middle(_sent(answers, (host, one["to"]), 0)) for one in sends[host])
            except _NotMeasuredError as error:
                why = str(error)
        share = rate / best[host] if rate is not None and best.get(host) else None
        yield Fact("path", f"{host} > {ALL_AT_ONCE}", "at_once_bit_s", rate, why)
        if share is not None and share < 1 and busy >= bound_of("cpus_full"):
            share, why = None, f"the processors of a host were busy {min(busy, 1):.0%} of the time"
        yield Fact("path", f"{host} > {ALL_AT_ONCE}", "at_once_share", share, why)


def _words(
    address: str,
    listen: Sequence[int],
    turns: Sequence[Sequence[Mapping[str, Any]]],
    seconds: float = SECONDS,
) -> Words:
    asked = {"address": address, "listen": list(listen), "turns": list(turns), "seconds": seconds}
    return [_MODULE, json.dumps(asked)]


def _answers(
    words: Mapping[str, Words], on_hosts: OnHosts
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """What each host said, or the reason why it said nothing of use."""
    found, reasons = {}, {}
    for host, asked in on_hosts(words, _LIMIT_S).items():
        try:
            answer = parse_json(asked.output) if not asked.problem else {}
            problem = str(answer.get("error") or "")[:_WORDS_MAX]
            if not (asked.problem or problem):
                _check(answer, parse_json(words[host][1])["turns"])
        except (ValueError, AttributeError, TypeError, KeyError):
            reasons[host] = f"{host} answers with no streams"
            continue
        if asked.problem:
            reasons[host] = f"{host}: {asked.problem}"
        elif problem:
            reasons[host] = f"{problem} on {host}"
        else:
            found[host] = answer
    return found, reasons


def _check(answer: Mapping[str, Any], turns: Sequence[Sequence[Mapping[str, Any]]]) -> None:
    """Raises ValueError and its like where an answer has not what each of the turns has."""
    busy, sent, there = answer["busy"], answer["sent"], answer.get("listening", [])
    numbers = all(isinstance(one, int | float) for one in busy)
    if not (numbers and all(isinstance(one, str) for one in there)) or len(busy) != len(turns):
        raise ValueError("other words than `exchange` has")
    for turn, one in zip(turns, sent, strict=True):
        if not all(isinstance(one[asked["to"]], dict) for asked in turn):
            raise ValueError("an answer of another turn")


def _sent(answers: Mapping[str, Any], way: tuple[str, str], turn: int) -> Mapping[str, Any]:
    """What iperf3 printed of a way. Raises _NotMeasuredError, with the receiver's reason if it has one."""
    source, sink = way
    answer: Mapping[str, Any] = answers[source]["sent"][turn][sink]
    if "error" in answer:
        there = answers[sink].get("listening")
        words = f"{there[0]} of {sink}" if there else f"{answer['error']} (from {source})"
        raise _NotMeasuredError(words[:_WORDS_MAX])
    return answer


def _middle(answer: Mapping[str, Any]) -> float:
    """Mean rate without the first and the last second, in which others begin later or have ended; bit/s."""
    seconds = answer.get("seconds")
    seconds = seconds[1:-1] if isinstance(seconds, list) else []
    if not seconds or not all(isinstance(one, int | float) for one in seconds):
        raise _NotMeasuredError("iperf3 answers with other words than version 3 has")
    return float(mean(seconds))


def parsed(answer: Mapping[str, Any]) -> dict[str, float]:
    """What was received, bit/s, and the share of segments that were sent again, of iperf3's JSON."""
    try:
        received, sent = answer["end"]["sum_received"], answer["end"]["sum_sent"]
        segments = max(1.0, float(sent["bytes"]) / _SEGMENT_BYTES)
        again = float(sent.get("retransmits", 0)) / segments
        return {"bit_s": float(received["bits_per_second"]), "sent_again_share": again}
    except (KeyError, TypeError, ValueError):
        raise _NotMeasuredError("iperf3 answers with other words than version 3 has") from None
