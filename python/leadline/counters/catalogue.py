"""The list of counters, read from `counters.toml`: what each is, where it is read, and how two marks give it.

Knows nothing else of the program: the tables of a result and the observers are both made from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

How = Literal["difference", "larger", "at_start", "share", "cost", "largest_sample"]
OfHosts = Literal["sum", "machines", "largest", "once"]
Kind = Literal["gauge", "rate", "mean"]

# Names of one counter by age of release; a figure is the sum over several such.
Names = tuple[str, ...]
PLACES = ("osds", "mds", "client", "kernel", "device", "memory", "group", "worker", "run")
_KINDS: tuple[Kind, ...] = ("gauge", "rate", "mean")


@dataclass(frozen=True)
class TrialFigure:
    """A figure of a trial and the column of its table. `places`: reader -> what it adds up."""

    name: str
    unit: str
    how: How
    since: int
    places: Mapping[str, tuple[Names, ...]]
    part: str = ""
    of: str = ""
    less: tuple[str, ...] = ()
    sample: tuple[str, ...] = ()
    each_job: bool = False
    client_part: str = ""
    replicated_only: str = ""
    hosts: OfHosts = "sum"

    @property
    def type(self) -> str:
        """Its type in Python."""
        return "float" if self.unit == "share" else "int"

    @property
    def marked(self) -> tuple[str, ...]:
        """The counters of a mark that it is made from."""
        if self.how in ("cost", "largest_sample"):
            return ()
        return (self.of, self.part, *self.less) if self.how == "share" else (self.name,)


@dataclass(frozen=True)
class Described:
    """One row of the page: figures that are read alike."""

    figures: tuple[TrialFigure, ...]
    read_from: str
    not_observable: str


@dataclass(frozen=True)
class SampledFigure:
    """What is sampled of a daemon's perf dump."""

    metric: str
    kind: Kind
    names: Names
    unit: str


@cache
def _data() -> dict[str, Any]:
    import tomllib

    return tomllib.loads(resources.files("leadline.counters").joinpath("counters.toml").read_text("utf-8"))


@cache
def described() -> tuple[Described, ...]:
    """The page's rows."""
    return tuple(
        Described(
            tuple(_figure(name, entry, row) for name, entry in row["figures"].items()),
            row["read_from"],
            row["not_observable"],
        )
        for row in _data()["trial"]
    )


@cache
def trial_figures() -> tuple[TrialFigure, ...]:
    """Every figure of a trial, in the order of the file."""
    return tuple(figure for row in described() for figure in row.figures)


@cache
def read_at(place: str) -> tuple[TrialFigure, ...]:
    """The figures that are plain fields of one place."""
    return tuple(figure for figure in trial_figures() if place in figure.places)


@cache
def marked() -> tuple[str, ...]:
    """The counters that a mark asks for."""
    return tuple(dict.fromkeys(name for figure in trial_figures() for name in figure.marked))


@cache
def sampled(daemon: str) -> tuple[SampledFigure, ...]:
    """What is sampled of a kind of daemon: osd, client or mds."""
    return tuple(_sampled(metric, entry) for metric, entry in _data()["series"][daemon].items())


def _figure(name: str, entry: Mapping[str, Any], row: Mapping[str, Any]) -> TrialFigure:
    return TrialFigure(
        name=name,
        unit=row["unit"],
        how=row.get("figure", "difference"),
        since=row["since"],
        places={place: tuple(_sum(entry[place])) for place in PLACES if place in entry},
        part=entry.get("part", ""),
        of=entry.get("of", ""),
        less=tuple(entry.get("less", ())),
        sample=tuple(entry.get("sample", ())),
        each_job=row.get("each_job", False),
        client_part=row.get("client_part", "counters"),
        replicated_only=row.get("replicated_only", ""),
        hosts=row.get("hosts", "sum"),
    )


def _sum(value: str | list[str]) -> Iterator[Names]:
    for term in [value] if isinstance(value, str) else value:
        yield tuple(name.strip() for name in term.split("|"))


def _sampled(metric: str, entry: Mapping[str, str]) -> SampledFigure:
    kind = next(kind for kind in _KINDS if kind in entry)
    (names,) = _sum(entry[kind])
    return SampledFigure(metric, kind, names, "ms" if kind == "mean" else entry["unit"])
