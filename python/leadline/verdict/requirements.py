"""A file of requirements (docs/requirements.md): what a storage has to do, in figures, and whether a result
does it.

Figures have units as documents print them: MB are millions of bytes, MiB are 2^20. A requirement is met, not
met, or undecided. The judge is that of `--fail-if`: the whole 95 % interval fulfils what is asked, or none
of it does. What has no interval, or rests on a cell that is not VALID, is undecided here: a requirement is
no alarm but a promise.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from leadline.analysis.cells import CellTable, compare_cells
from leadline.errors import ResultError, SpecError
from leadline.sizing.request import AskedSizing, MetadataNeed, Pool, Population, Switched, WorkFrom
from leadline.units import NS_PER_S, format_quantity, printable
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.gates import Truth, all_of, any_of, judge_quantity
from leadline.verdict.kinds import known_metrics, metric_kind
from leadline.verdict.model import (
    UNUSABLE,
    Cell,
    Code,
    JudgedRequirement,
    Quantity,
    RequiredFigure,
    severity,
    worst,
)
from leadline.yamlio.fields import Whole, guarded, refuse
from leadline.yamlio.figures import UNITS, parse_figure
from leadline.yamlio.problems import Vocabulary, suggest, translate
from leadline.yamlio.yaml_source import Document, DocumentKind, Path, read_yaml, with_new_names

_MANY = ("numjobs", "copies", "streams", "clients")  # options that say how many processes a cell has
_FOLLOWS = ("size", "engine", "notes", "files")  # what may follow from the option that varies
_MOST_BLOCKS = 100  # beyond it no one waits: the figure is as good as met, or as good as missed
_ENOUGH_BLOCKS = 6


@dataclass(frozen=True)
class MeasuredCells:
    """A result's cells with what ratios are made of; `hosts` is how many took part, by cell."""

    cells: Sequence[Cell]
    tables: Mapping[str, CellTable]
    hosts: Mapping[str, int]
    alpha: float

    def processes(self, cell: Cell) -> int:
        """Of all hosts together."""
        own = next((cell.job[name] for name in _MANY if isinstance(cell.job.get(name), int)), 1)
        return own * self.hosts.get(cell.id, 1)


def judge_requirements(asked: Requirements, measured: MeasuredCells) -> tuple[JudgedRequirement, ...]:
    """Each requirement, in the order in which they are written."""
    return tuple(_judged(name, one, measured) for name, one in asked.requirements.items())


def _judged(name: str, one: Requirement, measured: MeasuredCells) -> JudgedRequirement:
    found = JudgedRequirement(name, one.source, one.words, one.where, None)
    named = [cell for cell in measured.cells if one.is_of(cell.target, cell.work)]
    cells = [cell for cell in named if measured.processes(cell) >= one.processes]
    if not cells:
        return replace(found, why=_none_of(one, named, measured), decides="measure such a cell")
    groups = [[_of_cell(cell, bound, measured) for bound in one.asked if not bound.over] for cell in cells]
    for bound in one.asked:
        if bound.over:
            pairs = list(_pairs(cells, bound.over))
            groups += [[_of_pair(base, other, bound, measured)] for base, other in pairs]
            if not pairs:
                why = f"no two of its cells differ in {bound.over} alone"
                decides = f"measure several levels, for example --set 'factors.{bound.over}=[1,2,4]'"
                return replace(found, why=why, decides=decides)
    groups = [group for group in groups if group]
    truths = [all_of([figure.met for figure in group]) for group in groups]
    met = any_of(truths) if one.cells == "one" else all_of(truths)
    return replace(found, met=met, figures=tuple(itertools.chain.from_iterable(groups)))


def _none_of(one: Requirement, named: Sequence[Cell], measured: MeasuredCells) -> str:
    if not named:
        return f"no cell is called {one.target}.{one.work}"
    most = max(measured.processes(cell) for cell in named)
    return f"no cell has {one.processes} processes, the most is {most}"


