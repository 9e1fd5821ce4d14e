"""What is shown of a check, on a terminal and as a page: its sections, made once for both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leadline.check.document import FactChange
from leadline.check.judge import Checked
from leadline.check.measured.streams import ALL_AT_ONCE
from leadline.check.rows import Fact, Row, words_of
from leadline.knowledge.findings import SEVERITIES, Finding, Severity
from leadline.verdict.model import State
from leadline.verdict.sections.findings import findings_words
from leadline.verdict.sections.section import Item, Section, TextTable, Words

_SHOWN = 6  # parts of one line
_MATRIX_HOSTS = 16  # with more columns nobody reads it
_PLACES = ("1 MiB", "64 KiB", "random 64 KiB", "random 4 KiB")
_SYNCED = {"plain_us": "plain", "flush_us": "and flush", "fua_us": "with FUA"}
_NONE = "-"
_STATES: Mapping[Severity | None, tuple[State, str]] = {
    "serious": ("INVALID", "Something serious is out of line."),
    "warning": ("DOUBTFUL", "Something is to be mended."),
    "note": ("DOUBTFUL", "Notes only."),
    None: ("VALID", "All is as expected."),
}


@dataclass(frozen=True)
class ShownCheck:
    """What stands first, how bad the worst is of what is out of line, and all of it as sections."""

    headline: str
    state: State
    meaning: str
    sections: tuple[Section, ...]
    fine: int

    def on_screen(self, *, everything: bool) -> tuple[Section, ...]:
        """The sections; what is as it should be only where `everything` is asked for."""
        return tuple(one for one in self.sections if everything or one.name != "fine")


def shown(
    facts: Sequence[Fact], checked: Sequence[Checked], moved: Sequence[FactChange] | None
) -> ShownCheck:
    """Facts, what was judged of them, and what is otherwise than before."""
    bad = [one for one in checked if one.state == "out_of_line"]
    found = findings(checked)
    worst = min((one.severity for one in found if one.severity), key=SEVERITIES.index, default=None)
    state, meaning = _STATES[worst]
    parts = len({(fact.kind, fact.subject) for fact in facts})
    fine = tuple(
        (one.subject, one.row.title, words_of(one.seen, one.row.fact))
        for one in checked
        if one.state == "fine"
    )
    return ShownCheck(
        headline=_headline(bad, len(checked), parts),
        state=state,
        meaning=meaning,
        sections=tuple(_sections(found, moved, checked, (*_matrix(facts, bad), *_measured(facts)), fine)),
        fine=len(fine),
    )


def findings(checked: Sequence[Checked]) -> tuple[Finding, ...]:
    """Each row that is out of line somewhere, with the parts where it is and what was seen of them."""
    by_row: dict[Row, list[Checked]] = {}
    for one in checked:
        if one.state == "out_of_line":
            by_row.setdefault(one.row, []).append(one)
    return tuple(row.finding(_of_whom(ones)) for row, ones in by_row.items())


def _sections(
    found: Sequence[Finding],
    moved: Sequence[FactChange] | None,
    checked: Sequence[Checked],
    tables: tuple[TextTable, ...],
    fine: tuple[tuple[str, str, str], ...],
) -> Iterator[Section]:
    if found:
        yield Section("findings", "Out of line", (findings_words(found),))
    if moved is not None:
        lines = [Item(_change(one)) for one in moved] or [Item("Nothing is otherwise than before.")]
        yield Section("changes", "Otherwise than before", (Words(tuple(lines)),))
    if tables:
        yield Section("tables", "Measured", tables)
    if unknown := _unknown([one for one in checked if one.state == "unknown"]):
        words = Words(tuple(Item(line) for line in unknown), "Could not be read, or is not known")
        yield Section("unknown", "Not read", (words,))
    table = TextTable(f"As expected ({len(fine)})", ("Part", "What", "Seen"), fine, frozenset({2}))
    yield Section("fine", "As expected", (table,))


def _headline(bad: Sequence[Checked], count: int, parts: int) -> str:
    if not bad:
        return f"Nothing of {count} things that were looked at on {parts} parts is out of line."
    words: dict[str, int] = {}
    for one in bad:
        words[one.row.severity] = words.get(one.row.severity, 0) + 1
    kinds = ", ".join(f"{number} {severity}" for severity, number in words.items())
    return f"{len(bad)} of {count} things that were looked at on {parts} parts are out of line: {kinds}."


def _of_whom(ones: Sequence[Checked]) -> str:
    """Each part with what was seen of it; of many the first, and the host that all ways of them share."""
    seen = [f"{one.subject} {words_of(one.seen, one.row.fact)}" for one in ones[:_SHOWN]]
    more = f" and {len(ones) - _SHOWN} more" if len(ones) > _SHOWN else ""
    ends = [set(one.subject.split(" > ")) - {ALL_AT_ONCE} for one in ones]
    shared = set.intersection(*ends) if len(ones) > 1 and ones[0].row.kind == "path" else set()
    common = f"; all of them begin or end at {', '.join(sorted(shared))}" if shared else ""
    return f"{', '.join(seen)}{more}; expected {ones[0].expected}{common}"


def _change(one: FactChange) -> str:
    before, after = (words_of(value, one.name) for value in (one.before, one.after))
    return f"{one.subject}  {one.name}: {before} -> {after}"


def _unknown(ones: Sequence[Checked]) -> tuple[str, ...]:
    """What could not be read, those of one reason together."""
    found: dict[str, dict[str, list[str]]] = {}
    for one in ones:
        found.setdefault(one.reason, {}).setdefault(one.row.title, []).append(one.subject)
    return tuple(
        f"{'; '.join(f'{title} of {_some(parts)}' for title, parts in titles.items())}: {reason}"
        for reason, titles in found.items()
    )


def _some(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
    return f"{', '.join(parts[:_SHOWN])}{more}"


def _matrix(facts: Sequence[Fact], bad: Sequence[Checked]) -> list[TextTable]:
    """A line for each sender and a column for each receiver; of two hosts the sentences say all."""
    alone = {fact.subject: fact for fact in facts if fact.name == "streams_bit_s"}
    at_once = {fact.subject: fact for fact in facts if fact.name == "at_once_bit_s"}
    hosts = list(dict.fromkeys(end for way in alone for end in way.split(" > ")))
    if not 2 < len(hosts) <= _MATRIX_HOSTS:
        return []
    odd = {one.subject for one in bad if one.row.kind == "path"}
    rows = []
    for source in hosts:
        cells = [_NONE if source == sink else _carried(f"{source} > {sink}", alone, odd) for sink in hosts]
        rows.append((source, *cells, _carried(f"{source} > {ALL_AT_ONCE}", at_once, odd)))
    note = "Four TCP streams; ! marks ways that are out of line in any of the above."
    return [_figures("Streams", "from (down) to (across)", (*hosts, ALL_AT_ONCE), tuple(rows), note)]


def _figures(
    title: str, of: str, columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...], note: str = ""
) -> TextTable:
    """A line for each part, a column for each figure of it."""
    right = frozenset(range(1, len(columns) + 1))
    return TextTable(title, (of, *columns), rows, right, note)


def _carried(way: str, rates: Mapping[str, Fact], odd: set[str]) -> str:
    fact = rates.get(way)
    if fact is None or fact.value is None:
        return "?"
    return f"{'! ' if way in odd else ''}{words_of(fact.value, fact.name)}"


def _measured(facts: Sequence[Fact]) -> list[TextTable]:
    """What devices and directories did, those that were asked for it, and what all of them reach at once."""
    notes = [
        f"{fact.subject}, {fact.name.removesuffix('_scaling').replace('_', ' ')}:"
        f" {words_of(fact.value)} of the sum of each alone"
        for fact in facts
        if fact.name.endswith("_scaling") and fact.value is not None
    ]
    found = []
    for way in ("read", "write"):
        names = (f"{way}_1m_bytes_s", f"{way}_64k_bytes_s", f"rand{way}_64k_bytes_s", f"rand{way}_4k_iops")
        of_way = tuple(note for note in notes if f"{way} " in note.rpartition(", ")[2])
        found += _table(way.capitalize(), dict(zip(names, _PLACES, strict=True)), facts, of_way)
    return found + _table("A 4 KiB write", _SYNCED, facts)


def _table(
    title: str, columns: Mapping[str, str], facts: Sequence[Fact], notes: tuple[str, ...] = ()
) -> list[TextTable]:
    """Nothing where no part was asked for any of these."""
    known = {(fact.subject, fact.name): words_of(fact.value, fact.name) for fact in facts}
    asked = dict.fromkeys(fact.subject for fact in facts if fact.name in columns)
    rows = tuple((one, *(known.get((one, name), _NONE) for name in columns)) for one in asked)
    return [_figures(title, "Part", tuple(columns.values()), rows, "; ".join(notes))] if rows else []
