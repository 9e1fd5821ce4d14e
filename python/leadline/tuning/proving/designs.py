"""In which states several settings are measured: all of them as one set, one by one, or a fraction of all
their combinations in which each setting's own effect can be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from leadline.errors import RefusedChangeError
from leadline.tuning.proving.proof import WITH, WITHOUT, DesignKind, ProofDesign
from leadline.yamlio.yaml_source import read_yaml

FACTORIAL_BLOCKS = 4  # an even number: states are measured in one order and then in the reverse


def design_of(kind: DesignKind, names: Sequence[str]) -> ProofDesign:
    """The states in which these settings are proved. Raises RefusedChangeError where there are too many."""
    if kind == "factorial" and len(names) > 1:
        return _factorial(names)
    if kind == "one_by_one" and len(names) > 1:
        states = {f"{WITH}_{at}": (name,) for at, name in enumerate(names, start=1)}
        return ProofDesign("one_by_one", {WITHOUT: (), **states})
    return ProofDesign("together", {WITHOUT: (), WITH: tuple(names)})


def _factorial(names: Sequence[str]) -> ProofDesign:
    """The smallest fraction in which no setting's effect is mixed up with that of two others together."""
    generators = _generators()
    most = max(generators)
    if len(names) > most:
        raise RefusedChangeError(
            f"{len(names)} settings are more than the {most} that one proof takes",
            "prove them in groups, the likely ones first; or: --one-by-one",
        )
    from pyDOE3 import fracfact  # loads all of scipy's statistics: only where a proof is planned

    columns = fracfact(generators[len(names)])
    columns = columns * -columns[0]  # the first state is that in which nothing is changed
    states = {}
    for row in columns:
        on = tuple(name for name, level in zip(names, row, strict=True) if level > 0)
        numbers = (str(names.index(name) + 1) for name in on)
        states["_".join((WITH, *numbers)) if on else WITHOUT] = on
    return ProofDesign("factorial", states)


def _generators() -> dict[int, str]:
    """By number of settings, the columns of its design as pyDOE3 writes them."""
    text = files("leadline.tuning.proving").joinpath("designs.yaml").read_text(encoding="utf-8")
    table = read_yaml(text, "designs.yaml", {}).value["generators"]
    return {int(count): str(words) for count, words in table.items()}
