"""One client of a pipeline: goes through the stages in its own directory, and accounts for each as it ends.

A process of its own, so that several clients are several. What it knows it appends to a file, stage by stage:
when a later stage fails, what was measured before it is there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from leadline.durable import private_opener
from leadline.foreign import parse_json, read_plain
from leadline.interpreter import script_command, user_environment
from leadline.observe.host.proc_parse import CpuTime, parse_net_dev, parse_stat
from leadline.store.files import checked_name
from leadline.workloads.application.copies import Start, run_copies
from leadline.workloads.pipeline import steps as pipeline_steps
from leadline.workloads.pipeline.job import (
    CLIENT,
    INPUT_PLACE,
    OUTPUT_PLACE,
    SOURCE,
    STEPS_OF_ONE_FILE,
    WIDEST,
    WIDEST_MAX,
    WORKSPACE,
)

PRELOAD = "LEADLINE_PIPELINE_PRELOAD"  # what the stages' programs preload, and this process does not
CONFIG_BYTES_MAX = 64 << 20
_STEPS = str(Path(pipeline_steps.__file__).resolve())
_COUNTED = ("received_bytes", "received_packets", "sent_bytes", "sent_packets")


class _StageError(Exception):
    """Why a stage failed, in words."""


class Client:
    """The stages of one client, one after the other."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._workspace = Path(config["workspace"])
        self._number = int(config["client"])
        self._files: dict[str, Path] = {}  # what stands for each stage, and for the source
        if config["source"] is not None:
            self._files[SOURCE] = Path(config["source"])
        self._wall_ns = int(config["wall_ns"])  # the same for all clients: a clock that is set moves no stage
        self._environment = _environment()

    def run(self) -> str | None:
        """Do every stage; why one failed, or None."""
        for place, stage in enumerate(self._config["pipeline"], start=1):
            error = self._stage(place, stage)
            if error is not None:
                return f"stage {stage['stage']}: {error}"
        return None

    def _stage(self, place: int, stage: Mapping[str, Any]) -> str | None:
        directory = self._workspace / checked_name(stage["stage"])
        directory.mkdir()
        inputs = [self._files[name] for name in stage["inputs"] if name in self._files]
        output = self._output(stage, directory, inputs)
        input_bytes = self._input_bytes(stage, inputs)
        self._forget(inputs)
        before, cpus = _interfaces(), _cpus()
        begun = time.monotonic_ns()
        accounts: list[dict[str, Any]] = []
        details: list[dict[str, Any]] = []
        error = None
        try:
            for number, action in enumerate(stage["actions"], start=1):
                account = self._action(stage, number, action, directory, inputs, output)
                accounts.append(account)
                details += [account["said"]] if account["said"] else []
                if account["error"]:
                    raise _StageError(account["error"])
            if stage["output"] is not None and _size(output) == 0:
                raise _StageError(f"it ended well, and left nothing in its output {stage['output']}")
        except _StageError as found:
            error = str(found)
        started = min((one["begun_ns"] for one in accounts), default=begun)
        ended = max((one["ended_ns"] for one in accounts), default=begun)
        after, busy = _interfaces(), _busy_share(cpus, _cpus())
        observed_ns = time.monotonic_ns() - begun
        settled = self._settle(directory, inputs) if error is None else 0
        self._files[stage["stage"]] = output
        self._append(
            {
                "client": self._number,
                "place": place,
                "stage": stage["stage"],
                "state": "complete" if error is None else "error",
                "error": error,
                "started_unix_ns": started + self._wall_ns,
                "ended_unix_ns": ended + self._wall_ns,
                "from_unix_ns": begun + self._wall_ns,
                "settle_ns": settled,
                "input_bytes": input_bytes,
                "output_bytes": _size(output),
                "inputs": [str(path) for path in inputs],
                "interfaces": _change(before, after),
                "host_busy_share": busy,
                "observed_ns": observed_ns,
                "details": details,
                **_sums(accounts),
            }
        )
        return error

    def _output(self, stage: Mapping[str, Any], directory: Path, inputs: Sequence[Path]) -> Path:
        """The file that stands for a stage, or its directory where nothing says which file."""
        if stage["output"] is not None:
            return directory / checked_name(stage["output"])
        steps = [action["step"] for action in stage["actions"]]
        if not any(step in STEPS_OF_ONE_FILE for step in steps):
            return directory
        url = next((action["url"] for action in stage["actions"] if action["url"]), None)
        name = Path(urlsplit(url).path).name if url else inputs[0].name
        return directory / (name or "download")

    def _input_bytes(self, stage: Mapping[str, Any], inputs: Sequence[Path]) -> int:
        if any(action["step"] == "download" for action in stage["actions"]):
            return int(self._config["source_bytes"])
        return sum(_size(path) for path in inputs)

    def _action(
        self,
        stage: Mapping[str, Any],
        number: int,
        action: Mapping[str, Any],
        directory: Path,
        inputs: Sequence[Path],
        output: Path,
    ) -> dict[str, Any]:
        """Run one command or step; what it used, what it said, and why it failed."""
        if action["step"] is None:
            command = self._filled(action["command"], inputs, output)
        else:
            command = tuple(script_command("-S", _STEPS, self._step(action, inputs, output)))
        printed = Path(self._config["output"]) / f"client-{self._number}-{stage['stage']}-{number}"
        variables = self._environment
        if action["step"] == "download" and not action["url"]:
            variables = {**variables, pipeline_steps.URL: os.environ[pipeline_steps.URL]}
        start = Start(1, command, directory, variables, printed)
        summary = run_copies([start], self._config["limit_s"])
        account = dict(summary["copies"][0]) if summary["copies"] else {}
        said = _said(Path(f"{printed}.out")) if action["step"] is not None else None
        begun = int(account.get("released_ns", time.monotonic_ns()))
        ended = begun + int(account.get("wall_ns", 0))
        error = summary["error"]["message"] if summary["error"] else None
        cost = {"begun_ns": begun, "ended_ns": ended}
        if said is not None:  # without what starting Python took
            cost = said.pop("cost")
        return {**account, "said": said, "error": error, **cost}

    def _step(self, action: Mapping[str, Any], inputs: Sequence[Path], output: Path) -> str:
        job = {
            **{name: action[name] for name in ("step", "buffer", "digest", "how", "timeout_ns")},
            "inputs": [str(path) for path in inputs],
            "output": str(output),
        }
        if action["step"] == "download":
            job |= {"url": action["url"]}
        if action["seen_from"] is not None:
            below = output.parent.relative_to(self._config["target"])
            job |= {"seen_from": str(Path(action["seen_from"]) / below)}
        return json.dumps(job)

    def _filled(self, words: Sequence[str], inputs: Sequence[Path], output: Path) -> tuple[str, ...]:
        """A command with its places filled in; `{input}` alone becomes as many words as there are inputs."""
        places = {f"{{{name}}}": str(path) for name, path in self._files.items()}
        places |= {WORKSPACE: str(self._workspace), OUTPUT_PLACE: str(output), CLIENT: str(self._number)}
        places[WIDEST] = str(self._config["widest"] or WIDEST_MAX)
        if inputs:
            places[INPUT_PLACE] = str(inputs[0])
        found: list[str] = []
        for word in words:
            if word == INPUT_PLACE:
                found += [str(path) for path in inputs]
            else:
                found.append(_replaced(word, places))
        return tuple(found)

    def _forget(self, inputs: Sequence[Path]) -> None:
        if self._config["cache"] == "cold":
            for path in (found for one in inputs for found in _files(one)):
                _drop(path, sync=False)

    def _settle(self, directory: Path, inputs: Sequence[Path]) -> int:
        """Sync and drop what a stage left in the page cache, so that the next begins without it."""
        begun = time.monotonic_ns()
        if self._config["cache"] == "cold":
            for path in _files(directory):
                _drop(path, sync=True)
            self._forget(inputs)
        return time.monotonic_ns() - begun

    def _append(self, row: Mapping[str, Any]) -> None:
        with open(self._config["progress"], "a", encoding="utf-8", opener=private_opener) as file:
            file.write(json.dumps(row) + "\n")


