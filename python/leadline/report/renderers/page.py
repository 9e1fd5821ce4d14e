"""The HTML page: one file that opens offline, with the chart runtime, styles and data inside it."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leadline import units
from leadline.report import format as fmt
from leadline.report import metrics, tables
from leadline.report.charts import draw as charts
from leadline.report.charts import parts as chart_parts
from leadline.report.charts.ways import chain_legend
from leadline.report.first_screen import screen_of
from leadline.report.renderers.runtime import template_text, vega_runtime
from leadline.report.renderers.terminal import general_steps, state_words
from leadline.report.section_parts import fact_words, section_context, section_filters, shown_sections
from leadline.report.still_charts import svg_of, undrawable
from leadline.report.tables import CHAIN_HEADINGS, chain_notes, chain_rows
from leadline.verdict.model import Cell, Findings, State, TrialView, outcome_words

FIGURES_MAX = 36_000  # in all tables of trials: some two megabytes of a page
_EACH = 5  # of any trial: its name, block, order, state and error
_FEWEST = 8  # trials of any cell


@dataclass(frozen=True)
class TrialTable:
    """The trials of one cell: printed numbers under headings with units; `note` says which are left out."""

    headings: tuple[str, ...]
    rows: tuple[tuple[TrialView, tuple[str, ...]], ...]
    note: str = ""


def trial_tables(cells: Sequence[Cell]) -> list[TrialTable]:
    """A table for each cell, in their order."""
    figures = sum(len(cell.trials) * (len(_names(cell.trials)) + _EACH) for cell in cells)
    share = min(1.0, FIGURES_MAX / max(figures, 1))
    return [_table(cell, max(_FEWEST, int(len(cell.trials) * share))) for cell in cells]


def _names(trials: Sequence[TrialView]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for trial in trials for name in trial.values))


def _table(cell: Cell, most: int) -> TrialTable:
    names = _names(cell.trials)
    units_of = {name: cell.metrics[name].unit if name in cell.metrics else _unit_of(name) for name in names}
    scales = {
        name: fmt.scale_for(units_of[name], [trial.values.get(name) for trial in cell.trials])
        for name in names
    }
    headings = tuple(f"{metrics.heading(name)} {scales[name].label}".strip() for name in names)
    kept, note = _kept(cell.trials, most)
    rows = tuple(
        (trial, tuple(fmt.number(trial.values.get(name), scales[name]) for name in names)) for trial in kept
    )
    return TrialTable(headings, rows, note)


def _kept(trials: Sequence[TrialView], most: int) -> tuple[list[TrialView], str]:
    """Those that failed before others, which are taken evenly; and words on what is left out."""
    if len(trials) <= most:
        return list(trials), ""
    failed = [place for place, trial in enumerate(trials) if trial.state != "complete"]
    good = [place for place, trial in enumerate(trials) if trial.state == "complete"]
    chosen = _evenly(failed, most)
    chosen += _evenly(good, most - len(chosen))
    which = "some of those that failed" if len(failed) > most else "evenly over the study"
    if 0 < len(failed) <= most:
        which = f"all that failed ({len(failed)}), and others {which}"
    count = f"{len(chosen):,} of {len(trials):,} trials"
    note = f"{count} stand here: {which}. All are in the result, in trials/."
    return [trials[place] for place in sorted(chosen)], note


def _evenly(places: Sequence[int], most: int) -> list[int]:
    count = min(len(places), most)
    return [places[number * len(places) // count] for number in range(count)]


def _unit_of(name: str) -> str:
    """A trial's figure that is no metric carries its unit in its name."""
    endings = {"_bytes_per_s": "B/s", "_ns": "ns", "_bytes": "B", "bytes": "B", "_s": "s", "_share": "1"}
    return next((unit for ending, unit in endings.items() if name.endswith(ending)), "")


_STATIC_CHARTS_MAX = 24
_STATIC_WIDTH = 340
STATE_SHAPES: dict[State, str] = {
    "VALID": "\u25cf",  # black circle
    "DOUBTFUL": "\u25b2",  # black up-pointing triangle
    "INVALID": "\u25a0",  # black square
    "NOT_RUN": "\u25cb",  # white circle
}
_STATE_MEANINGS: dict[State, str] = {
    "VALID": "These numbers can be relied on.",
    "DOUBTFUL": "These numbers can be used with the cautions below.",
    "INVALID": "Some of these numbers must not be used: see Validity.",
    "NOT_RUN": "Some cells could not be run: see Validity.",
}


@dataclass(frozen=True)
class LegendEntry:
    """How a target is drawn in every chart; `place` (from 1) picks the colour."""

    name: str
    place: int
    dash: str
    shape: str


def to_html(findings: Findings) -> str:
    """The whole page as text (UTF-8 is declared in it)."""
    panels = charts.draw(findings)
    scripted = findings.frame.cells or bool(panels.sections)  # tables of cells sort
    script, runtime = (template_text("page.js"), vega_runtime()) if scripted else ("", "")
    context = _context(findings, panels) | {
        "style": template_text("page.css"),
        "script": script,
        "runtime": runtime,
        "scripted": scripted,
        "policy": _policy([runtime, script] if scripted else []),
        "chart_data": embedded_json(_chart_data(panels.every)),
    }
    return str(_environment().get_template("page.html.j2").render(context))


