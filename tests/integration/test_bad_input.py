"""Bad input: one clear error, the right exit code, no traceback, nothing lost, nothing left."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from measured import CACHED, assert_measured
from support import Command, show

GOOD = (
    "format: leadline.study/1\nworks:\n  w: {rw: randread, bs: 4k, size: 1M, runtime: 1s, time_based: true}\n"
)


def refused(leadline: Command, *arguments: str, cwd: Path) -> str:
    """Run a command line that must be refused; returns what it said."""
    before = sorted(cwd.rglob("*"))
    done = leadline(*arguments, cwd=cwd)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    assert done.stdout == ""
    assert sorted(cwd.rglob("*")) == before
    return done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD.replace("runtime", "runtme"), ("bad.yaml, line 3", "runtme", "runtime")),
        (GOOD.replace("4k", "4q"), ("bad.yaml, line 3", "bs", "4q")),
        (GOOD.replace("1s", "soon"), ("bad.yaml, line 3", "runtime", "soon")),
        (GOOD.replace("randread", "sideways"), ("bad.yaml, line 3", "rw", "randread")),
        (GOOD.replace("bs: 4k", "bs: 4k, rwmixread: 50"), ("bad.yaml, line 3", "rwmixread")),
        (GOOD.replace("bs: 4k", "bs: 4k, iodepth: 8, engine: psync"), ("bad.yaml, line 3", "iodepth")),
        (GOOD.replace("leadline.study/1", "leadline.study/9"), ("bad.yaml, line 1", "leadline.study/9")),
        (GOOD + "works: {}\n", ("bad.yaml, line 4", "workloads", "given twice")),
        (GOOD + "blocks: many\n", ("bad.yaml, line 4", "blocks")),
        (GOOD + "targets: {a: 'gopher://x'}\n", ("bad.yaml, line 4", "gopher")),
        (GOOD + "x: ${NOT_SET_ANYWHERE}\n", ("bad.yaml, line 4", "NOT_SET_ANYWHERE")),
        ("a: [", ("bad.yaml", "line")),
        ("", ("bad.yaml",)),
        ("\x00\x01", ("bad.yaml",)),
    ],
)
def test_a_bad_study_is_refused_with_its_place(
    leadline: Command, target: Path, tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    said = refused(leadline, "run", "bad.yaml", "--target", f"a={target}", "--out", "r", cwd=tmp_path)
    assert all(word in said for word in words), said


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("/", "/"),
        ("/nonexistent/path", "/nonexistent/path"),
        ("/etc/passwd", "/etc/passwd"),
        ("/dev/null", "/dev/null"),
        ("rados://pool", "rados"),
        ("gopher://x", "gopher"),
        ("", "a="),
    ],
)
def test_a_bad_target_is_refused(leadline: Command, tmp_path: Path, url: str, words: str) -> None:
    said = refused(leadline, "run", "quick", "--target", f"a={url}", "--out", "r", cwd=tmp_path)
    assert words in said


def test_a_raw_device_is_refused(leadline: Command, tmp_path: Path) -> None:
    devices = [entry for entry in Path("/dev").iterdir() if entry.is_block_device()]
    assert devices, "this machine has no block device to refuse"
    said = refused(leadline, "run", "quick", "--target", f"a={devices[0]}", "--out", "r", cwd=tmp_path)
    assert "raw device" in said


@pytest.mark.parametrize(
    "words",
    [
        ("--set", "sise=4M"),
        ("--set", "size"),
        ("--set", "size=4parsec"),
        ("--set", "works.nobody.bs=4k"),
        ("--set", "compare.metrics=[speed]"),
        ("--blocks", "0"),
        ("--seed", "-1"),
        ("--target", "A B=/tmp"),
        ("--max-rate", "fast"),
        ("--grace", "later"),
        ("--set", "size=100000T"),
    ],
)
def test_a_bad_option_is_refused(
    leadline: Command, target: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    refused(leadline, "run", "quick", "--target", f"a={target}", "--out", "r", *words, cwd=tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("run", "nosuchstudy", "--target", "a=/tmp"),
        ("run", "quick"),
        ("run", "quick", "--target", "a=/tmp", "--target", "a=/var/tmp"),
        ("run", "quick", "--resume", "r", "--target", "a=/tmp"),
        ("run", "quick", "--target", "a=/tmp", "--trust-result"),
        ("run", "--resume", "nowhere"),
        ("show", "nowhere"),
        ("report", "nowhere"),
        ("compare", "nowhere", "nowhere"),
        ("undo", "nowhere"),
        ("list", "nowhere"),
        ("studies", "nosuch"),
        ("lab", "down", "--dir", "/etc"),
        ("lab", "inject", "--dir", "/etc", "osd-paused", "osd.0"),
        ("nosuchverb",),
        ("show", ".", "--nosuchoption"),
    ],
)
def test_a_bad_command_line_is_refused(leadline: Command, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    refused(leadline, *arguments, cwd=tmp_path)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting needs root")
@pytest.mark.parametrize("options", ["ro", "size=64k"])
def test_a_read_only_or_full_target_is_refused(leadline: Command, tmp_path: Path, options: str) -> None:
    place = tmp_path / "mnt"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(place)], check=True)
    try:
        done = leadline("run", "quick", "--target", f"a={place}", "--out", str(tmp_path / "r"))
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "r").exists()
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting needs root")
def test_a_target_that_fills_up_in_the_middle_ends_its_trials_and_is_left_clean(
    leadline: Command, study: Path, tmp_path: Path
) -> None:
    """Somebody else fills the disk after the check of its space."""
    place = tmp_path / "mnt"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", str(place)], check=True)
    try:
        study.write_text(study.read_text().replace("rw: write, bs: 64k", "rw: write, bs: 64k, size: 6M"))
        hog = tmp_path / "mnt" / "hog"
        watcher = subprocess.Popen(
            [
                *("sh", "-c"),
                'until ls -d "$1"/leadline-* >/dev/null 2>&1; do sleep 0.05; done;'
                ' head -c 9M /dev/zero 2>/dev/null > "$2"',
                *("sh", str(place), str(hog)),
            ]
        )
        done = leadline("run", str(study), "--target", f"a={place}", "--out", str(tmp_path / "r"))
        watcher.wait(timeout=20)
        assert done.returncode == 3, done.stderr
        assert "Traceback" not in done.stderr
        assert [path.name for path in place.iterdir()] == ["hog"]
        states = {cell["validity"]["state"] for cell in show(leadline, tmp_path / "r")["cells"]}
        assert states & {"INVALID", "NOT_RUN"}
    finally:
        subprocess.run(["umount", str(place)], check=True)


HOSTILE = "a'\"<script>alert(1)</script>\n{{x}}"


def test_hostile_names_are_escaped_everywhere(leadline: Command, study: Path, tmp_path: Path) -> None:
    place, out = tmp_path / HOSTILE.replace("/", "_"), tmp_path / "r"
    place.mkdir()
    done = leadline("run", str(study), "--target", f"a={place}", "--out", str(out), "--blocks", "1")
    assert_measured(done, out, CACHED)
    assert list(place.iterdir()) == []
    page = leadline("report", str(out), "--format", "html").stdout
    assert "<script>alert" not in page
    for form in ("md", "csv", "json", "fio"):
        assert leadline("report", str(out), "--format", form).returncode == 0
    assert HOSTILE not in leadline("show", str(out)).stdout


def test_a_report_that_cannot_be_written_leaves_the_old_one(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    leadline("run", str(study), "--target", f"a={target}", "--out", str(out), "--blocks", "1")
    done = leadline("report", str(out), "-o", str(tmp_path / "no" / "such" / "page.html"))
    assert done.returncode == 2
    assert "page.html" in done.stderr
    assert "Traceback" not in done.stderr
