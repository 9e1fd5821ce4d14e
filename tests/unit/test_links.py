"""Links of a host, as the kernel shows them."""

from __future__ import annotations

from pathlib import Path

from leadline.observe.host.host import link_facts


def link(network: Path, name: str, speed: str, duplex: str, state: str) -> None:
    (network / name).mkdir(parents=True)
    for file, text in (("speed", speed), ("duplex", duplex), ("operstate", state)):
        (network / name / file).write_text(text + "\n")


def test_links_that_are_up_and_have_a_speed(tmp_path: Path) -> None:
    link(tmp_path, "eth0", "1000", "full", "up")
    link(tmp_path, "eth1", "100", "half", "up")
    link(tmp_path, "eth2", "10000", "full", "down")
    link(tmp_path, "lo", "-1", "unknown", "unknown")
    (tmp_path / "bonding_masters").write_text("")
    assert link_facts(tmp_path) == {"links": "eth0 1000 full, eth1 100 half"}
    assert link_facts(tmp_path / "none") == {"links": "none"}
