"""The slow link among three hosts is found by what streams carry: namespaces, a bridge, iperf3, a shaper."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from leadline.check.judge import judge
from leadline.check.measured.streams import HostAnswer, Words, stream_facts
from leadline.check.rows import ROLES, rows

HOSTS = ("a", "b", "c")
# So slow that processors never are the limit; the slow one has a quarter.
RATE_MBIT = 80
RATES = {"a": RATE_MBIT, "b": RATE_MBIT, "c": RATE_MBIT // 4}


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def namespaces() -> Iterator[dict[str, str]]:
    """By host: the name of its namespace; each is at 10.231.77.N behind a link of its own rate."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc", "iperf3"))):
        pytest.skip("NOT RUN: namespaces need root, ip, tc and iperf3")
    own = f"ll{os.getpid() % 100_000}"
    made = {host: f"{own}{host}" for host in HOSTS}
    with ExitStack() as stack:
        for name in (own, *made.values()):
            ip("netns", "add", name)
            stack.callback(ip, "netns", "delete", name)
        ip("-n", own, "link", "add", "bridge", "type", "bridge")
        ip("-n", own, "link", "set", "bridge", "up")
        for number, (host, name) in enumerate(made.items(), 1):
            ip("-n", own, "link", "add", f"to-{host}", "type", "veth", "peer", "name", "up0", "netns", name)
            ip("-n", own, "link", "set", f"to-{host}", "master", "bridge", "up")
            ip("-n", name, "address", "add", f"10.231.77.{number}/24", "dev", "up0")
            ip("-n", name, "link", "set", "up0", "up")
            for space, end in ((own, f"to-{host}"), (name, "up0")):
                shaper = f"qdisc replace dev {end} root tbf rate {RATES[host]}mbit burst 256k latency 20ms"
                subprocess.run(["tc", "-n", space, *shaper.split()], check=True, capture_output=True)
        yield made


def test_the_slow_link_is_named_and_no_other(namespaces: Mapping[str, str]) -> None:
    def on_hosts(words: Mapping[str, Words], limit_s: float) -> dict[str, HostAnswer]:
        going = {
            host: subprocess.Popen(
                ["ip", "netns", "exec", namespaces[host], sys.executable, "-m", *own], stdout=subprocess.PIPE
            )
            for host, own in words.items()
        }
        return {host: HostAnswer(child.communicate(timeout=limit_s)[0]) for host, child in going.items()}

    addresses = {host: f"10.231.77.{number}" for number, host in enumerate(HOSTS, 1)}
    # Other programs' load on this machine would leave all of it undecided.
    facts = [fact for fact in stream_facts(addresses, on_hosts) if fact.name != "processors_busy"]
    checked = judge(facts, rows(), ROLES)
    rates = {fact.subject: fact.value for fact in facts if fact.name == "streams_bit_s"}
    for way, rate in rates.items():
        least = min(RATES[end] for end in way.split(" > "))
        assert isinstance(rate, float), facts
        assert rate < 1.1e6 * least, rates
    for name in ("odd-stream", "odd-streams"):
        odd = {one.subject for one in checked if one.state == "out_of_line" and one.row.name == name}
        assert odd == {way for way in rates if "c" in way}, (name, rates)
