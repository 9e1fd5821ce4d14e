"""What the lab's file holds of an injected fault: enough to undo it by whoever comes next. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.errors import UsageError


@dataclass(frozen=True)
class LabAction:
    """One thing to be done, as data: a kind of `actions.DEEDS` and its words."""

    kind: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class FaultStep:
    """What is done, and what undoes it, which may be done any number of times, and before the step itself.

    `undo` None: it passes by itself.
    """

    do: LabAction
    undo: LabAction | None = None


@dataclass(frozen=True)
class FaultPlan:
    """One fault before it is done. `words` are for people.

    `holds` names what it takes hold of, such as `osd.1/cpu`; two faults never hold one thing, nor one a part
    of what the other holds.
    """

    words: str
    steps: tuple[FaultStep, ...]
    holds: tuple[str, ...]


@dataclass(frozen=True)
class Injection:
    """One fault in the lab's file. `undo` is in the order in which it is to be undone.

    `done` is False until its last step was done: then its maker was killed, or is at work.
    `until_unix_s` is when its maker means to undo it; None for a fault that stays.
    """

    id: str
    kind: str
    on: str
    options: dict[str, str]
    words: str
    holds: tuple[str, ...]
    undo: tuple[LabAction, ...]
    began_unix_s: float
    until_unix_s: float | None = None
    done: bool = False

    @property
    def title(self) -> str:
        """`osd-paused on osd.1`."""
        return f"{self.kind} on {self.on}" if self.on else self.kind


def check_free(holds: tuple[str, ...], others: tuple[Injection, ...]) -> None:
    """Raises UsageError where a fault in force holds what another is about to take hold of."""
    for other in others:
        for taken in other.holds:
            for wanted in holds:
                if f"{wanted}/".startswith(f"{taken}/") or f"{taken}/".startswith(f"{wanted}/"):
                    raise UsageError(
                        f"{wanted} is held by a fault in force: {other.title} ({other.id})",
                        f"Undo it first: leadline lab inject --clear {other.id}",
                    )
