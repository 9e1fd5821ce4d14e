"""Targets behind servers: SMB by libsmbclient and XRootD by its client, on servers of the tests' own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from counting_proxy import counting_proxy
from servers import PASSWORD, smb_server, user_name, wait_for_port, xrootd_conf, xrootd_server

from leadline import _core
from leadline.store.reader import open_result
from measured import assert_measured
from support import Command, Process, Start
from undoing import links_are_not_followed, only_what_is_marked_goes, other_directories_are_refused

STUDY = """
format: leadline.study/1
blocks: 1
limits: {reserve: 1M}
works:
  seqwrite_1m: {rw: write, bs: 1M, size: 8M, runtime: 300ms, time_based: true, iodepth: 4, verify: true}
  randrw_64k: {rw: randrw, bs: 64k, size: 8M, runtime: 300ms, time_based: true, iodepth: 8, verify: true}
  names: {operations: [create, stat, readdir, rename, unlink, mkdir, rmdir], files: 20, numjobs: 2}
"""
VECTOR_READ = 3025  # kXR_readv of XRootD's protocol
ENGINES = {"smb": "libsmbclient", "root": "xrootd"}


@dataclass(frozen=True)
class Served:
    """A directory, its server, and the URL of the directory there."""

    scheme: str
    url: str
    port: int
    shared: Path
    process: subprocess.Popen[bytes]

    def at(self, place: str) -> str:
        """Another URL of the same server."""
        return f"{self.scheme}://127.0.0.1:{self.port}/{place}"


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory that a server without rights can enter, as pytest's own is not."""
    path = Path(tempfile.mkdtemp(prefix="leadline-servers-", dir="/var/tmp"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def directory(place: Path, name: str) -> Path:
    path = place / name
    path.mkdir()
    path.chmod(0o777)
    return path


@pytest.fixture(scope="module")
def smb(place: Path) -> Iterator[Served]:
    shared = directory(place, "smb-files")
    with smb_server(directory(place, "smb"), shared) as (port, process):
        yield Served("smb", f"smb://127.0.0.1:{port}/open", port, shared, process)


@pytest.fixture(scope="module")
def root(place: Path) -> Iterator[Served]:
    own, shared = directory(place, "xrootd"), directory(place, "xrootd-files")
    if "xrootd" not in {one["name"] for one in _core.engines() if one["available"]}:
        pytest.skip("this build has no shim for XRootD's client")
    with xrootd_server(own, xrootd_conf(own, shared)) as (port, process):
        yield Served("root", f"root://127.0.0.1:{port}//", port, shared, process)


@pytest.fixture(params=["smb", "root"])
def served(request: pytest.FixtureRequest) -> Served:
    found: Served = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(STUDY)
    return path


def job(directory: str, location: str | None, engine: str, **changes: Any) -> str:
    plain: dict[str, Any] = {
        "format": "leadline.job/1", "trial": "t1", "directory": directory, "prefix": "data",
        "rw": "randread", "rwmixread": 50, "bs": 65536, "size": 4 << 20, "nrfiles": 1, "numjobs": 1,
        "iodepth": 4, "engine": engine, "direct": False, "overwrite": False, "fsync": 0,
        "end_fsync": False, "time_based": False, "runtime_ns": 0, "ramp_time_ns": 0,
        "rate_bytes_per_s": None, "rate_iops": None, "arrival": "constant", "verify": True,
        "incompressible": True, "sqthread_poll": False, "seed": 7, "generation": 1,
        "interval_ns": 1_000_000_000, "deadline_ns": 60_000_000_000, "parent_pid": None,
    }  # fmt: skip
    own = {} if location is None else {"location": location}
    return json.dumps({**plain, **own, **changes})


def wait_for_trial(out: Path, process: Process, seconds: float = 60) -> None:
    """Returns when a trial of the run has started; fails when the run ends before."""
    file, end = out / "events.jsonl", time.monotonic() + seconds
    while time.monotonic() < end:
        if file.exists() and '"trial_started"' in file.read_text():
            return
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)
    raise AssertionError(f"no trial had started within {seconds} s")


def long_study(tmp_path: Path, runtime: str) -> Path:
    path = tmp_path / "long.yaml"
    path.write_text(
        "format: leadline.study/1\nblocks: 1\nlimits: {reserve: 1M}\nworks:\n"
        f"  long: {{rw: randrw, bs: 64k, size: 4M, runtime: {runtime}, time_based: true, iodepth: 4}}\n"
    )
    return path


def test_every_byte_read_back_is_right_and_nothing_stays(
    served: Served, leadline: Command, small: Path, tmp_path: Path
) -> None:
    done = leadline("run", str(small), "--target", f"s={served.url}", "--out", str(tmp_path / "r"))
    assert_measured(done, tmp_path / "r")
    trials = open_result(tmp_path / "r").trials()
    assert {trial.state for trial in trials} == {"complete"}, done.stdout
    assert all(trial.verified_blocks > 0 for trial in trials if trial.read_operations)
    assert list(served.shared.iterdir()) == []


def test_a_byte_flipped_on_the_server_is_found_through_the_library(served: Served, tmp_path: Path) -> None:
    """The same file by two ways: written by the library, harmed in the directory that is served."""
    engine = ENGINES[served.scheme]
    volume = _core.Volume(served.url)
    volume.make_directory("/flip")
    try:
        words = job("/flip", served.url, engine)
        _core.layout(words)
        path = served.shared / "flip"
        # The server may be another user, whose directories are not worked in: a copy is ours.
        copied = shutil.copytree(path, tmp_path / "flip")
        copied.chmod(0o700)
        assert _core.check(job(str(copied), None, "psync", iodepth=1))["mismatches_total"] == 0
        with (path / "data.0.0").open("r+b") as file:
            file.seek(1 << 20)
            old = file.read(1)
            file.seek(1 << 20)
            file.write(bytes([old[0] ^ 1]))
        found = _core.check(words)
        assert found["mismatches_total"] == 1
        assert found["mismatches"][0]["offset"] == 1 << 20
    finally:
        volume.remove_files("/flip", "", 30.0)
        volume.remove_directory("/flip", ".leadline")


# The attacker's link stands where earlier versions kept the library's settings, in a sticky directory.
SETTINGS_ATTACKED = """
import os, sys
from pathlib import Path
place, url = Path(sys.argv[1]), sys.argv[2]
link = place / f"leadline-smb-{os.getpid()}"
link.symlink_to(place.parent / "victim")
os.lchown(link, 65533, 65533)
os.setgroups([]), os.setgid(65534), os.setuid(65534)
from leadline import _core
print(_core.Volume(url).space()[0] > 0)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="to be two users needs root")
def test_the_link_of_another_user_gets_no_settings_written_through_it(smb: Served, place: Path) -> None:
    temporary, kept = directory(place, "temporary"), directory(place, "victim") / ".smb" / "smb.conf"
    temporary.chmod(0o1777)
    kept.parent.mkdir()
    kept.write_text("the user's own")
    for path in (kept, kept.parent):
        os.chown(path, 65534, 65534)
    done = subprocess.run(
        [sys.executable, "-c", SETTINGS_ATTACKED, str(temporary), smb.url],
        env=os.environ | {"TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "True\n", done.stderr
    assert kept.read_text() == "the user's own"
    assert len(list(temporary.iterdir())) == 1  # the attacker's link: of ours nothing stays


CONNECTING = """
import sys
from leadline import _core
try:
    _core.Volume(sys.argv[1]).space()
    print("answers")
except OSError:
    print("does not")
"""


def test_the_users_settings_of_samba_are_not_read_and_those_of_the_url_are(smb: Served, place: Path) -> None:
    own = directory(place, "home") / ".smb" / "smb.conf"
    own.parent.mkdir()
    own.write_text("[global]\nclient max protocol = NT1\n")  # which the server does not speak
    for url, answer in ((smb.url, "answers"), (f"{smb.url}?smb_conf={own}", "does not")):
        done = subprocess.run(
            [sys.executable, "-c", CONNECTING, url],
            env=os.environ | {"HOME": str(own.parent.parent), "TMPDIR": str(place)},
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        assert done.stdout.splitlines()[-1] == answer, url
    assert not list(place.glob("leadline-smb-*"))


def test_an_smb_server_sees_a_connection_for_each_operation_in_flight(
    smb: Served, leadline: Command, tmp_path: Path
) -> None:
    study = tmp_path / "deep.yaml"
    study.write_text(
        "format: leadline.study/1\nblocks: 1\nlimits: {reserve: 1M}\nworks:\n"
        "  deep: {rw: randread, bs: 4k, size: 4M, runtime: 2s, time_based: true, iodepth: 16}\n"
    )
    with counting_proxy(smb.port, 0) as proxy:
        url = f"smb://127.0.0.1:{proxy.port}/open"
        done = leadline("run", str(study), "--target", f"s={url}", "--out", str(tmp_path / "r"))
    assert_measured(done, tmp_path / "r")
    # One more is the volume's own, which made the files.
    assert proxy.most_connections >= 16 + 1


def test_an_xrootd_server_sees_as_many_requests_at_once_as_the_depth(
    root: Served, leadline: Command, tmp_path: Path
) -> None:
    study = tmp_path / "deep.yaml"
    study.write_text(
        "format: leadline.study/1\nblocks: 1\nlimits: {reserve: 1M}\nworks:\n"
        "  deep: {rw: randread, bs: 4k, size: 4M, runtime: 1s, time_based: true, iodepth: 32}\n"
    )
    with counting_proxy(root.port, 32) as proxy:
        url = f"root://127.0.0.1:{proxy.port}//"
        done = leadline("run", str(study), "--target", f"s={url}", "--out", str(tmp_path / "r"))
    assert_measured(done, tmp_path / "r")
    assert proxy.most >= 32


@pytest.mark.parametrize("options", ["", "?readv=8"])
def test_vector_reads_give_the_same_bytes(
    root: Served, leadline: Command, tmp_path: Path, options: str
) -> None:
    study, out = tmp_path / "reads.yaml", tmp_path / "r"
    study.write_text(
        "format: leadline.study/1\nblocks: 1\nlimits: {reserve: 1M}\n"
        "defaults: {size: 8M, iodepth: 8, verify: true, time_based: true, runtime: 1s}\n"
        "works: {reads: {rw: randread, bs: 64k}}\n"
    )
    with counting_proxy(root.port, 0) as proxy:
        url = f"root://127.0.0.1:{proxy.port}//{options}"
        done = leadline("run", str(study), "--target", f"s={url}", "--out", str(out))
    assert_measured(done, out)
    (trial,) = open_result(out).trials()
    assert trial.read_operations > 0
    assert trial.verified_blocks * 4096 == trial.total_read_bytes
    assert (proxy.asked[VECTOR_READ] > 0) == bool(options)


@pytest.mark.parametrize(
    ("which", "where", "words"),
    [
        ("smb", "nothere", "check the share"),
        ("smb", "open/nothere", "check the share"),
        ("smb", "own", "refuses a guest"),
        ("root", "/nothere", "check the directory"),
    ],
)
def test_a_url_that_leads_nowhere_is_one_clear_error(
    leadline: Command, small: Path, request: pytest.FixtureRequest, which: str, where: str, words: str
) -> None:
    served: Served = request.getfixturevalue(which)
    done = leadline("plan", str(small), "--target", f"x={served.at(where)}")
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("url", ["smb://127.0.0.1:{port}/share", "root://127.0.0.1:{port}//"])
def test_a_server_that_is_not_there_is_one_clear_error(leadline: Command, small: Path, url: str) -> None:
    done = leadline("plan", str(small), "--target", f"x={url.format(port=1)}")
    assert done.returncode == 2
    assert "does not answer" in done.stderr


def test_a_wrong_password_is_refused_and_shown_nowhere(
    smb: Served, leadline: Command, small: Path, tmp_path: Path
) -> None:
    file = tmp_path / "credentials"
    file.write_text(f"username={user_name()}\npassword=not-this-one\n")
    url = f"{smb.at('own')}?credentials={file}"
    done = leadline("plan", str(small), "--target", f"x={url}")
    assert done.returncode == 2
    assert "refuses" in done.stderr
    assert "not-this-one" not in done.stdout + done.stderr


def test_a_password_opens_a_share_that_guests_may_not_enter(smb: Served, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text(f"username={user_name()}\npassword={PASSWORD}\n")
    assert _core.Volume(f"{smb.at('own')}?credentials={file}").space()[0] > 0


def test_a_share_to_read_only_refuses_the_run_and_keeps_nothing(
    smb: Served, leadline: Command, small: Path, tmp_path: Path
) -> None:
    done = leadline("run", str(small), "--target", f"s={smb.at('fixed')}", "--out", str(tmp_path / "r"))
    assert done.returncode != 0
    assert "Permission denied" in done.stderr + done.stdout
    assert list(smb.shared.iterdir()) == []


def test_a_sync_that_the_library_lacks_is_refused_before_the_run(
    smb: Served, leadline: Command, tmp_path: Path
) -> None:
    study = tmp_path / "synced.yaml"
    study.write_text(
        "format: leadline.study/1\nblocks: 1\nlimits: {reserve: 1M}\nworks:\n"
        "  synced: {rw: write, bs: 64k, size: 4M, fsync: 1}\n"
    )
    done = leadline("plan", str(study), "--target", f"s={smb.url}")
    assert done.returncode == 2
    assert "no call that syncs" in done.stderr


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_leaves_nothing_that_undo_does_not_remove(
    served: Served, leadline: Command, start: Start, tmp_path: Path, how: signal.Signals
) -> None:
    out = tmp_path / "r"
    study = long_study(tmp_path, "20s")
    process = start("run", str(study), "--target", f"s={served.url}", "--out", str(out), "--quiet")
    try:
        wait_for_trial(out, process)
    finally:
        process.send_signal(how)
        process.wait(60)
    if how == signal.SIGKILL:
        undone = leadline("undo", str(out))
        assert undone.returncode == 0, undone.stderr
    assert list(served.shared.iterdir()) == []


def test_a_server_that_stops_answering_ends_the_trial_by_its_deadline(
    leadline: Command, start: Start, tmp_path: Path, served: Served
) -> None:
    out = tmp_path / "r"
    words = ("run", str(long_study(tmp_path, "3s")), "--target", f"s={served.url}", "--out", str(out))
    process = start(*words, "--quiet", "--grace", "1s")
    wait_for_trial(out, process)
    family = [served.process.pid, *(child.pid for child in psutil.Process(served.process.pid).children(True))]
    for pid in family:
        os.kill(pid, signal.SIGSTOP)
    try:
        _, errors = process.communicate(timeout=100)
    finally:
        for pid in family:
            os.kill(pid, signal.SIGCONT)
    wait_for_port(served.port, served.process)
    assert process.returncode == 3, errors
    assert "deadline" in errors, errors
    undone = leadline("undo", str(out))
    assert undone.returncode == 0, undone.stderr
    assert list(served.shared.iterdir()) == []


def test_undo_removes_only_what_carries_the_mark(served: Served, leadline: Command, tmp_path: Path) -> None:
    def at(name: str) -> str:
        directory(served.shared, name)
        return served.url.rstrip("/") + ("//" if served.scheme == "root" else "/") + name

    try:
        only_what_is_marked_goes(leadline, tmp_path, at)
    finally:
        empty(served.shared)


def test_a_result_leads_undo_to_no_other_directory(served: Served, leadline: Command, tmp_path: Path) -> None:
    try:
        other_directories_are_refused(leadline, tmp_path, served.url)
    finally:
        empty(served.shared)


def test_links_in_a_workspace_are_not_followed(served: Served, leadline: Command, tmp_path: Path) -> None:
    try:
        links_are_not_followed(leadline, tmp_path, served.url, served.shared)
    finally:
        empty(served.shared)


def empty(directory: Path) -> None:
    """Tests of this module share what is served."""
    for path in directory.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
