"""A small S3 service in memory for tests: what it is asked is counted, and it can fail as real ones do.

Signatures are not checked: RGW does that in `tests/ceph`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

BUCKET = "bucket"
# A request that waits for others to arrive gives up after this long.
PATIENCE_S = 10.0


class Service:
    """Objects by key, uploads by number, and what was asked of them."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, tuple[str, dict[int, bytes]]] = {}
        self.asked: Counter[str] = Counter()
        self.failure: tuple[int, str] | None = None  # answered to all that is asked: status, and a body
        self.fails_only = ""  # the one kind of request that fails
        self.lists_everything = False  # it does not heed the prefix
        self.stalls = threading.Event()  # nothing is answered while it is set
        self.together = 1  # reads of objects are held back until so many wait
        self.most_at_once = 0
        self._waiting = 0
        self._changed = threading.Condition()
        self.lock = threading.Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait until `together` requests are here at once."""
        with self._changed:
            self._waiting += 1
            self.most_at_once = max(self.most_at_once, self._waiting)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most_at_once >= self.together, PATIENCE_S)
        try:
            yield
        finally:
            with self._changed:
                self._waiting -= 1


def error(code: str) -> str:
    """The body of an answer that is an error."""
    return f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: Service

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        kind = self._kind(query, key)
        self.service.asked[kind] += 1
        while self.service.stalls.is_set():
            threading.Event().wait(0.05)
        failure = self.service.failure
        if failure and self.service.fails_only in ("", kind):
            self._answer(failure[0], failure[1].encode())
        elif bucket != BUCKET:
            self._answer(404, error("NoSuchBucket").encode())
        else:
            getattr(self, f"_{kind}")(key, query, body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815 - names of the base class

    def _kind(self, query: dict[str, list[str]], key: str) -> str:
        if not key:
            return "list_uploads" if "uploads" in query else "list"
        by_upload = {"POST": "complete", "PUT": "part", "DELETE": "abort"}
        if self.command == "POST" and "uploads" in query:
            return "begin"
        return by_upload[self.command] if "uploadId" in query else self.command.lower()

    def _list(self, _key: str, query: dict[str, list[str]], _body: bytes) -> None:
        prefix = "" if self.service.lists_everything else query["prefix"][0]
        after = query.get("start-after", [""])[0]
        keys = sorted(key for key in self.service.objects if key.startswith(prefix) and key > after)
        limit = int(query["max-keys"][0])
        found = "".join(f"<Contents><Key>{key}</Key></Contents>" for key in keys[:limit])
        more = "true" if len(keys) > limit else "false"
        words = f"<ListBucketResult><IsTruncated>{more}</IsTruncated>{found}</ListBucketResult>"
        self._answer(200, words.encode())

    def _list_uploads(self, _key: str, query: dict[str, list[str]], _body: bytes) -> None:
        found = "".join(
            f"<Upload><Key>{key}</Key><UploadId>{number}</UploadId></Upload>"
            for number, (key, _) in self.service.uploads.items()
            if key.startswith(query["prefix"][0])
        )
        words = f"<ListMultipartUploadsResult>{found}</ListMultipartUploadsResult>"
        self._answer(200, words.encode())

    def _get(self, key: str, _query: dict[str, list[str]], _body: bytes) -> None:
        data = self.service.objects.get(key)
        if data is None:
            self._answer(404, error("NoSuchKey").encode())
            return
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        if int(first) >= len(data):
            self._answer(416, error("InvalidRange").encode())
            return
        with self.service.held():
            self._answer(206, data[int(first) : int(last) + 1])

    def _head(self, key: str, _query: dict[str, list[str]], _body: bytes) -> None:
        data = self.service.objects.get(key)
        if data is None:
            self._answer(404)
        else:
            self._answer(200, Content_Length=str(len(data)))

    def _put(self, key: str, _query: dict[str, list[str]], body: bytes) -> None:
        self.service.objects[key] = body
        self._answer(200)

    def _delete(self, key: str, _query: dict[str, list[str]], _body: bytes) -> None:
        self.service.objects.pop(key, None)
        self._answer(204)

    def _begin(self, key: str, _query: dict[str, list[str]], _body: bytes) -> None:
        with self.service.lock:
            number = f"u{self.service.asked['begin']}"
            self.service.uploads[number] = (key, {})
        words = (
            f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>"
        )
        self._answer(200, words.encode())

    def _part(self, _key: str, query: dict[str, list[str]], body: bytes) -> None:
        number = int(query["partNumber"][0])
        self.service.uploads[query["uploadId"][0]][1][number] = body
        self._answer(200, ETag=f'"{number}"')

    def _complete(self, key: str, query: dict[str, list[str]], _body: bytes) -> None:
        _, parts = self.service.uploads.pop(query["uploadId"][0])
        self.service.objects[key] = b"".join(parts[number] for number in sorted(parts))
        self._answer(200, b"<CompleteMultipartUploadResult/>")

    def _abort(self, _key: str, query: dict[str, list[str]], _body: bytes) -> None:
        self.service.uploads.pop(query["uploadId"][0], None)
        self._answer(204)


@contextmanager
def serving() -> Iterator[tuple[Service, str]]:
    """A service and its endpoint, on a free port of this host."""
    service = Service()
    handler = type("Handler", (_Handler,), {"service": service})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield service, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        service.stalls.clear()
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_S)
