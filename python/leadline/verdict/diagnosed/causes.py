"""The list of causes, and which of them hold for a trial's figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

from leadline.errors import SpecError
from leadline.units import format_latency, format_percent, format_rate, format_size

if TYPE_CHECKING:
    import duckdb

    from leadline.study.target import TargetFacts
    from leadline.verdict.diagnosed.seen.values import Figures

Place = Literal["load", "client", "host", "network", "proxy", "osd", "mds", "cluster"]
EXPERIMENTS = ("depth", "jobs", "block", "syncs", "way")  # see experiments.py
TOLD = ("direct", "full", "rest")
PLACES: tuple[Place, ...] = ("load", "client", "host", "network", "proxy", "osd", "mds", "cluster")


@dataclass(frozen=True)
class CauseEntry:
    """One entry of `table/PLACE.yaml`; each is judged on each trial's figures (docs/diagnosis.md lists them).

    - `place`: where on the way it is, the name of its file.
    - `told`: direct, where a counter says it by itself; full, where something is used up; rest, what is left
      where neither holds, and named only then.
    - `title`: in a few words, as it reads after "bound by"; `means`: what goes on.
    - `needs`: figures without which nobody can tell: where one was not observable the cause is left open.
    - `seen`: a condition in SQL on the figures, with `$thresholds`; `against`: words and a condition each.
    - `share`: an expression: of the time, 0 to 1, or how full what is full is.
    - `evidence`: what was seen; figures print as count, size, share, percent, latency, decimal, rate.
    - `experiment`: what decides where it is not sure; `predicts`: by how much the rate would change in those
      that `--active` makes, or `rest`: to what the time is without this part.
    - `remedy`: what to change, and its `price`; `source`: where that is known from.
    """

    name: str
    place: Place
    told: Literal["direct", "full", "rest"]
    title: str
    means: str
    needs: tuple[str, ...]
    seen: str
    share: str
    evidence: str
    experiment: str
    remedy: str
    price: str
    source: str
    against: tuple[Mapping[str, str], ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    predicts: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class CauseInTrial:
    """What one trial says of a cause.

    `holds` is None where a figure that it needs was not observable: `lacks` has them. `share` is of the time,
    0 to 1; `title` and `evidence` have the trial's figures; `against` is what speaks against it here.
    """

    name: str
    holds: bool | None
    share: float = 0.0
    title: str = ""
    evidence: str = ""
    against: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


@cache
def causes() -> tuple[CauseEntry, ...]:
    """Every cause, place by place along the way."""
    table = resources.files("leadline.verdict.diagnosed").joinpath("table")
    texts = ((place, table.joinpath(f"{place}.yaml").read_text(encoding="utf-8")) for place in PLACES)
    return tuple(one for place, text in texts for one in read_causes(text, place))


def applying(facts: TargetFacts) -> tuple[CauseEntry, ...]:
    """The causes that there can be on the way to a target: a local file system has no link and no OSD."""
    clustered = facts.ceph is not None or facts.on_cluster or facts.behind_server
    on_the_way: dict[Place, bool] = {
        **{"network": facts.is_remote, "proxy": facts.behind_server},
        **{"osd": clustered, "mds": clustered, "cluster": clustered},
    }
    return tuple(
        cause
        for cause in causes()
        if on_the_way.get(cause.place, True) and (clustered or not _OF_CLIENT & set(cause.needs))
    )


# Figures of the client of a cluster, which other causes of the client and the work do without.
_OF_CLIENT = frozenset(
    {"client_thread_share", "client_in_flight", "client_blocked_per_s", "metadata_per_operation"}
)


def of_itself(table: tuple[CauseEntry, ...]) -> tuple[CauseEntry, ...]:
    """The causes that a counter says by itself, whatever a trial's own figures are."""
    return tuple(cause for cause in table if cause.told == "direct")


