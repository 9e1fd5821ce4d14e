"""From a published document to findings: its tables, what of them does not agree, what its claims rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from leadline.published.checks import derived, oddities, tested
from leadline.published.claims import Judged, judge_claims, limited_rows
from leadline.published.document import DocumentColumn, DocumentRow, DocumentTable, Published, read_document
from leadline.published.figures import SYSTEM_KEY, Doubt, Tested, address
from leadline.store.reader import Result
from leadline.units import format_count
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import Cell, Findings, Quantity, Statement, TargetView, Validity
from leadline.verdict.sections.section import (
    Borrowed,
    Frame,
    Item,
    Marked,
    Section,
    StudyAnswer,
    TextTable,
    Words,
)


@dataclass(frozen=True)
class PublishedDoubt:
    """What does not agree, or is limited by something else than storage; `number` counts from 1."""

    number: int
    code: str
    title: str
    text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class PublishedView:
    """A document's figures, recomputed: `tested` of them could be, `agreed` did."""

    source: str
    tables: tuple[TextTable, ...]
    doubts: tuple[PublishedDoubt, ...]
    claims: tuple[Judged, ...]
    derived: tuple[str, ...]
    tested: int
    agreed: int
    tolerance: str


_CLAIMS = 6  # on the first screen


def published_frame(view: PublishedView) -> Frame:
    """How a report of somebody else's figures is laid out."""
    return Frame(
        cells=False,
        borrowed=Borrowed(view.source, view.tolerance),
        no_jobs="published values are no fio jobs",
    )


def published_sections(view: PublishedView) -> tuple[Section, ...]:
    """Doubts first: what the tables say is read with them in mind."""
    doubts = tuple(
        Item(doubt.text, doubt.title, doubt.number, True, details=doubt.evidence) for doubt in view.doubts
    )
    nothing = "Nothing was found that does not agree."
    judged = Words(doubts, none=nothing, style="numbered", anchor="doubt")
    claims = Words(tuple(_claim_item(claim) for claim in view.claims), style="articles")
    derived = Words(tuple(Item(line) for line in view.derived), "What the document lets one compute")
    return (
        Section("doubts", "Doubts", (judged,), json={"published": _document(view)}, in_csv=False),
        Section("claims", "Claims, and what they rest on", (claims,), "Claims", json={}, in_csv=False),
        Section(
            "tables",
            "The tables as published",
            (*view.tables, *((derived,) if view.derived else ())),
            "Tables",
            json={},
            in_csv=False,
        ),
    )


def published_answer(title: str, head: str, view: PublishedView) -> StudyAnswer:
    """The first screen: whether the figures agree, what does not, and what the document claims.

    A document that claims nothing shows its first table.
    """
    doubts = tuple(f"[{doubt.number}] {doubt.title}: {doubt.text}" for doubt in view.doubts)
    rows = tuple(
        (claim.text, claim.claimed, claim.computed, "agrees" if claim.agrees else "DOES NOT AGREE")
        for claim in view.claims
        if claim.claimed is not None
    )
    heads = ("claim", "claimed", "tables give", "")
    table = TextTable("Claims", heads, rows, brief=_CLAIMS) if rows else None
    if table is None and view.tables:
        table = replace(view.tables[0], brief=_CLAIMS, spaced=False)
    return StudyAnswer(
        question=f"Do the values of \u201c{title}\u201d agree with each other?",
        text=f"{head} None of them was measured here.",
        said=doubts,
        matrix=table,
    )


def _claim_item(claim: Judged) -> Item:
    """A claim with its verdict."""
    basis = tuple(f"rests on {one}" for one in claim.rests_on)
    said = f"{claim.claimed} is claimed; " if claim.claimed else ""
    verdict = "" if claim.claimed is None else "agrees: " if claim.agrees else "DOES NOT AGREE: "
    words = f"{verdict}{said}the tables give {claim.computed}"
    return Item(words, claim.text, doubtful=not claim.agrees, notes=claim.notes, details=basis)


