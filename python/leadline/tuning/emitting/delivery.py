"""What is to be so on a host or cluster, before any format: files, deeds, mounts, and what cannot be carried.

Native formats render one kind of them each; tools of configuration management render all.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from leadline.mounting.plan import NewMount
from leadline.tuning.emitting.evidence import Evidence
from leadline.tuning.settings import Setting

Match = Literal["whole", "part", "absent"]


@dataclass(frozen=True)
class AskedValue:
    """A value that is wanted: checked. `subject` is a device, pool, directory … or "" where all have one."""

    setting: Setting
    value: str
    subject: str = ""
    evidence: Evidence | None = None

    @property
    def words(self) -> str:
        """As it was asked for."""
        return f"{self.setting.name}{'@' + self.subject if self.subject else ''}={self.value}"


@dataclass(frozen=True)
class DeliveredFile:
    """A file as it has to stand, and the commands by which a changed one takes effect; "" text is none."""

    path: str
    text: str
    effect: tuple[tuple[str, ...], ...] = ()
    mode: str = "0644"

    @property
    def name(self) -> str:
        """Without its folders."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class SettingDeed:
    """A value that a command sets. It is so already where what `read` prints is, holds or lacks `expected`.

    White space of what was read counts as one space each, and none at its ends.
    """

    title: str
    comments: tuple[str, ...]
    read: tuple[str, ...]
    write: tuple[str, ...]
    expected: str
    match: Match = "whole"


@dataclass(frozen=True)
class DeliveredMount:
    """A mount with the wanted options."""

    mount: NewMount
    comments: tuple[str, ...]


@dataclass(frozen=True)
class NotEmitted:
    """A value that a text does not hold, why, and which formats hold it."""

    asked: str
    why: str
    formats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rendered:
    """What a format made of it."""

    files: tuple[DeliveredFile, ...]
    left_out: tuple[NotEmitted, ...]


@dataclass(frozen=True)
class Emission:
    """What was asked for. `mounts` are the present mounts by their mount point."""

    asked: tuple[AskedValue, ...]
    mounts: Mapping[str, NewMount]


_EFFECT = {
    "live": "at once",
    "reconnect": "for connections made afterwards",
    "reopen": "for files opened afterwards",
    "remount": "at the next mount",
    "restart": "when the daemon is started again",
    "reboot": "at the next boot",
    "new_osd": "for OSDs made afterwards",
    "new_file": "for files made afterwards",
    "by_hand": "when done by hand",
}


def comments(asked: AskedValue) -> tuple[str, ...]:
    """Lines above a value, without the sign of a comment: what it is, its price, its evidence."""
    setting = asked.setting
    lines = [f"{asked.words}: {setting.title}; in force {_EFFECT[setting.needs]}"]
    lines += [f"price ({price.kind}): {price.words}" for price in setting.prices]
    if setting.irreversible:
        lines.append(f"cannot be taken back: {setting.irreversible}")
    if asked.evidence is None:
        lines.append("evidence: none; leadline tune prove measures it")
    else:
        lines.append(f"evidence: {asked.evidence.words} ({asked.evidence.source})")
    return tuple(one_line(line) for line in lines)


def one_line(text: str) -> str:
    """Nothing in it ends a comment, or hides what stands there."""
    return " ".join(
        "".join(" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in text).split()
    )


def hashed(lines: tuple[str, ...], indent: str = "") -> str:
    """As comments that begin with a hash."""
    return "".join(f"{indent}# {line}\n" for line in lines)
