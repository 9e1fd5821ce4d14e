"""A catalogue of hardware, as data: hosts with their devices and links, each with its source and date."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from leadline.sizing.request import Flow, Size, quantity
from leadline.yamlio.fields import Whole
from leadline.yamlio.problems import Vocabulary, translate
from leadline.yamlio.yaml_source import DocumentKind, Path, read_yaml

MANUAL = "see docs/sizing.md"
BUILT_IN = "the built-in example"


class ClassDevices(BaseModel):
    """Devices of another class in the same host: bays of their own, all filled."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    bays: Annotated[int, Whole(1, 200)]
    device: Size

    @property
    def bytes_held(self) -> float:
        """Of all of them, raw."""
        return self.bays * quantity(self.device, "B", "")


class HardwareHost(BaseModel):
    """A kind of host with all of its bays filled. What is None is not known, and is never taken as 0.

    `classes` are devices beside those of `bays`, by the names that pools ask for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    source: str = Field(min_length=1, max_length=400)
    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    bays: Annotated[int, Whole(1, 200)]
    device: Size
    link: Flow
    classes: dict[str, ClassDevices] = Field(default_factory=dict, max_length=10)
    price: Annotated[float, Field(gt=0)] | None = None
    power_w: Annotated[float, Field(gt=0)] | None = None
    rack_units: Annotated[float, Field(gt=0)] | None = None

    @property
    def bytes_held(self) -> float:
        """Of all devices, raw."""
        return self.bays * quantity(self.device, "B", "")

    @property
    def link_bytes_s(self) -> float:
        """In each direction."""
        return quantity(self.link, "B/s", "")


class Catalogue(BaseModel):
    """A whole file."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Literal["leadline.hardware/1"]
    currency: str = Field(max_length=10)
    hosts: dict[str, HardwareHost] = Field(min_length=1, max_length=100)


def read_catalogue(text: str, source: str, environment: Mapping[str, str]) -> Catalogue:
    """Raises SpecError with file, line and key."""
    kind = DocumentKind("catalogue of hardware", MANUAL, "it begins with format: leadline.hardware/1")
    document = read_yaml(text, source, environment, kind)
    if not isinstance(document.value, dict):
        document.fail((), "a catalogue is a mapping of keys", MANUAL)
    try:
        return Catalogue.model_validate(document.value)
    except ValidationError as error:
        translate(error, document, Vocabulary(_known, MANUAL, {"cost": "price", "disks": "bays"}))


def built_in() -> Catalogue:
    """The example that comes along."""
    text = (resources.files("leadline.sizing") / "catalogue.yaml").read_text(encoding="utf-8")
    return read_catalogue(text, BUILT_IN, {})


def _known(path: Path) -> tuple[str, ...]:
    if "classes" in path[2:-1]:
        return tuple(ClassDevices.model_fields)
    return tuple((HardwareHost if len(path) > 2 else Catalogue).model_fields)
