"""CPU time per operation of the engines that reach storage by a library, beside the library's own programs.

A disposable lab with its gateways serves all of it from this machine, so that only CPU time is compared: that
of the client's process and its threads. Of trials, `rados bench` and fio it is a long run less a short one;
programs that move one file have their start in it. What lacks here is NOT_RUN, and why.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cost import Places
from ratios import cpu_per_operation_ns, interleaved, spread
from s3_peer import curl_command
from sides import LIMIT_S, SECOND_NS, TRIAL, Sample, Side, done_of, job, pinned, without_start
from tables import judge, shares

KIB, MIB = 1 << 10, 1 << 20
SMALL, LARGE = 4 * KIB, 4 * MIB
LENGTHS_S = (2, 1)  # a long and a short run, in whole seconds, as `rados bench` takes them
LONGER_S = (5, 1)  # for the goal: of writes of 4 MiB a second has few
RADOS_GOAL = 1.05  # of `rados bench`, which writes the same bytes each time, with equal data on both sides
DEPTH = 8
DATA_BYTES = 32 * MIB
FRESH = "FRESH"  # in a name: of what a program makes once only
HEAD = [
    "| work | side | µs of CPU per operation | leadline / it |",
    "|---|---|---|---|",
]


@dataclass(frozen=True)
class Lab:
    """The ways to a lab's storage: `where` and `reason` by way, and a directory of this host for files."""

    where: dict[str, str]
    reason: dict[str, str]
    conf: str
    local: Path
    cpu: int


@dataclass(frozen=True)
class Work:
    """One row: leadline first, then its peers; `lacking` are peers that cannot run, with the reason."""

    what: str
    sides: list[Side]
    lacking: dict[str, str]
    has_goal: bool = False


def engine_cpu(places: Places) -> list[str]:
    """The section of results.md."""
    lines = ["", "## CPU time per operation of the engines without a mount", ""]
    with tempfile.TemporaryDirectory(prefix="leadline-bench-lab-") as home:
        started = _lab(Path(home))
        if isinstance(started, str):
            return [*lines, f"NOT_RUN: {started}", ""]
        try:
            lab = _read(Path(home), places.cpu)
            return [*lines, *_measured(lab, places.rounds(3)), ""]
        finally:
            _leadline(Path(home), "lab", "down", "--all")


def _lab(home: Path) -> str | None:
    """Starts it; the reason where it does not start. Gateways that do not are reasons of their own rows."""
    done = _leadline(
        home, "lab", "up", "--name", "bench", "--dir", str(home / "lab"), "--osds", "3", "--gateways", "all"
    )
    last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return None if (home / "lab" / "ceph.conf").exists() and done.returncode in (0, 3) else last


def _leadline(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "leadline", *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "XDG_STATE_HOME": str(home)},
    )


def _read(home: Path, cpu: int) -> Lab:
    found = json.loads(_leadline(home, "lab", "targets", str(home / "lab"), "--json").stdout)["targets"]
    for target in found:
        os.environ.update(target["variables"])
    local = home / "local"
    local.mkdir()
    return Lab(
        {target["way"]: target["where"] for target in found},
        {target["way"]: target["reason"] for target in found},
        str(home / "lab" / "ceph.conf"),
        local,
        cpu,
    )


def _measured(lab: Lab, rounds: int) -> list[str]:
    lines, commands = list(HEAD), []
    for way, works in WORKS.items():
        reason = lab.reason.get(way, "the lab knows no such way")
        if reason:
            lines.append(f"| {way} | NOT_RUN | {reason} | |")
            continue
        try:
            for work in works(lab):
                lines += _rows(work, rounds)
                commands += [side.command for side in work.sides]
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            words = " ".join(str(error).split())
            lines.append(f"| {way} | NOT_RUN | {words[-200:]} | |")
    shown = [f"    {command}" for command in dict.fromkeys(commands)]
    return [*lines, "", "Commands:", "", *shown]


def _rows(work: Work, rounds: int) -> list[str]:
    # Where a goal is to be decided three rounds would not.
    samples = interleaved(work.sides, 2 * rounds + 1 if work.has_goal else rounds)
    lines = []
    for index, side in enumerate(work.sides):
        own = spread([cpu_per_operation_ns(one[index]) / 1e3 for one in samples])
        pairs = [cpu_per_operation_ns(one[0]) / cpu_per_operation_ns(one[index]) for one in samples]
        compared = spread(pairs).words(2) if index else ""
        if side.name == "rados bench" and work.has_goal:
            compared += (
                f", at most {RADOS_GOAL:g}: {judge(spread(pairs), RADOS_GOAL)}; {shares(samples, 0, index)}"
            )
        lines.append(f"| {work.what if index == 0 else ''} | {side.name} | {own.words(0)} | {compared} |")
    return [*lines, *(f"| | {name} | cannot do it: {why} | |" for name, why in work.lacking.items())]


