"""Settings and audits as plain values: what `leadline tune list|explain|audit --json` print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from leadline.tuning.audit import Audited, SettingSeen
from leadline.tuning.fleet import HostRead
from leadline.tuning.settings import Setting
from leadline.tuning.validity import Versions, default_on, exists, obsolete

LIST_FORMAT = "leadline.settings/1"
AUDIT_FORMAT = "leadline.audit/1"


def setting_json(one: Setting, versions: Versions) -> dict[str, Any]:
    """All that its row says, and what that is on these versions."""
    old = obsolete(one, versions)
    return {
        **asdict(one),
        "access": {"kind": one.access.kind, **one.access.options},
        "here": {
            "default": default_on(one, versions),
            "exists": exists(one, versions),
            "obsolete": None if old is None else old.words,
        },
    }


def audit_json(found: Audited, versions: Versions, hosts: Sequence[HostRead] = ()) -> dict[str, Any]:
    """The rows in their order, what is set, and what could not be read; `hosts` where others were audited."""
    told = [
        {
            "name": one.name,
            "roles": list(one.roles),
            "versions": dict(one.versions),
            "problem": one.problem or None,
        }
        for one in hosts
    ]
    return {
        "format": AUDIT_FORMAT,
        "versions": dict(versions),
        "rows": [row.as_json() for row in found.rows],
        "set": [_seen_json(one) for one in found.set_here],
        "unknown": [{**_seen_json(one), "reason": one.reason} for one in found.unknown],
    } | ({"hosts": told} if hosts else {})


def _seen_json(one: SettingSeen) -> dict[str, Any]:
    return {"setting": one.setting.name, "place": asdict(one.place), "value": one.value}
