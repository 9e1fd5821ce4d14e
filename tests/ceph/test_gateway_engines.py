"""nfs:// and s3:// against the session lab's gateways: real servers on a real Ceph."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from healthy import wait_until_healthy

from leadline import _core
from leadline import lab as leadline_lab
from leadline.store.reader import Result, open_result
from measured import SERVED, assert_measured
from rpc_proxy import between
from support import Command, command_line
from undoing import links_are_not_followed, only_what_is_marked_goes

pytestmark = pytest.mark.ceph

STUDY = """
format: leadline.study/1
blocks: 1
limits: {reserve: 100M}
defaults: {size: 4M, runtime: 1s, time_based: true, iodepth: 8, verify: true}
works:
  seqwrite_1m: {rw: write, bs: 1M}
  randread_64k: {rw: randread, bs: 64k}
  randread_2m: {rw: randread, bs: 2M, iodepth: 2}
"""
Urls = dict[str, str]


@pytest.fixture(scope="module")
def urls(lab: leadline_lab.Lab) -> Iterator[Urls]:
    """The ways' URLs, both versions of NFS, with what they need in the environment."""
    ways = {target.way: target for target in lab.targets()}
    for way in ("nfs", "s3"):
        assert not ways[way].reason, ways[way].reason
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ways["s3"].variables.items():
            patch.setenv(name, value)
        export, _, chosen = ways["nfs"].where.partition("?")
        assert "version=3" in chosen
        s3 = f"{ways['s3'].where}&object_size=1M"
        yield {"nfs": f"{export}?version=4", "nfs3": f"{export}?{chosen}", "s3": s3}


def options(urls: Urls) -> tuple[str, ...]:
    return tuple(word for name, url in urls.items() for word in ("--target", f"{name}={url}"))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "small.yaml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A study of one work, for what ends it."""
    path = tmp_path_factory.mktemp("reading") / "reading.yaml"
    path.write_text("".join(line for line in STUDY.splitlines(keepends=True) if "m: {rw" not in line))
    return str(path)


