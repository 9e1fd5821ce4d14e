"""Servers of the tests on loopback: an SMB server on a directory, an XRootD server on a directory."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ports import free_ports

PASSWORD = "correct horse"  # noqa: S105 - of a server that lives as long as one test


def need(*programs: str) -> None:
    """Skips where a program that the test needs is not installed."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def wait_for_port(port: int, process: subprocess.Popen[bytes], seconds: float = 30) -> None:
    """Returns when somebody accepts connections there; fails when the process ends before."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        assert process.poll() is None, f"{process.args!r} ended with {process.returncode}"
        time.sleep(0.05)
    raise AssertionError(f"nobody listens on port {port} after {seconds} s")


@contextlib.contextmanager
def running(words: list[str], port: int, log: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server, from when it listens to the end of the block, with all its children."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            words, stdout=out, stderr=out, env=os.environ | variables, start_new_session=True
        )
    try:
        wait_for_port(port, process)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait(30)


def user_name() -> str:
    """Who runs the tests, and so the servers."""
    return pwd.getpwuid(os.getuid()).pw_name


def smb_conf(place: Path, port: int, shared: Path) -> str:
    """Three shares of one directory: for all, for those with a password, to read only."""
    kinds = ("lock", "state", "cache", "private", "pid")
    kept = "".join(f"{kind} directory = {place}\n" for kind in kinds)
    shares = {"open": "guest ok = yes\nread only = no", "own": "read only = no", "fixed": "guest ok = yes"}
    sections = "".join(f"[{name}]\npath = {shared}\n{words}\n" for name, words in shares.items())
    return (
        f"[global]\nsmb ports = {port}\ninterfaces = lo\nbind interfaces only = yes\ndisable netbios = yes\n"
        f"{kept}ncalrpc dir = {place}/ncalrpc\nlog file = {place}/smbd.log\nlog level = 0\n"
        f"passdb backend = tdbsam:{place}/passdb.tdb\nmap to guest = Bad User\n"
        f"guest account = {user_name()}\nload printers = no\nprinting = bsd\nprintcap name = /dev/null\n"
        f"server role = standalone server\n{sections}"
    )


@contextlib.contextmanager
def smb_server(place: Path, shared: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """smbd on a port of its own, with one user; its port and process."""
    need("smbd", "smbpasswd")
    port = free_ports()
    conf = place / "smb.conf"
    conf.write_text(smb_conf(place, port, shared))
    subprocess.run(
        ["smbpasswd", "-c", str(conf), "-s", "-a", user_name()],
        input=f"{PASSWORD}\n{PASSWORD}\n".encode(),
        check=True,
        capture_output=True,
        timeout=60,
    )
    words = ["smbd", "--foreground", "--no-process-group", "-s", str(conf)]
    with running(words, port, place / "out.log") as process:
        yield port, process


def xrootd_conf(place: Path, shared: Path, *more: str) -> str:
    """A server of one directory, which keeps its own files in `place`."""
    lines = [
        "all.export /",
        f"oss.localroot {shared}",
        f"all.adminpath {place}",
        f"all.pidpath {place}",
        "xrd.network nodnr",
        *more,
    ]
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def xrootd_server(place: Path, conf: str, **variables: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """xrootd on a port of its own: that, and its process. It refuses to run as root, and is `nobody` then."""
    need("xrootd")
    port = free_ports()
    file = place / "xrootd.cfg"
    file.write_text(conf)
    words = ["xrootd", "-c", str(file), "-p", str(port), "-n", "test"]
    if os.getuid() == 0:
        words += ["-R", "nobody"]
    with running(words, port, place / "out.log", **variables) as process:
        yield port, process
