"""On a host that others use the next limit is named on condition, where nothing else is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from builders import trial_row

from leadline.verdict.diagnosis.causes import causes, judged
from leadline.verdict.diagnosis.judge import diagnose
from leadline.verdict.diagnosis.samples import Figures, Samples
from leadline.verdict.diagnosis.trial_figures import figures_of


def figures(**changes: Any) -> Figures:
    row = replace(trial_row(), **changes)
    return figures_of(row, (), Samples(row, {}), 8)


def test_on_a_busy_host_the_next_limit_is_named_apart_from_the_load_of_others() -> None:
    waiting = {"in_flight": 7.9, "asked": 8.0, "latency_s": 0.002}
    busy = {**figures(other_cpu_share=0.6, cpu_busy_share=0.95), **waiting}
    found = diagnose([busy, busy, busy])
    assert [one.entry.name for one in found.named] == ["others_here"]
    assert [one.entry.name for one in found.apart] == ["latency_bound"]
    words = (
        "other processes on this host (60 %); without other processes: too few outstanding requests (99 %)"
    )
    assert found.words == words


def test_where_nobody_can_tell_for_others_the_limit_without_them_is_named() -> None:
    waiting = {"in_flight": 7.9, "asked": 8.0, "latency_s": 0.002}
    found = diagnose([{**figures(other_cpu_share=0.5, cpu_busy_share=0.75), **waiting}])
    assert (found.outcome, found.words.partition(";")[0]) == ("undecided", "unknown")
    assert [one.entry.name for one in found.apart] == ["latency_bound"]


def test_nothing_is_conditional_where_others_do_little_or_the_cause_is_known() -> None:
    waiting = {"in_flight": 7.9, "asked": 8.0, "latency_s": 0.002}
    quiet = {**figures(other_cpu_share=0.05, cpu_busy_share=0.75), **waiting}
    assert diagnose([quiet]).apart == ()
    busy = {**figures(other_cpu_share=0.6, cpu_busy_share=0.95), **waiting}
    assert diagnose([{**busy, "osd_throttled": "osd.1", "osd_throttled_per_s": 9.0}]).apart == ()
    assert diagnose([busy, quiet, quiet]).apart == ()


def test_failed_trials_on_a_busy_host_are_judged_by_what_was_asked_of_them() -> None:
    busy = figures(other_cpu_share=0.6, cpu_busy_share=0.95)
    said = judged([busy], causes())
    assert diagnose([busy], causes(), said).apart == ()


def test_a_warning_that_full_cpus_explain_is_not_named_apart_from_them_either() -> None:
    late = {"osd_peers_s": 0.08, "operation_s": 0.1, "osd_thread_share": 0.1, "pings_slow": 1.0}
    busy = {**figures(other_cpu_share=0.6, cpu_busy_share=0.95), **late}
    found = diagnose([busy, busy])
    assert [one.entry.name for one in found.named] == ["others_here"]
    assert "pings_slow" not in {one.entry.name for one in found.apart}
