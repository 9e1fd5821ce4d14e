"""What can be said of a document's figures, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.verdict.sections.section import Marked


@dataclass(frozen=True)
class PublishedTable:
    """A table of a document as it was published."""

    name: str
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Marked, ...], ...]


@dataclass(frozen=True)
class PublishedDoubt:
    """What does not agree, or is limited by something else than storage; `number` counts from 1."""

    number: int
    code: str
    title: str
    text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class PublishedClaim:
    """A sentence of the document, what its tables say, and what it rests on."""

    text: str
    section: str
    published: str | None
    computed: str
    agrees: bool
    notes: tuple[str, ...]
    rests_on: tuple[str, ...]


@dataclass(frozen=True)
class PublishedView:
    """A document's figures, recomputed: `tested` of them could be, `agreed` did."""

    source: str
    tables: tuple[PublishedTable, ...]
    doubts: tuple[PublishedDoubt, ...]
    claims: tuple[PublishedClaim, ...]
    derived: tuple[str, ...]
    tested: int
    agreed: int
    tolerance: str
