"""What the options of every kind of work have in common; each kind lists its own beside its job.

An option that several kinds have is described here, once, so that it means the same in each. Sizes of
operations are one, one for each direction (`bs: 4k,64k`), or shares of several (`bssplit`).
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from leadline import units
from leadline.errors import SpecError
from leadline.study.schemes import ChosenEngine
from leadline.yamlio.fields import (
    SIZE_PATTERN,
    Duration,
    Rate,
    Size,
    SizeOrAuto,
    Truth,
    TruthOrAuto,
    Whole,
    guarded,
)

_BSSPLIT_EXAMPLES = "write size/percent pairs, for example 4k/60:64k/40, or for reads,writes 4k/60:64k/40,1m"
_PARTS_MAX = 64
Parts = tuple[tuple[int, int], ...]


class SizeSplit(BaseModel):
    """(bytes, percent) of each size of reads and of writes; the percentages of each add up to 100."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    read: Parts
    write: Parts

    @property
    def sizes(self) -> tuple[int, ...]:
        """Every size in bytes, ascending."""
        return tuple(sorted({size for size, _ in (*self.read, *self.write)}))

    def mean_bytes(self, read_share: float) -> float:
        """The mean size where `read_share` (0 to 1) of the operations are reads."""
        read, write = (sum(size * percent for size, percent in p) / 100 for p in (self.read, self.write))
        return read * read_share + write * (1 - read_share)

    def as_text(self) -> str:
        """fio's notation, which `parse_bssplit` reads back."""
        texts = [
            ":".join(f"{units.exact_size(size)}/{percent}" for size, percent in parts)
            for parts in (self.read, self.write)
        ]
        return texts[0] if texts[0] == texts[1] else ",".join(texts)


def parse_block_size(value: object) -> int | tuple[int, int]:
    """Bytes of `4k`, or (of reads, of writes) of `4k,64k`. Raises SpecError."""
    if isinstance(value, tuple | list) and len(value) == 2:
        return units.parse_size(value[0]), units.parse_size(value[1])
    if not isinstance(value, str) or "," not in value:
        return units.parse_size(value)
    parts = value.split(",")
    if len(parts) != 2:
        raise SpecError(f"{value!r} is not a size, nor two", "write bs: 4k, or bs: 4k,64k for reads,writes")
    read, write = (units.parse_size(part) for part in parts)
    return read if read == write else (read, write)


def parse_bssplit(value: object) -> SizeSplit:
    """The split of `4k/60:64k/40`, or of `reads,writes`. Raises SpecError.

    As in fio: percentages that are left out share what is left of 100 evenly.
    """
    if isinstance(value, SizeSplit):
        return value
    if isinstance(value, dict):
        return SizeSplit.model_validate(value)
    if not isinstance(value, str):
        raise SpecError(f"{value!r} is not a bssplit", _BSSPLIT_EXAMPLES)
    directions = value.split(",")
    if len(directions) > 2:
        raise SpecError(f"{value!r} has more than reads and writes", _BSSPLIT_EXAMPLES)
    parts = [_parse_parts(text) for text in directions]
    return SizeSplit(read=parts[0], write=parts[-1])


def _parse_parts(text: str) -> Parts:
    sizes: list[int] = []
    percents: list[int | None] = []
    for part in text.split(":")[: _PARTS_MAX + 1]:
        size, slash, percent = part.strip().partition("/")
        if not size or (slash and percent and not (percent.isascii() and percent.isdigit())):
            raise SpecError(f"{part!r} is not size/percent", _BSSPLIT_EXAMPLES)
        sizes.append(units.parse_size(size))
        percents.append(int(percent[:4]) if percent else None)
    if len(sizes) > _PARTS_MAX or len(set(sizes)) < len(sizes):
        raise SpecError(
            f"{text[:60]!r} gives a size twice, or more than {_PARTS_MAX} sizes", _BSSPLIT_EXAMPLES
        )
    said = sum(percent for percent in percents if percent is not None)
    missing = percents.count(None)
    if said > 100 or (missing == 0 and said != 100):
        raise SpecError(f"the percentages of {text!r} add up to {said}, not 100", _BSSPLIT_EXAMPLES)
    filled = iter(_even_shares(100 - said, missing))
    return tuple(
        (size, next(filled) if percent is None else percent)
        for size, percent in zip(sizes, percents, strict=True)
    )


