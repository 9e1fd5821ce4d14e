"""Each validity code for real: a fault made on purpose, and the code that must say so.

Which code has its test here is checked by `tests/unit/test_provoked_codes.py`.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from measured import CACHED, Expected, assert_measured
from provoking import (
    Codes,
    Disk,
    codes_of,
    join,
    neighbours,
    own_disk,
    own_group,
    running,
    wait_until,
    why_no_disk,
    write_study,
)
from support import Command, Start, command_line

# What the tests are about, beside what each of them asserts.
DAMAGED = Expected("verification_failed", "a byte is changed below it")
HOLED = Expected("unwritten_blocks", "a hole is made below it")
STOPPED = Expected("worker_stopped", "a signal stops it")
TOO_FAST = Expected("implausible", "memory answers reads of a device that is held back")
READ = "w: {rw: randread, bs: 4k}"
BUSY = "while True: pass"
READER = """
import mmap, os, sys
whole = mmap.mmap(-1, 1 << 20)
device = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
while True:
    if os.preadv(device, [whole], 0) <= 0:
        break
"""
FIRST = {1: {"cpu.shares": "262144"}, 2: {"cpu.weight": "10000"}}  # of all control groups
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    reason = why_no_disk()
    if reason:
        pytest.skip(f"NO DISK OF ITS OWN: {reason}")
    with own_disk(tmp_path_factory.mktemp("disk")) as made:
        yield made


@pytest.fixture
def memory() -> Iterator[Path]:
    """A directory in memory."""
    place = Path("/dev/shm", f"leadline-test-{os.getpid()}")
    place.mkdir()
    yield place
    shutil.rmtree(place)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "study.yaml"


@contextmanager
def group_or_skip(controller: str, limits: dict[int, dict[str, str]]) -> Iterator[Path]:
    """A control group of the test's own, where this machine lets one be made."""
    with ExitStack() as stack:
        try:
            group = stack.enter_context(own_group(controller, limits))
        except OSError as error:
            pytest.skip(f"no control group of its own: {error}")
        yield group


def run(leadline: Command, study: Path, target: Path | str, *expected: Expected, **more: Any) -> Codes:
    """Run to the end; the codes of the one cell `a.w`."""
    result = study.parent / "r"
    done = leadline("run", str(study), "--target", f"a={target}", "--out", str(result), **more)
    assert_measured(done, result, *expected)
    return codes_of(result)["a.w"]


