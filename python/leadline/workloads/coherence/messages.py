"""What one way to a file system sees of another: figures of trials, tables, and what may be relied on."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.analysis.cells import CellTable
from leadline.analysis.statistics.means import geometric_mean
from leadline.knowledge.tables import numbers
from leadline.plan.model import PlannedCell
from leadline.store.tables import TrialRow
from leadline.study.target import LeftOut
from leadline.units import format_latency
from leadline.verdict.model import (
    UNUSABLE,
    Cell,
    FigureRow,
    FigureTable,
    Quantity,
    State,
    Statement,
)
from leadline.workloads.coherence.job import LAGS, LOCKS, SHARED, WORDS, CoherenceJob

_ALPHA = 0.05


@dataclass(frozen=True)
class Lag:
    """Every repetition of one question between a writer and a reader, of all trials; times in ns.

    `unseen` counts repetitions that were given up; `reason` says why nothing was asked.
    """

    lags_ns: tuple[int, ...]
    unseen: int
    trials: int
    reason: str | None

    @property
    def median_ns(self) -> float | None:
        """Half of the repetitions took longer; one that was given up counts as longer than any."""
        every = [*self.lags_ns, *([math.inf] * self.unseen)]
        middle = statistics.median(every) if every else math.inf
        return middle if math.isfinite(middle) else None

    @property
    def worst_ns(self) -> float | None:
        """The longest; None where one was given up."""
        return None if self.unseen else float(max(self.lags_ns, default=0)) or None

    def median_interval_ns(self) -> tuple[float | None, float | None]:
        """The 95 % interval of the median by the order of the values, whatever their distribution."""
        count = len(self.lags_ns) + self.unseen
        ranked = [*sorted(self.lags_ns), *([math.inf] * self.unseen)]
        place = _rank(count)
        if place is None or not math.isfinite(ranked[count - 1 - place]):
            return None, None
        return float(ranked[place]), float(ranked[count - 1 - place])


def _rank(count: int) -> int | None:
    """The largest rank from either end whose interval covers the median with 95 %; None below six values.

    Source: the sign test: each value lies below the median with chance one half.
    """
    below, found = 0.0, None
    for rank in range(count // 2):
        below += math.comb(count, rank) / 2**count
        if 2 * below > _ALPHA:
            break
        found = rank
    return found


def answers_of(trials: Sequence[TrialRow], question: str) -> list[Mapping[str, Any]]:
    """What each trial found of a question."""
    found = (json.loads(trial.summary).get("coherence") or {} for trial in trials)
    return [answers[question] for answers in found if question in answers]


def lag_of(trials: Sequence[TrialRow], question: str) -> Lag:
    """All repetitions of a question."""
    answers = answers_of(trials, question)
    lags = tuple(int(value) for answer in answers for value in answer.get("lags_ns", ()))
    unseen = sum(int(answer.get("unseen", 0)) for answer in answers)
    reason = next((str(answer["reason"]) for answer in answers if "reason" in answer), None)
    return Lag(lags, unseen, len(answers), reason)


def coherence_metrics(trial: TrialRow) -> tuple[dict[str, float], dict[str, str]]:
    """A trial's metrics: `seen_QUESTION` is the median time, `shared_bandwidth` that of two writers."""
    job = CoherenceJob.model_validate(json.loads(trial.job))
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for question in job.questions:
        if question in LAGS:
            lag = lag_of([trial], question)
            if lag.median_ns is not None:
                values[f"seen_{question}"] = lag.median_ns
            else:
                late = f"not within {job.give_up_ns / 1e9:g} s"
                reasons[f"seen_{question}"] = lag.reason or late
        elif question == SHARED:
            for answer in answers_of([trial], SHARED):
                rates = answer.get("bytes_per_s") or []
                if rates:
                    values["shared_bandwidth"] = statistics.median(rates)
                else:
                    reasons["shared_bandwidth"] = str(answer.get("reason", "not measured"))
    return values, reasons


_EVIDENCE_MAX = 4
_MATRIX = (
    "Rows are writers, columns readers: of all that was asked, the longest time until it was seen, and how"
    " many questions had no answer within give_up."
)
_SEEING, _LOCKING, _SHARING = range(3)  # the order of sentences


