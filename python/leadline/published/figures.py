"""Published figures by name, in words, and in arithmetic: each an interval, what it is at most and least.

A recursive-descent parser of its own reads formulas; nothing is handed to `eval`. Grammar: docs/published.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from leadline import units
from leadline.errors import SpecError
from leadline.lexer import DEPTH_MAX, Token, Tokens, segments, shown
from leadline.published.document import DocumentColumn, DocumentRow, DocumentTable, Published
from leadline.yamlio.figures import DAY_S, UNITS, Figure, parse_figure

COMPARISONS = ("==", "<=", ">=")
_FUNCTIONS = ("sum", "mean", "min", "max")
_REMEDY = "see the formulas in docs/published.md"


@dataclass(frozen=True)
class Range:
    """A value with its bounds, in base units. `dimension` has exponents of B and s; clock times are apart."""

    value: float
    low: float
    high: float
    size_power: int = 0
    time_power: int = 0

    @property
    def finite(self) -> bool:
        """False where a division by what can be zero leaves nothing to say."""
        return math.isfinite(self.value)


# (power of bytes, power of seconds) of each dimension of `yamlio.figures`.
POWERS = {"1": (0, 0), "s": (0, 1), "clock": (0, 1), "B": (1, 0), "B/s": (1, -1), "1/s": (0, -1)}
Lookup = Callable[[str], Sequence[Range]]


def evaluate(text: str, lookup: Lookup, source: str) -> Range:
    """The value of an expression; `lookup` gives the figures of a name. Raises SpecError with the place."""
    tokens = Tokens(text, source, _REMEDY)
    found = _Parser(tokens, lookup).sum(0)
    tokens.end()
    return found


def compare(text: str, lookup: Lookup, source: str) -> tuple[Range, str, Range]:
    """Both sides of `left == right` (or <=, >=)."""
    tokens = Tokens(text, source, _REMEDY)
    parser = _Parser(tokens, lookup)
    left = parser.sum(0)
    operator = tokens.accept(*COMPARISONS)
    if operator is None:
        tokens.fail(f"==, <= or >= is needed, not {shown(tokens.next)}", tokens.next)
    right = parser.sum(0)
    tokens.end()
    if (left.size_power, left.time_power) != (right.size_power, right.time_power):
        tokens.fail("the two sides have different units", operator)
    return left, operator.text, right


def agrees(left: Range, operator: str, right: Range) -> bool:
    """True unless the two sides contradict each other wherever their figures may lie."""
    slack = 1e-9 * max(abs(left.value), abs(right.value))
    if operator == ">=":
        return left.high >= right.low - slack
    if operator == "<=":
        return left.low <= right.high + slack
    return left.low <= right.high + slack and right.low <= left.high + slack


class _Parser:
    def __init__(self, tokens: Tokens, lookup: Lookup) -> None:
        self.tokens, self.lookup = tokens, lookup

    def sum(self, depth: int) -> Range:
        if depth > DEPTH_MAX:
            self.tokens.fail("nested too deeply", self.tokens.next)
        left = self._product(depth)
        while operator := self.tokens.accept("+", "-"):
            right = self._product(depth)
            self._same(left, right, operator)
            left = add(left, right) if operator.text == "+" else subtract(left, right)
        return left

    def _product(self, depth: int) -> Range:
        left = self._atom(depth)
        while operator := self.tokens.accept("*", "/"):
            right = self._atom(depth)
            left = multiply(left, right) if operator.text == "*" else divide(left, right)
        return left

    def _atom(self, depth: int) -> Range:
        token = self.tokens.take()
        if token.kind == "number":
            return self._number(token)
        if token.kind == "operator" and token.text == "(":
            inside = self.sum(depth + 1)
            self.tokens.expect(")")
            return inside
        if token.kind == "name" and token.text in _FUNCTIONS and self.tokens.accept("("):
            return self._function(token)
        if token.kind == "name":
            found = self._look_up(token)
            if len(found) != 1:
                self.tokens.fail(f"{token.text} names {len(found)} values where one is needed", token)
            return found[0]
        return self.tokens.fail(f"a value is needed, not {shown(token)}", token)

    def _number(self, token: Token) -> Range:
        digits = token.text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ%/ ")
        unit = token.text[len(digits) :].strip() or "1"
        if unit not in UNITS:
            self.tokens.fail(f"{unit!a} is no unit", token)
        try:
            figure = parse_figure(digits, unit, exact=True)
        except SpecError as error:
            self.tokens.fail(error.message, token)
        return Range(figure.value, figure.value, figure.value, *POWERS[figure.dimension])

    def _look_up(self, token: Token) -> Sequence[Range]:
        try:
            return self.lookup(token.text)
        except KeyError as error:
            return self.tokens.fail(str(error.args[0]), token)

    def _function(self, name: Token) -> Range:
        argument = self.tokens.take()
        if argument.kind != "name":
            self.tokens.fail(f"{name.text}() takes the name of values, not {shown(argument)}", argument)
        found = self._look_up(argument)
        self.tokens.expect(")")
        for item in found[1:]:
            self._same(found[0], item, argument)
        return fold(name.text, found)

    def _same(self, left: Range, right: Range, token: Token) -> None:
        if (left.size_power, left.time_power) != (right.size_power, right.time_power):
            self.tokens.fail("quantities of different units are added", token)


def fold(function: str, items: Sequence[Range]) -> Range:
    """Sum, mean, min or max of figures of one unit; there is at least one."""
    first = items[0]
    columns = ([i.value for i in items], [i.low for i in items], [i.high for i in items])
    if function in ("sum", "mean"):
        totals = [math.fsum(column) / (len(items) if function == "mean" else 1) for column in columns]
    else:
        totals = [(min if function == "min" else max)(column) for column in columns]
    return Range(totals[0], totals[1], totals[2], first.size_power, first.time_power)


def add(a: Range, b: Range) -> Range:
    """a + b."""
    return Range(a.value + b.value, a.low + b.low, a.high + b.high, a.size_power, a.time_power)


def subtract(a: Range, b: Range) -> Range:
    """a - b."""
    return Range(a.value - b.value, a.low - b.high, a.high - b.low, a.size_power, a.time_power)


def multiply(a: Range, b: Range) -> Range:
    """a * b."""
    corners = [_times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    powers = (a.size_power + b.size_power, a.time_power + b.time_power)
    return Range(a.value * b.value, min(corners), max(corners), *powers)


def divide(a: Range, b: Range) -> Range:
    """a / b; where b can be zero nothing is known."""
    powers = (a.size_power - b.size_power, a.time_power - b.time_power)
    if b.low <= 0 <= b.high:
        value = a.value / b.value if b.value else math.nan
        return Range(value, -math.inf, math.inf, *powers)
    corners = [_over(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Range(a.value / b.value, min(corners), max(corners), *powers)


def _times(x: float, y: float) -> float:
    return 0.0 if x == 0 or y == 0 else x * y


def _over(x: float, y: float) -> float:
    if math.isinf(y):
        return 0.0 if not math.isinf(x) else math.copysign(math.inf, x * y)
    return x / y


SUMMARY_LEVELS = ("total", "mean")  # rows that summarise the others of their group
REPEAT_KEYS = ("run", "repeat")
SYSTEM_KEY = "system"
SPAN = "span"  # a column that can always be asked for: the time from start to finish


@dataclass(frozen=True)
class Doubt:
    """Something that does not agree, or that a figure rests on.

    `deviation` is relative, for the order; `figures` are addresses such as `steps.fuse.inspect.elapsed`.
    """

    code: str
    text: str
    where: str
    figures: tuple[str, ...]
    deviation: float = 0.0
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tested:
    """One figure that could be recomputed: `doubt` is None where it agrees."""

    how: str
    figure: str
    doubt: Doubt | None


def as_range(figure: Figure) -> Range:
    """A figure as an interval in base units."""
    return Range(figure.value, figure.low, figure.high, *POWERS[figure.dimension])


def figure_range(row: DocumentRow, column: str) -> Range | None:
    """The figure of one column of a row."""
    figure = row.figures.get(column)
    return None if figure is None else as_range(figure)


def column_of_kind(table: DocumentTable, kind: str) -> DocumentColumn | None:
    """The first column of a kind that is no part of another."""
    return next((c for c in table.columns if c.kind == kind and c.part_of is None), None)


def span(table: DocumentTable, row: DocumentRow) -> Range | None:
    """The time from start to finish by the clock; a finish before the start is the next day's."""
    start, finish = (column_of_kind(table, kind) for kind in ("start", "finish"))
    if start is None or finish is None:
        return None
    begun, ended = row.figures.get(start.name), row.figures.get(finish.name)
    if begun is None or ended is None:
        return None
    seconds = (ended.value - begun.value) % DAY_S
    slack = (begun.high - begun.low + ended.high - ended.low) / 2
    return Range(seconds, seconds - slack, seconds + slack, 0, 1)


