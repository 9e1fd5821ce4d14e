"""SMB: Samba whose vfs_ceph reaches CephFS through libcephfs. Guests act as the lab's owner."""

from __future__ import annotations

import getpass

from leadline.lab.gateways.gateway import Gateway, GatewayPlace, Launch, require_program, write_private

SHARE = "ceph"
_DIRECTORIES = ("private", "lock", "state", "cache", "pid", "rpc")
# Not the lab's owner: a guest's account has an identity of its own in access checks, which owns no file.
_GUEST = "nobody"
_LOG_KIBIBYTES_MAX = 4096  # Samba renames the log to .old and begins another

_TEMPLATE = """\
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


def _prepare(place: GatewayPlace) -> Launch:
    for name in _DIRECTORIES:
        (place.sockets / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    text = _TEMPLATE.format(
        account=getpass.getuser(),
        guest=_GUEST,
        port=place.port,
        address=place.spec.address,
        log_size=_LOG_KIBIBYTES_MAX,
        base=place.sockets,
        share=SHARE,
        conf=place.paths.conf,
        user=place.name,
    )
    configuration = place.directory / "smb.conf"
    write_private(configuration, text)
    # Told only by its configuration, it makes a log in /var/log first; its name in the directory is its own.
    log = place.sockets / "log.smbd"
    log.unlink(missing_ok=True)
    log.symlink_to(place.paths.log(place.name))
    server = [require_program("smbd"), "-F", "--no-process-group", "-l", str(place.sockets)]
    return Launch([*server, "-s", str(configuration)])


GATEWAY = Gateway(
    name="smb",
    words="SMB server Samba",
    programs={"smbd": "samba"},
    plugins={"samba/vfs/ceph.so": "samba-vfs-modules"},
    capabilities={"mon": "allow r", "mds": "allow rw", "osd": "allow rw tag cephfs *=*"},
    prepare=_prepare,
)
