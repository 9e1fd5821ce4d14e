"""Programs that the lab runs for a moment: what the kernel holds on to does not hold up the lab."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import slow_fuse
from leadline.errors import LabError
from leadline.lab.cluster import process

LATE_MS = 6000


@pytest.mark.skipif(slow_fuse.missing() is not None, reason=str(slow_fuse.missing()))
def test_a_program_that_not_even_a_kill_ends_is_left(tmp_path: Path) -> None:
    """It waits for a file system that has taken its question and does not answer, as `umount` may."""
    with slow_fuse.mounted(slow_fuse.build(), tmp_path, 0) as mount:
        (mount.backing / "file").write_text("x" * 4096)
        mount.rules(read_ms=LATE_MS)
        with pytest.raises(LabError, match="no answer within 0 s from: dd"):
            process.run_tool(["dd", f"if={mount.path}/file", "of=/dev/null"], os.environ, deadline_s=0.4)
        (child,) = children("dd")  # else it was waited for
        assert os.waitpid(child, 0)[0] == child


def children(command: str) -> list[int]:
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = place.read_text(errors="replace")
        except OSError:
            continue
        name, _, rest = text.partition("(")[2].rpartition(")")
        if name == command and int(rest.split()[1]) == os.getpid():
            found.append(int(place.parent.name))
    return found