def _document(view: PublishedView) -> dict[str, Any]:
    """The key `published` of `show --json`."""
    return {
        "source": view.source,
        "tested": view.tested,
        "agreed": view.agreed,
        "tolerance": view.tolerance,
        "doubts": [asdict(doubt) for doubt in view.doubts],
        "claims": [
            {
                "text": claim.text,
                "section": claim.claim.section,
                "published": claim.claimed,
                "computed": claim.computed,
                "agrees": claim.agrees if claim.claimed is not None else None,
                "notes": list(claim.notes),
                "rests_on": list(claim.rests_on),
            }
            for claim in view.claims
        ],
        "derived": list(view.derived),
    }


TOLERANCE = (
    "every value may be off by one unit of its last digit, which covers any rounding; "
    "what is listed differs by more"
)
_TITLES = {
    "duration": "a duration that its times do not give",
    "clock_slip": "a slip of the clock",
    "clock_order": "steps out of order",
    "relation": "values that contradict each other by arithmetic",
    "total": "a total that is not the sum",
    "mean": "a mean that is not the mean",
    "two_figures": "two values for one thing",
    "check": "values that exclude each other",
    "claim": "a claim that the tables do not bear out",
    "one_measure": "a claim that holds by one measure only",
    "repeated_value": "one value for two things",
    "repeats_too_alike": "repeats that are one observation",
    "false_precision": "digits that nobody measured",
    "implausible": "more than the medium carries",
    "client_limit": "the client may be the limit",
    "closed_loop": "latency set by the load",
}
_METRICS = {"rate": "bandwidth", "operation_rate": "iops", "latency": "latency_mean"}


_Numbered = Sequence[tuple[PublishedDoubt, tuple[str, ...]]]


def published_view(result: Result) -> PublishedView:
    """An imported document's figures, recomputed."""
    return _view(*_judged(read_document(result)))


def _judged(document: Published) -> tuple[Published, Sequence[Tested], Sequence[Judged], _Numbered]:
    """A document with its checks, its claims, and the doubts about them."""
    checks = tested(document)
    own = [*(check.doubt for check in checks if check.doubt), *oddities(document)]
    claims = judge_claims(document, own)
    doubts = _numbered([*own, *_claim_doubts(claims), *limited_rows(document)])
    return document, checks, claims, doubts


def _view(
    document: Published, checks: Sequence[Tested], claims: Sequence[Judged], doubts: _Numbered
) -> PublishedView:
    return PublishedView(
        source=", ".join(document.source.values()),
        tables=tuple(_table(table, doubts) for table in document.tables),
        doubts=tuple(doubt for doubt, _ in doubts),
        claims=tuple(claims),
        derived=derived(document),
        tested=len(checks),
        agreed=sum(1 for check in checks if check.doubt is None),
        tolerance=TOLERANCE,
    )


def published_findings(result: Result) -> Findings:
    """Everything that can be said of an imported document."""
    document, checks, claims, doubts = _judged(read_document(result))
    view = _view(document, checks, claims, doubts)
    targets = tuple(
        TargetView(system.name, f"published:{system.name}", "published", system.words, dict(system.facts))
        for system in document.systems
    )
    manifest = result.manifest
    statements = tuple(_statements(view))
    return Findings(
        id=str(manifest["id"]),
        kind=str(manifest["kind"]),
        title=document.title,
        about=document.about,
        created=str(manifest.get("created", "")),
        state="DOUBTFUL",
        targets=targets,
        cells=tuple(_cells(document, doubts)),
        comparisons=(),
        statements=statements,
        version=str(manifest.get("version", "")),
        complete=result.complete,
        published_units=True,
        sections=published_sections(view),
        frame=published_frame(view),
        answer=published_answer(document.title, statements[0].text, view),
    )


def _claim_doubts(claims: Sequence[Judged]) -> list[Doubt]:
    found = []
    for item in claims:
        said = item.claim.published
        if not item.agrees and said is not None:
            text = f"“{item.claim.text}”: {said.words} is claimed, the tables give {item.computed}"
            found.append(Doubt("claim", text, item.claim.section, (), item.apart, item.notes))
        elif item.by_others and said is not None:
            text = f"“{item.claim.text}” holds by the measure it names ({item.computed}), not by others"
            found.append(Doubt("one_measure", text, item.claim.section, (), 0.0, item.by_others))
    return found


