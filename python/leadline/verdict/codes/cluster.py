"""The cluster's state, as seen at the start and the end of each trial and by samples between."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import Code

# A cluster with room on average may hold one OSD, or a pool with a quota, that has none.
_FULL_CHECKS = frozenset(
    f"{what}_{how}" for what in ("OSD", "POOL") for how in ("NEARFULL", "NEAR_FULL", "BACKFILLFULL", "FULL")
)


def _cluster(case: Case) -> Iterator[Code]:
    """Codes on the cluster's state, as seen at the start and the end of each trial and by samples between."""
    seen: dict[str, str] = {}
    for trial in case.good:
        for moment, text in (("start", trial.start_state), ("end", trial.end_state)):
            state = json.loads(text)
            if state:
                for code, evidence in _cluster_problems(state):
                    seen.setdefault(code, f"at the {moment} of {trial.trial}: {evidence}")
    for trial in case.good:
        for code, count, what in (
            ("cluster_not_clean", trial.pgs_not_clean_max, "not clean"),
            ("scrub_or_recovery", trial.pgs_scrubbing_max, "scrubbing"),
        ):
            if count:
                seen.setdefault(code, f"during {trial.trial}: {count} PGs {what}")
    for code, evidence in seen.items():
        yield catalogue()[code].fire(evidence)


def _cluster_problems(state: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    unclean = {n: c for n, c in state["pgs"].items() if not {"active", "clean"} <= set(n.split("+"))}
    if unclean:
        yield "cluster_not_clean", ", ".join(f"{count} PGs {name}" for name, count in unclean.items())
    elif state["osds"] is not None and state["osds_up"] is not None and state["osds_up"] < state["osds"]:
        yield "cluster_not_clean", f"{state['osds_up']} of {state['osds']} OSDs were up"
    if state["scrubbing"] or state["recovering"]:
        what = "recovery" if state["recovering"] else f"{state['scrubbing']} PGs scrubbing"
        yield "scrub_or_recovery", what
    used, near = state["used_share"], state["nearfull_share"]
    full = {code: text for code, text in state["checks"].items() if code in _FULL_CHECKS}
    if full:
        yield "nearly_full", ", ".join(f"{code}: {text}" for code, text in full.items())
    elif used is not None and near is not None and used >= near:
        yield "nearly_full", f"{used:.0%} used, nearfull at {near:.0%}"


RULES: tuple[Rule, ...] = (_cluster,)
