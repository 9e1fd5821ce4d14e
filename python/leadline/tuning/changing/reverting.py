"""Puts back what a journal says was changed; never what somebody else has changed since.

It needs the journal alone: the program that made the changes may be long gone, and the host rebooted. Nothing
is kept from being put back by a journal that cannot be written: what was put back is found so the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from leadline.errors import LeadlineError, TuningError
from leadline.foreign import reading
from leadline.tuning.changing.journal import TuningJournal
from leadline.tuning.changing.state import JournalledChange, Reach
from leadline.tuning.system import TuningSystem, is_before


@dataclass
class Reverted:
    """In words: what was put `back`, was `gone` already (by a reboot, for one), and what is `left`.

    `unwritten` is why the journal does not say so; "" where it does.
    """

    back: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    foreign: bool = False  # something was left as somebody else has changed it
    unwritten: str = ""


def reached(reach: Reach, restart: Callable[[str], None] | None = None) -> TuningSystem:
    """The system that a run changed, from what the journal says alone."""
    return TuningSystem(
        conf=Path(reach.conf) if reach.conf else None,
        client_name=reach.client_name or None,
        namespaces={host: Path(path) for host, path in reach.namespaces.items()},
        restart=restart,
        known={},
    )


def revert(
    system: TuningSystem | None,
    journal: TuningJournal,
    *,
    run: str = "",
    force: bool = False,
    forget: bool = False,
    restart: Callable[[str], None] | None = None,
    wait_s: float = 0.0,
) -> Reverted:
    """Put back what is outstanding, of one run or of all, the last change first.

    `system` None: each run's own, as the journal has it. `force` overwrites what somebody else has set since;
    `forget` leaves that, and what cannot be reached, for good.
    """
    with journal.locked(wait_s):
        state = journal.state()
        systems: dict[str, TuningSystem] = {}

        def system_of(one: JournalledChange) -> TuningSystem:
            if system is None and one.run not in systems:
                systems[one.run] = reached(state.runs[one.run].reach, restart)
            return system or systems[one.run]

        try:
            return put_back(journal, state.outstanding(run), system_of, force=force, forget=forget)
        finally:
            for own in systems.values():
                own.close()


def put_back(
    journal: TuningJournal,
    changes: Iterable[JournalledChange],
    system_of: Callable[[JournalledChange], TuningSystem],
    *,
    force: bool = False,
    forget: bool = False,
) -> Reverted:
    """Put these back, in this order, whoever remembers them; the journal only hears of it."""
    found = Reverted()
    for one in changes:
        what = f"{one.change.setting} on {one.change.place.words}"
        try:
            with reading(f"{journal.path}, line {one.line or 'unknown'}", "set it by hand", TuningError):
                how = _Place(system_of(one), one).put_back(found, what, force=force, forget=forget)
        except LeadlineError as error:
            found.left.append(f"{what}: {error.message}")
            continue
        if how:
            why = journal.say_if_it_can("undone", number=one.number, how=how)
            found.unwritten = found.unwritten or why
    return found


class _Place:
    """One journalled change, and the system that it was made on, which knows its setting as it was then."""

    def __init__(self, system: TuningSystem, one: JournalledChange) -> None:
        self.one = one
        self.system = system.knowing(one.setting)

    def put_back(self, found: Reverted, what: str, *, force: bool, forget: bool) -> str:
        """How it ended; "" where it is still outstanding."""
        one, change = self.one, self.one.change
        try:
            if self._is_gone():
                found.gone.append(f"{what}: what it was set on is not there any more, and the value with it")
                return "gone"
            now = self.system.read(one.setting, change.place)
            if not now.known:
                return self._left(found, f"{what}: cannot be read: {now.reason}", forget)
            as_before = is_before(now, change)
            if as_before and one.done:
                found.back.append(f"{what}: it was back already")
                return "back already"
            foreign = not as_before and not (now.origin == "set" and one.is_ours(now.value))
            if foreign and not force:
                found.foreign = True
                words = (
                    f"{what}: somebody else has set it to {now.value} since;"
                    f" it was {change.before or 'not set'}, and we set {', '.join(one.values)}"
                )
                return self._left(found, words, forget)
            # One in doubt is put back even where it reads as before: what a killed program asked of a
            # monitor may be done after it was read.
            self.system.put_back(change)
        except LeadlineError as error:
            return self._left(found, f"{what}: {error.message}", forget)
        words = f"{what}: {change.before if change.before is not None else 'not set, as before'}"
        found.back.append(words + self._restarted())
        return "put back"

    def _restarted(self) -> str:
        """What daemons that read it when they start have to do; they are restarted where that may be."""
        if self.one.setting.needs != "restart":
            return ""
        restart = self.system.restart
        try:
            daemons = [one.daemon for one in self.system.in_force(self.one.setting, self.one.change.place)]
            if restart is not None:
                for daemon in daemons:
                    restart(daemon)
        except LeadlineError as error:
            return f"; it takes a restart, which failed: {error.message}"
        if not daemons or restart is not None:
            return ""
        return f"; {', '.join(daemons)} may work with leadline's value until restarted"

    def _is_gone(self) -> bool:
        """Where what held the value is another now, such as this boot or the process of a mount."""
        life = self.system.life(self.one.setting, self.one.change.place)
        return bool(life) and bool(self.one.life) and life != self.one.life

    def _left(self, found: Reverted, words: str, forget: bool) -> str:
        if forget:
            found.gone.append(f"{words}; it was left as it is")
            return "left"
        found.left.append(words)
        return ""