def _of_cell(cell: Cell, bound: AskedBound, measured: MeasuredCells) -> RequiredFigure:
    """A metric of a cell, or the part of it that each process or host has."""
    quantity = cell.metrics.get(bound.metric)
    if quantity is None:
        quantity = Quantity(None, "", reason=f"this workload has no {bound.metric}")
    share = bound.limit.share
    parts = {"process": measured.processes(cell), "host": measured.hosts.get(cell.id, 1), None: 1}[share]
    figure = f"{bound.metric} per {share}" if share else bound.metric
    figure += f", of {parts}," if parts > 1 else ""
    return _figure((cell,), figure, bound, _part(quantity, parts))


def _part(quantity: Quantity, parts: int) -> Quantity:
    """An equal part of it."""
    if parts == 1 or quantity.value is None:
        return quantity
    low, high = (None if end is None else end / parts for end in (quantity.low, quantity.high))
    return replace(quantity, value=quantity.value / parts, low=low, high=high)


def _pairs(cells: Sequence[Cell], option: str) -> Iterator[tuple[Cell, Cell]]:
    """Cells that differ in one option alone: each level with the one before it."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        if isinstance(cell.job.get(option), int | float):
            rest = {key: value for key, value in cell.job.items() if key not in (option, *_FOLLOWS)}
            groups.setdefault(json.dumps([cell.target, cell.kind, rest], sort_keys=True), []).append(cell)
    for group in groups.values():
        group.sort(key=lambda cell: cell.job[option])
        yield from (
            (one, other) for one, other in itertools.pairwise(group) if one.job[option] < other.job[option]
        )


def _of_pair(base: Cell, other: Cell, bound: AskedBound, measured: MeasuredCells) -> RequiredFigure:
    """The ratio of a metric of two cells, paired by block."""
    empty = CellTable("", (), {})
    sides = [measured.tables.get(cell.id, empty) for cell in (base, other)]
    ratio = compare_cells(sides[0], sides[1], bound.metric)
    quantity = Quantity(None, "1", reason=f"no block has {bound.metric} of both")
    if ratio is not None:
        known = ratio.estimate(measured.alpha)
        quantity = Quantity(known.value, "1", known.low, known.high, known.count)
    levels = [base.job[str(bound.over)], other.job[str(bound.over)]]
    figure = f"{bound.metric} at {bound.over} {levels[1]} over that at {levels[0]}"
    return _figure((base, other), figure, bound, quantity)


def _figure(cells: tuple[Cell, ...], figure: str, bound: AskedBound, quantity: Quantity) -> RequiredFigure:
    state = worst(cell.validity.state for cell in cells)
    ids = tuple(cell.id for cell in cells)
    found = RequiredFigure(ids, figure, bound.words, quantity, state, None, "")
    if state in UNUSABLE or quantity.value is None:
        return _without_figure(found, cells)
    limit = bound.limit.value if bound.over else bound.limit_in(quantity.unit)
    if limit is None:
        return replace(found, why=f"{quantity.unit or 'a share'} is not what {bound.limit.text} is")
    met, seen = _held(quantity, bound, limit)
    found = replace(found, seen=seen)
    if state == "DOUBTFUL" and (met is None or _could_differ(cells, bound, met)):
        return replace(found, why=_doubt(cells), decides=_remedy(cells))
    if quantity.low is None:
        more = f"--blocks {_ENOUGH_BLOCKS}"
        return replace(found, why="1 block: no CI", decides=f"measure more blocks: {more}")
    if met is None:
        why = f"the CI contains {bound.limit.text}"
        return replace(found, why=why, decides=_blocks_that_decide(quantity, limit))
    return replace(found, met=met)


def _could_differ(cells: Sequence[Cell], bound: AskedBound, met: bool) -> bool:
    """Whether a doubt could change the verdict: what is met stays met where the value may only be too bad."""
    if bound.over:
        return True
    asks_good = (bound.operator == ">=") == metric_kind(bound.metric).higher_is_better
    harmless = {"scatters", "lowers" if met == asks_good else "raises"}
    codes = (code for cell in cells for code in cell.validity.codes if code.state == "DOUBTFUL")
    return any(catalogue()[code.code].moves not in harmless for code in codes)


def _held(quantity: Quantity, bound: AskedBound, limit: float) -> tuple[Truth, str]:
    """What the judge of conditions says, and the figure with its interval in words."""
    met, _ = judge_quantity(quantity, bound.operator, limit, bound.limit.text)
    seen = format_quantity(quantity.value, quantity.unit)
    if quantity.low is not None and quantity.high is not None:
        low, high = (format_quantity(end, quantity.unit) for end in (quantity.low, quantity.high))
        seen += f" ({low} to {high}, {quantity.blocks} blocks)"
    return met, seen


def _without_figure(found: RequiredFigure, cells: Sequence[Cell]) -> RequiredFigure:
    if found.state in UNUSABLE:
        said = "INVALID" if found.state == "INVALID" else "not run"
        return replace(found, seen=said, why=_doubt(cells), decides=_remedy(cells))
    reason = printable(found.quantity.reason or "no reason is known")
    return replace(found, seen="not measured", why=f"not measured: {reason}", decides="measure it")


def _codes(cells: Sequence[Cell]) -> tuple[Cell, tuple[Code, ...]]:
    """The worst cell, and the codes that make it so."""
    cell = max(cells, key=lambda one: severity(one.validity.state))
    own = tuple(code for code in cell.validity.codes if code.state == cell.validity.state)
    return cell, own or cell.validity.codes


def _doubt(cells: Sequence[Cell]) -> str:
    cell, own = _codes(cells)
    state = cell.validity.state
    said = "could not be run" if state == "NOT_RUN" else f"is {state}"
    names = f" ({', '.join(code.code for code in own)})" if own else ""
    return f"{cell.id} {said}{names}"


def _remedy(cells: Sequence[Cell]) -> str:
    _, own = _codes(cells)
    return own[0].remedy if own else "run it again"


def _blocks_that_decide(quantity: Quantity, limit: float) -> str:
    """About how many blocks, if the figure stays: intervals narrow with the root of their number."""
    if quantity.value is None or quantity.low is None or quantity.high is None:
        return ""
    if min(quantity.value, quantity.low, limit) <= 0:
        return "more blocks may decide it"
    distance = abs(math.log(quantity.value / limit))
    half = math.log(quantity.high / quantity.low) / 2
    blocks = math.inf if distance <= 0 else math.ceil(quantity.blocks * (half / distance) ** 2) + 1
    if blocks > _MOST_BLOCKS:
        return f"not even {_MOST_BLOCKS} blocks would: the value equals the limit"
    return f"about {max(blocks, quantity.blocks + 1)} blocks would, if the value stays the same"


REQUIREMENTS_FORMAT = "leadline.requirements/1"
REQUIREMENTS_MAX = 200
FIGURES_MAX = 10  # that one requirement asks of the same cell
MANUAL = "see docs/requirements.md"
RATE_AT = "rate_at_"  # a search's metric is named after its bound, and so is in no list

_OTHER_NAMES = {
    "throughput": "bandwidth",
    "latency": "latency_mean",
    "latency_average": "latency_mean",
    "average_latency": "latency_mean",
    "latency_avg": "latency_mean",
    "time": "run_time",
}
_OTHER_KEYS = {
    "targets": "target",
    "works": "workload",
    "workloads": "workload",
    "source": "from",
    "section": "from",
    "min": "at_least",
    "max": "at_most",
    "scaling": "over",
    "fio": "study",
    "job": "study",
    "pipeline": "result",
}
_OF_EACH = ("B/s", "1/s", "B")
_DIMENSIONS = {"ns": "s", "s": "s", "B": "B", "B/s": "B/s", "1/s": "1/s", "1": "1"}
_WRITTEN = re.compile(
    r"\s*(?P<figure>[0-9][0-9_,]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*(?P<unit>[A-Za-zµ%][A-Za-zµ/]*|1/s)?"
    r"\s*(?:\s(?:per|a)\s+(?P<share>[a-z]+))?\s*"
)
_EXAMPLE = "write a number with its unit, for example 66 MB/s per process, 4ms, 2000000 or 90%"
Share = Literal["process", "host"]
SHARES: tuple[Share, ...] = ("process", "host")


@dataclass(frozen=True)
class Limit:
    """A figure that is asked for: in the unit of `dimension`, of the whole or of each `share` of it."""

    value: float
    dimension: str
    share: Share | None
    text: str
    bare: bool = False  # without any unit

    def in_unit(self, unit: str) -> float | None:
        """The figure in the unit of a metric; None where that is of another kind."""
        if _DIMENSIONS.get(unit) != self.dimension:
            return None
        return self.value * NS_PER_S if unit == "ns" else self.value


def parse_limit(value: object) -> Limit:
    """Read `66MB/s per process`. Raises SpecError."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise SpecError(f"{str(value)[:60]!a} is not a value", _EXAMPLE)
    text = f"{value:.15g}" if isinstance(value, float) else str(value).strip()
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise SpecError(f"{text[:60]!a} is not a value", _EXAMPLE)
    unit, share = found["unit"] or "1", found["share"]
    if unit not in UNITS or UNITS[unit][0] == "clock":
        raise SpecError(f"{unit!a} is no unit here", f"use one of: {', '.join(UNITS)}")
    if share is not None and share not in SHARES:
        raise SpecError(f"{share!a} cannot divide a metric", f"use {' or '.join(SHARES)}")
    figure = parse_figure(found["figure"], unit)
    if figure.value <= 0:
        raise SpecError("nothing is measured as 0 or below it", _EXAMPLE)
    return Limit(figure.value, figure.dimension, share, text, bare=not found["unit"])


