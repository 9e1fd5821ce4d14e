"""What published figures say twice, and whether they agree: durations, rates, shares, totals, Little's law.

Nothing here knows a document. A relation applies wherever a row, with what is given for it, has all of its
kinds. Tolerance: every figure may be off by one unit of its last digit, which covers any rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from leadline.published.document import COUNTS, DocumentColumn, DocumentRow, DocumentTable, Published
from leadline.published.figures import (
    REPEAT_KEYS,
    Doubt,
    Range,
    Tested,
    address,
    agrees,
    as_range,
    column_of_kind,
    compare,
    deviation,
    evaluate,
    figure_range,
    find,
    fold,
    groups,
    is_summary,
    kinds_of,
    place,
    plain,
    span,
    words,
)
from leadline.yamlio.figures import DAY_S

# (kind, formula of other kinds, its words). By definition, but for Little: Operations Research 9 (1961).
RELATIONS: tuple[tuple[str, str, str], ...] = (
    ("rate", "size / elapsed", "size over time"),
    ("rate", "operation_rate * block", "operations per second times the size of each"),
    ("rate", "rate_each * threads", "the rate of each thread times the threads"),
    ("operation_rate", "rate / object", "rate over the size of an object"),
    ("operation_rate", "device_operation_rate * devices", "what one device does times the devices"),
    ("operations", "operation_rate * elapsed", "operations per second times the time"),
    ("in_flight", "operation_rate * latency", "Little's law: queue depth = rate times latency"),
    ("io_time", "share * elapsed", "share of the time"),
    ("io_time", "size / io_rate", "size over the rate of its I/O"),
    ("sync_rate", "operation_rate * copies", "operations times copies or shards"),
    ("sync_rate", "operation_rate * (k + m)", "operations times the shards of erasure coding"),
    ("amplification", "(k + m) / k", "stored bytes per byte with erasure coding"),
    ("device_rate", "rate * amplification", "rate times amplification"),
    ("bit_rate", "size / elapsed", "size over time"),
    ("buffer_time", "buffer / rate", "the time of one buffer in one stream"),
    ("sync_rate_each", "sync_rate / disks", "syncs over disks"),
    ("link_share", "rate / link", "rate over one host's link"),
)
JUMBO_FRAME_BYTES = 9_018  # Ethernet with an MTU of 9000
_ALIKE = 1e-4  # independent runs do not agree to this share


def tested(published: Published) -> tuple[Tested, ...]:
    """Every figure that can be held against others, in the document's order."""
    found: list[Tested] = []
    for table in published.tables:
        for row in table.rows:
            found += [*_clock(table, row), *_relations(published, table, row)]
        found += [*_summaries(table), *_parts(table), *_order(table)]
    return (*found, *_same_quantity(published), *_declared(published))


def oddities(published: Published) -> tuple[Doubt, ...]:
    """What looks wrong in itself: impossible clocks, repeated values, repeats too alike, huge packets."""
    found: list[Doubt] = []
    for table in published.tables:
        found += [*_impossible(table), *_repeated(table), *_alike(table), *_packets(table)]
    return tuple(found)


def derived(published: Published) -> tuple[str, ...]:
    """What the document lets one compute and does not say, in words."""
    found = []
    for table in published.tables:
        own = {column.kind for column in table.columns}
        for row in table.rows if not any(key in REPEAT_KEYS for key in table.keys) else ():
            known = {} if is_summary(row) else kinds_of(published, table, row)
            for kind, formula, how in RELATIONS:
                if kind not in known and own & set(_names(formula)) and _names(formula) <= set(known):
                    value = evaluate(formula, _kinds(known), how)
                    shown = words(value, "%") if kind.endswith("share") else plain(value)
                    found.append(f"{place(table, row)}: {kind.replace('_', ' ')} {shown} ({how})")
    return tuple(dict.fromkeys(found))


def _kinds(known: Mapping[str, Range]) -> Callable[[str], Sequence[Range]]:
    return lambda name: [known[name]]


def _names(formula: str) -> frozenset[str]:
    return frozenset(word.strip("()") for word in formula.split()) - frozenset("+-*/")


