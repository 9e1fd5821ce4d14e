"""What a manifest and an event have to look like before anything is made of them.

A field that is not listed is not looked at here: newer versions add some, and reports keep them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    InstanceOf,
    StringConstraints,
    ValidationError,
)

# Names become parts of paths. Other text may hold what is no Unicode: paths come from file systems.
TrialName = Annotated[str, StringConstraints(pattern=r"^t[0-9]{4,9}\z")]
ResultId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8,64}\z")]
Text = InstanceOf[str]

_LOOSE = ConfigDict(extra="ignore", strict=True)
_FAULT = {"lab", "id", "kind", "on", "words", "began_unix_s"}
# What an event cannot do without, and what else is read of it.
_REQUIRED = {
    "trial_finished": {"trial"},
    "trials_finished": {"trials"},
    "trial_not_run": {"cell", "reason"},
    "block_added": {"cells"},
    "cell_ended": {"cell", "words"},
    "attempt_begun": {"attempt", "trials"},
    "attempt_ended": {"attempt"},
    "attempt_forgotten": {"attempt"},
    "workspace_intended": {"target", "directory"},
    "workspace_removed": {"target"},
    "clock_compared": {"host", "offset_ns", "error_ns"},
    "fault_began": _FAULT,
    "fault_ended": _FAULT | {"ended_unix_s"},
}


class _StoredTrial(BaseModel):
    model_config = _LOOSE
    id: TrialName


class _StoredTarget(BaseModel):
    model_config = _LOOSE
    name: Text


class _StoredPlan(BaseModel):
    model_config = _LOOSE
    study: Text = ""
    title: Text = ""
    targets: list[_StoredTarget] = []
    trials: list[_StoredTrial] = []


class _Manifest(BaseModel):
    model_config = _LOOSE
    id: ResultId
    created: Text = ""
    title: Text = ""
    version: Text = ""
    sha256: Text = ""
    plan: _StoredPlan | None = None
    study: dict[str, Any] = {}
    targets: dict[str, dict[str, Any]] = {}
    options: dict[str, Any] = {}
    host: dict[str, Any] | None = None
    imported: dict[str, Any] = {}
    command: list[Text] | None = None
    since_change_ns: int | None = Field(default=None, ge=-(1 << 63), lt=1 << 63)


class _Details(BaseModel):
    model_config = _LOOSE
    t_ns: int = Field(default=0, ge=0, lt=1 << 63)
    trial: TrialName = ""
    trials: dict[TrialName, Any] | list[TrialName] = []
    attempt: Text = ""
    cell: Text = ""
    cells: list[Text] = []
    target: Text = ""
    reason: Text | None = ""
    directory: Text = ""
    location: Text | None = None
    null_ns_per_operation: FiniteFloat | None = None
    host: Text = ""
    offset_ns: int = Field(default=0, gt=-(1 << 63), lt=1 << 63)
    error_ns: int = Field(default=0, ge=0, lt=1 << 63)
    lab: Text = ""
    id: Text = ""
    kind: Text = ""
    on: Text = ""
    words: Text = ""
    began_unix_s: FiniteFloat = 0.0
    ended_unix_s: FiniteFloat = 0.0


def check_manifest_shape(manifest: Mapping[str, Any]) -> None:
    """Raises ValueError where a part is missing or of the wrong type."""
    _check(_Manifest, manifest)


def check_event_shape(event: str, details: Mapping[str, Any]) -> None:
    """The same for what an event says."""
    lacking = _REQUIRED.get(event, set()) - details.keys()
    if lacking:
        raise ValueError(f"{event} lacks {', '.join(sorted(lacking))}")
    _check(_Details, details)


def _check(model: type[BaseModel], value: Mapping[str, Any]) -> None:
    try:
        model.model_validate(value)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{place}: {first['msg']}") from None
