"""`make kills`: kills at random moments of `run`, `replay` and `trace`, on a lab and on a local directory.

A study or replay is begun, killed, resumed, killed again, and ended at last by `run --resume` or by `undo`.
Then its result is whole, no process of it runs, and nothing of it is left on the storage, as a second reader
of that storage sees it. A trace is killed once, and what it recorded is recovered: see `killed_traces.py`.
`--seed` makes the moments again; what failed stays to be looked into. Ctrl-C lets what is under way end, and
reports what was done.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import killed_traces
from measured import (
    BRIEF,
    CACHED,
    EXIT_FAILED,
    LEFT_OUT,
    MOVING,
    SERVED,
    assert_measured,
)
from support import command_line
from whole import assert_complete, wait_until_workers_are_gone

STUDY = """
format: leadline.study/1
where_possible: true
blocks: 2
limits: {reserve: 1M}
works:
"""
WORKS = """\
  data: {rw: randrw, bs: 64k, size: 1M, iodepth: 2, verify: true}
  names: {operations: [create, stat, unlink], files: 10}
"""
# XRootD's Ceph plug-in writes new files only, and does not find files without bytes.
WORKS_OF = {"xrootd": "  data: {rw: write, bs: 64k, size: 1M, iodepth: 2}\n"}
EXPECTED = (CACHED, SERVED, BRIEF, LEFT_OUT, MOVING)  # what ways and a busy cluster do to so small a study
MOST_KILLS_OF_A_STUDY = 12
DEADLINE_S = 180
TRIES = 5
# The MDS leaves a directory to a killed client for so long, and others wait there meanwhile.
SESSION_S = 60
# A cluster in trouble, as on a busy host, stops a study; a mount or a server before CephFS stalls.
TROUBLE = ("stopped: the cluster", "no answer within", "Connection timed out")
Listing = Callable[[], str]


@dataclass(frozen=True)
class Way:
    """A target, what its commands need in their environment, and how another program lists its storage.

    `trace` is what is replayed there; without it a study is run.
    """

    name: str
    where: str
    variables: dict[str, str]
    listing: Listing
    trace: Path | None = None

    def begin(self, place: Path, out: Path) -> tuple[str, ...]:
        """The command that is killed, with its result at `out`."""
        last = ("--target", f"a={self.where}", "--out", str(out), "--quiet", "--seed", "1")
        if self.trace is not None:
            return ("replay", str(self.trace), "--blocks", "2", *last)
        study = place / "study.yaml"
        study.write_text(STUDY + WORKS_OF.get(self.name, WORKS))
        return ("run", str(study), *last)


class TracedCommand(NamedTuple):
    """A command that is traced, with what a way has."""

    name: str = "trace"

    def listing(self) -> str:
        """Nothing: what is left of a trace is a failure of its own."""
        return ""


@dataclass
class Tally:
    """What all lanes share."""

    wanted: int
    kills: Counter[str] = field(default_factory=Counter)
    studies: Counter[str] = field(default_factory=Counter)
    ended_before: int = 0
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def over(self) -> bool:
        """True when there were enough."""
        return self.kills.total() >= self.wanted


def output(*words: str, **variables: str) -> str:
    """What a command prints; its failure is an error with its last words."""
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=DEADLINE_S, check=False, env=os.environ | variables
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


@contextlib.contextmanager
def lab(place: Path) -> Iterator[Path]:
    """A lab of its own with every gateway, gone afterwards."""
    os.environ["XDG_STATE_HOME"] = str(place / "state")
    directory = place / "lab"
    try:
        output(*command_line("lab", "up", "--dir", str(directory), "--name", "kills", "--gateways", "all"))
        yield directory
    finally:
        output(*command_line("lab", "down", str(directory)))


def ways_of(directory: Path) -> list[Way]:
    """Every way that needs no guest, each with a reader of its storage that is not leadline."""
    found = json.loads(output(*command_line("lab", "targets", "--dir", str(directory), "--json")))["targets"]
    here = [one for one in found if not one["reason"]]
    for one in found:
        if one["reason"]:
            sys.stderr.write(f"kills: not tried: {one['name']}: {one['reason']}\n")
    mount = next(Path(one["where"]) for one in here if one["name"] == "ceph-fuse")

    def listing(one: dict[str, str], variables: dict[str, str]) -> Listing:
        if one["same_bytes"] == "cephfs":
            return lambda: names_in(mount)
        if one["same_bytes"] == "s3":
            return lambda: keys_of(one["where"], Path(variables["AWS_SHARED_CREDENTIALS_FILE"]))
        pool = "objects" if one["same_bytes"] == "rados" else "striped"
        conf = str(directory / "ceph.conf")
        return lambda: output("rados", "--conf", conf, "--pool", pool, "ls")

    return [Way(one["name"], one["where"], one["variables"], listing(one, one["variables"])) for one in here]


def names_in(directory: Path) -> str:
    """The entries of a directory."""
    return "\n".join(path.name for path in directory.iterdir())


def keys_of(url: str, credentials: Path) -> str:
    """The keys of a bucket, by s3cmd."""
    endpoint = url.partition("endpoint=http://")[2].partition("&")[0]
    lines = credentials.read_text().replace(" ", "").splitlines()
    known = dict(line.split("=", 1) for line in lines if "=" in line)
    words = ("-c", "/dev/null", "--no-ssl", f"--host={endpoint}", f"--host-bucket={endpoint}")
    bucket = url.partition("?")[0]
    variables = {name.upper(): known[name] for name in ("aws_access_key_id", "aws_secret_access_key")}
    return output("s3cmd", *words, "ls", "--recursive", bucket, **variables)


def start(way: Way, words: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """In a session of its own, so that all of it can be killed at once."""
    return subprocess.Popen(
        command_line(*words),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | way.variables,
        start_new_session=True,
    )


def run(way: Way, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """To its end, undisturbed."""
    return subprocess.run(
        command_line(*words),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env=os.environ | way.variables,
    )


def tries() -> Iterator[int]:
    """As a person would try again: a few times, and for longer than a killed client's session lasts."""
    number, patience_end = 0, time.monotonic() + 1.5 * SESSION_S
    while number < TRIES or time.monotonic() < patience_end:
        yield number
        number += 1


