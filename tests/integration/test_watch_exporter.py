"""`leadline watch PATH --exporter`: what Prometheus reads of a mount, and addresses that will not do."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ports import free_ports
from support import Command, command_line

LONG_S = 120


def metrics(port: int) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Samples by name; none while nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    except OSError:
        return {}
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


def test_metrics_of_a_mount_follow_who_uses_it(tmp_path: Path) -> None:
    port = free_ports()
    file = tmp_path / "file"
    file.write_bytes(b"x" * 1_000_000)
    words = command_line(
        "watch", str(tmp_path), "--exporter", str(port), "--for", "1s", "--every", "2s", "--no-bpf"
    )
    with (
        subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as exporter,
        subprocess.Popen(["tail", "-f", str(file)], stdout=subprocess.DEVNULL) as user,
    ):
        try:
            end = time.monotonic() + LONG_S
            while not (found := metrics(port)).get("leadline_watch_users", [({}, 0.0)])[0][1]:
                assert exporter.poll() is None
                assert time.monotonic() < end, found
                time.sleep(0.1)
            here = {"path": str(tmp_path)}
            assert found["leadline_watch_up"] == [(here, 1.0)]
            assert found["leadline_watch_look_seconds"][0][1] == pytest.approx(1.0, abs=0.9)
            assert "tail" in [
                labels["program"] for labels, _ in found["leadline_watch_program_metadata_per_second"]
            ]
            first = found["leadline_watch_last_look_timestamp_seconds"][0][1]
            while metrics(port)["leadline_watch_last_look_timestamp_seconds"][0][1] == first:
                assert time.monotonic() < end
                time.sleep(0.1)
        finally:
            user.terminate()
            exporter.send_signal(signal.SIGINT)
            _, said = exporter.communicate(timeout=LONG_S)
    assert exporter.returncode == 0, said
    assert f"metrics of {tmp_path}: http://127.0.0.1:{port}/metrics" in said


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--exporter", "no-port"), "--exporter no-port: no port"),
        (("--exporter", "127.0.0.1:99999"), "no port"),
        (("--exporter", "--for", "2m"), "a look of 120 s does not fit into 60 s"),
        (("--exporter", "--json"), "are two outputs"),
        (("--exporter", "--every", "0"), "--every 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_an_exporter_cannot_do_is_said_at_once(
    leadline: Command, tmp_path: Path, more: tuple[str, ...], words: str
) -> None:
    done = leadline("watch", str(tmp_path), *more)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_port_that_is_taken_is_named(leadline: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = leadline("watch", str(tmp_path), "--exporter", f"127.0.0.1:{port}")
    assert done.returncode == 2
    assert f"no metrics can be served at 127.0.0.1:{port}" in done.stderr
