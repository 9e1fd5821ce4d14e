"""`make budget-bench`: are known delays in the segment of the latency budget where they were injected?

    python bench/budget.py run --rounds 2     # lines in bench/budget.jsonl; goes on there
    python bench/budget.py judge              # bench/budget.md, from these lines alone

A lab of three OSDs is started, and osd.0 is the primary of the groups with copies. One request is in
flight at a time. Each case is measured between two runs without it, and the mean of the two is taken from
it. What was injected is known by how it is made; of slow disks, of other OSDs and of the metadata server it
is what each request waited longer by the load's own clock. The device here is a loop device on a file of a
FUSE mount, which answers late by a known time. It needs root.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from diagnosis import command, settle
from simulation_lab import ceph

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

import slow_fuse  # noqa: E402
from slow_fuse import SlowMount  # noqa: E402

RUNS, PAGE = HERE / "budget.jsonl", HERE / "budget.md"
LAB = "budget"
DEVICE_BYTES = 256 << 20
OSDS = ("osd.0", "osd.1", "osd.2")
DEVICE_S = 0.02
NETWORK_S = 0.01
CLIENT = "client1"
TOPOLOGY = f"""
switches:
  core:
hosts:
  host[1-3]: {{switch: core, osds: 1, runs: [mon, mgr, mds]}}
clients:
  {CLIENT}: {{switch: core}}
"""
MOST_S = 0.04  # of a message's delay, which is uniform from nothing to this
NEAR = 0.2  # of what was injected: the segment may be off by so much
STUDY = """
format: leadline.study/1
blocks: 2
works:
  work: {work}
"""
WRITES = "{rw: randwrite, bs: 4k, size: 16M, iodepth: 1, runtime: 8s, time_based: true}"
LARGE_WRITES = WRITES.replace("4k", "64k")
READS = WRITES.replace("randwrite", "randread")
DIRECT_READS = READS.replace("iodepth", "direct: true, iodepth")
METADATA = "{operations: [create, unlink], files: 200}"
METHOD = """\
One request is in flight at a time, and osd.0 is the primary of the groups with copies (`bench/budget.py`). A
run without the delay comes before and after each; their mean is taken from what is shown."""
LIMITS = """\
No delay was injected into a gateway and a client's own queue: no counter shows them. With three copies on
slow disks a request waits for the slowest of three; what exceeds the primary's own store is in `peers`."""
Truth = Callable[[float], float]  # from the seconds by which a request became longer
Injection = Callable[[Path], AbstractContextManager[None]]


@contextmanager
def late(lab: Path, senders: str, daemons: Sequence[str]) -> Iterator[None]:
    """These daemons hold each message of such senders from nothing to `MOST_S`, evenly.

    A messenger looks at the senders' kind when it connects: OSDs that are connected are made to do so anew.
    """
    options = {
        "ms_inject_delay_type": senders,
        "ms_inject_delay_max": str(MOST_S),
        "ms_inject_delay_probability": "1",
    }
    try:
        for daemon in daemons:
            for name, value in options.items():
                ceph(lab, "config", "set", daemon, name, value)
        if senders == "osd":
            ceph(lab, "osd", "down", *daemons)
            settle(lab)
        yield
    finally:
        for daemon in daemons:
            for name in reversed(options):
                ceph(lab, "config", "rm", daemon, name)


@contextmanager
def slow_disks(lab: Path) -> Iterator[None]:
    """Each OSD's device takes a megabyte a second."""
    try:
        for osd in OSDS:
            command("lab", "inject", "osd-slow-disk", osd, "rate=1MB/s", "--dir", str(lab))
        yield
    finally:
        command("lab", "inject", "--clear", "--dir", str(lab))


@contextmanager
def slow_device(lab: Path) -> Iterator[None]:
    """The file below the loop device is read late."""
    mount = SlowMount(lab.parent / "device" / "slow", lab.parent / "device" / "backing")
    try:
        mount.rules(read_ms=1000 * DEVICE_S)
        yield
    finally:
        mount.rules()


@contextmanager
def device(place: Path) -> Iterator[None]:
    """A file system on a loop device, whose file lies in a mount that can be slow."""
    place.mkdir()
    with slow_fuse.mounted(slow_fuse.build(), place) as mount:
        image, files = mount.path / "image", place / "files"
        with (mount.backing / "image").open("wb") as file:
            file.truncate(DEVICE_BYTES)
        done = subprocess.run(
            ["losetup", "--find", "--show", "--direct-io=on", image],
            check=True,
            capture_output=True,
            text=True,
        )
        loop = done.stdout.strip()
        files.mkdir()
        try:
            # Without lazy initialisation, which would write to the device while it is measured.
            lazy = "lazy_itable_init=0,lazy_journal_init=0"
            subprocess.run(["mkfs.ext4", "-q", "-E", lazy, loop], check=True)
            subprocess.run(["mount", loop, files], check=True)
            yield
        finally:
            subprocess.run(["umount", files], check=False)
            subprocess.run(["losetup", "--detach", loop], check=True)


