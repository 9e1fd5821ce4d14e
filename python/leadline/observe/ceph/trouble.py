"""Which of Ceph's own health checks mean that no load may be added: one list, for every command."""

from __future__ import annotations

from collections.abc import Mapping

# `SLOW_OPS` counts operations since Nautilus; the other two did so before.
SLOW_OPERATIONS = frozenset({"SLOW_OPS", "REQUEST_SLOW", "REQUEST_STUCK"})
# These count metadata servers, not operations; each means that one operation at least is slow.
SLOW_SERVERS = frozenset({"MDS_SLOW_METADATA_IO", "MDS_SLOW_REQUEST"})

IN_ERROR = "the cluster is in HEALTH_ERR"
SLOW = "the cluster reports slow operations"


def slow_checks(checks: Mapping[str, str]) -> dict[str, str]:
    """Those of `checks` (codes with their summaries) that report slow operations."""
    return {code: text for code, text in checks.items() if code in SLOW_OPERATIONS | SLOW_SERVERS}


def cluster_trouble(health: str, checks: Mapping[str, str]) -> str:
    """Why a cluster must not get more load, with its checks; "" where nothing forbids it."""
    if health == "HEALTH_ERR":
        return f"{IN_ERROR} ({_named(checks)})"
    if slow := slow_checks(checks):
        return f"{SLOW} ({_named(slow)})"
    return ""


def _named(checks: Mapping[str, str]) -> str:
    return ", ".join(f"{code}: {text}" for code, text in checks.items())
