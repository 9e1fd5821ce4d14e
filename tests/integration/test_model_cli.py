"""`leadline model` as it is typed: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import Command

CASTOR = ("aggregate", "--reference", "castor", "--protection", "8+3")


def test_each_model_says_its_figure_its_source_and_where_it_ends(leadline: Command) -> None:
    said = {
        (
            "stream",
            "--buffer",
            "32M",
            "--link",
            "10Gbit",
            "--seen",
            "2M=62M",
            "--measured",
            "286M",
        ): "of the first",
        (*CASTOR, "--groups", "8"): "59 MiB/s",
        ("ec", "--bs", "4k", "--protection", "6+3"): "9.00 times",
        ("sync", "--rate", "1G", "--object", "5M", "--protection", "8+3"): "2,250 /s",
        ("metadata", "--in-flight", "16", "network=200usx0", "mds=120us"): "8,",
        ("copies", "1=813", "2=847", "4=943", "--cpus", "4", "--copies", "6"): "22 minutes 4 seconds",
        ("scaling", "1=955", "2=1878", "4=3548", "8=5531"): "contention",
    }
    for words, expected in said.items():
        done = leadline("model", *words)
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout
        assert "By: " in done.stdout
        assert "Not where: " in done.stdout
        lines = done.stdout.splitlines()
        assert len(lines) <= 40
        assert max(map(len, lines)) <= 100, done.stdout


def test_the_uplinks_of_castors_lab_are_as_computed_by_hand(leadline: Command) -> None:
    """Three of eight primaries below a switch of two hosts: 45.0 MB/s; evenly 61.9 (lab-references.md)."""
    primaries = [f"--primaries=disk{number}={count}" for number, count in enumerate((1, 2, 3, 2), 1)]
    found = json.loads(leadline("model", *CASTOR, *primaries, "--measured", "41500000", "--json").stdout)
    assert [round(one["low"] / 1e6, 1) for one in found["computed"]] == [45.0, 61.9]
    assert round(found["measured"]["of_should_be"][0], 2) == 0.92


def test_a_data_centre_larger_than_this_machine_is_computed(leadline: Command, tmp_path: Path) -> None:
    file = tmp_path / "centre.yaml"
    file.write_text(
        "switches:\n  core:\n  rack[1-9]: {uplink: core, rate: 40Gbit}\n"
        "hosts:\n  osd[1-150]: {switch: 'rack[1-9]', link: 25Gbit, osds: 4}\n"
        "clients:\n  user[1-20]: {switch: core, link: 10Gbit}\n"
    )
    done = leadline("model", "aggregate", "--topology", str(file), "--protection", "3")
    assert done.returncode == 0, done.stderr
    assert "with primaries dealt out evenly" in done.stdout


def examples() -> list[tuple[str, str]]:
    """Every command of docs/models.md with what stands below it."""
    blocks = (Path(__file__).parents[2] / "docs" / "models.md").read_text().split("```")[1::2]
    pairs = (block.strip().split("\n", 1) for block in blocks if block.strip().startswith("$ leadline "))
    return [(command.removeprefix("$ leadline "), printed) for command, printed in pairs]


@pytest.mark.parametrize(("command", "printed"), examples())
def test_what_the_document_shows_is_what_is_printed(leadline: Command, command: str, printed: str) -> None:
    assert leadline(*command.split()).stdout.strip() == printed.strip()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("stream", "--buffer", "32M", "--link", "10Gbit"), "is to come from --latency or --seen"),
        (("stream", "--buffer", "0", "--link", "10Gbit", "--latency", "1ms"), "a size of 0 is none"),
        (("stream", "--buffer", "1M", "--link", "10Gbit", "--seen", "2M"), "--seen 2M"),
        (("stream", "--buffer", "1M", "--link", "1Mbit", "--seen", "2M=62M"), "more than the link carries"),
        (("aggregate", "--protection", "3"), "which links are meant?"),
        (("aggregate", "--reference", "castro"), "castor"),
        ((*CASTOR, "--through", "nfs"), "no host of the topology runs 'nfs'"),
        ((*CASTOR, "--primaries", "disk1"), "'disk1' is not --primaries"),
        ((*CASTOR, "--primaries", "x=1"), "x: no host with OSDs"),
        (("aggregate", "--reference", "castor", "--protection", "20+4"), "do not fit on 11 hosts"),
        (("ec", "--bs", "4k", "--protection", "0+3"), "is no protection"),
        (("ec", "--bs", "4k", "--protection", "6+3", "--seen", "4k=1"), "add --devices and --read-iops"),
        (("ec", "--bs", "4k", "--protection", "3", "--measured", "5"), "nothing here is writes per second"),
        (("metadata", "--in-flight", "4", "mds"), "not a time"),
        (("metadata", "--in-flight", "4", "mds=1msxmany"), "is no station"),
        (("copies", "1=813", "1=815", "--cpus", "4", "--copies", "6"), "1 is given twice"),
        (("copies", "one=813", "--cpus", "4", "--copies", "6"), "is not N=SECONDS"),
        (("copies", "1=-5", "2=3", "4=4", "--cpus", "4", "--copies", "6"), "is not N=SECONDS"),
        (("scaling", "1=955", "2=1878"), "2 points cannot tell three parameters"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(leadline: Command, words: tuple[str, ...], complaint: str) -> None:
    done = leadline("model", *words)
    assert done.returncode == 2, done.stdout
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
