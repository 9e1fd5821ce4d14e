"""The functions that hosts execute for a study, in one place: what is sent by Dask is one of these.

`hosts/onhost` has most of them; those of `worker_rpc` need no session.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True)
class Remote:
    """By name; arguments and results are plain values (see `hosts/onhost` and `worker_rpc`)."""

    probe: Function
    clock: Function
    open_session: Function
    prepare: Function
    begin: Function
    cancel: Function
    renew: Function
    fetch: Function
    held: Function
    forget: Function
    close_session: Function
    undo: Function
    check_part: Function
    audit_part: Function


def remote() -> Remote:
    """Those of this version, which is also the hosts' (`checks`)."""
    from leadline.hosts import onhost, worker_rpc

    own = {
        name: getattr(worker_rpc, name) for name in ("probe", "begin", "fetch", "check_part", "audit_part")
    }
    names = ("clock", "open_session", "prepare", "cancel", "renew", "held", "forget", "close_session", "undo")
    return Remote(**own, **{name: getattr(onhost, name) for name in names})
