"""What is to be proved, as values: stored in the result's manifest before anything is changed.

All that putting back needs is here, so that whoever has the result can do it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal

from leadline.errors import ResultError
from leadline.tuning.changes import SettingChange
from leadline.tuning.settings import Movement, Price, Setting, SettingAccess

WITHOUT, WITH = "without", "with"
OWN_MOUNT = "a mount of its own"  # where settings are read that a mount has for life
DesignKind = Literal["together", "one_by_one", "factorial"]


@dataclass(frozen=True)
class ProofDesign:
    """In which `states` a proof measures: by name, what is changed there; the first is `without`."""

    kind: DesignKind
    states: Mapping[str, tuple[str, ...]]

    def as_json(self) -> dict[str, Any]:
        """What the manifest keeps."""
        return {"kind": self.kind, "states": {name: list(on) for name, on in self.states.items()}}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ProofDesign:
        """The inverse of `as_json`."""
        return cls(value["kind"], {str(name): tuple(on) for name, on in value["states"].items()})


@dataclass(frozen=True)
class ProvedSetting:
    """A setting with the change that is to be proved, and what was in force `without` it, by where."""

    setting: Setting
    change: SettingChange
    without: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """What the manifest keeps: also what verdicts need, who know no table of settings."""
        setting = self.setting
        return {
            **self.change.as_json(),
            "without": dict(self.without),
            "title": setting.title,
            "layer": setting.layer,
            "unit": setting.unit,
            "needs": setting.needs,
            "persist": setting.persist,
            "access": {"kind": setting.access.kind, "options": dict(setting.access.options)},
            "moves": [asdict(one) for one in setting.moves],
            "prices": [asdict(one) for one in setting.prices],
            "sources": list(setting.sources),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ProvedSetting:
        """The inverse of `as_json`, as far as putting back and reading need it."""
        access = value["access"]
        setting = Setting(
            name=value["setting"],
            title=value["title"],
            layer=value["layer"],
            roles=(),
            access=SettingAccess(access["kind"], access["options"]),
            means="",
            unit=value["unit"],
            default="",
            needs=value["needs"],
            persist=value["persist"],
            sources=tuple(value["sources"]),
            prices=tuple(Price(**one) for one in value["prices"]),
            moves=tuple(Movement(**one) for one in value["moves"]),
        )
        return cls(setting, SettingChange.from_json(value), value["without"])


def as_manifest(
    proved: tuple[ProvedSetting, ...],
    design: ProofDesign | None = None,
    journal: str = "",
    mounts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The part of a manifest that says what is proved, in which journal it stands, and on which `mounts`."""
    found: dict[str, Any] = {"settings": [one.as_json() for one in proved]}
    found |= {"design": design.as_json()} if design else {}
    found |= {"mounts": dict(mounts)} if mounts else {}
    return {"proof": found | ({"journal": journal} if journal else {})}


def of_manifest(manifest: Mapping[str, Any]) -> tuple[ProvedSetting, ...]:
    """What a result proves; nothing where it proves nothing. Raises ResultError where that is damaged."""
    if "proof" not in manifest:
        return ()
    with _whole():
        return tuple(ProvedSetting.from_json(one) for one in manifest["proof"]["settings"])


def design_of_manifest(manifest: Mapping[str, Any]) -> ProofDesign:
    """Its states; results of older versions measure all settings together. Raises ResultError."""
    with _whole():
        proof = manifest["proof"]
        if "design" in proof:
            return ProofDesign.from_json(proof["design"])
        return ProofDesign(
            "together", {WITHOUT: (), WITH: tuple(one["setting"] for one in proof["settings"])}
        )


@contextmanager
def _whole() -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, AttributeError) as error:
        raise ResultError(
            f"what the result says of its settings is damaged: {type(error).__name__}: {error}",
            "restore the manifest from a copy",
        ) from None