def thresholds() -> Mapping[str, float]:
    """The table of `thresholds.yaml`."""
    return numbers(__package__)


@dataclass(frozen=True)
class WriterReader:
    """A writer and a reader: the cell, its job and its good trials."""

    writer: str
    job: CoherenceJob
    cell: Cell
    trials: tuple[TrialRow, ...]

    @property
    def words(self) -> str:
        """Who writes, who reads."""
        return f"{self.writer} to {self.job.reader}"

    @property
    def give_up(self) -> str:
        """What is printed instead of a number that does not exist."""
        return f"not in {self.job.give_up_ns / 1e9:g} s"


def pairs_of(
    planned: Sequence[PlannedCell], cells: Sequence[Cell], tables: Mapping[str, CellTable]
) -> tuple[WriterReader, ...]:
    """The coherence cells of a result."""
    views = {cell.id: cell for cell in cells}
    return tuple(
        WriterReader(cell.target, cell.job, views[cell.id], tables[cell.id].good if cell.id in tables else ())
        for cell in planned
        if isinstance(cell.job, CoherenceJob)
    )


def coherence_tables(pairs: Sequence[WriterReader]) -> tuple[FigureTable, ...]:
    """The table of medians, locks and shared files, and the one of the worst times."""
    if not pairs:
        return ()
    note = (
        "Rows are writers, columns readers. A time runs from the return of the writer's call to the end of"
        f" the reader's first look that saw it; it looks every {format_latency(pairs[0].job.poll_ns)}."
        " The 95 % CI is of the median, by order statistics of all repetitions; fewer than six have none."
    )
    columns = tuple(f"seen by {name}" for name in _readers(pairs))
    matrix = _rows(pairs, "", _summary)
    medians = [row for question in LAGS for row in _rows(pairs, question, _median)]
    medians += [row for question in LOCKS for row in _rows(pairs, question, _lock)]
    medians += [*_rows(pairs, SHARED, _intact, "bytes intact"), *_rows(pairs, SHARED, _rate, "throughput")]
    worst = [row for question in LAGS for row in _rows(pairs, question, _worst)]
    heads = ("What", "Writer")
    return (
        FigureTable("coherence_matrix", "Who sees what whom writes", heads, columns, tuple(matrix), _MATRIX),
        FigureTable(
            "coherence", "How soon the other sees it: the median", heads, columns, tuple(medians), note
        ),
        FigureTable("coherence_worst", "The worst time of all", heads, columns, tuple(worst), ""),
    )


_Figure = Callable[[WriterReader, str], Quantity]


def _readers(pairs: Sequence[WriterReader]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(pair.job.reader for pair in pairs))


def _rows(
    pairs: Sequence[WriterReader], question: str, figure: _Figure, more: str = ""
) -> Iterator[FigureRow]:
    """A row for each writer, where any pair was asked this."""
    asked = [pair for pair in pairs if not question or question in pair.job.questions]
    words = f"{_words(question)}{', ' if more else ''}{more}" if question else "all that was asked"
    for writer in dict.fromkeys(pair.writer for pair in asked):
        own = {pair.job.reader: pair for pair in asked if pair.writer == writer}
        found = [own.get(reader) for reader in _readers(pairs)]
        values = tuple(_figure(pair, question, figure) for pair in found)
        states: tuple[State, ...] = tuple(pair.cell.validity.state if pair else "VALID" for pair in found)
        yield FigureRow((words, writer), values, "VALID", states)


def _words(question: str) -> str:
    return next(words for name, words in WORDS.items() if name == question)


def _figure(pair: WriterReader | None, question: str, figure: _Figure) -> Quantity:
    if pair is None:
        return Quantity(None, "", reason="not asked")
    if not pair.trials:
        codes = pair.cell.validity.codes
        return Quantity(None, "", reason=f"{pair.words}: {codes[0].evidence if codes else 'not measured'}")
    return figure(pair, question)


