"""Arithmetic over published figures, each an interval: what a total or a share comes to at most and least.

A recursive-descent parser of its own; nothing is handed to Python's `eval`. Grammar: docs/published.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leadline.errors import SpecError
from leadline.lexer import DEPTH_MAX, Token, Tokens, shown
from leadline.yamlio.figures import UNITS, parse_figure

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
                self.tokens.fail(f"{token.text} names {len(found)} figures where one is needed", token)
            return found[0]
        return self.tokens.fail(f"a figure is needed, not {shown(token)}", token)

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
            self.tokens.fail(f"{name.text}() takes the name of figures, not {shown(argument)}", argument)
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
