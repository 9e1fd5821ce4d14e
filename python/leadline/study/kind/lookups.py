"""What kinds of work find out about a host before a plan: values, and who looks.

A kind asks `Surroundings.lookup` for the type that it knows; who may touch the system hands them in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from leadline import units

Tracer = Literal["preload", "bpf", "off"]
SOURCE_FILES_MAX = 1_024  # of a transfer: each stands in the plan by its name


@dataclass(frozen=True)
class Input:
    """What a command reads, as it was found before anything was run: a directory or a file."""

    path: str
    files: int
    bytes: int
    names: tuple[str, ...] = ()  # of its first level


@dataclass(frozen=True)
class ApplicationFacts:
    """What was found out about a command and its input on this host.

    `executable` is where the program lies, None with `missing` where it cannot be started. `untraceable`
    gives for each tracer that cannot follow the command the reason. `here` names the words of the command
    that are files of the directory in which leadline was started.
    """

    executable: str | None
    missing: str = ""
    input: Input | None = None
    untraceable: tuple[tuple[Tracer, str], ...] = ()
    here: tuple[str, ...] = ()

    def reason(self, tracer: Tracer) -> str | None:
        """Why a tracer cannot follow the command; None where it can."""
        return dict(self.untraceable).get(tracer)


@dataclass(frozen=True)
class Look:
    """Finds out about a command and its input on this host."""

    find: Callable[[tuple[str, ...], str | None], ApplicationFacts]


@dataclass(frozen=True)
class Film:
    """A film that is made where no source is named: its picture, and how long it is."""

    width: int
    height: int
    frame_rate: int
    duration_ns: int

    @property
    def elements(self) -> int:
        """Of all its pictures together."""
        return self.duration_ns * self.frame_rate * self.width * self.height // units.NS_PER_S

    @property
    def name(self) -> str:
        """How it is called among the films that were made before."""
        length = units.exact_duration(self.duration_ns)
        return f"film1-{self.width}x{self.height}-{self.frame_rate}fps-{length}.mov"


@dataclass(frozen=True)
class SourceFacts:
    """What was found of a source. `problem` says why it cannot be used; `path` None where none is needed.

    `made` is false for a film that is still to be made: its size is then an estimate. `elements` is how many
    elements all its pictures have together, about, where that is known.
    """

    path: str | None
    bytes: int = 0
    made: bool = True
    width: int | None = None
    elements: int | None = None
    audio: bool = True
    problem: str = ""


@dataclass(frozen=True)
class ProgramVersion:
    """A program's version as it says itself; None where it says none."""

    words: str
    numbers: tuple[int, ...] | None


@dataclass(frozen=True)
class Scout:
    """Finds out what a pipeline needs to know of this host: `source` of a path or a film (and whether it must
    be a video), `version` of a program."""

    source: Callable[[str | None, Film | None, bool], SourceFacts]
    version: Callable[[str], ProgramVersion]


@dataclass(frozen=True)
class SourceFile:
    """A file that is sent."""

    path: str
    bytes: int


@dataclass(frozen=True)
class SourceLook:
    """Finds the files at a path on this host, in the order of their names.

    Raises TargetError where there is none, or more than SOURCE_FILES_MAX.
    """

    find: Callable[[str], Sequence[SourceFile]]


@dataclass(frozen=True)
class HostRoom:
    """What a process can still take of a host's memory; `hosts` is how many take part in the study.

    Of several hosts it is that of the one with the least. `words` says what bounds it.
    """

    available_bytes: int
    words: str = "memory that is available"
    hosts: int = 1


@dataclass(frozen=True)
class FioLook:
    """`find` gives the version of a program that is there, or None and why it is not."""

    find: Callable[[str], tuple[str | None, str]]