def _environment() -> dict[str, str]:
    """The user's own without our server's address, with what loads a tracer where there is one."""
    found = user_environment()
    found.pop(pipeline_steps.URL, None)
    preload = found.pop(PRELOAD, None)
    return found | {"LD_PRELOAD": preload} if preload else found


def _replaced(word: str, places: Mapping[str, str]) -> str:
    for place, text in places.items():
        word = word.replace(place, text)
    return word


def _said(path: Path) -> dict[str, Any] | None:
    """What a step said; None where it failed before it could."""
    try:
        found: dict[str, Any] = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir() and not path.is_symlink():
        for top, _, names in os.walk(path):
            yield from (Path(top) / name for name in names)
    elif path.is_file():
        yield path


def _size(path: Path) -> int:
    return sum(found.lstat().st_size for found in _files(path))


def _drop(path: Path, *, sync: bool) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if sync:
            os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _interfaces() -> dict[str, dict[str, int]]:
    try:
        text = Path("/proc/net/dev").read_text()
    except OSError:
        return {}
    return {name: asdict(found) for name, found in parse_net_dev(text).items()}


def _cpus() -> CpuTime | None:
    try:
        return parse_stat(Path("/proc/stat").read_text()).get("cpu")
    except OSError:
        return None


def _busy_share(before: CpuTime | None, after: CpuTime | None) -> float | None:
    """How busy all CPUs of the host were, whoever kept them so; None for less than a tick of the clock."""
    if before is None or after is None or after.total <= before.total:
        return None
    return (after.busy - before.busy) / (after.total - before.total)


def _change(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    """What went over each interface that was there all the time and carried something."""
    found = {}
    for name in after:
        if name in before:
            moved = {key: after[name][key] - before[name][key] for key in _COUNTED}
            if any(moved.values()):
                found[name] = moved
    return found


def _sums(accounts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    def total(name: str) -> int | None:
        values = [one.get(name) for one in accounts]
        return None if None in values else sum(values)  # type: ignore[arg-type]

    memory = [one["memory_max_bytes"] for one in accounts if one.get("memory_max_bytes") is not None]
    return {
        "read_bytes": total("read_bytes"),
        "write_bytes": total("write_bytes"),
        "cpu_user_ns": total("cpu_user_ns") or 0,
        "cpu_system_ns": total("cpu_system_ns") or 0,
        "memory_max_bytes": max(memory, default=None),
    }


def main() -> int:
    """Go through the pipeline that the file of the command line describes."""
    try:
        config = json.loads(read_plain(Path(sys.argv[1]), CONFIG_BYTES_MAX, own=True))
        error = Client(config).run()
    except OSError as found:
        error = f"{found.strerror or found}{f' ({found.filename})' if found.filename else ''}"
    if error is not None:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
