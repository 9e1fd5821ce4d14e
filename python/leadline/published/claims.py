"""What a document claims: whether its own figures say so, and what each claim rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leadline.lexer import Tokens
from leadline.published.document import Claim, DocumentColumn, DocumentRow, DocumentTable, Published
from leadline.published.figures import (
    REPEAT_KEYS,
    SYSTEM_KEY,
    Doubt,
    Named,
    Range,
    agrees,
    deviation,
    evaluate,
    find,
    is_summary,
    kinds_of,
    place,
    plain,
    words,
)
from leadline.units import format_number
from leadline.yamlio.figures import Figure

_HIGHER = ("rate", "rate_each", "io_rate", "operation_rate", "device_operation_rate", "bit_rate")
_LOWER = ("elapsed", "io_time", "latency", "share")
_OTHERS_MAX = 6
_OTHER_FACTOR = 1.5  # another measure of the same pair that differs by this factor is worth saying
_LINK_SHARE = 0.7  # Ethernet with TCP at a standard MTU carries 70 to 80 % of its nominal rate


@dataclass(frozen=True)
class Judged:
    """One claim: `computed` is what the tables say, `agrees` whether that is what was claimed.

    `by_others` are other measures of the same two systems that the claim does not hold by.
    """

    claim: Claim
    computed: str
    agrees: bool
    apart: float
    notes: tuple[str, ...]
    rests_on: tuple[str, ...]
    by_others: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The document's sentence."""
        return self.claim.text

    @property
    def claimed(self) -> str | None:
        """Its figure as it is published, where it has one."""
        return self.claim.published.words if self.claim.published else None


def judge_claims(published: Published, doubts: Sequence[Doubt]) -> tuple[Judged, ...]:
    """Every claim against its tables; `doubts` are those of the figures that it may use."""
    return tuple(_judge(published, claim, doubts) for claim in published.claims)


def _judge(published: Published, claim: Claim, doubts: Sequence[Doubt]) -> Judged:
    source = published.file if claim.line is None else f"{published.file}, line {claim.line}"
    used: list[Named] = []

    def lookup(name: str) -> list[Range]:
        found = find(published, name)
        used.extend(found)
        return [item.value for item in found]

    computed = evaluate(claim.formula, lookup, source)
    said = claim.published
    bare = Range(computed.value, computed.low, computed.high)
    range_said = bare if said is None else Range(said.value, said.low, said.high)
    same = agrees(range_said, "==", bare)
    return Judged(
        claim=claim,
        computed=plain(computed) if said is None else words(computed, said.unit),
        agrees=same,
        apart=deviation(range_said, computed),
        notes=() if same or said is None else tuple(_complement(said, computed)),
        rests_on=tuple(_bases(published, claim, used, doubts)),
        by_others=tuple(_beyond(published, said, used)) if same and said else (),
    )


def _complement(said: Figure, computed: Range) -> Iterator[str]:
    """A saving taken for what is left, or the other way round."""
    if said.unit == "%" and said.low <= 1 - computed.value <= said.high:
        rest = Range(1 - computed.value, 0, 0)
        yield f"{said.words} is near the rest, {words(rest, '%')}: what is left was taken for what was saved"


def _bases(
    published: Published, claim: Claim, used: Sequence[Named], doubts: Sequence[Doubt]
) -> Iterator[str]:
    tables = list({item.table.name: item.table for item in used if item.table}.values())
    yield from (words_of for table in tables for words_of in _runs(table, used))
    yield from _differing(published, used)
    if any(item.value.low == -math.inf or item.value.high == math.inf for item in used):
        yield "a value that is only a bound"
    if _divides_by_devices(claim):
        yield "a division by the number of devices: it holds only where the devices are the limit"
    yield from _clients(published, used)
    yield from _other_measures(published, used)
    touched = {_row_address(item.address) for item in used}
    hit = [doubt for doubt in doubts if any(_row_address(figure) in touched for figure in doubt.figures)]
    if hit:
        count = len(hit)
        yield f"values that are themselves in doubt ({count} {'doubt' if count == 1 else 'doubts'})"