def _numbered(doubts: Sequence[Doubt]) -> _Numbered:
    """The doubts in the order of how far things are apart, within what is doubted of the figures first."""
    last = (
        "one_measure",
        "false_precision",
        "repeats_too_alike",
        "implausible",
        "client_limit",
        "closed_loop",
    )
    ordered = sorted(doubts, key=lambda doubt: (doubt.code in last, -doubt.deviation))
    return [
        (PublishedDoubt(number, item.code, _TITLES[item.code], item.text, item.evidence), item.figures)
        for number, item in enumerate(ordered, start=1)
    ]


def _table(table: DocumentTable, doubts: _Numbered) -> TextTable:
    units = [f"{c.name.replace('_', ' ')}{_unit_words(c)}" for c in table.columns]
    rows = []
    for row in table.rows:
        levels = [Marked(level) for _, level in row.keys]
        rows.append((*levels, *(_entry(table, row, column, doubts) for column in table.columns)))
    heads = [key.replace("_", " ") for key in table.keys]
    return TextTable(table.section or table.name, (*heads, *units), tuple(rows), spaced=True)


def _unit_words(column: DocumentColumn) -> str:
    return "" if column.unit in ("1", "clock") else f" ({column.unit})"


def _entry(table: DocumentTable, row: DocumentRow, column: DocumentColumn, doubts: _Numbered) -> Marked:
    figure = row.figures.get(column.name)
    if figure is None:
        return Marked("-")
    here = address(table, row, column.name)
    return Marked(figure.text, tuple(doubt.number for doubt, places in doubts if here in places))


def _cells(document: Published, doubts: _Numbered) -> list[Cell]:
    found = []
    for table in document.tables:
        for row in table.rows:
            system = row.level(SYSTEM_KEY) or table.name
            rest = [level for key, level in row.keys if key != SYSTEM_KEY]
            work = ".".join([table.name, *rest])
            found.append(
                Cell(
                    id=f"{system}.{work}",
                    target=system,
                    work=work,
                    factors=dict(row.keys),
                    job={},
                    metrics=_metrics(table, row),
                    validity=_validity(table, row, doubts),
                )
            )
    return found


def _metrics(table: DocumentTable, row: DocumentRow) -> dict[str, Quantity]:
    metrics: dict[str, Quantity] = {}
    for column in table.columns:
        figure = row.figures.get(column.name)
        if figure is None or figure.dimension == "clock":
            continue
        name = _METRICS.get(column.kind, column.name) if column.part_of is None else column.name
        factor, unit = (1e9, "ns") if name == "latency_mean" else (1.0, figure.dimension)
        metrics[name] = Quantity(figure.value * factor, unit, blocks=table.runs or 1)
    return metrics


def _validity(table: DocumentTable, row: DocumentRow, doubts: _Numbered) -> Validity:
    kinds = catalogue()
    codes = [kinds["published"].fire(f"taken from “{table.section or table.name}”")]
    own = f"{table.name}.{row.address}"
    hit = [
        doubt
        for doubt, places in doubts
        if any(place == own or place.startswith(f"{own}.") for place in places)
    ]
    codes += [kinds["disagrees"].fire(f"doubt {doubt.number}: {doubt.title}") for doubt in hit]
    return Validity("DOUBTFUL", tuple(codes))


def _statements(view: PublishedView) -> list[Statement]:
    wrong = view.tested - view.agreed
    head = (
        f"{format_count(view.tested, 'check')} of the document's values: {view.agreed} agree, {wrong} do not."
    )
    judged = [claim for claim in view.claims if claim.claimed is not None]
    failed = sum(1 for claim in judged if not claim.agrees)
    if judged:
        head += f" Of {format_count(len(judged), 'claim')} with a value, the tables do not bear out {failed}."
    found = [Statement("headline", head, (f"Tolerance: {view.tolerance}.",), says="document_checked")]
    found += [
        Statement("finding", f"[{d.number}] {d.title}: {d.text}", d.evidence, says="document_doubt")
        for d in view.doubts
    ]
    text = "These are a document's values: none of them was measured here."
    return [*found, Statement("caution", text, says="document_not_measured")]
