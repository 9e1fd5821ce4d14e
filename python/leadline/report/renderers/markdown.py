"""The result as GitHub-flavoured Markdown, to paste into an issue, a wiki or a change record."""

from __future__ import annotations

import re

from leadline.published.printed import published_markdown
from leadline.report import format as fmt
from leadline.report import metrics, tables
from leadline.report.application import markdown_rows, printed_tables
from leadline.report.chains import CHAIN_HEADINGS, chain_notes, chain_rows
from leadline.report.renderers.terminal import next_steps, state_words
from leadline.report.renderers.terminal_trace import trace_markdown
from leadline.verdict.model import Findings

# Everything that Markdown could read as markup; an underscore inside a word is only itself.
_SPECIAL = re.compile(r"([\\`*\[\]#|~$]|(?<!\w)_|_(?!\w))")


def to_markdown(findings: Findings) -> str:
    """The whole result: verdicts, tables, validity, machine, how to reproduce."""
    if findings.published is not None:
        return published_markdown(findings)
    if findings.traces:
        return trace_markdown(findings)
    parts = [
        _masthead(findings),
        _statements(findings),
        _key_tables(findings),
        _application(findings),
        _comparisons(findings),
        _chains(findings),
        _validity(findings),
        _list("Next", [escape(step) for step in next_steps(findings)]),
        _facts("Machine", findings.host),
        _facts("Cluster", findings.cluster),
        _facts("Leadline's own cost", findings.itself),
        _reproduce(findings),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(value: object) -> str:
    """Foreign text on one line, shown as it is: no markup, no HTML, no link made of an address."""
    text = _SPECIAL.sub(r"\\\1", fmt.printable(value))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("://", ":\\/\\/")


def _masthead(findings: Findings) -> str:
    tally = ", ".join(f"{number} {state_words(state)}" for state, number in tables.counts(findings))
    lines = [f"# {escape(findings.title)}", ""]
    if findings.about.strip():
        lines += [escape(" ".join(findings.about.split())), ""]
    lines.append(f"**Result: {state_words(findings.state)}** ({tally})" if tally else "**Result: no cells**")
    if not findings.complete:
        lines += ["", "**INCOMPLETE**: not every planned trial was run."]
    return "\n".join(lines)


def _statements(findings: Findings) -> str:
    lines = []
    for item in findings.statements:
        text = escape(item.text)
        lines.append(f"- **{text}**" if item.tone == "headline" else f"- {text}")
        lines += [f"  - {escape(evidence)}" for evidence in item.evidence]
    return "\n".join(lines)


def _table(headings: list[str], right: set[int], rows: list[list[str]]) -> str:
    marks = ["---:" if place in right else "---" for place in range(len(headings))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [headings, marks, *rows])


def _key_tables(findings: Findings) -> str:
    parts = []
    for target, cells in tables.by_target(findings).items():
        words = next(
            (f": {escape(view.words)}" for view in findings.targets if view.name == target and view.words), ""
        )
        data = tables.key_table(findings, cells)
        headings = ["Work", "Validity"]
        for column in data.columns:
            unit = "" if column.heading == "IOPS" else f" ({column.scale.label})"
            headings += [f"{column.heading}{unit}", "95 %"]
        rows = []
        for row in data.rows:
            numbers = [
                escape(part) for item in row.measures for part in (item.text, item.spread or item.reason)
            ]
            rows.append([escape(row.cell.work), state_words(row.cell.validity.state), *numbers])
        note = "\n\nLatency of mixed works: of their reads." if tables.mixed_latency(data) else ""
        table = _table(headings, set(range(2, len(headings))), rows)
        parts.append(f"## {escape(target)}{words}\n\n{table}{note}")
    return "\n\n".join(parts)


def _application(findings: Findings) -> str:
    parts = []
    for item in printed_tables(findings):
        headings, rows = markdown_rows(item)
        right = set(range(len(item.keys), len(headings)))
        text = _table([*map(escape, headings)], right, [[*map(escape, row)] for row in rows])
        notes = [escape(note) for note in (item.note, *item.reasons) if note]
        parts.append("\n\n".join([f"## {escape(item.title)}", text, *notes]))
    return "\n\n".join(parts)


def _comparisons(findings: Findings) -> str:
    if not findings.comparisons:
        return ""
    states = tables.states_of(findings)
    rows = [
        [
            escape(item.work),
            metrics.heading(item.metric),
            escape(item.other),
            escape(item.base),
            item.verdict,
            fmt.ratio(item.ratio),
            fmt.ratio_interval(item.low, item.high),
            state_words(tables.comparison_state(item, states)),
        ]
        for item in findings.comparisons
    ]
    headings = ["Work", "Metric", "Other", "Base", "Verdict", "Other / base", "Interval", "Validity"]
    notes = [escape(note) for note in tables.comparison_notes(findings.comparisons)]
    return "\n\n".join(["## Compared", _table(headings, {5, 6}, rows), *notes])


def _chains(findings: Findings) -> str:
    rows = chain_rows(findings)
    if not rows:
        return ""
    lines = [
        [
            escape(row.cell.work),
            escape(row.cell.target),
            "read" if row.chain.direction == "read" else "written",
            ("**INVALID** " if row.cell.validity.state == "INVALID" else "") + escape(row.places),
            *(row.stored, row.model, row.ratio),
        ]
        for row in rows
    ]
    notes = "\n".join(f"- {escape(note)}" for note in chain_notes(rows))
    title = "## Where the bytes came from, how far they got"
    return "\n\n".join(
        part for part in [title, _table(list(CHAIN_HEADINGS), {4, 5, 6}, lines), notes] if part
    )


def _validity(findings: Findings) -> str:
    lines = []
    for item in tables.fired(findings):
        code = item.code
        title = f"{state_words(code.state)}: {escape(fmt.sentence(code.title))}"
        lines.append(f"- **{title}** (`{code.code}`). {escape(code.remedy)}")
        lines += [f"  - {escape(cell)}: {escape(evidence)}" for cell, evidence in item.cells]
    return "## Validity\n\n" + "\n".join(lines) if lines else ""


def _list(title: str, items: list[str]) -> str:
    return f"## {title}\n\n" + "\n".join(f"- {item}" for item in items) if items else ""


def _facts(title: str, facts: dict[str, str]) -> str:
    return _list(title, [f"{escape(name)}: {escape(value)}" for name, value in facts.items()])


def _reproduce(findings: Findings) -> str:
    if not findings.reproduce:
        return ""
    # Indented code cannot be closed from inside, as a fence can.
    commands = "\n".join(f"    {fmt.printable(line)}" for line in findings.reproduce)
    return f"## How to reproduce\n\n{commands}"
