"""Mounts of CephFS on this host, for `leadline check`: whether they answer, and which known pitfalls hold."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.check.facts import Fact

_ALL_S = 10.0  # each is asked for itself, and each that hangs takes half of that


def mount_facts(host: str) -> list[Fact]:
    """Of each mount of the kernel's client and of ceph-fuse; nothing is read or written below it."""
    from leadline.check.facts import Fact
    from leadline.errors import LeadlineError
    from leadline.knowledge.pitfalls import assess
    from leadline.mounting.facts import FUSE_TYPES, read_facts
    from leadline.observe.hang_guard import check_answers
    from leadline.observe.mounts.mountinfo import read_mounts

    found: list[Fact] = []
    points = {one.mount_point for one in read_mounts() if one.file_system in ("ceph", *FUSE_TYPES)}
    begun = time.monotonic()
    for point in sorted(points):
        subject = f"{host}:{point}"
        if time.monotonic() - begun > _ALL_S:
            found.append(Fact("mount", subject, "answers", None, f"the mounts before it took {_ALL_S:g} s"))
            continue
        try:
            check_answers([point])
        except LeadlineError as error:
            found.append(Fact("mount", subject, "answers", False))
            found.append(Fact("mount", subject, "pitfalls", None, str(error).partition("\n")[0]))
            continue
        found.append(Fact("mount", subject, "answers", True))
        try:
            facts = read_facts(point)
        except LeadlineError as error:
            found.append(Fact("mount", subject, "pitfalls", None, str(error).partition("\n")[0]))
            continue
        held = assess(facts.client, facts.kernel, facts.answers, facts.reasons)
        found.append(Fact("mount", subject, "client", facts.words))
        names = ", ".join(one.name for one in held if one.holds)
        found.append(Fact("mount", subject, "pitfalls", names))
    return found
