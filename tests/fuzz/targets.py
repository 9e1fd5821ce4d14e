"""What is fuzzed: readers of stored or foreign bytes, which begin with true files, and what `emit` writes.

A reader gives a result, or one error of `leadline.errors`; the engine's own raise what their stubs say.
`readers.py` lets libFuzzer think of bytes; `tests/unit/test_fuzzed_readers.py` tries seeded ones.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from answering import read_nfs, read_s3, seed_nfs, seed_s3
from emitted import read_emitted, seed_emitted

from leadline.errors import LeadlineError

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
RESULT = DATA / "fuzz" / "result"
_PART_LINES = 25  # of a log of strace: short inputs are quick to read
_LOG_BYTES = 1 << 20  # the least that a traced process writes into
_SUBJECT = [
    "/bin/sh",
    "-c",
    "cp /bin/true copy; cat copy | head -c 100 > part; mv part parted; rm copy parted",
]
# What the extension raises, as `_core.pyi` has it.
ENGINE_ERRORS = (ValueError, OSError, RuntimeError)


class Reader(NamedTuple):
    """`module` is instrumented; `read` gets a file with the bytes; `seed` writes true files into a directory.

    Inputs have up to `bytes_max` bytes; `errors` are what it may raise.
    """

    module: str
    bytes_max: int
    read: Callable[[Path], object]
    seed: Callable[[Path, Path], None]
    errors: tuple[type[Exception], ...] = (LeadlineError,)


def _strace(path: Path) -> object:
    from leadline.tracing.sources.strace import read_strace

    return read_strace(path)


def _strace_logs(corpus: Path, work: Path) -> None:
    for number, options in enumerate((["-f", "-ttt", "-T", "-y"], ["-f", "-tt"], ["-f", "-r", "-T"], ["-y"])):
        log = work / "log"
        subprocess.run(["strace", *options, "-o", str(log), *_SUBJECT], cwd=work, check=True)
        lines = log.read_bytes().splitlines(keepends=True)
        for first in range(0, len(lines), _PART_LINES):
            (corpus / f"strace-{number}-{first}").write_bytes(b"".join(lines[first : first + _PART_LINES]))


def _log(path: Path) -> object:
    from leadline.tracing.sources.preload import tables

    return tables([str(path)], started_unix_ns=0, copy=0)


def _logs(corpus: Path, work: Path) -> None:
    from leadline.tracing.sources import preload

    surroundings = preload.environment(
        corpus, segments_bytes=1 << 14, memory_bytes=_LOG_BYTES, inherited=os.environ
    )
    subprocess.run(["/bin/ls", "/"], cwd=work, env=surroundings, check=True, stdout=subprocess.DEVNULL)


def _darshan(path: Path) -> object:
    from leadline.tracing.sources.darshan_tables import read_darshan

    return read_darshan([path])


def _darshan_logs(corpus: Path, _work: Path) -> None:
    import darshan

    found = Path(darshan.__path__[0]).rglob("*.darshan")
    for path in sorted(path for path in found if path.stat().st_size <= READERS["darshan"].bytes_max):
        (corpus / path.name).write_bytes(path.read_bytes())


def _placed(name: str) -> Callable[[Path], object]:
    """Reads a whole result in which one file is the input's: as `list` and `show --json` do."""

    def read(path: Path) -> object:
        from leadline.report.renderers.show_json import to_json
        from leadline.store.reader import open_result
        from leadline.verdict.findings import build_findings

        place = path.parent / f"result-{name.replace('/', '-')}"
        if not place.is_dir():
            shutil.copytree(RESULT, place)
        shutil.copyfile(path, place / name)
        findings = build_findings(open_result(place), with_charts=False)
        return json.dumps(to_json(findings), allow_nan=False)

    return read


def _traced(table: str) -> Callable[[Path], object]:
    """Reads a traced result in which one table is the input's: as `show --json` does, segments included."""

    def read(path: Path) -> object:
        from leadline.report.renderers.show_json import to_json
        from leadline.store.reader import open_result
        from leadline.tracing.store import read_trace
        from leadline.verdict.findings import build_findings

        place = path.parent / f"traced-{table}" / "result"
        shutil.copyfile(path, place / table / "t0001.parquet")
        result = open_result(place)
        with suppress(LeadlineError):  # the page has it all but the segments, and reads them apart
            read_trace(result)
        return json.dumps(to_json(build_findings(result, with_charts=True)), allow_nan=False)

    return read


