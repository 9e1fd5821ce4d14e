"""Finds out what a URL's storage is before anything is run on it, in a child process with a deadline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leadline import _core, units
from leadline.errors import TargetError
from leadline.observe.children import ask_child
from leadline.observe.timeouts import patient_s
from leadline.study import schemes
from leadline.study.target import CephAccess, TargetFacts
from leadline.units import printable

_CLUSTER_DEADLINE_S = 2.0
_CONNECT_DEADLINE_S = 15.0  # the client itself looks for monitors for 10 s, and says so then
_CLUSTER = "See whether the cluster is up, and whether conf= names its monitors."
_SERVER = "See whether the server is up, and whether its name and port are right."
_ALIGNMENT_BYTES = 512


def inspect_location(url: str, deadline_s: float) -> TargetFacts:
    """What a URL leads to: space, pool, how it is protected. Raises TargetError where nobody answers."""
    try:
        found = _core.parse_location(url)
    except ValueError as error:
        raise TargetError(printable(str(error)), "See: leadline engines.") from None
    answer = _ask(found, patient_s(max(deadline_s, _CONNECT_DEADLINE_S)))
    total_bytes, free_bytes = answer["space"] or (None, None)
    address = answer.get("address")
    ceph = _ceph(found, answer.get("pool"))
    return TargetFacts(
        access=found["engine"],
        file_system=found["scheme"],
        words=_words(found, ceph),
        source=url,
        options=() if address is None else (f"addr={address}",),
        direct_io=True,
        direct_alignment_bytes=_ALIGNMENT_BYTES,
        total_bytes=total_bytes,
        free_bytes=free_bytes,
        ceph=ceph,
    )


def _ceph(found: dict[str, Any], pool: str | None) -> CephAccess | None:
    """The cluster behind a URL of Ceph's own schemes; None behind a gateway, which does not say.

    `pool` is what the storage said itself, where the URL names none.
    """
    options = found["options"]
    if "conf" not in options:
        return None
    return protection(
        CephAccess(
            conf=options["conf"] or None,
            name=f"client.{options['user']}",
            keyring=options["keyring"] or None,
            pool=found["container"] or pool,
        )
    )


def _ask(found: dict[str, Any], deadline_s: float) -> dict[str, Any]:
    url = found["url"]
    answer = ask_child("leadline.observe.probe", ["volume", url], deadline_s)
    if answer.stuck_pid is not None:
        clustered = schemes.access(found["engine"]).storage == "cluster"
        remedy = _CLUSTER if clustered else _SERVER
        raise TargetError(f"{printable(url)}: no answer within {deadline_s:g} s", remedy)
    facts = answer.lines[-1] if answer.lines else {}
    if "space" in facts:
        return facts
    last = answer.stderr.splitlines()[-1] if answer.stderr else f"exit code {answer.exit_code}"
    why = facts.get("why") or last
    remedy = f"Its options: leadline engines {found['scheme']}."
    raise TargetError(f"{printable(url)}: {printable(why)}", remedy)


def protection(access: CephAccess) -> CephAccess:
    """The same with how its pool is protected, as far as the cluster says."""
    if access.pool is None or access.distrusted:
        return access
    asked = [access.conf or "", access.name or "", access.keyring or "", access.pool]
    # Twice the deadline: the child starts, loads the library, connects and asks.
    answer = ask_child(
        "leadline.observe.probe", ["pool", *asked, str(_CLUSTER_DEADLINE_S)], 2 * _CLUSTER_DEADLINE_S
    )
    known = answer.lines[-1] if answer.lines else {}
    return replace(
        access,
        protection=known.get("protection"),
        size=known.get("size"),
        k=known.get("k"),
        m=known.get("m"),
        failure_domain=known.get("failure_domain"),
        groups=known.get("groups"),
    )


def pool_words(ceph: CephAccess) -> str:
    """The pool and its protection behind a comma; nothing where the pool is not known."""
    if ceph.pool is None:
        return ""
    if ceph.protection == "replicated" and ceph.size is not None:
        how = f" ({ceph.size} replica{'' if ceph.size == 1 else 's'})"
    elif ceph.protection == "erasure" and ceph.k is not None:
        how = f" (erasure-coded {ceph.k}+{ceph.m})"
    else:
        how = ""
    return f", pool {printable(ceph.pool)}{how}"


def _words(found: dict[str, Any], ceph: CephAccess | None) -> str:
    """The scheme's own words: texts, sizes in bytes, and None where the pool belongs."""
    pool = "" if ceph is None else pool_words(ceph)
    return "".join(
        pool if word is None else printable(word) if isinstance(word, str) else units.format_size(word)
        for word in found["words"]
    )
