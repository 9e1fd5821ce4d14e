"""What a reader may rely on, against what it saw of each change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kit import Said, checks, durations

_AT_ONCE_MS = 100.0
_WORDS = {
    "name": "a new file's name",
    "size_written": "its size, written but not closed",
    "size_closed": "its size, closed",
    "bytes_written": "its bytes, written but not closed",
    "bytes_closed": "its bytes, closed",
    "bytes_held": "its bytes, closed, by a reader that had it open",
    "rename": "a rename",
    "unlink": "an unlink",
    "link": "a hard link's stat",
}


def answers(said: Said, cell: str, question: str) -> list[dict[str, Any]]:
    """What was answered to a question in each trial, reasons left out."""
    found = (json.loads(row.summary)["coherence"].get(question) for row in said.complete(cell))
    return [one for one in found if one and "reason" not in one]


@checks("pair_relies_on")
def pair_relies_on(said: Said) -> None:
    names, _, text = said.text.rstrip(".").partition(": ")
    cells = said.statement.cells
    assert names.split(", ") == [f"{c.partition('.')[0]} to {c.rpartition('_to_')[2]}" for c in cells]
    for cell in cells:
        if text.startswith("locks by "):
            _locks(said, cell, text)
        elif "writers in one file" in text:
            wrong = sum(max(one["wrong"]) for one in answers(said, cell, "shared_file"))
            assert (wrong == 0) == (text == "two writers in one file keep each other's bytes"), said.text
            lost = re.search(r"\((\d+) of (\d+) lost\)", text)
            assert lost is None or int(lost[1]) == wrong, said.text
        else:
            _seen(said, cell, text)


def _locks(said: Said, cell: str, text: str) -> None:
    kind = re.match(r"locks by (\w+) are (not )?honoured", text)
    assert kind, text
    found = answers(said, cell, f"lock_{kind[1]}")
    kept, asked = (sum(one[name] for one in found) for name in ("honoured", "asked"))
    assert (kept == asked) == (kind[2] is None), said.text


def _seen(said: Said, cell: str, text: str) -> None:
    """Each change in one of: at once, soon, late, never."""
    worst_ms, never = _lags(said, cell)
    late = {name for name in worst_ms if name in never or worst_ms[name] > _AT_ONCE_MS}
    if text == "everything is seen at once":
        assert not late, said.text
    elif text.startswith("close-to-open only"):
        assert late <= {"size_written", "bytes_written", "bytes_held"}, said.text
    else:
        told = dict(_told(text))
        assert told.keys() == worst_ms.keys(), said.text
        for question, how in told.items():
            assert how.startswith("never") == (question in never), said.text
            assert (how == "at once") == (question not in late), said.text
            if "up to" in how:
                (longest_s,) = durations(how.partition("up to ")[2])
                assert worst_ms[question] <= 1005 * longest_s, said.text


def _lags(said: Said, cell: str) -> tuple[dict[str, float], set[str]]:
    """The longest that each change took to be seen, in ms, and what was not seen in the time that was given."""
    worst_ms, never = {}, set()
    for question in _WORDS:
        found = answers(said, cell, question)
        if found:
            worst_ms[question] = max((lag for one in found for lag in one["lags_ns"]), default=0) / 1e6
            if any(one["unseen"] for one in found):
                never.add(question)
    return worst_ms, never


def _told(text: str) -> Iterator[tuple[str, str]]:
    """(what is seen, how soon), longer names first as they begin with shorter ones."""
    for part in text.split("; "):
        how, _, which = part.partition(": ")
        for question in sorted(_WORDS, key=lambda name: -len(_WORDS[name])):
            if _WORDS[question] in which:
                which = which.replace(_WORDS[question], "", 1)
                yield question, how
