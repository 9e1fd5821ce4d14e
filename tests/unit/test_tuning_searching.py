"""A search of settings: its space, who proposes, what is stopped and chosen, and the states that try it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from leadline.analysis.proposing import (
    ProposalSeen,
    SearchLimits,
    best_proposal,
    judge_proposals,
    next_proposal,
)
from leadline.cli.change.searching.course import SearchCourse, SearchTime, known_blocks, next_block
from leadline.errors import RefusedChangeError, TuningError
from leadline.store.own import StoredProposal, read_proposals, write_proposals
from leadline.tuning.changing.journal import TuningJournal
from leadline.tuning.changing.reverting import revert
from leadline.tuning.proving.proof import ProofJournal, ProvedSetting, kept
from leadline.tuning.proving.request import searched_setting
from leadline.tuning.searching.sampler import TriedProposal, ValueStates, propose
from leadline.tuning.searching.space import SearchDimension, dimension_of, split_space
from leadline.tuning.settings import Price, Setting, SettingAccess, SettingChange, SettingPlace
from leadline.tuning.system import TuningSystem

BENCH = Path(__file__).parents[2] / "bench"
LIMITS = SearchLimits(2)
PLACE = SettingPlace()
DIAL = Setting(
    name="dial",
    title="A dial",
    layer="sysctl",
    roles=("client",),
    access=SettingAccess("sysctl", {"key": "vm.dial"}),
    means="",
    unit="count",
    default="1",
    needs="live",
    persist="sysctl",
    sources=("a test",),
    at_least=0,
    at_most=9,
)


# The space


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "empty"),
        (("dial=3",), "one value only"),
        (("dial=3|3",), "twice"),
        (("dial=true|on|",), "no values"),
        (("dial=..4",), "lacks an end"),
        (("dial=1..4|9",), "both a range and a list"),
        (("dial=1..4", "dial=5..6"), "dial twice"),
    ],
)
def test_words_that_are_no_space_are_refused(words: tuple[str, ...], why: str) -> None:
    with pytest.raises(RefusedChangeError, match=why):
        split_space(words)


def test_a_file_has_a_line_a_setting(tmp_path: Path) -> None:
    file = tmp_path / "space.yaml"
    file.write_text("size: 16M..1G\ncache: [true, false]\n")
    size, cache = split_space((str(file),))
    assert (size.low, size.high) == ("16M", "1G")
    assert cache.values == ("true", "false")


@pytest.mark.parametrize(
    ("ends", "is_size", "why"), [(("4", "2"), False, "nothing in between"), (("0", "8192"), True, "factors")]
)
def test_a_range_without_an_inside_is_refused(ends: tuple[str, str], is_size: bool, why: str) -> None:
    (words,) = split_space((f"dial={ends[0]}..{ends[1]}",))
    with pytest.raises(RefusedChangeError, match=why):
        dimension_of(words, ends, is_size=is_size)


def test_sizes_go_by_factors_in_whole_pages_and_small_ranges_do_not() -> None:
    (words,) = split_space(("size=16M..1G",))
    size = dimension_of(words, ("16777216", "1073741824"), is_size=True)
    assert size.logarithmic
    assert int(size.text(20_000_001)) % 4096 == 0
    assert not dimension_of(split_space(("dial=1..6",))[0], ("1", "6"), is_size=False).logarithmic


def system_of(root: Path, setting: Setting = DIAL) -> TuningSystem:
    path = root / "proc" / "sys" / "vm" / "dial"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text("1\n")
    return TuningSystem(root=root, known={setting.name: setting}, connect=no_cluster)


def no_cluster() -> Any:
    raise TuningError("there is no cluster")


def changed(**fields: Any) -> Setting:
    return Setting(**{**vars(DIAL), **fields})


@pytest.mark.parametrize(
    ("setting", "values", "why"),
    [
        (DIAL, ("1", "12"), "takes no 12"),
        (changed(prices=(Price("integrity", "no checksums"),)), ("1", "2"), "costs integrity"),
        (changed(needs="reboot"), ("1", "2"), "needs a reboot"),
        (changed(access=SettingAccess("by_hand", {"words": "a lever"})), ("1", "2"), "by_hand"),
    ],
)
def test_what_may_not_be_tried_is_refused(
    tmp_path: Path, setting: Setting, values: tuple[str, ...], why: str
) -> None:
    with pytest.raises(RefusedChangeError, match=why):
        searched_setting("dial", values, system_of(tmp_path, setting), None, ())


def test_a_price_that_is_allowed_is_tried(tmp_path: Path) -> None:
    setting = changed(prices=(Price("integrity", "no checksums"),))
    one, values = searched_setting("dial", ("1", "2"), system_of(tmp_path, setting), None, ("integrity",))
    assert (one.without, values) == ({PLACE.words: "1"}, ("1", "2"))


# Who proposes

SPACE = (
    SearchDimension("cache", ("true", "false")),
    SearchDimension("size", low=1 << 20, high=1 << 30, logarithmic=True, step=4096),
)


@pytest.mark.parametrize("kind", ["tpe", "random"])
def test_nothing_is_proposed_twice_and_a_seed_says_what(kind: Any) -> None:
    default = {"cache": "true", "size": str(1 << 21)}
    runs = []
    for _ in range(2):
        tried: list[TriedProposal] = []
        for at in range(6):
            values = propose(SPACE, default, tried, kind, 3)
            assert values is not None
            assert 1 << 20 <= int(values["size"]) <= 1 << 30
            tried.append(TriedProposal(values, -0.1 * at))
        runs.append([one.values for one in tried])
    assert runs[0] == runs[1]
    assert len({str(one) for one in runs[0]}) == 6


def test_a_space_that_was_tried_whole_has_nothing_left() -> None:
    space = (SearchDimension("cache", ("true", "false")), SearchDimension("dial", ("1", "2")))
    default = {"cache": "true", "dial": "1"}
    tried: list[TriedProposal] = []
    while (values := propose(space, default, tried, "tpe", 1)) is not None:
        tried.append(TriedProposal(values, 0.0))
    assert len(tried) == 3


# What is measured next


def seen(name: str, *gains: float, **more: Any) -> ProposalSeen:
    return ProposalSeen(name, more.pop("side", "tpe"), gains, len(gains), **more)


def states(*proposals: ProposalSeen) -> dict[str, str]:
    return {one.seen.name: one.state for one in judge_proposals(proposals, LIMITS)}


def test_who_is_clearly_worse_is_stopped_after_one_block_and_who_may_be_better_is_not() -> None:
    assert states(seen("p01", -3.0)) == {"p01": "stopped"}
    assert states(seen("p01", -0.05)) == {"p01": "open"}
    assert states(seen("p01", 2.0, 2.1), seen("p02", 0.5)) == {"p01": "whole", "p02": "stopped"}


def test_a_crossed_bound_and_what_ended_are_never_chosen() -> None:
    judged = judge_proposals(
        [seen("p01", 2.0, 2.0, over=1.01), seen("p02", 3.0, ended="health"), seen("p03", 0.5, 0.5, over=0.9)],
        LIMITS,
    )
    assert [one.state for one in judged] == ["over", "ended", "whole"]
    best = best_proposal(judged, "tpe")
    assert best is not None
    assert best.seen.name == "p03"


def test_one_lucky_block_does_not_beat_two_good_ones() -> None:
    judged = judge_proposals([seen("p01", 0.5, 0.52), seen("p02", 0.55)], LIMITS)
    best = best_proposal(judged, "tpe")
    assert best is not None
    assert best.seen.name == "p01"


def test_where_nothing_is_better_nothing_is_chosen() -> None:
    assert best_proposal(judge_proposals([seen("p01", -0.1, -0.1)], LIMITS), "tpe") is None


def test_the_side_with_fewer_blocks_comes_first_and_an_open_proposal_before_both() -> None:
    both = ("tpe", "random")
    judged = judge_proposals([seen("p01", 0.1, 0.1), seen("p02", -3.0, side="random")], LIMITS)
    found = next_proposal(judged, both, LIMITS)
    assert found is not None
    assert (found.side, found.again) == ("random", None)
    judged = judge_proposals([seen("p01", 0.1)], LIMITS)
    found = next_proposal(judged, both, LIMITS)
    assert found is not None
    assert found.again == "p01"
    done = judge_proposals([seen("p01", 0.1, 0.1)], SearchLimits(2, 1))
    assert next_proposal(done, ("tpe",), SearchLimits(2, 1)) is None


def test_what_is_resumed_goes_on_as_it_would_have() -> None:
    """The course has no memory but what is stored."""
    course = SearchCourse(SPACE, {"cache": "true", "size": str(1 << 21)}, ("tpe",), LIMITS, 5)
    stored: tuple[StoredProposal, ...] = ()
    for block in range(1, 7):
        own = [ProposalSeen(one.name, "tpe", (-3.0,) * len(one.blocks), len(one.blocks)) for one in stored]
        first, second = (next_block(course, stored, own, block) for _ in range(2))
        assert first is not None
        assert first == second
        stored = first[0]
    names = [(one.name, one.state) for one in stored]
    assert names == [(f"p{at:02d}", "odd" if at % 2 else "even") for at in range(1, 7)]


def test_a_block_that_was_stored_and_never_began_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    write_proposals(tmp_path, [StoredProposal("p01", "tpe", "odd", {"dial": "2"}, (1, 2))])
    (found,) = read_proposals(tmp_path)
    assert known_blocks(found, 1).blocks == (1,)


def test_time_is_kept_for_the_proof() -> None:
    time = SearchTime(budget_s=100, proof_s=30, proof_blocks=4, states=2)
    assert time.search_s(2) == 70
    assert time.search_s(10) == 40  # four blocks of three states


def test_a_search_beats_random_search_and_finds_nothing_where_nothing_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ten seeds of `bench/search.md`; its further ones are not run here."""
    monkeypatch.setattr(sys, "path", [str(BENCH), *sys.path])
    import search as bench

    won = 0
    for seed in range(10):
        tpe, chance = (bench.search(bench.delayed_link, side, seed) for side in ("tpe", "random"))
        won += tpe.truth > chance.truth
    assert won >= 8
    null = bench.search(bench.nothing, "tpe", 1)
    assert not bench.proves(bench.nothing, null.values, 1)


