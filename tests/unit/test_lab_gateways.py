"""Gateways of a lab without a cluster: a small real server in their place, and what goes wrong with it."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.errors import LabError, UsageError
from leadline.lab import bridge
from leadline.lab.cluster import process
from leadline.lab.gateways import starter as gateways
from leadline.lab.gateways.gateway import Gateway, GatewayPlace, Launch, accepts_connections, write_private
from leadline.lab.journal import LabJournal
from leadline.lab.record import GatewayRecord, LabRecord, read_record
from leadline.lab.spec import LabSpec, check_spec, parse_gateways, parse_settings
from leadline.lab.targets import targets_of

SERVE = "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(100)"
REFUSE = "import sys; print('Address already in use'); sys.exit(1)"
NO_LUCK = "import sys; print('no luck today'); sys.exit(1)"


def lab_record(directory: Path, **changes: object) -> LabRecord:
    spec = LabSpec(name="x", gateways=("nfs", "smb", "xrootd", "rgw"))
    lab = LabRecord("x", "fsid", spec, directory, directory / "run", True, 0, 0.0)
    return replace(lab, **changes)


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[gateways.Starter]:
    """A lab whose `ceph` command says yes to everything."""
    lab = lab_record(tmp_path / "lab", fsid=f"test-{tmp_path.name}-{random.random()}")  # noqa: S311
    lab.paths.logs.mkdir(parents=True)
    program = tmp_path / "bin/ceph"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    variables = {"PATH": f"{program.parent}:/usr/bin:/bin", process.MARK: lab.fsid}
    found = gateways.Starter(LabJournal(lab, variables), lambda _: None, random.Random(1))  # noqa: S311
    yield found
    process.end(process.find_marked(lab.fsid), grace_s=1.0)


def gateway(*programs: str, **changes: object) -> Gateway:
    """A gateway that runs these Python programs, one at each attempt, with its port."""
    attempts = iter(programs)

    def prepare(place: GatewayPlace) -> Launch:
        return Launch([sys.executable, "-c", next(attempts), str(place.port)])

    made = Gateway("nfs", "a server", {}, {}, {"mon": "allow r"}, prepare)
    return replace(made, **changes)


def test_a_gateway_that_serves_is_recorded_with_its_port(starter: gateways.Starter) -> None:
    found = gateways.start(starter, gateway(SERVE))
    assert accepts_connections("127.0.0.1", found.port)
    assert [item.name for item in read_record(starter.journal.record.directory).processes] == ["nfs"]


def test_a_port_that_was_taken_meanwhile_is_drawn_again(starter: gateways.Starter) -> None:
    assert accepts_connections("127.0.0.1", gateways.start(starter, gateway(REFUSE, SERVE)).port)


def test_a_gateway_that_ends_is_an_error_with_its_last_words_and_leaves_no_process(
    starter: gateways.Starter,
) -> None:
    with pytest.raises(LabError, match="no luck today"):
        gateways.start(starter, gateway(NO_LUCK))
    assert starter.journal.record.processes == ()


def test_a_gateway_whose_ports_are_always_taken_gives_up(starter: gateways.Starter) -> None:
    with pytest.raises(LabError, match="no port stayed free"):
        gateways.start(starter, gateway(REFUSE, REFUSE, REFUSE))


def test_a_gateway_that_listens_but_does_not_serve_is_ended(
    starter: gateways.Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateways, "_START_DEADLINE_S", 0.5)
    with pytest.raises(LabError, match="does not serve within"):
        gateways.start(starter, gateway(SERVE, serves=lambda _: False))
    assert process.find_marked(starter.journal.record.fsid) == []


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts gateways in the place of the real ones."""

    def put(**own: Gateway) -> None:
        for name, kind in own.items():
            monkeypatch.setitem(gateways.KINDS, name, replace(kind, name=name))

    return put


def test_one_that_fails_or_lacks_its_package_does_not_stop_the_rest(
    starter: gateways.Starter, kinds: Callable[..., None]
) -> None:
    lacking = gateway(SERVE, programs={"no-such-program": "no-such-package"})
    kinds(nfs=gateway(SERVE), smb=gateway(NO_LUCK), xrootd=lacking)
    gateways.start_all(starter, ("nfs", "smb", "xrootd"))
    found = {item.name: item.reason for item in starter.journal.record.gateways}
    assert found["nfs"] == ""
    assert "no luck today" in found["smb"]
    assert "apt-get install --no-install-recommends no-such-package" in found["xrootd"]
    assert [item.name for item in starter.journal.record.processes] == ["nfs"]


def test_missing_programs_and_plugins_are_named_by_their_packages() -> None:
    kind = gateway(programs={"no-such-program": "b"}, plugins={"no/such/plugin-*.so": "a"})
    assert kind.lacking() == ["a", "b"]


def test_a_gateways_key_is_private_from_its_first_byte(starter: gateways.Starter, tmp_path: Path) -> None:
    gateways.start(starter, gateway(SERVE))
    keyring = starter.journal.record.paths.gateway("nfs") / "keyring"
    write_private(tmp_path / "secret", "x")
    for path in (keyring, tmp_path / "secret"):
        assert path.stat().st_mode & 0o777 == 0o600


