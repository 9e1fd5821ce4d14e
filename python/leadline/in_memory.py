"""Tables in memory: Arrow's columns of Python's values, and SQLite without files."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from leadline.errors import ResultError

if TYPE_CHECKING:
    import sqlite3

    import pyarrow as pa

_OFFSET_MAX = (1 << 31) - 1
_NUMBERS = {"int64": ("q", 0), "double": ("d", 0.0)}


def arrow_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Numbers, truths, texts or bytes, or None, as an array; TypeError, OverflowError or UnicodeError.

    By its buffers: `pa.array` loads pandas where it is installed, to ask whether the values are of it, which
    takes as long as all else that a short command does.
    """
    import numpy as np
    import pyarrow as pa

    known = np.fromiter((value is not None for value in values), bool, len(values))
    valid = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    if str(kind) in _NUMBERS:
        code, nothing = _NUMBERS[str(kind)]
        data: list[Any] = [array(code, [nothing if value is None else value for value in values])]
    elif pa.types.is_boolean(kind):
        data = [np.packbits(np.fromiter(map(bool, values), bool, len(values)), bitorder="little")]
    else:
        data = _texts(values)
    return pa.Array.from_buffers(kind, len(values), [valid, *map(pa.py_buffer, data)])


def _texts(values: Sequence[Any]) -> list[Any]:
    """Where each ends, and all of them."""
    import numpy as np

    parts = [
        b"" if value is None else value.encode() if isinstance(value, str) else value for value in values
    ]
    ends = np.cumsum([0, *map(len, parts)])
    if ends[-1] > _OFFSET_MAX:
        raise OverflowError(f"{ends[-1]} bytes are more than a column of a table holds")
    return [ends.astype(np.int32), b"".join(parts)]


@contextmanager
def sqlite_in_memory() -> Iterator[sqlite3.Connection]:
    """SQLite without files. Raises ResultError where the memory of this host does not suffice.

    `greatest` and `least` are of what is known; `regexp_matches` and `starts_with` are asked of texts.
    """
    import sqlite3

    try:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        with closing(connection):
            connection.execute("PRAGMA temp_store = MEMORY")
            for name, chosen in (("greatest", max), ("least", min)):
                connection.create_function(name, -1, partial(_of_known, chosen), deterministic=True)
            connection.create_function("regexp_matches", 2, _matches, deterministic=True)
            connection.create_function("starts_with", 2, str.startswith, deterministic=True)
            yield connection
    except MemoryError:
        raise ResultError(
            "the tables do not fit into the memory of this host", "read the result on a host with more memory"
        ) from None


def _of_known(chosen: Callable[..., Any], *values: Any) -> Any:
    if None not in values:
        return chosen(values)
    return chosen((value for value in values if value is not None), default=None)


def _matches(text: str, pattern: str) -> bool:
    return _compiled(pattern).search(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("$", r"\Z"))  # which `$` is not before a last line feed
