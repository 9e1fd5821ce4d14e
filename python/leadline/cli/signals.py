"""What SIGINT, SIGTERM and SIGHUP do to a command: ask it to stop, or unwind it, so that it ends cleanly."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Handling:
    """Has handlers of its own for some signals, and puts back those of before at its end."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


class StopRequest(_Handling):
    """Callable: True once a signal asked to stop. A second SIGINT does not wait for the trial."""

    def __init__(self) -> None:
        super().__init__()
        self._number: int | None = None

    def __enter__(self) -> StopRequest:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` stays in force
                self._before[number] = signal.signal(number, self._note)
        return self

    def __call__(self) -> bool:
        return self._number is not None

    @property
    def exit_code(self) -> int:
        """128 plus the signal's number, as shells have it."""
        return 128 + (self._number or 0)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._number = self._number or number


class Unwinding(_Handling):
    """Context: the first of the signals unwinds what runs in it, by KeyboardInterrupt with its number.

    Every later one is ignored, also once `ignore` was called. What puts things back on the way out is not
    interrupted where it stands in the outer `finally` of two, and the inner one calls `ignore`: a signal at
    that very moment has ignored the next ones itself.
    """

    def __enter__(self) -> Unwinding:
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number in _SIGNALS:
            signal.signal(number, self._unwind)
        return self

    @staticmethod
    def ignore() -> None:
        """From here on none of the signals does anything."""
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _unwind(self, number: int, _frame: FrameType | None) -> None:
        self.ignore()
        raise KeyboardInterrupt(number)
