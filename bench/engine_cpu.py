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
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness import CommandError, leadline, scratch, spread
from sides import (
    LIMIT_S,
    MIB,
    SECOND_NS,
    TRIAL,
    Places,
    Side,
    cpu_per_operation_ns,
    interleaved,
    job,
    pinned,
    run_job,
    shares,
    without_start,
)

KIB = 1 << 10
SMALL, LARGE = 4 * KIB, 4 * MIB
LENGTHS_S = (2, 1)  # a long and a short run, in whole seconds, as `rados bench` takes them
LONGER_S = (5, 1)  # for the goal: of writes of 4 MiB a second has few
RADOS_GOAL = 1.05  # of `rados bench`, which writes the same bytes each time, with equal data on both sides
DEPTH = 8
DATA_BYTES = 32 * MIB
FRESH = "FRESH"  # in a name: of what a program makes once only
# Of the payload no digest is made; the request is signed all the same (AWS's signature, version 4).
_UNSIGNED = 'header = "x-amz-content-sha256: UNSIGNED-PAYLOAD"'


@dataclass(frozen=True)
class EngineLab:
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


def engine_cpu(places: Places) -> Iterator[str]:
    """The section of results.md. Gateways that do not start are reasons of their own rows."""
    yield from ["", "## CPU time per operation of the engines without a mount", ""]
    with scratch("leadline-bench-lab", "/tmp") as home:
        env = {"env": {**os.environ, "XDG_STATE_HOME": str(home)}}
        up = ("lab", "up", "--name", "bench", "--dir", home / "lab", "--osds", "3", "--gateways", "all")
        try:
            leadline(*up, allowed=(0, 3), **env)
            told = json.loads(leadline("lab", "targets", home / "lab", "--json", **env))["targets"]
            for target in told:
                os.environ.update(target["variables"])
            where, reason = ({one["way"]: one[name] for one in told} for name in ("where", "reason"))
            local = home / "local"
            local.mkdir()
            lab = EngineLab(where, reason, str(home / "lab" / "ceph.conf"), local, places.cpu)
            yield from [*_measured(lab, places.rounds(3)), ""]
        except CommandError as error:
            yield from [f"NOT_RUN: {' '.join(str(error).split())[-300:]}", ""]
        finally:
            leadline("lab", "down", "--all", allowed=range(256), **env)


def _measured(lab: EngineLab, rounds: int) -> Iterator[str]:
    yield "| work | side | µs of CPU per operation | leadline / it |"
    yield "|---|---|---|---|"
    commands = []
    for way, works in WORKS.items():
        reason = lab.reason.get(way, "the lab knows no such way")
        if reason:
            yield f"| {way} | NOT_RUN | {reason} | |"
            continue
        try:
            for work in works(lab):
                yield from _rows(work, rounds)
                commands += [side.command for side in work.sides]
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            yield f"| {way} | NOT_RUN | {' '.join(str(error).split())[-200:]} | |"
    yield from ["", "Commands:", "", *(f"    {one}" for one in dict.fromkeys(commands))]


def _rows(work: Work, rounds: int) -> Iterator[str]:
    # Where a goal is to be decided three rounds would not.
    samples = interleaved(work.sides, 2 * rounds + 1 if work.has_goal else rounds)
    for index, side in enumerate(work.sides):
        own = spread(cpu_per_operation_ns(one[index]) / 1e3 for one in samples)
        pairs = spread(cpu_per_operation_ns(one[0]) / cpu_per_operation_ns(one[index]) for one in samples)
        compared = pairs.words(2) if index else ""
        if side.name == "rados bench" and work.has_goal:
            verdict = pairs.judged(RADOS_GOAL)
            compared += f", at most {RADOS_GOAL:g}: {verdict}; {shares(samples, 0, index)}"
        yield f"| {'' if index else work.what} | {side.name} | {own.words(0)} | {compared} |"
    yield from (f"| | {name} | cannot do it: {why} | |" for name, why in work.lacking.items())


def trial(
    lab: EngineLab,
    url: str,
    engine: str,
    rw: str,
    bs: int,
    lengths_s: tuple[int, int] = LENGTHS_S,
    **changes: Any,
) -> Side:
    """leadline: trials of the engine, without Python, in a directory that they have to themselves."""
    name, said = f"/bench-{rw}-{bs // KIB}k", "".join(f" {name}={value}" for name, value in changes.items())
    shown = f"trial engine={engine} rw={rw} bs={bs} iodepth={DEPTH} time_based{said}"

    def of_length(seconds: int) -> tuple[Path, Side]:
        size = max(DATA_BYTES, DEPTH * bs)
        more = {"time_based": True, "runtime_ns": seconds * SECOND_NS, "overwrite": rw != "read", **changes}
        path = _write_job(lab, url, engine, name, f"{seconds}", rw=rw, bs=bs, size=size, **more)
        return path, Side("leadline", partial(run_job, lab.cpu, path, lab.local / "trial.llrec"), shown)

    (first, long), (_, short) = map(of_length, lengths_s)
    _make_directory(url, name)
    words = [TRIAL, "layout", first, "none"]
    laid = subprocess.run(words, check=False, timeout=LIMIT_S, capture_output=True, text=True)
    if laid.returncode != 0:
        raise RuntimeError(f"no files were laid out: {laid.stderr[-300:]}")
    return without_start(long, short)


