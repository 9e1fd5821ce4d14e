"""The lab's keyring: a random key and the capabilities of every daemon and of client.admin.

It is made with either authentication, so that both take the same way.
"""

from __future__ import annotations

from collections.abc import Callable

from leadline.lab.record import LabRecord

# The capabilities that Ceph's manual deployment gives each kind of daemon.
_CAPABILITIES = {
    "mon.": {"mon": "allow *"},
    "client.admin": {"mon": "allow *", "osd": "allow *", "mds": "allow *", "mgr": "allow *"},
    "mgr.": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"},
    "mds.": {"mon": "allow profile mds", "osd": "allow rwx", "mds": "allow *", "mgr": "allow profile mds"},
    "osd.": {"mon": "allow profile osd", "osd": "allow *", "mgr": "allow profile osd"},
}

_CLIENT = {"mon": "allow r", "mgr": "allow r", "osd": "allow rwx", "mds": "allow rw"}


def make_keyring(record: LabRecord, tool: Callable[..., str]) -> None:
    """Writes the keyring with `ceph-authtool`, readable by its owner only."""
    path = record.paths.keyring
    path.touch(mode=0o600)
    entities = [
        "mon.",
        "client.admin",
        *(name for kind in ("mgr", "mds", "osd") for name in record.daemons(kind)),
    ]
    for entity in entities:
        kind = entity if entity in _CAPABILITIES else f"{entity.partition('.')[0]}."
        capabilities = [word for pair in _CAPABILITIES[kind].items() for word in ("--cap", *pair)]
        tool("ceph-authtool", str(path), "-n", entity, "--gen-key", *capabilities)
    for client in () if record.network is None else record.network.topology.clients:
        _make_client(record, client.name, tool)


def _make_client(record: LabRecord, client: str, tool: Callable[..., str]) -> None:
    """A key of a client's own, entered in the lab's keyring for the monitors to take it from."""
    own, entity = record.paths.client_keyring(client), f"client.{client}"
    own.parent.mkdir(mode=0o700, exist_ok=True)
    own.touch(mode=0o600)
    capabilities = [word for pair in _CLIENT.items() for word in ("--cap", *pair)]
    tool("ceph-authtool", str(own), "-n", entity, "--gen-key", *capabilities)
    tool("ceph-authtool", str(record.paths.keyring), "--import-keyring", str(own))
