"""Which validity codes fire on a cell. Each subject's rules have a module; thresholds are in `codes.yaml`."""

from __future__ import annotations

from leadline.verdict.codes import (
    cluster,
    completeness,
    data,
    duration,
    host,
    hosts,
    implausible,
    load,
    origin,
    run,
    settings,
    steadiness,
)
from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.model import Validity, severity, worst

# Codes of one severity stand in this order.
_RULES: tuple[Rule, ...] = (
    *completeness.RULES,
    *origin.RULES,
    *duration.RULES,
    *cluster.RULES,
    *settings.RULES,
    *host.RULES,
    *hosts.RULES,
    *steadiness.RULES,
    *data.RULES,
    *implausible.RULES,
    *load.RULES,
    *run.RULES,
)


def judge(case: Case) -> Validity:
    """All codes that fire, worst first; the kind of work says which never do."""
    codes = [code for rule in _RULES for code in rule(case) if code.code not in case.work.exempt]
    codes.sort(key=lambda code: -severity(code.state))
    return Validity(worst(code.state for code in codes), tuple(codes))
