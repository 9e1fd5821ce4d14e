"""Configuration for other tools holds hostile names unchanged or refuses them: tried with random names."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest
from emitted import (
    HOSTILE,
    made_mount,
    mount_fields,
    read_ansible,
    read_fstab,
    read_puppet,
    read_salt,
    read_unit,
    read_yaml,
    specifiers_read,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from test_mount_plan import facts
from test_tuning_emitting import KINDS

from leadline.errors import UsageError
from leadline.mounting.emit import FORMS, unit_name
from leadline.mounting.plan import NewMount, Option, make_plan
from leadline.tuning.emitting.asking import parse_pair
from leadline.tuning.emitting.delivery import EVERYWHERE, AskedValue, Emission
from leadline.tuning.emitting.tools import TUNING_FORMATS

TEXTS = st.lists(st.sampled_from((*HOSTILE, "a", "b1")) | st.text(max_size=3), max_size=5).map("".join)
LOOKUP = "{{ lookup('pipe', 'id') }}"


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60)
@given(root=TEXTS, folder=TEXTS)
def test_a_mount_is_read_as_it_was_meant_or_refused(form: str, root: str, folder: str) -> None:
    wanted = made_mount(root, folder)
    try:
        text = FORMS[form](wanted)
    except UsageError:
        return
    assert mount_fields(form, text) == (wanted.device, wanted.mount_point, "name=media,_netdev")


@pytest.mark.parametrize("form", FORMS)
def test_an_ordinary_mount_is_never_refused(form: str) -> None:
    plain = made_mount("volumes/media data-1", "/a b/it's é")
    assert mount_fields(form, FORMS[form](plain)) == (plain.device, plain.mount_point, "name=media,_netdev")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("odd", ["\nExecStart=/bin/sh", "\r", "\u2028x", "\x1b[2J", "\ud800"])
def test_what_would_begin_another_line_is_refused_by_every_form(form: str, odd: str) -> None:
    for wanted in (made_mount(root=odd), made_mount(folder=odd), made_mount(user=odd)):
        with pytest.raises(UsageError, match="not printable") as refused:
            FORMS[form](wanted)
        assert refused.value.remedy


def test_ansible_takes_a_hostile_path_for_no_template() -> None:
    text = FORMS["ansible"](made_mount(folder=f"/{LOOKUP}"))
    assert f'!unsafe "/mnt/{LOOKUP}"' in text


def test_a_salt_state_of_a_mount_names_its_renderer() -> None:
    assert FORMS["salt"](made_mount()).startswith("#!yaml\n")


def test_a_units_value_does_not_join_the_next_line() -> None:
    with pytest.raises(UsageError, match="backslash"):
        FORMS["systemd"](made_mount(folder="/x\\"))
    assert unit_name("/mnt/x\\") == "mnt-x\\x5c.mount"


# Settings


def emitted(form: str, *asked: AskedValue) -> dict[str, str]:
    return {file.name: file.text for file in TUNING_FORMATS[form](emission(*asked)).files}


def emission(*asked: AskedValue) -> Emission:
    return Emission(asked, {"/mnt/c": NewMount("10.0.0.1:3300:/", "/mnt/c", (Option("name=media", ""),))})


def writes(pin: AskedValue) -> list[str]:
    return ["setfattr", "-n", "ceph.dir.pin", "-v", pin.value, pin.subject]


def holds_ansible(text: str, pin: AskedValue) -> bool:
    (play,) = read_ansible(text)
    deeds = [task["ansible.builtin.command"] for task in play["tasks"] if "ansible.builtin.command" in task]
    for deed in deeds:
        if any("$" in word or word.startswith("~") for word in deed["argv"]):
            assert deed["expand_argument_vars"] is False
    return writes(pin) in [deed["argv"] for deed in deeds]


def holds_mount(text: str, pin: AskedValue) -> bool:
    ((_, point, _, options, _, _),) = read_fstab(text)
    return (point, options) == ("/mnt/c", f"name=media,rasize={pin.value}")


def holds_unit(text: str, pin: AskedValue) -> bool:
    unit = read_unit(text)["Mount"]["Options"]
    return specifiers_read(unit) == f"name=media,rasize={pin.value}"


HOLDS: dict[str, Callable[[str, AskedValue], bool]] = {
    "ansible": holds_ansible,
    "salt": lambda text, pin: shlex.split(read_salt(text)[pin.words]["cmd.run"][0]["name"]) == writes(pin),
    "puppet": lambda text, pin: shlex.join(writes(pin)) in read_puppet(text),
    "cephadm": lambda text, pin: read_yaml(text)["settings"] == {"net.ipv4.tcp_rmem": pin.value},
    "fstab": holds_mount,
    "systemd": holds_unit,
}


@pytest.mark.parametrize("form", HOLDS)
@settings(max_examples=40)
@given(value=TEXTS, place=TEXTS)
def test_a_setting_is_read_as_it_was_meant_or_left_out(form: str, value: str, place: str) -> None:
    """As the verb does it: what cannot be a value is refused before."""
    try:
        pin = parse_pair(f"pin@/mnt/{place}={value}", KINDS)
    except UsageError:
        return
    asked = (
        pin,
        AskedValue(KINDS["shards"], pin.value),
        AskedValue(KINDS["tcp_rmem"], pin.value),
        AskedValue(KINDS["rasize"], pin.value, "/mnt/c"),
    )
    left = {one.asked for one in TUNING_FORMATS[form](emission(*asked)).left_out}
    if form not in EVERYWHERE or pin.words not in left:
        assert all(HOLDS[form](text, pin) for text in emitted(form, *asked).values())


@pytest.mark.parametrize("value", ["yes", "1:30", "0x1f", "on", "1e3", "null", "{{ x }}"])
def test_no_value_becomes_a_number_or_a_word_of_yaml(value: str) -> None:
    (text,) = emitted("cephadm", AskedValue(KINDS["tcp_rmem"], value)).values()
    assert read_yaml(text)["settings"] == {"net.ipv4.tcp_rmem": value}


def test_a_mount_that_a_form_cannot_hold_is_left_out_with_the_reason() -> None:
    odd = NewMount("10.0.0.1:/", "/mnt/c\n/dev/sda / ext4", (Option("name=media", ""),))
    asked = AskedValue(KINDS["rasize"], "1", odd.mount_point)
    for form in ("fstab", "systemd", "salt", "ansible", "puppet"):
        found = TUNING_FORMATS[form](Emission((asked,), {odd.mount_point: odd}))
        assert not found.files
        assert "not printable" in found.left_out[0].why


@pytest.mark.parametrize("odd", ["media,exec", 'media"', "a,secret=x"])
def test_a_name_that_would_add_an_option_is_refused(odd: str) -> None:
    for changed in (facts(user=odd), facts(conf=f"/etc/{odd}"), facts(file_system=odd)):
        with pytest.raises(UsageError, match="has no escape"):
            make_plan(changed, ())


def test_a_command_of_a_plan_quotes_the_users_name() -> None:
    made = make_plan(facts(user="media; reboot", keyring=None, mount_keyring=None), ())
    commands = [command for step in made.steps for command in step.commands if "ceph auth get" in command]
    assert [shlex.split(command)[3] for command in commands] == ["client.media; reboot"]
    assert shlex.split(commands[0])[-1] == "/etc/ceph/ceph.client.media; reboot.keyring"
