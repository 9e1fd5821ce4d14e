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
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab_networks import AloneNetwork, iperf, iperf_line, iperf_servers, why_none
from leadline.lab.network.topology import Link, simple
from support import command_line

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
    with tempfile.TemporaryDirectory(prefix="lab-bench-") as place:
        found = AloneNetwork.plan(simple(clients, clients, 2, 3, link, uplink), Path(place) / "lab")
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
    yield "## One stream over a link\n"
    yield "| link | MTU | direction | goodput / rate | payload / frame | sent again | CPU, % of a core |"
    yield "|---|---|---|---|---|---|---|"
    for rate in RATES:
        for mtu in MTUS:
            ceiling = (mtu - HEADERS) / (mtu + ETHERNET)
            for direction, found in streams(rate, mtu):
                shares = spread([one.share for one in found], 3)
                again = "+".join(str(one.again) for one in found)
                cpu = spread([one.cpu_percent for one in found], 1)
                yield f"| {rate} Mbit/s | {mtu} | {direction} | {shares} | {ceiling:.4f} | {again} | {cpu} |"
    yield ""


def uplink() -> Iterator[str]:
    """Streams of many clients that share one uplink."""
    rate = 10**9
    names = [(f"client{number + 1}", f"host{number + 1}") for number in range(STREAMS // 2)]
    yield f"## {STREAMS} streams over one uplink of 1 Gbit/s, from {len(names)} clients, two each\n"
    yield "| round | goodput of all / rate | each, Mbit/s | sent again |"
    yield "|---|---|---|---|"
    with network(STREAMS, Link(rate), Link(rate)) as made, iperf_servers(made, [host for _, host in names]):
        for number in range(ROUNDS):
            done = [
                subprocess.Popen(
                    iperf_line(made, client, host, STREAM_S, "--parallel", "2"),
                    stdout=subprocess.PIPE,
                    text=True,
                )
                for client, host in names
            ]
            ends = [json.loads(one.communicate()[0])["end"] for one in done]
            each = [item["receiver"]["bits_per_second"] for end in ends for item in end["streams"]]
            again = sum(end["sum_sent"]["retransmits"] for end in ends)
            words = " ".join(f"{value / 1e6:.0f}" for value in sorted(each))
            yield f"| {number + 1} | {sum(each) / rate:.3f} | {words} | {again} |"
    yield ""


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


def lab(hosts: int, clients: int, osds: int) -> Iterator[str]:
    """A real Ceph on hosts: until it is ready, and what it takes while nobody uses it."""
    yield f"## A lab of {hosts} hosts, {clients} clients and {osds} OSDs\n"
    with tempfile.TemporaryDirectory(prefix="lab-bench-") as place:
        directory = Path(place) / "lab"
        os.environ["XDG_STATE_HOME"] = f"{place}/state"
        shape = ("--hosts", str(hosts), "--clients", str(clients), "--osds", str(osds), "--switches", "2")
        began = time.monotonic()
        try:
            run("lab", "up", "--dir", str(directory), *shape, "--link", "1Gbit", "--uplink", "2Gbit")
            ready_s = time.monotonic() - began
            pids = [
                item["pid"] for item in json.loads(run("lab", "status", str(directory), "--json"))["daemons"]
            ]
            time.sleep(SETTLE_S)
            before, soft = sum(map(ticks, pids)), softirq_s()
            time.sleep(IDLE_S)
            busy, soft = sum(map(ticks, pids)) - before, softirq_s() - soft
            memory = sum(map(pss_bytes, pids))
        finally:
            began = time.monotonic()
            run("lab", "down", str(directory))
        yield "| ready | idle for 60 s | softirq of the machine meanwhile | memory (PSS) | processes | down |"
        yield "|---|---|---|---|---|---|"
        idle, soft_share = 100 * busy / IDLE_S, 100 * soft / IDLE_S
        yield (
            f"| {ready_s:.0f} s | {idle:.1f} % of a core | {soft_share:.1f} % | {memory / 2**20:.0f} MiB"
            f" | {len(pids)} | {time.monotonic() - began:.0f} s |"
        )
    yield ""


def run(*words: str) -> str:
    """What a command of leadline prints."""
    done = subprocess.run(command_line(*words), capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return done.stdout


def main() -> int:
    """Makes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", action="store_true", help="only the links")
    parser.add_argument("--lab", action="store_true", help="only the lab")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "lab.md")
    asked = parser.parse_args()
    if reason := why_none("iperf3"):
        sys.stderr.write(f"lab-bench: {reason}\n")
        return 1
    machine = f"{os.cpu_count()} CPUs, Linux {platform.release()}"
    load = Path("/proc/loadavg").read_text().split()[0]
    lines = [HEAD.format(rounds=ROUNDS, seconds=STREAM_S, machine=machine, load=load)]
    parts = [] if asked.lab else [links(), uplink()]
    parts += [] if asked.links else [lab(3, 2, 4)]
    for part in parts:
        for line in part:
            sys.stderr.write(f"{line}\n")
            lines.append(f"{line}\n")
    asked.output.write_text("".join(lines).rstrip("\n") + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
