"""`make lab-bench`: whether a lab's links carry what they say, judged by iperf3, and what an idle lab costs.

Writes bench/lab.md. Needs root. `--links` makes the first part only, which takes two minutes and no Ceph.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness import HERE, lab, leadline, scratch, table
from lab_networks import AloneNetwork, iperf, iperf_line, iperf_servers, why_none
from leadline.lab.network.topology import Link, simple

RATES = (100, 1000, 2000)
MTUS = (1500, 9000)
# What of a full frame is no payload: TBF counts Ethernet's header too; TCP's has time stamps.
HEADERS, ETHERNET = 52, 14
ROUNDS, STREAM_S, STREAMS = 3, 3, 8
SETTLE_S, IDLE_S = 10.0, 60.0
HEAD = """# The lab's network: what its links carry, and what it costs

Written by `make lab-bench`. iperf3 is the judge: a TCP stream from a client to a host or back, its first
second (slow start) left out. A figure is the median of {rounds} rounds of {seconds} s, the range behind it.
CPU is of both ends together, in hundredths of a core, by iperf3 (getrusage). TBF holds links at both ends.

Machine: {machine}. Load average when it began: {load}, of other work too.

"""


@dataclass(frozen=True)
class Stream:
    """One stream: goodput over the rate, segments sent again, CPU of both ends in % of a core."""

    share: float
    again: int
    cpu_percent: float


@contextmanager
def network(clients: int, link: Link, uplink: Link) -> Iterator[AloneNetwork]:
    """Hosts in two racks, clients on the core above them; gone afterwards."""
    with scratch("lab-bench") as place:
        found = AloneNetwork.plan(simple(clients, clients, 2, 3, link, uplink), place / "lab")
        try:
            found.make()
            yield found
        finally:
            found.remove()


def streams(rate_mbit: int, mtu: int) -> Iterator[tuple[str, list[Stream]]]:
    """Of a link of this rate, each direction in turn with the other."""
    link = Link(rate_mbit * 10**6, mtu)
    found: dict[str, list[Stream]] = {"to the host": [], "to the client": []}
    with network(2, link, Link(10**10, mtu)) as made, iperf_servers(made, ["host1"]):
        for _ in range(ROUNDS):
            for direction, words in (("to the host", ()), ("to the client", ("--reverse",))):
                end = iperf(made, "client1", "host1", STREAM_S, *words)
                cpu = end["cpu_utilization_percent"]
                found[direction].append(
                    Stream(
                        end["sum_received"]["bits_per_second"] / link.rate_bit_s,
                        end["sum_sent"]["retransmits"],
                        cpu["host_total"] + cpu["remote_total"],
                    )
                )
    yield from found.items()


def spread(values: Sequence[float], digits: int) -> str:
    """The median and the range."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def links() -> Iterator[str]:
    """The table of rates."""
    headings = "link | MTU | direction | goodput / rate | payload / frame | sent again | CPU, % of a core"
    yield from ["## One stream over a link", "", *table(headings, _links()), ""]


def _links() -> Iterator[Sequence[object]]:
    for rate in RATES:
        for mtu in MTUS:
            ceiling = f"{(mtu - HEADERS) / (mtu + ETHERNET):.4f}"
            for direction, found in streams(rate, mtu):
                shares = spread([one.share for one in found], 3)
                again = "+".join(str(one.again) for one in found)
                cpu = spread([one.cpu_percent for one in found], 1)
                yield f"{rate} Mbit/s", mtu, direction, shares, ceiling, again, cpu


def uplink() -> Iterator[str]:
    """Streams of many clients that share one uplink."""
    names = [(f"client{number + 1}", f"host{number + 1}") for number in range(STREAMS // 2)]
    yield f"## {STREAMS} streams over one uplink of 1 Gbit/s, from {len(names)} clients, two each"
    yield from ["", *table("round | goodput of all / rate | each, Mbit/s | sent again", _rounds(names)), ""]


def _rounds(names: Sequence[tuple[str, str]]) -> Iterator[Sequence[object]]:
    rate = 10**9
    with network(STREAMS, Link(rate), Link(rate)) as made, iperf_servers(made, [host for _, host in names]):
        for number in range(ROUNDS):
            lines = (iperf_line(made, client, host, STREAM_S, "--parallel", "2") for client, host in names)
            done = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for line in lines]
            ends = [json.loads(one.communicate()[0])["end"] for one in done]
            each = [item["receiver"]["bits_per_second"] for end in ends for item in end["streams"]]
            again = sum(end["sum_sent"]["retransmits"] for end in ends)
            words = " ".join(f"{value / 1e6:.0f}" for value in sorted(each))
            yield number + 1, f"{sum(each) / rate:.3f}", words, again


def ticks(pid: int) -> float:
    """Seconds of CPU of a process up to now (proc(5), fields 14 and 15 of stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pss_bytes(pid: int) -> int:
    """Its memory, what it shares with others by its share."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def softirq_s() -> float:
    """Seconds of CPU that the whole machine spent on interrupts' second halves (proc(5), `cpu` of stat)."""
    return int(Path("/proc/stat").read_text().split()[7]) / os.sysconf("SC_CLK_TCK")


def idle_lab(hosts: int, clients: int, osds: int) -> Iterator[str]:
    """A real Ceph on hosts: until it is ready, and what it takes while nobody uses it."""
    yield from [f"## A lab of {hosts} hosts, {clients} clients and {osds} OSDs", ""]
    shape = ("--hosts", str(hosts), "--clients", str(clients), "--osds", str(osds), "--switches", "2")
    began = time.monotonic()
    with lab("lab-bench", *shape, "--link", "1Gbit", "--uplink", "2Gbit") as there:
        ready_s = time.monotonic() - began
        daemons = json.loads(leadline("lab", "status", there.directory, "--json"))["daemons"]
        pids = [item["pid"] for item in daemons]
        time.sleep(SETTLE_S)
        before, soft = sum(map(ticks, pids)), softirq_s()
        time.sleep(IDLE_S)
        idle, soft_share = (
            f"{100 * (now - then) / IDLE_S:.1f} %"
            for now, then in ((sum(map(ticks, pids)), before), (softirq_s(), soft))
        )
        memory = sum(map(pss_bytes, pids))
        began = time.monotonic()
    down = f"{time.monotonic() - began:.0f} s"
    headings = "ready | idle for 60 s | softirq of the machine meanwhile | memory (PSS) | processes | down"
    row = (f"{ready_s:.0f} s", f"{idle} of a core", soft_share, f"{memory / 2**20:.0f} MiB", len(pids), down)
    yield from [*table(headings, [row]), ""]


def main() -> int:
    """Makes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", action="store_true", help="only the links")
    parser.add_argument("--lab", action="store_true", help="only the lab")
    parser.add_argument("--output", type=Path, default=HERE / "lab.md")
    asked = parser.parse_args()
    if reason := why_none("iperf3"):
        sys.stderr.write(f"lab-bench: {reason}\n")
        return 1
    machine = f"{os.cpu_count()} CPUs, Linux {platform.release()}"
    load = Path("/proc/loadavg").read_text().split()[0]
    lines = [HEAD.format(rounds=ROUNDS, seconds=STREAM_S, machine=machine, load=load)]
    parts = [] if asked.lab else [links(), uplink()]
    parts += [] if asked.links else [idle_lab(3, 2, 4)]
    for part in parts:
        for line in part:
            sys.stderr.write(f"{line}\n")
            lines.append(f"{line}\n")
    asked.output.write_text("".join(lines).rstrip("\n") + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
