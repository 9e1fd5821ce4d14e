"""What holds of every sentence, whatever it says: no share above the whole, no time beyond the run, no doubt
of a cell kept silent, nothing said of what cannot be used."""

from __future__ import annotations

import re

from kit import Said, number

_SHARE = re.compile(
    r"(?<![-+\d.])(\d[\d,]*(?:\.\d+)?) ?% (?:of|came|had got|reading|writing|metadata|syncs|computing)"
)
_PART = re.compile(r"(?<![\d.,])(\d[\d,]*) of (?:the |its |all |them )?(\d[\d,]*)(?![\d.%])\b(?! hours)")


def hold(said: Said) -> None:
    """Raises AssertionError where one does not."""
    for text in (said.statement.text, *said.statement.evidence):
        shares(text)
        parts(text)
    weight(said)
    readable(said)


def shares(text: str) -> None:
    """A part of something is no more than all of it."""
    for found in _SHARE.findall(text):
        assert number(found) <= 100.0, f"{found} % of something: {text}"


def parts(text: str) -> None:
    """`n of m` is no more than m."""
    for few, many in _PART.findall(text):
        assert number(few) <= number(many), f"{few} of {many}: {text}"


def weight(said: Said) -> None:
    """It says of how many of its cells one cannot be sure, and rests on none that cannot be used."""
    states = {cell.id: cell.validity.state for cell in said.findings.cells}
    unknown = [cell for cell in said.statement.cells if cell not in states]
    assert not unknown, f"{said.statement.says} rests on cells that there are not: {unknown}"
    own = [states[cell] for cell in said.statement.cells]
    assert not {"INVALID", "NOT_RUN"} & set(own), f"{said.statement.says} rests on what cannot be used"
    doubtful = own.count("DOUBTFUL")
    assert said.doubt == ((doubtful, len(own)) if doubtful else None), said.statement.text


def readable(said: Said) -> None:
    """No name of ours for what is not known, and no figure with more digits than anybody reads."""
    assert said.statement.text.strip()
    assert "None" not in said.statement.text
    assert "nan" not in re.findall(r"[a-z]+", said.statement.text)
    assert not re.search(r"\d{10,}", said.statement.text.replace(",", "")), said.statement.text
