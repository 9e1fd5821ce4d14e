"""The names of a result that become parts of paths. A result may have been made, or changed, by anybody."""

from __future__ import annotations

import re

from leadline.errors import ResultError

_ID = re.compile(r"[0-9a-f]{8,64}")


def checked_id(value: object) -> str:
    """A study's id, which is part of the name of what is removed: hexadecimal digits, or refused."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ResultError(
            f"the id {value!r} is none of leadline's: it has 8 to 64 of the digits 0-9a-f",
            "nothing was done; the manifest was changed: restore it from a copy of the result",
        )
    return value


def checked_name(value: object) -> str:
    """A name that becomes part of a file's: of one file, in one directory."""
    if not isinstance(value, str) or value in ("", ".", "..") or "/" in value or "\0" in value:
        raise ResultError(
            f"{value!r} is no plain name of a file or directory: it would lead to another place",
            "nothing was done; the result was changed: restore it from a copy",
        )
    return value
