"""What became of the trials: whether they ran, all of them, without an error, and read what was written."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.codes.hosts import is_lost
from leadline.verdict.model import Code


def _completeness(case: Case) -> Iterator[Code]:
    if not case.trials:
        reason = case.not_run_reason or "the run ended before it was measured"
        yield catalogue()["not_run"].fire(reason)
    elif len(case.trials) < case.blocks_planned:
        evidence = f"{len(case.trials)} of {case.blocks_planned} blocks"
        yield catalogue()["incomplete"].fire(
            f"{evidence}: {case.not_run_reason}" if case.not_run_reason else evidence
        )


def _errors(case: Case) -> Iterator[Code]:
    bad = [trial for trial in case.trials if trial.state != "complete"]
    failed = [trial for trial in bad if "(verify)" in (trial.error or "")]
    if failed:
        yield catalogue()["verification_failed"].fire(f"{failed[0].trial}: {failed[0].error}")
    others = [trial for trial in bad if trial not in failed and not is_lost(trial)]
    if others:
        yield catalogue()["errors"].fire(
            f"{len(others)} of {len(case.trials)} trials; {others[0].trial}: {others[0].error}"
        )


def _unwritten_blocks(case: Case) -> Iterator[Code]:
    count = sum(trial.unwritten_blocks for trial in case.good)
    if count:
        yield catalogue()["unwritten_blocks"].fire(
            f"{count} blocks of 4 KiB were read that were never written"
        )


RULES: tuple[Rule, ...] = (_completeness, _errors, _unwritten_blocks)
