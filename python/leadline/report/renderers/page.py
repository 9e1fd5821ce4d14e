"""The HTML page: one file that opens offline, with its pictures, styles and data inside it.

Question, answer, one table and one chart come first. All else is in parts that open on demand.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
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
from leadline.report.still_charts import WIDTH, picture, undrawable
from leadline.report.tables import CHAIN_HEADINGS, chain_notes, chain_rows
from leadline.verdict.model import Cell, FigureTable, Findings, State, TrialView
from leadline.verdict.sections import numbers
from leadline.verdict.sections.section import Facts, Panels, Section, TextTable, Words

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
    panels, lacking = charts.draw(findings), undrawable()
    script, runtime = template_text("page.js"), vega_runtime() if lacking and panels.pictures else ""
    context = _context(findings, panels) | {
        "style": template_text("page.css"),
        "script": script,
        "policy": _policy([script, runtime] if runtime else [script]),
        "lacking": lacking,
        "packed": _Packed(_packed(_chart_json(panels.pictures)), _packed(runtime)) if runtime else None,
        "notices": _lines("notices.txt") if runtime else "",
        "pictures": {} if lacking else _pictures(panels.pictures),
    }
    return str(_environment().get_template("page.html.j2").render(context))


def _lines(name: str) -> Any:
    """A file of the templates as text on the page, with its ends of lines."""
    import markupsafe

    return markupsafe.escape(template_text(name))


@dataclass(frozen=True)
class _Packed:
    """What draws the charts of a page that could not be given them drawn: letters of compressed text."""

    data: str
    runtime: str


def _packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _chart_json(pictures: Iterable[chart_parts.Chart]) -> str:
    specs = {one.id: one.spec for one in pictures}
    known = {"config": chart_parts.CONFIG, "width": WIDTH, "charts": specs}
    return json.dumps(known, allow_nan=False, separators=(",", ":"))


def _policy(scripts: Sequence[str]) -> str:
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    sources = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data:; "
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
        brief=_brief,
        count_of=fmt.plural,
        **section_filters(),
    )
    return environment


def _finalize(value: Any) -> Any:
    """Foreign text is printed with its control characters shown; what is markup already stays."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else fmt.printable(value)


_EXTENT = "95 % CI"  # columns of the first table that a phone has no room for
_WORDS_MAX = 800  # of what a chart shows, for who cannot see it


def _brief(text: str) -> str:
    return text if len(text) <= _WORDS_MAX else f"{text[: _WORDS_MAX - 1]}\u2026"


def _context(findings: Findings, panels: charts.Drawn) -> dict[str, Any]:
    frame = findings.frame
    judged = bool(findings.cells) or frame.borrowed is not None
    shared = {
        "findings": findings,
        "screen": screen_of(findings) if _is_answered(findings) else None,
        "extent": _EXTENT,
        "frame": frame,
        "borrowed": frame.borrowed,
        "shapes": STATE_SHAPES,
        "judged": judged,
        "meaning": _meaning(findings, judged=judged),
        "counts": tables.counts(findings) if frame.cells else (),
        "panels": panels,
        "legend": _legend(findings),
        "opened": _opened(findings.sections) if not frame.cells else (),
        "hint_of": lambda section: _hint(section, findings.sections),
        "fired": tables.fired(findings),
        "next_steps": frame.steps or general_steps(findings),
        **section_context(findings.sections),
    }
    return shared | (_of_cells(findings) if frame.cells else {})


def _is_answered(findings: Findings) -> bool:
    """Whether the answer stands in a part of its own: of cells, or where no statement has it."""
    return findings.frame.cells or not findings.statements


def _meaning(findings: Findings, *, judged: bool) -> str:
    if findings.frame.meaning:
        return findings.frame.meaning
    if findings.frame.borrowed is not None:
        return "Published values: none of them was measured here."
    return _STATE_MEANINGS[findings.state] if judged else "Nothing was measured here: no validity is claimed."


_OPEN_MAX_PX = 1500
_TABLE_MAX_PX = 560  # a longer table scrolls


def _opened(sections: Sequence[Section]) -> frozenset[str]:
    """The sections that are open from the start: the first, and others as far as a screen or two has room."""
    opened: list[str] = []
    total = 0.0
    for section in sorted(shown_sections(sections), key=lambda one: not one.leads):
        total += sum(map(_height, section.parts))
        if opened and total > _OPEN_MAX_PX:
            break
        opened.append(section.name)
    return frozenset(opened)


def _height(part: Any) -> float:
    """About how many CSS pixels a part has on a wide screen."""
    if isinstance(part, Panels):
        return sum(320.0 * math.ceil(len(row) / 2) for row in part.rows)
    if isinstance(part, FigureTable | TextTable):
        return min(90.0 + 33 * len(part.rows), _TABLE_MAX_PX)
    if isinstance(part, Words):
        return 50.0 + sum(60 + 25 * (len(item.points) + len(item.details)) for item in part.items)
    return 50.0 + 28 * len(part.values) if isinstance(part, Facts) else 0.0


def _hint(section: Section, every: Sequence[Section]) -> str:
    """What a closed section holds, and which of several of one title it is."""
    named = [section.entry] if sum(one.title == section.title for one in every) > 1 else []
    parts = section.parts
    kinds = (
        ("chart", sum(len(row) for part in parts if isinstance(part, Panels) for row in part.rows)),
        ("table", sum(isinstance(part, FigureTable | TextTable) for part in parts)),
        ("finding", sum(len(part.items) for part in parts if isinstance(part, Words))),
    )
    return ", ".join([*named, *(fmt.plural(count, noun) for noun, count in kinds if count)])


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
        "outcome": numbers.outcome,
        "bounds": numbers.bounds,
        "base_of": lambda found: ", ".join(dict.fromkeys(item.base for item in found.values())),
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


def _pictures(charts: Iterable[chart_parts.Chart]) -> dict[str, Any]:
    import markupsafe

    # S704: it is written from a tree, which escapes.
    return {one.id: markupsafe.Markup(picture(one.id, one.spec)) for one in charts}  # noqa: S704


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
