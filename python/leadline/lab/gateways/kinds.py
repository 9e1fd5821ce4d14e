"""The kinds of gateways: NFS, SMB, XRootD and S3, each with its configuration and how it is started."""

from __future__ import annotations

import base64
import getpass
import hashlib
import hmac
import http.client
import ipaddress
import os
import shutil
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from leadline.errors import LabError
from leadline.foreign import parse_json
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

NFS_EXPORT = "/ceph"
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

_GANESHA_CONF = """\
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


def _prepare_nfs(place: GatewayPlace) -> Launch:
    (place.directory / "recovery").mkdir(exist_ok=True)
    third = _version_3(place)
    configuration = place.configure(
        "ganesha.conf",
        _GANESHA_CONF,
        mount_port=third.port,
        protocols="3, 4" if third.port else "4",
        plugins=Path(find_plugin(_PLUGIN)).parent,
        directory=place.directory,
        export=NFS_EXPORT,
        transfer=_TRANSFER_BYTES,
        buffer=_BUFFER_BYTES,
    )
    pid_file = str(place.directory / "ganesha.pid")
    # In the foreground: as a daemon it ends without a word.
    server = [require_program("ganesha.nfsd"), "-F", "-f", configuration, "-L", "STDERR", "-p", pid_file]
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
    name = place.name.replace(NFS.name, _PORT_MAPPER)
    mapper = place.start(name, command)
    poll(lambda: (run / "rpcbind.sock").exists() or not is_running(mapper), _PORT_MAPPER_DEADLINE_S)
    if not is_running(mapper):
        return _Version3(reason=f"its port mapper did not start; log: {place.paths.log(name)}")
    namespaces = ("nsenter", f"--mount=/proc/{mapper.pid}/ns/mnt", "--")
    return _Version3(place.free_port(), namespaces)


def _serves_nfs(place: GatewayPlace) -> bool:
    """Its port answers even where it could not open the file system."""
    return has_session(place.ceph, place.name)


NFS = Gateway(
    name="nfs",
    words="NFS server Ganesha",
    programs={"ganesha.nfsd": "nfs-ganesha"},
    plugins={_PLUGIN: "nfs-ganesha-ceph"},
    capabilities={"mon": "allow r", "mds": "allow rw", "osd": "allow rw tag cephfs *=*"},
    prepare=_prepare_nfs,
    serves=_serves_nfs,
    helpers=(_PORT_MAPPER,),
)


SMB_SHARE = "ceph"
_SMB_DIRECTORIES = ("private", "lock", "state", "cache", "pid", "rpc")
# Not the lab's owner: a guest's account has an identity of its own in access checks, which owns no file.
_SMB_GUEST = "nobody"
_SMB_LOG_KIBIBYTES_MAX = 4096  # Samba renames the log to .old and begins another

_SMB_CONF = """\
[global]
server role = standalone server
security = user
map to guest = Bad User
guest account = {guest}
smb ports = {port}
interfaces = {address}
bind interfaces only = yes
disable netbios = yes
disable spoolss = yes
load printers = no
printcap name = /dev/null
server min protocol = SMB2_10
max log size = {log_size}
pid directory = {base}/pid
private dir = {base}/private
lock directory = {base}/lock
state directory = {base}/state
cache directory = {base}/cache
ncalrpc dir = {base}/rpc
binddns dir = {base}/private
usershare path =
[{share}]
path = /
vfs objects = ceph
ceph:config_file = {conf}
ceph:user_id = {user}
kernel share modes = no
oplocks = no
guest ok = yes
read only = no
force user = {account}
create mask = 0644
directory mask = 0755
"""


def _prepare_smb(place: GatewayPlace) -> Launch:
    for name in _SMB_DIRECTORIES:
        (place.sockets / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    configuration = place.configure(
        "smb.conf",
        _SMB_CONF,
        account=getpass.getuser(),
        guest=_SMB_GUEST,
        log_size=_SMB_LOG_KIBIBYTES_MAX,
        base=place.sockets,
        share=SMB_SHARE,
    )
    # Told only by its configuration, it makes a log in /var/log first; its name in the directory is its own.
    log = place.sockets / "log.smbd"
    log.unlink(missing_ok=True)
    log.symlink_to(place.paths.log(place.name))
    server = [require_program("smbd"), "-F", "--no-process-group", "-l", str(place.sockets)]
    return Launch([*server, "-s", configuration])


SMB = Gateway(
    name="smb",
    words="SMB server Samba",
    programs={"smbd": "samba"},
    plugins={"samba/vfs/ceph.so": "samba-vfs-modules"},
    capabilities={"mon": "allow r", "mds": "allow rw", "osd": "allow rw tag cephfs *=*"},
    prepare=_prepare_smb,
)


XROOTD_POOL = "striped"
_STRIPE_COUNT, _STRIPE_UNIT_BYTES, _OBJECT_BYTES = 1, 4 << 20, 4 << 20
_NOBODY = "65534"
_BUFFER_MEBIBYTES = 2  # its largest buffer unless told otherwise, and the least that it may be told

_XROOTD_CFG = """\
all.export /
all.adminpath {sockets}
all.pidpath {sockets}
xrd.port {port}
{allowed}
ofs.osslib libXrdCeph.so {user}@{pool},{count},{unit},{object}
xrootd.async {asynchronous}
{buffers}
"""


def _prepare_xrootd(place: GatewayPlace) -> Launch:
    # What an earlier one left belongs to another account by the kernel's access(2), which it asks.
    shutil.rmtree(place.sockets, ignore_errors=True)
    place.sockets.mkdir(mode=0o700)
    mebibytes = int(place.spec.setting("xrootd.maxbsz").removesuffix("m"))
    larger = mebibytes > _BUFFER_MEBIBYTES
    # The server refuses to be told its own default.
    buffers = f"xrd.buffers maxbsz {mebibytes}m" if larger else ""
    configuration = place.configure(
        "xrootd.cfg",
        _XROOTD_CFG,
        sockets=place.sockets,
        allowed="\n".join(f"xrd.allow host {host}" for host in _allowed(place.spec.address)),
        pool=XROOTD_POOL,
        count=_STRIPE_COUNT,
        unit=_STRIPE_UNIT_BYTES,
        object=_OBJECT_BYTES,
        buffers=buffers,
        asynchronous=place.spec.setting("xrootd.async"),
    )
    version = "v6" if ":" in place.spec.address else "v4"
    command = [require_program("xrootd"), "-c", configuration, "-I", version]
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


XROOTD = Gateway(
    name="xrootd",
    words="XRootD server",
    programs={"xrootd": "xrootd-server", "setpriv": "util-linux"},
    plugins={"libXrdCeph-5.so": "xrootd-ceph-plugins"},
    capabilities={"mon": "allow r", "osd": f"allow rwx pool={XROOTD_POOL}"},
    prepare=_prepare_xrootd,
)


RGW_BUCKET = "leadline"
_RGW_USER = "leadline"
_RGW_DATA_POOL = "default.rgw.buckets.data"
_RGW_DATA_PGS = "16"
_REQUEST_DEADLINE_S = 60.0


def rgw_credentials(directory: Path) -> Path:
    """The file with the user's keys, in the form of Amazon's tools."""
    return directory / "credentials"


def _prepare_rgw(place: GatewayPlace) -> Launch:
    if not rgw_credentials(place.directory).exists():
        _make_rgw_user(place)
    frontend = f"beast endpoint={place.endpoint}"
    command = [
        require_program("radosgw"), "-f", "-c", str(place.paths.conf), "-n", f"client.{place.name}",
        "--log-to-stderr=true", f"--rgw-frontends={frontend}",
    ]  # fmt: skip
    return Launch(command)


def _make_rgw_user(place: GatewayPlace) -> None:
    """Before the server starts, for both make the pools. RGW draws the keys: no command line shows them."""
    answer = place.tool(
        "radosgw-admin", "-c", str(place.paths.conf), "--id", place.name,
        "user", "create", f"--uid={_RGW_USER}", f"--display-name={_RGW_USER}",
    )  # fmt: skip
    # The first put would make it, with placement groups that are still being made while it is measured.
    place.ceph.run("osd", "pool", "create", _RGW_DATA_POOL, _RGW_DATA_PGS)
    place.ceph.run("osd", "pool", "application", "enable", _RGW_DATA_POOL, "rgw")
    keys = parse_json(answer)["keys"][0]
    access, secret = keys["access_key"], keys["secret_key"]
    text = f"[default]\naws_access_key_id = {access}\naws_secret_access_key = {secret}\n"
    write_private(rgw_credentials(place.directory), text)


def _make_rgw_bucket(place: GatewayPlace) -> None:
    """A PUT signed in the first of S3's two ways, which needs no more than a date."""
    lines = rgw_credentials(place.directory).read_text().splitlines()
    access, secret = (line.partition(" = ")[2] for line in lines[1:3])
    date = formatdate(usegmt=True)
    digest = hmac.new(secret.encode(), f"PUT\n\n\n{date}\n/{RGW_BUCKET}".encode(), hashlib.sha1).digest()
    headers = {"Date": date, "Authorization": f"AWS {access}:{base64.b64encode(digest).decode()}"}
    connection = http.client.HTTPConnection(place.spec.address, place.port, timeout=_REQUEST_DEADLINE_S)
    try:
        connection.request("PUT", f"/{RGW_BUCKET}", headers=headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise LabError(
            f"the bucket {RGW_BUCKET} could not be made: {error}", "See the gateway's log."
        ) from error
    finally:
        connection.close()
    if status != http.client.OK:
        raise LabError(f"the bucket {RGW_BUCKET} could not be made: HTTP {status}", "See the gateway's log.")


RGW = Gateway(
    name="rgw",
    words="S3 server RADOS gateway",
    programs={"radosgw": "radosgw", "radosgw-admin": "radosgw"},
    plugins={},
    capabilities={"mon": "allow rw", "osd": "allow rwx", "mgr": "allow rw"},
    prepare=_prepare_rgw,
    finish=_make_rgw_bucket,
)

KINDS: dict[str, Gateway] = {kind.name: kind for kind in (NFS, SMB, XROOTD, RGW)}
