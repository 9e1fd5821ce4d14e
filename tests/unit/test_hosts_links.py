"""Hosts that cannot be asked over the streams of a program: each is named, with the reason."""

from __future__ import annotations

import subprocess
import sys

import pytest

from leadline.hosts.workers.request import HostAsked
from leadline.hosts.workers.ssh import SshTransport
from leadline.interpreter import module_environment

_FEW_FILES = """
import resource
from leadline.errors import UsageError
from leadline.hosts.workers.connect import connected
from leadline.hosts.workers.request import HostAsked, HostsAsked
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
hosts = tuple(HostAsked(f"h{number}", through=("false",)) for number in range(100))
gaps = {}
try:
    with connected(HostsAsked(hosts, workers=100), lambda _: None, lambda: False, gaps):
        pass
except UsageError:
    pass
print(len(gaps), sorted(set(gaps.values())))
"""


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("false",), "starts no leadline: exit code 1"),
        (("/etc/passwd",), "cannot be reached by SSH: Permission denied"),
        (("head", "-c", "200000", "/dev/zero"), "does not answer as leadline does"),
        (("sh", "-c", "yes | head -c 200000"), "prints without end when it is logged in to"),
        (("sh", "-c", "echo; echo 'leadline-hosts/1 {'"), "does not answer as leadline does"),
        (("sleep", "100"), "does not answer within 1 s"),
    ],
    ids=["ends", "no program", "one line without end", "lines without end", "half a greeting", "silent"],
)
def test_a_host_that_cannot_be_asked_says_why(words: tuple[str, ...], why: str) -> None:
    transport = SshTransport([HostAsked("a", through=words)])
    try:
        assert transport.connect(1.0) == {"a": why}
    finally:
        transport.close()


def test_a_limit_of_open_files_is_raised_for_many_hosts() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", _FEW_FILES],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=module_environment(),
    )
    assert done.stdout == "100 ['starts no leadline: exit code 1']\n", done.stderr
