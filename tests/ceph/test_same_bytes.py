"""What one way writes another reads: the same bytes, and one that was flipped is found."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from test_gateway_engines import exported, job

from leadline import _core
from leadline import lab as leadline_lab
from leadline.lab.targets import LabTarget

pytestmark = pytest.mark.ceph

ENGINES = {"smb": "libsmbclient", "libcephfs": "libcephfs", "nfs": "libnfs"}


def way(lab: leadline_lab.Lab, name: str) -> LabTarget:
    found = next(target for target in lab.targets() if target.way == name)
    assert not found.reason, found.reason
    return found


def flip(file: Path, offset: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(offset)
        old = opened.read(1)
        opened.seek(offset)
        opened.write(bytes([old[0] ^ 1]))
        opened.flush()
        os.fsync(opened.fileno())


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_a_file_written_through_a_server_or_library_is_the_same_through_the_mount(
    lab: leadline_lab.Lab, name: str
) -> None:
    target = way(lab, name)
    place = f"/same-{name}"
    volume = _core.Volume(target.where)
    volume.make_directory(place)
    # Some targets begin at the top of the file system, others in the replicated directory.
    directory = next(
        top / place[1:] for top in (exported(lab), exported(lab).parent) if (top / place[1:]).is_dir()
    )
    try:
        words = job(place, target.where, ENGINES[name])
        _core.layout(words)
        mounted = json.loads(job(str(directory), "", "psync", iodepth=1, direct=False, prefix="other"))
        del mounted["location"]
        _core.layout(json.dumps(mounted))
        assert (directory / "data.0.0").read_bytes() == (directory / "other.0.0").read_bytes()
        assert _core.check(words)["mismatches_total"] == 0
        flip(directory / "data.0.0", 1 << 20)
        found = _core.check(words)
        assert found["mismatches_total"] == 1
        assert found["mismatches"][0]["offset"] == 1 << 20
    finally:
        (directory / "other.0.0").unlink(missing_ok=True)
        volume.remove_files(place, "", 30.0)
        volume.remove_directory(place, ".leadline")


def test_what_xrootd_writes_the_striper_reads(lab: leadline_lab.Lab) -> None:
    server, striper = way(lab, "xrootd"), way(lab, "radosstriper")
    volume = _core.Volume(striper.where)
    try:
        _core.layout(job("/same-root", server.where, "xrootd"))
        found = _core.check(job("/same-root", striper.where, "radosstriper"))
        assert found["mismatches_total"] == 0
        assert _core.check(job("/same-root", server.where, "xrootd"))["mismatches_total"] == 0
    finally:
        volume.remove_files("/same-root", "", 30.0)
