"""Tables that only one kind of work has, a Parquet file a trial beside those that all have."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.durable import write_whole
from leadline.errors import ResultError
from leadline.foreign import open_plain, parse_json, read_plain, reading
from leadline.store.files import storing, write_table
from leadline.store.parquet import fitted, opened
from leadline.store.tables import schema, to_arrow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from leadline.store.reader import Result


ACKS = "acks"
DIRECTIONS = ("read", "write")
JOINED_MAX = 1 << 23  # records of a trial on all hosts together; what is beyond is counted as lost
_MAGIC = b"LLACKS\x01\0"
_HEADER_BYTES = 32
_RECORD_BYTES = 48
_RECORD = {
    "names": ["stream", "direction", "offset", "length", "submitted_ns", "acked_ns", "result"],
    "formats": ["<u4", "u1", "<u8", "<u8", "<u8", "<u8", "<i8"],
    "offsets": [0, 4, 8, 16, 24, 32, 40],
    "itemsize": _RECORD_BYTES,
}
_LOST = b"lost"


@dataclass(frozen=True)
class AckRow:
    """One acknowledged request. Times are ns since the trial's start; `offset` and `length` are bytes.

    `submitted_ns`: its buffer was filled and handed to the engine; `acked_ns`: the library said that it is
    done, which means what the engine's table says of it. `result` is the bytes moved, or minus an errno.
    `host` is None of a trial on one host.
    """

    trial: str
    host: str | None
    stream: int
    direction: str
    offset: int
    length: int
    submitted_ns: int
    acked_ns: int
    result: int


@dataclass(frozen=True)
class Acks:
    """The acknowledgements of one trial as arrays of one length, in no order.

    `host` is an index into `hosts`, all 0 of one host; `reads` is true of requests that read. `lost` counts
    those that there was no room for.
    """

    stream: NDArray[np.int64]
    host: NDArray[np.int64]
    reads: NDArray[np.bool_]
    offset: NDArray[np.int64]
    length: NDArray[np.int64]
    submitted_ns: NDArray[np.int64]
    acked_ns: NDArray[np.int64]
    result: NDArray[np.int64]
    hosts: tuple[str | None, ...] = (None,)
    lost: int = 0

    def __len__(self) -> int:
        """How many there are."""
        return len(self.stream)

    def first(self, count: int) -> Acks:
        """Those that were submitted first; the others count as lost."""
        if len(self) <= count:
            return self
        import numpy as np

        kept = np.argpartition(self.submitted_ns, count)[:count]
        arrays = {one.name: getattr(self, one.name)[kept] for one in fields(self)[:8]}
        return replace(self, **arrays, lost=self.lost + len(self) - count)


def read_ack_log(path: Path, lost: int = 0) -> Acks:
    """What the engine noted of a trial. Raises ValueError where it is no log of ours, OSError."""
    import numpy as np

    with open_plain(path) as file:
        header = file.read(_HEADER_BYTES)
        if (
            len(header) < _HEADER_BYTES
            or header[:8] != _MAGIC
            or int.from_bytes(header[8:12], "little") != _RECORD_BYTES
        ):
            raise ValueError("it is no log of acknowledgements of this version")
        records = int.from_bytes(header[16:24], "little")
        raw = file.read(records * _RECORD_BYTES)
    found = np.frombuffer(raw[: len(raw) // _RECORD_BYTES * _RECORD_BYTES], dtype=np.dtype(_RECORD))  # type: ignore[call-overload]
    if len(found) != records:
        raise ValueError(f"it claims {records} acknowledgements and holds {len(found)}")
    columns: dict[str, Any] = {name: found[name].astype(np.int64) for name in _RECORD["names"]}  # type: ignore[attr-defined]
    reads = columns.pop("direction") == 0
    return Acks(host=np.zeros(records, np.int64), reads=reads, lost=lost, **columns)


def write_acks(result: Path, trial: str, acks: Acks) -> None:
    """Store the acknowledgements of one trial."""
    import numpy as np
    import pyarrow as pa

    def words(texts: tuple[str | None, ...], places: Any) -> Any:
        known = [text for text in texts if text is not None]
        number = np.array([0 if text is None else known.index(text) for text in texts], np.int32)
        none = np.array([text is None for text in texts])[places]
        return pa.DictionaryArray.from_arrays(
            pa.array(number[places], mask=none), pa.array(known, pa.string())
        )

    direction = words(DIRECTIONS, np.where(acks.reads, 0, 1))
    columns = {
        "trial": words((trial,), np.zeros(len(acks), np.int32)),
        "host": words(acks.hosts, acks.host),
        "direction": direction,
        **{name: getattr(acks, name) for name in ("stream", "offset", "length")},
        **{name: getattr(acks, name) for name in ("submitted_ns", "acked_ns", "result")},
    }
    wanted = schema(AckRow)
    texts = {"trial", "host", "direction"}
    own = [
        pa.field(one.name, columns[one.name].type if one.name in texts else one.type, one.nullable)
        for one in wanted
    ]
    table = pa.table(columns, schema=pa.schema(own, metadata={_LOST: str(acks.lost).encode()}))
    packed = {name: "DELTA_BINARY_PACKED" for name in wanted.names if name not in texts}
    with storing(result):
        write_table(
            result / ACKS,
            trial,
            table,
            use_dictionary=sorted(texts),
            column_encoding=packed,
            store_schema=True,
        )


def read_acks(result: Result, trial: str) -> Acks | None:
    """The acknowledgements of a finished trial; None where none were kept. Raises ResultError."""
    file = result.path / ACKS / f"{trial}.parquet"
    if trial not in result.finished or not os.path.lexists(file):
        return None
    with reading(file):
        return acks_of(file)


def acks_of(file: Path) -> Acks:
    """The acknowledgements in a file. Raises what reading it raises, and ValueError of what cannot be."""
    import numpy as np
    import pyarrow as pa

    with opened(file) as stored:
        found = stored.read()
        lost = int((found.schema.metadata or {}).get(_LOST, b"0"))
    texts = ("trial", "host", "direction")
    # Dictionaries stay dictionaries: a text a row would be most of the memory.
    wanted = pa.schema(
        pa.field(
            one.name, pa.dictionary(pa.int32(), pa.string()) if one.name in texts else one.type, one.nullable
        )
        for one in schema(AckRow)
    )
    table = fitted(found, wanted)
    host, hosts = _places(table.column("host"))
    direction, words = _places(table.column("direction"))
    if not set(words) <= set(DIRECTIONS) or lost < 0:
        raise ValueError("a direction is neither read nor write")
    is_read = np.array([word == DIRECTIONS[0] for word in words] or [False], bool)
    columns = {
        name: table.column(name).to_numpy()
        for name in ("stream", "offset", "length", "submitted_ns", "acked_ns", "result")
    }
    late = columns["acked_ns"] < columns["submitted_ns"]
    if late.any() or (columns["stream"] < 0).any() or (columns["length"] < 0).any():
        raise ValueError("an acknowledgement precedes its request, or is of no stream")
    return Acks(host=host, reads=is_read[direction], hosts=hosts, lost=lost, **columns)


def _places(column: Any) -> tuple[Any, tuple[str | None, ...]]:
    """Of a column of texts: an index a row, and the texts; None stands for itself."""
    import numpy as np
    import pyarrow as pa

    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], whole.type)
    texts: list[str | None] = whole.dictionary.to_pylist()
    places = whole.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False).astype(np.int64)
    if whole.null_count or not texts:
        texts.append(None)
    return places, tuple(texts)


def join_acks(into: Path, trial: str, hosts: Mapping[str, Path]) -> None:
    """One table of those that hosts keep below their own results, each with its host's name.

    A host without one is left out: it did not finish. Raises ResultError.
    """
    import numpy as np

    kept: list[Acks] = []
    names: list[str | None] = []
    for host, path in hosts.items():
        file = path / ACKS / f"{trial}.parquet"
        if not os.path.lexists(file):
            continue
        with reading(file):
            own = acks_of(file).first(JOINED_MAX // len(hosts))
        kept.append(replace(own, host=np.full(len(own), len(names), np.int64)))
        names.append(host)
    if not kept:
        return
    arrays = {one.name: np.concatenate([getattr(own, one.name) for own in kept]) for one in fields(Acks)[:8]}
    joined = Acks(**arrays, hosts=tuple(names), lost=sum(own.lost for own in kept))
    write_acks(into, trial, joined)


STAGES = "stages"


@dataclass(frozen=True)
class StageRow:
    """One stage of one client in one trial. Times in ns count from the trial's start; `place` from 1.

    `state` is complete or error. `read_bytes` and `write_bytes` count all read and write calls; `target_*`
    and the seconds are of files on the target alone, by the trace, and None without one. `passes` is how
    often the stage read its inputs; `passes_by`: whether the trace or the calls tell it.
    `settle_ns` is how long syncing and dropping what it left in the page cache took, after its end.
    `host_busy_share` is of all CPUs of the host, whoever used them; it and `interfaces` were observed for
    `observed_ns`, which is somewhat longer than the stage.
    `interfaces` (name -> received and sent bytes and packets) and `details` (what steps said) are JSON.
    """

    trial: str
    client: int
    place: int
    stage: str
    state: str
    error: str | None
    started_unix_ns: int
    started_ns: int
    ended_ns: int
    settle_ns: int
    input_bytes: int
    output_bytes: int
    read_bytes: int | None
    write_bytes: int | None
    cpu_user_ns: int
    cpu_system_ns: int
    memory_max_bytes: int | None
    target_read_bytes: int | None
    target_written_bytes: int | None
    read_s: float | None
    write_s: float | None
    meta_s: float | None
    passes: float | None
    passes_by: str | None
    enlarges: bool
    interfaces: str
    details: str
    host_busy_share: float | None
    observed_ns: int

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.ended_ns - self.started_ns) / 1e9

    @property
    def cold_bytes(self) -> int:
        """What of its inputs it read for the first time, which no cache of a cold start has.

        Calls on other files count in what calls tell: they say something where they are enough for the whole.
        """
        if self.passes is None or (self.passes_by != "trace" and self.passes < 1):
            return 0
        return round(self.input_bytes * min(self.passes, 1.0))


def write_stages(result: Path, trial: str, rows: Sequence[StageRow]) -> None:
    """Store the stages of one trial."""
    with storing(result):
        write_table(result / STAGES, trial, to_arrow(rows, StageRow))


def read_stages(result: Result) -> list[StageRow]:
    """The stages of every finished trial that has some, in order."""
    found: list[StageRow] = []
    for trial in sorted(result.finished):
        file = result.path / STAGES / f"{trial}.parquet"
        if os.path.lexists(file):
            with reading(file):
                found += _stages_of(file)
    return found


def _stages_of(file: Path) -> list[StageRow]:
    with opened(file) as stored:
        table = fitted(stored.read(), schema(StageRow))
    rows = [StageRow(**row) for row in table.to_pylist()]
    for row in rows:
        if not (isinstance(parse_json(row.interfaces), dict) and isinstance(parse_json(row.details), list)):
            raise ValueError("`interfaces` or `details` is no JSON of leadline")
    return rows


PROPOSALS = "proposals.json"
_FORMAT = "leadline.proposals/1"
_BYTES_MAX = 1 << 24


@dataclass(frozen=True)
class StoredProposal:
    """`values` by setting; `state` is the target that it was measured as, `ended` why nothing more was."""

    name: str
    side: str
    state: str
    values: Mapping[str, str]
    blocks: tuple[int, ...] = ()
    ended: str = ""


def write_proposals(result: Path, proposals: Sequence[StoredProposal]) -> None:
    """Store all of them in the place of those before. Raises StoreError."""
    text = json.dumps({"format": _FORMAT, "proposals": [asdict(one) for one in proposals]}, indent=1)
    with storing(result):
        write_whole(result / PROPOSALS, text.encode())


def read_proposals(result: Path) -> tuple[StoredProposal, ...]:
    """In the order in which they were made; none where nothing was proposed. Raises ResultError."""
    path = result / PROPOSALS
    if not os.path.lexists(path):
        return ()
    with reading(path):
        found = parse_json(read_plain(path, _BYTES_MAX))
    try:
        if found["format"] != _FORMAT:
            raise ResultError(f"{path} is of format {found['format']!r}", "use the version that wrote it")
        return tuple(_proposal(one) for one in found["proposals"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ResultError(
            f"{path} is damaged: {type(error).__name__}: {error}", "restore it from a copy"
        ) from None


def _proposal(one: Mapping[str, object]) -> StoredProposal:
    values, blocks = one["values"], one["blocks"]
    if not isinstance(values, dict) or not isinstance(blocks, list):
        raise TypeError("a proposal has no values or no blocks")
    name, side, state = (str(one[name]) for name in ("name", "side", "state"))
    held = {str(name): str(value) for name, value in values.items()}
    return StoredProposal(name, side, state, held, tuple(int(block) for block in blocks), str(one["ended"]))
