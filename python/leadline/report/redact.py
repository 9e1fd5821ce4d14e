"""Findings that may leave the house: hosts, paths, addresses and command lines replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from leadline.verdict.model import Findings

_ABSOLUTE_PATH = re.compile(r"(?<![\w.<>/])/(?:[^\s/'\";:,()]+/)*[^\s/'\";:,()]+")
_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\b[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){3,7}\b")
_PROCESS = re.compile(r"(?<=most of it ).+? \(process \d+\)")
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
# What a failed program printed, behind how it ended.
_PRINTED = re.compile(r"(copy \d+ of \d+: (?:exit code \d+|ended by \w+)): .* \(program\)")
_IDENTIFYING = re.compile(r"host ?name|machine|node|user|serial", re.IGNORECASE)

_Value = TypeVar("_Value")


def redacted(findings: Findings) -> Findings:
    """The same findings with names of the site replaced; figures and names of targets stay.

    Targets keep the names that the user gave them: rename them before sharing where they tell something.
    """
    secrets = {target.url: f"<path of {target.name}>" for target in findings.targets if target.has_storage}
    for target in findings.targets:
        for key in ("mount_point", "source"):
            value = target.facts.get(key)
            if isinstance(value, str) and len(value) > 1:
                secrets.setdefault(value, f"<{key.replace('_', ' ')} of {target.name}>")
    hidden = {key for key in findings.host if _IDENTIFYING.search(key)}
    secrets.update({findings.host[key]: "<host>" for key in hidden if len(findings.host[key]) > 2})
    secrets.update({text: "<file>" for text in findings.frame.private if len(text) > 2})
    ordered = dict(sorted(secrets.items(), key=lambda item: -len(item[0])))
    made_anew = findings.frame.hidden
    sections = _clean(findings.sections, ordered) if made_anew is None else None
    cleaned = _clean(replace(findings, sections=()), ordered)
    return replace(
        cleaned,
        host={key: "<redacted>" if key in hidden else value for key, value in cleaned.host.items()},
        about="" if findings.frame.command else cleaned.about,
        sections=made_anew(lambda value: _clean(value, ordered)) if made_anew else sections or (),
        reproduce=tuple(line for line in cleaned.reproduce if not line.startswith("leadline ")),
    )


def _clean(value: _Value, secrets: Mapping[str, str]) -> _Value:
    """`value` with every string in it, however deep, cleaned."""
    found: Any = value
    if isinstance(value, str):
        found = _clean_text(value, secrets)
    elif is_dataclass(value) and not isinstance(value, type):
        found = replace(
            cast(Any, value), **{f.name: _clean(getattr(value, f.name), secrets) for f in fields(value)}
        )
    elif isinstance(value, Mapping):
        found = {key: _clean(item, secrets) for key, item in value.items()}
        if isinstance(found.get("command"), (list, tuple)):  # a program's words can hold anything
            found["command"] = type(found["command"])(["<command>"])
    elif isinstance(value, (list, tuple)):
        found = type(value)(_clean(item, secrets) for item in value)
    return cast(_Value, found)


def _clean_text(text: str, secrets: Mapping[str, str]) -> str:
    for secret, shown in secrets.items():
        text = text.replace(secret, shown)
    text = _PROCESS.sub("<process>", text)
    text = _PRINTED.sub(r"\1 (program)", text)
    text = _UUID.sub("<uuid>", text)
    text = _ADDRESS.sub("<address>", text)
    return _ABSOLUTE_PATH.sub("<path>", text)