# The states


class World:
    """A dial in a file, states of it, and what the search was told."""

    def __init__(self, root: Path, journal: ProofJournal | None = None) -> None:
        self.root, self.worse = root, list[tuple[str, str]]()
        self.values: Mapping[str, Mapping[str, str]] = {"odd": {"dial": "4"}, "even": {"dial": "5"}}
        self.system = system_of(root)
        proved = ProvedSetting(DIAL, SettingChange("dial", PLACE, "", "1"), {PLACE.words: "1"})
        self.states = ValueStates(
            self.system,
            (proved,),
            self,
            None,
            journal=journal,
            within_s=0.5,
        )

    def values_of(self, state: str) -> Mapping[str, str]:
        return self.values.get(state, {})

    def ours(self, name: str) -> tuple[str, ...]:
        assert name == "dial"
        return ("4", "5")

    def ended(self, state: str, why: str) -> None:
        self.worse.append((state, why))

    @property
    def dial(self) -> str:
        return (self.root / "proc" / "sys" / "vm" / "dial").read_text().strip()

    @dial.setter
    def dial(self, value: str) -> None:
        (self.root / "proc" / "sys" / "vm" / "dial").write_text(f"{value}\n")


def test_states_follow_each_other_and_all_is_put_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    found = []
    for state in ("odd", "even", "without", "even"):
        world.states.enter(state)
        found.append(world.dial)
        (read,) = world.states.look(state).values()
        assert read["found"] == read["wanted"]
    assert found == ["4", "5", "1", "5"]
    assert world.states.leave() == ()
    assert world.dial == "1"


