"""True bytes, changed: as chance damages files, and as somebody does who knows the format. Seeded."""

from __future__ import annotations

import copy
import io
import json
import random
from collections.abc import Callable
from typing import Any

_ODD: list[Any] = [
    None,
    True,
    0,
    5,
    -1,
    10**30,
    1e308,
    0.5,
    "",
    "5",
    "²",
    "../../x",
    "\ud800\x1b[31m\n",
    [],
    {},
    [None],
    {"a": []},
]
_TOKENS = [
    b"\0",
    b"\xff",
    b"\x1b[31m",
    b"NaN",
    b"1e999",
    b"9" * 5000,
    b"[" * 2000,
    b'"',
    b"}",
    b"\n",
    b"<!DOCTYPE a>",
    b"&a;",
]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """One input made of another."""
    ways = [_bytewise]
    if data[:1] in (b"{", b"["):
        ways += [_as_json] * 3
    elif data[:4] == b"PAR1":
        ways += [_as_table] * 2
    return chance.choice(ways)(data, chance)


def _bytewise(data: bytes, chance: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(found) + 1)
        how = chance.randrange(6)
        if how == 0:
            found = found[:at]
        elif how == 1:
            del found[at : at + chance.randrange(1, 64)]
        elif how == 2:
            found[at:at] = chance.choice(_TOKENS)
        elif how == 3:
            found[at:at] = found[at : at + chance.randrange(1, 256)]  # doubled
        elif at < len(found):
            found[at] = chance.choice(
                (0, 0xFF, found[at] ^ (1 << chance.randrange(8)), chance.randrange(256))
            )
    return bytes(found)


def _as_json(data: bytes, chance: random.Random) -> bytes:
    """Values of other types in a document, or in a line of several."""
    try:
        lines = [json.loads(line) for line in data.splitlines()]
    except (ValueError, RecursionError):
        try:
            lines = [json.loads(data)]
        except (ValueError, RecursionError):
            return _bytewise(data, chance)
    if not lines:
        return data
    at = chance.randrange(len(lines))
    for _ in range(chance.choice((1, 1, 3))):
        lines[at] = _changed(lines[at], chance)
    return "\n".join(json.dumps(line) for line in lines).encode()


def _changed(value: Any, chance: random.Random) -> Any:
    value = copy.deepcopy(value)
    places = _places(value)
    if not places:
        return chance.choice(_ODD)
    parent, key = chance.choice(places)
    if chance.random() < 0.2:
        del parent[key]
    else:
        parent[key] = chance.choice(_ODD)
    return value


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        found.append((value, key))
        found += _places(value[key])
    return found


def _as_table(data: bytes, chance: random.Random) -> bytes:
    """A column of other values, of another type, twice, or gone."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(data))
        names = table.column_names
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # damaged already
        return _bytewise(data, chance)
    at = chance.randrange(table.num_columns)
    name, count = names[at], table.num_rows
    ways: list[Callable[[], pa.Table]] = [
        lambda: table.drop_columns([name]),
        lambda: table.set_column(at, name, pa.nulls(count)),
        lambda: table.set_column(at, name, pa.array([chance.choice((0, -1, 1 << 62))] * count)),
        lambda: table.set_column(at, name, pa.array([chance.choice((0.0, float("nan"), 1e308))] * count)),
        lambda: table.set_column(
            at, name, pa.array([chance.choice(("", "{", "[]", "{}", "5", "\x1b[31m"))] * count)
        ),
        lambda: table.set_column(at, name, pa.array([b"\xff"] * count)),
        lambda: table.set_column(at, name, _other_json(table.column(at), chance)),
        lambda: pa.concat_tables([table] * chance.randrange(2, 4)),
        lambda: table.slice(0, 0),
    ]
    into = io.BytesIO()
    try:
        pq.write_table(chance.choice(ways)(), into)
    except (pa.ArrowException, ValueError):  # text that is none, JSON that was changed before
        return _bytewise(data, chance)
    return into.getvalue()


def _other_json(column: Any, chance: random.Random) -> Any:
    import pyarrow as pa

    values = column.to_pylist()
    if not any(isinstance(value, str) and value[:1] in ("{", "[") for value in values):
        return column
    return pa.array([json.dumps(_changed(json.loads(value), chance)) for value in values])
