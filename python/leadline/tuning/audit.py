"""What is set, dangerous, without effect, and what would help: judged from readings alone.

Asks no system and knows no diagnosis: readings, versions, states and the causes that a diagnosis named are
handed in. Nothing is recommended but by an advice of the table that holds, with its source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from leadline.knowledge.findings import Finding, meets
from leadline.knowledge.tables import shared
from leadline.tuning.rows import number_of
from leadline.tuning.settings import DOCUMENTS, GRAVE, Advice, Role, Setting, SettingPlace
from leadline.tuning.validity import (
    Versions,
    dangerous,
    default_on,
    exists,
    obsolete,
    refused,
    same_value,
)

AuditKind = Literal["dangerous", "differs", "recommended", "refused", "obsolete", "advice"]
KINDS: tuple[AuditKind, ...] = ("dangerous", "differs", "recommended", "refused", "obsolete", "advice")
# What differs among hosts stands with what is recommended: by how much its cause takes.
_RANKS: Mapping[AuditKind, int] = {
    "dangerous": 0, "differs": 1, "recommended": 1, "refused": 2, "obsolete": 3, "advice": 4
}  # fmt: skip
_AT_ONCE = ("live", "reconnect", "reopen")


@dataclass(frozen=True)
class SettingSeen:
    """A setting at a place, or what one daemon works with. `value` None: not readable, with the `reason`.

    `given` says that somebody set it, and that it is not merely a default; None where nothing tells.
    """

    setting: Setting
    place: SettingPlace
    value: str | None
    given: bool | None = None
    reason: str = ""


@dataclass(frozen=True)
class AuditRow:
    """One thing to know of one setting, at all places where it is so.

    `values` of what differs among hosts: each value with the hosts that have it, most of them first.
    """

    kind: AuditKind
    setting: Setting
    places: tuple[SettingPlace, ...]
    value: str | None
    why: str
    source: str
    to: str = ""
    cause: Finding | None = None
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()
    shared: str = ""

    @property
    def finding(self) -> Finding:
        """What it says, as every table's findings are: the fact that others name has their remedy."""
        remedy = shared()[self.shared].remedy if self.shared else ""
        return Finding(
            self.setting.name,
            self.setting.title,
            f"{self.setting.name} is {self.value}",
            remedy or f"{self.setting.name}={self.to}",
            means=self.why,
            share=self.cause.share if self.cause is not None else None,
            setting=self.setting.name,
            source=self.source,
            shared=(self.shared,) if self.shared else (),
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "kind": self.kind,
            "setting": self.setting.name,
            "layer": self.setting.layer,
            "places": [
                {"subject": one.subject, "host": one.host, "cluster": one.cluster} for one in self.places
            ],
            "value": self.value,
            "to": self.to or None,
            "why": self.why,
            "cause": None if self.cause is None else self.cause.name,
            "cause_share": None if self.cause is None else self.cause.share,
            "prices": [price.kind for price in self.setting.prices],
            "needs": self.setting.needs,
            "source": self.source,
        } | (
            {"values": [{"value": value, "hosts": list(hosts)} for value, hosts in self.values]}
            if self.values
            else {}
        )


@dataclass(frozen=True)
class Audited:
    """All of it: `rows` in the order of what to do first, `set_here` what is not at its default."""

    rows: tuple[AuditRow, ...]
    set_here: tuple[SettingSeen, ...]
    unknown: tuple[SettingSeen, ...]

    @property
    def dangerous(self) -> bool:
        """Whether something dangerous is in force."""
        return any(row.kind == "dangerous" for row in self.rows)

    @property
    def to_prove(self) -> tuple[AuditRow, ...]:
        """What can be tried first: recommended by a cause, without a grave price, there to be changed."""
        return tuple(
            row
            for row in self.rows
            if row.kind == "recommended"
            and row.cause is not None
            and _is_changeable(row)
            and row.setting.needs in (*_AT_ONCE, "remount", "restart")
        )

    @property
    def to_apply(self) -> tuple[AuditRow, ...]:
        """What is recommended always, likewise, on hosts: it makes room, and no trial would show it."""
        return tuple(
            row
            for row in self.rows
            if row.kind == "recommended" and row.cause is None and can_be_applied(row)
        )


