"""Where placement groups lie: Ceph's own crushtool over a map of the cluster, no imitation of CRUSH.

The only place here that starts a program. Its files are in memory and have no name, so that nothing stays
behind, however this process ends.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterator, Sequence
from typing import BinaryIO

import numpy as np

from leadline.analysis.models.simple import Protection
from leadline.errors import LeadlineError, UsageError
from leadline.simulation.model import SimulatedCluster

_MAPPING = re.compile(r"CRUSH rule \d+ x \d+ \[([^\]]*)\]")
_NONE = 2147483647
_SECONDS = 120.0
_PER_OSD = 100  # placement groups of an OSD, as the autoscaler aims at
_GROUPS_MAX = 32768


def groups_for(osds: int, protection: Protection) -> int:
    """Placement groups of a pool alone on so many OSDs: the power of two nearest to 100 an OSD."""
    wanted = max(_PER_OSD * osds / protection.shards, 1.0)
    return int(min(2 ** round(np.log2(wanted)), _GROUPS_MAX))


def placed(
    cluster: SimulatedCluster, protection: Protection, groups: int, out: Collection[int] = (), pool: int = 1
) -> np.ndarray:
    """OSDs of each placement group, a row each, its primary first; -1 where CRUSH finds none.

    `out` are OSDs marked out; `pool` is the pool's number, by which its groups differ from others'. Raises
    UsageError where chunks do not fit, LeadlineError without crushtool.
    """
    tool = shutil.which("crushtool")
    if tool is None:
        raise LeadlineError("crushtool is not installed", "install ceph-base: placement is Ceph's own")
    hosts = sorted(set(cluster.osd_hosts))
    if len(cluster.osd_hosts) < protection.shards:
        raise UsageError(
            f"{len(cluster.osd_hosts)} OSDs cannot hold {protection.shards} copies or shards",
            "add OSDs, or ask for another protection",
        )
    domain = "host" if len(hosts) >= protection.shards else "osd"
    with _in_memory("text") as text, _in_memory("compiled") as compiled:
        text.write(("\n".join(map_lines(cluster, protection, domain)) + "\n").encode())
        text.flush()
        _run([tool, "-c", _place(text), "-o", _place(compiled)], text, compiled)
        words = [tool, "-i", _place(compiled), "--test", "--rule", "0", "--num-rep", str(protection.shards)]
        words += ["--min-x", "0", "--max-x", str(groups - 1), "--pool-id", str(pool), "--show-mappings"]
        for osd in sorted(out):
            words += ["--weight", str(osd), "0"]
        said = _run(words, compiled)
    found = np.full((groups, protection.shards), -1, dtype=np.int32)
    for row, match in enumerate(_MAPPING.finditer(said)):
        osds = [int(part) for part in match[1].split(",") if part]
        found[row, : len(osds)] = [-1 if osd == _NONE else osd for osd in osds]
    if not (found[:, 0] >= 0).any():
        raise LeadlineError("crushtool placed nothing", "is every OSD out?")
    return found


def map_lines(cluster: SimulatedCluster, protection: Protection, domain: str) -> Iterator[str]:
    """The text of a CRUSH map: hosts below racks (their switches) below the root; one rule."""
    yield from (f"tunable {name} {value}" for name, value in _TUNABLES)
    yield from (f"device {osd} osd.{osd}" for osd in range(len(cluster.osd_hosts)))
    yield from ("type 0 osd", "type 1 host", "type 2 rack", "type 3 root")
    number = -2
    racks: dict[str, list[tuple[str, int]]] = {}
    for host in dict.fromkeys(cluster.osd_hosts):
        osds = [osd for osd, home in enumerate(cluster.osd_hosts) if home == host]
        yield from _bucket(f"host {host}", number, [(f"osd.{osd}", 1) for osd in osds])
        racks.setdefault(cluster.above.get(host, ""), []).append((host, len(osds)))
        number -= 1
    tops = []
    for switch, members in racks.items():
        yield from _bucket(f"rack rack-{switch}", number, members)
        tops.append((f"rack-{switch}", sum(weight for _, weight in members)))
        number -= 1
    yield from _bucket("root default", -1, tops)
    coded = protection.copies is None
    yield "rule data {"
    yield "id 0"
    yield f"type {'erasure' if coded else 'replicated'}"
    yield from ("min_size 1", "max_size 64") if coded else ("min_size 1", "max_size 10")
    if coded:
        yield from ("step set_chooseleaf_tries 5", "step set_choose_tries 100")
    yield "step take default"
    way = "indep" if coded else "firstn"
    yield f"step choose {way} 0 type osd" if domain == "osd" else f"step chooseleaf {way} 0 type {domain}"
    yield from ("step emit", "}")


_TUNABLES = (
    ("choose_local_tries", 0),
    ("choose_local_fallback_tries", 0),
    ("choose_total_tries", 50),
    ("chooseleaf_descend_once", 1),
    ("chooseleaf_vary_r", 1),
    ("chooseleaf_stable", 1),
    ("straw_calc_version", 1),
    ("allowed_bucket_algs", 54),
)


def _bucket(head: str, number: int, items: Sequence[tuple[str, int]]) -> Iterator[str]:
    yield f"{head} {{"
    yield from (f"id {number}", "alg straw2", "hash 0")
    yield from (f"item {item} weight {weight:.3f}" for item, weight in items)
    yield "}"


def _in_memory(name: str) -> BinaryIO:
    return os.fdopen(os.memfd_create(name), "w+b")


def _place(file: BinaryIO) -> str:
    """Its name in a process that inherits it."""
    return f"/proc/self/fd/{file.fileno()}"


def _run(words: list[str], *files: BinaryIO) -> str:
    try:
        found = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            pass_fds=[file.fileno() for file in files],
        )
    except subprocess.TimeoutExpired:
        raise LeadlineError(f"crushtool did not end in {_SECONDS:.0f} s", "ask for fewer groups") from None
    if found.returncode:
        raise LeadlineError(f"crushtool failed: {found.stderr.strip()[:200]}", "is it that of this Ceph?")
    return found.stdout
