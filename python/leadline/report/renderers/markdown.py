"""The result as GitHub-flavoured Markdown, to paste into an issue, a wiki or a change record."""

from __future__ import annotations

from leadline.report import format as fmt
from leadline.report import metrics, tables, texts
from leadline.report.renderers.terminal import next_steps, state_words
from leadline.report.section_parts import sections_markdown
from leadline.report.tables import CHAIN_HEADINGS, chain_notes, chain_rows
from leadline.report.texts import markdown_text
from leadline.verdict.model import Findings, outcome_words


def to_markdown(findings: Findings) -> str:
    """The whole result: verdicts, tables, validity, machine, how to reproduce."""
    parts = [_masthead(findings), _statements(findings)]
    if findings.frame.cells:
        parts += [*_numbers(findings), *_machine(findings), _reproduce(findings)]
    elif findings.frame.borrowed is None:
        parts += [sections_markdown(findings), _codes(findings), _reproduce(findings)]
    else:
        parts.append(sections_markdown(findings))
    return "\n\n".join(part for part in parts if part) + "\n"


def _numbers(findings: Findings) -> list[str]:
    """Everything that rests on cells, in order."""
    return [
        _key_tables(findings),
        sections_markdown(findings),
        _comparisons(findings),
        _chains(findings),
        _validity(findings),
        _list("Next", [markdown_text(step) for step in next_steps(findings)]),
    ]


def _machine(findings: Findings) -> list[str]:
    return [
        _facts("Machine", findings.host),
        _facts("Cluster", findings.cluster),
        _facts("Leadline's own cost", findings.itself),
    ]


def _masthead(findings: Findings) -> str:
    frame = findings.frame
    parts = [f"# {markdown_text(findings.title)}"]
    if frame.borrowed is not None:
        words = f"Source: {markdown_text(frame.borrowed.source)}. Nothing of this was measured here."
        return "\n\n".join([*parts, words] if frame.borrowed.source else parts)
    if findings.answer is not None:
        parts += [f"**{markdown_text(findings.answer.question)}**", markdown_text(findings.answer.text)]
    if about := (findings.about if frame.command else " ".join(findings.about.split())):
        parts.append(markdown_text(about))
    if findings.cells or findings.frame.cells:
        parts.append(_result(findings))
    if not findings.complete and frame.cells:
        parts.append("**INCOMPLETE**: not every planned trial was run.")
    return "\n\n".join(parts)


def _result(findings: Findings) -> str:
    state = f"**Result: {state_words(findings.state)}**"
    if not findings.frame.cells:
        return state
    tally = tables.tally(findings)
    return f"{state} ({tally})" if tally else "**Result: no cells**"


def _statements(findings: Findings) -> str:
    borrowed = findings.frame.borrowed
    if borrowed is not None:
        said, tolerance = markdown_text(findings.statements[0].text), markdown_text(borrowed.tolerance)
        return f"**{said}**\n\nTolerance: {tolerance}."
    lines = []
    for item in findings.statements:
        text = markdown_text(item.text)
        lines.append(f"- **{text}**" if item.tone == "headline" else f"- {text}")
        lines += [f"  - {markdown_text(evidence)}" for evidence in item.evidence]
    return "\n".join(lines)


def _key_tables(findings: Findings) -> str:
    parts = []
    for target, cells in tables.by_target(findings).items():
        words = next(
            (
                f": {markdown_text(view.words)}"
                for view in findings.targets
                if view.name == target and view.words
            ),
            "",
        )
        data = tables.key_table(findings, cells)
        headings = ["Work", "Validity"]
        for column in data.columns:
            unit = "" if column.heading == "IOPS" else f" ({column.scale.label})"
            headings += [f"{column.heading}{unit}", "95 %"]
        rows = []
        for row in data.rows:
            numbers = [
                markdown_text(part)
                for item in row.measures
                for part in (item.text, item.spread or item.reason)
            ]
            rows.append([markdown_text(row.cell.work), state_words(row.cell.validity.state), *numbers])
        note = "\n\nLatency of mixed workloads: of their reads." if tables.mixed_latency(data) else ""
        table = texts.markdown_table(headings, set(range(2, len(headings))), rows)
        parts.append(f"## {markdown_text(target)}{words}\n\n{table}{note}")
    return "\n\n".join(parts)


def _comparisons(findings: Findings) -> str:
    if not findings.comparisons:
        return ""
    states = tables.states_of(findings)
    rows = [
        [
            markdown_text(item.work),
            metrics.heading(item.metric),
            markdown_text(item.other),
            markdown_text(item.base),
            outcome_words(item.verdict),
            fmt.ratio(item.ratio),
            fmt.ratio_interval(item.low, item.high),
            state_words(tables.comparison_state(item, states)),
        ]
        for item in findings.comparisons
    ]
    headings = ["Work", "Metric", "Other", "Base", "Verdict", "Other / base", "Interval", "Validity"]
    notes = [markdown_text(note) for note in tables.comparison_notes(findings.comparisons)]
    return "\n\n".join(["## Compared", texts.markdown_table(headings, {5, 6}, rows), *notes])


def _chains(findings: Findings) -> str:
    rows = chain_rows(findings)
    if not rows:
        return ""
    lines = [
        [
            markdown_text(row.cell.work),
            markdown_text(row.cell.target),
            "read" if row.chain.direction == "read" else "written",
            ("**INVALID** " if row.cell.validity.state == "INVALID" else "") + markdown_text(row.places),
            *(row.stored, row.model, row.ratio),
        ]
        for row in rows
    ]
    notes = "\n".join(f"- {markdown_text(note)}" for note in chain_notes(rows))
    title = "## Where the bytes came from, how far they got"
    return "\n\n".join(
        part for part in [title, texts.markdown_table(list(CHAIN_HEADINGS), {4, 5, 6}, lines), notes] if part
    )


def _validity(findings: Findings) -> str:
    lines = []
    for item in tables.fired(findings):
        code = item.code
        title = f"{state_words(code.state)}: {markdown_text(fmt.sentence(code.title))}"
        lines.append(f"- **{title}** (`{code.code}`). {markdown_text(code.remedy)}")
        lines += [f"  - {markdown_text(cell)}: {markdown_text(evidence)}" for cell, evidence in item.cells]
    return "## Validity\n\n" + "\n".join(lines) if lines else ""


def _codes(findings: Findings) -> str:
    """What fired, where no cell needs to be named."""
    return "\n\n".join(
        f"**{state_words(code.state)}: {markdown_text(fmt.sentence(code.title))}** (`{code.code}`)."
        f" {markdown_text(code.evidence)}. {markdown_text(code.remedy)}"
        for cell in findings.cells
        for code in cell.validity.codes
    )


def _list(title: str, items: list[str]) -> str:
    return f"## {title}\n\n" + "\n".join(f"- {item}" for item in items) if items else ""


def _facts(title: str, facts: dict[str, str]) -> str:
    return _list(title, [f"{markdown_text(name)}: {markdown_text(value)}" for name, value in facts.items()])


def _reproduce(findings: Findings) -> str:
    if not findings.reproduce:
        return ""
    # Indented code cannot be closed from inside, as a fence can.
    commands = "\n".join(f"    {fmt.printable(line)}" for line in findings.reproduce)
    return f"## How to reproduce\n\n{commands}"
