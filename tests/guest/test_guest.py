"""A real guest: its command's words and end are its own, its mounts the lab's, and nothing of it stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline import lab as leadline_lab
from leadline.lab.cluster import process
from leadline.lab.cluster.process import poll
from leadline.lab.record import read_record
from measured import assert_measured
from support import Command, show

Guest = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

# Everything about one boot in one boot: each costs an emulated machine's start.
LOOK = r"""
uname -r
for name in ceph nfs smb; do
  grep " /mnt/leadline/$name " /proc/self/mountinfo
  echo "written by $name" > /mnt/leadline/$name/replicated/from-$name
done
sync
for reader in ceph nfs smb; do for writer in ceph nfs smb; do
  echo "read $reader $(cat /mnt/leadline/$reader/replicated/from-$writer)"
done; done
echo only in memory > /etc/leadline-was-here
echo on the host > share-file
echo to stderr >&2
exit 7
"""


def runs_no_guest(lab: leadline_lab.Lab) -> bool:
    return not any(
        item.name == "guest" and process.is_running(item) for item in read_record(lab.directory).processes
    )


def left_behind(lab: leadline_lab.Lab) -> list[str]:
    """What of a guest is still there: its files, its tap, its process."""
    found = [str(path) for path in lab.directory.glob("guest*")]
    found += os.listdir(f"/sys/class/net/{lab.record.bridge}/brif")  # noqa: PTH208
    return found + ([] if runs_no_guest(lab) else ["its process"])


def test_three_kernel_clients_see_each_others_bytes_and_the_host_keeps_only_the_share(
    guest: Guest, lab: leadline_lab.Lab, tmp_path: Path
) -> None:
    done = guest("sh", "-c", LOOK, options=("--kernel-mounts", "ceph,nfs,smb"))
    assert done.returncode == 7, done.stderr
    assert "to stderr" in done.stderr.splitlines()
    kernel, *rest = done.stdout.splitlines()
    assert kernel != os.uname().release
    kinds = [line.partition(" - ")[2].split()[0] for line in rest[:3]]
    assert kinds == ["ceph", "nfs4", "cifs"]
    ways = ("ceph", "nfs", "smb")
    assert rest[3:] == [f"read {reader} written by {writer}" for reader in ways for writer in ways]
    mounted = lab.status().targets["replicated"]
    assert (mounted / "from-smb").read_text() == "written by smb\n"
    assert (tmp_path / "share-file").read_text() == "on the host\n"
    assert not Path("/etc/leadline-was-here").exists()
    assert left_behind(lab) == []


def test_no_key_is_in_a_command_line_or_a_file_of_the_guest(
    guest: Guest, lab: leadline_lab.Lab, tmp_path: Path
) -> None:
    keys = [line.split()[-1] for line in lab.record.paths.keyring.read_text().splitlines() if "key =" in line]
    look = "cat /proc/self/mountinfo /proc/cmdline /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' '\\n'"
    done = guest("sh", "-c", look)
    assert done.returncode == 0, done.stderr
    logs = "".join(path.read_text(errors="replace") for path in lab.record.paths.logs.glob("guest*.log"))
    for key in keys:
        assert key not in done.stdout + done.stderr + logs


def test_a_study_in_the_guest_is_marked_as_emulated_and_has_the_kernel_clients_counters(
    guest: Guest, leadline: Command, tmp_path: Path
) -> None:
    study = tmp_path / "tiny.yaml"
    study.write_text(
        "format: leadline.study/1\nname: tiny\ntitle: Tiny\nblocks: 1\n"
        "defaults: {size: 8M, bs: 1M, direct: true, time_based: true, runtime: 4s, ramp_time: 0s}\n"
        "works:\n  write: {rw: write}\n"
    )
    words = ("--target", "kernel=/mnt/leadline/ceph/replicated", "--out", str(tmp_path / "result"))
    done = guest("leadline", "run", str(study), *words, options=("--kernel-mounts", "ceph"))
    assert_measured(done, tmp_path / "result")
    found = show(leadline, tmp_path / "result")
    codes = {code["code"] for cell in found["cells"] for code in cell["validity"]["codes"]}
    assert "emulated_host" in codes
    assert "kernel client" in json.dumps(found)


def test_a_command_that_does_not_exist_ends_with_127(guest: Guest) -> None:
    done = guest("no-such-command-anywhere", options=("--kernel-mounts", "ceph"))
    assert done.returncode == 127, done.stderr
    assert "no-such-command-anywhere" in done.stderr


def test_a_command_that_takes_too_long_is_ended_with_124(guest: Guest, lab: leadline_lab.Lab) -> None:
    done = guest("sleep", "600", options=("--timeout", "3s", "--kernel-mounts", "ceph"))
    assert done.returncode == 124, done.stderr
    assert "did not end within 3 s" in done.stderr
    assert left_behind(lab) == []


def test_a_panic_of_the_guests_kernel_is_an_error_with_its_words(guest: Guest, lab: leadline_lab.Lab) -> None:
    done = guest("sh", "-c", "echo c > /proc/sysrq-trigger; sleep 60", options=("--kernel-mounts", "ceph"))
    assert done.returncode == 125
    assert "panicked" in done.stderr
    assert "guest-console.log" in done.stderr
    assert left_behind(lab) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_command_and_ends_the_guest(
    number: signal.Signals, guest_process: Start, lab: leadline_lab.Lab, tmp_path: Path
) -> None:
    heard = f"trap 'echo heard > heard; exit 0' {number.name[3:]}"
    trap = f"{heard}; echo ready > ready; while true; do sleep 0.2; done"
    started = guest_process("sh", "-c", trap, options=("--kernel-mounts", "ceph"))
    assert poll((tmp_path / "ready").exists, 240.0)
    started.send_signal(number)
    assert started.wait(120) == 128 + number
    assert (tmp_path / "heard").read_text() == "heard\n"
    assert left_behind(lab) == []


def test_a_guest_whose_leadline_was_killed_powers_off_by_itself(
    guest_process: Start, lab: leadline_lab.Lab, tmp_path: Path
) -> None:
    started = guest_process("sh", "-c", "echo ready > ready; sleep 600", options=("--kernel-mounts", "ceph"))
    assert poll((tmp_path / "ready").exists, 240.0)
    assert not runs_no_guest(lab)
    started.kill()
    started.wait(30)
    assert poll(lambda: runs_no_guest(lab), 120.0)


def test_a_lab_that_is_down_has_no_guest(leadline: Command, tmp_path: Path) -> None:
    done = leadline("lab", "guest", str(tmp_path / "nowhere"), "--", "true")
    assert done.returncode == 125
    assert "does not exist" in done.stderr