def in_trouble(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether the cluster, and not leadline, is why a command did not get on."""
    return any(words in done.stderr for words in TROUBLE)


def one_study(way: Way, place: Path, moment: random.Random, longest_s: float, tally: Tally) -> float:
    """A study on one way from its first kill to its end; how long a whole run takes, as far as is known."""
    out = place / "r"
    new = way.begin(place, out)
    resume = ("run", "--resume", str(out), "--quiet")
    for _ in range(moment.randint(1, MOST_KILLS_OF_A_STUDY)):
        whole = not (out / "manifest.json").exists()
        began, process = time.monotonic(), start(way, new if whole else resume)
        # The random moment itself; the wait ends with a process that was done sooner.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moment.uniform(0, 0.8 * longest_s))
        killed = process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if moment.random() < 0.25 else os.kill)(process.pid, signal.SIGKILL)
        process.wait()
        with tally.lock:
            tally.kills[way.name] += killed
            tally.ended_before += not killed
        if whole and not killed:  # a host that is less busy by now
            longest_s = min(longest_s, time.monotonic() - began)
        if (out / "events.jsonl").exists():
            wait_until_workers_are_gone(out)
        elif out.exists():
            shutil.rmtree(out)  # killed before it was a result: a new run refuses what is there
    end(way, out, new, resume, undone=moment.random() < 0.25)
    with tally.lock:
        tally.studies[way.name] += 1
    return longest_s


def end(way: Way, out: Path, new: tuple[str, ...], resume: tuple[str, ...], undone: bool) -> None:
    """By a last run, or by `undo` of what the kills left; then nothing is on the storage."""
    began = (out / "manifest.json").exists()
    words = ("undo", str(out)) if undone and began else resume if began else new
    for _ in tries():
        last = run(way, words)
        if not in_trouble(last):
            break
        if words[0] != "undo" and (out / "manifest.json").exists():
            words = resume
    assert (out / "manifest.json").exists(), last.stderr
    study_id = json.loads((out / "manifest.json").read_text())["id"]
    if words[0] == "undo":
        assert last.returncode == 0, last.stderr
    else:
        assert_complete(last, out, *EXPECTED)
    assert study_id not in way.listing(), f"leadline-{study_id} is left on {way.where}"


def one_trace(place: Path, moment: random.Random, longest_s: float, tally: Tally) -> None:
    """A traced command whose leadline is killed once."""
    killed = killed_traces.one(place, moment.uniform(0, longest_s), group=moment.random() < 0.25)
    with tally.lock:
        tally.kills["trace"] += killed
        tally.ended_before += not killed
        tally.studies["trace"] += 1


def lane(ways: Sequence[Way | TracedCommand], place: Path, seed: str, tally: Tally) -> None:
    """Study after study, on the ways in turn, each kill within the time that its way needs undisturbed."""
    moment = random.Random(seed)  # noqa: S311 - moments, not secrets
    longest: dict[str, float] = {}
    while not tally.over():
        for way in ways:
            if tally.over():
                return
            own = Path(tempfile.mkdtemp(dir=place))
            try:
                if isinstance(way, TracedCommand):
                    if way.name not in longest:
                        longest[way.name] = killed_traces.undisturbed_s(own / "undisturbed")
                    one_trace(own, moment, longest[way.name], tally)
                else:
                    if way.name not in longest:
                        longest[way.name] = undisturbed(way, own)
                    longest[way.name] = one_study(way, own, moment, longest[way.name], tally)
            except Exception as error:  # one failure must not hide the next
                tally.failures.append(f"{way.name}: {error!r}\n  look into {own}")
            else:
                shutil.rmtree(own)


def undisturbed(way: Way, place: Path) -> float:
    """Seconds that the study takes on this way when nobody kills it."""
    said = ""
    for number in tries():
        began = time.monotonic()
        done = run(way, way.begin(place, place / f"u{number}"))
        if done.returncode != EXIT_FAILED and not in_trouble(done):
            assert (place / f"u{number}").exists(), f"exit code {done.returncode}: {done.stderr}"
            assert_measured(done, place / f"u{number}", *EXPECTED)
            return time.monotonic() - began
        said = done.stderr  # a cluster in trouble is left alone, and is well a moment later
    raise AssertionError(f"the study does not run on {way.where}: {said}")


def main() -> int:
    """1 where a kill lost or left something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)))
    parser.add_argument("--lanes", type=int, default=2)
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="leadline-kills-", dir="/var/tmp"))
    tally = Tally(options.kills)

    def enough(*_: object) -> None:
        tally.wanted = 0

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, enough)
    sys.stderr.write(f"kills: {options.kills} kills, --seed {options.seed}, in {place}\n")
    with lab(place) as directory:
        local = place / "local"
        local.mkdir()
        runs = [Way("local", str(local), {}, lambda: names_in(local)), *ways_of(directory)]
        trace = killed_traces.traced(place / "replayed")
        replays = [
            replace(way, name=f"replay {way.name}", trace=trace)
            for way in runs
            if way.name in ("local", "ceph-fuse")
        ]
        ways = [*runs, *replays, TracedCommand()]
        lanes = [
            threading.Thread(
                target=lane, args=(ways[number:] + ways[:number], place, f"{options.seed}.{number}", tally)
            )
            for number in range(options.lanes)
        ]
        for one in lanes:
            one.start()
        for one in lanes:
            one.join()
        left = {way.name: found for way in ways if "leadline-" in (found := way.listing())}
    for way in ways:
        sys.stdout.write(
            f"{way.name:16} {tally.kills[way.name]:5} kills {tally.studies[way.name]:5} studies\n"
        )
    sys.stdout.write(f"{'all':16} {tally.kills.total():5} kills {tally.studies.total():5} studies\n")
    sys.stdout.write(f"ended before their kill: {tally.ended_before}; something left on: {left or 'none'}\n")
    for failure in tally.failures:
        sys.stdout.write(f"FAILED {failure}\n")
    if not tally.failures and not left:
        shutil.rmtree(place)
    return 1 if tally.failures or left else 0


if __name__ == "__main__":
    sys.exit(main())
