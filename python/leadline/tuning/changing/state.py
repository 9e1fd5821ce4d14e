"""What a tuning journal says as a whole, made of its records: runs, their changes, what is outstanding.

A record has what a revert needs, how the setting is accessed too: the table may be another by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from leadline.tuning.access.interface import same_value
from leadline.tuning.settings import ACCESS_KINDS, Setting, SettingAccess, SettingChange, SettingPlace
from leadline.tuning.surroundings import HealthSeen

_Row = Mapping[str, Any]


@dataclass(frozen=True)
class Reach:
    """How the system that a run changed is reached again, from anywhere on this host."""

    conf: str = ""
    client_name: str = ""
    namespaces: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class JournalledChange:
    """One change of a run. `life` is what its value lives with; `done` once it was read back.

    `line` is the journal's that announces it.
    """

    number: int
    run: str
    change: SettingChange
    setting: Setting
    life: str
    t_ns: int
    done: bool = False
    undone: str = ""  # how: put back, was back already, gone, left
    tried: tuple[str, ...] = ()  # by a search, whose change has no value of its own
    line: int = 0

    @property
    def outstanding(self) -> bool:
        """Whether it is still to be put back."""
        return not self.undone

    @property
    def values(self) -> tuple[str, ...]:
        """All that it may have been set to, the last one last: others are somebody else's."""
        return self.tried if self.tried else (self.change.value,)

    def is_ours(self, value: str | None) -> bool:
        """Whether it may have been set here to what is found."""
        return any(same_value(value, own) for own in self.values)


@dataclass(frozen=True)
class TuningRun:
    """One apply. `confirm_by_s` is when a switch puts it back (Unix time), 0 where there is none."""

    id: str
    t_ns: int
    reach: Reach
    confirm_by_s: float = 0.0
    confirmed: bool = False
    ended: str = ""
    holder_pid: int = 0
    health: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JournalState:
    """What a journal says, as a whole."""

    runs: Mapping[str, TuningRun]
    changes: tuple[JournalledChange, ...]

    def outstanding(self, run: str = "") -> tuple[JournalledChange, ...]:
        """What is still to be put back, the last change first; of one run, or of all."""
        found = (one for one in self.changes if one.outstanding and run in ("", one.run))
        return tuple(sorted(found, key=lambda one: -one.number))


class StateOfRecords:
    """Takes records up, in their order."""

    def __init__(self) -> None:
        self._runs: dict[str, TuningRun] = {}
        self._changes: dict[int, JournalledChange] = {}

    @property
    def state(self) -> JournalState:
        """What they say so far."""
        return JournalState(dict(self._runs), tuple(self._changes.values()))

    def take_up(self, line: int, record: _Row) -> None:
        """The next one. Raises ValueError or KeyError for one that says nothing that can be used."""
        what = record["event"]
        if what == "journal":
            return
        if what == "begun":
            self._begun(record)
        elif what == "changing":
            self._changing(line, record)
        elif what in ("confirmed", "ended", "holding"):
            self._of_run(what, record)
        elif what in ("done", "trying", "undone"):
            self._of_change(what, record)
        else:
            raise ValueError(f"there is no event {what!r}")

    def _begun(self, record: _Row) -> None:
        name, reach, health = _text(record, "run"), _row(record, "reach"), _row(record, "health")
        if health:
            HealthSeen.from_json(health)
        found = Reach(_text(reach, "conf"), _text(reach, "client_name"), _texts(_row(reach, "namespaces")))
        by_s = record["confirm_by_s"]
        if isinstance(by_s, bool) or not isinstance(by_s, int | float):
            raise ValueError("confirm_by_s is no time")
        self._runs[name] = TuningRun(name, _count(record, "t_ns"), found, float(by_s), health=health)

    def _changing(self, line: int, record: _Row) -> None:
        number, change = _count(record, "number"), _change(_row(record, "change"))
        run, setting = _text(record, "run"), _setting(change.setting, _row(record, "setting"))
        if run not in self._runs:
            raise ValueError(f"its run {run} was not begun")
        life, t_ns = _text(record, "life"), _count(record, "t_ns")
        self._changes[number] = JournalledChange(number, run, change, setting, life, t_ns, line=line)

    def _of_run(self, what: str, record: _Row) -> None:
        run = self._runs[_text(record, "run")]
        if what == "confirmed":
            run = replace(run, confirmed=True)
        elif what == "ended":
            run = replace(run, ended=_text(record, "how"))
        else:
            run = replace(run, holder_pid=_count(record, "pid"))
        self._runs[run.id] = run

    def _of_change(self, what: str, record: _Row) -> None:
        one = self._changes[_count(record, "number")]
        if what == "done":
            one = replace(one, done=True)
        elif what == "trying":
            one = replace(one, tried=(*one.tried, _text(record, "value")))
        else:
            one = replace(one, undone=_text(record, "how"))
        self._changes[one.number] = one


def setting_row(setting: Setting) -> dict[str, Any]:
    """As much of a setting as is needed to read it and to put it back."""
    access = {"kind": setting.access.kind, "options": dict(setting.access.options)}
    return {"access": access, "needs": setting.needs, "one_of": setting.one_of, "unit": setting.unit}


def _setting(name: str, how: _Row) -> Setting:
    """The inverse of `setting_row`."""
    access, one_of = _row(how, "access"), how.get("one_of")
    kind, options = _text(access, "kind"), _texts(_row(access, "options"))
    lacking = [option for option in ACCESS_KINDS.get(kind, ()) if option not in options]
    if lacking:
        raise ValueError(f"an access of the kind {kind} needs {lacking[0]}")
    return Setting(
        name=name,
        title=name,
        layer="sysctl",
        roles=(),
        access=SettingAccess(kind, options),
        means="",
        unit=how.get("unit", ""),
        default="",
        needs=how["needs"],
        persist="by_hand",
        sources=(),
        one_of=None if one_of is None else tuple(_words(one_of)),
    )


def _change(row: _Row) -> SettingChange:
    place = SettingPlace(**_texts(_row(row, "place")))
    before = row["before"]
    return SettingChange(
        _text(row, "setting"), place, _text(row, "value"), None if before is None else _text(row, "before")
    )


def _text(row: _Row, key: str) -> str:
    value = row[key]
    if not isinstance(value, str):
        raise ValueError(f"{key} is no text")
    return value


def _count(row: _Row, key: str) -> int:
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{key} is no count")
    return value


def _row(row: _Row, key: str) -> dict[str, Any]:
    value = row[key]
    if not isinstance(value, dict):
        raise ValueError(f"{key} is no mapping")
    return value


def _texts(row: _Row) -> dict[str, str]:
    for key in row:
        _text(row, key)
    return dict(row)


def _words(values: Iterable[object]) -> Iterable[str]:
    for value in values:
        if not isinstance(value, str):
            raise ValueError("one_of has what is no text")
        yield value