def _checked(value: object) -> str:
    return parse_limit(value).text


def _known_metric(value: object) -> str:
    if isinstance(value, str) and (value in known_metrics() or value.startswith(RATE_AT)):
        return value
    word = str(value)[:60]
    raise SpecError(f"no metric is called {word!a}", suggest(_OTHER_NAMES.get(word, word), known_metrics()))


_Written = Annotated[str, BeforeValidator(guarded(_checked))]
_Metric = Annotated[str, BeforeValidator(guarded(_known_metric))]
_Text = Annotated[str, Field(max_length=1000)]
_Glob = Annotated[str, Field(min_length=1, max_length=200)]


class _Asked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _in_unit(limit: Limit, unit: str) -> float | None:
    return limit.value if unit == "1/s" and limit.bare else limit.in_unit(unit)


def _problem(
    metric: str, at_least: str | None, at_most: str | None, over: str | None
) -> tuple[str, str] | None:
    """What is wrong with a figure that is asked for, and the remedy."""
    if (at_least is None) == (at_most is None):
        return "either at_least or at_most is needed", "write one of the two"
    limit, unit = parse_limit(at_least or at_most), metric_kind(metric).unit
    if over is not None:
        ratio = limit.dimension == "1" and limit.share is None
        return None if ratio else (f"{limit.text!a} is no ratio", "with `over` write a plain number, or 90%")
    if _in_unit(limit, unit) is None:
        known = [name for name, (dimension, _) in UNITS.items() if dimension == _DIMENSIONS.get(unit)]
        return f"{limit.text!a} is not a value of {metric}", f"its unit is one of: {', '.join(known)}"
    if limit.share is not None and unit not in _OF_EACH:
        return f"{metric} is not what each {limit.share} has a part of", f"leave `per {limit.share}` out"
    return None


