"""What a program prints, kept in files of bounded size: a program that prints without end fills no disk."""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
from pathlib import Path

from leadline.durable import new_file

KEPT_BYTES_MAX = 1 << 20  # of each stream
_TAIL_BYTES = 4096
_READ_BYTES = 1 << 16


class Capture:
    """The standard output and error of one copy: `PATH.out` and `PATH.err`, the first mebibyte of each.

    `stdout` and `stderr` are what the program is given; a thread reads them once `begin` is called.
    """

    def __init__(self, path: Path) -> None:
        self._pipes = {name: os.pipe() for name in ("out", "err")}
        self._files = {
            name: new_file(path.with_name(f"{path.name}.{name}"), buffering=0) for name in self._pipes
        }
        self._kept = dict.fromkeys(self._pipes, 0)
        self._tails = dict.fromkeys(self._pipes, b"")
        self._thread: threading.Thread | None = None
        self._wake = os.pipe()

    @property
    def stdout(self) -> int:
        """The end that the program writes its output to."""
        return self._pipes["out"][1]

    @property
    def stderr(self) -> int:
        """The end that the program writes its errors to."""
        return self._pipes["err"][1]

    def started(self) -> None:
        """The program has its ends now: ours are closed, so that its death is seen."""
        for _, writing in self._pipes.values():
            os.close(writing)

    def begin(self) -> None:
        """Read from now on."""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def tail(self, size: int) -> str:
        """The end of what was printed as errors, or else as output, on one line."""
        last = self._tails["err"].strip() or self._tails["out"].strip()
        return " / ".join(last[-size:].decode("utf-8", "replace").split("\n"))

    def close(self) -> None:
        """Take what is there already, and stop: a stray process that holds an end is not waited for."""
        if self._thread is None:
            self.begin()
        os.write(self._wake[1], b"x")
        if self._thread is not None:
            self._thread.join()
        for reading, _ in self._pipes.values():
            os.close(reading)
        for descriptor in self._wake:
            os.close(descriptor)
        for file in self._files.values():
            file.close()

    def _read(self) -> None:
        with selectors.DefaultSelector() as selector:
            for name, (reading, _) in self._pipes.items():
                os.set_blocking(reading, False)
                selector.register(reading, selectors.EVENT_READ, name)
            selector.register(self._wake[0], selectors.EVENT_READ, "")
            while len(selector.get_map()) > 1:
                ready = selector.select()
                for key, _ in ready:
                    if key.data and not self._take(key.fd, key.data):
                        selector.unregister(key.fd)
                if len(ready) == 1 and not ready[0][0].data:
                    return  # nothing more is there, and nobody waits for more

    def _take(self, descriptor: int, name: str) -> bool:
        """Keep what was printed; False once there is no more."""
        try:
            data = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return True
        self._tails[name] = (self._tails[name] + data)[-_TAIL_BYTES:]
        room = KEPT_BYTES_MAX - self._kept[name]
        if room > 0 and data:
            with contextlib.suppress(OSError):  # a full disk loses what is printed, not the trial
                self._kept[name] += self._files[name].write(data[:room])
        return bool(data)
