"""Which validity codes fire on a cell. Each subject's rules have a module; thresholds are in `codes.yaml`."""

from __future__ import annotations

from dataclasses import replace

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
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import Code, Validity, severity, worst

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


def _advised(code: Code, kind: str) -> Code:
    """The code with a remedy that the kind of work has the options for."""
    return replace(code, remedy=catalogue()[code.code].remedies.get(kind, code.remedy))


def judge(case: Case) -> Validity:
    """All codes that fire, worst first; the kind of work says which never do."""
    fired = (code for rule in _RULES for code in rule(case) if code.code not in case.work.exempt)
    codes = [_advised(code, case.cell.kind) for code in fired]
    codes.sort(key=lambda code: -severity(code.state))
    return Validity(worst(code.state for code in codes), tuple(codes))