def embedded_json(value: Any) -> str:
    """JSON that can stand inside a script element: no text in it can close the element or start markup."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(scripts: list[str]) -> str:
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    sources = " ".join(f"'sha256-{value}'" for value in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("leadline.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters.update(
        state=state_words,
        ratio=fmt.ratio,
        heading=metrics.heading,
        fact=fact_words,
        sentence=fmt.sentence,
        moment=fmt.moment,
        **section_filters(),
    )
    return environment


def _finalize(value: Any) -> Any:
    """Foreign text is printed with its control characters shown; what is markup already stays."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else fmt.printable(value)


def _chart_data(every: Iterable[chart_parts.Chart]) -> dict[str, Any]:
    known = {
        item.id: {"title": item.title, "unit": item.unit, "spec": item.spec | {"description": item.words}}
        for item in every
    }
    return {"config": chart_parts.CONFIG, "charts": known}


def _context(findings: Findings, panels: charts.Drawn) -> dict[str, Any]:
    frame = findings.frame
    judged = bool(findings.cells) or frame.borrowed is not None
    lacking = undrawable()
    shared = {
        "findings": findings,
        "screen": screen_of(findings) if _is_answered(findings) else None,
        "frame": frame,
        "borrowed": frame.borrowed,
        "shapes": STATE_SHAPES,
        "judged": judged,
        "meaning": _meaning(findings, judged=judged),
        "counts": tables.counts(findings) if frame.cells else (),
        "panels": panels,
        "legend": _legend(findings),
        "static": {} if lacking else _static_charts(panels.still),
        "no_static": lacking[0] if lacking else "",
        "fired": tables.fired(findings),
        "next_steps": frame.steps or general_steps(findings),
        **section_context(findings.sections),
    }
    of_cells = _of_cells(findings) if frame.cells else {}
    return shared | of_cells | {"contents": _contents(findings, panels)}


def _is_answered(findings: Findings) -> bool:
    """Whether the answer stands in a part of its own: of cells, or where no statement has it."""
    return findings.frame.cells or not findings.statements


def _meaning(findings: Findings, *, judged: bool) -> str:
    if findings.frame.meaning:
        return findings.frame.meaning
    if findings.frame.borrowed is not None:
        return "Published figures: nothing of them was measured here."
    return _STATE_MEANINGS[findings.state] if judged else "Nothing was measured here: no validity is claimed."


@dataclass(frozen=True)
class Contents:
    """(anchor, words) of what every page has first, of what this one has, and of what stands last."""

    first: tuple[tuple[str, str], ...]
    found: tuple[tuple[str, str], ...]
    last: tuple[tuple[str, str], ...] = ()


def _contents(findings: Findings, panels: charts.Drawn) -> Contents:
    sections = tuple(
        (section.name, section.entry) for section in shown_sections(findings.sections) if section.entry
    )
    verdict = ("verdict", "Verdict")
    answer = (("answer", "Answer"),) if findings.answer is not None else ()
    if findings.frame.borrowed is not None:
        return Contents((verdict,), sections)
    if not findings.frame.cells:
        parts = (
            (findings.cells, ("validity", "Validity")),
            (findings.host, ("machine", "Machine")),
            (findings.reproduce, ("reproduce", "Reproduce")),
        )
        first = (*answer, verdict) if _is_answered(findings) else (verdict,)
        return Contents(first, sections, tuple(entry for found, entry in parts if found))
    drawn = (
        (panels.rates, ("speed", "How fast")),
        (panels.latencies, ("latency", "Latency")),
        (panels.series, ("steady", "Over time")),
        (panels.origins, ("origin", "Bytes")),
        (chain_rows(findings), ("chain", "Caches")),
    )
    return Contents(
        (*answer, verdict, ("numbers", "Numbers")),
        (*sections, *(entry for found, entry in drawn if found)),
        (
            ("validity", "Validity"),
            ("details", "Details"),
            ("machine", "Machine"),
            ("reproduce", "Reproduce"),
        ),
    )


def _of_cells(findings: Findings) -> dict[str, Any]:
    """What the page shows of cells."""
    ordered = _in_work_order(findings)
    key = tables.key_table(findings, ordered.cells)
    states = tables.states_of(findings)
    chains = chain_rows(findings)
    return {
        "key": key,
        "single_blocks": any(item.spread == fmt.ONE_SAMPLE for row in key.rows for item in row.measures),
        "against": tables.against_base(findings),
        "worst": lambda item: tables.comparison_state(item, states),
        "comparison_notes": tables.comparison_notes(findings.comparisons),
        "comparisons": [(item, tables.comparison_state(item, states)) for item in findings.comparisons],
        "interval": fmt.ratio_interval,
        "outcome_words": outcome_words,
        "spread": fmt.ratio_spread,
        "chains": chains,
        "chain_headings": CHAIN_HEADINGS,
        "chain_notes": chain_notes(chains),
        "chain_legend": chain_legend(findings),
        "works": _apart(tables.by_work(findings), _common_options(findings)),
        "target_options": _target_options(findings),
        "mixed": tables.mixed_latency(key),
        "common_options": _common_options(findings),
        "details": [
            (cell, _every_metric(cell, findings.published_units), trials)
            for cell, trials in zip(ordered.cells, trial_tables(ordered.cells), strict=True)
        ],
        "job_words": _job_words,
    }


