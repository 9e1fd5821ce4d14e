"""Runs the tests in phases, some side by side, and reports at the end where the time went.

    tools/test_phases.py [--all] [PHASE...]     without a name every phase; PYTEST_ARGUMENTS go to pytest

Without `--all` the tests of tests/levels.toml are left out. Each test that docs/safety.md names for a
promise must still be there: the run fails where one was left out. What a phase prints is in
target/test-logs/PHASE.log. Times and skipped tests come first, failures last, so that the end of the output
names them. The real Ceph mostly waits for its own rounds, so it has lanes of its own next to the one that
needs the processors.

A few tests that failed next to others are tried once more, alone, when all have ended: lanes share two
processors and one disk, and what a test waits for can then come later than any limit allows for. A test that
passes alone is a failure all the same, as the program may be the reason. The report says which kind it is.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "target" / "test-logs"
SLOWEST = 5  # tests of a phase that the table names
AGAIN = 3  # so many that failed are tried again; more are no accident of one moment
TOLD = ("SKIPPED", "FAILED", "ERROR", "XPASS")  # how lines of pytest's summary begin that are repeated


@dataclass(frozen=True)
class Phase:
    """One command, which ends with a code of its own. `words` follow `pytest`, or are the whole command.

    `marks` chooses tests by their markers, as pytest's -m does.
    """

    name: str
    words: tuple[str, ...]
    marks: str = ""
    pytest: bool = True

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return LOGS / f"{self.name}.log"

    @property
    def times(self) -> Path:
        """Where pytest writes how long each test took."""
        return LOGS / f"{self.name}.xml"

    def command(self) -> list[str]:
        """What is run."""
        if not self.pytest:
            return list(self.words)
        more = shlex.split(os.environ.get("PYTEST_ARGUMENTS", ""))
        marks = [self.marks] if self.marks else []
        marks += [] if EVERYTHING in os.environ else [f"not {NIGHTLY}"]
        chosen = ["-m", " and ".join(marks)] if marks else []
        return [sys.executable, "-m", "pytest", *self.words, *chosen, f"--junitxml={self.times}", *more]


@dataclass
class Ran:
    """How a phase went."""

    phase: Phase
    began_s: float
    seconds: float = 0.0
    cpu_s: float = 0.0
    code: int | None = None
    slowest: list[tuple[float, str]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # as pytest takes them on its command line

    @property
    def is_known(self) -> bool:
        """Whether its end is told by tests that failed, and not by anything beside them."""
        return self.code == 0 or (self.code == 1 and bool(self.failed))


# Tests that `make test` leaves to `make test-all` carry this mark, by tests/levels.toml.
NIGHTLY = "nightly"
EVERYTHING = "LEADLINE_ALL_TESTS"  # in the environment: those, too, and more samples of what is drawn
# What the first lane of the real Ceph leaves to the second, which has a lab of its own for them.
SECOND = ("test_locations.py", "test_study.py", "test_watch.py")
# What needs the lab with hosts, which is started once for them.
NETWORK = ("test_network.py", "test_inject.py", "test_inject_links.py", "test_lab_hosts.py")
# Starts 80 commands at once: next to others it would hold them up, and each worker would start them anew.
HANGING = "tests/integration/test_hanging.py"
# Tests that hold only where processors are to spare carry this mark, and run when all others have ended.
MARK = "processors"
MARKED = sorted(
    str(file.relative_to(ROOT))
    for place in ("unit", "integration", "ceph")
    for file in (ROOT / "tests" / place).glob("test_*.py")
    if f"mark.{MARK}" in file.read_text()
)
LAST = Phase("quiet", tuple(MARKED), MARK)
RUST = Phase("rust", ("cargo", "test", "--workspace", "--quiet", "--locked"), pytest=False)
# More take longer: on two processors three workers need 338 s of CPU for the units, and two need 262.
SPREAD = ("--dist", "worksteal", "-n")
INTEGRATION = ("tests/integration", "tests/browser", f"--ignore={HANGING}")
# A lane's phases follow each other; lanes run at the same time.
LANES: tuple[tuple[Phase, ...], ...] = (
    (
        RUST,
        Phase("unit", ("tests/unit", "tests/sentences", *SPREAD, "2"), f"not {MARK}"),
        Phase("hanging", (HANGING,)),
        Phase("integration", (*INTEGRATION, *SPREAD, "4"), f"not {MARK}"),
    ),
    # What shares the session's lab, and next to it what starts labs of its own.
    (
        Phase(
            "ceph",
            ("tests/ceph", *(f"--ignore=tests/ceph/{file}" for file in SECOND + NETWORK)),
            "not own_lab",
        ),
    ),
    (
        Phase(
            "labs",
            ("tests/ceph", *(f"--ignore=tests/ceph/{file}" for file in NETWORK)),
            f"own_lab and not {MARK}",
        ),
        Phase("ceph-2", tuple(f"tests/ceph/{file}" for file in SECOND), "not own_lab"),
        Phase("network", tuple(f"tests/ceph/{file}" for file in NETWORK)),
    ),
)


def environment() -> dict[str, str]:
    """This one's, but Python keeps what it compiled: else each of thousands of commands does that anew."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run(phase: Phase, zero_s: float) -> Ran:
    """Run a phase to its end; its output goes to its log."""
    began_s = time.monotonic()
    ran = Ran(phase, began_s - zero_s)
    phase.times.unlink(missing_ok=True)
    with phase.log.open("wb") as log:
        process = subprocess.Popen(
            phase.command(), cwd=ROOT, env=environment(), stdout=log, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
    ran.code = process.returncode = os.waitstatus_to_exitcode(status)
    ran.seconds = time.monotonic() - began_s
    ran.cpu_s = usage.ru_utime + usage.ru_stime
    ran.slowest = slowest_of(phase.times)
    ran.failed = failed_of(phase.times)
    return ran


def slowest_of(file: Path) -> list[tuple[float, str]]:
    """The tests that took longest with their fixtures, in seconds; none where pytest wrote no times."""
    if not file.exists():
        return []
    cases = [
        (float(case.get("time", "0")), f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}")
        for case in ElementTree.parse(file).iter("testcase")  # noqa: S314 - pytest of this run wrote it
    ]
    return sorted(cases, reverse=True)[:SLOWEST]


def failed_of(file: Path) -> list[str]:
    """The tests that failed, or whose fixtures did, as pytest takes them: `tests/test_a.py::test_b[c]`."""
    if not file.exists():
        return []
    return [
        f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        for case in ElementTree.parse(file).iter("testcase")  # noqa: S314 - pytest of this run wrote it
        if case.get("classname")  # what is no test, as a worker that found other tests, has none
        and (case.find("failure") is not None or case.find("error") is not None)
    ]


def tests_in(file: Path) -> tuple[set[str], set[str]]:
    """Of a phase's report the files and names of tests: those that were chosen, and those that ran."""
    chosen: set[str] = set()
    ran: set[str] = set()
    if file.exists():
        for case in ElementTree.parse(file).iter("testcase"):  # noqa: S314 - pytest of this run wrote it
            module = str(case.get("classname", "")).rpartition(".")[2]
            names = {f"{module}.py", str(case.get("name")).partition("[")[0]}
            chosen |= names
            ran |= names if case.find("skipped") is None else set()
    return chosen, ran


def promises(page: str) -> list[tuple[str, set[str]]]:
    """Each promise of docs/safety.md with the files and names of tests that stand beside it."""
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    found = []
    for row in rows:
        names = set(re.findall(r"`(?:[\w/.]*/)?(test_\w+(?:\.py|\*)?)`", row[-1]))
        if len(row) == 2 and names:
            found.append((row[0], names))
    return found


def without(page: str, tests: set[str]) -> list[str]:
    """Promises of which a test is not among these: `PROMISE: TEST, TEST`."""

    def is_there(name: str) -> bool:
        return any(one.startswith(name[:-1]) for one in tests) if name.endswith("*") else name in tests

    lost = [(words, sorted(name for name in names if not is_there(name))) for words, names in promises(page)]
    return [f"{words}: {', '.join(names)}" for words, names in lost if names]


def run_lane(lane: Sequence[Phase], zero_s: float, done: list[Ran], ending: threading.Event) -> None:
    """One phase after the other, whatever became of those before, until all is to end."""
    for phase in lane:
        if ending.is_set():
            return
        print(f"{phase.name}: {shlex.join(phase.command()[:8])} ... > {phase.log}", flush=True)
        ran = run(phase, zero_s)
        done.append(ran)
        print(f"{phase.name}: {'passed' if ran.code == 0 else 'FAILED'} in {ran.seconds:.0f} s", flush=True)


def run_again(done: Sequence[Ran], zero_s: float) -> Ran | None:
    """The tests that failed, alone; not where none did or too many, nor where more went wrong than tests."""
    failed = list(dict.fromkeys(name for ran in done for name in ran.failed))
    if not 0 < len(failed) <= AGAIN or not all(ran.is_known for ran in done):
        return None
    phase = Phase("again", tuple(failed))
    print(f"{phase.name}: {shlex.join(failed)} ... > {phase.log}", flush=True)
    return run(phase, zero_s)


def say_skipped(done: Sequence[Ran]) -> None:
    """Tests that did not run, with their reasons, of phases that passed."""
    for ran in done:
        for line in ran.phase.log.read_text(errors="replace").splitlines() if ran.code == 0 else ():
            if line.startswith(TOLD):
                print(f"{ran.phase.name}: {line}")


def say_failures(done: Sequence[Ran], again: Ran | None) -> None:
    """The end of the log of each phase that failed, then a line for each test that did."""
    failing = [ran for ran in done if ran.code != 0]
    for ran in failing:
        lines = ran.phase.log.read_text(errors="replace").splitlines()
        print(f"\n--- {ran.phase.name} ended with code {ran.code}; all of it: {ran.phase.log}")
        print("\n".join(lines[-60:]))
    for ran in failing:
        if not ran.is_known:
            print(f"FAILED {ran.phase.name}, with code {ran.code}: {ran.phase.log}")
        for name in ran.failed:
            told = again is not None and again.is_known
            alone = "" if not told else " and alone" if name in again.failed else ", passed alone"
            print(f"FAILED {name} beside others{alone}: {ran.phase.log}")


def say_promises(done: Sequence[Ran]) -> bool:
    """Whether each test that docs/safety.md names was chosen; prints those left out and those skipped.

    Of a phase that ended by itself nobody knows its tests: that failure is said, and none that follows of it.
    """
    if not all(ran.is_known for ran in done):
        return False
    page = (ROOT / "docs" / "safety.md").read_text()
    sides = [tests_in(ran.phase.times) for ran in done]
    chosen = without(page, set().union(*(side[0] for side in sides)))
    for line in without(page, set().union(*(side[1] for side in sides))):
        how = "FAILED, as it was left out" if line in chosen else "skipped here"
        print(f"{how}: a test of a promise of docs/safety.md: {line}")
    return not chosen


def say_times(done: Sequence[Ran], seconds: float) -> None:
    """The table: when each phase ran, how long, and its slowest tests."""
    print(f"\n{'phase':14}{'began':>8}{'seconds':>9}{'CPU s':>8}  slowest tests, s")
    for ran in sorted(done, key=lambda one: one.began_s):
        first, *rest = [f"{value:6.1f} {name}" for value, name in ran.slowest] or [""]
        print(f"{ran.phase.name:14}{ran.began_s:8.0f}{ran.seconds:9.0f}{ran.cpu_s:8.0f}  {first}")
        for line in rest:
            print(f"{'':41}{line}")
    one, five, _ = os.getloadavg()
    print(f"{'all':14}{0:8.0f}{seconds:9.0f}{sum(ran.cpu_s for ran in done):8.0f}  ", end="")
    print(f"load {one:.1f} now, {five:.1f} over five minutes, on {os.cpu_count()} processors")


def keep_times(done: Sequence[Ran], seconds: float) -> None:
    """What `make bench` says of a whole run."""
    found = {
        "at": datetime.now(UTC).isoformat(sep=" ", timespec="minutes"),
        "seconds": round(seconds),
        "cpu_s": round(sum(ran.cpu_s for ran in done)),
        "processors": os.cpu_count(),
        "phases": {ran.phase.name: round(ran.seconds) for ran in sorted(done, key=lambda one: one.began_s)},
    }
    (LOGS / "all.json").write_text(json.dumps(found) + "\n")


def main(words: Sequence[str]) -> int:
    """Run the named phases; 0 where all passed, 1 where one did not, 130 where it was interrupted."""
    names = [word for word in words if word != "--all"]
    if "--all" in words:
        os.environ[EVERYTHING] = "1"
    known = [phase.name for lane in (*LANES, (LAST,)) for phase in lane]
    if unknown := [name for name in names if name not in known]:
        print(f"there is no phase {unknown[0]}; there are: {' '.join(known)}", file=sys.stderr)
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    zero_s = time.monotonic()
    done: list[Ran] = []
    ending = threading.Event()
    lanes = [[phase for phase in lane if not names or phase.name in names] for lane in LANES]
    threads = [threading.Thread(target=run_lane, args=(lane, zero_s, done, ending)) for lane in lanes if lane]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:  # the phases were interrupted by the same Ctrl-C, and tidy up
            ending.set()
    if not names or LAST.name in names:
        run_lane((LAST,), zero_s, done, ending)
    again = None if ending.is_set() else run_again(done, zero_s)
    seconds = time.monotonic() - zero_s
    say_skipped(done)
    say_times([*done, again] if again else done, seconds)
    kept = bool(names) or ending.is_set() or say_promises(done)
    say_failures(done, again)
    if not names and not ending.is_set():
        keep_times(done, seconds)
    if ending.is_set():
        return 130
    return 0 if kept and all(ran.code == 0 for ran in done) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