def _test(
    code: str,
    how: str,
    target: tuple[DocumentTable, DocumentRow, DocumentColumn],
    computed: Range,
    extra: tuple[str, ...] = (),
) -> Tested:
    """Hold one published figure against a computed one."""
    table, row, column = target
    where, figure = address(table, row, column.name), row.figures[column.name]
    published = as_range(figure)
    if agrees(published, "==", computed):
        return Tested(how, where, None)
    apart = deviation(published, computed)
    text = (
        f"{place(table, row, column.name)}: {figure.words} is published, "
        f"{words(computed, column.unit)} follows from {how} ({apart:.1%} apart)"
    )
    return Tested(how, where, Doubt(code, text, table.section, (where,), apart, extra))


def _clock(table: DocumentTable, row: DocumentRow) -> Iterator[Tested]:
    column, computed = column_of_kind(table, "elapsed"), span(table, row)
    if column is None or computed is None or column.name not in row.figures:
        return
    how = "start and finish"
    found = _test("duration", how, (table, row, column), computed)
    published = figure_range(row, column.name)
    if found.doubt and published and _slipped(published, computed):
        text = (
            f"{place(table, row)}: start and finish are {words(computed, column.unit)} apart, but "
            f"{row.figures[column.name].words} is published: one of the times slipped by 12 hours"
        )
        yield Tested(how, found.figure, Doubt("clock_slip", text, table.section, (found.figure,), 0.5))
    else:
        yield found


def _slipped(published: Range, clock: Range) -> bool:
    """True where the clock agrees with the published duration once half a day is taken off."""
    shifted = (clock.value + DAY_S / 2) % DAY_S
    return agrees(published, "==", Range(shifted, shifted - 2, shifted + 2, 0, 1))


def _relations(published: Published, table: DocumentTable, row: DocumentRow) -> Iterator[Tested]:
    if is_summary(row):
        return
    known = kinds_of(published, table, row)
    for kind, formula, how in RELATIONS:
        column = column_of_kind(table, kind)
        if column is not None and column.name in row.figures and _names(formula) <= set(known):
            computed = evaluate(formula, _kinds(known), how)
            yield from _with_precision(
                _test("relation", how, (table, row, column), computed), (table, row, column), computed
            )
        elif column is None and kind in table.given and _names(formula) <= set(known):
            yield _against_given(table, row, kind, evaluate(formula, _kinds(known), how), how)


def _against_given(table: DocumentTable, row: DocumentRow, kind: str, computed: Range, how: str) -> Tested:
    """What is given for a whole table, such as the number in flight, against what one row implies."""
    figure, where = table.given[kind], f"{table.name}.{row.address}"
    if agrees(as_range(figure), "==", computed):
        return Tested(how, where, None)
    apart = deviation(as_range(figure), computed)
    text = (
        f"{place(table, row)}: {figure.words} {kind.replace('_', ' ')} is given, "
        f"{words(computed, figure.unit)} follows from {how} ({apart:.1%} apart)"
    )
    return Tested(how, where, Doubt("relation", text, table.section, (where,), apart))


def _with_precision(
    found: Tested, target: tuple[DocumentTable, DocumentRow, DocumentColumn], computed: Range
) -> Iterator[Tested]:
    """A figure that is exactly the product of coarser ones has digits that nobody measured."""
    yield found
    table, row, column = target
    figure = row.figures[column.name]
    step = (figure.high - figure.low) / 2
    loose = (computed.high - computed.low) / 2
    if abs(figure.value - computed.value) <= step and loose > 50 * step > 0:
        ends = [
            Range(end, 0, 0, computed.size_power, computed.time_power)
            for end in (computed.low, computed.high)
        ]
        least, most = (words(end, column.unit) for end in ends)
        text = (
            f"{place(table, row, column.name)}: {figure.words} is exactly what {found.how} gives, whose own "
            f"values leave {least} to {most}: computed, not measured, and not to {figure.digits} digits"
        )
        yield Tested(
            found.how, found.figure, Doubt("false_precision", text, table.section, (found.figure,), 0.0)
        )


def _summaries(table: DocumentTable) -> Iterator[Tested]:
    for _, rows in groups(table):
        others = [row for row in rows if not is_summary(row)]
        for row in rows:
            for column in table.columns if is_summary(row) and others else ():
                yield from _summary(table, row, others, column)


