"""Asks a media platform for its workflows over HTTP: read only, page by page, with a bound on everything.

Credentials come from the environment or from netrc, go to that host only, and are kept nowhere.
"""

from __future__ import annotations

import http.client
import netrc
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from leadline import _core
from leadline.errors import TargetError, UsageError
from leadline.foreign import parse_json
from leadline.workflows.reading import total_of

USER, PASSWORD = "LEADLINE_OPENCAST_USER", "LEADLINE_OPENCAST_PASSWORD"
ANSWER_BYTES_MAX = 64 << 20
_PAGE = 100
_PAGES_MAX = 1000
_AGAIN = (429, 500, 502, 503, 504)
_WAIT_S, _WAIT_MAX_S = 0.5, 30.0


@dataclass(frozen=True)
class Patience:
    """How long one answer may stall, and how often it is asked for again."""

    timeout_s: float
    retries: int
    sleep: Callable[[float], None] = time.sleep


def fetch_all(url: str, environment: Mapping[str, str], patience: Patience) -> Iterator[tuple[str, str]]:
    """Every answer that a URL stands for, with its own address: one, or the pages of a list."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{_shown(url)} is no address of a platform", "write https://HOST/api/workflows/ID")
    if parts.username is not None or _core.without_password(url) != url:
        remedy = f"set {USER} and {PASSWORD}, or write them into netrc"
        raise UsageError("an address must not hold a user or a password: it is kept in the result", remedy)
    opener = _opener(parts.hostname, url, environment)
    for page in range(_PAGES_MAX):
        address = _page_of(url, page)
        text = _ask(opener, address, patience)
        yield address, text
        if not _more(url, text, page):
            return
    raise TargetError(f"{_shown(url)} has more than {_PAGES_MAX} pages", "ask for fewer, with filter=…")


def _page_of(url: str, page: int) -> str:
    """The address of a page, with operations asked for. What the address says itself stays."""
    parts = urlsplit(url)
    asked = dict(parse_qsl(parts.query, keep_blank_values=True))
    path = parts.path.rstrip("/")
    if "/api/workflows" in path:
        asked.setdefault("withoperations", "true")
    if path.endswith("/api/workflows"):
        asked.setdefault("limit", str(_PAGE))
        asked["offset"] = str(int(asked.get("offset", 0)) + page * int(asked["limit"]))
    elif path.endswith(("/workflow/instances.json", "/workflow/instances.xml")):
        asked.setdefault("count", str(_PAGE))
        asked["startPage"] = str(int(asked.get("startPage", 0)) + page)
    return urlunsplit(parts._replace(query=urlencode(asked)))


def _more(url: str, text: str, page: int) -> bool:
    """Whether another page follows this one."""
    parts = urlsplit(url)
    asked = dict(parse_qsl(parts.query))
    path = parts.path.rstrip("/")
    if path.endswith("/api/workflows"):
        limit = int(asked.get("limit", _PAGE))
        return _entries(text) >= limit
    if path.endswith("/workflow/instances.json"):
        total, count = total_of(text), int(asked.get("count", _PAGE))
        return total is not None and (int(asked.get("startPage", 0)) + page + 1) * count < total
    return False


def _entries(text: str) -> int:

    try:
        value = parse_json(text)
    except ValueError:
        return 0
    return len(value) if isinstance(value, list) else 0


def _opener(host: str, url: str, environment: Mapping[str, str]) -> urllib.request.OpenerDirector:
    login = _login(host, environment)
    handlers: list[urllib.request.BaseHandler] = []
    headers = [("Accept", "application/json, application/xml;q=0.8"), ("User-Agent", "leadline")]
    if login is not None:
        known = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        top = urlunsplit(urlsplit(url)._replace(path="/", query="", fragment=""))
        known.add_password(None, top, *login)
        handlers += [urllib.request.HTTPDigestAuthHandler(known), urllib.request.HTTPBasicAuthHandler(known)]
        headers.append(("X-Requested-Auth", "Digest"))  # else the platform shows its page for logging in
    opener = urllib.request.build_opener(*handlers)
    opener.addheaders = headers
    return opener


def _login(host: str, environment: Mapping[str, str]) -> tuple[str, str] | None:
    if environment.get(USER) and PASSWORD in environment:
        return environment[USER], environment[PASSWORD]
    file = environment.get("NETRC") or str(Path(environment.get("HOME") or "~").expanduser() / ".netrc")
    try:
        found = netrc.netrc(file).authenticators(host)
    except FileNotFoundError:
        return None
    except (netrc.NetrcParseError, OSError) as error:
        raise UsageError(f"{file} cannot be read as netrc: {error}", f"mend it, or set {USER}") from None
    return (found[0], found[2] or "") if found else None


def _ask(opener: urllib.request.OpenerDirector, address: str, patience: Patience) -> str:
    """One answer, asked for again where the platform is busy or did not answer in time."""
    for attempt in range(patience.retries + 1):
        last = attempt == patience.retries
        wait_s = min(_WAIT_S * 2**attempt, _WAIT_MAX_S)
        try:
            with opener.open(address, timeout=patience.timeout_s) as answer:
                data = answer.read(ANSWER_BYTES_MAX + 1)
            if len(data) > ANSWER_BYTES_MAX:
                raise TargetError(
                    f"{_shown(address)} sends more than {ANSWER_BYTES_MAX >> 20} MiB", "ask for less"
                )
            return bytes(data).decode("utf-8", "replace")
        except urllib.error.HTTPError as error:
            if error.code not in _AGAIN or last:
                raise TargetError(
                    f"{_shown(address)} answered {error.code} {error.reason}", _remedy(error.code)
                ) from None
            wait_s = min(_asked_wait_s(error) or wait_s, _WAIT_MAX_S)
        except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
            if last:
                raise TargetError(
                    f"{_shown(address)}: {_why(error, patience)}", "see whether it is up"
                ) from None
        patience.sleep(wait_s)
    raise AssertionError("the last attempt returns or raises")


def _why(error: Exception, patience: Patience) -> str:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, TimeoutError):
        return f"nothing was sent for {patience.timeout_s:g} s, {patience.retries + 1} times over"
    if isinstance(error, http.client.IncompleteRead):
        return "the answer was cut off"
    return f"no answer: {getattr(reason, 'strerror', None) or reason}"


def _asked_wait_s(error: urllib.error.HTTPError) -> float | None:
    value = error.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None


def _remedy(code: int) -> str:
    if code in (401, 403):
        return f"set {USER} and {PASSWORD} (or netrc) to a user who may read workflows"
    return "check the address; the external API is at /api/workflows" if code == 404 else "try again later"


def _shown(url: str) -> str:
    """An address without what it asks, and without any password."""
    parts = urlsplit(_core.without_password(url))
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