def _is_changeable(row: AuditRow) -> bool:
    """Something is there, it has no grave price, and no hand or boot loader is needed."""
    return (
        bool(row.places)
        and not any(price.kind in GRAVE for price in row.setting.prices)
        and row.setting.access.kind not in ("by_hand", "cmdline")
    )


def can_be_applied(row: AuditRow) -> bool:
    """Whether `leadline tune apply` on its host does what the row says, without a further word."""
    of_hosts = not any(place.cluster for place in row.places)
    return of_hosts and bool(row.to) and _is_changeable(row) and row.setting.needs in _AT_ONCE


@dataclass(frozen=True)
class AuditAsked:
    """What the audit is for: roles of the host, directions of the work, causes that were named."""

    versions: Versions
    roles: tuple[Role, ...]
    works: frozenset[str] = frozenset()
    causes: tuple[Finding, ...] = ()
    holds: Callable[[str, SettingPlace], bool | None] = lambda _state, _place: None

    def states(self, setting: Setting, place: SettingPlace) -> dict[str, bool | None]:
        """The conditions that decide whether this setting is refused there."""
        names = {one.state for one in setting.refused if one.state}
        return {name: self.holds(name, place) for name in names}


def audit(known: Mapping[str, Setting], seen: Sequence[SettingSeen], asked: AuditAsked) -> Audited:
    """Judge what was read of the settings of these roles."""
    meant = {name: one for name, one in known.items() if set(one.roles) & set(asked.roles)}
    seen = [one for one in seen if one.setting.name in meant]
    rows: list[AuditRow] = []
    for one in seen:
        if one.value is not None:
            rows += _of_value(one, one.value, asked)
    for setting in meant.values():
        rows += _recommended(setting, [one for one in seen if one.setting is setting], asked)
    return Audited(
        in_order(rows),
        tuple(one for one in seen if one.value is not None and _is_set(one, asked.versions)),
        tuple(one for one in seen if one.value is None and one.reason),
    )


def in_order(rows: Iterable[AuditRow]) -> tuple[AuditRow, ...]:
    """Rows that say the same of other places as one, and what to do first before all others."""
    return tuple(sorted(_together(rows), key=_order))


def _order(row: AuditRow) -> tuple[int, tuple[bool, bool, float], int, int, str]:
    """Dangers first; of what is recommended what the largest cause asks for, dear things last."""
    share = row.cause.share if row.cause is not None else None
    dear = sum(price.kind in GRAVE for price in row.setting.prices)
    return (
        _RANKS[row.kind],
        (row.cause is None, share is None, -(share or 0.0)),
        KINDS.index(row.kind),
        dear,
        row.setting.name,
    )


def _is_set(one: SettingSeen, versions: Versions) -> bool:
    """Where nothing tells who set it, what is not the default counts."""
    if one.given is not None:
        return one.given
    return one.value is not None and not same_value(one.value, default_on(one.setting, versions))


def _of_value(one: SettingSeen, value: str, asked: AuditAsked) -> list[AuditRow]:
    """What there is to say of the value in force; of a danger nothing else."""
    setting, place = one.setting, one.place
    danger = dangerous(setting, value, asked.versions)
    states = asked.states(setting, place)
    if danger is not None and not _is_another_pool(setting, states):
        to = default_on(setting, asked.versions)
        row = AuditRow("dangerous", setting, (place,), value, danger.words, setting.sources[0], to)
        return [replace(row, shared=danger.shared)]
    if not _is_set(one, asked.versions):
        return []
    old = obsolete(setting, asked.versions)
    if old is not None:
        return [AuditRow("obsolete", setting, (place,), value, old.words, old.source or setting.sources[0])]
    found = []
    why = refused(setting, asked.versions, states)
    if why is not None and not _is_default(one, asked) and (not why.state or states.get(why.state)):
        found.append(
            AuditRow("refused", setting, (place,), value, why.words, why.source or setting.sources[0])
        )
    found += [
        AuditRow("advice", setting, (place,), value, f"advised by {by_words(told)}; {told.words}", told.by)
        for told in setting.advice
        if not told.holds and same_value(told.value, value)
    ]
    return found


