"""The job file of a planned job: the same files, laid out already, and nothing left to fio's defaults.

fio keeps nothing of what it moves in `ramp_time`, and bytes are held against those of host and cluster. So
the ramp is a job of its own before the measured one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

RAMP, MEASURED = "ramp", "measured"
_NS_PER_MS = 1_000_000


def job_file(job: Mapping[str, Any]) -> str:
    """The text of it, of the JSON that a worker is handed; fio is started in the job's directory."""
    lines = ["[global]", *_common(job)]
    if job["ramp_time_ns"]:
        lines += [f"[{RAMP}]", "time_based=1", f"runtime={job['ramp_time_ns'] // _NS_PER_MS}ms"]
    lines += [f"[{MEASURED}]", *_measured(job)]
    return "\n".join(lines) + "\n"


def _measured(job: Mapping[str, Any]) -> Iterator[str]:
    if job["ramp_time_ns"]:
        yield "stonewall"
        if job["rw"].startswith("rand"):
            yield "invalidate=0"  # what the ramp warmed is warm
    if job["time_based"]:
        yield "time_based=1"
    if job["runtime_ns"]:
        yield f"runtime={job['runtime_ns'] // _NS_PER_MS}ms"
    if job["io_size"]:
        yield f"io_size={job['io_size']}"
    if job["end_fsync"]:
        yield "end_fsync=1"


def _common(job: Mapping[str, Any]) -> Iterator[str]:
    yield from ("thread=1", "fallocate=none", "lat_percentiles=1", "clat_percentiles=1", "slat_percentiles=1")
    yield f"ioengine={job['engine']}"
    yield from (f"{name}={job[name]}" for name in ("rw", "rwmixread", "numjobs", "iodepth", "nrfiles"))
    yield from (f"direct={int(job['direct'])}", f"overwrite={int(job['overwrite'])}")
    yield from ("randrepeat=1", f"randseed={job['seed']}")
    yield from _blocks(job)
    yield from _files(job)
    yield from (f"{name}={job[name]}" for name in ("fsync", "fdatasync") if job[name])
    if job["thinktime_ns"]:
        yield f"thinktime={job['thinktime_ns'] // 1000}us"
        yield f"thinktime_blocks={job['thinktime_blocks']}"
    batch = job["iodepth_batch"]
    if batch > 1:  # fio takes back one at a time unless told, and then waits until a batch is full again
        yield from (f"iodepth_batch={batch}", f"iodepth_batch_complete_max={job['iodepth']}")
    if job["sqthread_poll"]:
        yield "sqthread_poll=1"
    if job["rw"].startswith("rand"):
        yield from _random(job)
    yield from _content(job)


def _blocks(job: Mapping[str, Any]) -> Iterator[str]:
    split = job["bssplit"]
    if split is None:
        yield f"bs={job['bs']}"
    else:
        yield f"bssplit={_split(split['read'])},{_split(split['write'])}"
        yield "bs_unaligned=0"


def _split(sizes: Sequence[Sequence[Any]]) -> str:
    return ":".join(f"{size}/{percent:g}" for size, percent in sizes)


def _files(job: Mapping[str, Any]) -> Iterator[str]:
    """The names that the engine gives them, `PREFIX.NUMJOB.FILE`."""
    if job["shared"] == "none":
        yield f"filename_format={job['prefix']}.$jobnum.$filenum"
    else:  # of one that a format names for several jobs fio 3.33 gives all but the first nothing to do
        yield f"filename={job['prefix']}.0.0"
    if job["shared"] == "segmented":
        yield from (f"filesize={job['size'] * job['numjobs']}", f"size={job['size']}")
        yield f"offset_increment={job['size']}"
        return
    yield f"size={job['size']}"
    if job["offset"] or job["offset_increment"]:
        yield f"filesize={job['size']}"  # without it fio makes files longer by their offset
    yield from (f"{name}={job[name]}" for name in ("offset", "offset_increment") if job[name])


def _random(job: Mapping[str, Any]) -> Iterator[str]:
    kind = job["random_distribution"]
    if kind == "random":
        yield "norandommap=1"
    elif kind != "map":
        yield f"random_distribution={kind}"
    if job["percentage_random"] != 100:
        yield f"percentage_random={job['percentage_random']}"


def _content(job: Mapping[str, Any]) -> Iterator[str]:
    shares = ("buffer_compress_percentage", "dedupe_percentage")
    asked = [f"{name}={job[name]}" for name in shares if job[name]]
    yield from asked or (["refill_buffers=1"] if job["incompressible"] else ["zero_buffers=1"])
