"""The HTML page: one file that opens offline, with the chart runtime, styles and data inside it.

The page may load nothing (`default-src 'none'`) and run only its own two scripts, named by their hash.
Everything that came from outside is escaped by Jinja2, and inside the charts' JSON by `embedded_json`.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from importlib.metadata import version
from typing import Any

from leadline import units
from leadline.published.printed import claim_words
from leadline.report import format as fmt
from leadline.report import metrics, tables
from leadline.report.application import printed_view, printed_ways
from leadline.report.chains import CHAIN_HEADINGS, chain_notes, chain_rows
from leadline.report.charts import draw as charts
from leadline.report.charts import parts as chart_parts
from leadline.report.charts.chain import chain_legend
from leadline.report.renderers import page_trace as trace_page
from leadline.report.renderers.terminal import general_steps, state_words
from leadline.verdict.model import Cell, Findings, State

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


@dataclass(frozen=True)
class TrialTable:
    """The trials of one cell: printed numbers under headings with units."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Any, tuple[str, ...]], ...]


def to_html(findings: Findings) -> str:
    """The whole page as text (UTF-8 is declared in it)."""
    if findings.published is not None:
        return _published_page(findings)
    if findings.traces:
        return _trace_page(findings)
    panels = charts.draw(findings)
    script, runtime = _asset("page.js"), vega_runtime()
    context = _context(findings, panels) | {
        "style": _asset("page.css"),
        "script": script,
        "runtime": runtime,
        "policy": _policy([runtime, script]),
        "chart_data": embedded_json(_chart_data(panels.every)),
    }
    return str(_environment().get_template("page.html.j2").render(context))


def _trace_page(findings: Findings) -> str:
    """A trace: the same look and the same two scripts around sections of its own."""
    found = trace_page.sections(findings)
    drawn = tuple(trace_page.charts_of(found))
    script, runtime = _asset("page.js"), vega_runtime()
    context = trace_page.context(findings, found) | {
        "shapes": STATE_SHAPES,
        "meaning": _STATE_MEANINGS[findings.state],
        "static": {},  # without scripts the words stand there: drawing would take a second more
        "style": _asset("page.css"),
        "script": script,
        "runtime": runtime,
        "policy": _policy([runtime, script]),
        "chart_data": embedded_json(_chart_data(drawn)),
    }
    return str(_environment().get_template("trace.html.j2").render(context))


def _published_page(findings: Findings) -> str:
    """A document's figures: no chart and no script."""
    context = {
        "findings": findings,
        "view": findings.published,
        "claim_words": claim_words,
        "shapes": STATE_SHAPES,
        "style": _asset("page.css"),
        "policy": _policy([]),
    }
    return str(_environment().get_template("published.html.j2").render(context))


def embedded_json(value: Any) -> str:
    """JSON that can stand inside a script element: no text in it can close the element or start markup."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@functools.cache
def vega_runtime() -> str:
    """Vega, Vega-Lite and vega-embed as one script without any import, from the installed vl-convert.

    Putting it together takes two seconds: the build keeps it beside the templates (tools/vega_runtime.py).
    """
    kept = resources.files("leadline.report") / "templates" / f"vega-{version('vl-convert-python')}.js"
    return kept.read_text(encoding="utf-8") if kept.is_file() else made_runtime()


def made_runtime() -> str:
    """The same, put together anew."""
    import vl_convert

    text = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    # An HTML parser ends the element at the first of these, and normalises line ends before hashing.
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--").replace("\r", "")


def _policy(scripts: list[str]) -> str:
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    sources = " ".join(f"'sha256-{value}'" for value in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return (resources.files("leadline.report") / "templates" / name).read_text(encoding="utf-8")


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
        fact=_fact,
        sentence=fmt.sentence,
        moment=fmt.moment,
    )
    return environment


def _finalize(value: Any) -> Any:
    """Foreign text is printed with its control characters shown; what is markup already stays."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else fmt.printable(value)