def is_summary(row: DocumentRow) -> bool:
    """True for a row that sums up or averages its group."""
    return row.keys[-1][1] in SUMMARY_LEVELS


def groups(
    table: DocumentTable, *, without: str | None = None
) -> Iterator[tuple[tuple[str, ...], list[DocumentRow]]]:
    """Rows by all their levels but one: the last key's, or that of `without`."""
    left_out = without or table.keys[-1]
    found: dict[tuple[str, ...], list[DocumentRow]] = {}
    for row in table.rows:
        found.setdefault(tuple(level for key, level in row.keys if key != left_out), []).append(row)
    yield from found.items()


def kinds_of(published: Published, table: DocumentTable, row: DocumentRow) -> dict[str, Range]:
    """Everything known of a row by kind: its figures, then what is given for table, system and document."""
    system = published.system(row.level(SYSTEM_KEY))
    known: dict[str, Range] = {}
    sources: list[Mapping[str, Figure]] = [published.facts, system.figures if system else {}, table.given]
    for source in sources:
        known |= {kind: as_range(figure) for kind, figure in source.items()}
    for key, level in row.keys:
        if level.isdigit():
            known[key] = Range(float(level), float(level), float(level))
    for column in table.columns:
        figure = row.figures.get(column.name)
        if figure is not None and column.part_of is None:
            known[column.kind] = as_range(figure)
    clock = span(table, row)
    if clock is not None:
        known["elapsed"] = clock
    return known