def _summary(pair: WriterReader, _question: str) -> Quantity:
    """One word or two on all that a reader sees of a writer's work."""
    lags = {name: lag_of(pair.trials, name) for name in LAGS if name in pair.job.questions}
    known = {name: lag for name, lag in lags.items() if lag.lags_ns or lag.unseen}
    if not known:
        return Quantity(None, "", reason=next((lag.reason for lag in lags.values()), None) or "not asked")
    never = [name for name, lag in known.items() if lag.unseen]
    worst_ns = max((lag.worst_ns or 0.0 for lag in known.values()), default=0.0)
    late = worst_ns > thresholds()["at_once_ms"] * 1e6
    parts = [f"never: {len(never)}"] if never else []
    parts += [f"up to {format_latency(worst_ns)}"] if late else []
    return Quantity(None, "", blocks=len(pair.trials), text=", ".join(parts) or "at once")


def _median(pair: WriterReader, question: str) -> Quantity:
    lag = lag_of(pair.trials, question)
    if lag.median_ns is None:
        return _not_seen(pair, lag)
    low, high = lag.median_interval_ns()
    return Quantity(lag.median_ns, "ns", low, high, lag.trials)


def _worst(pair: WriterReader, question: str) -> Quantity:
    lag = lag_of(pair.trials, question)
    return _not_seen(pair, lag) if lag.worst_ns is None else Quantity(lag.worst_ns, "ns", blocks=lag.trials)


def _not_seen(pair: WriterReader, lag: Lag) -> Quantity:
    if lag.unseen:
        return Quantity(None, "ns", blocks=lag.trials, reason=lag.reason, text=pair.give_up)
    return Quantity(None, "ns", reason=lag.reason or "not measured")


def _lock(pair: WriterReader, question: str) -> Quantity:
    answers = answers_of(pair.trials, question)
    reason = next((str(one["reason"]) for one in answers if "reason" in one), None)
    if reason is not None or not answers:
        return Quantity(None, "", reason=reason or "not measured")
    honoured, asked = (sum(int(one[name]) for one in answers) for name in ("honoured", "asked"))
    text = "honoured" if honoured == asked else "ignored" if not honoured else f"{honoured} of {asked}"
    return Quantity(None, "", blocks=len(answers), text=text)


def lock_words(pair: WriterReader, question: str) -> str | None:
    """Whether locks of one kind hold between the two; None where that was not asked."""
    return _lock(pair, question).text if question in pair.job.questions else None


def intact_words(pair: WriterReader) -> str | None:
    """Whether two writers in one file keep each other's bytes; None where that was not asked."""
    return _intact(pair, SHARED).text if SHARED in pair.job.questions else None


def _intact(pair: WriterReader, question: str) -> Quantity:
    answers = answers_of(pair.trials, question)
    reason = next((str(one["reason"]) for one in answers if "reason" in one), None)
    if reason is not None or not answers:
        return Quantity(None, "", reason=reason or "not measured")
    wrong, blocks = (max(_wrong(one) for one in answers), sum(int(one["blocks"]) for one in answers))
    text = "intact" if not wrong else f"{sum(_wrong(one) for one in answers)} of {blocks} lost"
    return Quantity(None, "", blocks=len(answers), text=text)


def _wrong(answer: Mapping[str, object]) -> int:
    found = answer.get("wrong")
    return max((int(one) for one in found), default=0) if isinstance(found, list) else 0


def _rate(pair: WriterReader, question: str) -> Quantity:
    rates = [float(rate) for one in answers_of(pair.trials, question) for rate in one.get("bytes_per_s", ())]
    mean = geometric_mean(rates)
    if mean is None:
        return Quantity(None, "B/s", reason="not measured")
    return Quantity(mean.value, "B/s", mean.low, mean.high, mean.count)


def coherence_progress(trial: TrialRow) -> str:
    """A trial in one line: how many questions had an answer, the slowest of them, and what was never seen."""
    job = CoherenceJob.model_validate(json.loads(trial.job))
    lags = {name: lag_of([trial], name) for name in job.questions if name in LAGS}
    asked = [name for name in job.questions if any("reason" not in one for one in answers_of([trial], name))]
    parts = [f"{len(asked)} of {len(job.questions)} questions could be asked"]
    seen = {name: lag.worst_ns for name, lag in lags.items() if lag.worst_ns is not None}
    if seen:
        worst = max(seen, key=lambda name: seen[name])
        parts.append(f"the slowest seen after {format_latency(seen[worst])}: {_words(worst)}")
    never = [name for name, lag in lags.items() if lag.unseen]
    if never:
        parts.append(f"not in {job.give_up_ns / 1e9:g} s: {_words_of(never)}")
    return "; ".join(parts)


