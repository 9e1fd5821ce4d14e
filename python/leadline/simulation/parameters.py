"""Parameters of parts: each a value, the interval of 90 % that it may lie in, and where it is from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources

import numpy as np

from leadline.errors import UsageError
from leadline.yamlio.problems import suggest
from leadline.yamlio.yaml_source import Document, read_yaml

COMMON = "common"
CATALOGUE_WORDS = "catalogue: typical parts, not yours; yours by --parameters FILE"
_Z90 = 1.6449
_KEYS = ("value", "low", "high", "source")
KINDS = (
    "measured",
    "catalogue",
    "assumed",
    "given",
)  # where a figure is from; `given`: by a file that does not say


@dataclass(frozen=True)
class Parameter:
    """A figure with `low` to `high`, its interval of 90 %, its source, and of which of `KINDS` that is."""

    value: float
    low: float
    high: float
    source: str
    kind: str = "given"

    def drawn(self, normal: float) -> float:
        """The value of a standard normal draw: log-normal on either side of the most likely one."""
        end = self.high if normal > 0 else self.low
        return self.value * math.exp(abs(normal) / _Z90 * math.log(end / self.value))

    @property
    def spread(self) -> float:
        """Its uncertainty, as the standard deviation of its logarithm."""
        return math.log(self.high / self.low) / 2 / _Z90


@dataclass(frozen=True)
class Parameters:
    """Of all parts (`common`) and each class of device, by section and name; `source`: whose they are."""

    sections: Mapping[str, Mapping[str, Parameter]]
    source: str

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of devices that are known."""
        return tuple(name for name in self.sections if name != COMMON)

    def value(self, section: str, name: str) -> float:
        """One figure."""
        return self.sections[section][name].value

    def drawn(self, random: np.random.Generator) -> Parameters:
        """Another set that could be the true one."""
        found = {
            section: {
                name: replace(one, value=one.drawn(float(random.standard_normal())))
                for name, one in figures.items()
            }
            for section, figures in self.sections.items()
        }
        return replace(self, sections=found)

    def with_values(self, found: Mapping[tuple[str, str], Parameter], source: str) -> Parameters:
        """With others in the place of some."""
        sections = {
            section: {name: found.get((section, name), one) for name, one in figures.items()}
            for section, figures in self.sections.items()
        }
        return Parameters(sections, source)

    def require_class(self, name: str, of: str) -> None:
        """Raises UsageError for a class of device that has no parameters."""
        if name not in self.classes:
            raise UsageError(f"{of}: no class of device is called {name!r}", suggest(name, self.classes))


def catalogue() -> Parameters:
    """What typical parts do, from the catalogue beside this file."""
    text = (resources.files("leadline.simulation") / "catalogue.yaml").read_text(encoding="utf-8")
    return read_parameters(text, "catalogue.yaml (built-in)", CATALOGUE_WORDS)


def read_parameters(text: str, source: str, words: str = "") -> Parameters:
    """Parameters of a text. Raises SpecError with file, line and key."""
    document = read_yaml(text, source, {})
    if not isinstance(document.value, dict) or COMMON not in document.value:
        document.fail(
            (), "parameters have sections: common, and one for each class of device", "see docs/simulation.md"
        )
    for section, figures in document.value.items():
        if not isinstance(figures, dict):
            document.fail((section,), "a section has parameters by name", "see docs/simulation.md")
    sections = {
        section: {name: _parameter(document, section, name, one) for name, one in figures.items()}
        for section, figures in document.value.items()
    }
    return Parameters(sections, words or source)


def read_own_parameters(text: str, source: str) -> Parameters:
    """As `read_parameters`, of a file that has every parameter that the catalogue has, and no other."""
    found, known = read_parameters(text, source), catalogue()
    document = read_yaml(text, source, {})
    for section, figures in found.sections.items():
        names = known.sections[COMMON if section == COMMON else known.classes[0]]
        for name in figures:
            if name not in names:
                document.fail(
                    (section, name), f"there is no parameter {name[:60]!a}", suggest(name, tuple(names))
                )
        for name in names:
            if name not in figures:
                document.fail((section,), f"has no {name}", "copy it from the catalogue: docs/simulation.md")
    if not found.classes:
        document.fail((), "no class of device has parameters", "add a section, for example ssd")
    return found


def _parameter(document: Document, section: str, name: str, given: object) -> Parameter:
    path = (section, name)
    if not isinstance(given, dict) or set(given) - {"kind"} != set(_KEYS):
        document.fail(
            path, "a parameter has value, low, high and source", "{value: 1, low: 0.5, high: 2, source: …}"
        )
    try:
        value, low, high = (float(given[key]) for key in _KEYS[:3])
    except (TypeError, ValueError):
        document.fail(
            path,
            "value, low and high are plain numbers",
            "write seconds, bytes and bytes per second without a unit: 60e-6 for 60 us",
        )
    if not 0 < low <= value <= high < math.inf:
        document.fail(
            path, f"{low:g} to {high:g} is no range above 0 around {value:g}", "0 < low <= value <= high"
        )
    kind = str(given.get("kind", "given"))
    if kind not in KINDS:
        document.fail(path, f"kind {kind[:40]!a} is none", f"write one of {', '.join(KINDS)}")
    return Parameter(value, low, high, str(given["source"]), kind)