def _in_work_order(findings: Findings) -> Findings:
    cells = tuple(cell for group in tables.by_work(findings).values() for cell in group)
    return replace(findings, cells=cells)


def _legend(findings: Findings) -> list[LegendEntry]:
    return [
        LegendEntry(
            name,
            place % len(chart_parts.PALETTE) + 1,
            " ".join(map(str, chart_parts.DASHES[place % len(chart_parts.DASHES)])),
            chart_parts.SHAPES[place % len(chart_parts.SHAPES)],
        )
        for place, name in enumerate(chart_parts.target_names(findings))
    ]


def _static_charts(panels: tuple[chart_parts.Chart, ...]) -> dict[str, Any]:
    """The first charts as SVG, for a reader without scripts."""
    import markupsafe

    drawn = {}
    for item in panels[:_STATIC_CHARTS_MAX]:
        spec = item.spec | {"width": _STATIC_WIDTH, "autosize": "pad", "config": chart_parts.CONFIG}
        drawn[item.id] = markupsafe.Markup(svg_of(spec))  # noqa: S704  (Vega escapes its text)
    return drawn


def _every_metric(cell: Cell, si: bool) -> list[tuple[str, str, tables.Measure]]:
    rows = []
    for name, item in cell.metrics.items():
        scale = fmt.scale_for(item.unit, [item.value], si=si)
        rows.append((metrics.heading(name), scale.label, tables.printed(item, scale)))
    return rows


def _job_options(cell: Cell) -> dict[str, str]:
    """A job in fio's words, without what is off or has no meaning for it."""
    mixed = len(cell.shown.directions) > 1
    open_loop = bool(cell.job.get("rate_bytes_per_s") or cell.job.get("rate_iops"))
    idle = {"notes", "film", *([] if mixed else ["rwmixread"]), *([] if open_loop else ["arrival"])}
    idle |= {name for name, value in _PLAIN.items() if cell.job.get(name) == value}
    return {
        name: f"{name.removesuffix('_ns').removesuffix('_bytes_per_s')}={_job_value(name, value)}"
        for name, value in cell.job.items()
        if name not in idle and (name == "rwmixread" or value not in (None, False, 0, "", []))
    }


_SIZES = {"bs", "size", "rate_bytes_per_s", "offset", "offset_increment", "file_size", "input_bytes"}
_SIZES |= {"buffer", "source_bytes"}
_PLAIN = {"random_distribution": "map", "shared": "none", "thinktime_blocks": 1}  # what need not be said


def _job_words(cell: Cell) -> str:
    return ", ".join(_job_options(cell).values())


def _shared(cells: Sequence[Cell]) -> tuple[str, ...]:
    """The options that are the same in all `cells`."""
    jobs = [tuple(_job_options(cell).values()) for cell in cells]
    return tuple(option for option in jobs[0] if all(option in job for job in jobs)) if jobs else ()


def _common_options(findings: Findings) -> tuple[str, ...]:
    """What all works have in common, so that each needs to say only what sets it apart."""
    return _shared(findings.cells) if len(tables.by_work(findings)) > 1 else ()


def _apart(groups: Mapping[str, Sequence[Cell]], common: Sequence[str]) -> list[tuple[str, str]]:
    """What each group's cells share beyond `common`."""
    return [
        (name, ", ".join(option for option in _shared(cells) if option not in common))
        for name, cells in groups.items()
    ]


def _target_options(findings: Findings) -> dict[str, str]:
    """The options that depend on the target, such as the engine that suits it."""
    same = {option for cells in tables.by_work(findings).values() for option in _shared(cells)}
    return {
        target: ", ".join(option for option in _shared(cells) if option not in same)
        for target, cells in tables.by_target(findings).items()
    }


def _shares(parts: list[list[int]]) -> str:
    return ":".join(f"{units.exact_size(size)}/{percent}" for size, percent in parts)


def _job_value(name: str, value: Any) -> str:
    if value is True:
        return "1"
    if name.endswith("_ns") and isinstance(value, int):
        return units.exact_duration(value)
    if name in _SIZES and isinstance(value, int):
        return units.exact_size(value)
    if name == "command":
        return shlex.join(map(str, value))
    if name == "pipeline":
        return ",".join(str(stage["stage"]) for stage in value)
    if isinstance(value, list):
        return "+".join(str(item) for item in value)
    if name == "bssplit":
        return ",".join(dict.fromkeys(_shares(value[direction]) for direction in ("read", "write")))
    return str(value)
