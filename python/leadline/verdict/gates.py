"""`--fail-if`: conditions on a result, in a small language of its own (docs/gates.md).

A condition on a figure is true only where its whole 95 % interval fulfils it, so that a gate does not fail by
chance; where the interval lies on both sides it is undecided, and said. Nothing is handed to Python's `eval`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from leadline import units
from leadline.errors import SpecError, UsageError
from leadline.lexer import DEPTH_MAX, Token, Tokens, segments, shown
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.kinds import known_metrics, metric_kind
from leadline.verdict.model import Cell, Findings, Quantity

Truth = bool | None  # None: the intervals do not decide

STATES = ("VALID", "DOUBTFUL", "INVALID", "NOT_RUN")
_ORDERS = ("<", "<=", ">", ">=")
_EQUALS = ("==", "!=")
_REMEDY = "write for example: fuse.randread_4k.iops < 5000 or any.validity == INVALID; see docs/gates.md"
_EVIDENCE_MAX = 20


@dataclass(frozen=True)
class GateCondition:
    """`selector operator quantity`; `every` is True where all cells must fulfil it, not any."""

    selector: str
    every: bool
    operator: str
    quantity: str
    token: Token


@dataclass(frozen=True)
class Combination:
    """`and`, `or` over its parts; `not` over its one part."""

    word: str
    parts: tuple[Expression, ...]


Expression = GateCondition | Combination


@dataclass(frozen=True)
class Gate:
    """A parsed `--fail-if`."""

    text: str
    expression: Expression


_Seen = tuple[bool, str]  # whether it can be why a gate fails or is not decided, and what was compared


@dataclass(frozen=True)
class GateOutcome:
    """What a result says to a gate: `fails` is None where the intervals do not decide.

    `evidence` has the values that are why; of a gate that does not fail, all that were compared.
    """

    text: str
    fails: Truth
    evidence: tuple[str, ...]


def parse_gate(text: str) -> Gate:
    """Parse one expression. Raises SpecError that names the character."""
    tokens = Tokens(text, "--fail-if", _REMEDY)
    if tokens.next.kind == "end":
        tokens.fail("the condition is empty", tokens.next)
    expression = _either(tokens, 0)
    tokens.end()
    return Gate(text, expression)


def _either(tokens: Tokens, depth: int) -> Expression:
    return _chain(tokens, depth, "or", _both)


def _both(tokens: Tokens, depth: int) -> Expression:
    return _chain(tokens, depth, "and", _unary)


def _chain(tokens: Tokens, depth: int, word: str, part: Callable[[Tokens, int], Expression]) -> Expression:
    if depth > DEPTH_MAX:
        tokens.fail(f"nested deeper than {DEPTH_MAX} levels", tokens.next)
    parts = [part(tokens, depth)]
    while tokens.accept(word):
        parts.append(part(tokens, depth))
    return parts[0] if len(parts) == 1 else Combination(word, tuple(parts))


def _unary(tokens: Tokens, depth: int) -> Expression:
    if depth > DEPTH_MAX:
        tokens.fail(f"nested deeper than {DEPTH_MAX} levels", tokens.next)
    if tokens.accept("not"):
        return Combination("not", (_unary(tokens, depth + 1),))
    if tokens.accept("("):
        inside = _either(tokens, depth + 1)
        tokens.expect(")")
        return inside
    return _comparison(tokens)


def _comparison(tokens: Tokens) -> GateCondition:
    name = tokens.take()
    if name.kind != "name" or name.text in ("and", "or"):
        tokens.fail(f"a metric such as fuse.randread_4k.iops is needed, not {shown(name)}", name)
    parts = segments(name.text)
    if len(parts) < 2:
        tokens.fail(f"{shown(name)} is no metric: write TARGET.WORKLOAD.METRIC, or any.METRIC", name)
    operator = tokens.take()
    if operator.text not in (*_ORDERS, *_EQUALS):
        tokens.fail(f"one of < <= > >= == != is needed, not {shown(operator)}", operator)
    quantity = tokens.take()
    if quantity.kind not in ("number", "name"):
        tokens.fail(f"a quantity is needed, not {shown(quantity)}", quantity)
    every = parts[0] == "all"
    selector = ".".join(("*", *parts[1:]) if parts[0] in ("all", "any") else parts)
    found = GateCondition(selector, every, operator.text, quantity.text, quantity)
    _check_words(found, tokens, operator)
    return found


def _check_words(comparison: GateCondition, tokens: Tokens, operator: Token) -> None:
    """What can be refused before anything is measured."""
    last = comparison.selector.rpartition(".")[2]
    if last in ("validity", "code"):
        known = STATES if last == "validity" else tuple(catalogue())
        if comparison.operator not in _EQUALS:
            tokens.fail(f"a {last} is compared with == or !=", operator)
        if comparison.quantity not in known:
            tokens.fail(f"{shown(comparison.token)} is no {last}: use {', '.join(known)}", comparison.token)
        return
    if comparison.operator in _EQUALS and last != "blocks":
        tokens.fail("a measured value is never equal: use < or >", operator)
    if comparison.token.kind != "number":
        tokens.fail(f"a number with its unit is needed, not {shown(comparison.token)}", comparison.token)
    names = [
        name for name in known_metrics() if fnmatchcase(f"x.{name}", f"x.{_figure(comparison.selector)}")
    ]
    for name in names:
        try:
            bound(comparison.quantity, metric_kind(name).unit)
        except SpecError as error:
            tokens.fail(f"{name}: {error.message}", comparison.token)


def _figure(selector: str) -> str:
    """The part of a selector that names the figure; percentiles such as p99.9 have a dot in them."""
    head, _, last = selector.rpartition(".")
    return f"{head.rpartition('.')[2]}.{last}" if last.isdigit() else last


def bound(text: str, unit: str) -> float:
    """A quantity of an expression in the base unit of a metric. Raises SpecError."""
    bare = text.replace(".", "", 1).isdigit()
    if unit in ("ns", "s"):
        if bare:
            raise SpecError(f"{text!r} has no unit", "write for example 20ms")
        return units.parse_duration(text) / (1 if unit == "ns" else units.NS_PER_S)
    if unit == "B/s":
        return float(units.parse_rate(text))
    if unit == "B":
        return float(units.parse_size(text))
    if text.endswith("%"):
        return units.parse_percent(text) / 100
    if not bare:
        raise SpecError(f"{text!r} is not a plain number", "write for example 5000")
    return float(text)


def check_gates(gates: Sequence[Gate], cell_ids: Iterable[str], searched: Iterable[str] = ()) -> None:
    """Refuse a selector that no cell of a plan can fulfil, before anything runs. Raises UsageError.

    `searched` are the metrics of the plan's searches, whose names say what is searched.
    """
    figures = [*known_metrics(), *searched, "validity", "code", "blocks"]
    ids = list(cell_ids)
    for gate in gates:
        for item in _comparisons(gate.expression):
            if not any(fnmatchcase(f"{cell}.{figure}", item.selector) for cell in ids for figure in figures):
                raise _nothing(gate, item, ids)


def _nothing(gate: Gate, item: GateCondition, ids: Sequence[str]) -> UsageError:
    listed = ", ".join(ids[:6]) + (" …" if len(ids) > 6 else "")
    return UsageError(
        f"--fail-if {gate.text!a}: nothing is called {item.selector!a}",
        f"write CELL.METRIC; cells are {listed}; metrics are {', '.join(known_metrics()[:6])} …, "
        "validity, code, blocks",
    )


def _comparisons(expression: Expression) -> list[GateCondition]:
    if isinstance(expression, GateCondition):
        return [expression]
    return [item for part in expression.parts for item in _comparisons(part)]


def judge_gate(gate: Gate, findings: Findings) -> GateOutcome:
    """What the result says. Raises UsageError where a selector matches nothing."""
    evidence: list[_Seen] = []
    fails = _judge(gate, gate.expression, findings, evidence)
    # Of a gate that does not fail every value counts, else those that are why.
    shown_evidence = tuple(dict.fromkeys(text for telling, text in evidence if telling or fails is False))
    more = len(shown_evidence) - _EVIDENCE_MAX
    if more > 0:
        shown_evidence = (*shown_evidence[:_EVIDENCE_MAX], f"and {more} more")
    return GateOutcome(gate.text, fails, shown_evidence)


def _judge(gate: Gate, expression: Expression, findings: Findings, evidence: list[_Seen]) -> Truth:
    if isinstance(expression, GateCondition):
        return _compare_all(gate, expression, findings, evidence)
    found = [_judge(gate, part, findings, evidence) for part in expression.parts]
    if expression.word == "not":
        return None if found[0] is None else not found[0]
    return all_of(found) if expression.word == "and" else any_of(found)


def any_of(truths: Sequence[Truth]) -> Truth:
    """True if any is; undecided if any other is."""
    return True if True in truths else None if None in truths else False


def all_of(truths: Sequence[Truth]) -> Truth:
    """False if any is; undecided if any other is."""
    return False if False in truths else None if None in truths else True


def _compare_all(gate: Gate, item: GateCondition, findings: Findings, evidence: list[_Seen]) -> Truth:
    truths = []
    for cell in findings.cells:
        for figure in (*cell.metrics, "validity", "code", "blocks"):
            if fnmatchcase(f"{cell.id}.{figure}", item.selector):
                truth, words = _compare(item, cell, figure)
                truths.append(truth)
                telling = truth is not False or item.every
                evidence.append((telling, f"{cell.id}.{figure}: {words}"))
    if not truths:
        raise _nothing(gate, item, [cell.id for cell in findings.cells])
    return all_of(truths) if item.every else any_of(truths)


def _compare(item: GateCondition, cell: Cell, figure: str) -> tuple[Truth, str]:
    if figure in ("validity", "code"):
        values = [cell.validity.state] if figure == "validity" else [c.code for c in cell.validity.codes]
        equal = item.quantity in values
        return equal == (item.operator == "=="), ", ".join(values) or "none"
    if figure == "blocks":
        blocks = max((metric.blocks for metric in cell.metrics.values()), default=0)
        return _ordered(item.operator, blocks, float(item.quantity)), str(blocks)
    quantity = cell.metrics[figure]
    if cell.validity.state in ("INVALID", "NOT_RUN"):
        return None, f"{cell.validity.state.replace('_', ' ')}: not judged"
    if quantity.value is None:
        return None, f"not measured: {quantity.reason}"
    return _by_interval(item, quantity)


def _by_interval(item: GateCondition, quantity: Quantity) -> tuple[Truth, str]:
    return judge_quantity(quantity, item.operator, bound(item.quantity, quantity.unit), item.quantity)


def judge_quantity(quantity: Quantity, operator: str, limit: float, limit_words: str) -> tuple[Truth, str]:
    """True where the whole interval fulfils it, None where that lies on both sides; and what was seen.

    `limit` is in the quantity's unit. Without an interval the value itself decides, and that is said.
    """
    value = quantity.value or 0.0
    shown_value = units.format_quantity(value, quantity.unit)
    if quantity.low is None or quantity.high is None:
        return _ordered(operator, value, limit), f"{shown_value}, 1 block: no CI"
    ends = [_ordered(operator, end, limit) for end in (quantity.low, quantity.high)]
    low, high = (units.format_quantity(end, quantity.unit) for end in (quantity.low, quantity.high))
    words = f"{shown_value} ({low} to {high}, {quantity.blocks} blocks)"
    if ends[0] != ends[1]:
        return None, f"{words}: the CI contains {limit_words}"
    return ends[0], words


def _ordered(operator: str, value: float, limit: float) -> bool:
    return {
        "<": value < limit,
        "<=": value <= limit,
        ">": value > limit,
        ">=": value >= limit,
        "==": value == limit,
        "!=": value != limit,
    }[operator]
