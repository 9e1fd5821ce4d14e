"""XRootD with its Ceph plug-in: files striped over the objects of a pool by libradosstriper."""

from __future__ import annotations

import ipaddress
import os
import shutil

from leadline.lab.gateways.gateway import Gateway, GatewayPlace, Launch, require_program, write_private

POOL = "striped"
STRIPE_COUNT, STRIPE_UNIT_BYTES, OBJECT_BYTES = 1, 4 << 20, 4 << 20
_NOBODY = "65534"
_BUFFER_MEBIBYTES = 2  # its largest buffer unless told otherwise, and the least that it may be told

_TEMPLATE = """\
all.export /
all.adminpath {sockets}
all.pidpath {sockets}
xrd.port {port}
{allowed}
ofs.osslib libXrdCeph.so {user}@{pool},{count},{unit},{object}
xrootd.async {asynchronous}
{buffers}
"""


def _prepare(place: GatewayPlace) -> Launch:
    # What an earlier one left belongs to another account by the kernel's access(2), which it asks.
    shutil.rmtree(place.sockets, ignore_errors=True)
    place.sockets.mkdir(mode=0o700)
    mebibytes = int(place.spec.setting("xrootd.maxbsz").removesuffix("m"))
    larger = mebibytes > _BUFFER_MEBIBYTES
    # The server refuses to be told its own default.
    buffers = f"xrd.buffers maxbsz {mebibytes}m" if larger else ""
    text = _TEMPLATE.format(
        sockets=place.sockets,
        allowed="\n".join(f"xrd.allow host {host}" for host in _allowed(place.spec.address)),
        port=place.port,
        user=place.name,
        pool=POOL,
        count=STRIPE_COUNT,
        unit=STRIPE_UNIT_BYTES,
        object=OBJECT_BYTES,
        buffers=buffers,
        asynchronous=place.spec.setting("xrootd.async"),
    )
    configuration = place.directory / "xrootd.cfg"
    write_private(configuration, text)
    version = "v6" if ":" in place.spec.address else "v4"
    command = [require_program("xrootd"), "-c", str(configuration), "-I", version]
    # Without the two, it leaves a directory where it stands and a file in /tmp.
    command += ["-w", str(place.sockets), "-s", str(place.sockets / "xrootd.pid")]
    notes = (_BUFFER_NOTE,) if larger else ()
    return Launch(
        [*_named(place.spec.address), *_as_nobody(), *command], {"CEPH_CONF": str(place.paths.conf)}, notes
    )


_BUFFER_NOTE = "xrootd 5.5.3 of Debian 12 aborts at the first read above 2 MiB where maxbsz is above 2m"


def _allowed(address: str) -> list[str]:
    """Who may connect, as it listens on every address of the host: the host and the bridge's network."""
    if ipaddress.ip_address(address).is_loopback:
        return ["localhost", "127.0.0.1", "[::1]"]
    network = address.rpartition(".")[0]
    return ["localhost", address, f"{network}.*"] if network else ["*"]


def _named(address: str) -> list[str]:
    """It sends clients to what its host's name stands for, the loopback as a rule: its address names it."""
    if os.geteuid() != 0 or ipaddress.ip_address(address).is_loopback:
        return []
    return ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', address]


def _as_nobody() -> list[str]:
    """XRootD refuses to run as root; another account needs the capability to read the lab's directory."""
    if os.geteuid() != 0:
        return []
    capability = "+dac_override"
    return [
        require_program("setpriv"), f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups",
        f"--inh-caps={capability}", f"--ambient-caps={capability}",
    ]  # fmt: skip


GATEWAY = Gateway(
    name="xrootd",
    words="XRootD server",
    programs={"xrootd": "xrootd-server", "setpriv": "util-linux"},
    plugins={"libXrdCeph-5.so": "xrootd-ceph-plugins"},
    capabilities={"mon": "allow r", "osd": f"allow rwx pool={POOL}"},
    prepare=_prepare,
)
