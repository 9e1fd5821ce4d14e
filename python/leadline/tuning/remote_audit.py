"""What one host says of its settings when another host audits it: `python -m leadline.tuning.remote_audit`.

It is asked by one JSON document on standard input and answers by another; nothing is judged here, and no
cluster is asked, which one host does for all.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leadline import _core
from leadline.errors import LeadlineError, ResultError
from leadline.foreign import parse_json, reading
from leadline.tuning.audit import SettingSeen
from leadline.tuning.settings import Setting, SettingPlace, settings, settings_and

FORMAT = "leadline.readings/1"


@dataclass(frozen=True)
class HostTold:
    """What a host has: its `versions`, and each setting at each of its places."""

    versions: Mapping[str, str]
    seen: tuple[SettingSeen, ...]


def question(own: str, ceph: str) -> str:
    """What a host is asked: the text of a user's own settings, and the release for defaults."""
    return json.dumps({"settings": own, "ceph": ceph})


def answer(asked: str) -> str:
    """All settings of this host, as JSON. Raises LeadlineError where the question is none."""
    from leadline.tuning.system import TuningSystem, read_settings_here

    with reading("what this host is asked"):
        value = parse_json(asked)
        own, ceph = str(value["settings"]), str(value["ceph"])
    known = settings_and(own, "--settings") if own else settings()
    system = TuningSystem(known=known)
    versions = {"kernel": system.kernel()} | ({"ceph": ceph} if ceph else {})
    seen = read_settings_here(system, [one for one in known.values() if not one.of_cluster], versions)
    rows = [[one.setting.name, one.place.subject, one.value, one.given, one.reason] for one in seen]
    return json.dumps({"format": FORMAT, "leadline": _core.version(), "versions": versions, "readings": rows})


def told(text: bytes, host: str, known: Mapping[str, Setting]) -> HostTold:
    """The answer of a host that is called so. Raises ResultError, in words that follow its name."""
    with reading("what it answers"):
        value = parse_json(text)
        version = str(value["leadline"])
    if version != _core.version():
        raise ResultError(f"it has leadline {version}, and {_core.version()} runs here", "")
    with reading("what it answers"):
        return HostTold(
            {str(of): str(version) for of, version in value["versions"].items()},
            tuple(_seen(row, host, known) for row in value["readings"]),
        )


def _seen(row: list[Any], host: str, known: Mapping[str, Setting]) -> SettingSeen:
    name, subject, value, given, reason = row
    if not (isinstance(value, str | None) and isinstance(given, bool | None)):
        raise ValueError(f"{name} is no plain value")
    return SettingSeen(known[name], SettingPlace(str(subject), host), value, given, str(reason))


def main() -> int:
    """One question from standard input."""
    try:
        sys.stdout.write(answer(sys.stdin.read()))
    except LeadlineError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