def _row_address(address: str) -> str:
    return address.rpartition(".")[0]


def _runs(table: DocumentTable, used: Sequence[Named]) -> Iterator[str]:
    name = table.section or table.name
    key = next((key for key in table.keys if key in REPEAT_KEYS), None)
    if key:
        systems = {item.row.level(SYSTEM_KEY) for item in used if item.row}
        rows = [row for row in table.rows if row.level(SYSTEM_KEY) in systems and not is_summary(row)]
        count = len({row.level(key) for row in rows})
        together = " at the same time on one machine, which is one observation" if table.simultaneous else ""
        yield f"{name}: {count} runs{together}"
    elif table.runs is None:
        yield f"{name}: the number of runs is not given; at least one was made"
    elif table.runs == 1:
        yield f"{name}: one run of each, so its scatter is not known"
    else:
        yield f"{name}: {table.runs} runs, and their spread is not published"


def _differing(published: Published, used: Sequence[Named]) -> Iterator[str]:
    names = list(dict.fromkeys(level for item in used if item.row and (level := item.row.level(SYSTEM_KEY))))
    systems = [system for name in names if (system := published.system(name))]
    if len(systems) < 2:
        return
    facts = dict.fromkeys(fact for system in systems for fact in system.facts)
    for fact in facts:
        values = [system.facts.get(fact, "not given") for system in systems]
        if fact not in published.varies and len(set(values)) > 1:
            pairs = ", ".join(
                f"{system.name}: {value}" for system, value in zip(systems, values, strict=True)
            )
            yield f"systems that differ in their {fact.replace('_', ' ')} too ({pairs})"


def _divides_by_devices(claim: Claim) -> bool:
    tokens = Tokens(claim.formula, "", "")
    while tokens.next.kind != "end":
        if tokens.take().text == "/" and tokens.next.text.rpartition(".")[2] in ("devices", "disks", "nodes"):
            return True
    return False


def _clients(published: Published, used: Sequence[Named]) -> Iterator[str]:
    said = set()
    for item in used:
        if item.table is None or item.row is None:
            continue
        known = kinds_of(published, item.table, item.row)
        for text in (*client_limits(known), *_in_flight(known)):
            if text not in said:
                said.add(text)
                yield text


def client_limits(known: Mapping[str, Range]) -> Iterator[str]:
    """Where the clients, not the storage, may have been what limited a row: links and CPUs."""
    rate, link, clients = known.get("rate"), known.get("client_link"), known.get("clients")
    if rate is None and "rate_each" in known and "threads" in known:
        rate = Range(known["rate_each"].value * known["threads"].value, 0, 0)
    if rate and link and clients and rate.value >= _LINK_SHARE * link.value * clients.value:
        share = rate.value / (link.value * clients.value)
        yield f"clients whose links were full to {share:.0%}: they may be the limit"
    each, behind, shared = known.get("rate_each"), known.get("threads_behind"), known.get("shared_link")
    if each and behind and shared and each.value * behind.value >= _LINK_SHARE * shared.value:
        share = each.value * behind.value / shared.value
        yield (
            f"{behind.value:.0f} of the clients' threads behind one link that was full to {share:.0%}: "
            "it may be the limit"
        )
    processes, cpus = known.get("processes"), known.get("cpus")
    if processes and cpus and processes.value > cpus.value:
        yield f"a client with {cpus.value:.0f} CPUs under more processes than that: its CPUs may be the limit"


def _in_flight(known: Mapping[str, Range]) -> Iterator[str]:
    if "in_flight" in known and "operation_rate" in known and "latency" in known:
        yield (
            f"{known['in_flight'].value:,.0f} operations kept outstanding: the latency follows from that and "
            "the rate (Little's law), and is no independent result"
        )