def _write_job(lab: EngineLab, url: str, engine: str, name: str, which: str, **changes: Any) -> Path:
    value = job(Path(name), engine=engine, location=url, direct=True, iodepth=DEPTH, **changes)
    path = lab.local / f"{engine}{name.replace('/', '-')}-{which}.json"
    path.write_text(json.dumps(value))
    return path


def _new_files(lab: EngineLab, url: str, engine: str) -> Side:
    """leadline writing a file that is not there, each time another one: a whole one less a quarter of one."""
    number = itertools.count()

    def writing(size: int) -> Side:
        def run() -> Any:
            name = f"/bench-new-{next(number)}"
            _make_directory(url, name)
            path = _write_job(lab, url, engine, name, "new", rw="write", bs=LARGE, size=size)
            return run_job(lab.cpu, path, lab.local / "trial.llrec")

        return Side("leadline", run, f"trial engine={engine} rw=write bs={LARGE} iodepth={DEPTH}")

    return without_start(writing(DATA_BYTES), writing(DATA_BYTES // 4))


def _make_directory(url: str, name: str) -> None:
    from leadline import _core

    with contextlib.suppress(FileExistsError):
        _core.Volume(url).make_directory(name)


def copies(
    lab: EngineLab,
    name: str,
    command: list[str | Path],
    bs: int,
    operations: int,
    shown: str,
    makes: Path | None = None,
) -> Side:
    """A program that moves one file and ends: its start is part of it.

    `makes`: what it makes, which must not be there. FRESH in a word becomes another number in each run.
    """
    number = itertools.count()

    def run() -> Any:
        if makes is not None:
            makes.unlink(missing_ok=True)
        fresh = str(next(number))
        used, _ = pinned([str(word).replace(FRESH, fresh) for word in command], lab.cpu)
        return replace(used, operations=operations, bytes=operations * bs)

    return Side(name, run, shown)


def rados(lab: EngineLab) -> Iterator[Work]:
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


def _rados_bench(lab: EngineLab, pool: str, bs: int, seconds: int) -> Side:
    words = ("bench", str(seconds), "write", "-b", str(bs), "-t", str(DEPTH))

    def run() -> Any:
        used, out = pinned(["rados", "-c", lab.conf, "-p", pool, *words], lab.cpu)
        found = re.search(r"Total writes made:\s+(\d+)", out)
        if not found:
            raise RuntimeError("rados bench does not say how many writes it made")
        return replace(used, operations=int(found[1]), bytes=int(found[1]) * bs)

    return Side(
        "rados bench", run, f"rados bench {seconds} write -b {bs} -t {DEPTH} (and the removal of its objects)"
    )


def _fio_rados(lab: EngineLab, pool: str, bs: int, seconds: int) -> Side:
    words = [
        "--name=bench", "--output-format=json", "--ioengine=rados", f"--conf={lab.conf}", f"--pool={pool}",
        "--clientname=admin", "--rw=write", f"--bs={bs}", f"--size={max(DATA_BYTES, DEPTH * bs)}",
        f"--iodepth={DEPTH}", "--time_based", f"--runtime={seconds}", "--touch_objects=0",
    ]  # fmt: skip

    def run() -> Any:
        used, out = pinned(["fio", *words], lab.cpu)
        (found,) = json.loads(out[out.index("{") :])["jobs"]
        wrote = found["write"]
        return replace(used, operations=wrote["total_ios"], bytes=wrote["io_bytes"])

    return Side("fio rados", run, f"fio --ioengine=rados --rw=write --bs={bs} --iodepth={DEPTH} --time_based")


def nfs(lab: EngineLab) -> Iterator[Work]:
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
    copied = copies(lab, "nfs-cp", command, LARGE, operations, said, lab.local / "copied")
    yield Work("nfs, 4 MiB reads", [reading, copied], {})
    writing = trial(lab, url, "libnfs", "write", LARGE)
    if "version=3" not in options:
        fails = "libnfs 4.0's own writes of version 4 fail above 4 KiB"
        yield Work("nfs, 4 MiB writes", [writing], {"nfs-cp": fails})
        return
    file = f"nfs://{server}/{path}/bench-nfs-cp-{FRESH}?nfsport={port}&{options}"
    command = ["nfs-cp", str(_some_file(lab)), file]
    shown = "nfs-cp LOCAL 'nfs://SERVER/FILE'; its writes are not stable ones, leadline's are"
    yield Work("nfs, 4 MiB writes", [writing, copies(lab, "nfs-cp", command, LARGE, operations, shown)], {})


def _whole_files(
    lab: EngineLab, way: str, engine: str, peer: str, commands: dict[str, list[str]], shown: dict[str, str]
) -> Iterator[Work]:
    """Rows of a way whose own program moves whole files: `commands` by direction, of DATA_BYTES."""
    url, whole = lab.where[way], f"{peer} copies whole files in pieces of its own"
    for rw, command in commands.items():
        yield Work(f"{way}, 4 KiB {rw}s", [trial(lab, url, engine, rw, SMALL)], {peer: whole})
        own = trial(lab, url, engine, rw, LARGE)
        moved = copies(lab, peer, command, LARGE, DATA_BYTES // LARGE, shown[rw])
        yield Work(f"{way}, 4 MiB {rw}s", [own, moved], {})


def smb(lab: EngineLab) -> Iterator[Work]:
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


def xrootd(lab: EngineLab) -> Iterator[Work]:
    """XRootD's client: its own program."""
    place = lab.where["xrootd"].partition("?")[0].rstrip("/")
    reads = ["xrdcp", "-f", "-s", f"{place}//bench-read-4096k/data.0.0", str(lab.local / "copied")]
    shown = {"read": "xrdcp root://SERVER//FILE LOCAL"}
    yield from _whole_files(lab, "xrootd", "xrootd", "xrdcp", {"read": reads}, shown)
    # This storage writes new files only, and each file once.
    command = ["xrdcp", "-s", str(_some_file(lab)), f"{place}//bench-xrdcp-{FRESH}"]
    said = "xrdcp LOCAL root://SERVER//FILE"
    copied = copies(lab, "xrdcp", command, LARGE, DATA_BYTES // LARGE, said)
    yield Work("xrootd, 4 MiB writes", [_new_files(lab, lab.where["xrootd"], "xrootd"), copied], {})


def radosstriper(lab: EngineLab) -> Iterator[Work]:
    """The RADOS striper: Ceph's own tool."""
    pool = lab.where["radosstriper"].removeprefix("radosstriper://").partition("?")[0].partition("/")[0]
    words = ["rados", "-c", lab.conf, "-p", pool, "--striper"]
    commands = {
        "read": [*words, "get", "/bench-read-4096k/data.0.0", str(lab.local / "copied")],
        "write": [*words, "put", "bench-rados-striper", str(_some_file(lab))],
    }
    shown = {"read": "rados --striper get NAME LOCAL", "write": "rados --striper put NAME LOCAL"}
    return _whole_files(lab, "radosstriper", "radosstriper", "rados --striper", commands, shown)


def _some_file(lab: EngineLab) -> Path:
    path = lab.local / "data"
    if not path.exists():
        path.write_bytes(os.urandom(DATA_BYTES))
    return path


def s3(lab: EngineLab) -> Iterator[Work]:
    """S3: curl, one process and connection for many objects, one at a time."""
    base, said = lab.where["s3"], "curl --config FILE: many objects by one process, one at a time"
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
                    _curl(lab.local, endpoint, bucket, verb, file, number),
                    bs,
                    number,
                    said,
                )
                for number in (count, count // 4)
            )
            sides = [trial(lab, url, "s3", rw, bs), without_start(long, short)]
            yield Work(f"s3, objects of {words}, {verb}", sides, {})


def _curl(place: Path, endpoint: str, bucket: str, verb: str, file: Path, count: int) -> list[str | Path]:
    """One curl, one connection, that puts `file` as so many objects, or gets the same, each request signed.

    Its configuration holds the keys, so that it is in a file that only its owner reads.
    """
    keys = _keys()
    parts = []
    for number in range(count):
        url = f"http://{endpoint}/{bucket}/bench-curl-{file.name}-{number}"
        way = f'upload-file = "{file}"' if verb == "put" else 'output = "/dev/null"'
        signed = f'user = "{keys}"\naws-sigv4 = "aws:amz:us-east-1:s3"\n{_UNSIGNED}'
        parts.append(f'url = "{url}"\n{way}\n{signed}\nsilent\nshow-error\nfail\n')
    path = place / f"curl-{verb}-{file.name}-{count}"
    path.touch(mode=0o600)
    path.write_text("next\n".join(parts))
    return ["curl", "--config", path]


def _keys() -> str:
    lines = Path(os.environ["AWS_SHARED_CREDENTIALS_FILE"]).read_text().splitlines()
    found = dict(line.replace(" ", "").split("=", 1) for line in lines if "=" in line)
    return f"{found['aws_access_key_id']}:{found['aws_secret_access_key']}"


# Each way of the lab with a library of its own, and what is measured on it.
WORKS: dict[str, Callable[[EngineLab], Iterator[Work]]] = {
    "rados": rados,
    "radosstriper": radosstriper,
    "nfs": nfs,
    "smb": smb,
    "xrootd": xrootd,
    "s3": s3,
}
