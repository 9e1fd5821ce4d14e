"""What this process reads of Dask's messages: plain values of a bounded size. No pickle of another is loaded.

Whoever listens as a scheduler, or is a worker, may be taken over, and a pickle runs what its writer likes.
Dask loads pickles in every message, in the handshake too, and its option `deserializers` covers results only.
So its decoder is exchanged for the one below, for the whole process, and what loads pickles elsewhere in Dask
refuses. `guard` tries that out each time: another release of Dask may go other ways.
"""

from __future__ import annotations

import pickle
import struct
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from distributed.comm.core import CommClosedError

from leadline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

MESSAGE_BYTES_MAX = 128 << 20
ITEMS_MAX = 1 << 14  # of one list: msgpack makes room for as many as are announced, before any of them came
_LIMITS: dict[str, Any] = {"raw": False, "strict_map_key": False, "use_list": False, "max_ext_len": 0}


class UnusableMessageError(CommClosedError):  # type: ignore[misc]
    """A message that is no plain values, or too large: its connection is of no more use."""


class _Refusing:
    """The module `pickle`, as Dask sees it from now on: it writes, and loads nothing."""

    def __getattr__(self, name: str) -> Any:
        return _refuse if name in ("load", "loads", "Unpickler") else getattr(pickle, name)


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise pickle.UnpicklingError("a pickle came, which leadline never loads")


def _nothing(_: object) -> None:
    pass


def guard() -> None:
    """Have Dask read plain values only, in this process. Raises UsageError where this Dask will not."""
    import distributed
    from distributed import protocol
    from distributed.comm import tcp
    from distributed.versions import VersionMismatchWarning

    if getattr(protocol, "loads", None) is not plain_message:
        made, unpacked = tcp.host_array, tcp.unpack_frames
        for module, name, value in (
            (protocol.pickle, "pickle", _Refusing()),
            (protocol, "loads", plain_message),
            (tcp, "host_array", partial(_bounded, made)),
            (tcp, "unpack_frames", partial(_few_frames, unpacked)),
            (distributed.Client, "_default_event_handlers", {}),  # they print what a scheduler says
            (distributed.Client, "__del__", _nothing),  # prints how closing failed; `connect` closes
        ):
            if not hasattr(module, name):
                _unknown(distributed.__version__)
            setattr(module, name, value)
        warnings.filterwarnings("ignore", category=VersionMismatchWarning)  # a scheduler writes its words
    _try_out(distributed.__version__)


def _try_out(version: str) -> None:
    """By Dask's own ways to read: none of them may get a pickle loaded."""
    from distributed import protocol
    from distributed.comm import utils
    from distributed.protocol.serialize import Serialize, Serialized, ToPickle

    typed = {"serializer": "dask", "type": "int", "type-serialized": pickle.dumps(int), "sub-header": {}}
    frames = [protocol.dumps(one) for one in (ToPickle(int), Serialize(int), Serialized(typed, [b"1"]))]
    ways: list[Callable[[], Any]] = [partial(utils.protocol.loads, one) for one in frames]
    ways += [partial(protocol.pickle.loads, pickle.dumps(1))]
    for way in ways:
        try:
            way()
        except (OSError, pickle.UnpicklingError):
            continue
        _unknown(version)


def _unknown(version: str) -> NoReturn:
    raise UsageError(
        f"distributed {version} reads messages in a way that leadline cannot keep from loading pickles",
        "install the release of requirements.lock: pip install 'leadline[hosts]' -c requirements.lock",
    )


def plain_message(
    frames: Sequence[Any],
    deserialize: bool = True,
    deserializers: object = None,  # noqa: ARG001 - Dask's own has it
) -> Any:
    """Takes the place of `distributed.protocol.loads`: a message of plain values and bytes.

    Raises UnusableMessageError for anything else.
    """
    try:
        return _unpacked(frames[0], partial(_decoded, frames, deserialize))
    except Exception as error:
        raise UnusableMessageError(f"a message that is no plain values: {error}") from error


def _unpacked(data: Any, hook: Callable[[Any], Any] | None = None) -> Any:
    import msgpack  # type: ignore[import-untyped]

    return msgpack.unpackb(data, object_hook=hook, max_array_len=ITEMS_MAX, **_LIMITS)


def _decoded(frames: Sequence[Any], deserialize: bool, value: Mapping[str, Any]) -> Any:
    """A mapping of a message, with what Dask writes beside it: sets, and values in frames of their own."""
    if "__Pickled__" in value or "__Enum__" in value:
        return _refuse()
    if "__Set__" in value:
        return set(value["as-list"])
    if "__Serialized__" not in value:
        return value
    header = _unpacked(frames[value["__Serialized__"]])
    first, count = value["__Serialized__"] + 1, header["num-sub-frames"]
    if value["__Serialized__"] < 1 or count < 0:
        raise ValueError("no such frame")
    own = frames[first : first + count]
    if not deserialize:  # a scheduler hands it on as it came
        from distributed.protocol import Serialized

        return Serialized(header, own)
    if header.get("serializer") != "msgpack" or any(header.get("compression") or ()):
        return _refuse()
    return _unpacked(b"".join(own))


def _bounded(made: Callable[[int], Any], count: int) -> Any:
    """Room for so many bytes, which is made before any of them came."""
    _check(count)
    return made(count)


def _few_frames(unpacked: Callable[..., Any], data: Any, **options: Any) -> Any:
    """The frames of a message, of which not all may have come."""
    try:
        (count,) = struct.unpack_from("Q", data)
        if count > ITEMS_MAX:
            raise ValueError(f"{count} frames")
        found = unpacked(data, **options)
    except Exception as error:
        raise UnusableMessageError("a message that is cut up wrongly") from error
    if options.get("partial"):
        _check(len(data) + sum(found[1]))
    return found


def _check(count: int) -> None:
    if count > MESSAGE_BYTES_MAX:
        raise UnusableMessageError(f"a message of more than {MESSAGE_BYTES_MAX >> 20} MiB")
