"""One log of Darshan: what the reading process wrote of it."""

from __future__ import annotations

import math
import resource
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.errors import UsageError
from leadline.foreign import parse_json
from leadline.interpreter import module_command, module_environment
from leadline.observe.hang_guard import temporary_directory
from leadline.store.making import temporary
from leadline.tracing.sources.darshan.reader import COUNTED, TRACED, old_version

if TYPE_CHECKING:
    import pyarrow as pa

READ_DEADLINE_S = 600
MEMORY_MAX_BYTES = 8 << 30  # a damaged length must not take the machine's memory
NS = 1e9
_OLD_REMEDY = "print it with darshan-parser of darshan-util 2.3, or run the program again with Darshan 3"
REMEDY = "copy the log anew; `darshan-parser LOG` shows what can still be read"


@dataclass
class DarshanLog:
    """What the reader wrote of one log."""

    path: Path
    about: dict[str, Any]
    modules: dict[str, dict[str, list[Any]]]
    traces: dict[str, pa.Table]
    copy: int = 0
    first: int = 0  # the number of its first process in its copy
    shift_ns: int = 0  # from the trial's start to this log's
    numbers: dict[tuple[str, int, str], int] = field(default_factory=dict)  # (module, rank, id) -> file

    @property
    def ranks(self) -> int:
        """How many processes ran."""
        return int(self.about["processes"])

    @property
    def rows(self) -> int:
        """How many processes it is in the tables: its ranks, and what they share."""
        shared = any(rank < 0 for columns in self.modules.values() for rank in columns["rank"])
        return self.ranks + 1 if shared and self.ranks > 1 else self.ranks

    @property
    def recorded(self) -> bool:
        """False where no call on a file was: Darshan keeps no module without a record."""
        return bool(set(self.about["modules"]) - {"HEATMAP"})

    def process(self, rank: int) -> int:
        """The number of a rank's row; that of what all ranks share comes last."""
        if rank >= 0:
            return self.first + rank
        return self.first + (0 if self.ranks == 1 else self.ranks)

    @property
    def most_s(self) -> float | None:
        """The longest that it can have run; None where it has no end."""
        known: float | None = 1.0 if self.about["within_a_second"] else self.about["wall_s"]
        return known

    @property
    def end_ns(self) -> float:
        """When it ended at the latest, as many logs keep whole seconds; a log that was cut has no end."""
        if not self.about["ended"]:
            return math.inf
        return float(self.about["started_unix_ns"] + ((self.about["wall_s"] or 0.0) + 1) * NS)

    @property
    def name(self) -> str:
        """The path that stands for a record without a name."""
        return self.path.name


def require_library() -> None:
    from importlib.util import find_spec

    if find_spec("darshan") is None:
        raise UsageError(
            "PyDarshan, which reads Darshan's logs, is not installed",
            "install it beside leadline: pip install 'leadline[darshan]'",
        )


def read_log(path: Path) -> DarshanLog:
    """One log, read in a process that may crash."""
    from pyarrow import feather

    try:
        with path.open("rb") as file:
            old = old_version(file)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "name a file of Darshan") from None
    if old is not None:
        raise UsageError(f"Darshan {old} wrote {path}: the library of Darshan 3 cannot read it", _OLD_REMEDY)
    with temporary(Path(temporary_directory())) as directory:
        _run_reader(path, directory)
        about = parse_json((directory / "log.json").read_text(encoding="utf-8"))
        modules = {
            module: feather.read_table(str(directory / f"{module}.arrow"), memory_map=False).to_pydict()
            for module in COUNTED
            if (directory / f"{module}.arrow").is_file()
        }
        traces = {
            module: _ipc(directory / f"{module}.arrow")
            for module in TRACED
            if (directory / f"{module}.arrow").is_file()
        }
    if about["within_a_second"]:
        about["wall_s"] = None
    return DarshanLog(path, about, modules, traces)


def _ipc(path: Path) -> pa.Table:
    import pyarrow as pa

    with pa.OSFile(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def _run_reader(path: Path, directory: Path) -> None:
    command = module_command("leadline.tracing.sources.darshan.reader", str(path), str(directory))
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=module_environment(),
            timeout=READ_DEADLINE_S,
            check=False,
            preexec_fn=_bound_memory,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{path} could not be read in {READ_DEADLINE_S} s", REMEDY) from None
    reason = directory / "error.txt"
    if reason.is_file():
        raise UsageError(f"{path} cannot be read: {reason.read_text(encoding='utf-8')}", REMEDY)
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise UsageError(f"{path} is damaged: Darshan's library died of it ({name})", REMEDY)
    if done.returncode or not (directory / "log.json").is_file():
        said = done.stderr.decode("utf-8", "backslashreplace").strip().splitlines()[-1:]
        raise UsageError(f"{path} cannot be read: {said[0] if said else 'no reason given'}", REMEDY)


def _bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_BYTES, MEMORY_MAX_BYTES))
