"""The file of a check (leadline.check/1): facts of hosts and a cluster, for later and for other hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.check.judge import Checked
from leadline.check.rows import Fact
from leadline.errors import ResultError
from leadline.foreign import parse_json, read_plain, reading
from leadline.knowledge.tables import Value

FORMAT = "leadline.check/1"
BYTES_MAX = 64 << 20
_REMEDY = "give a file that `leadline check -o FILE` wrote"
# What moves all the time says nothing of a change.
_VOLATILE = (
    "swap_used_bytes",
    "used_share",
    "error_share",
    "drop_share",
    "pg_spread",
    "processors_busy",
    "tcp_sent_again_share",
)
# What is measured is never twice the same.
_MEASURED = ("_bytes_s", "_bit_s", "_iops", "_us", "_of_others", "_scaling")
_MOVED = 0.3


@dataclass(frozen=True)
class FactChange:
    """A fact that is otherwise than it was; None where it was not there, or is not any more."""

    subject: str
    name: str
    before: str | int | float | bool | None
    after: str | int | float | bool | None


def as_document(facts: Sequence[Fact], checked: Sequence[Checked], details: dict[str, Any]) -> dict[str, Any]:
    """Plain values, for JSON."""
    return {
        "format": FORMAT,
        **details,
        "facts": [fact.as_json() for fact in facts],
        "checked": [
            {
                "name": one.row.name,
                "subject": one.subject,
                "state": one.state,
                "severity": one.row.severity,
                "title": one.row.title,
                "seen": one.seen,
                "expected": one.expected,
                "reason": one.reason,
                "remedy": one.row.remedy,
                "verify": one.row.verify,
                "source": one.row.source,
            }
            for one in checked
        ],
    }


def read_facts(path: Path) -> list[Fact]:
    """The facts of a check that was stored. Raises ResultError where it is none."""
    with reading(path, _REMEDY):
        value = parse_json(read_plain(path, BYTES_MAX))
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ResultError(f"{path} is no file of a check ({FORMAT})", _REMEDY)
    try:
        return [Fact.from_json(one) for one in value["facts"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ResultError(f"{path} is damaged: {error}", _REMEDY) from None


def changes(before: Sequence[Fact], after: Sequence[Fact]) -> list[FactChange]:
    """What is otherwise, of parts that were looked at both times; and parts that came or went, once each."""
    old, new = ({(fact.subject, fact.name): fact for fact in facts} for facts in (before, after))
    gone = {fact.subject for fact in before} - {fact.subject for fact in after}
    came = {fact.subject for fact in after} - {fact.subject for fact in before}
    found = [FactChange(subject, "part", "there", None) for subject in sorted(gone)]
    found += [FactChange(subject, "part", None, "there") for subject in sorted(came)]
    for key in sorted(old.keys() & new.keys()):
        if _moved(key[1], old[key].value, new[key].value):
            found.append(FactChange(*key, old[key].value, new[key].value))
    return found


def _moved(name: str, before: Value, after: Value) -> bool:
    if name in _VOLATILE or before == after:
        return False
    if name.endswith(_MEASURED) and isinstance(before, int | float) and isinstance(after, int | float):
        return abs(after - before) > _MOVED * abs(before)
    return True