@pytest.fixture(scope="module")
def result(urls: Urls, leadline: Command, study: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    out = tmp_path_factory.mktemp("run") / "r"
    done = leadline("run", str(study), *options(urls), "--out", str(out))
    assert_measured(done, out, SERVED)
    return open_result(out)


def exported(lab: leadline_lab.Lab) -> Path:
    return lab.status().targets["replicated"]


def kept_keys(urls: Urls) -> str:
    endpoint = urls["s3"].partition("endpoint=http://")[2].partition("&")[0]
    return s3cmd(endpoint, "ls", "--recursive", "s3://leadline/")


def s3cmd(endpoint: str, *arguments: str) -> str:
    """Runs it with the credentials of the environment's file."""
    words = Path(os.environ["AWS_SHARED_CREDENTIALS_FILE"]).read_text().splitlines()
    found = dict(line.replace(" ", "").split("=", 1) for line in words if "=" in line)
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": found["aws_access_key_id"],
        "AWS_SECRET_ACCESS_KEY": found["aws_secret_access_key"],
    }
    done = subprocess.run(
        [
            "s3cmd",
            "-c",
            "/dev/null",
            "--no-ssl",
            f"--host={endpoint}",
            f"--host-bucket={endpoint}",
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environment,
    )
    return done.stdout


def test_every_byte_read_back_is_the_byte_that_was_written(result: Result) -> None:
    trials = result.trials()
    assert {trial.state for trial in trials} == {"complete"}
    assert len(trials) == 3 * 3
    assert all(trial.verified_blocks > 0 for trial in trials if trial.read_operations)


def test_the_targets_know_what_they_are_on(result: Result, leadline: Command) -> None:
    shown = json.loads(leadline("show", str(result.path), "--json").stdout)
    words = {target["name"]: (target["access"], target["words"]) for target in shown["targets"]}
    assert words["nfs"][0] == "libnfs"
    assert "NFS version 4" in words["nfs"][1]
    assert "NFS version 3" in words["nfs3"][1]
    assert words["s3"][0] == "s3"
    assert "bucket leadline" in words["s3"][1]
    assert "objects of 1 MiB" in words["s3"][1]


def test_nothing_stays_on_the_export_or_in_the_bucket(
    result: Result, lab: leadline_lab.Lab, urls: Urls
) -> None:
    assert result.complete
    assert not list(exported(lab).glob("leadline-*"))
    assert "leadline-" not in kept_keys(urls)


def job(directory: str, location: str, engine: str, **changes: Any) -> str:
    plain: dict[str, Any] = {
        "format": "leadline.job/1", "trial": "t1", "directory": directory, "prefix": "data",
        "rw": "randread", "rwmixread": 50, "bs": 65536, "size": 4 << 20, "nrfiles": 1, "numjobs": 1,
        "iodepth": 4, "engine": engine, "direct": True, "overwrite": False, "fsync": 0,
        "end_fsync": False, "time_based": False, "runtime_ns": 0, "ramp_time_ns": 0,
        "rate_bytes_per_s": None, "rate_iops": None, "arrival": "constant", "verify": True,
        "incompressible": True, "sqthread_poll": False, "seed": 7, "generation": 1,
        "interval_ns": 1_000_000_000, "deadline_ns": 60_000_000_000, "parent_pid": None,
        "location": location,
    }  # fmt: skip
    return json.dumps({**plain, **changes})


@pytest.mark.parametrize("way", ["nfs", "nfs3"])
def test_a_byte_flipped_through_the_mount_is_found_through_nfs(
    lab: leadline_lab.Lab, urls: Urls, way: str
) -> None:
    """One job's file by two ways is the same; ceph-fuse harms what libnfs wrote."""
    name = f"/flip-{way}"
    volume = _core.Volume(urls[way])
    volume.make_directory(name)
    directory = exported(lab) / name[1:]
    try:
        words = job(name, urls[way], "libnfs")
        _core.layout(words)
        mounted = json.loads(job(str(directory), "", "psync", iodepth=1, direct=False, prefix="other"))
        del mounted["location"]
        _core.layout(json.dumps(mounted))
        assert (directory / "data.0.0").read_bytes() == (directory / "other.0.0").read_bytes()
        assert _core.check(words)["mismatches_total"] == 0
        with (directory / "data.0.0").open("r+b") as file:
            file.seek(1 << 20)
            old = file.read(1)
            file.seek(1 << 20)
            file.write(bytes([old[0] ^ 1]))
            file.flush()
            os.fsync(file.fileno())
        found = _core.check(words)
        assert found["mismatches_total"] == 1
        assert found["mismatches"][0]["offset"] == 1 << 20
    finally:
        (directory / "other.0.0").unlink(missing_ok=True)
        volume.remove_files(name, "", 30.0)
        volume.remove_directory(name, ".leadline")


def test_a_byte_flipped_by_s3cmd_is_found(urls: Urls, tmp_path: Path) -> None:
    endpoint = urls["s3"].partition("endpoint=http://")[2].partition("&")[0]
    key = "s3://leadline/flip-s3/data.0.0.000000000002"
    volume = _core.Volume(urls["s3"])
    try:
        words = job("/flip-s3", urls["s3"], "s3")
        _core.layout(words)
        copy = tmp_path / "object"
        s3cmd(endpoint, "get", key, str(copy))
        data = bytearray(copy.read_bytes())
        assert data == volume.get("/flip-s3/data.0.0.000000000002", 2 << 20)
        assert len(data) == 1 << 20
        data[0] ^= 1
        copy.write_bytes(data)
        s3cmd(endpoint, "put", str(copy), key)
        found = _core.check(words)
        assert found["mismatches_total"] == 1
        assert found["mismatches"][0]["offset"] == 2 << 20
    finally:
        volume.remove_files("/flip-s3", "", 30.0)


def place_of(url: str) -> tuple[tuple[str, int], str]:
    host, _, path = url.partition("?")[0].removeprefix("nfs://").partition("/")
    server, _, port = host.partition(":")
    return (server, int(port)), path


def test_the_server_sees_as_many_calls_at_once_as_the_job_says(
    urls: Urls, leadline: Command, tmp_path: Path
) -> None:
    server, path = place_of(urls["nfs"])
    text = STUDY.split("  seqwrite_1m", maxsplit=1)[0].replace("iodepth: 8", "iodepth: 32") + (
        "  randread_16k: {rw: randread, bs: 16k}\n"
    )
    (tmp_path / "deep.yaml").write_text(text)
    with between(server) as (proxy, port):
        proxy.together = 32
        url = f"nfs://127.0.0.1:{port}/{path}"
        out = str(tmp_path / "r")
        done = leadline("run", str(tmp_path / "deep.yaml"), "--target", f"n={url}", "--out", out)
        assert_measured(done, tmp_path / "r", SERVED)
        assert proxy.most_at_once == 32


def running(out: Path, *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [*command_line("run", *arguments, "--out", str(out), "--quiet"), "--ignore-health"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    journal = out / "events.jsonl"
    while not (journal.exists() and '"trial_started"' in journal.read_text()):
        assert time.monotonic() < end, "no trial began"
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.05)
    return process


def test_a_connection_that_is_cut_is_a_clear_error_and_the_result_is_whole(
    urls: Urls, reading: str, tmp_path: Path, leadline: Command
) -> None:
    server, path = place_of(urls["nfs"])
    out = tmp_path / "r"
    with between(server) as (proxy, port):
        url = f"nfs://127.0.0.1:{port}/{path}"
        process = running(out, reading, "--target", f"n={url}", "--set", "runtime=30s")
        seen = proxy.answers
        end = time.monotonic() + 30
        while proxy.answers < seen + 20 and time.monotonic() < end:
            time.sleep(0.02)
        proxy.cut()
        _, errors = process.communicate(timeout=150)
        assert process.returncode == 3, errors
        assert "not connected" in errors, errors
        undone = leadline("undo", str(out))
        assert undone.returncode == 0, undone.stderr
    assert open_result(out).trials()


def test_a_run_that_is_killed_leaves_what_undo_removes(
    urls: Urls, lab: leadline_lab.Lab, study: Path, tmp_path: Path, leadline: Command
) -> None:
    out = tmp_path / "r"
    process = running(out, str(study), *options(urls))
    process.kill()
    process.wait(30)
    undone = leadline("undo", str(out))
    assert undone.returncode == 0, undone.stderr
    assert not list(exported(lab).glob("leadline-*"))
    assert "leadline-" not in kept_keys(urls)


@pytest.mark.parametrize("way", ["nfs", "nfs3"])
def test_undo_removes_only_what_carries_the_mark_and_follows_no_link(
    urls: Urls, lab: leadline_lab.Lab, tmp_path: Path, leadline: Command, way: str
) -> None:
    top = exported(lab) / f"undoing-{way}"

    def at(name: str) -> str:
        _core.Volume(urls[way]).make_directory(f"/{top.name}/{name}")
        return urls[way].replace("/replicated", f"/replicated/{top.name}/{name}")

    top.mkdir()
    try:
        only_what_is_marked_goes(leadline, tmp_path, at)
        links_are_not_followed(leadline, tmp_path, at("links"), top / "links")
    finally:
        shutil.rmtree(top)


def test_a_server_that_stops_answering_ends_the_trial_by_its_deadline(
    urls: Urls, lab: leadline_lab.Lab, reading: str, tmp_path: Path, leadline: Command
) -> None:
    out = tmp_path / "r"
    server = next(daemon.pid for daemon in lab.status().daemons if "nfs" in daemon.name)
    arguments = (reading, *options(urls)[:2], "--set", "runtime=4s", "--grace", "2s")
    process = running(out, *arguments)
    os.kill(server, signal.SIGSTOP)
    try:
        _, errors = process.communicate(timeout=120)
    finally:
        os.kill(server, signal.SIGCONT)
        wait_until_healthy(lab)
    assert process.returncode == 3, errors
    assert "deadline" in errors, errors
    undone = leadline("undo", str(out))
    assert undone.returncode == 0, undone.stderr
    assert not list(exported(lab).glob("leadline-*"))


@pytest.mark.parametrize(
    ("way", "old", "new", "words"),
    [
        ("nfs", "/ceph/replicated", "/nowhere", "no such export or directory"),
        ("s3", "s3://leadline", "s3://otherbucket", "NoSuchBucket"),
    ],
)
def test_a_url_that_leads_nowhere_is_one_clear_error(
    urls: Urls, leadline: Command, study: Path, way: str, old: str, new: str, words: str
) -> None:
    target = urls[way].replace(old, new)
    assert target != urls[way]
    done = leadline("plan", str(study), "--target", f"x={target}", deadline_s=60)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_secret_is_refused_and_never_printed(
    urls: Urls, leadline: Command, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret-of-nobody")
    done = leadline("plan", str(study), "--target", f"x={urls['s3']}", deadline_s=60)
    assert done.returncode == 2
    assert "check the credentials" in done.stderr
    assert "wrong-secret" not in done.stderr