@contextmanager
def late_network(lab: Path) -> Iterator[None]:
    """What the client sends is under way for longer (bench/late_network.py)."""
    inside = (sys.executable, "-m", "leadline", "lab", "exec", CLIENT, "--dir", str(lab), "--")
    words = (*inside, sys.executable, str(HERE / "late_network.py"), str(NETWORK_S))
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as relay:
        if relay.stdout is None or relay.stdout.readline() != "ready\n":
            raise RuntimeError("the packets of the client could not be held")
        try:
            yield
        finally:
            relay.communicate()


@dataclass(frozen=True)
class Case:
    """A delay, by which segments it is to be seen, and how long it is for each request.

    With a `client` it is measured there, in a lab with a network, else on this host.
    """

    name: str
    injected: str
    segments: tuple[str, ...]
    inject: Injection
    truth: Truth
    work: str = WRITES
    target: str = "rados://objects?conf={lab}/ceph.conf"
    client: str = ""


CASES = (
    Case(
        "messages of clients are late, writes",
        f"uniform from 0 to {1000 * MOST_S:g} ms, so half of it",
        ("osd_queue",),
        lambda lab: late(lab, "client", OSDS[:1]),
        lambda _: MOST_S / 2,
    ),
    Case(
        "messages of clients are late, reads",
        f"uniform from 0 to {1000 * MOST_S:g} ms, so half of it",
        ("osd_dispatch",),
        lambda lab: late(lab, "client", OSDS[:1]),
        lambda _: MOST_S / 2,
        work=READS,
    ),
    Case(
        "two other OSDs get messages late",
        "by which a request became longer, as the load measures it",
        ("peers",),
        lambda lab: late(lab, "osd", OSDS[1:]),
        lambda longer: longer,
    ),
    Case(
        "disks are slow, in a pool of one copy",
        "by which a request became longer, as the load measures it",
        ("store_data", "store_log"),
        slow_disks,
        lambda longer: longer,
        work=LARGE_WRITES,
        target="rados://single?conf={lab}/ceph.conf",
    ),
    Case(
        "messages of clients are late at the metadata server",
        "by which a metadata operation became longer, as the load measures it",
        ("mds",),
        lambda lab: late(lab, "client", ("mds.a",)),
        lambda longer: longer,
        work=METADATA,
        target="cephfs:///replicated?conf={lab}/ceph.conf",
    ),
    Case(
        "a block device here is late",
        f"{1000 * DEVICE_S:g} ms for each read",
        ("device",),
        slow_device,
        lambda _: DEVICE_S,
        work=DIRECT_READS,
        target="{place}/device/files",
    ),
    Case(
        "the network is late, writes",
        f"{1000 * NETWORK_S:g} ms for each packet of the client",
        ("wire",),
        late_network,
        lambda _: NETWORK_S,
        client=CLIENT,
    ),
    Case(
        "the network is late, reads",
        f"{1000 * NETWORK_S:g} ms for each packet of the client",
        ("wire",),
        late_network,
        lambda _: NETWORK_S,
        work=READS,
        client=CLIENT,
    ),
)


def budget(lab: Path, case: Case, seed: int) -> dict[str, float]:
    """A run's mean request: seconds by segment, and `whole`."""
    with tempfile.TemporaryDirectory(prefix="budget-") as place:
        study, out = Path(place) / "study.yaml", Path(place) / "out"
        study.write_text(STUDY.format(work=case.work))
        target = f"a={case.target.format(lab=lab, place=lab.parent)}"
        words = ("run", str(study), "--target", target, "-o", str(out), "--seed", str(seed))
        inside = ("lab", "exec", case.client, "--dir", str(lab), "--", sys.executable, "-m", "leadline")
        command(*(inside if case.client else ()), *words, "--ignore-health", "--under-fault")
        said = json.loads(command("diagnose", str(out), "--json").stdout)
    found = said["cells"][0]["budget"]
    seen = {one["segment"]: one["seconds"] for one in found["segments"] if one["seconds"] is not None}
    return {"whole": found["seconds"], **seen}


