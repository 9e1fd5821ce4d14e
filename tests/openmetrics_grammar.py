"""A strict reader of OpenMetrics 1.0 text for tests, after the ABNF and the rules of its specification."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[n"\\])*)"')
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|\+Inf|NaN))")
_META = re.compile(rf"# (TYPE|UNIT|HELP) ({_NAME}) (.*)")


@dataclass
class Family:
    """A metric family with its samples: (labels, value)."""

    name: str
    kind: str
    unit: str = ""
    samples: list[tuple[dict[str, str], float]] = field(default_factory=list)


def parse(text: str) -> dict[str, Family]:
    """The families of a text; an AssertionError says which rule is broken."""
    assert text.endswith("# EOF\n"), "the text ends with # EOF and a line end"
    families: dict[str, Family] = {}
    current: Family | None = None
    for line in text.removesuffix("# EOF\n").splitlines():
        meta = _META.fullmatch(line)
        if meta:
            current = _describe(meta, families, current)
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample, f"neither metadata nor a sample: {line!r}"
        assert current is not None
        assert sample[1] == current.name, "families are not interleaved"
        current.samples.append((_labels(sample[2] or "", current), float(sample[3])))
    return families


def _describe(meta: re.Match[str], families: dict[str, Family], current: Family | None) -> Family:
    if meta[1] == "TYPE":
        assert meta[2] not in families, "a family appears once"
        assert meta[3] in ("gauge", "counter", "stateset", "info", "histogram", "summary", "unknown")
        families[meta[2]] = Family(meta[2], meta[3])
        return families[meta[2]]
    assert current is not None
    assert current.name == meta[2]
    assert not current.samples, "metadata precedes samples"
    if meta[1] == "UNIT":
        current.unit = meta[3]
        assert current.name.endswith(f"_{meta[3]}"), "the name ends with its unit"
    else:
        assert not re.search(r"\\(?![n\\\"])", meta[3]), "HELP is escaped"
    return current


def _labels(text: str, family: Family) -> dict[str, str]:
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        match = _LABEL.match(text, place)
        assert match, f"not a label: {text[place:]!r}"
        assert match[1] not in found, "a label appears once"
        found[match[1]] = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), match[2])
        place = match.end()
        assert text[place : place + 1] in ("", ",")
        place += 1
    if family.kind == "stateset":
        assert family.name in found, "a state set has a label of its own name"
    assert all(found != labels for labels, _ in family.samples), "no sample appears twice"
    return found
