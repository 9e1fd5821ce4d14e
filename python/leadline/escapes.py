"""How configuration of other tools holds foreign text: one escape for each format, in one place.

A path, a name or a value may hold anything. A UsageError refuses what a format has no escape for.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

from leadline.errors import UsageError

_REMEDY = "Rename it, or write this part of the configuration by hand."
# Anything else is quoted: YAML 1.1, which Ansible, Salt and Ceph read, takes `1:30` for a number.
_PLAIN_YAML = re.compile(r"[A-Za-z_/][A-Za-z0-9_./ -]*[A-Za-z0-9_./-]")
_YAML_WORD = re.compile(r"yes|no|on|off|true|false|null", re.IGNORECASE)
_TEMPLATE = re.compile(r"\{[{%#]|#jinja2:")


def seen(text: str, what: str) -> str:
    """`text` if each letter is printable, else UsageError: a line end would begin another entry."""
    if not text.isprintable():
        raise UsageError(
            f"{what} {text!r} holds a control character or another that is not printable", _REMEDY
        )
    return text


def without(text: str, letters: str, what: str) -> str:
    """`text` where it holds none of `letters`. Raises UsageError."""
    odd = sorted(set(text) & set(letters))
    if odd:
        raise UsageError(
            f"{what} {text!r} holds {' '.join(map(repr, odd))}, which has no escape there", _REMEDY
        )
    return text


def fstab_field(text: str) -> str:
    """For fstab(5), which reads octal escapes."""
    for letter in ("\\", " ", "\t", "\n", "#"):
        text = text.replace(letter, f"\\{ord(letter):03o}")
    return text


def unit_value(text: str, what: str) -> str:
    """For systemd.unit(5): a percent sign is doubled; a last backslash would join the next line."""
    if text.endswith("\\") or text != text.strip():
        raise UsageError(
            f"{what} {text!r} ends in a backslash or white space, or begins with white space", _REMEDY
        )
    return seen(text, what).replace("%", "%%")


def puppet_text(text: str) -> str:
    """For Puppet: in single quotes only they and backslashes have a meaning."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def yaml_text(value: Any, *, sequence_indent: Sequence[int] = (2, 0), templates: bool = False) -> str:
    """For what reads YAML. With `templates`, `!unsafe` stands before what Ansible would take for one."""
    from ruamel.yaml import YAML

    text = io.StringIO()
    writer = YAML()
    writer.width = 10_000
    writer.indent(mapping=2, sequence=sequence_indent[0], offset=sequence_indent[1])
    writer.dump(_scalars(value, templates), text)
    return text.getvalue()


def _scalars(value: Any, templates: bool) -> Any:
    from ruamel.yaml.comments import TaggedScalar
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    if isinstance(value, dict):
        return {_scalars(key, templates): _scalars(one, templates) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_scalars(one, templates) for one in value]
    if not isinstance(value, str):
        return value
    if templates and _TEMPLATE.search(value):
        return TaggedScalar(value, style='"', tag="!unsafe")
    if "\n" in value and value[0] != " " and all(line.isprintable() for line in value.split("\n")):
        return LiteralScalarString(value)
    if _PLAIN_YAML.fullmatch(value) and not _YAML_WORD.fullmatch(value):
        return value
    return DoubleQuotedScalarString(value)