@contextmanager
def _up(*words: str) -> Iterator[Path]:
    """A lab of its own, gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix="budget-lab-", dir="/var/tmp"))
    directory = place / "lab"
    try:
        command("lab", "up", LAB, *words, "--dir", str(directory), timeout=900)
        yield directory
    finally:
        command("lab", "down", "--dir", str(directory), check=False)
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def lab() -> Iterator[Path]:
    """One whose first OSD is the primary of all."""
    with _up("--osds", "3") as directory:
        ceph(directory, "osd", "pool", "set", "objects", "size", "3")
        ceph(directory, "config", "set", "global", "mon_allow_pool_size_one", "true")
        ceph(directory, "osd", "pool", "create", "single", "32", "32", "replicated")
        ceph(directory, "osd", "pool", "set", "single", "size", "1", "--yes-i-really-mean-it")
        ceph(directory, "osd", "pool", "application", "enable", "single", "leadline")
        for osd in OSDS[1:]:
            ceph(directory, "osd", "primary-affinity", osd, "0")
        settle(directory)
        with device(directory.parent / "device"):
            yield directory


@contextmanager
def networked_lab() -> Iterator[Path]:
    """One whose client has a network of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as topology:
        topology.write(TOPOLOGY)
        topology.flush()
        with _up("--topology", topology.name) as directory:
            settle(directory)
            yield directory


def run(rounds: int, only: str) -> None:
    """Round by round, each case between two runs without it, each kept at once."""
    for made, networked in ((lab, False), (networked_lab, True)):
        cases = [case for case in CASES if only in case.name and bool(case.client) == networked]
        if cases:
            with made() as directory:
                _run_cases(directory, cases, rounds)


def _run_cases(directory: Path, cases: Sequence[Case], rounds: int) -> None:
    for number in range(1, rounds + 1):
        for case in cases:
            before = budget(directory, case, number)
            with case.inject(directory):
                under = budget(directory, case, number)
            settle(directory)
            after = budget(directory, case, number)
            row = {"case": case.name, "before": before, "under": under, "after": after}
            with RUNS.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(said_of(row), flush=True)


def kept() -> list[dict[str, Any]]:
    """The rounds that are stored."""
    return [json.loads(line) for line in RUNS.read_text().splitlines()] if RUNS.exists() else []


def longer(row: Mapping[str, Any], segment: str) -> float | None:
    """By how many seconds a segment is longer under the case; None where it was not observed each time."""
    values = [row[when].get(segment) for when in ("before", "under", "after")]
    if None in values:
        return None
    before, under, after = values
    return float(under - fmean((before, after)))


def said_of(row: Mapping[str, Any]) -> list[str]:
    """A line of the page's table: what was injected and seen, in ms, and their ratio."""
    case = next(one for one in CASES if one.name == row["case"])
    parts = [longer(row, name) for name in case.segments]
    whole = longer(row, "whole") or 0.0
    injected = case.truth(whole)
    seen = None if None in parts else sum(part or 0.0 for part in parts)
    told = "not observed" if seen is None else f"{1000 * seen:.1f}"
    ratio = None if seen is None else seen / injected
    right = "no" if ratio is None or abs(ratio - 1) > NEAR else "yes"
    where = ", ".join(case.segments)
    number = "" if ratio is None else f"{ratio:.2f}"
    return [case.name, f"{1000 * injected:.1f}", f"{1000 * whole:.1f}", where, told, number, right]


def page(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """bench/budget.md."""
    table = [said_of(row) for row in rows]
    right = sum(line[-1] == "yes" for line in table)
    yield "# Known delays in the latency budget"
    yield ""
    near = f"{100 * NEAR:.0f} %"
    yield f"**{right} of {len(table)} runs have the injected delay in its segment within {near}.**"
    yield METHOD
    yield ""
    for case in CASES:
        yield f"- {case.name[0].upper()}{case.name[1:]}: {case.injected}."
    yield ""
    yield LIMITS
    yield ""
    yield "| injected | ms | request longer by, ms | segment | segment longer by, ms | ratio | within |"
    yield "|---|--:|--:|---|--:|--:|---|"
    for line in sorted(table):
        yield f"| {' | '.join(line)} |"


def main() -> int:
    """Run what is asked for, or judge what is kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("do", choices=("run", "judge"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="", help="cases with this in their name")
    asked = parser.parse_args()
    if asked.do == "judge":
        PAGE.write_text("\n".join(page(kept())) + "\n")
    else:
        run(asked.rounds, asked.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
