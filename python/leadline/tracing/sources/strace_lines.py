"""One line of strace at a time: whose it is, when, and what it says. It knows nothing of what calls mean."""

from __future__ import annotations

import re
from dataclasses import dataclass

# `[pid 12]` on a terminal, `12` with -o, with -Y `<name>` behind the pid; then the time of -t, -tt or -ttt. A
# pid has at most seven digits.
_HEAD = re.compile(
    r"(?:\[pid +(\d{1,7})(?:<[^<>]*>)?\] +|(\d{1,7})(?:<[^<>]*>)? +)?"
    r"(?:(\d{9,11})(?:\.(\d{1,9}))? +|(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))? +|(\d{1,8}\.\d+) +)?"
)
# Between time and call: the time since the line before (-r beside -t), the call's number (-n), and the
# address that it was made from (-i).
_NUMBERS = re.compile(r"(?:\(\+ *\d+\.\d+\) +)?(?:\[ *\d+\] +)?(?:\[(?:[0-9a-f]{8,16}|\?+)\] +)?")
# What almost every line begins with: -f -ttt -o.
_USUAL = re.compile(r"(\d{1,7}) +(\d{9,11})\.(\d{6}) ")
# The last `) = ` of a line ends the arguments: no string can follow it, only a comment and the duration.
_CALL = re.compile(
    r"([a-z_][a-z0-9_]*)\((.*)\) += (\?|-?\d+|0x[0-9a-f]+)"
    r"(?:<((?:[^<>]|->)*)>(\(deleted\))?)?(?: ([A-Z][A-Z0-9]+)\b)?"
    r'((?: \([^"]*\)| /\*[^"]*\*/)*)(?: <(\d+)\.(\d{1,9})>)?$',
    re.DOTALL,
)
_UNFINISHED = re.compile(r"([a-z_][a-z0-9_]*)\((.*?) *<(?:unfinished|detached) \.\.\.>$", re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. ([a-z_][a-z0-9_]*) resumed>(.*)$", re.DOTALL)
_EXITED = re.compile(r"\+\+\+ exited with (\d+) \+\+\+$")
_KILLED = re.compile(r"\+\+\+ killed by (SIG[A-Z0-9_+]+)(?: \(core dumped\))? \+\+\+$")
_SUPERSEDED = re.compile(r"\+\+\+ superseded by execve in pid (\d+) \+\+\+$")
_DESCRIPTOR = re.compile(r"(-?\d+|AT_FDCWD)(?: /\* AT_FDCWD \*/)?(?:<((?:[^<>]|->)*)>(\(deleted\))?)?$")
_DESCRIPTOR_FIRST = re.compile(r"(-?\d+)(?:<((?:[^<>]|->)*)>(\(deleted\))?)?(?:,|$)")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"(?:\.\.\.)?|<(?:[^<>]|->)*>|[\[\]{}(),]|[^"<>\[\]{}(),]+|.', re.DOTALL)
# Two ways in which -y tells the directory that a program was started in.
_STARTED_IN = re.compile(r"\((?:-100 /\* )?AT_FDCWD(?: \*/)?<(/[^<>]*)>")
_OPENED_THERE = re.compile(r'(?:open|creat|openat)\((?:AT_FDCWD, )?"([^"/.\\][^"\\]*)".* = \d+<(/[^<>]*)>')
# What -c writes instead of calls, and -C behind them.
_COUNTED = re.compile(r"% time |-{6} -{6}|(?: *\d{1,3}\.\d\d +)?\d+\.\d{6} +\d+ ")
# What -yy adds to the path of a device.
_DEVICE = re.compile(r"<(?:char|block) \d+:\d+>(?=>)")
# -X raw and -e raw write numbers: who opens what how, and what a child shares, is then not told.
_RAW_FLAGS = re.compile(r", 0(?:x[0-9a-f]+)?(?:,|$)")  # of an open; a damaged line has none at all
_RAW = re.compile(r"flags=0x[0-9a-f]+(?![0-9a-f]| /\*)|^0x")
_OPENS = frozenset(("open", "openat"))
_NAMED = frozenset(("clone", "clone3", "read", "write", "pread64", "pwrite64"))
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b"a": b"\a", b"b": b"\b"}

