"""Many results of which some are damaged: verbs go on without them, say so a line each, and hang on none."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from forking import Forks
from many_results import copy_results
from measured import CACHED, assert_measured
from support import Command

ESCAPES = "\x1b]0;owned\x07\x1b[31m\u202e\r\nleadline: all is well"


def _manifest(change: Callable[[dict[str, object]], object]) -> Callable[[Path], object]:
    def damage(path: Path) -> None:
        value = json.loads((path / "manifest.json").read_text())
        change(value)
        (path / "manifest.json").write_text(json.dumps(value))

    return damage


def _fifo(path: Path) -> None:
    (path / "manifest.json").unlink()
    os.mkfifo(path / "manifest.json")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deep": lambda path: (path / "manifest.json").write_text("[" * 100_000),
    "five-trials": _manifest(lambda value: value["plan"].update(trials=5)),  # type: ignore[attr-defined]
    "no-id": _manifest(lambda value: value.pop("id")),
    "fifo": _fifo,
    "escapes": _manifest(lambda value: value.update(format=ESCAPES)),
    "no-study": _manifest(lambda value: value.update(study={})),
    "no-cells": _manifest(lambda value: value["plan"].update(cells=[5])),  # type: ignore[attr-defined]
    "bad-table": lambda path: next((path / "trials").iterdir()).write_bytes(b"PAR1 and nothing"),
    "bad-journal": lambda path: (path / "events.jsonl").open("a").write('{"event": "trial_finished"}\n'),
    "outside": lambda path: (path / "events.jsonl").write_text(
        '{"event": "trial_finished", "trial": "../../good-0/trials/t0001"}\n'
    ),
}
LISTED = {"no-study", "no-cells", "bad-table"}  # `list` reads no more than it shows


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    """Two good results and a damaged one of each kind."""
    place = tmp_path_factory.mktemp("damaged")
    (place / "target").mkdir()
    (place / "study.yaml").write_text(
        "format: leadline.study/1\nblocks: 2\nlimits: {reserve: 1M}\n"
        "works:\n  w: {rw: randread, bs: 4k, size: 4M, runtime: 200ms, time_based: true, direct: false}\n"
    )
    words = ("--target", f"a={place / 'target'}", "--out", str(place / "one"), "--no-ceph")
    done = forks.command(("run", str(place / "study.yaml"), *words), dict(os.environ), 120)
    assert_measured(done, place / "one", CACHED)
    many = place / "many"
    many.mkdir()
    copy_results(place / "one", many, 2 + len(DAMAGES))
    for number, name in enumerate(["good-0", "good-1", *DAMAGES]):
        (many / f"r{number:04}").rename(many / name)
    for name, damage in DAMAGES.items():
        damage(many / name)
    return many


def _said_once(stderr: str, places: Path, names: set[str]) -> None:
    lines = stderr.splitlines()
    for name in names:
        assert len([line for line in lines if str(places / name) in line]) == 1, (name, stderr)
    assert len(lines) == len(names), stderr
    assert all(line.isprintable() and line.startswith("leadline: left out: ") for line in lines)


def test_list_names_what_it_cannot_read_and_lists_the_rest(leadline: Command, results: Path) -> None:
    done = leadline("list", str(results), "--json")
    assert done.returncode == 1
    states = {Path(row["path"]).name: row["state"] for row in json.loads(done.stdout)}
    assert states.keys() == {"good-0", "good-1", *DAMAGES}
    assert states["good-0"] == states["good-1"] == "complete"
    unreadable = {name for name, state in states.items() if state.startswith("unreadable: ")}
    assert unreadable == DAMAGES.keys() - LISTED
    _said_once(done.stderr, results, unreadable)
    shown = leadline("list", str(results))
    assert all(line.isprintable() for line in shown.stdout.splitlines())


def test_trend_follows_what_it_can_read(leadline: Command, results: Path) -> None:
    done = leadline("trend", "a.w.iops", str(results), "--json")
    assert done.returncode == 1, done.stderr
    points = json.loads(done.stdout)["series"][0]["points"]
    assert {Path(point["path"]).name for point in points} == {"good-0", "good-1"}
    _said_once(done.stderr, results, set(DAMAGES))


def test_hosts_compares_what_it_can_read(leadline: Command, results: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(results / "good-1", other)
    _manifest(lambda value: value.update(host={"host": "another"}))(other)
    words = [str(results / "good-0"), *(str(results / name) for name in DAMAGES), str(other)]
    done = leadline("hosts", *words, "--metric", "iops", "--json")
    assert done.returncode == 1, done.stderr
    assert len(json.loads(done.stdout)["hosts"]) == 2
    _said_once(done.stderr, results, set(DAMAGES))
    few = leadline("hosts", str(results / "good-0"), str(results / "deep"))
    assert few.returncode == 2
    assert "deep" in few.stderr


def test_import_takes_the_sound_ones(leadline: Command, results: Path, tmp_path: Path) -> None:
    done = leadline("import", "result", str(results), "--into", str(tmp_path / "kept"))
    assert done.returncode == 1
    assert "internal error" not in done.stderr
    assert all(line.isprintable() for line in (done.stdout + done.stderr).splitlines())
    assert {path.name for path in (tmp_path / "kept").iterdir()} <= {"good-0", "good-1", *LISTED}


def test_verbs_of_one_result_name_what_is_damaged(leadline: Command, results: Path) -> None:
    good = str(results / "good-0")
    for words in (
        *(("show", str(results / name)) for name in DAMAGES),
        ("compare", good, str(results / "no-cells")),
        ("gate", str(results / "bad-table"), "--baseline", good),
        ("report", str(results / "no-study"), "--format", "md"),
    ):
        done = leadline(*words)
        assert done.returncode == 2, (words, done.stderr)
        assert str(results) in done.stderr.splitlines()[0], (words, done.stderr)
        assert "internal error" not in done.stderr
        assert all(line.isprintable() for line in done.stderr.splitlines())