@dataclass(frozen=True)
class Named:
    """A figure that a name in a formula stands for."""

    address: str
    table: DocumentTable | None
    row: DocumentRow | None
    column: str
    value: Range


def find(published: Published, name: str) -> list[Named]:
    """The figures of `table.level.….column`, `facts.name` or `systems.system.fact`, or a KeyError."""
    parts = segments(name)
    if parts[0] == "facts" and len(parts) == 2 and parts[1] in published.facts:
        return [Named(name, None, None, parts[1], as_range(published.facts[parts[1]]))]
    if parts[0] == "systems" and len(parts) == 3:
        system = published.system(parts[1])
        if system and parts[2] in system.figures:
            return [Named(name, None, None, parts[2], as_range(system.figures[parts[2]]))]
    table = published.table(parts[0])
    if table is None:
        known = ", ".join(table.name for table in published.tables)
        raise KeyError(f"{name!a} names no table, fact or system (tables: {known})")
    if len(parts) != len(table.keys) + 2:
        raise KeyError(f"{name!a}: write {table.name}.{'.'.join(table.keys)}.COLUMN")
    column = parts[-1]
    found = [item for row in table.rows if _fits(row, parts[1:-1]) if (item := _named(table, row, column))]
    if not found:
        raise KeyError(f"{name!a} names no value of the table {table.name}")
    return found


def _fits(row: DocumentRow, pattern: Sequence[str]) -> bool:
    return all(
        level == wanted or (wanted == "*" and level not in SUMMARY_LEVELS)
        for (_, level), wanted in zip(row.keys, pattern, strict=True)
    )


def _named(table: DocumentTable, row: DocumentRow, column: str) -> Named | None:
    value = span(table, row) if column == SPAN else figure_range(row, column)
    return None if value is None else Named(address(table, row, column), table, row, column, value)


def address(table: DocumentTable, row: DocumentRow, column: str) -> str:
    """Where a figure stands, as a formula would name it."""
    return f"{table.name}.{row.address}.{column}"


def place(table: DocumentTable, row: DocumentRow, column: str = "") -> str:
    """Where a figure stands, for a person: section, levels, column."""
    name = f", {column.replace('_', ' ')}" if column else ""
    return f"{table.section or table.name}: {', '.join(level for _, level in row.keys)}{name}"


def deviation(published: Range, computed: Range) -> float:
    """How far two values are apart, relative to the larger."""
    largest = max(abs(published.value), abs(computed.value))
    return abs(published.value - computed.value) / largest if largest else 0.0


def words(value: Range, unit: str) -> str:
    """A value in a unit for a person: four significant digits; minutes beyond an hour as `1 h 49 min`."""
    amount = value.value
    if unit in ("min", "h") and value.time_power == 1 and abs(amount) >= 60:
        whole = round(amount)
        hours, minutes, seconds = whole // 3600, whole % 3600 // 60, whole % 60
        return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02} min"
    factor = UNITS[unit][1]
    plain = "" if unit in ("1", "clock") else " times" if unit in ("x", "times") else f" {unit}"
    return f"{units.format_number(amount / factor, 4)}{plain}"


def plain(value: Range) -> str:
    """A value of any unit, in the unit that suits it."""
    powers = (value.size_power, value.time_power)
    unit = {(1, -1): "MB/s", (0, 1): "s", (1, 0): "MB", (0, -1): "1/s"}.get(powers, "1")
    return words(value, "ms" if unit == "s" and value.value < 1 else unit)