def _even_shares(percent: int, count: int) -> list[int]:
    """`percent` in `count` whole parts that differ by 1 at most."""
    return [percent // count + (place < percent % count) for place in range(count)] if count else []


def block_sizes(bs: int | tuple[int, int] | None, bssplit: SizeSplit | None, default: int) -> tuple[int, ...]:
    """Every size in bytes that a job's operations have, ascending."""
    if bssplit is not None:
        return bssplit.sizes
    if isinstance(bs, tuple):
        return tuple(sorted(set(bs)))
    return (default if bs is None else bs,)


def as_split(bs: int | tuple[int, int] | None, bssplit: SizeSplit | None) -> SizeSplit | None:
    """What the engine is told; None for one size."""
    if isinstance(bs, tuple):
        return SizeSplit(read=((bs[0], 100),), write=((bs[1], 100),))
    return bssplit


def common_step(sizes: tuple[int, ...], nrfiles: int) -> int:
    """What a job's `size` must be a multiple of, so that each file holds whole blocks of each size."""
    return math.lcm(*(size for size in sizes if size > 0)) * nrfiles


def block_size_text(value: Any) -> Any:
    """`4k` or `4k,64k`."""
    if isinstance(value, tuple):
        return ",".join(units.exact_size(size) for size in value)
    return units.exact_size(value) if isinstance(value, int) else value


_NUMBER = {"type": "number", "minimum": 0}
_PAIR_PATTERN = SIZE_PATTERN[:-1] + r"(,\s*" + SIZE_PATTERN[1:-1] + ")?$"
BlockSize = Annotated[
    int | tuple[int, int],
    BeforeValidator(guarded(parse_block_size)),
    PlainSerializer(block_size_text),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": _PAIR_PATTERN}, _NUMBER]}),
]
Split = Annotated[
    SizeSplit,
    BeforeValidator(guarded(parse_bssplit)),
    PlainSerializer(lambda split: split.as_text() if isinstance(split, SizeSplit) else split),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9.kKmMgGiIbB/:, ]+$"}),
]


class Options(BaseModel):
    """The options of one kind of work; None is "not said"."""

    model_config = ConfigDict(frozen=True, extra="forbid")


BlockSizeOption = Annotated[
    BlockSize | None,
    Field(description="bytes of one operation, or of reads,writes; default 4k"),
]
DirectOption = Annotated[
    TruthOrAuto | None,
    Field(description="past the page cache (O_DIRECT); auto: where the target can"),
]
NumjobsOption = Annotated[
    Annotated[int, Whole(1, 1_024)] | None, Field(description="threads at the same time; 1")
]
RuntimeOption = Annotated[Duration | None, Field(description="how long is measured; 0 is until size is done")]
TimeBasedOption = Annotated[
    Truth | None,
    Field(
        description="go on until runtime is over, from the start of the files again where needed",
    ),
]
SizeOption = Annotated[
    SizeOrAuto | None,
    Field(description="bytes per numjob or stream, or auto: follows the memory of the host"),
]
EngineOption = Annotated[
    ChosenEngine | None, Field(description="how the system is called; auto chooses by target")
]
RampTimeOption = Annotated[Duration | None, Field(description="time before the measured interval")]
RateOption = Annotated[
    Rate | None, Field(description="bytes per second over all numjobs or streams (open loop)")
]
IncompressibleOption = Annotated[Truth | None, Field(description="no two blocks of 4 KiB equal; true")]
BufferOption = Annotated[
    Size | None,
    Field(description="with pipeline or transfer: bytes of one read or write, of one request; 1m"),
]
ClientsOption = Annotated[
    Annotated[int, Whole(1, 4_096)] | None,
    Field(
        description="with pipeline: how many go through it at once, 1; with transfer: hosts that take part"
    ),
]
InputOption = Annotated[
    str | None,
    Field(
        min_length=1,
        description="with command or pipeline: directory or file that it reads, staged into each target;"
        " with transfer: what is sent",
    ),
]
