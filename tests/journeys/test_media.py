"""A media platform: uploads take hours. Is it the mount, what changed, and who is on it now?"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kit import number, size

from conftest import Step, first_screen

OPENCAST = Path(__file__).parents[1] / "data" / "opencast"
WRITER = """
import sys, time
with open(sys.argv[1], "wb", buffering=0) as file:
    for _ in range(600):
        file.write(b"x" * 65536)
        time.sleep(0.02)
"""


@pytest.fixture(scope="module")
def film(place: Path) -> Path:
    """Two seconds of moving noise, 640 x 360."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg is not installed")
    found = place / "film.mov"
    source = "testsrc2=size=640x360:rate=10:duration=2"
    subprocess.run(
        ("ffmpeg", "-v", "error", "-f", "lavfi", "-i", source, "-c:v", "prores", str(found)),
        check=True,
        timeout=120,
    )
    return found


@pytest.fixture(scope="module")
def result(step: Step, place: Path, targets: dict[str, Path], film: Path) -> Path:
    """The film through a platform's operations on both targets."""
    out = place / "media"
    words = [f"--target={name}={path}" for name, path in targets.items()]
    step("media-plan", "plan", "media", *words, "--source", str(film))
    step(
        "media-run",
        "run",
        "media",
        *words,
        "--source",
        str(film),
        "--blocks",
        "3",
        "-o",
        str(out),
        codes=(0, 3),
    )
    return out


def test_the_ladder_ends_at_the_film(result: Path, step: Step, film: Path) -> None:
    probe = (
        "ffprobe",
        "-v",
        "error",
        "-select_streams",
        "v:0",
        "-show_entries",
        "stream=width,height",
        "-of",
        "json",
    )
    done = subprocess.run((*probe, str(film)), capture_output=True, text=True, check=True)
    height = json.loads(done.stdout)["streams"][0]["height"]
    screen = first_screen(step("media-show", "show", str(result), codes=(0, 3)))
    encodes = {int(found) for found in re.findall(r"encode_(\d+)p", screen)}
    assert encodes
    assert max(encodes) <= height, screen


def test_the_first_screen_says_whether_it_is_the_mount_in_seconds(result: Path, step: Step) -> None:
    screen = first_screen(step("media-show-again", "show", str(result), codes=(0, 3)))
    answers = re.findall(r"Of ([\d.,]+) s end to end on (\w+), ([\d.,]+) s", screen)
    found = json.loads(step("media-json", "show", str(result), "--json", codes=(0, 3)).stdout)
    if found["state"] != "INVALID":
        assert {target for _, target, _ in answers} == {"local", "ceph"}, screen
    for whole, _, calls in answers:
        assert number(calls) <= number(whole), screen


def test_the_bytes_of_the_download_are_the_films(result: Path, film: Path) -> None:
    import pyarrow.parquet as pq

    rows = [row for file in (result / "stages").iterdir() for row in pq.read_table(file).to_pylist()]
    downloads = [row for row in rows if row["stage"] == "download"]
    assert downloads
    assert {row["output_bytes"] for row in downloads} == {film.stat().st_size}


def test_notes_of_the_platform_name_what_failed_first(step: Step, place: Path) -> None:
    out = place / "notes"
    step("media-import", "import", "opencast", str(OPENCAST / "internal.json"), "-o", str(out))
    screen = first_screen(step("media-import-show", "show", str(out)))
    stored = json.loads((OPENCAST / "internal.json").read_text())["workflow"]
    assert "numbers can be relied on" not in screen
    failed = [one["id"] for one in stored["operations"]["operation"] if one["state"] == "FAILED"]
    assert failed
    assert all(name in screen for name in failed), screen


def test_a_gate_does_not_pass_what_it_cannot_tell(step: Step, place: Path, result: Path) -> None:
    shutil.copytree(result, place / "copy")
    refused = step("media-gate-copy", "gate", str(place / "copy"), "--baseline", str(result), codes=(2,))
    assert "trials" in refused.stderr + refused.stdout


def test_watch_is_about_the_path_that_it_was_given(step: Step, targets: dict[str, Path]) -> None:
    watched, beside = targets["ceph"] / "watched", targets["ceph"] / "beside"
    for directory in (watched, beside):
        directory.mkdir()
    writers = [
        subprocess.Popen((sys.executable, "-c", WRITER, str(one / "file"))) for one in (watched, beside)
    ]
    try:
        counted = [_written(writer.pid) for writer in writers]
        began = time.monotonic()
        done = step("media-watch", "watch", str(watched), "--for", "4s", "--json")
        seconds = time.monotonic() - began
        rate = (_written(writers[0].pid) - counted[0]) / seconds
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
        for directory in (watched, beside):
            shutil.rmtree(directory)
    found = json.loads(done.stdout)
    assert [row["pid"] for row in found["processes"]] == [writers[0].pid], found["processes"]
    told = found["processes"][0]["per_s"]["bytes_written"]
    assert told == pytest.approx(rate, rel=0.25)
    assert size("1 MiB") == 1 << 20


def _written(pid: int) -> int:
    text = Path(f"/proc/{pid}/io").read_text()
    return int(text.split("wchar: ")[1].split()[0])


def test_the_plan_of_a_mount_names_its_keyring(step: Step, targets: dict[str, Path]) -> None:
    done = step("media-mount", "mount", "plan", str(targets["ceph"]), codes=(0, 3))
    assert "keyring" in done.stdout
    assert not re.search(r"AQ[A-Za-z0-9+/]{20,}==", done.stdout)