DELETED = " (deleted)"
_CURRENT_DIRECTORY = "-100"  # AT_FDCWD by -X verbose
_BELOW = (" > ", " | ")  # begin the lines of a stack (-k), and of bytes that are dumped (-e read, -e write)
NS = 1_000_000_000


@dataclass(slots=True)
class Stamp:
    """Whose a line is and when, as far as it says; `style` is unix, clock, relative or none."""

    thread: int | None
    time_ns: int | None
    style: str


@dataclass(slots=True)
class Call:
    """A call that returned. `result` is None where strace could not say (`?`), `error` the errno's name."""

    name: str
    arguments: str
    result: int | None
    path: str | None  # what -y says of a descriptor that was returned
    error: str | None
    duration_ns: int | None


@dataclass(slots=True)
class Begun:
    """A call that another thread's line interrupted."""

    name: str
    arguments: str


@dataclass(slots=True)
class Resumed:
    """The rest of it."""

    name: str
    rest: str


@dataclass(slots=True)
class Ended:
    """A thread's end: its exit code, its signal, or the thread whose exec took its place."""

    code: int | None = None
    signal: str | None = None
    superseded_by: int | None = None


class Passed:
    """A line that says nothing about calls: signals, messages of strace, stacks."""


PASSED = Passed()
COUNTED = Passed()  # the counts of -c
Event = Call | Begun | Resumed | Ended | Passed


def head(line: str) -> tuple[Stamp, str]:
    """A line's thread and time, and what follows them."""
    usual = _USUAL.match(line)
    if usual is not None:
        pid, seconds, fraction = usual.groups()
        stamp = Stamp(int(pid), int(seconds) * NS + int(fraction) * 1000, "unix")
        return stamp, _after_numbers(line[usual.end() :].lstrip(" "))
    match = _HEAD.match(line)
    if match is None:  # it may match nothing at all, but it always matches
        return Stamp(None, None, "none"), line
    bracketed, plain, seconds, fraction, hours, minutes, rest_seconds, clock_fraction, relative = (
        match.groups()
    )
    pid = bracketed or plain
    thread = int(pid) if pid else None
    body = _after_numbers(line[match.end() :])
    if seconds:
        return Stamp(thread, int(seconds) * NS + _fraction_ns(fraction), "unix"), body
    if hours:
        whole = (int(hours) * 60 + int(minutes)) * 60 + int(rest_seconds)
        return Stamp(thread, whole * NS + _fraction_ns(clock_fraction), "clock"), body
    return Stamp(thread, None, "relative" if relative else "none"), body


def _after_numbers(body: str) -> str:
    if not body.startswith(("[", "(+")):
        return body
    match = _NUMBERS.match(body)
    return body if match is None else body[match.end() :]


def event(body: str) -> Event | None:
    """What a line without its head says; None when it is nothing of strace."""
    if "<char " in body or "<block " in body:
        body = _DEVICE.sub("", body)
    if body.endswith("...>"):
        match = _UNFINISHED.match(body)
        return Begun(match[1], match[2]) if match else None
    found = call(body)
    if found is not None:
        return found
    if body.startswith("<... "):
        match = _RESUMED.match(body)
        return Resumed(match[1], match[2]) if match else None
    if body.startswith("+++ "):
        return _ended(body)
    if body.startswith(("--- ", "strace: ", *_BELOW)):
        return PASSED
    return COUNTED if _COUNTED.match(body) else None