def read_causes(text: str, place: Place) -> tuple[CauseEntry, ...]:
    """The causes of a place. Raises SpecError where one lacks a part, or has one too many."""
    from ruamel.yaml import YAML

    entries: dict[str, dict[str, Any]] = YAML(typ="safe").load(text)
    found = []
    for name, entry in entries.items():
        try:
            parts: dict[str, Any] = {key: _frozen(value) for key, value in entry.items()}
            one = CauseEntry(name=name, place=place, **parts)
        except TypeError as error:
            raise SpecError(str(error), "see CauseEntry", source=_file_of(place), key=name) from None
        if one.told not in TOLD:
            words = f"use one of {', '.join(TOLD)}"
            raise SpecError(f"{one.told!a} is no way to tell", words, source=_file_of(place), key=name)
        for experiment in set(one.predicts) - set(EXPERIMENTS):
            words = f"use some of {', '.join(EXPERIMENTS)}"
            raise SpecError(f"{experiment!a} is no experiment", words, source=_file_of(place), key=name)
        found.append(one)
    return tuple(found)


def _file_of(place: Place) -> str:
    return f"table/{place}.yaml"


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def judged(figures: Figures, table: tuple[CauseEntry, ...] | None = None) -> dict[str, CauseInTrial]:
    """Each cause of the table, judged by the figures of one trial.

    Raises SpecError where an entry names a figure that there is none of.
    """
    import duckdb

    columns = ", ".join(f'?::{"VARCHAR" if name in _TEXTS else "DOUBLE"} AS "{name}"' for name in figures)
    found = {}
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE trial AS SELECT {columns}", list(figures.values()))
        for cause in causes() if table is None else table:
            try:
                found[cause.name] = _judged(connection, cause, figures)
            except (duckdb.Error, KeyError) as error:
                words = str(error).splitlines()[0]
                raise SpecError(
                    words,
                    "see the figures in docs/diagnosis.md",
                    source=_file_of(cause.place),
                    key=cause.name,
                ) from None
    return found


# Figures that are names: everything else is a number.
_TEXTS = frozenset(
    {"client_thread", "port", "slowest_port", "resent_at", "slow_osd", "loaded_osd", "blocked_osd"}
    | {
        "health_checks",
        "flags",
        "full_checks",
        "unanswered_at",
        "receiver_full_at",
        "governor",
        "last_osd",
        "logging_osd",
    }
    | {
        f"{kind}_{what}"
        for kind in ("osd", "mds", "mon", "mgr", "proxy")
        for what in ("throttled", "stopped", "thread")
    }
)


def _judged(connection: duckdb.DuckDBPyConnection, cause: CauseEntry, figures: Figures) -> CauseInTrial:
    lacks = tuple(name for name in cause.needs if figures[name] is None)
    if lacks:
        return CauseInTrial(cause.name, None, lacks=lacks)
    if not _asked(connection, cause, f"coalesce({cause.seen}, false)"):
        return CauseInTrial(cause.name, False)
    share = float(_asked(connection, cause, f"coalesce(({cause.share})::DOUBLE, 0)") or 0.0)
    shown = {name: ShownFigure(value) for name, value in figures.items()}
    against = tuple(
        one["words"] for one in cause.against if _asked(connection, cause, f"coalesce({one['where']}, false)")
    )
    return CauseInTrial(
        cause.name,
        True,
        min(max(share, 0.0), 1.0),
        cause.title.format(**shown),
        cause.evidence.format(**shown),
        against,
    )


def _asked(connection: duckdb.DuckDBPyConnection, cause: CauseEntry, expression: str) -> Any:
    used = {name: value for name, value in cause.thresholds.items() if f"${name}" in expression}
    answer = connection.execute(f"SELECT {expression} FROM trial", used).fetchone()  # noqa: S608 - our own table
    return None if answer is None else answer[0]


class ShownFigure:
    """A figure that a template prints as count, size, rate, share, latency or decimal."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __format__(self, form: str) -> str:
        value = self._value
        if value is None:
            return "an unknown number" if form else "one that is not known"
        if form == "count":
            return f"{value:,.0f}"
        if form == "decimal":
            return f"{value:.2g}"
        forms: dict[str, Callable[[float], str]] = {
            "size": format_size,
            "rate": format_rate,
            "share": lambda share: f"{100 * share:.0f} %",
            "percent": format_percent,
            "latency": lambda seconds: format_latency(seconds * 1e9),
        }
        return str(forms.get(form, str)(value))
