"""A thread in another network namespace, for as long as a read takes. That needs root."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_CLONE_NEWNET = 0x40000000
_OPEN = os.O_RDONLY | os.O_CLOEXEC
OWN = "/proc/thread-self/ns/net"


@contextmanager
def entered(namespace: str, flags: int = 0) -> Iterator[None]:
    """This thread in the network namespace of that file, opened with `flags`, too.

    Raises OSError where there is none, or this is not root.
    """
    library = ctypes.CDLL(None, use_errno=True)
    with _opened(OWN, _OPEN) as own, _opened(namespace, _OPEN | flags) as there:
        _enter(library, there, namespace)
        try:
            yield
        finally:
            _enter(library, own, OWN)


def _enter(library: ctypes.CDLL, descriptor: int, name: str) -> None:
    if library.setns(descriptor, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


@contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
