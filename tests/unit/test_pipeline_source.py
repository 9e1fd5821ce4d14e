"""A pipeline's source on a host of several users: nobody else is given it, or says where it is made."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from leadline.errors import StudyError
from leadline.study.kind.lookups import Film
from leadline.workloads.pipeline.film import make_film
from leadline.workloads.pipeline.server import account_of, source_server
from private_mounts import as_user

CONTENT = b"a film" * 1000
NOTHING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
# Becomes nobody, asks with the right address, and prints what it is given.
STRANGER = """
import os, socket, sys
os.setgroups([]), os.setgid(65534), os.setuid(65534)
port, path = sys.stdin.read().split()
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")):
    with socket.socket(family) as connection:
        connection.connect((host, int(port)))
        try:
            connection.sendall(f"GET {path} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode())
            print(len(connection.recv(100)))
        except ConnectionError:
            print(0)
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, str]]:
    """Port and path of a file that is served."""
    file = tmp_path_factory.mktemp("source") / "film"
    file.write_bytes(CONTENT)
    with source_server(str(file)) as (url, _):
        found = urlsplit(url)
        assert found.hostname == "127.0.0.1"
        yield found.port or 0, found.path


def ask(port: int, words: str, host: str = "127.0.0.1") -> bytes:
    """All that the server answers to a request line."""
    with socket.create_connection((host, port), 10) as connection:
        connection.sendall(f"{words}\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def test_the_address_gives_the_file_and_is_another_each_time(served: tuple[int, str], tmp_path: Path) -> None:
    port, path = served
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 6000\r\n\r\n"
    assert ask(port, f"GET {path} HTTP/1.1") == head + CONTENT
    assert ask(port, f"HEAD {path} HTTP/1.1") == head
    assert ask(port, f"GET {path} HTTP/1.1\r\nRange: bytes=5-6") == head + CONTENT
    assert ask(port, f"GET {path} HTTP/1.1", "::ffff:127.0.0.1") == head + CONTENT
    with source_server(__file__) as (url, _):
        assert urlsplit(url).path != path


def test_whatever_is_wrong_has_one_answer_that_tells_nothing(served: tuple[int, str]) -> None:
    port, path = served
    secret = path.split("/")[1]
    wrong = ["/", "/source", f"/{secret}", f"{path}/", f"{path}?x", f"/x/..{path}", path[:-1]]
    wrong += [
        f"/{secret}/../../etc/passwd",
        f"/{secret.swapcase()}/source",
        f"http://127.0.0.1{path}",
        "*",
        "\xe9",
    ]
    for place in wrong:
        assert ask(port, f"GET {place} HTTP/1.1") == NOTHING, place
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"):
        assert ask(port, f"{method} {path} HTTP/1.1") == NOTHING, method
    assert ask(port, "nonsense") == b""
    assert ask(port, f"GET {path} HTTP/9.9") == b""


@pytest.mark.skipif(os.geteuid() != 0, reason="to be two users needs root")
def test_another_account_is_given_nothing_although_it_knows_the_address(served: tuple[int, str]) -> None:
    port, path = served
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", STRANGER],
        input=f"{port} {path}", capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["0", "0"]


def test_whose_a_connection_is_stands_in_the_kernels_tables(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as own,
        listening.accept()[0] as there,
    ):
        assert account_of(there.getpeername(), there.getsockname()) == os.geteuid()
        assert account_of(("127.0.0.1", 1), own.getsockname()) == -1
        assert account_of(own.getsockname(), there.getsockname(), tmp_path) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="to be two users needs root")
def test_root_makes_no_film_in_a_cache_that_another_user_could_fill_with_links(tmp_path: Path) -> None:
    place = tmp_path / "films" / "film.mov"
    place.parent.mkdir()
    os.chown(place.parent, 65534, 65534)
    with pytest.raises(StudyError, match=r"a film is not kept in .*belongs to uid 65534"):
        make_film(Film(width=64, height=64, frame_rate=25, duration_ns=1), place, lambda: False)
    assert list(place.parent.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="to be two users needs root")
def test_an_account_empties_no_file_of_its_own_by_a_link_in_a_cache_of_others(tmp_path: Path) -> None:
    place, precious = tmp_path / "films" / "film.mov", tmp_path / "precious"
    place.parent.mkdir()
    precious.write_text("precious")
    (place.parent / ".lock").symlink_to(precious)
    os.chown(precious, 65534, 65534)
    os.chown(place.parent, 65533, 65533)
    place.parent.chmod(0o777)
    for way in (tmp_path, *tmp_path.parents):
        way.chmod(way.stat().st_mode | 0o011)

    def make() -> None:
        with pytest.raises(StudyError):
            make_film(Film(width=64, height=64, frame_rate=25, duration_ns=1), place, lambda: True)

    with (place.parent / ".lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # so that no film is made where the link is followed
        as_user(65534, make)
    assert precious.read_text() == "precious"


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg makes the film")
def test_what_a_killed_command_left_of_a_film_is_removed_by_the_next(tmp_path: Path) -> None:
    left, place = tmp_path / ".making-x", tmp_path / "film.mov"
    left.mkdir()
    (left / "part.mov").write_bytes(b"half a film")
    film = Film(width=64, height=64, frame_rate=25, duration_ns=40_000_000)
    make_film(film, place, lambda: False)
    assert place.stat().st_size > 1000
    assert sorted(tmp_path.iterdir()) == [tmp_path / ".lock", place]
