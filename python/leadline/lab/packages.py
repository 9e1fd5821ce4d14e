"""Which Debian packages a lab needs and this machine lacks. Nothing is started to find out."""

from __future__ import annotations

import shutil

from leadline.errors import LabError

# program -> the Debian package that carries it
PROGRAMS = {
    "ceph": "ceph-common",
    "ceph-authtool": "ceph-common",
    "monmaptool": "ceph-common",
    "ceph-mon": "ceph-mon",
    "ceph-mgr": "ceph-mgr",
    "ceph-osd": "ceph-osd",
    "ceph-mds": "ceph-mds",
    "ceph-fuse": "ceph-fuse",
}
_UNMOUNT_PACKAGE = "fuse3"


def missing(*, mount: bool = True) -> list[str]:
    """Debian packages to install before a lab can start, sorted; empty where nothing lacks.

    `mount` False leaves out what only a mounted lab needs.
    """
    lacking = {
        package
        for program, package in PROGRAMS.items()
        if (mount or program != "ceph-fuse") and shutil.which(program) is None
    }
    if mount and not any(shutil.which(program) for program in ("fusermount3", "fusermount")):
        lacking.add(_UNMOUNT_PACKAGE)
    return sorted(lacking)


def require(*, mount: bool) -> None:
    """Raises LabError naming the packages that lack and the command that installs them."""
    lacking = missing(mount=mount)
    if lacking:
        raise LabError(
            f"Ceph is not installed in full on this machine; missing: {', '.join(lacking)}",
            f"Run as root: apt-get install --no-install-recommends {' '.join(lacking)}",
        )
