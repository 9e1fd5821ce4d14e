"""Changes every text in findings, however deep it is: for redaction, and for commands that name a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

_Value = TypeVar("_Value")
ChangedMapping = Callable[[Mapping[Any, Any]], Mapping[Any, Any]]


def changed_texts(
    value: _Value, change: Callable[[str], str], mapping: ChangedMapping | None = None
) -> _Value:
    """`value` with every text in it changed; `mapping` changes mappings whole, else their keys stay."""

    def changed(one: Any) -> Any:
        return changed_texts(one, change, mapping)

    found: Any = value
    if isinstance(value, str):
        found = change(value)
    elif is_dataclass(value) and not isinstance(value, type):
        found = replace(cast(Any, value), **{f.name: changed(getattr(value, f.name)) for f in fields(value)})
    elif isinstance(value, Mapping):
        found = mapping(value) if mapping else {key: changed(item) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        found = type(value)(map(changed, value))
    return cast(_Value, found)
