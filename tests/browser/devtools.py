"""A small client of Chromium's DevTools protocol: real keys, real clicks, and every request and message seen.

Selenium would need a separate chromedriver; the browser's own protocol needs nothing else.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import websocket

_START_S = 60
_CALL_S = 120
FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)


def find_browser() -> str | None:
    """The installed Chromium, by Debian's name or others'."""
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))),
        None,
    )


class Page:
    """One tab. `events` holds everything that the browser reported so far."""

    def __init__(self, socket: websocket.WebSocket) -> None:
        self._socket = socket
        self._last = 0
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command's answer; raises RuntimeError with the browser's own words."""
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
            self.events.append(message)

    def open(
        self, path: Path, *, width: int = 1366, dark: bool = False, wait: bool = True, part: str = ""
    ) -> None:
        """Load a local file, at the part with this id, and wait until its charts are drawn."""
        self.resize(width)
        self.media(dark=dark)
        self.events.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=path.resolve().as_uri() + (f"#{part}" if part else ""))
        ready = (
            "document.documentElement.dataset.charts === 'drawn'"
            if wait
            else "document.readyState === 'complete'"
        )
        self.until(f"location.protocol === 'file:' && {ready}")

    def resize(self, width: int, height: int = 900) -> None:
        """The window's size in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)

    def media(self, *, dark: bool = False, kind: str = "") -> None:
        """What the page may ask of its medium: the colour scheme, and `print` or the screen."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=kind, features=[scheme])

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression (a promise is awaited); raises RuntimeError if it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def until(self, expression: str, limit_s: float = 60) -> None:
        """Poll until the expression is true; raises TimeoutError with what the page complained of."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            with contextlib.suppress(RuntimeError):
                if self.value(expression):
                    return
            time.sleep(0.05)
        raise TimeoutError(f"{expression} never came true; the page said {self.complaints()}")

    def click(self, selector: str) -> None:
        """A real mouse click in the middle of an element."""
        place = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
            "e.scrollIntoView({block: 'center', behavior: 'instant'}); "
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            event = {"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", **event)

    def press(self, key: str, code: int) -> None:
        """One key, with its text where it has one."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            event = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, **text}
            self.call("Input.dispatchKeyEvent", **event)

    def complaints(self) -> list[str]:
        """Uncaught errors, console warnings and errors, and log entries such as a violated policy."""
        self.value("0")
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            console_bad = method == "Runtime.consoleAPICalled" and parameters["type"] in {
                "error",
                "warning",
                "assert",
            }
            log_bad = method == "Log.entryAdded" and parameters["entry"]["level"] in {"error", "warning"}
            if method == "Runtime.exceptionThrown" or console_bad or log_bad:
                found.append(json.dumps(parameters)[:600])
        return found

    def requests(self) -> list[str]:
        """Addresses asked for since the page was opened, other than the file itself and data inside it."""
        self.value("0")
        sent = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [address for address in sent if not address.startswith(("file:", "data:", "blob:"))]

    def screenshot(self, path: Path, *, top: int = 0, height: int | None = None) -> None:
        """The page from `top` on, or only `height` CSS pixels of it, as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        tall = height or size["height"] - top
        clip = {"x": 0, "y": top, "width": size["width"], "height": tall, "scale": 1}
        answer = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self, path: Path) -> None:
        """The page as it would be printed."""
        answer = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(answer["data"]))


@contextlib.contextmanager
def browser(executable: str) -> Iterator[Page]:
    """A fresh headless browser with a fresh profile; both are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="leadline-browser-", ignore_cleanup_errors=True) as profile:
        # Chromium's sandbox refuses to run as root.
        extra = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [executable, *FLAGS, *extra, f"--user-data-dir={profile}", "about:blank"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                socket = _connect(Path(profile), process)
                with contextlib.closing(socket):
                    yield Page(socket)
                    with contextlib.suppress(websocket.WebSocketException, OSError):
                        socket.send(json.dumps({"id": 0, "method": "Browser.close"}))
            finally:
                _stop(process)


def _connect(profile: Path, process: subprocess.Popen[bytes]) -> websocket.WebSocket:
    """The first tab's socket; the port stands in a file that Chromium writes when it is ready."""
    import urllib.request

    port_file = profile / "DevToolsActivePort"
    end = time.monotonic() + _START_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
            port = int(port_file.read_text().splitlines()[0])
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=5) as answer:
                tab = next(item for item in json.load(answer) if item["type"] == "page")
            return websocket.create_connection(tab["webSocketDebuggerUrl"], timeout=_CALL_S)
        time.sleep(0.05)
    raise RuntimeError(f"the browser did not start within {_START_S} s (exit code {process.poll()})")


def _stop(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
