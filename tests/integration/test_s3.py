"""s3:// against a service in memory: what it is asked, and what becomes of its failures."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leadline import _core
from leadline.store.reader import open_result
from measured import BRIEF, assert_measured
from s3_server import BUCKET, Service, error, serving
from support import Command, Start, wait_for_event
from undoing import (
    MARK,
    OURS,
    PRECIOUS,
    crafted,
    intended,
    only_what_is_marked_goes,
    other_directories_are_refused,
)

SECRET = "do-not-print-this-secret"  # noqa: S105 - of no service
# What the journal has when a trial did not end well.
ENDED = ('"trial_finished"', '"trial_failed"', '"trial_not_run"', '"target_lost"')
STUDY = """
format: leadline.study/1
blocks: 1
defaults: {size: 1M, runtime: 300ms, time_based: true, iodepth: 4, verify: true}
works:
  write: {rw: write, bs: 128k}
  read: {rw: randread, bs: 16k}
"""


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-the-test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


@pytest.fixture
def service() -> Iterator[tuple[Service, str]]:
    with serving() as found:
        yield found


def study_of(tmp_path: Path, text: str = STUDY) -> str:
    path = tmp_path / "s3.yaml"
    path.write_text(text)
    return str(path)


def target(endpoint: str, options: str = "&object_size=128k", bucket: str = BUCKET) -> tuple[str, str]:
    return ("--target", f"s=s3://{bucket}/some/where?endpoint={endpoint}{options}")


def test_what_was_put_is_what_is_read_and_nothing_stays(
    leadline: Command, service: tuple[Service, str], tmp_path: Path
) -> None:
    found, endpoint = service
    found.objects["some/where/of-others"] = b"stays"
    out = tmp_path / "r"
    done = leadline("run", study_of(tmp_path), *target(endpoint), "--out", str(out))
    assert_measured(done, out)
    trials = {trial.work: trial for trial in open_result(out).trials()}
    assert {trial.state for trial in trials.values()} == {"complete"}
    assert trials["read"].verified_blocks > 0
    assert trials["write"].write_operations > 0
    assert found.objects == {"some/where/of-others": b"stays"}
    everything = "".join(path.read_text(errors="replace") for path in out.rglob("*") if path.is_file())
    assert SECRET not in everything + done.stdout + done.stderr


def test_objects_longer_than_a_part_are_uploaded_in_parts(
    leadline: Command, service: tuple[Service, str], tmp_path: Path
) -> None:
    found, endpoint = service
    where = target(endpoint, "&object_size=128k&part_size=32k")
    done = leadline("run", study_of(tmp_path), *where, "--out", str(tmp_path / "r"))
    assert_measured(done, tmp_path / "r")
    assert found.asked["begin"] > 0
    assert found.asked["part"] == 4 * found.asked["begin"]
    assert found.asked["complete"] == found.asked["begin"]
    assert found.uploads == {}
    assert found.objects == {}


def test_the_service_sees_as_many_requests_at_once_as_the_job_says(
    leadline: Command, service: tuple[Service, str], tmp_path: Path
) -> None:
    found, endpoint = service
    found.together = 16
    text = STUDY.replace("iodepth: 4", "iodepth: 16").replace("  write: {rw: write, bs: 128k}\n", "")
    done = leadline("run", study_of(tmp_path, text), *target(endpoint), "--out", str(tmp_path / "r"))
    assert_measured(done, tmp_path / "r")
    assert found.most_at_once == 16


def test_a_write_of_a_part_of_an_object_is_refused_by_the_plan(
    leadline: Command, service: tuple[Service, str], tmp_path: Path
) -> None:
    done = leadline("plan", study_of(tmp_path), *target(service[1], "&object_size=1M"))
    assert done.returncode == 2
    assert "would change a part of an object of 1m" in done.stderr
    assert "object_size=128k" in done.stderr


def test_operations_on_names_are_those_that_s3_has(
    leadline: Command, service: tuple[Service, str], tmp_path: Path
) -> None:
    text = (
        "format: leadline.study/1\nblocks: 1\nworks:\n"
        "  names: {operations: [create, stat, readdir, unlink], files: 8}\n"
    )
    done = leadline("run", study_of(tmp_path, text), *target(service[1]), "--out", str(tmp_path / "r"))
    assert_measured(done, tmp_path / "r", BRIEF)
    assert service[0].objects == {}
    refused = leadline("plan", study_of(tmp_path, text.replace("stat", "rename")), *target(service[1]))
    assert refused.returncode == 2
    assert "rename" in refused.stderr


def test_a_changed_byte_is_found(service: tuple[Service, str]) -> None:
    from leadline import _core

    found, endpoint = service
    location = target(endpoint)[1].removeprefix("s=")
    job: dict[str, Any] = {
        "format": "leadline.job/1", "trial": "t1", "directory": "/flip", "prefix": "data",
        "rw": "randread", "rwmixread": 50, "bs": 65536, "size": 1 << 20, "nrfiles": 1, "numjobs": 1,
        "iodepth": 4, "engine": "s3", "direct": True, "overwrite": False, "fsync": 0,
        "end_fsync": False, "time_based": False, "runtime_ns": 0, "ramp_time_ns": 0,
        "rate_bytes_per_s": None, "rate_iops": None, "arrival": "constant", "verify": True,
        "incompressible": True, "sqthread_poll": False, "seed": 7, "generation": 1,
        "interval_ns": 1_000_000_000, "deadline_ns": 60_000_000_000, "parent_pid": None,
        "location": location,
    }  # fmt: skip
    words = json.dumps(job)
    _core.layout(words)
    assert len(found.objects) == 8
    assert _core.check(words)["mismatches_total"] == 0
    key = sorted(found.objects)[3]
    data = bytearray(found.objects[key])
    data[5] ^= 1
    found.objects[key] = bytes(data)
    harmed = _core.check(words)
    assert harmed["mismatches_total"] == 1
    assert harmed["mismatches"][0]["offset"] == 3 * (128 << 10)


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ((403, error("AccessDenied")), "check the credentials"),
        ((403, error("SignatureDoesNotMatch")), "check the credentials"),
        ((503, error("SlowDown")), "overloaded"),
        ((200, "<html>a web server</html>"), "endpoint= is that of an S3 service"),
        ((404, "<html>nothing here</html>"), "HTTP status 404"),
        ((418, "teapot"), "endpoint= is that of an S3 service"),
    ],
)
def test_a_service_that_refuses_is_one_clear_error(
    leadline: Command,
    service: tuple[Service, str],
    tmp_path: Path,
    failure: tuple[int, str],
    words: str,
) -> None:
    service[0].failure = failure
    done = leadline("plan", study_of(tmp_path), *target(service[1]))
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stderr


def test_a_bucket_that_is_not_there_is_named(
    leadline: Command, service: tuple[Service, str], tmp_path: Path
) -> None:
    done = leadline("plan", study_of(tmp_path), *target(service[1], bucket="other"))
    assert done.returncode == 2
    assert "NoSuchBucket" in done.stderr


def test_an_endpoint_without_a_service_says_so(leadline: Command, tmp_path: Path) -> None:
    done = leadline("plan", study_of(tmp_path), *target("http://127.0.0.1:1"))
    assert done.returncode == 2
    assert "see whether the service runs" in done.stderr


def test_absent_credentials_name_both_places(
    leadline: Command, service: tuple[Service, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    done = leadline("plan", study_of(tmp_path), *target(service[1]))
    assert done.returncode == 2
    assert "AWS_SECRET_ACCESS_KEY" in done.stderr
    assert ".aws/credentials" in done.stderr


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ((403, error("QuotaExceeded")), "Disk quota exceeded"),
        ((403, error("AccessDenied")), "Permission denied"),
        ((507, ""), "No space left on device"),
    ],
)
def test_a_write_that_is_refused_ends_the_trial_with_its_reason(
    leadline: Command,
    service: tuple[Service, str],
    tmp_path: Path,
    failure: tuple[int, str],
    words: str,
) -> None:
    found, endpoint = service
    # The mark is written by a PUT as well: only objects in parts are refused.
    found.failure, found.fails_only = failure, "part"
    text = STUDY.replace("  read: {rw: randread, bs: 16k}\n", "")
    where = target(endpoint, "&object_size=128k&part_size=64k")
    out = tmp_path / "r"
    done = leadline("run", study_of(tmp_path, text), *where, "--out", str(out))
    assert done.returncode != 0
    assert words in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


LONG = ("--quiet", "--set", "runtime=30s")


def test_an_interrupted_run_leaves_nothing(
    start: Start, service: tuple[Service, str], tmp_path: Path
) -> None:
    out = tmp_path / "r"
    process = start("run", study_of(tmp_path), *target(service[1]), "--out", str(out), *LONG)
    wait_for_event(out, "trial_started")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert service[0].objects == {}


def test_a_killed_run_leaves_what_undo_removes(
    start: Start, leadline: Command, service: tuple[Service, str], tmp_path: Path
) -> None:
    found, endpoint = service
    out = tmp_path / "r"
    process = start("run", study_of(tmp_path), *target(endpoint), "--out", str(out), *LONG)
    wait_for_event(out, "trial_started")
    process.kill()
    process.wait(30)
    assert found.objects
    name = next(iter(found.objects)).split("/leadline-")[1].split("/")[0]
    found.uploads["u-left"] = (f"some/where/leadline-{name}/data.0.0.000000000000", {})
    undone = leadline("undo", str(out))
    assert undone.returncode == 0, undone.stderr
    assert found.objects == {}
    assert found.uploads == {}


def test_a_service_that_stops_answering_ends_the_trial_by_its_deadline(
    start: Start, service: tuple[Service, str], tmp_path: Path
) -> None:
    found, endpoint = service
    out = tmp_path / "r"
    words = ("run", study_of(tmp_path), *target(endpoint), "--out", str(out))
    process = start(*words, "--quiet", "--set", "runtime=1s", "--grace", "1s")
    end = time.monotonic() + 60
    while found.asked["get"] + found.asked["put"] < 20 and time.monotonic() < end:
        time.sleep(0.02)
    found.stalls.set()
    journal, end = out / "events.jsonl", time.monotonic() + 60
    while not any(word in journal.read_text() for word in ENDED) and time.monotonic() < end:
        time.sleep(0.1)
    # Removing would wait for the service as well.
    found.stalls.clear()
    _, errors = process.communicate(timeout=110)
    assert process.returncode not in (0, None), errors
    assert "deadline" in errors or "no answer" in errors, errors
    assert "Traceback" not in errors


def test_undo_removes_only_what_carries_the_mark(
    leadline: Command, service: tuple[Service, str], tmp_path: Path
) -> None:
    def at(name: str) -> str:
        return f"s3://{BUCKET}/{name}?endpoint={service[1]}"

    only_what_is_marked_goes(leadline, tmp_path, at, makes_directories=False)


@pytest.mark.parametrize("lists_everything", [False, True])
def test_keys_that_lead_elsewhere_are_not_removed(
    leadline: Command, service: tuple[Service, str], tmp_path: Path, lists_everything: bool
) -> None:
    """`..` in a key leads to another once it stands in a URL; a service may list what nobody asked for."""
    found, endpoint = service
    found.objects = {f"top{OURS}/.leadline": MARK, "victim": PRECIOUS}
    if not lists_everything:
        found.objects[f"top{OURS}/../../victim"] = b""
    found.ignores_prefix = lists_everything
    url = {"s": f"s3://{BUCKET}/top?endpoint={endpoint}"}
    done = leadline("undo", str(crafted(tmp_path / "r", url, intended(url))))
    assert done.returncode == 1, done.stdout
    assert "could not be removed" in done.stderr
    assert found.objects["victim"] == PRECIOUS


def test_a_result_leads_undo_to_no_other_keys(
    leadline: Command, service: tuple[Service, str], tmp_path: Path
) -> None:
    other_directories_are_refused(leadline, tmp_path, f"s3://{BUCKET}/top?endpoint={service[1]}")


def test_what_was_not_asked_for_is_never_removed(service: tuple[Service, str]) -> None:
    """An endpoint that knows no prefix lists all there is: none of it is taken for ours."""
    here, endpoint = service
    volume = _core.Volume(f"s3://{BUCKET}/some/where?endpoint={endpoint}")
    here.objects |= {"film.mov": b"mine", "some/where/leadline-0badcafe/w.0": b"ours", "zoo": b"mine"}
    before = dict(here.objects)
    here.ignores_prefix = True
    with pytest.raises(OSError, match="not asked for"):
        volume.remove_files("leadline-0badcafe", "", 10.0)
    assert here.objects == before
    here.ignores_prefix = False
    assert not volume.remove_files("leadline-0badcafe", "", 10.0)
    assert here.objects == {"film.mov": b"mine", "zoo": b"mine"}
