"""The lab's keyring: a random key and the capabilities of every daemon and of client.admin.

It is made with either authentication, so that both take the same way.
"""

from __future__ import annotations

from collections.abc import Callable

from leadline.lab.cluster.config import osd_ids
from leadline.lab.record import LabRecord

# The capabilities that Ceph's manual deployment gives each kind of daemon.
_CAPABILITIES = {
    "mon.": {"mon": "allow *"},
    "client.admin": {"mon": "allow *", "osd": "allow *", "mds": "allow *", "mgr": "allow *"},
    "mgr.": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"},
    "mds.": {"mon": "allow profile mds", "osd": "allow rwx", "mds": "allow *", "mgr": "allow profile mds"},
    "osd.": {"mon": "allow profile osd", "osd": "allow *", "mgr": "allow profile osd"},
}


def make_keyring(record: LabRecord, tool: Callable[..., str]) -> None:
    """Writes the keyring with `ceph-authtool`, readable by its owner only."""
    path = record.paths.keyring
    path.touch(mode=0o600)
    entities = [
        "mon.",
        "client.admin",
        "mgr.x",
        "mds.a",
        *(f"osd.{number}" for number in osd_ids(record.spec)),
    ]
    for entity in entities:
        kind = entity if entity in _CAPABILITIES else f"{entity.partition('.')[0]}."
        capabilities = [word for pair in _CAPABILITIES[kind].items() for word in ("--cap", *pair)]
        tool("ceph-authtool", str(path), "-n", entity, "--gen-key", *capabilities)
