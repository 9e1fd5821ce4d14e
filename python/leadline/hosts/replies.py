"""What a host may answer to each function: bytes of a bounded size, of plain values in a form that is known.

Both sides meet here: `pack_reply` there, `read_reply` here. A host may lie about its own figures, and do no
more: what does not have its form is an error in words (`ReplyError`), and nothing of it is used.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from leadline.hosts.directory import FILES_MAX
from leadline.study.target import TargetFacts

REPLY_BYTES_MAX = 96 << 20
ATTEMPT_BYTES_MAX = 64 << 30  # all files of one host
_ITEMS_MAX = 1 << 14  # of one list: msgpack makes room for as many as are announced, before any of them came
_PART_MAX, _PATH_MAX = 200, 1000
_MAP_MAX = 1 << 16


class ReplyError(ValueError):
    """Why an answer cannot be used, in words."""


def pack_reply(value: Any) -> bytes:
    """An answer on its way. Compressed, as Dask leaves alone what cannot be made smaller."""
    import msgpack  # type: ignore[import-untyped]

    return zlib.compress(msgpack.packb(value, unicode_errors="surrogateescape"), 1)


def read_reply(function: str, data: object) -> Any:
    """What a host answered to a function of this name. Raises AnswerError."""
    value = _unpacked(data)
    form = _REFUSED if isinstance(value, Mapping) and "refused" in value else _FORMS[function]
    try:
        return form.dump_python(form.validate_python(value), exclude_unset=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(one)[:_PART_MAX] for one in first["loc"])
        raise ReplyError(f"{place or 'it'}: {first['msg']}") from None


def _unpacked(data: object) -> Any:
    import msgpack

    if not isinstance(data, bytes):
        raise ReplyError(f"{type(data).__name__} in place of bytes")
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(data, REPLY_BYTES_MAX)
        if unpacker.unconsumed_tail:
            raise ReplyError(f"more than {REPLY_BYTES_MAX >> 20} MiB")
        return msgpack.unpackb(
            plain,
            unicode_errors="replace",
            max_array_len=_ITEMS_MAX,
            max_map_len=_MAP_MAX,
            max_ext_len=0,
        )
    except (zlib.error, ValueError, TypeError, RecursionError) as error:
        words = str(error) or type(error).__name__
        raise error if isinstance(error, ReplyError) else ReplyError(f"no plain values: {words}") from None


def _checked_path(text: str) -> str:
    parts = text.split("/")
    if any(part in ("", ".", "..") or "\0" in part or len(part) > _PART_MAX for part in parts):
        raise ValueError(f"{text[:_PART_MAX]!r} is no file of a result")
    return text


def _checked_files(files: dict[str, int]) -> dict[str, int]:
    if len(files) > FILES_MAX or sum(files.values()) > ATTEMPT_BYTES_MAX:
        raise ValueError(f"more than {FILES_MAX:,} files or {ATTEMPT_BYTES_MAX >> 30} GiB of one attempt")
    above = {str(one) for path in files for one in PurePosixPath(path).parents}
    if above & files.keys():
        raise ValueError("a file that is a directory, too")
    return files


def _checked_target(value: dict[str, Any]) -> dict[str, Any]:
    if "error" not in value:
        try:
            TargetFacts.from_json(dict(value))
        except Exception as error:
            raise ValueError(f"no facts of a target: {type(error).__name__}") from None
    elif not isinstance(value["error"], str):
        raise ValueError("an error that is no text")
    return value


def _checked_room(room: list[Any]) -> list[Any]:
    if [type(one) for one in room] != [int, str]:
        raise ValueError("no bytes and words")
    return room


_STRICT = ConfigDict(strict=True)
_Text = Annotated[str, StringConstraints(max_length=20_000)]
_Word = Annotated[str, StringConstraints(max_length=_PART_MAX)]
_Path = Annotated[str, StringConstraints(max_length=_PATH_MAX), AfterValidator(_checked_path)]
_Files = Annotated[dict[_Path, Annotated[int, Field(ge=0)]], AfterValidator(_checked_files)]
_Count = Annotated[int, Field(ge=0, lt=1 << 63)]


class _Form(BaseModel):
    """Exactly these types; what else a host says is left out."""

    model_config = _STRICT


class _Refused(_Form):
    refused: _Text
    remedy: _Text | None = None


class _Probed(_Form):
    python: _Word
    leadline: _Word
    hostname: _Word
    machine_id: _Word
    boot_id: _Word
    network: int
    cpus: _Count
    directory: _Text
    free_bytes: _Count
    engines: dict[_Text, _Text | None]
    memory_bytes: _Count
    memory_room: Annotated[list[Any], AfterValidator(_checked_room)]
    facts: dict[_Text, _Text]
    targets: dict[_Text, Annotated[dict[str, Any], AfterValidator(_checked_target)]]


class _Opened(_Form):
    facts: dict[str, Any]
    directory: _Text
    pid: int


class _Attempted(_Form):
    """Prepared, or how it ended."""

    prepared: Literal[True] | None = None
    host: _Text = ""
    attempt: _Text = ""
    state: Literal["finished", "refused", "skipped", "interrupted", "lost"] | None = None
    reason: _Text = ""
    target: _Text | None = None
    target_gone: bool = False
    files: _Files = {}
    trouble: _Text = ""

    @model_validator(mode="after")
    def _one_of_both(self) -> _Attempted:
        if (self.prepared is None) == (self.state is None):
            raise ValueError("neither prepared nor ended, or both")
        return self


class _Begun(_Form):
    end: _Attempted
    bytes: dict[_Path, bytes]


class _Closed(_Form):
    left: list[_Text] = []


class _Undone(_Form):
    removed: list[_Text]
    left: dict[_Text, _Text]
    damage: _Text = ""


class _Printed(_Form):
    output: bytes


_REFUSED: TypeAdapter[Any] = TypeAdapter(_Refused)
_ANYTHING: TypeAdapter[Any] = TypeAdapter(dict[str, Any])
_FORMS: dict[str, TypeAdapter[Any]] = {
    "probe": TypeAdapter(_Probed),
    "clock": TypeAdapter(Annotated[_Count, Field(strict=True)]),
    "open_session": TypeAdapter(_Opened),
    "prepare": TypeAdapter(_Attempted),
    "begin": TypeAdapter(_Begun),
    "cancel": _ANYTHING,
    "renew": _ANYTHING,
    "forget": _ANYTHING,
    "fetch": TypeAdapter(dict[_Path, bytes], config=_STRICT),
    "held": TypeAdapter(dict[_Text, _Files], config=_STRICT),
    "close_session": TypeAdapter(_Closed),
    "undo": TypeAdapter(_Undone),
    "check_part": TypeAdapter(_Printed),
    "audit_part": TypeAdapter(_Printed),
}
