"""The built-in study of a media platform on real directories, with films of very few and small pictures."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from leadline.store.own import read_stages
from leadline.store.reader import open_result
from leadline.study.library import builtin_text
from leadline.study.yaml_source import read_study
from measured import assert_measured
from support import Command, show

pytestmark = pytest.mark.skipif(
    subprocess.run(["sh", "-c", "command -v ffmpeg ffprobe"], capture_output=True, check=False).returncode
    != 0,
    reason="ffmpeg is not installed",
)
SMALL = ("--set", "resolution=64x36", "--set", "duration=1s", "--set", "frame_rate=2", "--blocks", "1")
ENCODES = [f"encode_{height}p" for height in (360, 480, 720, 1080, 2160)]


@pytest.fixture
def cached(tmp_path: Path) -> dict[str, str]:
    """A cache directory of the test's own."""
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def film(path: Path, *options: str) -> Path:
    """A film of two pictures, or what `options` make of it."""
    base = ("ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=64x36:rate=2:duration=1")
    subprocess.run([*base, *(options or ("-c:v", "prores_aw")), f"file:{path}"], check=True)
    return path


def test_a_film_goes_through_every_stage_on_both_targets_and_is_made_once(
    leadline: Command, target: Path, tmp_path: Path, cached: dict[str, str]
) -> None:
    out, second = tmp_path / "r", tmp_path / "second"
    second.mkdir()
    targets = ("--target", f"a={target}", "--target", f"b={second}", "--set", "enlarge=true")
    done = leadline("run", "media", *targets, *SMALL, "--out", str(out), env=cached, timeout=400)
    assert_measured(done, out)
    assert "making a film" in done.stderr
    assert list(target.iterdir()) == list(second.iterdir()) == []
    (kept,) = (tmp_path / "cache").rglob("*.mov")
    rows = [row for row in read_stages(open_result(out)) if row.trial == "t0001"]
    assert [row.stage for row in rows] == ["download", "ingest", "link", "inspect", *ENCODES, "publish"]
    by_name = {row.stage: row for row in rows}
    assert by_name["ingest"].output_bytes == kept.stat().st_size
    assert by_name["download"].output_bytes == kept.stat().st_size
    assert all(by_name[name].enlarges and by_name[name].output_bytes > 0 for name in ENCODES)
    assert by_name["publish"].output_bytes == sum(by_name[name].output_bytes for name in ENCODES)
    assert json.loads(by_name["download"].interfaces)["lo"]["received_bytes"] > kept.stat().st_size
    digests = {said.get("digest") for row in rows for said in json.loads(row.details)} - {None}
    assert len(digests) == 1
    if by_name["inspect"].passes_by == "trace":
        assert by_name["inspect"].passes == pytest.approx(2.0, abs=0.3)
    screen = leadline("show", str(out)).stdout
    for name in ("a", "b"):
        own = [
            row
            for row in read_stages(open_result(out))
            if row.trial in {t.trial for t in open_result(out).trials() if t.target == name}
        ]
        took_s = (max(row.ended_ns for row in own) - min(row.started_ns for row in own)) / 1e9
        assert f"Of {took_s:.3g}" in screen.replace("\n", " ")
        assert f"s end to end on {name}," in screen.replace("\n", " ")
    page = tmp_path / "report.html"
    assert leadline("report", str(out), "-o", str(page)).returncode == 0
    assert "stages-0" in page.read_text()
    names = [table["name"] for table in show(leadline, out)["application"]["tables"]]
    assert names[0].startswith("comparison")
    assert {"operations", "time", "bytes", "file_copy", "network"} <= set(names)