def _tables(table: str) -> Callable[[Path, Path], None]:
    """Traces a shell, for a true result to put the input into."""

    def seed(corpus: Path, work: Path) -> None:
        home = work / f"traced-{table}"
        home.mkdir(exist_ok=True)
        if not (home / "result").is_dir():
            command = [
                sys.executable,
                "-m",
                "leadline",
                "trace",
                "--segments",
                "-o",
                "result",
                "--",
                *_SUBJECT,
            ]
            subprocess.run(command, cwd=home, check=True, capture_output=True)
        shutil.copyfile(home / "result" / table / "t0001.parquet", corpus / table)

    return seed


def _index(path: Path) -> object:
    """A summary: whatever is in it, nothing but rows comes out."""
    from leadline.store.index import INDEX, read_heads, read_indexes

    place = path.parent / "result-index"
    if not place.is_dir():
        shutil.copytree(RESULT, place)
    shutil.copyfile(path, place / INDEX)
    list(read_heads([place]))
    rows = [row for found in read_indexes([place]).values() for row in found]
    return [json.dumps(vars(row), allow_nan=False) for row in rows]


def _bundled(path: Path, name: str) -> object:
    """A result with a bundle of which one file is the input's, and the list says that this is so."""
    from leadline.store.bundles import BUNDLES, digest_of
    from leadline.store.reader import open_result

    place = path.parent / f"bundled-{name.replace('/', '-')}"
    if not place.is_dir():
        _with_bundle(place)
    listed = place / BUNDLES / "0001.json"
    shutil.copyfile(path, place / BUNDLES / name)
    if name != listed.name:
        value = json.loads(listed.read_text())
        table = name.partition("/")[0]
        value["tables"][table] |= {"bytes": path.stat().st_size, "digest": digest_of(path)}
        listed.write_text(json.dumps(value))
    result = open_result(place)
    lines = [result.sample_lines(trial) for trial in sorted(result.finished)]
    return result.trials(), result.latency(), result.series(), lines


def _with_bundle(place: Path) -> None:
    from leadline.store.bundles import bundle_trials
    from leadline.store.reader import open_result

    shutil.copytree(RESULT, place)
    bundle_trials(place, open_result(place).finished, 1)


def _bundle_reader(name: str) -> Reader:
    """`name` is the file's below the directory of bundles."""

    def seed(corpus: Path, work: Path) -> None:
        if not (work / "seed").is_dir():
            _with_bundle(work / "seed")
        shutil.copyfile(work / "seed" / "bundles" / name, corpus / "bundle")

    return Reader("leadline.store.bundles", 1 << 16, lambda path: _bundled(path, name), seed)


def _given(*names: str) -> Callable[[Path, Path], None]:
    """True files below the tests' data."""

    def seed(corpus: Path, _work: Path) -> None:
        for name in names:
            for path in sorted(DATA.glob(name)):
                shutil.copyfile(path, corpus / path.name)

    return seed


def _documents(corpus: Path, work: Path) -> None:
    from leadline.published.document import document_names, document_text

    _given("fuzz/published-*")(corpus, work)
    for name in document_names():
        (corpus / f"{name}.yaml").write_text(document_text(name))


def _study(path: Path) -> object:
    from leadline.study.library import load_study

    named = path.with_name("input.yaml")
    shutil.copyfile(path, named)
    return load_study(str(named), {"HOME": "/home"})


def _job_file(path: Path) -> object:
    from leadline.study.library import load_study

    named = path.with_name("input.fio")
    shutil.copyfile(path, named)
    return load_study(str(named), {"HOME": "/home"})


def _job_files(corpus: Path, _work: Path) -> None:
    for path in sorted((DATA / "fio").rglob("*.fio")):
        shutil.copy(path, corpus)


def _studies(corpus: Path, _work: Path) -> None:
    from leadline.study.library import builtin_names, builtin_text

    for name in builtin_names():
        (corpus / name).write_text(builtin_text(name))


