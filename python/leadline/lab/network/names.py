"""Names in a topology: which can be devices and directories, and ranges of them as in ClusterShell."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leadline.errors import SpecError
from leadline.lab.network.cables import CONSOLE, SWITCHES
from leadline.lab.network.topology import MEMBERS_MAX
from leadline.units import printable

NAME_MAX = 12  # a network device has at most 15 characters, and a port is `p-NAME`
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9-]{{0,{NAME_MAX - 1}}}")
_RESERVED = (SWITCHES, CONSOLE, "default")  # the last is CRUSH's root
_BACK = "-back"  # ends the name of a host's second cable
_RANGE = re.compile(r"([A-Za-z0-9-]*)\[([0-9,-]+)\]([A-Za-z0-9-]*)")
_SPAN = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")
_EXAMPLES = "write a name such as host1, or a range such as host[1-11] or host[1-3,7]"


def check_member_name(name: str) -> None:
    """Raises SpecError for what cannot be a device, a directory and a place of CRUSH's map at once."""
    shown = repr(printable(name[:40]))
    if not _NAME.fullmatch(name):
        raise SpecError(
            f"{shown} cannot be the name of a device",
            f"use letters, digits and -, at most {NAME_MAX}, the first a letter",
        )
    if name in _RESERVED or name.endswith(_BACK):
        raise SpecError(
            f"{shown} is a name that the lab or CRUSH has for something else",
            f"choose another: not {', '.join(_RESERVED)}, and none that ends with {_BACK}",
        )


def expand(text: str, most: int = MEMBERS_MAX) -> tuple[str, ...]:
    """`host[1-3,7]` as four names, `host[01-03]` with its zeros, `host1` as itself: `most` at once.

    Raises SpecError.
    """
    if "[" not in text and "]" not in text:
        check_member_name(text)
        return (text,)
    shown = repr(printable(text[:40]))
    match = _RANGE.fullmatch(text)
    if match is None:
        raise SpecError(f"{shown} is neither a name nor a range of names", _EXAMPLES)
    names: list[str] = []
    for part in match[2].split(","):
        names += (f"{match[1]}{number}{match[3]}" for number in _numbers(part, shown, most))
        if len(names) > most:
            raise SpecError(f"{shown} is more than {most} names", "write a shorter range")
    for name in names:
        check_member_name(name)
    if len(set(names)) < len(names):
        raise SpecError(f"{shown} has a name twice", "name each once")
    return tuple(names)


def _numbers(part: str, shown: str, most: int) -> Sequence[str]:
    span = _SPAN.fullmatch(part)
    if span is None:
        raise SpecError(f"{shown} is neither a name nor a range of names", _EXAMPLES)
    first, last = int(span[1]), int(span[2] or span[1])
    if last < first:
        raise SpecError(f"{shown} counts down", _EXAMPLES)
    if last - first >= most:
        raise SpecError(f"{shown} is more than {most} names", "write a shorter range")
    return [str(number).zfill(len(span[1])) for number in range(first, last + 1)]


def dealt(names: Sequence[str], index: int, count: int) -> str:
    """Which of `names` the member `index` of `count` gets: neighbours together, as evenly as can be."""
    return names[index * len(names) // count]
