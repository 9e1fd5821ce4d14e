"""NFS: Ganesha with its Ceph plug-in, which reaches CephFS through libcephfs."""

from __future__ import annotations

from pathlib import Path

from leadline.lab.gateway import (
    Gateway,
    Launch,
    Place,
    find_plugin,
    has_session,
    require_program,
    write_private,
)

EXPORT = "/ceph"
_PLUGIN = "ganesha/libfsalceph.so"
_TRANSFER_BYTES = 1 << 20
# A request is a little longer than the bytes it carries; Ganesha's default buffer is exactly a mebibyte.
_BUFFER_BYTES = 9 << 20

_TEMPLATE = """\
NFS_CORE_PARAM {{
  NFS_Port = {port};
  Bind_addr = {address};
  Protocols = 4;
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
  Protocols = 4;
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


def _prepare(place: Place) -> Launch:
    (place.directory / "recovery").mkdir(exist_ok=True)
    text = _TEMPLATE.format(
        port=place.port,
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
    pid_file = place.directory / "ganesha.pid"
    # In the foreground: as a daemon it ends without a word.
    command = [
        require_program("ganesha.nfsd"),
        "-F",
        "-f",
        str(configuration),
        "-L",
        "STDERR",
        "-p",
        str(pid_file),
    ]
    return Launch(command)


def _serves(place: Place) -> bool:
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
)
