"""The keyring that a client has its key from, held against what Ceph says where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline.mounting.facts import Keyring, find_keyring
from leadline.observe.ceph.client import NotObservableError, cluster_name, configured
from leadline.observe.mounts.fuse_client import arguments_of, environment_of, parse_arguments

KEY = "AQDnotakeyofanybody=="


def has_ceph() -> bool:
    try:
        configured("keyring", os.devnull, None)
    except NotObservableError:
        return False
    return True


with_ceph = pytest.mark.skipif(not has_ceph(), reason="needs librados2, which resolves Ceph's options")


@dataclass
class Site:
    """A configuration of a cluster `foo`, whose files are where a test makes them."""

    folder: Path
    conf: Path

    def file(self, name: str) -> str:
        """A keyring."""
        path = self.folder / name
        path.write_text(f"[client.media]\n\tkey = {KEY}\n")
        return str(path)

    def found(self, name: str = "client.media", *words: str, settings: str = "", **variables: str) -> Keyring:
        """The keyring of a client."""
        arguments = parse_arguments(["-c", str(self.conf), *words, "/mnt"])
        found = find_keyring(arguments, variables, str(self.conf), name, {"keyring": settings})
        assert KEY not in repr(found)
        return found

    def ceph_conf(self, name: str, *words: str, **variables: str) -> list[str]:
        """What Ceph's own program says, as a list of files."""
        command = [
            "ceph-conf",
            "-c",
            str(self.conf),
            "--name",
            name,
            *words,
            "--show-config-value",
            "keyring",
        ]
        environment = {"PATH": os.environ["PATH"], **variables}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.replace(",", " ").split()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    conf = tmp_path / "foo.conf"
    conf.write_text(
        f"[global]\nkeyring = {tmp_path}/$cluster.$name.keyring, {tmp_path}/$type-$id.key\n"
        f"[client.special]\nkeyring = {tmp_path}/special\n"
    )
    return Site(tmp_path, conf)


@with_ceph
def test_the_first_file_that_is_there_of_the_configuration_s_list(site: Site) -> None:
    second = site.file("client-media.key")
    assert site.found().path == second
    first = site.file("foo.client.media.keyring")
    found = site.found()
    assert (found.path, found.for_mount) == (first, first)
    assert found.is_found_by_mount
    assert str(site.conf) in found.words


@with_ceph
def test_the_user_s_own_section_comes_before_the_global_one(site: Site) -> None:
    site.file("foo.client.special.keyring")
    special = site.file("special")
    assert site.found("client.special").path == special


@with_ceph
@pytest.mark.skipif(shutil.which("ceph-conf") is None, reason="needs ceph-common")
@pytest.mark.parametrize("words", [(), ("--keyring", "{0}/cmd-$name")])
@pytest.mark.parametrize("arguments", ["", "--keyring {0}/args-$id"])
@pytest.mark.parametrize("variable", ["", "{0}/env"])
@pytest.mark.parametrize("name", ["client.media", "client.special"])
def test_the_order_of_command_line_environment_and_file_is_ceph_s(
    site: Site, words: tuple[str, ...], arguments: str, variable: str, name: str
) -> None:
    place = str(site.folder)
    given = [word.format(place) for word in words]
    variables = {
        key: value.format(place)
        for key, value in {"CEPH_ARGS": arguments, "CEPH_KEYRING": variable}.items()
        if value
    }
    said = site.ceph_conf(name, *given, **variables)
    wanted = site.file(Path(said[0]).name)
    site.file("decoy")
    both = [*variables.get("CEPH_ARGS", "").split(), *given]
    assert site.found(name, *both, **variables).path == wanted


@with_ceph
def test_what_mount_ceph_would_not_find_is_known(site: Site) -> None:
    given = site.file("elsewhere")
    found = site.found("client.media", "-k", given)
    assert (found.path, found.for_mount) == (given, None)
    assert not found.is_found_by_mount
    assert "command line" in found.words


@with_ceph
def test_what_the_process_has_in_force_counts_most(site: Site) -> None:
    site.file("foo.client.media.keyring")
    told = site.file("by-the-monitors")
    assert site.found(settings=f"{site.folder}/nowhere,{told}").path == told


@with_ceph
@pytest.mark.parametrize(("words", "said"), [(("--key", KEY), "--key"), (("--keyfile", "/k/f"), "/k/f")])
def test_a_key_that_is_in_no_keyring_is_called_so(site: Site, words: tuple[str, ...], said: str) -> None:
    site.file("foo.client.media.keyring")
    found = site.found("client.media", *words)
    assert found.path is None
    assert said in found.words


@with_ceph
def test_where_none_is_there_all_that_were_looked_for_are_named(site: Site) -> None:
    found = site.found()
    assert found.path is None
    assert f"{site.folder}/foo.client.media.keyring" in found.words
    assert f"{site.folder}/client-media.key" in found.words


def test_a_cluster_is_called_as_its_configuration() -> None:
    names = [
        cluster_name(conf) for conf in (None, "/etc/ceph/foo.conf", "/x/ceph.conf", "/x/odd", "/a/b.conf,/c")
    ]
    assert names == ["ceph", "foo", "ceph", "ceph", "b"]


def test_arguments_of_the_environment_come_before_those_of_the_command_line(tmp_path: Path) -> None:
    place = tmp_path / "7"
    place.mkdir()
    (place / "cmdline").write_bytes(b"ceph-fuse\0--id\0media\0/mnt\0")
    (place / "environ").write_bytes(b"A=b\0CEPH_ARGS=--id other -k '/k/a b' --cluster foo\0")
    found = arguments_of(7, tmp_path)
    assert (found.name, found.keyring, found.cluster) == ("client.media", "/k/a b", "foo")
    assert found.positional == ("/mnt",)
    assert environment_of(7, tmp_path)["A"] == "b"