def _fact(value: Any) -> str:
    """A fact as a person writes it: a list with commas, nothing as a dash."""
    if value is None:
        return fmt.NO_VALUE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name}={_fact(item)}" for name, item in value.items()) or fmt.NO_VALUE
    if isinstance(value, list | tuple):
        return ", ".join(_fact(item) for item in value) or fmt.NO_VALUE
    return str(value)


def _chart_data(every: Iterable[chart_parts.Chart]) -> dict[str, Any]:
    known = {
        item.id: {"title": item.title, "unit": item.unit, "spec": item.spec | {"description": item.words}}
        for item in every
    }
    return {"config": chart_parts.CONFIG, "charts": known}


def _context(findings: Findings, panels: charts.Panels) -> dict[str, Any]:
    ordered = _in_work_order(findings)
    key = tables.key_table(findings, ordered.cells)
    states = tables.states_of(findings)
    chains = chain_rows(findings)
    return {
        "findings": findings,
        "shapes": STATE_SHAPES,
        "meaning": _STATE_MEANINGS[findings.state],
        "counts": tables.counts(findings),
        "key": key,
        "single_blocks": any(item.spread == "n=1" for row in key.rows for item in row.measures),
        "against": tables.against_base(findings),
        "worst": lambda item: tables.comparison_state(item, states),
        "comparison_notes": tables.comparison_notes(findings.comparisons),
        "comparisons": [(item, tables.comparison_state(item, states)) for item in findings.comparisons],
        "interval": fmt.ratio_interval,
        "spread": fmt.ratio_spread,
        "panels": panels,
        "static": _static_charts((*panels.rates, *panels.copies, *panels.shares, *panels.stages)),
        "application": printed_view(findings.application),
        "ways": printed_ways(findings),
        "legend": _legend(findings),
        "chains": chains,
        "chain_headings": CHAIN_HEADINGS,
        "chain_notes": chain_notes(chains),
        "chain_legend": chain_legend(findings),
        "fired": tables.fired(findings),
        "next_steps": general_steps(findings),
        "works": _apart(tables.by_work(findings), _common_options(findings)),
        "target_options": _target_options(findings),
        "mixed": tables.mixed_latency(key),
        "common_options": _common_options(findings),
        "details": [
            (cell, _every_metric(cell, findings.published_units), _trials(cell)) for cell in ordered.cells
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
    import vl_convert

    drawn = {}
    for item in panels[:_STATIC_CHARTS_MAX]:
        spec = item.spec | {"width": _STATIC_WIDTH, "autosize": "pad", "config": chart_parts.CONFIG}
        drawn[item.id] = markupsafe.Markup(vl_convert.vegalite_to_svg(spec))  # noqa: S704  (Vega escapes its text)
    return drawn


def _every_metric(cell: Cell, si: bool) -> list[tuple[str, str, tables.Measure]]:
    rows = []
    for name, item in cell.metrics.items():
        scale = fmt.scale_for(item.unit, [item.value], si=si)
        rows.append((metrics.heading(name), scale.label, tables.printed(item, scale)))
    return rows


def _trials(cell: Cell) -> TrialTable:
    names = tuple(dict.fromkeys(name for trial in cell.trials for name in trial.values))
    units_of = {name: cell.metrics[name].unit if name in cell.metrics else _unit_of(name) for name in names}
    columns = {name: [trial.values.get(name) for trial in cell.trials] for name in names}
    scales = {name: fmt.scale_for(units_of[name], columns[name]) for name in names}
    headings = tuple(f"{metrics.heading(name)} {scales[name].label}".strip() for name in names)
    rows = tuple(
        (trial, tuple(fmt.number(columns[name][place], scales[name]) for name in names))
        for place, trial in enumerate(cell.trials)
    )
    return TrialTable(headings, rows)


def _unit_of(name: str) -> str:
    """A trial's figure that is no metric carries its unit in its name."""
    endings = {"_bytes_per_s": "B/s", "_ns": "ns", "_bytes": "B", "bytes": "B", "_s": "s", "_share": "1"}
    return next((unit for ending, unit in endings.items() if name.endswith(ending)), "")


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
