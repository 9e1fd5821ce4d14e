"""TCP streams by iperf3 from one host to another: what one carries, what four do, and what was sent again.

Who calls hands over how a program is run on a host; nothing here knows how hosts are reached.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leadline.check.facts import Fact, Value, told

SECONDS = 1
STREAMS = 4
_PORT = 5201
_STARTED_S, _ENDED_S = 5.0, 15.0
_SEGMENT_BYTES = 1448  # payload of a frame of 1500
Words = Sequence[str]


def stream_facts(
    way: tuple[str, str], address: str, on: Callable[[str, Words], Words], port: int = _PORT
) -> list[Fact]:
    """What streams along `way` (from a host to another, who listens at `address`) carry.

    `on` gives the words that run words on a host. What cannot be measured is a fact without a value.
    """
    values: dict[str, Value] = {"stream_bit_s": None, "streams_bit_s": None, "sent_again_share": None}
    reasons: dict[str, str] = {}
    for name, streams in (("stream_bit_s", 1), ("streams_bit_s", STREAMS)):
        try:
            found = _measure(way, address, on, port, streams)
        except _NotMeasuredError as error:
            reasons |= dict.fromkeys((name, "sent_again_share"), str(error))
            break
        values[name] = found["bit_s"]
        if streams == 1:
            values["sent_again_share"] = found["sent_again_share"]
    why = next(iter(reasons.values()), "")
    return told("path", f"{way[0]} > {way[1]}", values, dict.fromkeys(values, why) | reasons)


class _NotMeasuredError(Exception):
    pass


def _measure(
    way: tuple[str, str], address: str, on: Callable[[str, Words], Words], port: int, streams: int
) -> dict[str, float]:
    """One run between a server that takes one client, and that client."""
    asked = ["iperf3", "-c", address, "-p", str(port), "-t", str(SECONDS), "-P", str(streams), "-J"]
    listening = ["iperf3", "-s", "-1", "-B", address, "-p", str(port)]
    try:
        server = subprocess.Popen(
            on(way[1], listening),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        raise _NotMeasuredError(f"nothing can be run on {way[1]}: {error.strerror}") from None
    try:
        until = time.monotonic() + _STARTED_S
        while True:
            done = subprocess.run(on(way[0], asked), capture_output=True, check=False, timeout=_ENDED_S)
            answer = _answer(done.stdout, way[0])
            if "error" not in answer:
                return parsed(answer)
            # Until the server listens its host refuses; a server that ended never will.
            if server.poll() not in (None, 0) or time.monotonic() > until:
                missing = server.poll() in (126, 127)
                raise _NotMeasuredError(f"no iperf3 on {way[1]}" if missing else f"iperf3: {answer['error']}")
    except (OSError, subprocess.SubprocessError) as error:
        raise _NotMeasuredError(f"iperf3 on {way[0]} did not end: {type(error).__name__}") from None
    finally:
        if server.poll() is None:
            server.terminate()
        server.wait()


def _answer(output: bytes, host: str) -> dict[str, Any]:
    try:
        found = json.loads(output)
    except ValueError:
        raise _NotMeasuredError(f"no iperf3 on {host}, or one that speaks no JSON") from None
    return found if isinstance(found, dict) else {"error": "it answers with no object"}


def parsed(answer: Mapping[str, Any]) -> dict[str, float]:
    """What was received, bit/s, and the share of segments that were sent again, of iperf3's JSON."""
    try:
        received, sent = answer["end"]["sum_received"], answer["end"]["sum_sent"]
        segments = max(1.0, float(sent["bytes"]) / _SEGMENT_BYTES)
        again = float(sent.get("retransmits", 0)) / segments
        return {"bit_s": float(received["bits_per_second"]), "sent_again_share": again}
    except (KeyError, TypeError, ValueError):
        raise _NotMeasuredError("iperf3 answers with other words than version 3 has") from None
