"""The one place that prints: nothing that came from outside reaches a terminal as anything but text.

Paths, names and messages may hold escape sequences, line ends or characters that turn the reading direction.
No locale, closed stream, reader that left or full disk is a defect of the standard streams: a verb may have
measured for hours before it prints, so what cannot be printed costs the print, and no more.
"""

from __future__ import annotations

import codecs
import functools
import io
import os
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

import click

from leadline.errors import LeadlineError
from leadline.units import NO_VALUE, printable

if TYPE_CHECKING:
    from rich.console import Console


PLAIN_ERRORS = "leadline-plain"
EXIT_READER_LEFT = 141  # as by SIGPIPE: 0 would be a pass that nobody checked
# What leadline itself prints beyond ASCII, for a locale that lacks it.
_PLAIN = {
    "…": "...",
    NO_VALUE: "-",
    "±": "+-",
    "µ": "u",
    "→": "->",
    "─": "-",
    "━": "-",
    "\u2713": "+",
    "\u2717": "x",
} | dict(zip("▁▂▃▄▅▆▇█", "12345678", strict=True))


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


_UNBOUNDED_WIDTH = 100_000  # a pipe has no right margin: nothing is wrapped or cut there


def echo(words: object = "", *, err: bool = False) -> None:
    """One line, whatever `words` hold."""
    click.echo(printable(words), err=err)


def echo_text(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Text that is laid out in lines by ourselves, such as JSON."""
    click.echo(_visible(text), nl=nl, err=err)


def echo_status(words: str, *, last: bool) -> None:
    """What stands in the terminal's last line until the next is said."""
    click.echo(f"\r\x1b[K{printable(words)}", err=True, nl=last)


def complain(problem: object) -> None:
    """What went wrong, on standard error, and below it what to do."""
    if isinstance(problem, LeadlineError):
        echo(f"leadline: {problem.message}", err=True)
        if problem.remedy:
            echo(f"  {problem.remedy}", err=True)
    else:
        echo(f"leadline: {problem}", err=True)


def complain_of_usage(error: click.ClickException) -> None:
    """What click says of a command line that is wrong; it repeats what was typed."""
    if isinstance(error.__cause__, LeadlineError):  # not the words are wrong, but what they name
        complain(error.__cause__)
        return
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and error.ctx is not None:
        for line in error.ctx.get_help().splitlines():
            echo(line, err=True)
        return
    lines: list[str] = []
    if isinstance(error, click.UsageError) and error.ctx is not None:
        lines += error.ctx.get_usage().splitlines()
        if error.ctx.command.get_help_option(error.ctx) is not None:
            names = error.ctx.help_option_names
            lines += [f"Try '{error.ctx.command_path} {names[0]}' for help.", ""]
    for line in [*lines, f"Error: {error.format_message()}"]:
        echo(line, err=True)


def terminal_width(most: int) -> int:
    """The letters that a line has room for, at most `most`; a pipe has no right margin."""
    return min(most, shutil.get_terminal_size((most, 24)).columns) if sys.stdout.isatty() else most


def make_console(*, stderr: bool = False) -> Console:
    """A rich console; where the stream is no terminal: no colour codes, no wrapping, no truncation."""
    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return _console_class()(stderr=stderr, highlight=False)
    return _console_class()(
        stderr=stderr,
        highlight=False,
        no_color=True,
        force_terminal=False,
        width=_UNBOUNDED_WIDTH,
        soft_wrap=True,
    )


@functools.cache
def _console_class() -> type[Console]:
    from rich.console import Console  # 37 ms, which `--help` need not pay
    from rich.segment import Segment

    class SafeConsole(Console):
        """Text as it is shown; what moves the cursor or colours is rich's own, which is no text."""

        def render(self, *arguments: Any, **options: Any) -> Iterable[Segment]:
            for part in super().render(*arguments, **options):
                sound = part.control or part.text.isprintable() or part.text == "\n"
                yield part if sound else Segment(_visible(part.text), part.style)

    return SafeConsole


def _visible(text: str) -> str:
    """`printable`, but for the ends of lines and tabs."""
    if text.isprintable():
        return text
    return "".join(letter if letter in "\n\t" else printable(letter) for letter in text)
