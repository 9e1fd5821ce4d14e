"""A busy neighbour: a program of its own that uses up a processor, or a link, until it is ended.

`hog.py NAME cpu`, or `hog.py NAME link ADDRESS BYTES_PER_S`. NAME only tells who it is. It holds nothing:
it may be killed at any moment.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import sys
import time

_PORT = 9  # of the discard protocol (RFC 863): nobody listens
_SEGMENT_BYTES, _SEGMENTS = 1400, 40  # a datagram fits in every usual MTU; the kernel cuts 40 at once
_UDP_SEGMENT = 103  # linux/udp.h
_BEHIND_S_MAX = 0.1


def main(words: list[str]) -> None:
    """What the command line asks for, without end."""
    if words[1] == "cpu":
        _burn()
    else:
        _send(words[2], float(words[3]))


def _burn() -> None:
    for _ in itertools.count():
        pass


def _send(address: str, rate_bytes_s: float) -> None:
    """Datagrams at an even rate. What could not be sent in time is not made up for."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, _SEGMENT_BYTES)
    chunk = bytes(_SEGMENT_BYTES * _SEGMENTS)
    due_s = time.monotonic()
    while True:
        with contextlib.suppress(OSError):  # the link is down, or full
            out.sendto(chunk, (address, _PORT))
        due_s = max(due_s + len(chunk) / rate_bytes_s, time.monotonic() - _BEHIND_S_MAX)
        time.sleep(max(0.0, due_s - time.monotonic()))


if __name__ == "__main__":
    main(sys.argv[1:])
