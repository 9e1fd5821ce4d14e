"""What a report says of sweeps: a map of each grid, the same in letters, and what was measured in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leadline.analysis.knee.surface import Place
from leadline.units import format_quantity
from leadline.verdict.sections.charts import KneeField, KneeMap
from leadline.verdict.sections.section import Panels, Part, Section, TextTable
from leadline.verdict.sweep.answer import sweeps_table
from leadline.verdict.sweep.detection import SweepFound

_MAP_NOTE = (
    "Percent of the plateau: in bold measured, in italics by the fit; a thick frame is the knee, a dashed one"
    " a cell that could be it (95 %). Cells without a frame were not needed."
)
_GRID_NOTE = (
    "Percent of the plateau: 80 measured, (80) by the fit and not needed, [97] the knee, x tried without a"
    " figure to use, blank where the target cannot do it."
)


def sweeps_section(found: Sequence[SweepFound]) -> Section | None:
    """None of a study without sweeps."""
    if not found:
        return None
    parts: list[Part] = [sweeps_table(found)]
    charts = tuple((knee_map(place, one),) for place, one in enumerate(found) if one.knee is not None)
    if charts:
        parts.append(Panels(charts, note=_MAP_NOTE, still=True))
    for one in found:
        parts += [_in_letters(one), _measured(one)]
    known = {"sweeps": [_as_json(one) for one in found]}
    return Section("sweeps", "Sweeps", tuple(parts), json=known, leads=True)


def _as_json(one: SweepFound) -> dict[str, Any]:
    """A sweep for programs: levels by option, rates in base units."""
    knee = one.knee
    found: dict[str, Any] = {
        "name": one.measured.name,
        "target": one.measured.target,
        "share": one.measured.asked.share,
        "metric": one.measured.asked.metric,
        "unit": one.unit,
        "grid": len(one.measured.cells),
        "tried": len(one.tried),
        "trials": one.trials,
        "knee": None,
    }
    if knee is not None:
        found |= {
            "knee": None if knee.rising else _levels_of(one, knee.knee),
            "could_be": [] if knee.rising else [_levels_of(one, cell) for cell in knee.could_be],
            "sure": knee.sure,
            "plateau": dict(zip(("value", "low", "high"), knee.plateau, strict=True)),
            "parts": [{"name": part.name, "share": part.share} for part in one.parts.seen],
            "not_observed": list(one.parts.unseen),
        }
    return found


def _levels_of(one: SweepFound, cell: Place) -> dict[str, float]:
    levels = (own[at] for own, at in zip(one.measured.grid.levels, cell, strict=True))
    return dict(zip(one.measured.asked.over, levels, strict=True))


def knee_map(place: int, one: SweepFound) -> KneeMap:
    """The grid of a sweep, the option with more levels across."""
    across, up = _axes(one)
    return KneeMap(
        f"knee-{place}",
        f"{one.measured.name} on {one.measured.target}: {', '.join(one.measured.asked.over)}",
        "% of the plateau",
        list(one.measured.asked.over)[across],
        "" if up is None else list(one.measured.asked.over)[up],
        _levels(one, across),
        ("",) if up is None else _levels(one, up),
        tuple(_field(one, cell, across, up) for cell in one.measured.cells),
    )


def _axes(one: SweepFound) -> tuple[int, int | None]:
    counts = [len(levels) for levels in one.measured.grid.levels]
    if len(counts) == 1:
        return 0, None
    return (0, 1) if counts[0] >= counts[1] else (1, 0)


def _levels(one: SweepFound, option: int) -> tuple[str, ...]:
    return tuple(one.level(option, at) for at in range(len(one.measured.grid.levels[option])))


def _share(one: SweepFound, cell: Place) -> float | None:
    """Of the plateau: as measured where it was, else by the fit."""
    if one.knee is None or cell in one.unusable or cell in one.measured.failed:
        return None
    rate = one.rate_of(cell)
    return (one.knee.rates.get(cell, 0.0) if rate is None else rate) / one.knee.plateau[0]


def _field(one: SweepFound, cell: Place, across: int, up: int | None) -> KneeField:
    share, rate = _share(one, cell), one.rate_of(cell)
    trials = len(one.tried[cell].trials) if cell in one.tried else 0
    knee = one.knee is not None and cell == one.knee.knee and not one.knee.rising
    if share is None:
        said = "tried, without a figure to use" if trials else "not known"
    elif rate is None:
        said = f"not needed; by the fit {share:.0%} of the plateau"
    else:
        said = f"{format_quantity(rate, one.unit)}, {share:.0%} of the plateau, {_trials(trials)}"
    return KneeField(
        one.level(across, cell[across]),
        "" if up is None else one.level(up, cell[up]),
        share,
        trials,
        f"{one.words(cell)}: {said}{' (the knee)' if knee else ''}",
        knee,
        one.knee is not None and cell in one.knee.could_be and not one.knee.rising,
    )


def _trials(count: int) -> str:
    return f"{count} trial{'' if count == 1 else 's'}"


def _in_letters(one: SweepFound) -> TextTable:
    """The map for a terminal: a row for each level of the option that has more of them."""
    down, across = _axes(one)
    options = list(one.measured.asked.over)
    heading = options[down] if across is None else f"{options[down]} \\ {options[across]}"
    columns = ("",) if across is None else _levels(one, across)
    rows = []
    for at, level in enumerate(_levels(one, down)):
        places = [_place(down, at, across, other) for other in range(len(columns))]
        rows.append((level, *(_letters(one, place) for place in places)))
    return TextTable(
        f"Sweep {one.measured.name} on {one.measured.target}",
        (heading, *(("of the plateau",) if across is None else columns)),
        tuple(rows),
        right=frozenset(range(1, len(columns) + 1)),
        note=_GRID_NOTE,
    )


def _place(down: int, at: int, across: int | None, other: int) -> Place:
    if across is None:
        return (at,)
    return (at, other) if down < across else (other, at)


def _letters(one: SweepFound, cell: Place) -> str:
    if cell not in one.measured.cells:
        return ""
    share = _share(one, cell)
    if share is None:
        return "x" if cell in one.tried else ""
    if one.knee is not None and cell == one.knee.knee and not one.knee.rising:
        return f"[{share:.0%}]"
    return f"{share:.0%}" if cell in one.measured.rates else f"({share:.0%})"


def _measured(one: SweepFound) -> TextTable:
    """What was measured, from the least in flight to the most."""
    rows = []
    for cell in sorted(one.measured.rates, key=lambda cell: (one.measured.grid.amount(cell), cell)):
        rate, share = one.rate_of(cell), _share(one, cell)
        state = one.tried[cell].validity.state if cell in one.tried else "VALID"
        figure = "" if rate is None else format_quantity(rate, one.unit)
        rows.append(
            (
                one.words(cell),
                f"INVALID {figure}" if state == "INVALID" else figure,
                "" if share is None else f"{share:.0%}",
                str(len(one.measured.rates[cell])),
                "" if state == "VALID" else state.replace("_", " "),
            )
        )
    return TextTable(
        f"Cells of {one.measured.name} on {one.measured.target} that were tried",
        ("cell", one.measured.asked.metric, "of the plateau", "blocks", "validity"),
        tuple(rows),
        right=frozenset({1, 2, 3}),
        brief=20,
    )