def _summary(
    table: DocumentTable, row: DocumentRow, others: Sequence[DocumentRow], column: DocumentColumn
) -> Iterator[Tested]:
    figures = [_best(table, other, column) for other in others]
    if column.name not in row.figures or column.unit == "clock" or any(item is None for item in figures):
        return
    level = row.keys[-1][1]
    items = [item for item in figures if item is not None]
    how = "the sum of the parts" if level == "total" else "the mean of the rows"
    total = fold("sum" if level == "total" else "mean", items)
    extra: tuple[str, ...] = ()
    if level == "total" and len(items) > 2:
        rest = fold("sum", items[1:])
        published = as_range(row.figures[column.name])
        verdict = "would agree" if agrees(published, "==", rest) else "does not agree either"
        extra = (
            f"without {others[0].keys[-1][1]} the parts sum to {words(rest, column.unit)}, which {verdict}",
        )
        extra += tuple(_first_to_last(table, others, column.unit))
    yield _test(level, how, (table, row, column), total, extra)


def _best(table: DocumentTable, row: DocumentRow, column: DocumentColumn) -> Range | None:
    """A duration by the clock where there is one, which is finer than the published minutes."""
    clock = span(table, row) if column.kind == "elapsed" else None
    published = figure_range(row, column.name)
    slipped = clock and published and not agrees(clock, "==", published) and _slipped(published, clock)
    return published if clock is None or slipped else clock


def _first_to_last(table: DocumentTable, rows: Sequence[DocumentRow], unit: str) -> Iterator[str]:
    """The time from the first start to the last finish, where there are times of day."""
    start, finish = column_of_kind(table, "start"), column_of_kind(table, "finish")
    if start and finish and start.name in rows[0].figures and finish.name in rows[-1].figures:
        seconds = (rows[-1].figures[finish.name].value - rows[0].figures[start.name].value) % DAY_S
        yield f"from the first start to the last finish: {words(Range(seconds, 0, 0, 0, 1), unit)}"


def _parts(table: DocumentTable) -> Iterator[Tested]:
    """Columns that are parts of another: their sum must be it."""
    for column in table.columns:
        parts = [part for part in table.columns if part.part_of == column.name]
        for row in table.rows if parts else ():
            figures = [figure_range(row, part.name) for part in parts]
            if column.name in row.figures and all(item is not None for item in figures):
                total = fold("sum", [item for item in figures if item is not None])
                yield _test("total", "the sum of its parts", (table, row, column), total)


def _order(table: DocumentTable) -> Iterator[Tested]:
    """Steps that follow each other: none begins before the one before it ended."""
    start, finish = column_of_kind(table, "start"), column_of_kind(table, "finish")
    if start is None or finish is None:
        return
    for _, rows in groups(table):
        for before, after in itertools.pairwise(row for row in rows if not is_summary(row)):
            ended, begun = before.figures.get(finish.name), after.figures.get(start.name)
            if ended is None or begun is None:
                continue
            gap = (begun.value - ended.value) % DAY_S
            where = address(table, after, start.name)
            if gap <= DAY_S / 4 or gap >= DAY_S - 1:
                yield Tested("the order of steps", where, None)
                continue
            slip = " (12 hours apart: AM and PM are mistaken)" if abs(gap - DAY_S / 2) < DAY_S / 4 else ""
            text = f"{place(table, after)} begins at {begun.text}, the one before ended at {ended.text}{slip}"
            yield Tested(
                "the order of steps", where, Doubt("clock_order", text, table.section, (where,), 0.5)
            )


def _same_quantity(published: Published) -> Iterator[Tested]:
    """The same thing published in two tables: columns with one `quantity`, rows with the same levels."""
    seen: dict[tuple[str, frozenset[tuple[str, str]]], tuple[DocumentTable, DocumentRow, DocumentColumn]] = {}
    for table in published.tables:
        for row, column in itertools.product(table.rows, table.columns):
            if column.name not in row.figures:
                continue
            key = (column.quantity, frozenset(row.keys))
            if key in seen and seen[key][0] is not table:
                yield _twice(seen[key], (table, row, column))
            seen.setdefault(key, (table, row, column))


def _twice(
    first: tuple[DocumentTable, DocumentRow, DocumentColumn],
    second: tuple[DocumentTable, DocumentRow, DocumentColumn],
) -> Tested:
    table, row, column = first
    clock = span(table, row) if column.kind == "elapsed" else None
    how = f"the value {row.figures[column.name].words} under {table.section or table.name!r}"
    own = figure_range(row, column.name)
    if clock is not None and own and agrees(own, "==", clock):
        return _test("two_figures", f"{how} (by the clock)", second, clock)
    if clock is not None and own and not _slipped(own, clock):
        # That figure is itself in doubt: what its own times say is not.
        how = f"start and finish under {table.section or table.name!r}"
        return _test("two_figures", how, second, clock)
    return _test("two_figures", how, second, own) if own else Tested(how, address(*second[:2], ""), None)


