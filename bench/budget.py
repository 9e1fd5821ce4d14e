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
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from harness import HERE, PROGRAM, Lab, Row, bench, command, diagnosed, lab, scratch, table
from slow_fuse import SlowMount, build, mounted

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
Injection = Callable[[Lab], AbstractContextManager[None]]


@contextmanager
def late(there: Lab, senders: str, daemons: Sequence[str]) -> Iterator[None]:
    """These daemons hold each message of such senders from nothing to `MOST_S`, evenly.

    A messenger looks at the senders' kind when it connects: OSDs that are connected are made to do so anew.
    """
    options = {"type": senders, "max": str(MOST_S), "probability": "1"}
    try:
        for daemon in daemons:
            for name, value in options.items():
                there.ceph("config", "set", daemon, f"ms_inject_delay_{name}", value)
        if senders == "osd":
            there.ceph("osd", "down", *daemons)
            there.settle()
        yield
    finally:
        for daemon in daemons:
            for name in reversed(options):
                there.ceph("config", "rm", daemon, f"ms_inject_delay_{name}")


@contextmanager
def slow_disks(there: Lab) -> Iterator[None]:
    """Each OSD's device takes a megabyte a second."""
    try:
        for osd in OSDS:
            there.inject("osd-slow-disk", osd, "rate=1MB/s")
        yield
    finally:
        there.mend()


@contextmanager
def slow_device(there: Lab) -> Iterator[None]:
    """The file below the loop device is read late."""
    place = there.directory.parent / "device"
    mount = SlowMount(place / "slow", place / "backing")
    try:
        mount.rules(read_ms=1000 * DEVICE_S)
        yield
    finally:
        mount.rules()


@contextmanager
def device(place: Path) -> Iterator[None]:
    """A file system on a loop device, whose file lies in a mount that can be slow."""
    place.mkdir()
    with mounted(build(), place) as mount:
        image, files = mount.path / "image", place / "files"
        with (mount.backing / "image").open("wb") as file:
            file.truncate(DEVICE_BYTES)
        loop = command("losetup", "--find", "--show", "--direct-io=on", image).strip()
        files.mkdir()
        try:
            # Without lazy initialisation, which would write to the device while it is measured.
            command("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", loop)
            command("mount", loop, files)
            yield
        finally:
            subprocess.run(["umount", files], check=False)
            command("losetup", "--detach", loop)


@contextmanager
def late_network(there: Lab) -> Iterator[None]:
    """What the client sends is under way for longer (bench/late_network.py)."""
    words = (*there.exec_words(CLIENT), sys.executable, str(HERE / "late_network.py"), str(NETWORK_S))
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
        lambda there: late(there, "client", OSDS[:1]),
        lambda _: MOST_S / 2,
    ),
    Case(
        "messages of clients are late, reads",
        f"uniform from 0 to {1000 * MOST_S:g} ms, so half of it",
        ("osd_dispatch",),
        lambda there: late(there, "client", OSDS[:1]),
        lambda _: MOST_S / 2,
        work=READS,
    ),
    Case(
        "two other OSDs get messages late",
        "by which a request became longer, as the load measures it",
        ("peers",),
        lambda there: late(there, "osd", OSDS[1:]),
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
        lambda there: late(there, "client", ("mds.a",)),
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


def budget(there: Lab, case: Case, seed: int) -> dict[str, float]:
    """A run's mean request: seconds by segment, and `whole`."""
    with scratch("budget", "/tmp") as place:
        study, out = place / "study.yaml", place / "out"
        study.write_text(STUDY.format(work=case.work))
        target = f"a={case.target.format(lab=there.directory, place=there.directory.parent)}"
        words = ("run", study, "--target", target, "-o", out, "--seed", str(seed))
        there.inside(case.client, *PROGRAM, *words, "--ignore-health", "--under-fault")
        found = diagnosed(out)[0]["budget"]
    seen = {one["segment"]: one["seconds"] for one in found["segments"] if one["seconds"] is not None}
    return {"whole": found["seconds"], **seen}


@contextmanager
def plain_lab() -> Iterator[Lab]:
    """One whose first OSD is the primary of all."""
    with lab("budget", "--osds", "3") as there:
        for words in (
            "osd pool set objects size 3",
            "config set global mon_allow_pool_size_one true",
            "osd pool create single 32 32 replicated",
            "osd pool set single size 1 --yes-i-really-mean-it",
            "osd pool application enable single leadline",
            *(f"osd primary-affinity {osd} 0" for osd in OSDS[1:]),
        ):
            there.ceph(*words.split())
        there.settle()
        with device(there.directory.parent / "device"):
            yield there


@contextmanager
def networked_lab() -> Iterator[Lab]:
    """One whose client has a network of its own."""
    with lab("budget", topology=TOPOLOGY) as there:
        there.settle()
        yield there


def run(asked: argparse.Namespace) -> None:
    """Round by round, each case between two runs without it, each kept at once."""
    for made, networked in ((plain_lab, False), (networked_lab, True)):
        cases = [case for case in CASES if asked.only in case.name and bool(case.client) == networked]
        if not cases:
            continue
        with made() as there:
            for number in range(1, asked.rounds + 1):
                for case in cases:
                    before = budget(there, case, number)
                    with case.inject(there):
                        under = budget(there, case, number)
                    there.settle()
                    after = budget(there, case, number)
                    row = {"case": case.name, "before": before, "under": under, "after": after}
                    asked.lines.keep(row)
                    print(said_of(row), flush=True)


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


def page(rows: Sequence[Row]) -> Iterator[str]:
    """bench/budget.md."""
    lines = [said_of(row) for row in rows]
    right, near = sum(line[-1] == "yes" for line in lines), f"{100 * NEAR:.0f} %"
    yield from ["# Known delays in the latency budget", ""]
    yield f"**{right} of {len(lines)} runs have the injected delay in its segment within {near}.**"
    yield from [METHOD, ""]
    for case in CASES:
        yield f"- {case.name[0].upper()}{case.name[1:]}: {case.injected}."
    yield from ["", LIMITS, ""]
    headings = "injected | >ms | >request longer by, ms | segment | >segment longer by, ms | >ratio | within"
    yield from table(headings, sorted(lines))


OPTIONS: dict[str, dict[str, Any]] = {
    "--rounds": {"type": int, "default": 2},
    "--only": {"default": "", "help": "cases with this in their name"},
}

if __name__ == "__main__":
    bench("budget", __doc__, run, page, OPTIONS)
