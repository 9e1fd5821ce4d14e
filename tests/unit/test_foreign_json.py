"""JSON of files, programs and other hosts: one reader for all of it, and a clear error of whoever asks it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.check.document import read_facts
from leadline.check.measured.streams import HostAnswer, _answers
from leadline.errors import LeadlineError
from leadline.foreign import DEPTH_MAX, foreign_text, parse_c_json, parse_json
from leadline.lab.record import FILE, read_record
from leadline.observe.ceph.client import _decode
from leadline.observe.ceph.parse import average
from leadline.observe.hang_guard import _json_lines
from leadline.run.rows import read_engine_record
from leadline.tracing.tables import command_list, command_words
from leadline.tuning.emitting.asking import parse_plan
from leadline.tuning.remote_audit import told
from leadline.workflows.reading import read_workflows, total_of

PACKAGE = Path(__file__).parents[2] / "python" / "leadline"
DEEP = "[" * 100_000 + "]" * 100_000
NONE = {
    "deep": DEEP,
    "deep, and not ended": "[" * 100_000,
    "deep objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "deeper than ours": "[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1),
    "more digits than Python reads": "9" * 10_000,
    "NaN": '{"format": NaN}',
    "infinite": "[-Infinity]",
    "beyond all bounds": "[1e999]",
    "cut short": '{"a": ',
    "nothing": "",
}


@pytest.mark.parametrize("kind", NONE)
def test_what_no_json_of_ours_is_has_one_error(kind: str) -> None:
    for text in (NONE[kind], NONE[kind].encode()):
        with pytest.raises(ValueError, match=r"\w"):
            parse_json(text)


def test_bytes_that_are_no_text_have_the_same_error() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        parse_json(b'"\xff\xfe\xfd"')


def test_what_is_odd_and_allowed_is_read_as_python_reads_it() -> None:
    """Names of files come as lone surrogates; of a key that is there twice all readers take the last."""
    assert parse_json('{"\\udcff": 1, "a": 1, "a": [2.5, 1e3]}') == {"\udcff": 1, "a": [2.5, 1000.0]}
    flat = [[number] for number in range(1000)]
    assert parse_json(json.dumps(flat)) == flat
    assert parse_json("[" * DEPTH_MAX + "]" * DEPTH_MAX) is not None


def test_a_bare_inf_or_nan_of_c_is_unknown_and_all_beside_it_is_read() -> None:
    """Ceph's `osd dump` has these from Reef on (read_balance), fio's output where nothing was measured."""
    text = '{"a": inf, "b": [-inf, nan, -nan, 2.5], "c": "inf, \\"nan\\": -inf", "inf": NaN, "nan of x": 1}'
    for given in (text, text.encode()):
        assert parse_c_json(given) == {
            "a": None,
            "b": [None, None, None, 2.5],
            "c": 'inf, "nan": -inf',
            "inf": None,
            "nan of x": 1,
        }


@pytest.mark.parametrize(
    "text", ['{"a": infx}', '{"a": inf', '{"a": "inf', '["' + '\\"' * 50_000 + " inf", DEEP]
)
def test_what_c_does_not_print_either_stays_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_c_json(text)


def test_what_ceph_answers_with_inf_in_it_is_an_answer() -> None:
    found = _decode(b'{"epoch":1,"pools":[{"pool":1,"read_balance":{"score_acting":inf}}],"osds":[]}', "x")
    assert found["pools"][0] == {"pool": 1, "read_balance": {"score_acting": None}}
    assert average({"a": {"b": {"avgcount": 0, "sum": None}}}, "a.b") is None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_file_of_any_system_is_its_text(encoding: str) -> None:
    assert foreign_text('{"a": "x"}\r\n'.encode(encoding)) == '{"a": "x"}\r\n'


def _lab(text: str, place: Path) -> object:
    place.chmod(0o700)
    (place / FILE).write_text(text)
    (place / FILE).chmod(0o600)
    return read_record(place)


def _facts(text: str, place: Path) -> object:
    (place / "facts.json").write_text(text)
    return read_facts(place / "facts.json")


READERS: dict[str, Callable[[str, Path], object]] = {
    "a lab's file": _lab,
    "facts of a check": _facts,
    "a plan of settings": lambda text, _place: parse_plan(text, "plan.json", {}),
    "settings of another host": lambda text, _place: told(text.encode(), "host", {}),
    "workflows": lambda text, _place: read_workflows(text, "answer"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["deep objects", "more digits than Python reads", "NaN", "cut short"])
def test_who_reads_json_says_what_is_wrong_with_it(tmp_path: Path, reader: str, kind: str) -> None:
    with pytest.raises(LeadlineError) as caught:
        READERS[reader](NONE[kind], tmp_path)
    assert len(caught.value.message) < 500


def test_who_asks_programs_and_hosts_goes_on_without_their_answer() -> None:
    assert total_of(DEEP) is None
    assert _json_lines(DEEP.encode()) == ()
    answers = _answers({"a": ["asked"]}, lambda _words, _limit_s: {"a": HostAnswer(DEEP.encode())})
    assert answers == ({}, {"a": "a answers with no streams"})


def test_a_command_that_looks_like_json_is_still_a_command() -> None:
    assert command_list(DEEP) == [DEEP]
    assert command_words(DEEP)


@pytest.mark.parametrize("data", [b"", b"LLREC\r\n\x1a\x09\0\0\0", b"\x7fELF", b"LLREC" * 100])
def test_a_record_of_no_engine_of_ours_is_named(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "t0001.llrec"
    file.write_bytes(data)
    with pytest.raises(LeadlineError, match=r"t0001\.llrec") as caught:
        read_engine_record(file)
    assert caught.value.remedy


# Words of our own processes, over pipes that nobody else has, and rows that were checked as they were read.
OWN = {
    "check/storage/places.py",
    "check/storage/child.py",
    "check/measured/exchange.py",
    "cli/measure/labs.py",
    "foreign.py",
    "hosts/channel.py",
    "hosts/host_study.py",
    "hosts/session.py",
    "lab/guest/agent.py",
    "observe/agent.py",
    "observe/client.py",
    "run/child.py",
    "run/fork_helper.py",
    "run/prepared.py",
    "run/worker.py",
    "workloads/pipeline/client.py",
    "workloads/pipeline/steps.py",
}
ROWS = (
    "analysis/",
    "verdict/",
    "workloads/",
    "tracing/",
    "hosts/join",
    "causal/",
    "run/",
)
ROWS += ("cli/measure/trace.py",)


def test_nobody_else_reads_json_by_other_means() -> None:
    found = {
        name
        for file in PACKAGE.rglob("*.py")
        if "json.load" in file.read_text() and not (name := str(file.relative_to(PACKAGE))).startswith(ROWS)
    }
    assert found <= OWN