SEVERAL = (
    "short: {rw: randread, bs: 4k, runtime: 5ms}",  # far below the limit: a thread may wait for a CPU
    "equal: {rw: randread, bs: 4k, incompressible: false, runtime: 200ms}",
    "capped: {rw: randread, bs: 4k, runtime: 500ms}",
    "fails: {rw: write, bs: 64k, size: 32M}",
)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Codes]:
    """One run of works that each have something wrong with them."""
    base, limit = tmp_path_factory.mktemp("several"), 8 << 20
    (base / "target").mkdir()
    study = write_study(base / "study.yaml", *SEVERAL)
    study.write_text(study.read_text().replace("reserve: 1M", "reserve: 1M, max_rate: 64M"))
    done = subprocess.run(
        command_line("run", str(study), "--target", f"a={base / 'target'}", "--out", str(base / "r")),
        env=os.environ | {"LEADLINE_EMULATED_HOST": "a guest of QEMU without KVM"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 3, done.stderr
    return codes_of(base / "r")


@pytest.mark.provokes("too_short")
def test_a_short_trial(several: dict[str, Codes]) -> None:
    assert several["a.short"]["too_short"][0] == "INVALID"


@pytest.mark.provokes("few_blocks")
def test_a_single_block(several: dict[str, Codes]) -> None:
    assert several["a.capped"]["few_blocks"] == ("DOUBTFUL", "1 block was completed")


@pytest.mark.provokes("compressible_data")
def test_data_that_can_be_compressed(several: dict[str, Codes]) -> None:
    assert several["a.equal"]["compressible_data"][0] == "DOUBTFUL"


@pytest.mark.provokes("throttled")
def test_a_rate_that_the_study_itself_caps(several: dict[str, Codes]) -> None:
    assert "the study's limit of" in several["a.capped"]["throttled"][1]


@pytest.mark.provokes("errors")
def test_a_write_that_fails(several: dict[str, Codes]) -> None:
    assert several["a.fails"]["errors"][0] == "INVALID"
    assert "File too large" in several["a.fails"]["errors"][1]


@pytest.mark.provokes("emulated_host")
def test_a_host_that_was_started_as_an_emulated_one(several: dict[str, Codes]) -> None:
    for codes in several.values():
        assert codes["emulated_host"][0] == "DOUBTFUL"
        assert "a guest of QEMU without KVM" in codes["emulated_host"][1]


@as_root
@pytest.mark.provokes("generator_saturated", "memory_target")
def test_a_generator_that_storage_does_not_hold_back(leadline: Command, study: Path, memory: Path) -> None:
    """In a group that comes before all others. Of several trials: a host may still take its CPU from one."""
    write_study(study, "w: {rw: randread, bs: 4k, runtime: 500ms}", blocks=8)
    with group_or_skip("cpu", FIRST) as group:
        found = run(leadline, study, memory, preexec_fn=join(group))
    assert found["generator_saturated"][0] == "DOUBTFUL"
    assert found["memory_target"][0] == "DOUBTFUL"


@pytest.mark.provokes("host_cpu_saturated", "other_load")
def test_neighbours_that_take_all_cpus(start: Start, study: Path, target: Path, tmp_path: Path) -> None:
    with running(start, write_study(study, READ), target, tmp_path / "r", "--set", "runtime=2s") as run_:
        run_.wait_for("workspace_intended")
        with neighbours(BUSY, 2 * (os.cpu_count() or 1)):
            run_.wait_for("trial_finished")
        run_.end(CACHED)
    found = codes_of(tmp_path / "r")["a.w"]
    assert found["host_cpu_saturated"][0] == "DOUBTFUL"
    assert "of this host's CPUs, most of it " in found["other_load"][1]


@pytest.mark.provokes("other_load", "cached_reads")
def test_a_neighbour_on_the_device_is_seen_and_hides_no_cached_reads(
    leadline: Command, study: Path, disk: Disk
) -> None:
    with neighbours(READER, 1, disk.device):
        found = run(leadline, write_study(study, READ), disk.path, CACHED)
    assert "read from the device was not this run's" in found["other_load"][1]
    assert found["cached_reads"][0] == "INVALID"


@pytest.fixture(scope="module")
def alone(start: Start, disk: Disk, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Codes]:
    """One run on a disk that nobody else uses."""
    base = tmp_path_factory.mktemp("alone")
    study = write_study(
        base / "study.yaml",
        "w: {rw: randread, bs: 4k, direct: true}",
        "x: {rw: write, bs: 4k, direct: true, fsync: 1}",
        "kept: {rw: randwrite, bs: 64k}",
    )
    with running(start, study, disk.path, base / "r") as run_:
        run_.end()
    return codes_of(base / "r")


def test_a_run_alone_on_its_disk_is_no_other_load_there(alone: dict[str, Codes]) -> None:
    for codes in alone.values():
        assert "device" not in codes.get("other_load", ("", ""))[1]
    assert not {"implausible", "cached_reads", "buffered_writes"} & {*alone["a.w"], *alone["a.x"]}


@pytest.mark.provokes("buffered_writes")
def test_writes_that_stay_in_memory(alone: dict[str, Codes]) -> None:
    assert alone["a.kept"]["buffered_writes"][0] == "DOUBTFUL"


@pytest.fixture
def overlay(memory: Path, tmp_path: Path) -> Iterator[Path]:
    """A mount that has no device of its own."""
    place, lower = tmp_path / "overlay", tmp_path / "lower"
    for made in (place, lower, memory / "upper", memory / "work"):
        made.mkdir()
    options = f"lowerdir={lower},upperdir={memory / 'upper'},workdir={memory / 'work'}"
    words = ("mount", "-t", "overlay", "none", "-o", options, str(place))
    mounted = subprocess.run(words, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no overlay can be mounted: {mounted.stderr}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@as_root
@pytest.mark.provokes("origin_unknown")
def test_buffered_reads_where_no_device_is_seen(leadline: Command, study: Path, overlay: Path) -> None:
    assert run(leadline, write_study(study, READ), overlay)["origin_unknown"][0] == "DOUBTFUL"


def data_file(target: Path) -> Path:
    (found,) = target.glob("leadline-*/a-data-*")
    return found


@pytest.mark.provokes("verification_failed")
def test_a_byte_that_somebody_changes(start: Start, study: Path, target: Path, tmp_path: Path) -> None:
    write_study(study, "w: {rw: randread, bs: 4k, size: 64k, verify: true, runtime: 20s}")
    with running(start, study, target, tmp_path / "r") as run_:
        run_.wait_for("trial_started")
        with data_file(target).open("r+b") as file:
            file.seek(20_000)
            (byte,) = file.read(1)
            file.seek(20_000)
            file.write(bytes([byte ^ 1]))
        run_.end(CACHED, DAMAGED)
    found = codes_of(tmp_path / "r")["a.w"]
    assert found["verification_failed"][0] == "INVALID"
    assert "at offset 16384" in found["verification_failed"][1]


@pytest.mark.provokes("unwritten_blocks")
def test_a_file_in_which_somebody_punches_a_hole(
    start: Start, study: Path, disk: Disk, tmp_path: Path
) -> None:
    with running(start, write_study(study, READ), disk.path, tmp_path / "r") as run_:
        run_.wait_for("trial_started")
        hole = ("fallocate", "--punch-hole", "--offset", "0", "--length", "2M", str(data_file(disk.path)))
        subprocess.run(hole, check=True)
        run_.end(CACHED, HOLED)
    assert codes_of(tmp_path / "r")["a.w"]["unwritten_blocks"][0] == "INVALID"


@as_root
@pytest.mark.provokes("throttled")
def test_a_control_group_with_half_a_cpu(leadline: Command, study: Path, memory: Path) -> None:
    """It comes before all others, so that its own limit is what it meets first."""
    limits = {
        1: {**FIRST[1], "cpu.cfs_quota_us": "50000"},
        2: {**FIRST[2], "cpu.max": "50000 100000"},
    }
    write_study(study, "w: {rw: randread, bs: 4k, numjobs: 2}")
    with group_or_skip("cpu", limits) as group:
        found = run(leadline, study, memory, preexec_fn=join(group))
    assert "control group was throttled" in found["throttled"][1]


@as_root
@pytest.mark.provokes("implausible")
def test_reads_faster_than_the_control_group_lets_the_device_be(
    leadline: Command, study: Path, disk: Disk
) -> None:
    number = Path("/sys/class/block", Path(disk.device).name, "dev").read_text().strip()
    limits = {
        1: {"blkio.throttle.read_bps_device": f"{number} 4194304"},
        2: {"io.max": f"{number} rbps=4194304"},
    }
    write_study(study, "w: {rw: randread, bs: 4k, size: 1M}")
    with group_or_skip("blkio", limits) as group:
        found = run(leadline, study, disk.path, CACHED, TOO_FAST, preexec_fn=join(group))
    assert found["implausible"][0] == "INVALID"
    assert "control group's limit" in found["implausible"][1]
    assert "at most 4 MiB/s" in found["implausible"][1]


@pytest.mark.provokes("incomplete", "not_run")
def test_a_run_that_is_interrupted(start: Start, study: Path, target: Path, tmp_path: Path) -> None:
    write_study(study, READ, "x: {rw: randread, bs: 8k}", blocks=2, more="seed: 7\n")
    with running(start, study, target, tmp_path / "r") as run_:
        run_.wait_for("trial_finished")
        run_.interrupt()
    first, second = sorted(codes_of(tmp_path / "r").values(), key=lambda codes: "not_run" in codes)
    assert first["incomplete"] == ("DOUBTFUL", "1 of 2 blocks")
    assert second["not_run"][0] == "NOT_RUN"


@pytest.mark.provokes("events_lost")
def test_observers_that_are_held_up(start: Start, study: Path, target: Path, tmp_path: Path) -> None:
    write_study(study, "w: {rw: randread, bs: 4k, runtime: 2s}", more="observe: {interval: 100ms}\n")
    with running(start, study, target, tmp_path / "r") as run_:
        run_.wait_for("trial_started")
        agent = run_.pid_of("leadline.observe.agent")
        os.kill(agent, signal.SIGSTOP)
        try:
            threading.Event().wait(1.0)  # this long the fault is
        finally:
            os.kill(agent, signal.SIGCONT)
        run_.end(CACHED)
    assert codes_of(tmp_path / "r")["a.w"]["events_lost"][0] == "DOUBTFUL"


@pytest.mark.provokes("worker_stopped")
def test_a_worker_that_is_stopped_for_a_part_of_its_trial(
    start: Start, study: Path, target: Path, tmp_path: Path
) -> None:
    write_study(study, "w: {rw: randread, bs: 4k, runtime: 2s}")
    with running(start, study, target, tmp_path / "r") as run_:
        run_.wait_for("trial_started")
        worker = run_.worker()
        worker.suspend()
        try:
            wait_until(lambda: worker.status() == psutil.STATUS_STOPPED)
            threading.Event().wait(0.5)  # this long the fault is
        finally:
            worker.resume()
        run_.end(CACHED, STOPPED)
    state, evidence = codes_of(tmp_path / "r")["a.w"]["worker_stopped"]
    assert state == "INVALID"
    assert "had the worker of t0001 stopped for" in evidence


@as_root
@pytest.mark.provokes("target_changed")
def test_a_target_that_is_remounted_during_a_trial(start: Start, study: Path, tmp_path: Path) -> None:
    place = tmp_path / "mounted"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "leadline-test", str(place)], check=True)
    try:
        write_study(study, "w: {rw: write, bs: 4k, size: 64k, rate_iops: 8}")  # for two seconds
        with running(start, study, place, tmp_path / "r") as run_:
            run_.wait_for("trial_started")
            worker = run_.worker()
            worker.suspend()  # so that the trial lasts for as long as the mount takes
            try:
                subprocess.run(["mount", "-o", "remount,sync", str(place)], check=True)
            finally:
                worker.resume()
            run_.end(STOPPED)
    finally:
        subprocess.run(["umount", str(place)], check=True)
    state, evidence = codes_of(tmp_path / "r")["a.w"]["target_changed"]
    assert state == "DOUBTFUL"
    assert evidence == "during t0001 its mount options changed: sync was added"


@pytest.mark.provokes("published", "disagrees")
def test_a_document_that_contradicts_itself(leadline: Command, tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text(
        "format: leadline.published/1\ntitle: One table\nsystems: {a: {host: one}}\n"
        "tables:\n  t:\n    keys: [system, step]\n"
        "    columns: {size: GB, took: {unit: s, kind: elapsed}, rate: MB/s}\n"
        "    rows:\n      - [a, copy, 10, 100, 300]\n"
    )
    out = tmp_path / "r"
    done = leadline("import", "published", str(tmp_path / "d.yaml"), "--out", str(out))
    assert_measured(done, out)
    found = {code for codes in codes_of(out).values() for code in codes}
    assert found == {"published", "disagrees"}
