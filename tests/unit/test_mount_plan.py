"""The plan from ceph-fuse to the kernel client, its configuration in each form, and the knowledge base."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ruamel.yaml import YAML

from leadline.errors import SpecError, UsageError
from leadline.knowledge.pitfalls import assess, cleared, kernel_version, pitfalls, read_pitfalls
from leadline.mounting.emit import FORMS, fstab, systemd, unit_name
from leadline.mounting.facts import MountFacts
from leadline.mounting.plan import NewMount, Option, Role, make_plan, parse_role, plan_lines
from leadline.observe.mounts.users import OpenFile, User, Users

ASYNC = "asynchronous-create-in-a-namespace"


def facts(**changes: Any) -> MountFacts:
    answers = {name: False for entry in pitfalls() for name in entry.needs}
    plain = MountFacts(
        mount_point="/mnt/media data",
        client="fuse",
        words="CephFS through ceph-fuse",
        options=("rw",),
        user="media",
        conf="/etc/ceph/ceph.conf",
        keyring="/etc/ceph/ceph.client.media.keyring",
        keyring_words="by /etc/ceph/ceph.conf",
        mount_keyring="/etc/ceph/ceph.client.media.keyring",
        root="/volumes/media",
        file_system="cephfs",
        fsid="f",
        monitors=(("v2", "10.0.0.1:3300"), ("v1", "10.0.0.1:6789")),
        kernel="6.1.0-18-amd64",
        users=Users((), {}),
        answers=answers,
    )
    return replace(plain, **changes)


def options(made: MountFacts, **changes: Any) -> list[str]:
    return [option.text for option in make_plan(made, (), **changes).mount.options]


def held(made: MountFacts) -> list[str]:
    found = assess("kernel", made.kernel, made.answers, made.reasons)
    return [finding.name for finding in found if finding.holds]


def with_facts(kernel: str, **answers: bool | None) -> MountFacts:
    return facts(kernel=kernel, answers={**facts().answers, **answers})


@pytest.mark.parametrize(
    ("kernel", "holds"),
    [
        ("5.6.19", False),
        ("5.10.0-8-amd64", True),
        ("5.17.0", False),
        ("6.1.0-18-amd64", False),
        ("4.18.0-358.el8.x86_64", True),
        ("4.18.0-147.el8.x86_64", False),
    ],
)
def test_tracker_54013_holds_for_the_affected_kernels_only(kernel: str, holds: bool) -> None:
    made = with_facts(kernel, nowsync=True, namespace=True)
    assert (ASYNC in held(made)) is holds


def test_an_affected_client_without_a_namespace_is_not_warned() -> None:
    assert ASYNC not in held(with_facts("5.10.0", nowsync=True, namespace=False))


def test_an_unknown_capability_cannot_be_told_and_the_plan_is_careful() -> None:
    made = with_facts("5.10.0", nowsync=True, namespace=None)
    found = {one.name: one.holds for one in assess("kernel", made.kernel, made.answers, made.reasons)}
    assert found[ASYNC] is None
    assert "wsync" in options(made)


def test_a_file_that_could_be_written_clears_the_pitfall() -> None:
    made = with_facts("5.10.0", nowsync=True, namespace=True)
    found = assess("kernel", made.kernel, made.answers, made.reasons)
    after = {one.name: one.holds for one in cleared(found, "create", "measured")}
    assert after[ASYNC] is False


def test_the_user_decides_about_wsync() -> None:
    assert "wsync" in options(facts(), wsync=True)
    assert "wsync" not in options(with_facts("5.10.0", nowsync=True, namespace=True), wsync=False)


def test_a_new_kernel_speaks_the_second_protocol_and_an_old_one_the_first() -> None:
    assert make_plan(facts(), ()).mount.device == "10.0.0.1:3300:/volumes/media"
    assert "ms_mode=prefer-crc" in options(facts())
    assert make_plan(facts(kernel="5.4.0"), ()).mount.device == "10.0.0.1:6789:/volumes/media"
    assert "ms_mode=prefer-crc" not in options(facts(kernel="5.4.0"))


def test_an_old_kernel_that_cannot_reach_the_monitors_is_refused() -> None:
    with pytest.raises(UsageError, match="msgr2 only"):
        make_plan(facts(kernel="5.4.0", monitors=(("v2", "10.0.0.1:3300"),)), ())


def test_unknown_monitors_are_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match="not known: no answer"):
        make_plan(facts(monitors=(), reasons={"msgr2_only": "no answer"}), ())


def test_a_kernel_mount_needs_no_plan() -> None:
    with pytest.raises(UsageError, match="kernel client already"):
        make_plan(facts(client="kernel"), ())


def test_open_files_are_listed_before_anything_is_unmounted() -> None:
    user = User(
        812,
        "tomcat",
        "opencast",
        (OpenFile(5, "/mnt/media data/x", "/x", True, 0),),
        (("working directory", "/"),),
    )
    text = "\n".join(plan_lines(make_plan(facts(users=Users((user,), {3: "a", 4: "b"})), ())))
    assert text.index("tomcat (process 812, opencast: 1 file, working directory)") < text.index("umount ")
    assert "2 processes could not be looked into" in text


def test_one_host_comes_first_and_the_rest_after_it_was_verified() -> None:
    roles = (Role("admin", ("a1",), "opencast"), Role("worker", ("w1", "w2"), "encoder"))
    titles = [step.title for step in make_plan(facts(), roles).steps]
    assert titles.index("a1: stop opencast") < titles.index(
        "a1: unmount ceph-fuse and keep its configuration"
    )
    assert titles.index("a1: verify") < titles.index("the rest, one at a time")
    rest = make_plan(facts(), roles).steps[-1].words
    assert "w1, w2" in rest
    assert "encoder" in rest


def test_the_way_back_mounts_what_was_there() -> None:
    commands = "\n".join(make_plan(facts(), ()).back[0].commands)
    assert "ceph-fuse -n client.media" in commands
    assert "'/mnt/media data'" in commands


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("w=n[1-3]", ("n1", "n2", "n3")),
        ("w=n[08-10].x:svc", ("n08.x", "n09.x", "n10.x")),
        ("w=a,b", ("a", "b")),
    ],
)
def test_ranges_of_hosts_are_expanded(text: str, hosts: tuple[str, ...]) -> None:
    assert parse_role(text).hosts == hosts


@pytest.mark.parametrize("text", ["w", "w=", "=a", "w=n[3-1]", "w=n[0-99999]", "w=a;rm", "w=a:b c", "w=$(x)"])
def test_a_role_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--role"):
        parse_role(text)


ODD = NewMount("10.0.0.1:3300:/it's %n", "/mnt/a b#c", (Option("name=x", ""), Option('context="c:s0"', "")))


def test_fstab_has_six_fields_whatever_the_path_holds() -> None:
    line = fstab(ODD).splitlines()[1]
    fields = line.split(" ")
    assert len(fields) == 6
    assert fields[1] == "/mnt/a\\040b\\043c"


def test_a_unit_is_named_as_systemd_names_it() -> None:
    assert unit_name("/mnt/media-data") == "mnt-media\\x2ddata.mount"
    assert unit_name("/.hidden/ä") == "\\x2ehidden-\\xc3\\xa4.mount"
    assert unit_name("/") == "-.mount"
    assert "What=10.0.0.1:3300:/it's %%n" in systemd(ODD)


@pytest.mark.parametrize("form", ["ansible", "salt"])
def test_yaml_forms_hold_the_same_values_after_reading(form: str) -> None:
    value = YAML(typ="safe").load(FORMS[form](ODD))
    flat = str(value)
    assert "/mnt/a b#c" in flat
    assert "name=x,context=c:s0" in flat


def test_puppet_quotes_what_would_end_its_text() -> None:
    assert "'10.0.0.1:3300:/it\\'s %n'" in FORMS["puppet"](ODD)


def test_every_pitfall_says_what_to_do_and_where_it_is_from() -> None:
    for entry in pitfalls():
        assert entry.symptom and entry.check and entry.remedy and entry.source, entry.name  # noqa: PT018
        assert set(entry.client) <= {"kernel", "fuse"}


def test_an_entry_without_a_source_is_refused() -> None:
    with pytest.raises(SpecError, match="source"):
        read_pitfalls("odd: {client: [kernel], symptom: s, check: c, remedy: r}")


@pytest.mark.parametrize(("release", "version"), [("5.16.5-arch1", (5, 16, 5)), ("", ()), ("odd", ())])
def test_versions_are_read_from_releases(release: str, version: tuple[int, ...]) -> None:
    assert kernel_version(release) == version


def test_the_keyring_in_force_is_named_and_what_mount_ceph_would_not_find() -> None:
    same = "\n".join(plan_lines(make_plan(facts(), ())))
    assert "ls -l /etc/ceph/ceph.client.media.keyring   # the keyring in force" in same
    assert "let mount.ceph find the key" not in same
    other = facts(keyring="/k/media", keyring_words="by CEPH_KEYRING", mount_keyring=None)
    text = "\n".join(plan_lines(make_plan(other, ())))
    assert "ls -l /k/media " in text
    assert "The present client: by CEPH_KEYRING. By /etc/ceph/ceph.conf mount.ceph takes none." in text
    assert "section [client.media]: keyring = /k/media" in text
    none = facts(
        keyring=None, keyring_words="its key is in /k/f (--keyfile), in no keyring", mount_keyring=None
    )
    text = "\n".join(plan_lines(make_plan(none, ())))
    assert "ls -l" not in text
    made = text.index("install -m 600 /dev/null /etc/ceph/ceph.client.media.keyring")
    assert made < text.index("ceph auth get client.media -o /etc/ceph/ceph.client.media.keyring")