def trial(
    lab: Lab, url: str, engine: str, rw: str, bs: int, lengths_s: tuple[int, int] = LENGTHS_S, **changes: Any
) -> Side:
    """leadline: trials of the engine, without Python, in a directory that they have to themselves."""
    name = f"/bench-{rw}-{bs // KIB}k"
    long, short = (_trial(lab, url, engine, rw, bs, seconds, **changes) for seconds in lengths_s)
    _make_directory(url, name)
    words = [str(TRIAL), "layout", str(_job_path(lab, engine, name, lengths_s[0])), "none"]
    laid = subprocess.run(words, check=False, timeout=LIMIT_S, capture_output=True, text=True)
    if laid.returncode != 0:
        raise RuntimeError(f"no files were laid out: {laid.stderr[-300:]}")
    return without_start(long, short)


def _job_path(lab: Lab, engine: str, name: str, seconds: int) -> Path:
    return lab.local / f"{engine}{name.replace('/', '-')}-{seconds}.json"


def _trial(lab: Lab, url: str, engine: str, rw: str, bs: int, seconds: int, **changes: Any) -> Side:
    name = f"/bench-{rw}-{bs // KIB}k"
    value = job(
        Path(name), engine=engine, location=url, rw=rw, bs=bs, size=max(DATA_BYTES, DEPTH * bs), direct=True,
        iodepth=DEPTH, time_based=True, runtime_ns=seconds * SECOND_NS, overwrite=rw != "read", **changes,
    )  # fmt: skip
    path = _job_path(lab, engine, name, seconds)
    path.write_text(json.dumps(value))
    said = "".join(f" {name}={value}" for name, value in changes.items())
    shown = f"trial engine={engine} rw={rw} bs={bs} iodepth={DEPTH} time_based{said}"
    return Side("leadline", lambda: _sample(lab, path), shown)


def _sample(lab: Lab, path: Path) -> Sample:
    """What the trial of a job used and moved."""
    used, out = pinned([str(TRIAL), "run", str(path), str(lab.local / "trial.llrec")], lab.cpu)
    operations, moved_bytes, last_ns = done_of(out)
    return Sample(used.cpu_ns, operations, moved_bytes, last_ns, 0.0, 0.0, used.kernel_ns)


