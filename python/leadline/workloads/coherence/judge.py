"""What one way to a storage sees of another, as verdicts see it: a table of its own, writer by reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from leadline.analysis.metrics import Measured, MetricKind
from leadline.store.tables import LatencyRow, TrialRow
from leadline.units import format_latency
from leadline.verdict.interface import JudgedWork, KindAnswer, OwnCells
from leadline.verdict.model import UNUSABLE, CellShown, FigureRow, FigureTable, Quantity, State, Statement
from leadline.workloads.coherence.job import LAGS, LOCKS, WORDS, CoherenceJob
from leadline.workloads.coherence.messages import (
    WriterReader,
    coherence_metrics,
    coherence_progress,
    coherence_statements,
    coherence_tables,
    intact_words,
    lag_of,
    lock_words,
    pairs_of,
    thresholds,
)

AT_ONCE, AFTER_CLOSE, NEVER = "at once", "after close", "never"
_OPEN_ONLY = frozenset({"size_written", "bytes_written", "bytes_held"})
_Word = Callable[[WriterReader], "str | None"]


def seen_word(pair: WriterReader) -> str | None:
    """The worst of what is seen: at once, after the writer closed, in a time, or never; None: not asked."""
    asked = [name for name in LAGS if name in pair.job.questions]
    lags = {name: lag for name in asked if (lag := lag_of(pair.trials, name)).lags_ns or lag.unseen}
    if not lags:
        return None
    at_once_ns = thresholds()["at_once_ms"] * 1e6
    late = {name for name, lag in lags.items() if lag.worst_ns is None or lag.worst_ns > at_once_ns}
    if not late:
        return AT_ONCE
    if late <= _OPEN_ONLY and "bytes_closed" in lags:
        return AFTER_CLOSE
    if any(lags[name].unseen for name in late):
        return NEVER
    return f"in {format_latency(max(lags[name].worst_ns or 0.0 for name in late))}"


def coherence_answer(pairs: Sequence[WriterReader]) -> KindAnswer:
    """The sentence and the matrix; nothing where no pair was asked."""
    if not pairs:
        return KindAnswer()
    good = [pair for pair in pairs if _answered(pair)]
    parts = [text for text in (_seen(good), *(_kept(good, *row) for row in _YES)) if text]
    lost = len(pairs) - len(good)
    rest = f" {lost} of {len(pairs)} pairs gave no answer." if lost else ""
    text = f"Of {len(good)} pairs of ways, {'; '.join(parts)}.{rest}" if parts else ""
    return KindAnswer(text, _matrix(pairs))


def _answered(pair: WriterReader) -> bool:
    return bool(pair.trials) and pair.cell.validity.state not in UNUSABLE


def _seen(pairs: Sequence[WriterReader]) -> str:
    words = [word for pair in pairs if (word := seen_word(pair))]
    if not words:
        return ""
    at_once = words.count(AT_ONCE)
    parts = [f"{at_once} see everything at once"]
    parts += [f"{count} some things {word}" for word in (AFTER_CLOSE, NEVER) if (count := words.count(word))]
    late = len(words) - sum(words.count(word) for word in (AT_ONCE, AFTER_CLOSE, NEVER))
    return ", ".join([*parts, *([f"{late} some things late"] if late else [])])


def _kept(pairs: Sequence[WriterReader], word: _Word, good: str, clause: str) -> str:
    words = [found for pair in pairs if (found := word(pair))]
    return f"{words.count(good)} of {len(words)} asked {clause}" if words else ""


def _lock(question: str) -> _Word:
    return lambda pair: lock_words(pair, question)


def _kept_word(question: str) -> _Word:
    short = {"honoured": "kept", "ignored": "not kept"}
    return lambda pair: short.get(word, word) if (word := lock_words(pair, question)) else None


# What is asked besides what is seen: the word, which word is good, and its clause.
_YES: tuple[tuple[_Word, str, str], ...] = (
    *((_lock(name), "honoured", f"honour locks by {name.removeprefix('lock_')}") for name in LOCKS),
    (intact_words, "intact", "keep the bytes of two writers in one file"),
)


def _matrix(pairs: Sequence[WriterReader]) -> FigureTable:
    asked: list[tuple[str, _Word]] = [("seen", seen_word)]
    asked += [(name.replace("lock_", "lock, "), _kept_word(name)) for name in LOCKS]
    asked.append(("shared file", intact_words))
    readers = tuple(dict.fromkeys(pair.job.reader for pair in pairs))
    rows = []
    for what, word in asked:
        for writer in dict.fromkeys(pair.writer for pair in pairs):
            own = {pair.job.reader: pair for pair in pairs if pair.writer == writer}
            found = [own.get(reader) for reader in readers]
            states: tuple[State, ...] = tuple(pair.cell.validity.state if pair else "VALID" for pair in found)
            values = tuple(_entry(pair, word) for pair in found)
            if any(item.text for item in values):
                rows.append(FigureRow((what, writer), values, "VALID", states))
    note = "Rows are writers, columns readers. seen: the worst of all that was asked."
    return FigureTable(
        "answer", "What readers see of writers", ("What", "Writer"), readers, tuple(rows), note
    )


def _entry(pair: WriterReader | None, word: _Word) -> Quantity:
    if pair is None:
        return Quantity(None, "", reason="not asked")
    text = word(pair) if _answered(pair) else None
    codes = pair.cell.validity.codes
    return Quantity(
        None, "", text=text, reason=None if text else codes[0].evidence if codes else "not measured"
    )


# What one way to a file system sees of another.
_SEEN = {
    **{f"seen_{name}": MetricKind("ns", False, f"time until seen: {WORDS[name]}") for name in LAGS},
    "shared_bandwidth": MetricKind("B/s", True, "bandwidth of two writers in one file"),
}


class JudgedCoherence(JudgedWork[CoherenceJob]):
    """Asked for nothing: a writer's readers are no alternatives to each other.

    A trial takes as long as its questions do, and so is never too short.
    """

    kind = CoherenceJob.kind
    metric_kinds = _SEEN
    # Its intervals are of repetitions, of which one block has enough.
    exempt = frozenset({"too_short", "few_blocks"})

    def metrics(
        self,
        trial: TrialRow,
        latency: Sequence[LatencyRow],
        *,
        open_loop: bool,
        extra: Any,
    ) -> Measured:
        """The median time of each question."""
        return Measured(*coherence_metrics(trial))

    def default_metrics(self, job: CoherenceJob) -> tuple[str, ...]:
        """None."""
        return ()

    def progress(self, trial: TrialRow) -> str | None:
        """What was seen, and what never was."""
        return coherence_progress(trial)

    def shown(self, job: CoherenceJob) -> CellShown:
        """Of two targets, and so in no target's table."""
        return CellShown(own_tables=True)

    def statements(self, own: OwnCells) -> Iterable[Statement]:
        """What a reader may rely on."""
        return coherence_statements(_pairs(own), own.left_out)

    def answer(self, own: OwnCells) -> KindAnswer:
        """A word for each writer and reader."""
        return coherence_answer(_pairs(own))

    def pair_tables(self, own: OwnCells) -> tuple[FigureTable, ...]:
        """Medians, locks and shared files; the worst times."""
        return coherence_tables(_pairs(own))


def _pairs(own: OwnCells) -> Any:
    return pairs_of(own.planned, own.cells, own.tables)
