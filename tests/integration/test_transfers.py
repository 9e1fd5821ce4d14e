"""A study of transfers, run by the real engine on a directory: from options to what is said of its acks."""

from __future__ import annotations

import contextlib
import json
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from servers import need, xrootd_conf, xrootd_server

from leadline import _core
from leadline.store.own import read_acks
from leadline.store.reader import open_result
from leadline.store.tables import TrialRow
from measured import BRIEF, CACHED, assert_measured
from support import Command, show

KIB = 1 << 10
STUDY = """
format: leadline.study/1
limits: {reserve: 1M}
defaults: {streams: 3, buffer: 64k, in_flight: 4, size: 200k, checksum: adler32, direct: false}
works:
  ingest: {transfer: write}
  recall: {transfer: read}
  both: {transfer: duplex, readers: 1}
blocks: 1
"""


def test_a_study_of_transfers_keeps_every_acknowledgement_and_says_what_they_did(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    study, result = tmp_path / "transfers.yaml", tmp_path / "r"
    study.write_text(STUDY)
    done = leadline("run", str(study), "--target", f"a={target}", "--out", str(result))
    assert_measured(done, result, CACHED, BRIEF)
    assert list(target.iterdir()) == []
    assert not (result / "records").exists()
    stored, cells = open_result(result), {one["work"]: one for one in show(leadline, result)["cells"]}
    for row in stored.trials():
        acks = read_acks(stored, row.trial)
        assert acks is not None
        assert (len(acks), acks.lost) == (3 * 4, 0)
        assert acks.reads.sum() == {"ingest": 0, "recall": 12, "both": 4}[row.work]
        for stream in range(3):
            own = acks.stream == stream
            assert sorted(acks.offset[own].tolist()) == [0, 64 * KIB, 128 * KIB, 192 * KIB]
            assert acks.length[own].sum() == 200 * KIB
        assert row.read_bytes + row.write_bytes == acks.result.sum() == 600 * KIB
        summary = {one["stream"]: one for one in json.loads(row.summary)["streams"]}
        assert all(len(summary[stream]["checksum"]) == 8 for stream in range(3))
        drain_ns = int(acks.acked_ns.max() - acks.submitted_ns.max())
        assert np.all(acks.acked_ns >= acks.submitted_ns)
        metrics = cells[row.work]["metrics"]
        assert round(metrics["drain"]["value"] * 1e9) == drain_ns
        assert metrics["bytes_in_flight"]["value"] == 3 * 64 * KIB * 4
    shown = " ".join(leadline("show", str(result), "--all").stdout.split())
    assert "An acknowledged write is in the page cache of this host" in shown


def test_files_of_the_user_arrive_as_they_are(leadline: Command, target: Path, tmp_path: Path) -> None:
    """By their checksum: each stream sends its own."""
    sent, study, result = tmp_path / "sent", tmp_path / "sends.yaml", tmp_path / "r"
    sent.mkdir()
    texts = {name: name.encode() * 4096 for name in ("ab", "cd")}
    for name, text in texts.items():
        (sent / name).write_bytes(text)
    work = "{transfer: write, streams: 2, buffer: 4k, size: 8k, checksum: adler32, direct: false}"
    study.write_text(
        f"format: leadline.study/1\nlimits: {{reserve: 1M}}\nworks: {{send: {work}}}\nblocks: 1\n"
    )
    done = leadline("run", str(study), "--target", f"a={target}", "--input", str(sent), "--out", str(result))
    assert_measured(done, result, CACHED, BRIEF)
    (row,) = open_result(result).trials()
    found = [one["checksum"] for one in json.loads(row.summary)["streams"]]
    assert found == [f"{zlib.adler32(text):08x}" for text in texts.values()]
    hidden = leadline("show", str(result), "--all", "--redact")
    assert str(sent) not in hidden.stdout


def test_a_cell_that_memory_does_not_hold_is_refused_by_the_plan(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    study = tmp_path / "large.yaml"
    work = "{transfer: write, streams: 1024, buffer: 1g, in_flight: 64, size: 1g}"
    study.write_text(f"format: leadline.study/1\nworks: {{huge: {work}}}\n")
    done = leadline("plan", str(study), "--target", f"a={target}")
    assert done.returncode == 2
    assert "1024 x 1g x 64, are 64 TiB outstanding" in " ".join(done.stderr.split())


COPIES = "ofs.tpc ttl 60 60 xfr 8 autorm pgm /usr/bin/xrdcp --server"


@contextlib.contextmanager
def two_servers(*options: str) -> Iterator[list[tuple[int, Path]]]:
    """XRootD servers, the port of each and its directory, which servers without rights can enter."""
    if "xrootd" not in {one["name"] for one in _core.engines() if one["available"]}:
        pytest.skip("this build has no shim for XRootD's client")
    need("xrdcp")
    with tempfile.TemporaryDirectory(prefix="leadline-servers-", dir="/var/tmp") as top:
        paths = [Path(top) / name for name in ("one", "one-files", "two", "two-files")]
        Path(top).chmod(0o777)
        for path in paths:
            path.mkdir()
            path.chmod(0o777)
        with contextlib.ExitStack() as stack:
            found = []
            for place, shared in (paths[:2], paths[2:]):
                port, _ = stack.enter_context(xrootd_server(place, xrootd_conf(place, shared, *options)))
                found.append((port, shared))
            yield found


def copied(leadline: Command, tmp_path: Path, ports: tuple[int, int], size: int) -> TrialRow:
    """The trial of two copies of a file at once, from one server to the other."""
    study, result = tmp_path / "copies.yaml", tmp_path / f"r{size}"
    work = f"{{transfer: copy, streams: 2, size: {size}, source: 'root://127.0.0.1:{ports[0]}//film'}}"
    study.write_text(f"format: leadline.study/1\nblocks: 1\nlimits: {{reserve: 1M}}\nworks: {{c: {work}}}\n")
    done = leadline("run", str(study), "--target", f"a=root://127.0.0.1:{ports[1]}//", "--out", str(result))
    assert result.is_dir(), done.stderr
    return open_result(result).trials()[0]


def test_two_servers_copy_between_them_and_nothing_is_left(leadline: Command, tmp_path: Path) -> None:
    with two_servers(COPIES) as ((sends, here), (takes, there)):
        (here / "film").write_bytes(b"film" * 100_000)
        row = copied(leadline, tmp_path, (sends, takes), 400_000)
        assert (row.state, row.error, row.write_bytes, row.write_operations) == ("complete", None, 800_000, 2)
        assert list(there.iterdir()) == []
        row = copied(leadline, tmp_path, (sends, takes), 409_600)
    assert "the copy has 400000 bytes, and the study says size: 409600" in str(row.error)


def test_servers_that_copy_nothing_between_them_say_what_they_lack(leadline: Command, tmp_path: Path) -> None:
    with two_servers() as ((sends, here), (takes, there)):
        (here / "film").write_bytes(b"film")
        row = copied(leadline, tmp_path, (sends, takes), 4_096)
        assert list(there.iterdir()) == []
    assert row.state == "error"
    assert "tpc not supported" in str(row.error)
    assert "ofs.tpc" in str(row.error)
