"""Several settings at once: their designs, and whether effects that were put into figures come out again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from builders import cell

from leadline.analysis.cells import CellTable
from leadline.analysis.metrics import Measured
from leadline.analysis.statistics.means import is_clear, pairs_told
from leadline.errors import RefusedChangeError, ResultError
from leadline.tuning.proving.request import design_of
from leadline.verdict.proofs.detection import several
from leadline.verdict.proofs.effects import Effects, StatesDesign, find_effects, stored_design
from leadline.verdict.proofs.messages import alias_words, interaction_sentence, told_sentence

FOUR = ("a", "b", "c", "d")


def design(names: tuple[str, ...]) -> StatesDesign:
    found = design_of("factorial", names)
    return StatesDesign("factorial", {state: frozenset(on) for state, on in found.states.items()}, names)


def measured(
    asked: StatesDesign,
    does: Mapping[str, float],
    chance: np.random.Generator,
    *,
    noise: float,
    together: Mapping[tuple[str, str], float] | None = None,
    blocks: int = 4,
    without: tuple[str, int] = ("", 0),
) -> Effects:
    """The effects found in one work, whose rates are made of the factors that each setting multiplies by."""
    cells, tables = [], {}
    drift = chance.normal(0, 0.1, blocks)
    for state, on in asked.levels.items():
        pairs = (factor for pair, factor in (together or {}).items() if {*pair} <= on)
        rate = 1e4 * math.prod(does.get(name, 1.0) for name in on) * math.prod(pairs)
        one = cell(f"{state}.work")
        cells.append(one)
        found = {
            block: Measured({"iops": rate * math.exp(drift[block - 1] + chance.normal(0, noise))}, {})
            for block in range(1, blocks + 1)
            if (state, block) != without
        }
        tables[one.id] = CellTable(one.id, (), found)
    states: Any = dict.fromkeys(tables, "VALID")
    return find_effects(asked, cells, tables, states, ("iops",), 0.05, 0.05)


def verdicts(asked: StatesDesign, effects: Effects) -> dict[str, str]:
    rows = [{"setting": name, "value": "1"} for name in asked.names]
    return {str(one.settings[0]["setting"]): one.outcome for one in several(asked, rows, effects, ()).each}


@pytest.mark.parametrize("count", range(2, 16))
def test_every_design_tells_each_setting_from_any_two_others_in_few_states(count: int) -> None:
    names = tuple(f"s{at}" for at in range(count))
    found = design(names)
    assert is_clear(found.levels, names)
    assert next(iter(found.levels.items())) == ("without", frozenset())
    smallest = 2 ** math.ceil(math.log2(count + 1))  # of resolution III, for as many columns as settings
    assert len(found.levels) <= min(2**count, 2 * smallest)
    assert sorted(pair for group in found.told for pair in group) == sorted(combinations(names, 2))


def test_states_in_which_a_setting_is_mixed_up_with_two_others_are_refused() -> None:
    states = {"without": ["c"], "with_1": ["a"], "with_2": ["b"], "with_1_2": ["a", "b", "c"]}
    settings = [{"setting": name} for name in "abc"]
    manifest = {"proof": {"settings": settings, "design": {"kind": "factorial", "states": states}}}
    with pytest.raises(ResultError, match="do not distinguish its settings"):
        stored_design(manifest)


def test_more_settings_than_a_design_takes_are_refused() -> None:
    with pytest.raises(RefusedChangeError, match="16 settings are more than the 15"):
        design_of("factorial", [f"s{at}" for at in range(16)])


def test_one_by_one_each_state_changes_one_setting_and_together_all() -> None:
    assert dict(design_of("one_by_one", ("a", "b")).states) == {
        "without": (),
        "with_1": ("a",),
        "with_2": ("b",),
    }
    assert dict(design_of("together", ("a", "b")).states) == {"without": (), "with": ("a", "b")}
    assert dict(design_of("factorial", ("a",)).states) == {"without": (), "with": ("a",)}


def test_what_each_setting_multiplies_by_comes_out_whatever_the_others_do() -> None:
    asked = design(FOUR)
    found = measured(asked, {"a": 1.3, "b": 0.8}, np.random.default_rng(1), noise=0.005)
    ratios = {name: compared[0].ratio for name, compared in found.of.items()}
    assert ratios == pytest.approx({"a": 1.3, "b": 0.8, "c": 1.0, "d": 1.0}, rel=0.02)
    assert verdicts(asked, found) == {"a": "helps", "b": "harms", "c": "nothing", "d": "nothing"}


def test_two_that_act_on_each_other_are_found_with_what_they_cannot_be_told_from_and_the_best_way() -> None:
    asked = design(FOUR)
    found = measured(asked, {}, np.random.default_rng(2), noise=0.01, together={("a", "b"): 1.5})
    acting = [one for one in found.interactions if one.best]
    assert [one.group for one in acting] == [(("a", "b"), ("c", "d"))]
    assert acting[0].compared.ratio == pytest.approx(1.5, rel=0.05)
    assert interaction_sentence(acting[0]).startswith(
        "One of a x b, c x d (the design cannot distinguish them) in work iops: "
    )
    assert "if a x b, best with a and b (1.49x neither)" in interaction_sentence(acting[0])
    assert "a x b is confounded with c x d" in alias_words(asked)
    assert "0 of 6 interactions are estimated, the others only in groups of up to 2" in told_sentence(asked)


def test_a_setting_that_only_works_with_another_is_said_to_depend_on_it() -> None:
    asked = design(("a", "b"))
    found = measured(
        asked, {"a": 0.75, "b": 0.75}, np.random.default_rng(3), noise=0.005, together={("a", "b"): 1.78}
    )
    assert verdicts(asked, found) == {"a": "depends", "b": "depends"}
    assert told_sentence(asked).endswith("; the interaction of the pair is estimated.")


def test_a_block_that_lacks_a_state_counts_for_no_effect() -> None:
    asked = design(FOUR)
    state = next(state for state in asked.levels if state != "without")
    found = measured(asked, {}, np.random.default_rng(4), noise=0.01, blocks=5, without=(state, 3))
    assert {compared[0].blocks for compared in found.of.values()} == {4}


def test_of_forty_proofs_with_nothing_there_few_say_that_a_setting_helps() -> None:
    """At most two are expected; `bench/proofs.md` has 2,000. Seven have a chance of one in a thousand."""
    chance, asked = np.random.default_rng(5), design(FOUR)
    false = held = 0
    for _ in range(40):
        found = measured(asked, {"a": 1.3}, chance, noise=0.05)
        said = verdicts(asked, found)
        false += any(said[name] in ("helps", "harms") for name in "bcd")
        one = found.of["a"][0]
        held += one.low is not None and one.high is not None and one.low <= 1.3 <= one.high
    assert false < 7
    assert held > 33


def test_pairs_are_told_where_every_combination_was_measured() -> None:
    found = design(("a", "b", "c"))
    assert pairs_told(found.levels, found.names) == ((("a", "b"),), (("a", "c"),), (("b", "c"),))
