"""Readers of the formats that `tune emit` and `mount plan --emit` write, as strict as the tools."""

from __future__ import annotations

import configparser
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.nodes import ScalarNode

if TYPE_CHECKING:  # else `readers.py` could not instrument what is imported
    from leadline.mounting.plan import NewMount

HOSTILE = (
    "{{ lookup('pipe', 'id') }}", "{% if 1 %}", "{# x", "#jinja2: a", "#!py", "\n", "\r", "\x0b", "\x85",
    "\u2028", "\x00", "\x1b", "\ud800", "\u202e", "\\", "'", '"', "%", "%n", "$HOME", "$(id)", "`id`", " ",
    "\t", "#", ";", "&a", "*a", ": ", "- ", "? ", "<<", "yes", "1:30", "1e3", "0o7", "null", "é", "=",
    "\U0001f600", "[x]", "}}", "!!int", "~", "\"; reboot; \"", "--force", "off init=/bin/sh",
)  # fmt: skip
_JINJA = re.compile(r"\{\{|\{%|\{#|\A#jinja2:")


class _AnsibleConstructor(SafeConstructor):
    """Refuses a scalar that Ansible would take for a template."""

    def construct_scalar(self, node: Any) -> Any:
        if isinstance(node, ScalarNode) and node.tag != "!unsafe":
            assert not _JINJA.search(node.value), f"a live template: {node.value!r}"
        return super().construct_scalar(node)


_AnsibleConstructor.add_constructor("!unsafe", lambda self, node: self.construct_scalar(node))


def read_ansible(text: str) -> Any:
    """As YAML 1.1, where no value is a template."""
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 1)  # type: ignore[assignment]
    reader.Constructor = _AnsibleConstructor
    return reader.load(text)


def read_salt(text: str) -> Any:
    """As Salt reads a file whose first line names no renderer but YAML's."""
    assert text.split("\n", 1)[0] == "#!yaml"
    return read_yaml(text)


def read_yaml(text: str) -> Any:
    """As YAML 1.1, which Salt and Ceph read."""
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 1)  # type: ignore[assignment]
    return reader.load(text)


def read_unit(text: str) -> dict[str, dict[str, str]]:
    """Sections of a systemd unit; no line goes on in the next."""
    lines = text.split("\n")
    assert not any(line.endswith("\\") for line in lines)
    assert len(lines) == len(text.splitlines()) + 1
    reader = configparser.ConfigParser(
        interpolation=None, delimiters=("=",), comment_prefixes=("#", ";"), strict=True, allow_no_value=False
    )
    reader.optionxform = str  # type: ignore[assignment,method-assign]
    reader.read_string(text)
    return {name: dict(reader[name]) for name in reader.sections()}


def specifiers_read(value: str) -> str:
    """A unit's value without its doubled percent signs; any other would be a specifier."""
    assert "%" not in value.replace("%%", "")
    return value.replace("%%", "%")


def read_fstab(text: str) -> list[list[str]]:
    """The fields of each entry, unescaped."""
    entries = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    return [
        [
            re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
            for field in re.split(r"[ \t]+", entry)
        ]
        for entry in entries
    ]


_PUPPET = re.compile(r"'((?:[^'\\]|\\.)*)'|#[^\n]*|\s+|=>|[{}\[\]:,]|[A-Za-z_]+", re.DOTALL)


def read_puppet(text: str) -> list[str]:
    """Every quoted text of a manifest, in order; what is outside of them is ours."""
    found, place = [], 0
    while place < len(text):
        token = _PUPPET.match(text, place)
        assert token, f"Puppet cannot read {text[place : place + 40]!r}"
        if token[0].startswith("'"):
            found.append(re.sub(r"\\(['\\])", r"\1", token[1]))
        place = token.end()
    return found


def made_mount(root: str = "", folder: str = "", user: str = "media") -> NewMount:
    """A mount with these in its device, its mount point and its options."""
    from leadline.mounting.plan import NewMount, Option

    options = (Option(f"name={user}", ""), Option("_netdev", ""))
    return NewMount(f"10.0.0.1:3300:/{root}", f"/mnt{folder}", options)


def mount_fields(form: str, text: str) -> tuple[str, str, str]:
    """Device, mount point and options, as the tool of this form reads them."""
    if form == "ansible":
        (task,) = read_ansible(text)
        options: Any = task["ansible.posix.mount"]
        assert set(task) == {"name", "ansible.posix.mount"}
        assert "$" not in options["src"] + options["path"]  # the module expands variables in paths
        return options["src"], options["path"], options["opts"]
    if form == "salt":
        ((point, state),) = read_salt(text).items()
        (rows,) = state.values()
        return rows[0]["device"], point, rows[2]["opts"]
    if form == "systemd":
        unit = read_unit(text)
        assert set(unit) == {"Unit", "Mount", "Install"}
        assert set(unit["Mount"]) == {"What", "Where", "Type", "Options", "TimeoutSec"}
        what, where, option_text = (
            specifiers_read(unit["Mount"][key]) for key in ("What", "Where", "Options")
        )
        return what, where, option_text
    if form == "fstab":
        ((device, point, kind, option_text, _, _),) = read_fstab(text)
        assert kind == "ceph"
        return device, point, option_text
    point, device, kind, option_text = read_puppet(text)
    assert kind == "ceph"
    return device, point, option_text


def read_emitted(path: Path) -> None:
    """Names of the input's bytes in each form: refused, or read as they are."""
    from leadline.errors import UsageError
    from leadline.mounting.emit import FORMS

    parts = path.read_bytes().decode("utf-8", "surrogateescape").split("\0", 2)
    wanted = made_mount(*(part.replace('"', "") for part in parts))
    for form, write in FORMS.items():
        with suppress(UsageError):
            text = write(wanted)
            assert mount_fields(form, text) == (wanted.device, wanted.mount_point, wanted.option_text), form


def seed_emitted(corpus: Path, _work: Path) -> None:
    """Hostile names, each in every place."""
    for number, text in enumerate(HOSTILE):
        odd = text.encode("utf-8", "surrogatepass")
        (corpus / str(number)).write_bytes(odd + b"\0/" + odd + b"\0a" + odd)