def _topology(path: Path) -> object:
    from leadline.lab.network.topology_file import load_topology

    return load_topology(path, {"HOME": "/home"})


def _topologies(corpus: Path, _work: Path) -> None:
    """Those that leadline brings along, which have every key but a few."""
    from leadline.lab.network.topology_file import reference_names, reference_text

    for name in reference_names():
        (corpus / name).write_text(reference_text(name))
    more = (
        "mtu: 9000\nosd_size: 4G\nswitches: {core: }\nhosts:\n  host[1-3]: {switch: core, osds: 1, cpu: 1}\n"
    )
    (corpus / "small").write_text(more)


def _opencast(path: Path) -> object:
    from leadline.workflows.reading import read_workflows, total_of

    text = path.read_bytes().decode("utf-8", "replace")
    total_of(text)
    found = read_workflows(text, str(path))
    return json.dumps([one.title.encode().decode() for one in found], allow_nan=False)


def _fio_results(path: Path) -> object:
    from leadline.errors import UsageError
    from leadline.foreign import read_plain, reading
    from leadline.imported.fio import BYTES_MAX, read_fio
    from leadline.imported.fio_jobs import fio_cells
    from leadline.imported.made import imported_trials, source_of
    from leadline.store.tables import TABLES, to_arrow

    with reading(path, error=UsageError):
        cells = fio_cells([read_fio(read_plain(path, BYTES_MAX).decode("utf-8", "replace"))])
    manifest, trials = imported_trials(source_of("fio", "fio-3", {"a": "b"}), cells, "a")
    json.dumps(manifest, allow_nan=False).encode()
    rows = [row for row, _ in trials], [one for _, latency in trials for one in latency]
    return to_arrow(rows[0], TABLES["trials"]), to_arrow(rows[1], TABLES["latency"])


def _published(path: Path) -> object:
    from leadline.published.checks import tested
    from leadline.published.claims import judge_claims
    from leadline.published.document import read_published, read_source

    document = read_published(read_source(path), str(path))
    return tested(document), judge_claims(document, ())


def _tuning_journal(path: Path) -> object:
    """What `leadline tune status` and `revert` make of it before they touch a system."""
    from leadline.tuning.changing.journal import FILE, TuningJournal
    from leadline.tuning.changing.reverting import reached

    place = path.parent / "tuning"
    place.mkdir(mode=0o700, exist_ok=True)
    shutil.copyfile(path, place / FILE)
    state = TuningJournal(place).state()
    for one in state.outstanding():
        with reached(state.runs[one.run].reach):
            json.dumps([one.change.as_json(), one.values, one.is_ours("1"), one.line])
    return [(run.id, run.ended, run.holder_pid) for run in state.runs.values()]


def _tuning_journals(corpus: Path, work: Path) -> None:
    """Changes of a sysctl and of a cluster; with checksums and, as the version before wrote them, without."""
    from leadline.tuning.changing.journal import TuningJournal
    from leadline.tuning.changing.state import Reach
    from leadline.tuning.settings import SettingChange, SettingPlace, settings

    journal = TuningJournal(work / "true")
    with journal.locked():
        health = {"status": "HEALTH_OK", "checks": {"A": ["HEALTH_WARN", "b"]}, "groups_inactive": 0}
        run = journal.begin(Reach("/etc/ceph/ceph.conf", "client.admin", {"lab:a/b": "/run/a"}), 5.5, health)
        journal.say("holding", run=run, pid=5)
        for name, place in (("vm.swappiness", SettingPlace()), ("osd_max_backfills", SettingPlace("osd"))):
            one = journal.changing(run, SettingChange(name, place, "3", "1"), settings()[name], "boot:a")
            journal.say("done", number=one.number)
        journal.say("trying", number=1, value="4")
        journal.say("undone", number=2, how="put back")
        journal.say("confirmed", run=run)
        journal.say("ended", run=run, how="put back")
    lines = [json.loads(line) for line in journal.path.read_bytes().rstrip(b"\0").splitlines()]
    lines[0]["format"] = "leadline.tuning/1"
    bare = [{key: value for key, value in one.items() if key != "sum"} for one in lines]
    (corpus / "bare").write_text("".join(json.dumps(one) + "\n" for one in bare))
    shutil.copyfile(journal.path, corpus / "checked")


