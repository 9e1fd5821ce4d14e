"""Writes the tables of docs/tuning.md from settings and bench/tuning.jsonl, so that they never differ."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from leadline.tuning.messages import NEEDS, range_words
from leadline.tuning.settings import LAYERS, Advice, Setting, settings

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "tuning.md"
sys.path.append(str(ROOT / "bench"))  # what was proved is judged where it was measured

from harness import kept  # noqa: E402
from tuning import moved_here  # noqa: E402

_PROVED_KINDS = ("ceph_config", "fuse", "sysctl")
BEGIN, END = "<!-- {} made by tools/tuning_page.py -->", "<!-- end of {} -->"


def page() -> str:
    """The whole page, with its tables made anew."""
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in _PARTS.items():
        begin, end = BEGIN.format(name), END.format(name)
        made = "\n".join([begin, *lines(), end])
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = before + made + after
    return text


def advised_by(document: str) -> Iterator[tuple[Setting, Advice]]:
    """What a document advises, section by section as it has them."""
    found = [(one, told) for one in settings().values() for told in one.advice if document in told.by.split()]
    return iter(sorted(found, key=lambda pair: _section(pair[1])))


def _section(told: Advice) -> float:
    number = re.search(r"[0-9]+(\.[0-9]+)?", told.by)
    return float(number[0]) if number else 0.0


def _document(name: str) -> Iterator[str]:
    proved = moved_here(list(kept("tuning")))
    yield "| section | setting | it advised | result | today | what it moved here |"
    yield "|---|---|---|---|---|---|"
    for one, told in advised_by(name):
        section = told.by.removeprefix(name).strip() if told.by.startswith(name) else ""
        gone = one.obsolete[0].words if one.obsolete else ""
        state = f"gone: {gone}" if gone else "holds" if told.holds else "does not hold"
        here = proved.get(one.name) or _not_tried(one)
        yield _line(section or "-", f"`{one.name}`", told.value, f"{state}; {told.words}", one.default, here)


def _not_tried(one: Setting) -> str:
    """Why a setting was not proved on the bench's lab."""
    if one.obsolete:
        return "not tried: it is gone"
    if one.access.kind not in _PROVED_KINDS or one.needs in ("reboot", "by_hand", "new_osd", "new_file"):
        return f"not tried: it needs {NEEDS[one.needs].partition(':')[0]} or a host's own hardware"
    if one.needs == "restart":
        return "not tried: it needs a restart of its daemons"
    return "not tried"


def _every() -> Iterator[str]:
    count = len(settings())
    yield f"{count} settings."
    proved = moved_here(list(kept("tuning")))
    for layer in LAYERS:
        yield ""
        yield f"### {layer.replace('_', ' ').capitalize()}"
        yield ""
        yield "| setting | what it is | default | may be | needs | trade-off | can mend | moved here |"
        yield "|---|---|---|---|---|---|---|---|"
        for one in settings().values():
            if one.layer == layer:
                yield _line(
                    f"`{one.name}`",
                    one.title,
                    one.default,
                    range_words(one),
                    NEEDS[one.needs].partition(":")[0],
                    ", ".join(dict.fromkeys(price.kind for price in one.prices)) or "-",
                    ", ".join(one.serves) or "-",
                    proved.get(one.name, "not tried"),
                )


def _refused() -> Iterator[str]:
    from leadline.tuning.messages import validity_words

    yield "| setting | where | why |"
    yield "|---|---|---|"
    for one in settings().values():
        for why in one.refused:
            yield _line(f"`{one.name}`", validity_words(why), f"{why.words} ({why.source or one.sources[0]})")
        for why in one.obsolete:
            yield _line(f"`{one.name}`", f"obsolete {validity_words(why)}", why.words)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


_PARTS: Mapping[str, Callable[[], Iterator[str]]] = {
    "SUSE": lambda: _document("SUSE"),
    "Opencast": lambda: _document("Opencast"),
    "refusals": _refused,
    "settings": _every,
}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
