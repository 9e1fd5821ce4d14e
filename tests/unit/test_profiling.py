"""Which runs a causal profile makes, what ends it, and what it refuses, with programs that only pretend."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import clock
from trace_tables import file_row, files_table, tables

from leadline.causal.judge import (
    class_names,
    judge,
    predict_elsewhere,
    read_profile,
    recorded_latencies,
    to_document,
    to_text,
    typed_latencies,
)
from leadline.causal.messages import cautions, headline, rows, waits
from leadline.causal.model import PLAIN_RUNS, CallSums, CausalProfile, Condition
from leadline.causal.runs import ProfileAsked, RanOnce, conditions, delays_of, profile
from leadline.errors import LeadlineError, ResultError, StudyError, UsageError
from leadline.tracing.store import create_trace_result

ASKED = ProfileAsked(
    ("prog", "x"), ("/data",), ("metadata", "write", "sync"), (200_000, 1_000_000), 3, 1, 1000.0
)
CALLS = {"metadata": 100, "write": 50}


class Pretended:
    """A program of a second that waits for each of its calls, by a share; its clock is its own."""

    share, jitter_s = 1.0, 0.0

    def __init__(
        self, fails_at: int = 0, stops_at: int = 0, calls: dict[str, int] | None = None, waits: float = 1.0
    ) -> None:
        self.now_s, self.seen, self.said = 0.0, list[Condition](), list[str]()
        self._fails_at, self._stops_at = fails_at, stops_at
        self._calls, self._waits = CALLS if calls is None else calls, waits

    def __call__(self, condition: Condition, until_s: float) -> RanOnce:
        del until_s
        self.seen.append(condition)
        number = len(self.seen)
        waited = {
            name: self._waits * calls * condition.delay_ns / 1e9 if name == condition.delayed else 0.0
            for name, calls in self._calls.items()
        }
        sums = {name: CallSums(calls, calls * 1e-5, waited[name]) for name, calls in self._calls.items()}
        run_s = 1.0 + self.share * sum(waited.values()) + self.jitter_s * (number * 7 % 5)
        self.now_s += run_s
        how = "ended with exit code 3" if number == self._fails_at else ""
        return RanOnce(run_s, sums, how, number == self._stops_at)

    def profile(self, asked: ProfileAsked = ASKED) -> CausalProfile:
        return profile(asked, self, self.said.append, lambda: self.now_s)


def changed(**values: object) -> ProfileAsked:
    return ProfileAsked(**{**vars(ASKED), **values})  # type: ignore[arg-type]


def test_a_block_has_every_delay_of_every_class_once_and_runs_without() -> None:
    found = conditions(("metadata", "write"), (1, 2), 7, 0)
    assert len(found) == PLAIN_RUNS + 4
    assert found.count(Condition()) == PLAIN_RUNS
    assert {(one.delayed, one.delay_ns) for one in found if one.delayed} == {
        ("metadata", 1), ("metadata", 2), ("write", 1), ("write", 2)
    }  # fmt: skip


def test_the_order_follows_from_the_seed_and_differs_from_block_to_block() -> None:
    orders = [conditions(("metadata", "write"), (1, 2, 3), 7, block) for block in range(6)]
    assert orders == [conditions(("metadata", "write"), (1, 2, 3), 7, block) for block in range(6)]
    assert any(order != orders[0] for order in orders)


def test_the_first_run_tells_the_classes_and_how_long_all_takes() -> None:
    program = Pretended()
    found = program.profile()
    assert found.classes == ("metadata", "write")  # it makes no syncs
    assert program.said[0] == "18 runs in 3 blocks, 18 seconds to 19 seconds if every call waits in turn"
    assert len(program.seen) == 1 + 18
    assert found.ended == "whole"


def test_the_slopes_of_a_program_that_waits_are_one() -> None:
    found = Pretended().profile()
    fit = judge(found)
    assert fit is not None
    assert {name: one.slope.value for name, one in fit.classes.items()} == pytest.approx(
        {"metadata": 1.0, "write": 1.0}
    )
    elsewhere = predict_elsewhere(found, fit, typed_latencies("metadata=1ms"))
    assert elsewhere.time.mean.value == pytest.approx(1.0 + 100 * (1e-3 - 1e-5))
    assert any("write calls are taken to be as fast there" in doubt for doubt in elsewhere.doubts)


def test_far_beyond_the_delays_that_were_tried_is_said() -> None:
    found = Pretended().profile()
    fit = judge(found)
    assert fit is not None
    near = predict_elsewhere(found, fit, typed_latencies("metadata=1ms,write=1ms"))
    far = predict_elsewhere(found, fit, typed_latencies("metadata=10ms,write=1ms"))
    assert near.doubts == ()
    assert len(far.doubts) == 1
    assert "at most 1.00 ms were tried" in far.doubts[0]


def test_a_program_that_fails_gives_its_exit_code_and_no_figures() -> None:
    with pytest.raises(StudyError, match="ended with exit code 3 in run 4"):
        Pretended(fails_at=4).profile()


def test_an_interrupted_profile_keeps_its_whole_blocks() -> None:
    found = Pretended(stops_at=1 + 6 * 2 + 3).profile()
    assert found.ended == "interrupted"
    assert len(found.blocks()) == 2
    assert judge(found) is None  # two are too few
    assert any("after 2 whole blocks of 3" in text for text in cautions(found))


def test_an_interrupted_first_run_says_that_nothing_is_known() -> None:
    with pytest.raises(StudyError, match="interrupted in the first run"):
        Pretended(stops_at=1).profile()


def test_the_time_allowed_ends_it_after_whole_blocks() -> None:
    program = Pretended()
    found = program.profile(changed(blocks=50, longest_s=30.0))
    assert found.ended == "time"
    assert len(found.blocks()) == 4
    assert "--for ends it after 30 seconds" in program.said[0]


def test_calls_that_were_not_delayed_are_said() -> None:
    (said,) = Pretended(waits=0.75).profile(changed(classes=("write",))).cautions
    assert said.startswith("up to 25.0 % of the write calls were not delayed")
    assert Pretended().profile().cautions == ()


def test_no_call_below_the_directories_is_an_error_that_names_them() -> None:
    with pytest.raises(UsageError, match="reached a file below /data"):
        Pretended(calls={}).profile()


def test_a_class_that_is_asked_for_and_never_called_is_an_error_that_names_the_others() -> None:
    with pytest.raises(UsageError, match="no sync call below /data, but metadata, write"):
        Pretended().profile(changed(classes=("sync",)))


def test_a_class_that_was_left_out_cannot_be_predicted() -> None:
    found = Pretended().profile(changed(classes=("write",)))
    fit = judge(found)
    assert fit is not None
    # What the first run saw of it is enough to refuse.
    with pytest.raises(UsageError, match="100 metadata calls, which were not delayed"):
        predict_elsewhere(found, fit, typed_latencies("metadata=1ms"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("metadata", "no latency of a class"),
        ("opens=1ms", "no class of calls is called 'opens'"),
        ("write=1ms,write=2ms", "two latencies"),
        ("write=soon", "not a time"),
    ],
)
def test_latencies_that_are_none_are_refused(text: str, says: str) -> None:
    with pytest.raises(LeadlineError, match=says):
        typed_latencies(text)


def test_read_stands_for_both_kinds_of_reads() -> None:
    assert class_names("read,write") == ("small-read", "large-read", "write")


@pytest.mark.parametrize(
    ("text", "says"), [("0", "delays nothing"), ("200us,0", "delays nothing"), ("2s", "longer than a second")]
)
def test_delays_are_above_nothing_and_at_most_a_second(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        delays_of(text)
    assert delays_of("1s,200us") == (200_000, 1_000_000_000)


def test_a_stored_profile_is_read_as_it_was(tmp_path: Path) -> None:
    found = Pretended().profile()
    path = tmp_path / "p.json"
    path.write_text(to_text(to_document(found, judge(found))))
    assert read_profile(path) == found
    latencies, doubt = recorded_latencies(path)
    assert {name: one.call_s.value for name, one in latencies.items()} == pytest.approx(
        {"metadata": 1e-5, "write": 1e-5}
    )
    assert doubt == ""


def test_a_traces_latencies_are_those_of_the_users_files_and_not_of_libraries(tmp_path: Path) -> None:
    library = {"path": "/usr/lib/x/libm.so.6", "OPENS": 1000, "F_META_TIME": 0.01, "READS": 1000}
    rows = [
        file_row(0, OPENS=10, STATS=10, F_META_TIME=0.2, READS=4, BYTES_READ=4096, F_READ_TIME=0.4),
        file_row(1, **library, F_READ_TIME=0.001, BYTES_READ=832_000),
        file_row(2, WRITES=10, BYTES_WRITTEN=4096, F_WRITE_TIME=0.3),
        file_row(3, WRITES=10, BYTES_WRITTEN=4096, F_WRITE_TIME=9.0, FSYNCS=10),
    ]
    content = tables(files=files_table(rows))
    create_trace_result(tmp_path / "r", {"t0001": content}, title="p", details={}, now_ns=clock())
    latencies, doubt = recorded_latencies(tmp_path / "r")
    assert {name: one.call_s.value for name, one in latencies.items()} == pytest.approx(
        {"metadata": 0.01, "small-read": 0.1, "large-read": 0.1, "write": 0.03}
    )
    assert "over the user's files" in doubt


@pytest.mark.parametrize("text", ["", "{}", '{"format": "leadline.profile/1"}', "[1]", '{"format": "x"}'])
def test_what_is_no_profile_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(ResultError):
        read_profile(path)


def test_the_screen_names_the_class_that_costs_most_and_those_without_calls() -> None:
    found = Pretended().profile()
    fit = judge(found)
    assert fit is not None
    lines = list(headline(found, fit))
    assert lines[1].startswith("It is most sensitive to metadata calls: 1 ms more on each of its 100")
    table = list(rows(found, fit))
    assert [row[0] for row in table] == ["metadata", "write", "sync"]
    assert table[2][1] == "0"


def test_a_long_command_and_a_run_time_are_shown_as_they_can_be() -> None:
    class Uneven(Pretended):
        def __call__(self, condition: Condition, until_s: float) -> RanOnce:
            ran = super().__call__(condition, until_s)
            return RanOnce(ran.run_s * (1 + len(self.seen) % 2), ran.sums)

    found = Uneven().profile(changed(program=("prog", "x" * 100)))
    fit = judge(found)
    assert fit is not None
    assert fit.run.low is not None
    assert 0 <= fit.run.low <= fit.run.value <= 2
    line = next(headline(found, fit))
    assert line.startswith("prog xxx")
    assert " ... runs for" in line
    assert len(line) < 140


@pytest.mark.parametrize(
    ("jitter_s", "says"),
    [
        (0.00005, "It waits for none of these calls"),
        (0.2, "Whether it waits for these calls is"),
    ],
)
def test_what_is_hidden_and_what_is_not_told_are_two_things(jitter_s: float, says: str) -> None:
    program = Pretended()
    program.share, program.jitter_s = 0.0, jitter_s
    found = program.profile()
    fit = judge(found)
    assert fit is not None
    assert list(headline(found, fit))[1].startswith(says)


def test_a_share_above_the_whole_is_said_in_times() -> None:
    found = Pretended(calls={"metadata": 5000}).profile()
    fit = judge(found)
    assert fit is not None
    assert "5.00 times its time here" in list(headline(found, fit))[1]


def test_a_slope_is_put_into_words() -> None:
    from leadline.analysis.statistics.means import Estimate

    def words(low: float, high: float) -> str:
        return waits(Estimate((low + high) / 2, low, high, 5)).partition(":")[0]

    assert words(0.97, 1.03) == "waited for in turn"
    assert words(0.2, 0.3) == "overlapped in part"
    assert words(-0.02, 0.04) == "hidden behind other work"
    assert words(-0.5, 0.9) == "perhaps hidden"
    assert words(0.4, 1.4) == "waited for"
    assert words(-0.5, -0.1) == "not understood, shorter with delays"