def test_every_way_of_an_unmounted_lab_is_a_target_or_has_its_reason(tmp_path: Path) -> None:
    running = (GatewayRecord("smb", 1234), GatewayRecord("nfs", 99, "", ("NFSv4 only",)))
    found = {item.name: item for item in targets_of(lab_record(tmp_path, gateways=running))}
    assert found["smb"].where == "smb://127.0.0.1:1234/ceph/replicated"
    assert found["nfs"].where == "nfs://127.0.0.1:99/ceph/replicated"
    assert found["nfs3"].reason == "NFSv4 only"
    assert found["ceph-fuse"].reason == "the lab is not mounted"
    assert found["xrootd"].reason == "started without --gateways xrootd"
    assert "guest" in found["kernel-ceph"].reason


def test_an_address_of_ip_version_6_stands_in_brackets(tmp_path: Path) -> None:
    spec = LabSpec(address="::1", gateways=("nfs",))
    lab = lab_record(tmp_path, spec=spec, gateways=(GatewayRecord("nfs", 99, "", (), 98),))
    found = {item.name: item.where for item in targets_of(lab)}
    assert found["nfs3"] == "nfs://[::1]:99/ceph/replicated?version=3&mountport=98"


def test_a_record_with_gateways_survives_its_file(tmp_path: Path) -> None:
    running = (GatewayRecord("nfs", 99, "", ("a note",), 98), GatewayRecord("smb", 0, "why not"))
    lab = lab_record(tmp_path, gateways=running, bridge="llbr0001", subvolume_path="/volumes/x")
    assert LabRecord.from_json(lab.as_json()) == lab


def test_a_lab_of_an_older_version_has_no_gateways_and_no_authentication_unless_it_says(
    tmp_path: Path,
) -> None:
    plain = lab_record(tmp_path, spec=LabSpec()).as_json()
    for name in ("gateways", "bridge", "subvolume_path"):
        del plain[name]
    for name in ("gateways", "settings", "subvolume", "bridge", "auth"):
        del plain["spec"][name]
    found = LabRecord.from_json(plain)
    assert (found.gateways, found.bridge, found.spec.auth) == ((), "", "none")


@pytest.mark.parametrize(
    ("text", "names"), [("", ()), ("rgw, nfs,nfs", ("nfs", "rgw")), ("all", gateways.KINDS)]
)
def test_gateways_are_a_list_each_once(text: str, names: tuple[str, ...]) -> None:
    assert parse_gateways(text) == tuple(names)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (LabSpec(gateways=("ftp",)), "no gateway 'ftp'"),
        (LabSpec(gateways=("rgw",), auth="none"), "RGW does not start without authentication"),
        (LabSpec(subvolume="x", auth="none"), "no client is restricted"),
        (LabSpec(subvolume="x", mount=False), "--no-mount contradict"),
        (LabSpec(subvolume="a/b/c"), "no name for a subvolume"),
        (LabSpec(bridge=True, address="127.0.0.2"), "--bridge and --address contradict"),
        (LabSpec(settings={"xrootd.async": "on"}), "was not asked for"),
        (LabSpec(gateways=("xrootd",), settings={"xrootd.async": "maybe"}), "is not possible"),
        (LabSpec(gateways=("xrootd",), settings={"xrootd.maxbsz": "1g\nall.export /etc"}), "is not possible"),
        (LabSpec(gateways=("xrootd",), settings={"xrootd.port": "1"}), "no setting"),
    ],
)
def test_what_gateways_cannot_be_is_refused(spec: LabSpec, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_spec(spec)


def test_a_setting_without_a_value_is_refused() -> None:
    assert parse_settings(["xrootd.async=on"]) == {"xrootd.async": "on"}
    with pytest.raises(UsageError, match="NAME=VALUE"):
        parse_settings(["xrootd.async"])


def test_the_bridges_network_touches_no_route_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = '[{"dst": "default"}, {"dst": "10.0.0.0/9"}, {"dst": "10.128.0.0/10"}, {"dst": "fe80::/64"}]'
    monkeypatch.setattr(bridge, "run_tool", lambda *_, **__: routes)
    for seed in range(20):
        second = int(str(bridge.choose_network(random.Random(seed), {})).split(".")[1])  # noqa: S311
        assert second >= 192


def test_a_host_whose_routes_take_every_private_network_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "run_tool", lambda *_, **__: '[{"dst": "10.0.0.0/8"}]')
    with pytest.raises(LabError, match="every private network"):
        bridge.choose_network(random.Random(1), {})  # noqa: S311


@pytest.mark.parametrize("name", ["", "eth0", "lo", "llbr-no-such"])
def test_only_a_bridge_of_a_labs_own_is_ever_removed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise AssertionError(name)

    monkeypatch.setattr(bridge, "run_tool", refuse)
    bridge.remove(name, {})