def _is_default(one: SettingSeen, asked: AuditAsked) -> bool:
    return one.value is not None and same_value(one.value, default_on(one.setting, asked.versions))


def _is_another_pool(setting: Setting, states: Mapping[str, bool | None]) -> bool:
    """Copies of an erasure-coded pool are its shards, and not what the danger speaks of."""
    return any(one.state and one.state == "erasure" and states.get("erasure") for one in setting.refused)


def _recommended(setting: Setting, seen: Sequence[SettingSeen], asked: AuditAsked) -> list[AuditRow]:
    if obsolete(setting, asked.versions) is not None or exists(setting, asked.versions) is False:
        return []
    rows = []
    for told in setting.advice:
        cause = next((one for one in asked.causes if one.name in setting.serves), None)
        if not _is_asked_for(told, cause, asked):
            continue
        source = by_words(told) + (f": {told.words}" if cause is not None else "")
        if not seen and cause is not None:
            to = target(setting, told, default_on(setting, asked.versions))
            row = AuditRow(
                "recommended", setting, (), None, cause.title, source, to, cause, shared=told.shared
            )
            rows += [row] if to else []
        for one in seen:
            if one.value is None:
                by_hand = setting.access.kind == "by_hand" and told.times is None
                if cause is not None and by_hand:  # nobody can tell what it is, and it may help
                    at, why = (one.place,), cause.title
                    rows.append(AuditRow("recommended", setting, at, None, why, source, told.value, cause))
                continue
            if refused(setting, asked.versions, asked.states(setting, one.place)) is not None:
                continue
            to = target(setting, told, one.value)
            if to:
                why = cause.title if cause is not None else told.words
                row = AuditRow("recommended", setting, (one.place,), one.value, why, source, to, cause)
                rows.append(replace(row, shared=told.shared))
    return rows


def _is_asked_for(told: Advice, cause: Finding | None, asked: AuditAsked) -> bool:
    if not told.holds or (told.when == "cause" and cause is None):
        return False
    if told.roles and not set(told.roles) & set(asked.roles):
        return False
    return not (told.works and asked.works and not set(told.works) & asked.works)


def target(setting: Setting, told: Advice, value: str) -> str:
    """The value that an advice asks for beside this one; "" where it is as good already."""
    if told.times is None:
        return "" if _as_good(value, told) else told.value
    number = number_of(value)
    if number is None:
        return ""
    wanted = number * told.times
    if setting.at_most is not None:
        wanted = min(wanted, setting.at_most)
    return "" if wanted <= number else f"{wanted:.15g}"


def _as_good(value: str, told: Advice) -> bool:
    if any(same_value(value, one) for one in (told.value, *told.good)):
        return True
    bound = told.good[0] if told.good else told.value
    have, want = (number_of((text.split() or [""])[-1]) for text in (value, bound))
    if have is None or want is None or told.rule == "exactly":
        return False
    at_least, at_most = (want if told.rule == rule else None for rule in ("at_least", "at_most"))
    return bool(meets(have, None, at_least, at_most))


def by_words(told: Advice) -> str:
    """Who says so, with the whole title of the document."""
    first, _, rest = told.by.partition(" ")
    return f"{DOCUMENTS.get(first.strip(',:'), first)} {rest}".strip()


def _together(rows: Iterable[AuditRow]) -> list[AuditRow]:
    """Rows that differ in their place only are one."""
    found: dict[tuple[Any, ...], list[AuditRow]] = {}
    for row in rows:
        key = (row.kind, row.setting.name, row.value, row.why, row.source, row.to)
        found.setdefault(key, []).append(row)
    return [
        replace(same[0], places=tuple(dict.fromkeys(place for row in same for place in row.places)))
        for same in found.values()
    ]