def _new_files(lab: Lab, url: str, engine: str) -> Side:
    """leadline writing a file that is not there, each time another one: a whole one less a quarter of one."""
    number = itertools.count()

    def writing(size: int) -> Side:
        def run() -> Sample:
            name = f"/bench-new-{next(number)}"
            _make_directory(url, name)
            value = job(
                Path(name), engine=engine, location=url, rw="write", bs=LARGE, size=size, direct=True,
                iodepth=DEPTH,
            )  # fmt: skip
            path = _job_path(lab, engine, "/bench-new", size)
            path.write_text(json.dumps(value))
            return _sample(lab, path)

        return Side("leadline", run, f"trial engine={engine} rw=write bs={LARGE} iodepth={DEPTH}")

    return without_start(writing(DATA_BYTES), writing(DATA_BYTES // 4))


def _make_directory(url: str, name: str) -> None:
    from leadline import _core

    with contextlib.suppress(FileExistsError):
        _core.Volume(url).make_directory(name)


def copies(
    lab: Lab,
    name: str,
    commands: list[list[str]],
    bs: int,
    operations: int,
    shown: str,
    makes: Path | None = None,
) -> Side:
    """A program that moves one file and ends, run several times: its start is part of it.

    `makes`: what it makes, which must not be there. FRESH in a word becomes another number in each run.
    """
    number = itertools.count()

    def run() -> Sample:
        if makes is not None:
            makes.unlink(missing_ok=True)
        fresh = str(next(number))
        cpu_ns = sum(
            pinned([word.replace(FRESH, fresh) for word in command], lab.cpu)[0].cpu_ns
            for command in commands
        )
        done = len(commands) * operations
        return Sample(cpu_ns, done, done * bs, 0)

    return Side(name, run, shown)


def rados(lab: Lab) -> Iterator[Work]:
    """librados: the library's own bench, and fio's engine on it."""
    url = lab.where["rados"]
    pool = url.removeprefix("rados://").partition("?")[0].partition("/")[0]
    for bs, words in ((SMALL, "4 KiB"), (LARGE, "4 MiB")):
        sides = [
            trial(lab, url, "rados", "write", bs),
            without_start(*(_rados_bench(lab, pool, bs, seconds) for seconds in LENGTHS_S)),
            without_start(*(_fio_rados(lab, pool, bs, seconds) for seconds in LENGTHS_S)),
        ]
        yield Work(f"rados, {words} writes, {DEPTH} in flight", sides, {})
    sides = [
        trial(lab, url, "rados", "write", LARGE, LONGER_S, incompressible=False),
        without_start(*(_rados_bench(lab, pool, LARGE, seconds) for seconds in LONGER_S)),
    ]
    yield Work(f"rados, 4 MiB writes of equal data, {DEPTH} in flight", sides, {}, has_goal=True)


def _rados_bench(lab: Lab, pool: str, bs: int, seconds: int) -> Side:
    command = [
        "rados",
        "-c",
        lab.conf,
        "-p",
        pool,
        "bench",
        str(seconds),
        "write",
        "-b",
        str(bs),
        "-t",
        str(DEPTH),
    ]

    def run() -> Sample:
        used, out = pinned(command, lab.cpu)
        found = re.search(r"Total writes made:\s+(\d+)", out)
        if not found:
            raise RuntimeError("rados bench does not say how many writes it made")
        done = int(found[1])
        return Sample(used.cpu_ns, done, done * bs, 0, 0.0, 0.0, used.kernel_ns)

    return Side(
        "rados bench", run, f"rados bench {seconds} write -b {bs} -t {DEPTH} (and the removal of its objects)"
    )


def _fio_rados(lab: Lab, pool: str, bs: int, seconds: int) -> Side:
    words = [
        "--name=bench", "--output-format=json", "--ioengine=rados", f"--conf={lab.conf}", f"--pool={pool}",
        "--clientname=admin", "--rw=write", f"--bs={bs}", f"--size={max(DATA_BYTES, DEPTH * bs)}",
        f"--iodepth={DEPTH}", "--time_based", f"--runtime={seconds}", "--touch_objects=0",
    ]  # fmt: skip

    def run() -> Sample:
        used, out = pinned(["fio", *words], lab.cpu)
        (found,) = json.loads(out[out.index("{") :])["jobs"]
        wrote = found["write"]
        return Sample(used.cpu_ns, wrote["total_ios"], wrote["io_bytes"], 0, 0.0, 0.0, used.kernel_ns)

    return Side("fio rados", run, f"fio --ioengine=rados --rw=write --bs={bs} --iodepth={DEPTH} --time_based")


def nfs(lab: Lab) -> Iterator[Work]:
    """libnfs: its program copies whole files, in pieces of its own."""
    url = lab.where["nfs"]
    whole = "nfs-cp copies whole files in pieces of its own"
    yield Work("nfs, 4 KiB reads", [trial(lab, url, "libnfs", "read", SMALL)], {"nfs-cp": whole})
    yield Work("nfs, 4 KiB writes", [trial(lab, url, "libnfs", "write", SMALL)], {"nfs-cp": whole})
    reading = trial(lab, url, "libnfs", "read", LARGE)
    plain, _, options = url.removeprefix("nfs://").partition("?")
    place, _, path = plain.partition("/")
    server, _, port = place.partition(":")
    file = f"nfs://{server}/{path}/bench-read-4096k/data.0.0?nfsport={port}&{options or 'version=4'}"
    command = ["nfs-cp", file, str(lab.local / "copied")]
    operations = DATA_BYTES // LARGE
    said = "nfs-cp 'nfs://SERVER/FILE' LOCAL, of the same version"
    copied = copies(lab, "nfs-cp", [command], LARGE, operations, said, lab.local / "copied")
    yield Work("nfs, 4 MiB reads", [reading, copied], {})
    writing = trial(lab, url, "libnfs", "write", LARGE)
    if "version=3" not in options:
        fails = "libnfs 4.0's own writes of version 4 fail above 4 KiB"
        yield Work("nfs, 4 MiB writes", [writing], {"nfs-cp": fails})
        return
    file = f"nfs://{server}/{path}/bench-nfs-cp-{FRESH}?nfsport={port}&{options}"
    command = ["nfs-cp", str(_some_file(lab)), file]
    shown = "nfs-cp LOCAL 'nfs://SERVER/FILE'; its writes are not stable ones, leadline's are"
    yield Work("nfs, 4 MiB writes", [writing, copies(lab, "nfs-cp", [command], LARGE, operations, shown)], {})


def _whole_files(
    lab: Lab, way: str, engine: str, peer: str, commands: dict[str, list[str]], shown: dict[str, str]
) -> Iterator[Work]:
    """Rows of a way whose own program moves whole files: `commands` by direction, of DATA_BYTES."""
    url, whole = lab.where[way], f"{peer} copies whole files in pieces of its own"
    for rw, command in commands.items():
        yield Work(f"{way}, 4 KiB {rw}s", [trial(lab, url, engine, rw, SMALL)], {peer: whole})
        own = trial(lab, url, engine, rw, LARGE)
        moved = copies(lab, peer, [command], LARGE, DATA_BYTES // LARGE, shown[rw])
        yield Work(f"{way}, 4 MiB {rw}s", [own, moved], {})


def smb(lab: Lab) -> Iterator[Work]:
    """libsmbclient: Samba's own program, as the guest that the lab's share takes."""
    plain = lab.where["smb"].removeprefix("smb://").partition("?")[0]
    place, _, path = plain.partition("/")
    share, _, inside = path.partition("/")
    host, _, port = place.rpartition("@")[2].partition(":")
    local = _some_file(lab)
    file = f"{inside}/bench-read-4096k/data.0.0".lstrip("/")
    words = ["smbclient", "-s", "/dev/null", "-p", port, "-N", f"//{host}/{share}", "-c"]
    commands = {
        "read": [*words, f"get {file} {lab.local / 'copied'}"],
        "write": [*words, f"put {local} {f'{inside}/bench-smbclient'.lstrip('/')}"],
    }
    shown = {rw: f"smbclient -N //SERVER/SHARE -c '{'get' if rw == 'read' else 'put'} …'" for rw in commands}
    return _whole_files(lab, "smb", "libsmbclient", "smbclient", commands, shown)


def xrootd(lab: Lab) -> Iterator[Work]:
    """XRootD's client: its own program."""
    place = lab.where["xrootd"].partition("?")[0].rstrip("/")
    reads = ["xrdcp", "-f", "-s", f"{place}//bench-read-4096k/data.0.0", str(lab.local / "copied")]
    shown = {"read": "xrdcp root://SERVER//FILE LOCAL"}
    yield from _whole_files(lab, "xrootd", "xrootd", "xrdcp", {"read": reads}, shown)
    # This storage writes new files only, and each file once.
    command = ["xrdcp", "-s", str(_some_file(lab)), f"{place}//bench-xrdcp-{FRESH}"]
    said = "xrdcp LOCAL root://SERVER//FILE"
    copied = copies(lab, "xrdcp", [command], LARGE, DATA_BYTES // LARGE, said)
    yield Work("xrootd, 4 MiB writes", [_new_files(lab, lab.where["xrootd"], "xrootd"), copied], {})


def radosstriper(lab: Lab) -> Iterator[Work]:
    """The RADOS striper: Ceph's own tool."""
    pool = lab.where["radosstriper"].removeprefix("radosstriper://").partition("?")[0].partition("/")[0]
    words = ["rados", "-c", lab.conf, "-p", pool, "--striper"]
    commands = {
        "read": [*words, "get", "/bench-read-4096k/data.0.0", str(lab.local / "copied")],
        "write": [*words, "put", "bench-rados-striper", str(_some_file(lab))],
    }
    shown = {"read": "rados --striper get NAME LOCAL", "write": "rados --striper put NAME LOCAL"}
    return _whole_files(lab, "radosstriper", "radosstriper", "rados --striper", commands, shown)


def _some_file(lab: Lab) -> Path:
    path = lab.local / "data"
    if not path.exists():
        path.write_bytes(os.urandom(DATA_BYTES))
    return path


def s3(lab: Lab) -> Iterator[Work]:
    """S3: curl, one process and connection for many objects, one at a time."""
    base = lab.where["s3"]
    endpoint = base.partition("endpoint=http://")[2].partition("&")[0]
    bucket = base.removeprefix("s3://").partition("?")[0].partition("/")[0]
    for bs, words, count in ((SMALL, "4 KiB", 400), (LARGE, "4 MiB", 40)):
        url = f"{base}&object_size={bs // KIB}K"
        file = lab.local / f"object-{bs}"
        file.write_bytes(os.urandom(bs))
        for rw, verb in (("write", "put"), ("read", "get")):
            long, short = (
                copies(
                    lab,
                    f"curl, {verb}",
                    [curl_command(lab.local, endpoint, bucket, verb, file, number)],
                    bs,
                    number,
                    "curl --config FILE: many objects by one process, one at a time",
                )
                for number in (count, count // 4)
            )
            sides = [trial(lab, url, "s3", rw, bs), without_start(long, short)]
            yield Work(f"s3, objects of {words}, {verb}", sides, {})


# Each way of the lab with a library of its own, and what is measured on it.
WORKS: dict[str, Callable[[Lab], Iterator[Work]]] = {
    "rados": rados,
    "radosstriper": radosstriper,
    "nfs": nfs,
    "smb": smb,
    "xrootd": xrootd,
    "s3": s3,
}


def main() -> None:
    """Prints the section alone."""
    place = Path(tempfile.mkdtemp(prefix="leadline-bench-"))
    try:
        places: Any = Places(place, place, max(os.sched_getaffinity(0)), "--quick" in sys.argv)
        sys.stdout.write("\n".join(engine_cpu(places)) + "\n")
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