def test_the_ladder_of_a_small_source_ends_at_it_and_the_plan_says_what_is_left_out(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    source, out = tmp_path / "film.mov", tmp_path / "r"
    made = ("-f", "lavfi", "-i", "testsrc2=size=900x506:rate=2:duration=1", "-c:v", "prores_aw")
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", *made, str(source)], check=True)
    words = ("media", "--target", f"a={target}", "--source", str(source), "--blocks", "1")
    plan = leadline("plan", *words).stdout
    left_out = "encode_720p (1280), encode_1080p (1920), encode_2160p (3840)"
    assert f"left out, wider than the source (900): {left_out}; --set enlarge=true does them" in plan
    assert "encode_360p,encode_480p,publish" in plan
    assert_measured(leadline("run", *words, "--out", str(out), timeout=200), out)
    rows = read_stages(open_result(out))
    assert [row.stage for row in rows][4:] == ["encode_360p", "encode_480p", "publish"]
    assert not any(row.enlarges for row in rows)
    published = next(row for row in rows if row.stage == "publish")
    assert json.loads(published.details)[0]["files"] == 2


@pytest.mark.parametrize(
    ("widest", "expected"),
    [(641, [640] * 5), (1000, [640, 854, 1000, 1000, 1000]), (16_384, [640, 854, 1280])],
)
def test_one_process_makes_no_picture_wider_than_it_is_told(
    tmp_path: Path, widest: int, expected: list[int]
) -> None:
    """The command of the study itself, its places filled in; what came of it as ffprobe sees it."""
    study = read_study(builtin_text("media"), "media.yaml", {}).value
    stages = study["workloads"]["media"]["pipeline"]
    command = next(stage["command"] for stage in stages if stage["stage"] == "encode_all")
    source = film(tmp_path / "film.mov")
    places = {"{input}": str(source), "{output}": str(tmp_path), "{widest}": str(widest)}
    words = []
    for word in map(str, command):
        for place, text in places.items():
            word = word.replace(place, text)  # noqa: PLW2901 - place by place
        words.append(word)
    subprocess.run(words, check=True)
    widths = []
    for height in (360, 480, 720, 1080, 2160)[: len(expected)]:
        probe = ("ffprobe", "-v", "error", "-show_entries", "stream=width", "-of", "csv=p=0")
        found = subprocess.run([*probe, str(tmp_path / f"{height}p.mp4")], check=True, capture_output=True)
        widths.append(int(found.stdout))
    assert widths == expected


def test_a_source_of_ones_own_without_audio_and_with_an_odd_name_is_encoded_at_once_in_five_sizes(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    source, out = film(tmp_path / 'it\'s a "film"\nof: mine.mov'), tmp_path / "r"
    done = leadline(
        *("run", "media", "--target", f"a={target}", "--source", str(source), "--out", str(out)),
        *("--set", "variant=together", "--blocks", "1", "--clients", "2"),
        timeout=400,
    )
    assert_measured(done, out)
    assert [row.error for row in open_result(out).trials()] == [None]
    plan = leadline("plan", "media", "--target", f"a={target}", "--source", str(source))
    assert "no audio" in plan.stdout
    rows = read_stages(open_result(out))
    assert {row.client for row in rows} == {1, 2}
    published = [row for row in rows if row.stage == "publish_all"]
    assert [json.loads(row.details)[0]["files"] for row in published] == [5, 5]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("text", "no video"),
        ("picture", "no moving picture"),
        ("audio", "no moving picture"),
        ("cut", "is it whole?"),
        ("cut after its index", "not whole"),
        ("directory", "is a directory"),
    ],
)
def test_a_source_that_is_no_whole_video_is_refused_before_anything_starts(
    leadline: Command, target: Path, tmp_path: Path, kind: str, words: str
) -> None:
    source = tmp_path / "source.mov"
    if kind == "text":
        source.write_text("not a film\n" * 100)
    elif kind == "picture":
        source = film(tmp_path / "source.png", "-frames:v", "1")
    elif kind == "audio":
        source = tmp_path / "source.wav"
        sound = ("ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "sine=duration=1", str(source))
        subprocess.run(sound, check=True)
    elif kind == "directory":
        source.mkdir()
        (source / "x").write_text("x")
    else:
        flags = ("-movflags", "faststart") if "index" in kind else ()
        film(source, "-c:v", "prores_aw", *flags)
        data = source.read_bytes()
        source.write_bytes(data[: len(data) * 2 // 3])
    done = leadline("plan", "media", "--target", f"a={target}", "--source", str(source))
    assert done.returncode == 2
    assert words in done.stderr


def test_ffmpeg_that_is_missing_or_too_old_is_said(leadline: Command, target: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    words = ("plan", "media", "--target", f"a={target}")
    missing = leadline(*words, env={"PATH": str(tools)})
    assert missing.returncode == 2
    assert "no program ffmpeg on PATH" in missing.stderr
    for name in ("ffmpeg", "ffprobe"):
        (tools / name).write_text(f"#!/bin/sh\necho {name} version 3.4.1\n")
        (tools / name).chmod(0o755)
    old = leadline(*words, env={"PATH": f"{tools}:/usr/bin:/bin"})
    assert old.returncode == 2
    assert "version 3.4.1" in old.stderr
    assert "4.2 is the oldest" in old.stderr


def test_a_film_that_is_made_and_a_source_contradict_each_other(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    source = film(tmp_path / "film.mov")
    done = leadline(
        "plan", "media", "--target", f"a={target}", "--source", str(source), "--set", "duration=5s"
    )
    assert done.returncode == 2
    assert "duration" in done.stderr
    assert "a source is named" in done.stderr
