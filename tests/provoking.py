"""What the tests that provoke validity codes share: a disk of their own, control groups, small studies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from leadline.observe.host.host import group_path
from leadline.store.journal import read_journal
from leadline.store.reader import open_result
from leadline.verdict.findings import build_findings
from measured import Expected, assert_measured
from support import Process, Start

Codes = dict[str, tuple[str, str]]  # code -> state, evidence
_DISK_BYTES = 64 << 20


@dataclass(frozen=True)
class Disk:
    """An ext4 of the test's own on a loop device: nobody else's bytes are in its counters."""

    path: Path
    device: str


def why_no_disk() -> str:
    """Why no disk of a test's own can be made here; "" where one can."""
    if os.geteuid() != 0:
        return "loop devices need root"
    absent = [name for name in ("losetup", "mkfs.ext4", "mount") if shutil.which(name) is None]
    if absent:
        return f"{' and '.join(absent)} missing"
    free = subprocess.run(["losetup", "--find"], capture_output=True, text=True, check=False)
    return "" if free.returncode == 0 else f"no loop device: {free.stderr.strip()}"


@contextmanager
def own_disk(directory: Path) -> Iterator[Disk]:
    """The disk below `directory`, mounted; gone at the end."""
    image, place = directory / "disk.img", directory / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(_DISK_BYTES)
    made = _run("losetup", "--find", "--show", str(image)).strip()
    try:
        _run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", made)
        _run("mount", made, str(place))
        try:
            (place / "lost+found").rmdir()
            yield Disk(place, made)
        finally:
            _run("umount", str(place))
    finally:
        _run("losetup", "--detach", made)
        image.unlink()


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@contextmanager
def own_group(controller: str, limits: dict[int, dict[str, str]]) -> Iterator[Path]:
    """A control group below this process's; `limits` by version of the hierarchy: file -> text.

    Raises OSError where this machine does not let one be made.
    """
    found = group_path(controller)
    if found is None:
        raise FileNotFoundError(f"no hierarchy of {controller}")
    group = found.directories[0] / f"leadline-test-{os.getpid()}"
    group.mkdir()
    try:
        for name, text in limits[found.version].items():
            (group / name).write_text(text)
        yield group
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text().strip())
        group.rmdir()


def join(group: Path) -> Callable[[], None]:
    """For `preexec_fn`: the new process enters the group before it begins."""
    return lambda: void((group / "cgroup.procs").write_text("0"))


def void(_value: object) -> None:
    """For callbacks that return nothing."""


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.01)


def write_study(path: Path, *works: str, blocks: int = 1, more: str = "") -> Path:
    """A study of small files, read and written by plain calls through the page cache."""
    path.write_text(
        f"format: leadline.study/1\nblocks: {blocks}\nlimits: {{reserve: 1M}}\n{more}"
        "defaults: {size: 4M, runtime: 1s, time_based: true, engine: psync, direct: false}\n"
        "works:\n" + "".join(f"  {work}\n" for work in works)
    )
    return path


def codes_of(result: Path) -> dict[str, Codes]:
    """What the result's cells are judged to be."""
    found = build_findings(open_result(result), with_charts=False)
    return {
        cell.id: {code.code: (code.state, code.evidence) for code in cell.validity.codes}
        for cell in found.cells
    }


@dataclass
class Running:
    """A run that goes on while its test does something to it."""

    process: Process
    result: Path

    def wait_for(self, event: str) -> None:
        """Until the journal has an event of this kind."""
        journal = self.result / "events.jsonl"
        wait_until(lambda: journal.exists() and f'"event": "{event}"' in journal.read_text())

    def pid_of(self, module: str) -> int:
        """The process that runs a module of leadline's below this run."""
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if module in child.cmdline():
                    return child.pid
        raise AssertionError(f"no process runs {module}")

    def worker(self) -> psutil.Process:
        """That of the latest trial."""
        events = read_journal(self.result / "events.jsonl")
        started = [event for event in events if event.event == "trial_started"]
        return psutil.Process(started[-1].details["worker"])

    def end(self, *expected: Expected) -> None:
        """Until the run is over; it must not break, and `expected` is what may make its cells unusable."""
        _, errors = self.process.communicate(timeout=100)
        assert self.result.is_dir(), f"no result, exit code {self.process.returncode}: {errors}"
        assert_measured(self.process, self.result, *expected)

    def interrupt(self) -> None:
        """As Ctrl-C does, until the run is over."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=100)
        assert self.process.returncode == 128 + signal.SIGINT, errors


@contextmanager
def running(start: Start, study: Path, target: Path, result: Path, *options: str) -> Iterator[Running]:
    """Starts a run; ended at the latest when the block is left."""
    words = ("run", str(study), "--target", f"a={target}", "--out", str(result), "--quiet", *options)
    process = start(*words)
    try:
        yield Running(process, result)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


@contextmanager
def neighbours(program: str, count: int = 1, *arguments: str) -> Iterator[list[int]]:
    """Processes of the test's own beside a run, each a small Python program."""
    started = [subprocess.Popen([sys.executable, "-c", program, *arguments]) for _ in range(count)]
    try:
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