def test_what_somebody_else_set_is_named_and_left(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.states.enter("odd")
    world.dial = "7"
    with pytest.raises(TuningError, match="somebody else"):
        world.states.enter("even")
    (left,) = world.states.leave()
    assert "set by somebody else" in left
    assert world.dial == "7"


def test_whoever_has_the_result_puts_back_whatever_was_proposed(tmp_path: Path) -> None:
    """As after a kill: other states, made anew, know the values from the result alone."""
    World(tmp_path).states.enter("even")
    later = World(tmp_path)
    assert later.dial == "5"
    assert later.states.leave() == ()
    assert later.dial == "1"


def test_a_revert_puts_back_every_value_that_a_search_has_set_and_no_other(tmp_path: Path) -> None:
    """As after a kill: the journal alone says which they are."""
    journal = TuningJournal(tmp_path / "state")
    with kept(journal, system_of(tmp_path)) as own:
        world = World(tmp_path, own)
        for state in ("odd", "even", "without", "odd"):
            world.states.enter(state)
    (one,) = journal.state().outstanding()
    assert one.values == ("4", "5")
    world.dial = "7"
    found = revert(world.system, journal)
    assert found.left == ["dial on this host: somebody else has set it to 7 since; it was 1, and we set 4, 5"]
    assert world.dial == "7"
    world.dial = "4"
    assert revert(world.system, journal).left == []
    assert world.dial == "1"
    assert not journal.state().outstanding()


class Cluster:
    """A cluster with one option, and its health."""

    def __init__(self) -> None:
        self.checks: dict[str, Any] = {}

    def mon(self, prefix: str, **_: Any) -> Any:
        assert prefix == "status"
        return {
            "health": {"status": "HEALTH_WARN" if self.checks else "HEALTH_OK", "checks": self.checks},
            "pgmap": {"pgs_by_state": [{"state_name": "active+clean", "count": 1}]},
        }


def test_what_worsens_health_is_put_back_at_once_and_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, cluster = World(tmp_path), Cluster()
    monkeypatch.setattr(world.system.around, "ask", cluster.mon)
    monkeypatch.setattr(world.states, "_of_ceph", True)
    world.states.enter("odd")
    cluster.checks = {"OSD_DOWN": {"severity": "HEALTH_WARN", "summary": {"message": "1 osds down"}}}
    (read,) = world.states.look("odd").values()
    assert world.dial == "1"
    assert read["found"] == "1" != read["wanted"]
    ((state, why),) = world.worse
    assert state == "odd"
    assert "1 osds down" in why
    with pytest.raises(TuningError, match="health is worse"):
        world.states.enter("even")
    assert world.dial == "1"
