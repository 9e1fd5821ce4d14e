"""The engine's plainest transfer, for who has it move data without planning a work of it.

A layout, a measure of the engine itself, a check of a device: each chooses what it needs of it.
"""

from __future__ import annotations

from typing import Any

TRANSFER_FORMAT = "leadline.job/1"


def plain_transfer(**chosen: Any) -> dict[str, Any]:
    """The fields that tell what is moved (leadline.job/1): 4 KiB reads of a file, one at a time."""
    plain = {
        "rw": "randread",
        "rwmixread": 100,
        "bs": 4096,
        "size": 1 << 30,
        "nrfiles": 1,
        "numjobs": 1,
        "iodepth": 1,
        "engine": "psync",
        "direct": False,
        "overwrite": False,
        "fsync": 0,
        "end_fsync": False,
        "time_based": False,
        "runtime_ns": 0,
        "ramp_time_ns": 0,
        "rate_bytes_per_s": None,
        "rate_iops": None,
        "arrival": "constant",
        "verify": False,
        "incompressible": True,
        "sqthread_poll": False,
        "layout_rate_bytes_per_s": None,
    }
    return {**plain, **chosen}


def lone_transfer(prefix: str, **chosen: Any) -> dict[str, Any]:
    """A whole job that belongs to no trial, of files below `/` that start with `prefix`, if it opens any."""
    around = {
        "format": TRANSFER_FORMAT,
        "trial": prefix,
        "directory": "/",
        "prefix": prefix,
        "seed": 1,
        "generation": 1,
        "interval_ns": 1_000_000_000,
        "deadline_ns": 30_000_000_000,
        "parent_pid": None,
    }
    return {**around, **plain_transfer(**chosen)}