class AskedBound(_Asked):
    """One figure: `metric` is at least, or at most, so much.

    With `over`, an option that varies, it is the ratio of the metric at each of its levels to that at the
    level before, all else alike.
    """

    metric: _Metric = Field(description="a metric of docs/results.md, for example bandwidth or latency_p99")
    at_least: _Written | None = Field(None, description="the minimum, for example 66 MB/s")
    at_most: _Written | None = Field(None, description="the maximum, for example 4ms")
    over: str | None = Field(None, description="an option that varies: each level against the one before it")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (problem := _problem(self.metric, self.at_least, self.at_most, self.over)) is not None:
            raise refuse(*problem)
        return self

    @property
    def limit(self) -> Limit:
        """What is asked, as a figure."""
        return parse_limit(self.at_least if self.at_least is not None else self.at_most)

    def limit_in(self, unit: str) -> float | None:
        """The figure in a metric's unit: of operations a plain number is one a second."""
        return _in_unit(self.limit, unit)

    @property
    def operator(self) -> Literal[">=", "<="]:
        """As in a condition of `--fail-if`."""
        return ">=" if self.at_least is not None else "<="

    @property
    def words(self) -> str:
        """`bandwidth at least 66 MB/s per process`."""
        least = "at least" if self.at_least is not None else "at most"
        ratio = f", {self.over} to the next" if self.over else ""
        return f"{self.metric}{ratio} {least} {self.limit.text}"


