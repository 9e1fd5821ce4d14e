"""Takes what hosts keep of an attempt into the parent's result: their tables joined, other files as they are.

A host keeps its files until it is told to forget them, which is after the trial counts here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from leadline.durable import new_file, private_opener, write_whole
from leadline.errors import ResultError, StoreError
from leadline.foreign import reading
from leadline.hosts.join import joined, joined_and_kept
from leadline.hosts.model import HostTrial
from leadline.hosts.workers.attempt_runner import AttemptResult
from leadline.hosts.workers.calls import Order
from leadline.hosts.workers.checks import named
from leadline.hosts.workers.study_hosts import StudyHosts
from leadline.plan.model import PlannedCell, Trial
from leadline.removal import discard_tree
from leadline.run.kinds import conducted
from leadline.store.by_host import StoredRows
from leadline.store.files import HOST_FILES, RECORDS, make_directory, storing
from leadline.store.tables import TABLES, LatencyRow, SeriesRow, TrialRow, to_arrow
from leadline.store.writer import ResultWriter, StoredTrial

_FETCH_S = 600.0
_OWN_RESULT = "see the host's own result there, and what runs as its Dask worker"
_FETCH_BYTES, _FETCH_FILES = 64 << 20, 1000  # in one message
_Pieces = dict[str, tuple[int, int]]  # of files, by their paths: from where on, and how many bytes


class TableCollector:
    """Fetches, joins and stores beside; `forget` is for when the trials count."""

    def __init__(self, study_hosts: StudyHosts, writer: ResultWriter) -> None:
        self._crewed, self._crew, self._remote = study_hosts, study_hosts.crew, study_hosts.remote
        self._writer = writer
        self._done: list[tuple[str, tuple[str, ...]]] = []

    def fetch(self, tried: AttemptResult) -> None:
        """Have all files of the hosts that finished; a host that cannot hand over one of them is lost."""
        for host, files in tried.bytes.items():
            known = tried.ends[host].files
            self._keep(tried, host, files, {path: (0, known.get(path, -1)) for path in files})
        tried.bytes.clear()
        while True:
            wanted = {host: self._missing(tried, host) for host in tried.ends if host not in tried.lost}
            wanted = {host: pieces for host, pieces in wanted.items() if pieces}
            if not wanted:
                break
            arguments = {host: (tried.attempt, pieces) for host, pieces in wanted.items()}
            said = self._crew.ask(Order(self._remote.fetch, arguments, _FETCH_S))
            for host, one in said.items():
                if one.problem:
                    tried.lost[host] = f"its tables could not be fetched: {one.problem}"
                else:
                    self._keep(tried, host, one.value, wanted[host])

    def _missing(self, tried: AttemptResult, host: str) -> _Pieces:
        """Pieces that were not fetched yet, as many as go into one message."""
        end, left = tried.ends[host], _FETCH_BYTES
        missing: _Pieces = {}
        for path, size in end.files.items() if end.state == "finished" else ():
            file = self._file(tried, host, path)
            have = file.stat().st_size if file.exists() else None
            if have is not None and have >= size:
                continue
            offset = have or 0
            missing[path] = (offset, min(size - offset, left))
            left -= missing[path][1]
            if left <= 0 or len(missing) >= _FETCH_FILES:
                break
        return missing

    def _keep(self, tried: AttemptResult, host: str, files: Mapping[str, bytes], asked: _Pieces) -> None:
        """Put what came behind what was there. Durable is what is made of it."""
        for path, (offset, size) in asked.items():
            data = files.get(path, b"")
            if len(data) != size:
                tried.lost[host] = f"{path} came with {len(data)} bytes in place of {max(size, 0)}"
                return
            file = self._file(tried, host, path)
            with storing(self._writer.path):
                file.parent.mkdir(parents=True, exist_ok=True)
                with open(file, "ab", opener=private_opener) if offset else new_file(file) as end:
                    end.write(data)

    def _staged(self, attempt: str) -> Path:
        return self._writer.path / RECORDS / f"hosts-{attempt}"

    def _file(self, tried: AttemptResult, host: str, path: str) -> Path:
        return self._staged(tried.attempt) / host / checked_path(path)

    def joined(
        self, tried: AttemptResult, slot: Sequence[Trial], cells: Sequence[PlannedCell]
    ) -> list[StoredTrial]:
        """The trials that every host which was not lost has, each as one; and the tables by host beside."""
        stored = []
        for trial, cell in zip(slot, cells, strict=True):
            hosts = [
                one for one in tried.ends if self._file(tried, one, f"trials/{trial.id}.parquet").exists()
            ]
            if not hosts or any(one not in hosts for one in tried.ends if one not in tried.lost):
                break
            stored.append(self._join(tried, trial, hosts))
            self._keep_others(tried, trial.id, hosts)
            own = {host: self._writer.path / HOST_FILES / host for host in hosts}
            conducted(cell.job).gather(trial.id, self._writer.path, own)
        return stored

    def _join(self, tried: AttemptResult, trial: Trial, hosts: Sequence[str]) -> StoredTrial:
        """One trial of all hosts. Raises ResultError, which names the host whose tables cannot be used."""
        found = [self._host_trial(tried, host, trial) for host in hosts]
        try:
            whole = joined_and_kept(self._writer.path, found, tried.attempt, tried.lost)
            for rows, row_type in zip(
                ([whole[0]], *whole[1:]), (TrialRow, LatencyRow, SeriesRow), strict=True
            ):
                to_arrow(list(rows), row_type)  # sums may be beyond what a column holds
        except StoreError:
            raise
        except Exception as error:
            for one in found:
                with reading(f"what host {one.host} stored of trial {trial.id}", _OWN_RESULT):
                    joined([one], tried.attempt)
            with reading(f"what {named(hosts)} stored of trial {trial.id}", _OWN_RESULT):
                raise error from None
        return whole

    def _host_trial(self, tried: AttemptResult, host: str, trial: Trial) -> HostTrial:
        files = {table: self._file(tried, host, f"{table}/{trial.id}.parquet") for table in TABLES}
        with reading(f"what host {host} stored of trial {trial.id}", _OWN_RESULT):
            rows = list(StoredRows(files["trials"], TrialRow))
            if [(row.trial, row.cell) for row in rows] != [(trial.id, trial.cell)]:
                raise ValueError(f"it has {len(rows)} rows, or of another trial")
        return HostTrial(
            host,
            rows[0],
            StoredRows(files["latency"], LatencyRow),
            StoredRows(files["series"], SeriesRow),
            self._crewed.clocks.of(host),
            self._crewed.machine(host),
        )

    def _keep_others(self, tried: AttemptResult, trial: str, hosts: Iterable[str]) -> None:
        """What is no table of ours: stages, output, processes and the like, by host."""
        for host in hosts:
            for path in tried.ends[host].files:
                parts = PurePosixPath(path).parts
                if parts[0] in TABLES or not any(part.split(".")[0] == trial for part in parts[1:]):
                    continue
                target = self._writer.path / HOST_FILES / host / checked_path(path)
                with storing(self._writer.path):
                    for above in reversed(target.parents):
                        if above.is_relative_to(self._writer.path / HOST_FILES):
                            make_directory(above)
                    write_whole(target, self._file(tried, host, path).read_bytes())

    def done(self, tried: AttemptResult) -> None:
        """Its trials count, or never will: `forget` lets the hosts forget it."""
        self._done.append((tried.attempt, tried.hosts))

    def forget(self) -> None:
        """Have the hosts remove what they keep of all attempts that are done.

        A host that does not answer, or cannot do it now, is told again the next time.
        """
        done, self._done = self._done, []
        for attempt, hosts in done:
            discard_tree(self._staged(attempt))
            here = [host for host in hosts if host in self._crew.hosts]
            said = self._crew.tell(self._remote.forget, attempt, hosts=here)
            late = tuple(host for host in here if host not in said or said[host].problem)
            if late:
                self._done.append((attempt, late))


def checked_path(path: str) -> PurePosixPath:
    """A path below a host's result, as a host says it: none that leads elsewhere. Raises ResultError."""
    parts = path.split("/")
    if not parts or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ResultError(f"a host names {path!r}, which is no file of a result", "see the host's own result")
    return PurePosixPath(path)