def coherence_statements(pairs: Sequence[WriterReader], left_out: Sequence[LeftOut]) -> tuple[Statement, ...]:
    """What a reader may rely on, pair by pair; pairs of which the same is true share a sentence."""
    said: dict[tuple[int, str], list[WriterReader]] = {}
    for pair in pairs:
        if pair.trials and pair.cell.validity.state not in UNUSABLE:
            for sentence in _sentences(pair):
                said.setdefault(sentence, []).append(pair)
    found = [
        Statement(
            "finding",
            f"{_listed(own)}: {text}.",
            _evidence(own) if kind == _SEEING else (),
            says="pair_relies_on",
            cells=tuple(pair.cell.id for pair in own),
        )
        for (kind, text), own in sorted(said.items(), key=lambda item: item[0][0])
    ]
    if pairs:
        for one in left_out:
            found.append(
                Statement("caution", f"{one.target} was not asked: {one.reason}.", says="pair_not_asked")
            )
    return tuple(found)


def _listed(pairs: Sequence[WriterReader]) -> str:
    return ", ".join(pair.words for pair in pairs)


def _evidence(pairs: Sequence[WriterReader]) -> tuple[str, ...]:
    return tuple(_times(pair) for pair in pairs[:_EVIDENCE_MAX])


def _times(pair: WriterReader) -> str:
    parts = []
    for question in ("name", "bytes_closed", "bytes_held", "rename"):
        lag = lag_of(pair.trials, question)
        if lag.worst_ns is not None:
            parts.append(f"{_words(question)}: {format_latency(lag.worst_ns)} at worst")
        elif lag.unseen:
            parts.append(f"{_words(question)}: {pair.give_up}")
    return f"{pair.words}: {'; '.join(parts)}" if parts else pair.words


def _sentences(pair: WriterReader) -> Iterator[tuple[int, str]]:
    asked = (question for question in LAGS if question in pair.job.questions)
    every: dict[str, Lag] = {question: lag_of(pair.trials, question) for question in asked}
    lags = {question: lag for question, lag in every.items() if lag.lags_ns or lag.unseen}
    if lags:
        yield _SEEING, _visibility(pair, lags)
    for question in LOCKS:
        text = lock_words(pair, question)
        if text is not None:
            held = "are honoured" if text == "honoured" else f"are not honoured ({text})"
            yield _LOCKING, f"locks by {question.removeprefix('lock_')} {held}"
    text = intact_words(pair)
    if text is not None:
        lost = f"two writers in one file lose bytes of each other ({text})"
        yield _SHARING, "two writers in one file keep each other's bytes" if text == "intact" else lost


def _visibility(pair: WriterReader, lags: Mapping[str, Lag]) -> str:
    """One clause on what is seen: at once, only after close, late, or never."""
    at_once_ns, soon_ns = (thresholds()[name] * 1e6 for name in ("at_once_ms", "soon_ms"))
    prompt = [name for name, lag in lags.items() if lag.worst_ns is not None and lag.worst_ns <= at_once_ns]
    late = [name for name in lags if name not in prompt]
    if not late:
        return "everything is seen at once"
    open_only = {"size_written", "bytes_written", "bytes_held"}
    if set(late) <= open_only and "bytes_closed" in prompt:
        return (
            "close-to-open only: seen at once after the writer closed and the reader opened anew, not before"
        )
    never = [name for name in late if lags[name].unseen]
    slow = [name for name in late if not lags[name].unseen]
    parts = []
    if never:
        parts.append(f"never within {pair.job.give_up_ns / 1e9:g} s: {_words_of(never)}")
    if slow:
        worst_ns = max(lags[name].worst_ns or 0.0 for name in slow)
        until = "soon" if worst_ns <= soon_ns else "late"
        parts.append(f"{until}, up to {format_latency(worst_ns)}: {_words_of(slow)}")
    if prompt:
        parts.append(f"at once: {_words_of(prompt)}")
    return "; ".join(parts)


def _words_of(names: Sequence[str]) -> str:
    return ", ".join(_words(name) for name in names)