class Requirement(_Asked):
    """What cells have to fulfil: one figure, or several `figures` at once in the same cell."""

    source: _Text = Field("", alias="from", description="where it comes from: a section of a document")
    target: _Glob = Field("*", description="which targets, with * and ?; all of them")
    work: _Glob = Field("*", alias="workload", description="which workloads, with * and ?; all of them")
    processes: Annotated[int, Whole(1, 1_000_000)] = Field(
        1, description="only cells with at least so many processes (numjobs, copies, streams) on all hosts"
    )
    cells: Literal["every", "one"] = Field("every", description="whether one of the cells is enough; every")
    metric: _Metric | None = None
    at_least: _Written | None = None
    at_most: _Written | None = None
    over: str | None = None
    figures: list[AskedBound] = Field(default_factory=list, alias="metrics", max_length=FIGURES_MAX)

    @model_validator(mode="after")
    def _asks(self) -> Self:
        flat = [name for name in ("metric", "at_least", "at_most", "over") if getattr(self, name) is not None]
        if self.figures and flat:
            raise refuse(f"has metrics and {flat[0]}", "write all of it below `metrics`, or none of it")
        if not self.figures:
            if self.metric is None:
                raise refuse("requires no metric", "add metric: and at_least: or at_most:")
            problem = _problem(self.metric, self.at_least, self.at_most, self.over)
            if problem is not None:
                raise refuse(*problem)
        return self

    @property
    def asked(self) -> tuple[AskedBound, ...]:
        """The figures that the same cell has to have."""
        if self.figures:
            return tuple(self.figures)
        one = AskedBound(
            metric=str(self.metric), at_least=self.at_least, at_most=self.at_most, over=self.over
        )
        return (one,)

    @property
    def words(self) -> str:
        """What is asked, in a line."""
        return " and ".join(one.words for one in self.asked)

    @property
    def where(self) -> str:
        """Of which cells, in a line."""
        many = f" with {self.processes} processes or more" if self.processes > 1 else ""
        return f"{self.target}.{self.work}{many}"

    def is_of(self, target: str, work: str) -> bool:
        """True of a cell with these names."""
        return fnmatchcase(target, self.target) and fnmatchcase(work, self.work)


