"""NFS: Ganesha with its Ceph plug-in, which reaches CephFS through libcephfs.

NFSv3 wants a port mapper: Ganesha ends where it cannot register with one at its fixed path,
/run/rpcbind.sock. So it is given one of its own, in namespaces where nothing of the host's is touched.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from leadline.lab.cluster.process import is_running, poll
from leadline.lab.gateways.gateway import (
    Gateway,
    GatewayPlace,
    Launch,
    find_plugin,
    find_program,
    has_session,
    require_program,
    write_private,
)

EXPORT = "/ceph"
_PLUGIN = "ganesha/libfsalceph.so"
_TRANSFER_BYTES = 1 << 20
# A request is a little longer than the bytes it carries; Ganesha's default buffer is exactly a mebibyte.
_BUFFER_BYTES = 9 << 20

_PORT_MAPPER = "rpcbind"
_PORT_MAPPER_DEADLINE_S = 10.0
_NAMESPACE_PROGRAMS = ("unshare", "nsenter", "mount", "umount", "ip", _PORT_MAPPER)
# Another lab's mount that is seen from here would stay in use here: in this namespace it is undone.
_PORT_MAPPER_SCRIPT = """\
set -e
mount --make-rprivate /
while read -r _ point kind _; do
  case $kind in fuse*) umount -l "$(printf %b "$point")" || true ;; esac
done < /proc/self/mounts
mount --bind "$0" /run
mkdir -p /run/rpcbind
ip link set lo up
exec rpcbind -f -i
"""

_TEMPLATE = """\
NFS_CORE_PARAM {{
  NFS_Port = {port};
  Bind_addr = {address};
  Protocols = {protocols};
  mount_path_pseudo = true;
  MNT_Port = {mount_port};
  Enable_NLM = false;
  Enable_RQUOTA = false;
  Enable_UDP = false;
  Clustered = false;
  Plugins_Dir = {plugins};
  MaxRPCSendBufferSize = {buffer};
  MaxRPCRecvBufferSize = {buffer};
}}
NFS_KRB5 {{ Active_krb5 = false; }}
NFSv4 {{
  Graceless = true;
  RecoveryBackend = fs;
  RecoveryRoot = {directory}/recovery;
  Only_Numeric_Owners = true;
}}
EXPORT {{
  Export_Id = 1;
  Path = /;
  Pseudo = {export};
  Access_Type = RW;
  Squash = None;
  SecType = sys, none;
  Protocols = {protocols};
  Transports = TCP;
  MaxRead = {transfer};
  MaxWrite = {transfer};
  PrefRead = {transfer};
  PrefWrite = {transfer};
  FSAL {{ Name = CEPH; User_Id = {user}; }}
}}
CEPH {{ Ceph_Conf = {conf}; }}
LOG {{ Default_Log_Level = EVENT; }}
"""


@dataclass(frozen=True)
class _Version3:
    """How NFSv3 is served: in `namespaces` (a command's beginning) on `port`; or why it is not."""

    port: int = 0
    namespaces: tuple[str, ...] = ()
    reason: str = ""


def _prepare(place: GatewayPlace) -> Launch:
    (place.directory / "recovery").mkdir(exist_ok=True)
    third = _version_3(place)
    text = _TEMPLATE.format(
        port=place.port,
        mount_port=third.port,
        protocols="3, 4" if third.port else "4",
        address=place.spec.address,
        plugins=Path(find_plugin(_PLUGIN)).parent,
        directory=place.directory,
        export=EXPORT,
        user=place.name,
        conf=place.paths.conf,
        transfer=_TRANSFER_BYTES,
        buffer=_BUFFER_BYTES,
    )
    configuration = place.directory / "ganesha.conf"
    write_private(configuration, text)
    pid_file = str(place.directory / "ganesha.pid")
    # In the foreground: as a daemon it ends without a word.
    server = [require_program("ganesha.nfsd"), "-F", "-f", str(configuration), "-L", "STDERR", "-p", pid_file]
    notes = (f"NFSv4 only: {third.reason}",) if third.reason else ()
    return Launch([*third.namespaces, *server], notes=notes, mount_port=third.port)


def _version_3(place: GatewayPlace) -> _Version3:
    """Starts a port mapper that only this Ganesha sees, where this account may make namespaces."""
    if os.geteuid() != 0:
        return _Version3(reason="NFSv3 needs a port mapper in namespaces of its own, and they need root")
    lacking = [program for program in _NAMESPACE_PROGRAMS if find_program(program) is None]
    if lacking:
        return _Version3(reason=f"NFSv3 needs {', '.join(lacking)}")
    if any(Path("/run") in path.resolve().parents for path in (place.directory, place.paths.run)):
        return _Version3(reason="NFSv3 needs the lab's directories to be elsewhere than below /run")
    run = place.directory / "run"
    run.mkdir(mode=0o755, exist_ok=True)
    (run / "rpcbind.sock").unlink(missing_ok=True)
    command = ["unshare", "--mount", "--net", "sh", "-c", _PORT_MAPPER_SCRIPT, str(run)]
    name = place.name.replace(GATEWAY.name, _PORT_MAPPER)
    mapper = place.start(name, command)
    poll(lambda: (run / "rpcbind.sock").exists() or not is_running(mapper), _PORT_MAPPER_DEADLINE_S)
    if not is_running(mapper):
        return _Version3(reason=f"its port mapper did not start; log: {place.paths.log(name)}")
    namespaces = ("nsenter", f"--mount=/proc/{mapper.pid}/ns/mnt", "--")
    return _Version3(place.free_port(), namespaces)


def _serves(place: GatewayPlace) -> bool:
    """Its port answers even where it could not open the file system."""
    return has_session(place.ceph, place.name)


GATEWAY = Gateway(
    name="nfs",
    words="NFS server Ganesha",
    programs={"ganesha.nfsd": "nfs-ganesha"},
    plugins={_PLUGIN: "nfs-ganesha-ceph"},
    capabilities={"mon": "allow r", "mds": "allow rw", "osd": "allow rw tag cephfs *=*"},
    prepare=_prepare,
    serves=_serves,
    helpers=(_PORT_MAPPER,),
)
