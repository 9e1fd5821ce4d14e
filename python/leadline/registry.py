"""What packages offer to those below them: the table of kinds of work, the judges of results of other origin.

Who asks knows an interface, and imports none of these modules: each is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

# By what is asked for: the module, and the name there.
OFFERED: Mapping[str, tuple[str, str]] = {
    "kinds planned": ("leadline.workloads.planner", "PLANNERS"),
    "kinds judged": ("leadline.workloads.judge", "KINDS"),
    "values of a document": ("leadline.published.document", "read_document"),
    "stored workflows": ("leadline.workflows.reading", "read_stored_workflows"),
    "checks of traces": ("leadline.tracing.store", "check_traces"),
    "findings of published values": ("leadline.published.findings", "published_findings"),
    "findings of workflows": ("leadline.workflows.findings", "workflow_findings"),
    "findings of a trace": ("leadline.tracing.findings", "trace_findings"),
    "comparisons of two traces": ("leadline.tracing.findings", "compare_traces"),
    "differences of two traced programs": ("leadline.tracing.findings", "different_programs"),
}


def offered(what: str) -> Any:
    """What a package offers by that name. Raises KeyError for a name that no package offers."""
    module, name = OFFERED[what]
    return getattr(importlib.import_module(module), name)