class Requirements(_Asked):
    """A whole file."""

    format: Literal["leadline.requirements/1"] = Field(description="the format and its version")
    title: _Text = ""
    document: _Text = Field("", description="the document that they come from")
    sizing: AskedSizing | None = Field(None, description="what is to be bought for it: docs/sizing.md")
    requirements: dict[str, Requirement] = Field(default_factory=dict, max_length=REQUIREMENTS_MAX)

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        if not self.requirements and self.sizing is None:
            raise refuse("nothing is required", "add requirements: a name with what it asks, or sizing:")
        return self

    def as_json(self) -> dict[str, Any]:
        """Plain values that `from_json` reads back, as they may be written."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True) | {"format": self.format}

    @classmethod
    def from_json(cls, value: Any) -> Requirements:
        """The inverse of `as_json`. Raises ResultError."""
        try:
            return cls.model_validate(with_new_names(value, _RENAMED))
        except ValidationError as error:
            raise ResultError(
                f"the stored requirements are damaged or of another version: {error.errors()[0]['msg']}",
                "use the version of leadline that wrote them, or give them anew with --require",
            ) from error


_KEYS: Mapping[str, tuple[str, ...]] = {
    "": tuple(Requirements.model_fields),
    "requirements": tuple(field.alias or name for name, field in Requirement.model_fields.items()),
    "metrics": tuple(AskedBound.model_fields),
}
_RENAMED: Mapping[Path, str] = {
    ("requirements", "*", "work"): "workload",
    ("requirements", "*", "figures"): "metrics",
    ("sizing", "clients", "*", "work"): "workload",
}
_CONDITION = re.compile(
    r"\s*(?P<target>[^.\s<>=]+)\.(?P<work>[^\s<>=]+)\.(?P<metric>[a-z][a-z0-9_]*)\s*(?P<order>[<>]=?|[!=]=)"
    r"\s*(?P<limit>.*?)\s*"
)
_CONDITION_HELP = (
    "write TARGET.WORKLOAD.METRIC >= VALUE or <= VALUE, for example 'ceph.randread_4k.iops >= 500'"
)


def is_condition(text: str) -> bool:
    """Whether it is a requirement itself, and not the name of a file of them."""
    return any(order in text for order in "<>=")


def parse_requirement(text: str) -> Requirement:
    """`ceph.randread_4k.iops >= 500`: a requirement in a line. Raises SpecError."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise SpecError(f"--require {text!a}: no requirement", _CONDITION_HELP)
    if found["order"] not in (">=", "<="):
        raise SpecError(f"--require {text!a}: {found['order']} is none of >= and <=", _CONDITION_HELP)
    bound = "at_least" if found["order"] == ">=" else "at_most"
    target = "*" if found["target"] == "all" else found["target"]
    asked = {"target": target, "workload": found["work"], "metric": found["metric"], bound: found["limit"]}
    try:
        return Requirement.model_validate(asked)
    except ValidationError as error:
        said = error.errors()[0]
        why = str(said["msg"]).removeprefix("Value error, ")
        raise SpecError(f"--require {text!a}: {why}", _CONDITION_HELP) from None


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")


def _known(path: Path) -> tuple[str, ...]:
    if path[0] == "sizing" and len(path) > 1:
        if "network" in path[:-1]:
            return tuple(Switched.model_fields)
        if "pools" in path[1:-1]:
            return tuple(field.alias or name for name, field in Pool.model_fields.items())
        if "metadata" in path[3:-1]:
            return tuple(MetadataNeed.model_fields)
        if "workload" in path[3:-1]:
            return tuple(WorkFrom.model_fields)
        fields = (Population if "clients" in path[:-1] else AskedSizing).model_fields
        return tuple(field.alias or name for name, field in fields.items())
    if "metrics" in path[:-1]:
        return _KEYS["metrics"]
    return _KEYS["requirements" if len(path) > 2 else ""]


def read_requirements(text: str, source: str, environment: Mapping[str, str]) -> Requirements:
    """Raises SpecError with file, line and key."""
    return read_with_places(text, source, environment)[0]


def read_with_places(text: str, source: str, environment: Mapping[str, str]) -> tuple[Requirements, Document]:
    """The same with the lines, for who finds more that is wrong. Raises SpecError with file, line and key."""
    kind = DocumentKind(
        "file of requirements", MANUAL, f"it begins with format: {REQUIREMENTS_FORMAT}", renamed=_RENAMED
    )
    document = read_yaml(text, source, environment, kind)
    if not isinstance(document.value, dict):
        document.fail((), "requirements are a mapping of keys", MANUAL)
    if document.value.get("requirements") == {}:
        document.fail(("requirements",), "nothing is required", "add a requirement: a name with what it asks")
    try:
        found = Requirements.model_validate(document.value)
    except ValidationError as error:
        translate(error, document, Vocabulary(_known, MANUAL, _OTHER_KEYS))
    for name in found.requirements:
        if not _NAME.fullmatch(name):
            remedy = "use letters, digits, _ and -, at most 60 of them"
            document.fail(("requirements", name), "is no name", remedy)
    return found, document
