"""Which releases of Ceph have a known defect: `releases.yaml`, held against what runs and what made OSDs."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from leadline.knowledge.tables import entries, text_of

_RELEASE = re.compile(r"\bceph version (\d+\.\d+\.\d+)")


@dataclass(frozen=True)
class KnownVersions:
    """From which version to before which something holds, and who says so."""

    since: str
    until: str
    source: str


@dataclass(frozen=True)
class BadRelease:
    """One entry of the table; see its head."""

    name: str
    releases: tuple[str, ...]
    words: str
    source: str
    made: bool = False
    pool_flag: str = ""

    @property
    def versions(self) -> KnownVersions:
        """From the first of its releases to before the one after the last."""
        series, _, last = self.releases[-1].rpartition(".")
        return KnownVersions(self.releases[0], f"{series}.{int(last) + 1}", self.source)


@functools.cache
def bad_releases() -> tuple[BadRelease, ...]:
    """Every entry, in the order of the file."""
    return entries(text_of("leadline.knowledge", "releases.yaml"), "releases.yaml", BadRelease)


def release_in(version: str) -> str | None:
    """`16.2.15` of `ceph version 16.2.15 (…) pacific (stable)`, also of a distribution's `16.2.15-1`."""
    found = _RELEASE.search(version)
    return found[1] if found else None


def defects(releases: Iterable[str], pool_flags: Collection[str], *, made: bool = False) -> str:
    """What is known of these releases: of those that run, or of those that made an OSD; nothing if empty."""
    return "; ".join(
        f"{release}: {one.words} ({one.source})"
        for release in releases
        for one in bad_releases()
        if release in one.releases and one.made == made and (not one.pool_flag or one.pool_flag in pool_flags)
    )
