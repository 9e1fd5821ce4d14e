"""What is to be proved, as values in the result's manifest, and what it changed, in the journal of changes.

Each setting is announced when it is first set, and stays so while states come and go, until all is put back;
of a search each value, too, so that whoever reverts it knows them from what somebody else has set. It is
never said to be done: what is in force is another thing from one state to the next, so a revert puts it back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal

from leadline.errors import LeadlineError, ResultError
from leadline.tuning.changing.applying import reach_of
from leadline.tuning.changing.cluster_lock import PROOF_S, ClusterLock
from leadline.tuning.changing.journal import TuningJournal
from leadline.tuning.changing.state import JournalledChange
from leadline.tuning.settings import Movement, Price, Setting, SettingAccess, SettingChange
from leadline.tuning.system import TuningSystem


class ProofJournal:
    """The journal while one proof or search holds its lock."""

    def __init__(self, journal: TuningJournal, system: TuningSystem) -> None:
        self._journal, self._system = journal, system
        self._lock = ClusterLock(system.around, PROOF_S)
        self._run = ""
        self._own: set[int] = set()

    @property
    def place(self) -> str:
        """Where it is, for whoever looks for it later."""
        return str(self._journal.directory)

    def hold_cluster(self) -> None:
        """Nobody else changes settings of the cluster until this ends. Raises RefusedChangeError."""
        self._lock.take()

    def renew(self) -> None:
        """Called before and after each trial. Raises TuningError where the cluster's lock was broken."""
        self._lock.renew()

    def release(self) -> None:
        """Others may."""
        self._lock.release()

    def announce(self, one: ProvedSetting, value: str) -> None:
        """Said and synced before the setting has this value for the first time."""
        if one.setting.of_cluster:
            self.hold_cluster()
        if self._entry(one) is None:
            if not self._run:
                room = [(one.change, one.setting)]
                self._run = self._journal.begin(reach_of(self._system), 0.0, {}, room)
            life = self._system.life(one.setting, one.change.place)
            self._own.add(self._journal.changing(self._run, one.change, one.setting, life).number)
        entry = self._entry(one)
        if entry is not None and not entry.is_ours(value):  # of a search, whose change names no value
            self._journal.say("trying", number=entry.number, value=value)

    def in_doubt(self, one: ProvedSetting) -> bool:
        """Whether a proof that was killed left it: what it asked for last may be done after it is read.

        So it may be where the journal cannot be read any more.
        """
        try:
            entry = self._entry(one)
        except LeadlineError:
            return True
        return entry is not None and entry.number not in self._own

    def back(self, one: ProvedSetting) -> None:
        """Said once it is as it was; where it cannot be said a revert finds it so, or puts it back again."""
        with suppress(LeadlineError):
            self._say_back(one)

    def _say_back(self, one: ProvedSetting) -> None:
        entry = self._entry(one)
        if entry is None:
            return
        self._journal.say("undone", number=entry.number, how="put back")
        if not self._journal.state().outstanding(entry.run):
            self._journal.say("ended", run=entry.run, how="put back: the proof has ended")
            self._run = "" if entry.run == self._run else self._run

    def _entry(self, one: ProvedSetting) -> JournalledChange | None:
        return next(
            (found for found in self._journal.state().outstanding() if found.change == one.change), None
        )


@contextmanager
def kept(journal: TuningJournal, system: TuningSystem) -> Iterator[ProofJournal]:
    """Nobody else changes settings by this journal meanwhile. Raises RefusedChangeError, naming who."""
    with journal.locked():
        found = ProofJournal(journal, system)
        try:
            yield found
        finally:
            found.release()


WITHOUT, WITH = "without", "with"
OWN_MOUNT = "a mount of its own"  # where settings are read that a mount has for life
DesignKind = Literal["together", "one_by_one", "factorial"]


@dataclass(frozen=True)
class ProofDesign:
    """In which `states` a proof measures: by name, what is changed there; the first is `without`."""

    kind: DesignKind
    states: Mapping[str, tuple[str, ...]]

    def as_json(self) -> dict[str, Any]:
        """What the manifest keeps."""
        return {"kind": self.kind, "states": {name: list(on) for name, on in self.states.items()}}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ProofDesign:
        """The inverse of `as_json`."""
        return cls(value["kind"], {str(name): tuple(on) for name, on in value["states"].items()})


@dataclass(frozen=True)
class ProvedSetting:
    """A setting with the change that is to be proved, and what was in force `without` it, by where."""

    setting: Setting
    change: SettingChange
    without: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """What the manifest keeps: also what verdicts need, who know no table of settings."""
        setting = self.setting
        return {
            **self.change.as_json(),
            "without": dict(self.without),
            "title": setting.title,
            "layer": setting.layer,
            "unit": setting.unit,
            "needs": setting.needs,
            "persist": setting.persist,
            "access": {"kind": setting.access.kind, "options": dict(setting.access.options)},
            "moves": [asdict(one) for one in setting.moves],
            "prices": [asdict(one) for one in setting.prices],
            "sources": list(setting.sources),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ProvedSetting:
        """The inverse of `as_json`, as far as putting back and reading need it."""
        access = value["access"]
        setting = Setting(
            name=value["setting"],
            title=value["title"],
            layer=value["layer"],
            roles=(),
            access=SettingAccess(access["kind"], access["options"]),
            means="",
            unit=value["unit"],
            default="",
            needs=value["needs"],
            persist=value["persist"],
            sources=tuple(value["sources"]),
            prices=tuple(Price(**one) for one in value["prices"]),
            moves=tuple(Movement(**one) for one in value["moves"]),
        )
        return cls(setting, SettingChange.from_json(value), value["without"])


def as_manifest(
    proved: tuple[ProvedSetting, ...],
    design: ProofDesign | None = None,
    journal: str = "",
    mounts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The part of a manifest that says what is proved, in which journal it stands, and on which `mounts`."""
    found: dict[str, Any] = {"settings": [one.as_json() for one in proved]}
    found |= {"design": design.as_json()} if design else {}
    found |= {"mounts": dict(mounts)} if mounts else {}
    return {"proof": found | ({"journal": journal} if journal else {})}


def of_manifest(manifest: Mapping[str, Any]) -> tuple[ProvedSetting, ...]:
    """What a result proves; nothing where it proves nothing. Raises ResultError where that is damaged."""
    if "proof" not in manifest:
        return ()
    with _whole():
        return tuple(ProvedSetting.from_json(one) for one in manifest["proof"]["settings"])


def design_of_manifest(manifest: Mapping[str, Any]) -> ProofDesign:
    """Its states; results of older versions measure all settings together. Raises ResultError."""
    with _whole():
        proof = manifest["proof"]
        if "design" in proof:
            return ProofDesign.from_json(proof["design"])
        return ProofDesign(
            "together", {WITHOUT: (), WITH: tuple(one["setting"] for one in proof["settings"])}
        )


@contextmanager
def _whole() -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, AttributeError) as error:
        raise ResultError(
            f"what the result says of its settings is damaged: {type(error).__name__}: {error}",
            "restore the manifest from a copy",
        ) from None
