"""From `NAME=VALUE` or `NAME@SUBJECT=VALUE`, or a plan's file, to checked values. Raises UsageError."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from leadline.errors import UsageError
from leadline.foreign import parse_json
from leadline.tuning.emitting.delivery import AskedValue, Evidence, NotEmitted, one_line
from leadline.tuning.rows import in_bytes
from leadline.tuning.settings import Setting
from leadline.yamlio.problems import suggest

_LETTERS_MAX = 1000


def is_pair(word: str) -> bool:
    """True for what looks like a setting and not like a file."""
    return "=" in word and "/" not in word.partition("=")[0].partition("@")[0]


def parse_pair(word: str, known: Mapping[str, Setting], evidence: Sequence[Evidence] = ()) -> AskedValue:
    """One word of the command line; the subject may hold `=` where it is a path, the value anything."""
    name, at, rest = word.partition("@")
    if at and "=" not in name:
        subject, equals, value = rest.rpartition("=")
        if not subject and equals:
            raise UsageError(f"{word!r} names nothing after @", "Write NAME@SUBJECT=VALUE.")
    else:
        subject = ""
        name, equals, value = word.partition("=")
    if not equals:
        raise UsageError(f"{word!r} has no value", "Write NAME=VALUE or NAME@SUBJECT=VALUE.")
    return _asked(name, value, subject, known, evidence)


def parse_plan(
    text: str, source: str, known: Mapping[str, Setting], evidence: Sequence[Evidence] = ()
) -> tuple[AskedValue, ...]:
    """A plan: JSON or YAML, a list of {setting, value, place: {subject}}, alone or as `changes`."""
    from leadline.yamlio.yaml_source import read_yaml

    try:
        value: Any = parse_json(text)
    except ValueError:
        value = read_yaml(text, source, {}).value
    rows = value.get("changes") if isinstance(value, dict) else value
    if not isinstance(rows, list) or not rows:
        raise UsageError(f"{source} holds no changes", "Give a list of {setting: NAME, value: VALUE}.")
    found = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or "setting" not in row or "value" not in row:
            raise UsageError(f"{source}: change {number} has no setting and value", "Give each of them both.")
        place = row.get("place") or {}
        subject = str(place.get("subject", "")) if isinstance(place, dict) else str(place)
        found.append(_asked(str(row["setting"]), _text(row["value"]), subject, known, evidence))
    return tuple(found)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _asked(
    name: str, value: str, subject: str, known: Mapping[str, Setting], evidence: Sequence[Evidence]
) -> AskedValue:
    setting = known.get(name)
    if setting is None:
        raise UsageError(f"{name!r} is no setting that leadline knows", suggest(name, known))
    value = in_bytes(setting, value) if one_line(value) == value else value
    check_value(setting, value)
    if subject and (len(subject) > _LETTERS_MAX or one_line(subject) != subject):
        raise UsageError(
            f"{name}@{subject[:80]!r}: no place has such a name", "Write it without odd letters."
        )
    same = next((one for one in evidence if (one.setting, one.value) == (name, value)), None)
    return AskedValue(setting, value, subject, same)


def check_value(setting: Setting, value: str) -> None:
    """Raises UsageError where the setting cannot have it."""
    what = f"{setting.name}={value[:80]!r}"
    if not value.strip() or len(value) > _LETTERS_MAX or one_line(value) != value:
        raise UsageError(f"{what} is empty, too long, or holds control characters", "Write one line.")
    if setting.one_of is not None and value not in setting.one_of:
        raise UsageError(f"{what} is none of its values", suggest(value, setting.one_of))
    if setting.at_least is None and setting.at_most is None:
        return
    for part in value.split():
        number = _number(part)
        if number is None:
            raise UsageError(f"{what} is no number", f"Give a number ({setting.unit}).")
        low, high = setting.at_least, setting.at_most
        if (low is not None and number < low) or (high is not None and number > high):
            bounds = f"{'' if low is None else f'{low:.15g}'} to {'' if high is None else f'{high:.15g}'}"
            raise UsageError(f"{what} is out of range", f"Give {bounds.strip()} ({setting.unit}).")


def _number(text: str) -> float | None:
    if not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def check_together(asked: Sequence[AskedValue]) -> None:
    """Raises UsageError where two cannot both hold."""
    seen: dict[tuple[str, str], AskedValue] = {}
    for one in asked:
        before = seen.setdefault((one.setting.name, one.subject), one)
        if before is not one:
            raise UsageError(f"{before.words} and {one.words} contradict each other", "Give one of them.")
    names = {one.setting.name for one in asked}
    for one in asked:
        for other in one.setting.excludes:
            if other in names:
                raise UsageError(f"{one.setting.name} and {other} exclude each other", "Give one of them.")


def only_proved(asked: Sequence[AskedValue]) -> tuple[tuple[AskedValue, ...], tuple[NotEmitted, ...]]:
    """What helps by its mechanism, and the rest with what is known of it."""
    kept = tuple(one for one in asked if one.evidence is not None and one.evidence.proved)
    rest = tuple(
        NotEmitted(one.words, "no proof of it was given" if one.evidence is None else one.evidence.words)
        for one in asked
        if one not in kept
    )
    return kept, rest