def _script(path: Path) -> object:
    from leadline import _core

    return _core.check_script(path)


def _scripts(corpus: Path, _work: Path) -> None:
    """Two threads and three files, in the layout that `crates/engine/src/replay/script.rs` documents."""
    files = b"".join(
        struct.pack("<QII", size, flags, 0) for size, flags in ((4096, 2), ((1 << 64) - 1, 4), (0, 1))
    )
    threads = struct.pack("<QII", 2, 0, 0) + struct.pack("<QII", 1, 1, 0)
    calls = b"".join(
        struct.pack("<QQQQIBBH", 10, 0, 512, 512, file, kind, 0, 0) for file, kind in ((0, 0), (0, 2), (1, 3))
    )
    head = b"LLREPLAY" + struct.pack("<IIIIQ", 1, 2, 3, 0, 3)
    (corpus / "script").write_bytes(head + files + threads + calls)


def _record(path: Path) -> object:
    from leadline import _core

    return _core.read_record(path)


READERS = {
    "strace": Reader("leadline.tracing.sources.strace", 1 << 13, _strace, _strace_logs),
    "log": Reader("leadline.tracing.sources.preload", 2 * _LOG_BYTES, _log, _logs),
    "darshan": Reader("leadline.tracing.sources.darshan_tables", 1 << 14, _darshan, _darshan_logs),
    "manifest": Reader(
        "leadline.verdict.findings",
        1 << 13,
        _placed("manifest.json"),
        _given("fuzz/result/manifest.json", "fuzz/manifest-*"),
    ),
    "journal": Reader(
        "leadline.verdict.findings",
        1 << 12,
        _placed("events.jsonl"),
        _given("fuzz/result/events.jsonl", "fuzz/journal-*"),
    ),
    "trials": Reader(
        "leadline.verdict.findings",
        1 << 16,
        _placed("trials/t0001.parquet"),
        _given("fuzz/result/trials/t0001.parquet", "fuzz/trials-*"),
    ),
    "latency": Reader(
        "leadline.verdict.findings",
        1 << 14,
        _placed("latency/t0001.parquet"),
        _given("fuzz/result/latency/t0001.parquet", "fuzz/latency-*"),
    ),
    **{
        table: Reader("leadline.verdict.findings", 1 << 16, _traced(table), _tables(table))
        for table in ("processes", "files", "segments", "call_latency")
    },
    "index": Reader(
        "leadline.store.index", 1 << 14, _index, _given("fuzz/result/cells-2.parquet", "fuzz/index-*")
    ),
    "bundle": _bundle_reader("0001.json"),
    "bundled_trials": _bundle_reader("trials/0001.parquet"),
    "bundled_series": _bundle_reader("series/0001.parquet"),
    "study": Reader("leadline.study.library", 1 << 13, _study, _studies),
    "job_file": Reader("leadline.study.fio.document", 1 << 13, _job_file, _job_files),
    "topology": Reader("leadline.lab.network.topology_file", 1 << 13, _topology, _topologies),
    "opencast": Reader(
        "leadline.workflows.reading", 1 << 13, _opencast, _given("opencast/*", "fuzz/opencast-*")
    ),
    "fio-results": Reader(
        "leadline.imported.fio",
        1 << 14,
        _fio_results,
        _given("fuzz/fio-results-*", "report/fio-3.33-randrw.json"),
    ),
    "tuning": Reader("leadline.tuning.changing.journal", 1 << 13, _tuning_journal, _tuning_journals),
    "published": Reader("leadline.published.document", 1 << 14, _published, _documents),
    "emit": Reader("leadline.mounting.emit", 1 << 12, read_emitted, seed_emitted, ()),
    "script": Reader("leadline._core", 1 << 12, _script, _scripts, ENGINE_ERRORS),
    "s3": Reader("leadline._core", 1 << 12, read_s3, seed_s3, ENGINE_ERRORS),
    "nfs": Reader("leadline._core", 1 << 12, read_nfs, seed_nfs, ENGINE_ERRORS),
    "record": Reader("leadline._core", 1 << 14, _record, _given("record-v1.llrec"), ENGINE_ERRORS),
}
