"""The list of causes, and which of them hold for the figures of trials."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal

from leadline.errors import SpecError
from leadline.knowledge.evaluator import Answered, RuleCondition, answered
from leadline.knowledge.formats import ShownFigures
from leadline.knowledge.tables import entries, text_of

if TYPE_CHECKING:
    from leadline.study.target import TargetFacts
    from leadline.verdict.diagnosis.seen.values import Figures

Place = Literal["load", "client", "host", "network", "proxy", "osd", "mds", "cluster"]
EXPERIMENTS = ("depth", "jobs", "block", "syncs", "way")  # see experiments.py
_MANUAL = "docs/diagnosis.md"
# What a share is of; one kind is never compared with another.
SHARE_KINDS = {"time": "of the time", "part": "of the measured time", "full": "full"}
PLACES: tuple[Place, ...] = ("load", "client", "host", "network", "proxy", "osd", "mds", "cluster")


@dataclass(frozen=True)
class CauseEntry:
    """One entry of `table/PLACE.yaml`; each is judged on each trial's figures (docs/diagnosis.md lists them).

    - `place`: where on the way it is, the name of its file.
    - `told`: direct, where a counter says it by itself; full, where something is used up; rest, what is left
      where neither holds, and named only then; aside, a state for which nothing says that requests wait.
    - `title`: in a few words, as it reads after "bound by"; `means`: what goes on.
    - `needs`: figures without which nobody can tell: where one was not observable the cause is left open.
    - `seen`: a condition in SQL on the figures, with `$thresholds`; `against`: words and a condition each.
    - `share`: an expression without constants, 0 to 1; `share_kind`: `time`, the part of a request's time;
      `full`, how full what is full is; `part`, the part of the time in which an event held. A cause that
      nothing measures has none: it is present, and `measured_by` says what would measure it. Nor has a wait
      that is longer than the request.
    - `evidence`: what was seen; figures print as count, size, share, percent, latency, decimal, rate.
    - `experiment`: what decides where it is not sure; `predicts`: by how much the rate would change in those
      that `--active` makes, or `rest`: to what the time is without this part.
    - `remedy`: what to change, and its `price`; `source`: where that is known from.
    - `which`: the figure that names what it is, such as an OSD: trials must name the same.
    - `every_device`: the devices of all OSDs are used up alike, so that more of them give more.
    """

    name: str
    place: Place
    told: Literal["direct", "full", "rest", "aside"]
    title: str
    means: str
    needs: tuple[str, ...]
    seen: str
    evidence: str
    experiment: str
    remedy: str
    price: str
    source: str
    share: str = ""
    share_kind: str = ""
    measured_by: str = ""
    which: str = ""
    against: tuple[Mapping[str, str], ...] = ()
    thresholds: Mapping[str, int | float] = field(default_factory=dict)
    predicts: Mapping[str, float | str] = field(default_factory=dict)
    every_device: bool = False
    setting: str = ""
    shared: tuple[str, ...] = ()

    @property
    def plain_title(self) -> str:
        """Its title without what a trial's figures say."""
        return re.sub(r"(, \w+| \(|,)? ?\{[\w:]+\}\)?", "", self.title)


@dataclass(frozen=True)
class CauseInTrial:
    """What one trial says of a cause.

    `holds` is None where a figure that it needs was not observable: `lacks` has them. `share` is 0 to 1, and
    None where nothing measures it here: `lacks` has what its share would need. `title` and `evidence` have
    the trial's figures; `against` is what speaks against it here.
    """

    name: str
    holds: bool | None
    share: float | None = None
    title: str = ""
    evidence: str = ""
    against: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


@cache
def causes() -> tuple[CauseEntry, ...]:
    """Every cause, place by place along the way."""
    texts = ((place, text_of("leadline.verdict.diagnosis", _file_of(place))) for place in PLACES)
    return tuple(one for place, text in texts for one in read_causes(text, place))


def applying(facts: TargetFacts) -> tuple[CauseEntry, ...]:
    """The causes that there can be on the way to a target: a local file system has no link and no OSD, and
    what no ceph-fuse serves is not held up by one.
    """
    clustered = facts.ceph is not None or facts.on_cluster or facts.behind_server
    on_the_way: dict[Place, bool] = {
        **{"network": facts.is_remote, "proxy": facts.behind_server},
        **{"osd": clustered, "mds": clustered, "cluster": clustered},
    }
    absent = set() if facts.through_ceph_fuse else set(_OF_CEPH_FUSE)
    absent |= set() if clustered else set(_OF_CLUSTER)
    absent |= set() if facts.host_caches or facts.behind_server else set(_OF_CACHES)
    return tuple(
        cause for cause in causes() if on_the_way.get(cause.place, True) and not absent & set(cause.needs)
    )