def limited_rows(published: Published) -> Iterator[Doubt]:
    """Rows that the clients may have limited, whether or not a claim uses them."""
    for table in published.tables:
        seen: dict[tuple[str, str], list[DocumentRow]] = {}
        for row in table.rows:
            known = kinds_of(published, table, row)
            for code, found in (("client_limit", client_limits(known)), ("closed_loop", _in_flight(known))):
                for text in found:
                    seen.setdefault((code, text), []).append(row)
        for (code, text), rows in seen.items():
            more = (
                "" if len(rows) == 1 else f" and {len(rows) - 1} more {'row' if len(rows) == 2 else 'rows'}"
            )
            places = tuple(f"{table.name}.{row.address}.*" for row in rows)
            yield Doubt(code, f"{place(table, rows[0])}{more}: {text}", table.section, places, 0.0)


def _other_measures(published: Published, used: Sequence[Named]) -> Iterator[str]:
    """The same two systems by every other figure of the document, where that tells another story."""
    pair = _pair(used)
    if pair is None:
        return
    first, second = pair
    own = _speed_up(first, second)
    if own is None:
        return
    if own < 1:
        first, second, own = second, first, 1 / own
    others = [
        f"{name}: {format_number(ratio)} times"
        for name, ratio in _ratios(published, (first, second))
        if max(ratio / own, own / ratio) >= _OTHER_FACTOR
    ]
    if others:
        yield (
            f"one measure of several: by this one {_system(first)} is {format_number(own)} times as fast as "
            f"{_system(second)}, by others not ({'; '.join(others[:_OTHERS_MAX])})"
        )


def _ratios(published: Published, pair: tuple[Named, Named]) -> Iterator[tuple[str, float]]:
    """How many times as fast the first system is, by each other column that has both."""
    for table in published.tables:
        for column in table.columns:
            if table is pair[0].table and column.name == pair[0].column:
                continue
            ratio = _column_ratio(table, column, pair)
            if ratio is not None:
                yield f"{table.section or table.name}, {column.name.replace('_', ' ')}", ratio


def _beyond(published: Published, said: Figure, used: Sequence[Named]) -> Iterator[str]:
    """Measures by which a claimed factor does not hold."""
    pair = _pair(used)
    if pair is None or said.unit not in ("x", "times"):
        return
    own = _speed_up(*pair)
    for name, ratio in _ratios(published, pair) if own else ():
        factor = ratio if own and own > 1 else 1 / ratio
        if not said.low <= factor <= said.high:
            yield f"{name}: {format_number(factor)} times"


def _system(item: Named) -> str:
    return (item.row.level(SYSTEM_KEY) if item.row else None) or "?"


def _pair(used: Sequence[Named]) -> tuple[Named, Named] | None:
    """Two figures of one column that differ in the system only."""
    single = list({item.address: item for item in used}.values())
    if len(single) != 2 or single[0].row is None or single[1].row is None:
        return None
    first, second = single
    if first.table is not second.table or first.column != second.column or _system(first) == _system(second):
        return None
    return first, second


def _kind(item: Named) -> str:
    column = item.table.column(item.column) if item.table else None
    return column.kind if column else "elapsed"


def _speed_up(first: Named, second: Named) -> float | None:
    """How many times as fast the first is."""
    return _oriented(_kind(first), first.value.value, second.value.value)


def _oriented(kind: str, first: float, second: float) -> float | None:
    if first <= 0 or second <= 0:
        return None
    if kind in _HIGHER:
        return first / second
    return second / first if kind in _LOWER else None


def _column_ratio(table: DocumentTable, column: DocumentColumn, pair: tuple[Named, Named]) -> float | None:
    """The geometric mean over all rows that both systems have; a total or mean stands for its group."""
    if SYSTEM_KEY not in table.keys:
        return None
    by_system: list[dict[tuple[tuple[str, str], ...], float]] = []
    for item in pair:
        rows = [
            row for row in table.rows if row.level(SYSTEM_KEY) == _system(item) and column.name in row.figures
        ]
        summaries = [row for row in rows if is_summary(row)]
        chosen = summaries or rows
        by_system.append(
            {
                tuple(key for key in row.keys if key[0] != SYSTEM_KEY): row.figures[column.name].value
                for row in chosen
            }
        )
    shared = [key for key in by_system[0] if key in by_system[1]]
    ratios = [_oriented(column.kind, by_system[0][key], by_system[1][key]) for key in shared]
    logarithms = [math.log(ratio) for ratio in ratios if ratio]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else None