def call(body: str) -> Call | None:
    """A whole call, or None."""
    match = _CALL.match(body)
    if match is None:
        return None
    name, arguments, result, path, deleted, error, _, seconds, fraction = match.groups()
    value = None if result == "?" else c_number(result)
    duration = int(seconds) * NS + _fraction_ns(fraction) if seconds else None
    if path is not None and deleted:
        path += DELETED
    return Call(name, arguments, value, path, error, duration)


def raw(found: Call) -> bool:
    """True where a call has numbers in place of names."""
    if found.name in _OPENS:
        return "O_" not in found.arguments and _RAW_FLAGS.search(found.arguments) is not None
    return found.name in _NAMED and _RAW.search(found.arguments) is not None


def c_number(text: str) -> int | None:
    """A number as C writes it, octal behind a zero; None for what is none, or beyond 64 bits."""
    digits = text.lstrip("-")
    base = 16 if digits[:2] == "0x" else 8 if digits[:1] == "0" else 10
    try:
        found = int(text, base)
    except ValueError:
        return None
    return found if -(1 << 63) <= found < 1 << 64 else None


def first_directory(line: str) -> str | None:
    """The current directory, where a line tells it."""
    if match := _STARTED_IN.search(line):
        return unescape(match[1])
    match = _OPENED_THERE.search(line)
    if match is None or not match[2].endswith(f"/{match[1]}"):
        return None
    return unescape(match[2][: -len(match[1]) - 1]) or "/"


def _ended(body: str) -> Ended | None:
    if match := _EXITED.match(body):
        return Ended(code=int(match[1]))
    if match := _KILLED.match(body):
        return Ended(signal=match[1])
    if match := _SUPERSEDED.match(body):
        return Ended(superseded_by=int(match[1]))
    return None


def _fraction_ns(digits: str | None) -> int:
    return int(digits.ljust(9, "0")) if digits else 0


def split(arguments: str) -> list[str]:
    """Arguments at the commas that are in no string, path or structure."""
    parts: list[str] = []
    depth = 0
    current: list[str] = []
    for piece in _TOKEN.findall(arguments):
        if piece in ("[", "{", "("):
            depth += 1
        elif piece in ("]", "}", ")"):
            depth -= 1
        elif piece == "," and depth <= 0:
            parts.append("".join(current).strip())
            current = []
            continue
        current.append(piece)
    last = "".join(current).strip()
    return [*parts, last] if last or parts else []


def first_descriptor(arguments: str) -> tuple[int, str | None] | None:
    """The descriptor that begins the arguments, and its path where -y gave it."""
    match = _DESCRIPTOR_FIRST.match(arguments)
    return (int(match[1]), _annotated(match[2], match[3])) if match else None


def descriptor(argument: str) -> tuple[int | None, str | None] | None:
    """A descriptor and its path; the number is None for AT_FDCWD."""
    match = _DESCRIPTOR.match(argument)
    if match is None:
        return None
    number = None if match[1] in ("AT_FDCWD", _CURRENT_DIRECTORY) else int(match[1])
    return number, _annotated(match[2], match[3])


def _annotated(path: str | None, deleted: str | None) -> str | None:
    return path if path is None or not deleted else path + DELETED


def text(argument: str) -> str | None:
    """A string's own characters; None where it is none (NULL, an address) or was cut short."""
    if len(argument) < 2 or argument[0] != '"' or argument[-1] != '"':
        return None
    return unescape(argument[1:-1])


def unescape(quoted: str) -> str:
    """C's escapes undone; bytes that are no UTF-8 stay backslash escapes."""
    if "\\" not in quoted:
        return quoted
    raw = _ESCAPE.sub(_byte, quoted.encode("latin-1", "replace"))
    return raw.decode("utf-8", "backslashreplace")


def _byte(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, letter = match.groups()
    if octal:
        return bytes([int(octal, 8) & 255])
    if hexadecimal:
        return bytes([int(hexadecimal, 16)])
    return _LETTERS.get(letter, letter)
