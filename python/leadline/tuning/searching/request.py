"""From the words of a space to what is searched here: refused where it cannot be. Nothing is changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.errors import LeadlineError, RefusedChangeError, ResultError
from leadline.tuning.access.interface import same_value
from leadline.tuning.audit import by_words, target
from leadline.tuning.proving.proof import ProvedSetting
from leadline.tuning.proving.request import searched_setting
from leadline.tuning.proving.states import TargetClient
from leadline.tuning.searching.space import SearchDimension, SpaceWords, dimension_of
from leadline.tuning.system import TuningSystem


@dataclass(frozen=True)
class SearchedSettings:
    """The settings of a search, their space, what is in force without, and what documents advise.

    `advised` has of each setting value and source; none where what is in force is as good, or nobody advises.
    """

    settings: tuple[ProvedSetting, ...]
    space: tuple[SearchDimension, ...]
    default: Mapping[str, str]
    advised: Mapping[str, tuple[str, str]]

    def as_json(self) -> dict[str, Any]:
        """What the manifest keeps, so that whoever has the result can put back and go on."""
        return {
            "settings": [one.as_json() for one in self.settings],
            "space": [one.as_json() for one in self.space],
            "default": dict(self.default),
            "advised": {name: list(one) for name, one in self.advised.items()},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SearchedSettings:
        """The inverse of `as_json`. Raises ResultError where it is damaged."""
        try:
            return cls(
                tuple(ProvedSetting.from_json(one) for one in value["settings"]),
                tuple(SearchDimension.from_json(one) for one in value["space"]),
                {str(name): str(one) for name, one in value["default"].items()},
                {str(name): (str(one[0]), str(one[1])) for name, one in value["advised"].items()},
            )
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ResultError(
                f"what the result says of its settings is damaged: {type(error).__name__}: {error}",
                "restore the manifest from a copy",
            ) from None


def searched_settings(
    words: Sequence[SpaceWords],
    system: TuningSystem,
    client: TargetClient | None,
    allowed: Collection[str],
) -> SearchedSettings:
    """Look at everything. Raises RefusedChangeError, TuningError."""
    settings, space, default, advised = [], [], {}, {}
    for part in words:
        one, values = searched_setting(part.name, part.values, system, client, allowed)
        settings.append(one)
        space.append(dimension_of(part, values, is_size=one.setting.unit == "bytes"))
        default[part.name] = next(iter(one.without.values()))
        if (told := _advised(one, default[part.name], system, client, allowed)) is not None:
            advised[part.name] = told
    _refuse_excluded(settings)
    return SearchedSettings(tuple(settings), tuple(space), default, advised)


def _refuse_excluded(settings: Sequence[ProvedSetting]) -> None:
    for one in settings:
        for other in settings:
            if other.setting.name in one.setting.excludes:
                raise RefusedChangeError(
                    f"{one.setting.name} and {other.setting.name} exclude each other", "search one of them"
                )


def _advised(
    one: ProvedSetting, now: str, system: TuningSystem, client: TargetClient | None, allowed: Collection[str]
) -> tuple[str, str] | None:
    """The first advice of the table that holds and asks for another value than what is in force."""
    for told in one.setting.advice:
        wanted = target(one.setting, told, now) if told.holds else ""
        if not wanted or same_value(wanted, now):
            continue
        try:
            _, values = searched_setting(one.setting.name, (wanted,), system, client, allowed)
        except LeadlineError:
            continue  # an advice that cannot be taken here is none
        return values[0], by_words(told)
    return None