# Figures of what is not on every way; other causes of the client and the work do without them.
_OF_CEPH_FUSE = ("client_thread_share", "client_in_flight", "client_blocked_per_s", "read_ahead_bytes")
_OF_CLUSTER = ("metadata_per_operation",)
_OF_CACHES = ("streamed",)


def of_itself(table: tuple[CauseEntry, ...]) -> tuple[CauseEntry, ...]:
    """The causes that a counter says by itself, whatever a trial's own figures are."""
    return tuple(cause for cause in table if cause.told == "direct")


def read_causes(text: str, place: Place) -> tuple[CauseEntry, ...]:
    """The causes of a place. Raises SpecError where one lacks a part, or has one too many."""
    source = _file_of(place)
    found = entries(text, source, CauseEntry, place=place)
    for one in found:
        if (not one.share or one.share_kind not in SHARE_KINDS) and (one.share or not one.measured_by):
            words = f"give a share with a share_kind of {', '.join(SHARE_KINDS)}, or what would measure it"
            raise SpecError("its share is measured by nothing", words, source=source, key=one.name)
        for experiment in set(one.predicts) - set(EXPERIMENTS):
            words = f"use some of {', '.join(EXPERIMENTS)}"
            raise SpecError(f"{experiment!a} is no experiment", words, source=source, key=one.name)
    return found


def _file_of(place: Place) -> str:
    return f"table/{place}.yaml"


def judged(
    trials: Sequence[Figures], table: tuple[CauseEntry, ...] | None = None
) -> list[dict[str, CauseInTrial]]:
    """Each cause of the table, judged by the figures of each trial.

    All trials and causes in one question: a report has hundreds of trials. Raises SpecError where an entry
    names a figure that there is none of.
    """
    table = causes() if table is None else table
    answers = answered(trials, _TEXTS, [_condition(cause) for cause in table])
    found = []
    for figures, given in zip(trials, answers, strict=True):
        shown = ShownFigures(figures)
        found.append(
            {cause.name: _judged(cause, figures, shown, one) for cause, one in zip(table, given, strict=True)}
        )
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
        "half_duplex_at",
        "logging_osd",
    }
    | {
        f"{kind}_{what}"
        for kind in ("osd", "mds", "mon", "mgr", "proxy")
        for what in ("throttled", "stopped", "thread")
    }
)


def _condition(cause: CauseEntry) -> RuleCondition:
    against = tuple(one["where"] for one in cause.against)
    source = _file_of(cause.place)
    return RuleCondition(cause.name, cause.seen, cause.share, source, _MANUAL, against, cause.thresholds)


def _judged(cause: CauseEntry, figures: Figures, shown: ShownFigures, said: Answered) -> CauseInTrial:
    """What one trial says of a cause."""
    try:
        lacks = tuple(name for name in cause.needs if figures[name] is None)
        if lacks or not said.holds:
            return CauseInTrial(cause.name, None if lacks else False, lacks=lacks)
        unmeasured = tuple(name for name in figures_in(cause.share) if figures[name] is None)
        title, evidence = cause.title.format_map(shown), cause.evidence.format_map(shown)
    except KeyError as error:
        raise _condition(cause).wrong(str(error)) from None
    words = tuple(one["words"] for one, speaks in zip(cause.against, said.against, strict=True) if speaks)
    share = _measured(cause, said.share)
    return CauseInTrial(cause.name, True, share, title, evidence, words, unmeasured)


def figures_in(share: str) -> tuple[str, ...]:
    """The figures of which a share is made."""
    return tuple(dict.fromkeys(re.findall(r"[a-z]\w*", share)))


def _measured(cause: CauseEntry, share: float | None) -> float | None:
    """0 to 1; None where nothing measured it: a part of nothing, or a wait that is longer than the request.

    Such a wait is none of the request's: a server or a cache had answered it before.
    """
    if share is None or not math.isfinite(share) or (cause.share_kind == "time" and share > _AT_MOST):
        return None
    return min(max(share, 0.0), 1.0)


_AT_MOST = 1.1  # of a request's time by two observers, whose samples differ a little
