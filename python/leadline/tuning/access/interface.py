"""What every kind of access does, and the values that it answers with. A kind knows no other kind.

A value that cannot be read is None with a reason; it is never a guess.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leadline.errors import RefusedChangeError
from leadline.tuning.settings import Setting, SettingPlace
from leadline.tuning.surroundings import TunedSurroundings

Origin = Literal["set", "default", ""]
TRUE_WORDS = ("true", "on", "set", "yes", "1", "enabled")
FALSE_WORDS = ("false", "off", "unset", "no", "0", "disabled")


@dataclass(frozen=True)
class SettingReading:
    """A value at a place. `origin` "set" is one that is put back by setting it, "default" by removing ours.

    With "default" the value may be None where nothing tells what the default is; with "" it could not be
    read, and `reason` says why.
    """

    value: str | None
    origin: Origin = ""
    reason: str = ""

    @property
    def known(self) -> bool:
        """Whether the place answered, so that what is there can be put back."""
        return self.origin != ""

    @property
    def before(self) -> str | None:
        """What a change from here is put back to; None: it is removed."""
        return self.value if self.origin == "set" else None


@dataclass(frozen=True)
class InForce:
    """What one daemon works with; `origin`: default, mon, file, env, cmdline or override."""

    daemon: str
    value: str | None
    origin: str = ""
    reason: str = ""


class AccessKind(ABC):
    """One kind of access to the settings of the surroundings that it is made with."""

    root_needed = False  # to write
    first_is_all = False  # of several places the first is meant where none is named
    lasting = False  # what is set outlives a reboot of this host

    def __init__(self, around: TunedSurroundings) -> None:
        self.around = around

    @abstractmethod
    def places(self, setting: Setting) -> tuple[SettingPlace, ...]:
        """Where the setting has a value of its own; none where it has none here."""

    def named(self, _setting: Setting, _word: str) -> SettingPlace | None:
        """A place that `places` does not list and that this word names; None where it names none."""
        return None

    @abstractmethod
    def read(self, setting: Setting, place: SettingPlace) -> SettingReading:
        """Its value there. Raises nothing: what went wrong is the reason."""

    @abstractmethod
    def write(self, setting: Setting, place: SettingPlace, value: str) -> None:
        """Set it. Raises TuningError where the system refuses."""

    def unset(self, setting: Setting, place: SettingPlace) -> None:
        """Take away what was set, so that the default is in force. Raises TuningError.

        A kind whose readings are always "set", as those of the kernel, is never asked.
        """
        raise NotImplementedError

    def in_force(self, setting: Setting, place: SettingPlace) -> tuple[InForce, ...]:
        """What each daemon works with; nothing where the value that is read is all there is."""
        return ()

    def life(self, setting: Setting, place: SettingPlace) -> str:
        """Names what a value lives with: where it is another, what was set is gone. "" cannot be told."""
        return self.around.life(place.host)

    def why_not(self, setting: Setting, place: SettingPlace) -> str:
        """Why it cannot be written there, with what to do instead; "" where it can."""
        return ""


class ReadOnlyAccess(AccessKind):
    """What this program does not change; subclasses say in `why_not` how it is done."""

    def write(self, setting: Setting, place: SettingPlace, value: str) -> None:
        """Refused."""
        raise RefusedChangeError(
            f"{setting.name} is not changed by this program", self.why_not(setting, place)
        )

    def unset(self, setting: Setting, place: SettingPlace) -> None:
        """Refused."""
        self.write(setting, place, "")


def word_of(setting: Setting, on: bool) -> str:
    """The word that the setting's own list has for something that is there, or not."""
    words = TRUE_WORDS if on else FALSE_WORDS
    listed: Sequence[str] = setting.one_of or ()
    return next((word for word in listed if word.lower() in words), words[0])


def is_on(value: str) -> bool:
    """What a word of that kind says. Raises RefusedChangeError."""
    word = value.lower()
    if word not in (*TRUE_WORDS, *FALSE_WORDS):
        raise RefusedChangeError(f"{value!r} says neither on nor off", "write true or false")
    return word in TRUE_WORDS


def same_value(one: str | None, other: str | None) -> bool:
    """Whether two spellings are one value: spaces, numbers and truth values are compared as such."""
    if one is None or other is None:
        return one is other
    left, right = _plain(one), _plain(other)
    if left == right:
        return True
    try:
        return float(left) == float(right)
    except ValueError:
        pass
    for words in (("true", "yes", "on", "1"), ("false", "no", "off", "0")):
        if left in words and right in words:
            return True
    return False


def _plain(text: str) -> str:
    return " ".join(text.split()).lower()
