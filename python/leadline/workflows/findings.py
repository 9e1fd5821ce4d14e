"""What a media platform's own times say: operations, queues, hosts, and whether a change made a difference.

Nothing was measured here: times are the platform's, and films differ. So figures are means over workflows, a
change is judged by time per GB where sizes are known, every doubt is said, and no validity is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leadline.store.reader import Result
from leadline.verdict.model import Findings
from leadline.verdict.private import HOST, private_texts
from leadline.verdict.sections.section import Frame
from leadline.verdict.sections.stages import stages_section
from leadline.workflows.change import since_change
from leadline.workflows.reading import Workflow
from leadline.workflows.store import read_stored_workflows
from leadline.workflows.tables import (
    operation_table,
    operations_by_host,
    operations_by_name,
    spans_of,
    workflow_table,
)
from leadline.workflows.words import workflow_statements

_NOTE = (
    "The first workflows of the table below on one scale of time: a bar for each operation, from its start to"
    " its end; those that failed say so."
)
_FRAME = Frame(
    cells=False,
    steps=(
        "Every workflow and operation: leadline show DIR --all",
        "For charts: leadline report DIR --format html -o report.html",
    ),
    no_jobs="times of a platform are no fio jobs",
)


def workflow_findings(result: Result) -> Findings:
    """Everything that can be said of imported workflows."""
    workflows = read_stored_workflows(result)
    change = result.manifest.get("since_change_ns")
    tables = [
        workflow_table(workflows),
        operations_by_name(workflows),
        operations_by_host(workflows),
        operation_table(workflows),
    ]
    statements = workflow_statements(workflows)
    if isinstance(change, int):
        table, said = since_change(workflows, change)
        tables.insert(0, table)
        statements[1:1] = said
    source = result.manifest.get("imported", {})
    ranks = {"headline": 0, "finding": 1, "caution": 2}
    return Findings(
        id=str(result.manifest["id"]),
        kind="workflows",
        title=str(result.manifest.get("title", "")),
        about="Times are the platform's own; nothing was measured here.",
        created=str(result.manifest.get("created", "")),
        state="VALID",
        targets=(),
        cells=(),
        comparisons=(),
        statements=tuple(sorted(statements, key=lambda one: ranks[one.tone])),
        version=str(result.manifest.get("version", "")),
        reproduce=(f"leadline import opencast {source.get('source', '')}".rstrip(),),
        sections=(stages_section(tuple(t for t in tables if t.rows), tuple(spans_of(workflows)), _NOTE),),
        frame=_FRAME,
        private={**private_texts(result.manifest), **dict.fromkeys(_hosts(workflows), HOST)},
    )


def _hosts(workflows: Sequence[Workflow]) -> Iterator[str]:
    yield from (one.host for workflow in workflows for one in workflow.operations if one.host)
