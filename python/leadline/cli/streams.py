"""The standard streams of the command: no locale, closed stream, reader that left or full disk is its defect.

A verb may have measured for hours before it prints. So what cannot be printed costs the print, and no more.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import Any, TextIO

from leadline.errors import LeadlineError
from leadline.units import NO_VALUE

PLAIN_ERRORS = "leadline-plain"
EXIT_READER_LEFT = 141  # as by SIGPIPE: 0 would be a pass that nobody checked
# What leadline itself prints beyond ASCII, for a locale that lacks it.
_PLAIN = {"…": "...", NO_VALUE: "-", "±": "+-", "µ": "u", "→": "->", "─": "-", "━": "-"} | dict(
    zip("▁▂▃▄▅▆▇█", "12345678", strict=True)
)


class StandardStream(io.FileIO):
    """A descriptor that is written to until it fails; from then on what is written goes nowhere.

    Where `needed`, that ends the command: quietly where the reader left, else by LeadlineError.
    """

    def __init__(self, number: int, *, needed: bool) -> None:
        super().__init__(number, "wb", closefd=False)
        self._needed = needed

    def write(self, data: Any, /) -> int:
        """See the base."""
        try:
            return super().write(data)
        except OSError as error:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self.fileno())
            os.close(nothing)
            if not self._needed:
                return len(data)
            if isinstance(error, BrokenPipeError):  # which click would make an exit code of its own of
                raise SystemExit(EXIT_READER_LEFT) from None
            raise LeadlineError(
                f"standard output cannot be written: {error.strerror}",
                "Free space there, or send the output somewhere else.",
            ) from error


def prepare_streams() -> None:
    """Make the standard streams such; one that is closed leads nowhere, and no file takes its number."""
    codecs.register_error(PLAIN_ERRORS, plain_letters)
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one; closed in programs it starts
    sys.stdout = _stream(sys.stdout, 1, needed=True)
    sys.stderr = _stream(sys.stderr, 2, needed=False)


def _stream(old: TextIO | None, number: int, *, needed: bool) -> TextIO:
    raw = StandardStream(number, needed=needed)
    chosen = getattr(old, "errors", None)  # PYTHONIOENCODING may say another
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(old, "encoding", None) or "utf-8",
        errors=chosen if chosen not in (None, "strict", "surrogateescape") else PLAIN_ERRORS,
        line_buffering=raw.isatty() or number == 2,
    )


def plain_letters(error: UnicodeError) -> tuple[str, int]:
    """Letters that an encoding lacks: ours in ASCII, others by their numbers."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    words = "".join(_PLAIN.get(one) or one.encode("ascii", "backslashreplace").decode() for one in letters)
    return words, error.end