def _declared(published: Published) -> Iterator[Tested]:
    for check in published.checks:
        source = published.file if check.line is None else f"{published.file}, line {check.line}"
        left, operator, right = compare(check.text, _lookup(published), source)
        how = check.because or check.text
        if agrees(left, operator, right):
            yield Tested(how, check.text, None)
            continue
        apart = deviation(left, right)
        text = f"{how}: {plain(left)} {operator} {plain(right)} does not hold ({apart:.1%} apart)"
        names = tuple(word for word in check.text.split() if "." in word)
        yield Tested(how, check.text, Doubt("check", text, "", names, apart, (check.text,)))


def _lookup(published: Published) -> Callable[[str], Sequence[Range]]:
    return lambda name: [item.value for item in find(published, name)]


def _impossible(table: DocumentTable) -> Iterator[Doubt]:
    for row in table.rows:
        for name, figure in row.figures.items():
            if figure.slip:
                where = address(table, row, name)
                yield Doubt(
                    "clock_slip", f"{place(table, row, name)}: {figure.slip}", table.section, (where,), 0.5
                )


def _repeated(table: DocumentTable) -> Iterator[Doubt]:
    """Neighbours along a numeric factor with one and the same value, where all others differ."""
    key = table.keys[-1]
    if key in REPEAT_KEYS:
        return
    for _, group in groups(table):
        rows = [row for row in group if row.keys[-1][1].replace(".", "", 1).isdigit()]
        for column in table.columns if len(rows) > 3 and column_is_measured(table) else ():
            values = [row.figures[column.name] for row in rows if column.name in row.figures]
            if column.kind in COUNTS or len({value.text for value in values}) < len(values) - 1:
                continue
            for before, after in itertools.pairwise(rows):
                first, second = before.figures.get(column.name), after.figures.get(column.name)
                if first and second and first.text == second.text and first.digits >= 3:
                    levels = f"{before.keys[-1][1]} and {after.keys[-1][1]}"
                    text = (
                        f"{place(table, before, column.name)}: {first.words} stands for both {levels} "
                        f"({key}): copied, or one of them was not measured"
                    )
                    places = tuple(address(table, row, column.name) for row in (before, after))
                    yield Doubt("repeated_value", text, table.section, places, 0.3)


def column_is_measured(table: DocumentTable) -> bool:
    """True where some column is more than counts."""
    return any(column.kind not in COUNTS for column in table.columns)


def _alike(table: DocumentTable) -> Iterator[Doubt]:
    """Repeats that agree better than independent runs can."""
    key = next((key for key in table.keys if key in REPEAT_KEYS), None)
    for levels, rows in groups(table, without=key) if key else ():
        runs = [row for row in rows if (row.level(key or "") or "") not in ("total", "mean")]
        for column in table.columns:
            figures = [row.figures[column.name] for row in runs if column.name in row.figures]
            values = [figure.value for figure in figures]
            if len(values) < 3 or min(values) <= 0 or min(figure.digits for figure in figures) < 5:
                continue
            spread = (max(values) - min(values)) / max(values)
            if 0 < spread < _ALIKE:
                where = f"{table.section or table.name}: {', '.join(levels)}, {column.name.replace('_', ' ')}"
                text = (
                    f"{where}: {len(values)} runs agree to {spread * 1e6:.0f} parts in a million: "
                    "they ended together, so they are one observation"
                )
                places = tuple(address(table, row, column.name) for row in runs)
                yield Doubt("repeats_too_alike", text, table.section, places, 0.1)


def _packets(table: DocumentTable) -> Iterator[Doubt]:
    """A packet rate right after a rate: how large its packets would be."""
    for rate, packets in itertools.pairwise(table.columns):
        if not (rate.kind.startswith("rate") and packets.kind.startswith("packet_rate")):
            continue
        for row in table.rows:
            amount, count = figure_range(row, rate.name), figure_range(row, packets.name)
            if amount is None or count is None or count.low <= 0:
                continue
            size = amount.value / count.value
            if amount.low / count.high > JUMBO_FRAME_BYTES:
                where = (address(table, row, rate.name), address(table, row, packets.name))
                text = (
                    f"{place(table, row, rate.name)} over {packets.name.replace('_', ' ')} is "
                    f"{size:,.0f} B a packet, more than any frame carries ({JUMBO_FRAME_BYTES:,} B): "
                    "counted before the network card splits them, so the packets are not those of the wire"
                )
                yield Doubt("implausible", text, table.section, where, 0.2)
