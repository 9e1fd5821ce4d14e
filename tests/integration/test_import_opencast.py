"""`leadline import opencast` against a server of our own that answers as a platform does, and misbehaves."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from support import Command, show

DATA = Path(__file__).parents[1] / "data" / "opencast"
ONE = json.loads((DATA / "external.json").read_text())
USER, PASSWORD, REALM, NONCE = "reader", "s3cret:word", "Opencast", "abcdef"


class Platform(ThreadingHTTPServer):
    """Says what each path stands for; `asked` has every request's path and its credentials."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str]] = []
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Platform

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        given = self.headers.get("Authorization", "")
        self.server.asked.append((self.path, given))
        first = sum(asked == self.path for asked, _ in self.server.asked) == 1
        if path == "/api/workflows/1":
            self.answer(ONE if query.get("withoperations") == ["true"] else {**ONE, "operations": None})
        elif path == "/busy/api/workflows/1":
            self.answer(ONE) if not first else self.refuse(503, {"Retry-After": "0"})
        elif path == "/api/workflows":
            limit, offset = int(query["limit"][0]), int(query["offset"][0])
            self.answer([{**ONE, "identifier": n} for n in range(250)][offset : offset + limit])
        elif path == "/basic/api/workflows/1":
            wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            self.answer(ONE) if given == wanted else self.refuse(
                401, {"WWW-Authenticate": f'Basic realm="{REALM}"'}
            )
        elif path == "/digest/api/workflows/1":
            challenge = f'Digest realm="{REALM}", nonce="{NONCE}", qop="auth", algorithm=MD5'
            right = given.startswith("Digest ") and self.digest_is_right(given)
            self.answer(ONE) if right else self.refuse(401, {"WWW-Authenticate": challenge})
        elif path == "/stall/api/workflows/1":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"{")
            self.wfile.flush()
            self.server.ended.wait(60)
        elif path == "/login/api/workflows/1":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<!DOCTYPE html><html><body>Welcome</body></html>")
        else:
            self.refuse(404, {})

    def digest_is_right(self, given: str) -> bool:
        parts = dict(part.strip().split("=", 1) for part in given.removeprefix("Digest ").split(","))
        said = {name: value.strip('"') for name, value in parts.items()}

        def md5(text: str) -> str:
            return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()

        first, second = md5(f"{USER}:{REALM}:{PASSWORD}"), md5(f"GET:{said['uri']}")
        whole = f"{first}:{NONCE}:{said['nc']}:{said['cnonce']}:auth:{second}"
        return said["response"] == md5(whole)

    def answer(self, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, code: int, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def serving() -> Iterator[Platform]:
    with Platform() as platform:
        thread = threading.Thread(target=platform.serve_forever, daemon=True)
        thread.start()
        yield platform
        platform.ended.set()
        platform.shutdown()


@pytest.fixture
def platform() -> Iterator[Platform]:
    with serving() as found:
        yield found


@pytest.fixture
def credentials(tmp_path: Path) -> dict[str, str]:
    """An environment in which nobody's own netrc is read."""
    return {"HOME": str(tmp_path), "LEADLINE_OPENCAST_USER": USER, "LEADLINE_OPENCAST_PASSWORD": PASSWORD}


def test_a_file_becomes_a_result_that_every_report_can_show(leadline: Command, tmp_path: Path) -> None:
    out = tmp_path / "r"
    done = leadline("import", "opencast", str(DATA / "external.json"), "-o", str(out))
    assert done.returncode == 0, done.stderr
    shown = show(leadline, out)
    assert shown["kind"] == "workflows"
    operations = next(t for t in shown["application"]["tables"] if t["name"] == "operations")
    assert operations["rows"][0]["keys"][1] == "ingest"
    assert operations["rows"][0]["values"][1]["value"] == 1020.0
    for form, words in (
        ("md", "Operations, with their times"),
        ("html", "Operations, with their times"),
        ("csv", "study"),
    ):
        file = tmp_path / f"report.{form}"
        assert leadline("report", str(out), "--format", form, "-o", str(file)).returncode == 0
        assert words in file.read_text()
    assert "imported" in leadline("list", str(tmp_path)).stdout
    again = leadline("import", "opencast", str(DATA / "external.json"), "-o", str(out))
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_a_copy_says_the_same_and_a_changed_one_is_refused(leadline: Command, tmp_path: Path) -> None:
    out, here, changed = tmp_path / "r", tmp_path / "here", tmp_path / "changed"
    leadline("import", "opencast", str(DATA / "external.json"), "-o", str(out))
    assert leadline("import", "result", str(out), "--into", str(here)).returncode == 0
    assert show(leadline, here / "r")["application"] == show(leadline, out)["application"]
    (out / "workflows.json").write_text("{}")
    refused = leadline("import", "result", str(out), "--into", str(changed))
    assert refused.returncode == 1
    assert "it was changed after the import" in refused.stderr
    assert not changed.exists() or list(changed.iterdir()) == []


def test_operations_are_asked_for_and_all_pages_read(
    leadline: Command, platform: Platform, tmp_path: Path
) -> None:
    one, many = tmp_path / "one", tmp_path / "many"
    assert leadline("import", "opencast", f"{platform.url}/api/workflows/1", "-o", str(one)).returncode == 0
    done = leadline("import", "opencast", f"{platform.url}/api/workflows?sort=event_created", "-o", str(many))
    assert done.returncode == 0, done.stderr
    assert "250 workflows" in done.stdout
    pages = [asked for asked, _ in platform.asked if "offset" in asked]
    assert len(pages) == 3
    assert all("sort=event_created" in asked and "withoperations=true" in asked for asked in pages)


@pytest.mark.parametrize("kind", ["basic", "digest"])
def test_credentials_of_the_environment_are_used_and_kept_nowhere(
    leadline: Command, platform: Platform, tmp_path: Path, credentials: dict[str, str], kind: str
) -> None:
    address, out = f"{platform.url}/{kind}/api/workflows/1", tmp_path / "r"
    refused = leadline("import", "opencast", address, "-o", str(out), env={"HOME": str(tmp_path)})
    assert refused.returncode == 2
    assert "401" in refused.stderr
    assert "LEADLINE_OPENCAST_USER" in refused.stderr
    assert not out.exists()
    done = leadline("import", "opencast", address, "-o", str(out), env=credentials)
    assert done.returncode == 0, done.stderr
    kept = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in kept
    assert USER.encode() not in kept
    assert platform.asked[-2][1] == ""  # nothing is sent before it is asked for


def test_credentials_of_netrc_are_used(leadline: Command, platform: Platform, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text(f"machine 127.0.0.1 login {USER} password {PASSWORD}\n")
    (tmp_path / ".netrc").chmod(0o600)
    address = f"{platform.url}/digest/api/workflows/1"
    done = leadline("import", "opencast", address, "-o", str(tmp_path / "r"), env={"HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr


def test_a_busy_platform_is_asked_again(leadline: Command, platform: Platform, tmp_path: Path) -> None:
    done = leadline("import", "opencast", f"{platform.url}/busy/api/workflows/1", "-o", str(tmp_path / "r"))
    assert done.returncode == 0, done.stderr
    assert len(platform.asked) == 2


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/stall/api/workflows/1", "nothing was sent for 1 s, 2 times over"),
        ("/login/api/workflows/1", "is a page"),
        ("/nowhere", "404"),
    ],
)
def test_a_platform_that_does_not_answer_is_said_and_nothing_is_left(
    leadline: Command, platform: Platform, tmp_path: Path, path: str, words: str
) -> None:
    out = tmp_path / "r"
    done = leadline(
        "import", "opencast", platform.url + path, "-o", str(out), "--timeout", "1s", "--retries", "1"
    )
    assert done.returncode == 2
    assert words in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("http://user:word@127.0.0.1:1/api/workflows/1", "must not hold a user or a password"),
        ("http://user:wo/rd@127.0.0.1:1/api/workflows/1", "must not hold a user or a password"),
        ("ftp://127.0.0.1/x", "no address of a platform"),
        ("http://127.0.0.1:1/api/workflows/1", "Connection refused"),
        ("/nowhere/x.json", "No such file"),
    ],
)
def test_a_source_that_cannot_be_is_refused(
    leadline: Command, tmp_path: Path, source: str, words: str
) -> None:
    done = leadline("import", "opencast", source, "-o", str(tmp_path / "r"), "--retries", "0")
    assert done.returncode == 2
    assert words in done.stderr
    assert "user:word" not in done.stdout + done.stderr
