"""A plan and findings as lines for a terminal. Nothing here prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leadline.knowledge.findings import Finding
from leadline.knowledge.pitfalls import HOLDS
from leadline.mounting.plan import MountPlan, Step


def plan_lines(plan: MountPlan) -> Iterable[str]:
    """The whole plan, without the configuration itself."""
    facts = plan.facts
    yield f"{facts.mount_point} is {facts.words}, as client.{facts.user}; this plan changes nothing by itself"
    yield ""
    yield "the new mount"
    yield f"  what     {plan.mount.device}"
    yield f"  where    {plan.mount.mount_point}"
    yield "  options"
    width = max(len(option.text) for option in plan.mount.options)
    for option in plan.mount.options:
        yield f"    {option.text:<{width}}  {option.why}"
    yield ""
    yield f"known pitfalls of the kernel client, for kernel {facts.kernel}"
    yield from finding_lines(plan.findings)
    suffered = [finding for finding in plan.present if finding.holds]
    if suffered:
        yield ""
        yield "what the present mount suffers from"
        yield from finding_lines(suffered)
    yield ""
    yield "the safe order"
    for number, step in enumerate(plan.steps, 1):
        yield from _step_lines(f"{number:>3}. ", step)
    for step in plan.back:
        yield ""
        yield from _step_lines("", step)


def finding_lines(findings: Sequence[Finding]) -> Iterable[str]:
    """Those that hold first, then those that cannot be told, then the rest in one line each."""
    order = (True, None, False)
    for finding in sorted(findings, key=lambda item: order.index(item.holds)):
        yield f"  {HOLDS[finding.holds]}: {finding.name} ({finding.evidence})"
        if finding.holds is not False:
            yield f"      {finding.means}"
            yield f"      check: {finding.verify}"
            yield f"      -> {finding.remedy}"
            yield f"      source: {finding.source}"


def _step_lines(label: str, step: Step) -> Iterable[str]:
    indent = " " * len(label) if label else "  "
    yield f"{label}{step.title}"
    if step.words:
        yield f"{indent}{step.words}"
    for command in step.commands:
        yield f"{indent}  {command}"
