"""The real fio makes the load of a study: its bytes are the run's, and it ends with its worker."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from leadline.store.reader import open_result
from leadline.store.tables import TrialRow
from provoking import running, wait_until, write_study
from support import Command, Start, show

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
_WHOLE = "size: 1M, bs: 64k, time_based: false, runtime: 0s"


def ran(leadline: Command, study: Path, target: Path, out: Path, *options: str) -> dict[str, TrialRow]:
    words = ("--target", f"a={target}", "-o", str(out), "--quiet", "--no-ceph", *options)
    done = leadline("run", str(study), *words)
    assert done.returncode in (0, 3), done.stderr
    return {row.work: row for row in open_result(out).trials()}


def fios(result: Path) -> list[psutil.Process]:
    """The processes of fio that work for a result."""
    words = ((one, one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"]))
    return [
        one for one, said in words if said[:1] and "fio" in said[0] and any(str(result) in w for w in said)
    ]


def test_fio_and_our_engine_move_the_same_bytes_in_the_same_files(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    study = write_study(
        tmp_path / "s.yaml",
        f"reads: {{rw: read, numjobs: 2, {_WHOLE}}}",
        f"random: {{rw: randread, nrfiles: 2, {_WHOLE}}}",
        f"fresh: {{rw: write, numjobs: 2, {_WHOLE}}}",
        f"again: {{rw: randwrite, {_WHOLE}}}",
        f"parts: {{rw: read, numjobs: 2, shared: segmented, {_WHOLE}}}",
        f"whole: {{rw: read, numjobs: 2, shared: whole, {_WHOLE}}}",
        f"less: {{rw: randread, io_size: 256k, {_WHOLE}}}",
        f"later: {{rw: read, offset: 256k, {_WHOLE}}}",
    )
    sides = [
        ran(leadline, study, target, tmp_path / generator, "--engine", generator)
        for generator in ("leadline", "fio")
    ]
    assert len(sides[0]) == 8
    for work, own in sides[0].items():
        other = sides[1][work]
        assert other.state == own.state == "complete", (work, other.error)
        moved = [(one.read_bytes, one.write_bytes, one.read_operations) for one in (own, other)]
        assert moved[0] == moved[1], work
    assert not list(target.iterdir())


def test_a_ramp_is_in_the_totals_as_the_process_itself_counts(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    study = write_study(tmp_path / "s.yaml", "w: {rw: randread, bs: 4k, ramp_time: 1s, direct: true}")
    row = ran(leadline, study, target, tmp_path / "r", "--engine", "fio")["w"]
    assert row.total_read_bytes > row.read_bytes > 0
    assert row.ramp_ns >= 10**9
    if row.own_read_bytes is not None:  # of a device: what the kernel counted of the run's processes
        assert row.own_read_bytes == pytest.approx(row.total_read_bytes, rel=0.01)


def test_latencies_and_the_version_are_in_the_result(leadline: Command, target: Path, tmp_path: Path) -> None:
    study = write_study(tmp_path / "s.yaml", "w: {rw: randrw, bs: 4k}")
    row = ran(leadline, study, target, tmp_path / "r", "--engine", "fio")["w"]
    assert '"version": "fio-3' in row.summary
    assert '"histograms"' not in row.summary
    (cell,) = show(leadline, tmp_path / "r")["cells"]
    assert cell["metrics"]["read_latency_p99"]["value"] > 0
    whole = [one for one in open_result(tmp_path / "r").latency() if one.interval == -1]
    assert {one.clock for one in whole} >= {"completion", "total"}
    assert sum(one.operations for one in whole if one.clock == "total") == (
        row.read_operations + row.write_operations
    )


def test_fio_ends_with_the_run_however_that_ends(start: Start, target: Path, tmp_path: Path) -> None:
    study = write_study(tmp_path / "s.yaml", "w: {rw: randread, bs: 4k, runtime: 600s}")
    stopped, killed = tmp_path / "a", tmp_path / "b"
    with running(start, study, target, stopped, "--engine", "fio") as run:
        wait_until(lambda: bool(fios(stopped)))
        run.interrupt()
    wait_until(lambda: not fios(stopped))
    assert not list(target.iterdir())
    with running(start, study, target, killed, "--engine", "fio") as run:
        wait_until(lambda: bool(fios(killed)))
        os.kill(fios(killed)[0].ppid(), signal.SIGKILL)  # its worker
        run.process.communicate(timeout=60)
    wait_until(lambda: not fios(killed))


def test_what_fio_refuses_is_the_trials_error(leadline: Command, target: Path, tmp_path: Path) -> None:
    """A fio that is there for the plan and then says no, as one without io_uring does."""
    place = tmp_path / "bin"
    place.mkdir()
    (place / "fio").write_text(
        "#!/bin/sh\n[ $# = 1 ] && echo fio-3.33 && exit 0\necho no such engine\nexit 1\n"
    )
    (place / "fio").chmod(0o755)
    study = write_study(tmp_path / "s.yaml", "w: {rw: randread, bs: 4k}")
    words = (
        "run",
        str(study),
        "--target",
        f"a={target}",
        "-o",
        str(tmp_path / "r"),
        "--quiet",
        "--engine",
        "fio",
    )
    done = leadline(*words, env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}"})
    assert done.returncode != 0
    (row,) = open_result(tmp_path / "r").trials()
    assert "no such engine" in str(row.error)


def test_without_fio_nothing_is_started(leadline: Command, target: Path, tmp_path: Path) -> None:
    study = write_study(tmp_path / "s.yaml", "w: {rw: randread, bs: 4k}")
    empty = tmp_path / "bin"
    empty.mkdir()
    words = ("run", str(study), "--target", f"a={target}", "-o", str(tmp_path / "r"), "--engine", "fio")
    done = leadline(*words, env={**os.environ, "PATH": str(empty)})
    assert done.returncode == 2
    assert "no program fio on PATH" in " ".join(done.stderr.split())
    assert not (tmp_path / "r").exists()
