"""The cluster's state, as seen at the start and the end of each trial and by samples between."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.degraded.states import moods_of
from leadline.verdict.model import Code

# A cluster with room on average may hold one OSD, or a pool with a quota, that has none.
_FULL_CHECKS = frozenset(
    f"{what}_{how}" for what in ("OSD", "POOL") for how in ("NEARFULL", "NEAR_FULL", "BACKFILLFULL", "FULL")
)


def _cluster(case: Case) -> Iterator[Code]:
    """Codes on the cluster's state; where it was not to be clean, that it was not is none of them."""
    seen: dict[str, str] = {}
    for trial in case.good:
        for moment, text in (("start", trial.start_state), ("end", trial.end_state)):
            state = json.loads(text)
            if state:
                for code, evidence in _cluster_problems(state, degraded=case.degraded):
                    seen.setdefault(code, f"at the {moment} of {trial.trial}: {evidence}")
    for trial in case.good:
        for code, count, what in (
            ("cluster_not_clean", trial.pgs_not_clean_max, "not clean"),
            ("scrub_or_recovery", trial.pgs_scrubbing_max, "scrubbing"),
        ):
            if count and not (case.degraded and code == "cluster_not_clean"):
                seen.setdefault(code, f"during {trial.trial}: {count} PGs {what}")
    for code, evidence in seen.items():
        yield catalogue()[code].fire(evidence)


def _as_asked(case: Case) -> Iterator[Code]:
    """Where the cluster was not to be clean: that it was, or could not be asked."""
    if not case.degraded or not case.good or not (case.facts.ceph or case.facts.on_cluster):
        return
    moods = {trial.trial: moods_of(trial) for trial in case.good}
    unlike = [name for name, found in moods.items() if not found or "clean" in found]
    if unlike:
        what = "saw a clean cluster" if moods[unlike[0]] else "could not ask the cluster"
        yield catalogue()["cluster_not_degraded"].fire(
            f"{len(unlike)} of {len(moods)} trials, {unlike[0]} first, {what}"
        )


def _cluster_problems(state: Mapping[str, Any], *, degraded: bool) -> Iterator[tuple[str, str]]:
    unclean = {n: c for n, c in state["pgs"].items() if not {"active", "clean"} <= set(n.split("+"))}
    down = state["osds"] is not None and state["osds_up"] is not None and state["osds_up"] < state["osds"]
    if unclean and not degraded:
        yield "cluster_not_clean", ", ".join(f"{count} PGs {name}" for name, count in unclean.items())
    elif down and not degraded:
        yield "cluster_not_clean", f"{state['osds_up']} of {state['osds']} OSDs were up"
    recovering = state["recovering"] and not degraded
    if state["scrubbing"] or recovering:
        what = "recovery" if recovering else f"{state['scrubbing']} PGs scrubbing"
        yield "scrub_or_recovery", what
    used, near = state["used_share"], state["nearfull_share"]
    full = {code: text for code, text in state["checks"].items() if code in _FULL_CHECKS}
    if full:
        yield "nearly_full", ", ".join(f"{code}: {text}" for code, text in full.items())
    elif used is not None and near is not None and used >= near:
        yield "nearly_full", f"{used:.0%} used, nearfull at {near:.0%}"


RULES: tuple[Rule, ...] = (_cluster, _as_asked)
