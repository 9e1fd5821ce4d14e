"""Logs of Darshan for tests: those that PyDarshan brings, and ones made with its own library."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from typing import Any

POSIX, STDIO, HEATMAP = 1, 9, 15
_VERSIONS = {POSIX: 4, STDIO: 2, HEATMAP: 1}
_ZLIB = 0
_A_MOUNT = ctypes.create_string_buffer(b"ext4", 8192)  # its path, /, stays empty: nothing asks for it


def brought(name: str) -> Path:
    """One of PyDarshan's example logs."""
    import darshan

    return next(Path(darshan.__path__[0]).rglob(name))


def with_posix() -> list[str]:
    """Names of the example logs that have POSIX counters."""
    return [
        "example.darshan",
        "dxt.darshan",
        "sample-badost.darshan",
        "sample-goodost.darshan",
        "ior_hdf5_example.darshan",
        "sample-dxt-simple.darshan",
        "shane_macsio_id29959_5-22-32552-7035573431850780836_1590156158.darshan",
    ]


class _Job(ctypes.Structure):
    _fields_ = [
        *(
            (name, ctypes.c_int64)
            for name in ("uid", "start_s", "start_ns", "end_s", "end_ns", "ranks", "job")
        ),
        ("metadata", ctypes.c_char * 1024),
    ]


def make_log(
    path: Path,
    modules: dict[int, bytes],
    *,
    partial: int = 0,
    ended: bool = True,
    ranks: int = 2,
    job: int = 77,
    after_s: int = 0,
    command: str = "./made by hand",
) -> Path:
    """Write a log through Darshan's library; `partial` has a bit for every module whose memory was full.

    It ran for ten seconds, and began `after_s` later than another.
    """
    from darshan.backend import cffi_backend  # loads the library

    library = ctypes.CDLL(_library_path())
    assert cffi_backend.libdutil is not None
    library.darshan_log_create.restype = ctypes.c_void_p
    log = ctypes.c_void_p(library.darshan_log_create(str(path).encode(), _ZLIB, ctypes.c_uint64(partial)))
    start = 1_700_000_000 + after_s
    end, end_ns = (start + 10, 500_000_000) if ended else (0, 0)
    about = _Job(0, start, 500_000_000, end, end_ns, ranks, job, b"lib_ver=3.4.4\n")
    assert library.darshan_log_put_job(log, ctypes.byref(about)) >= 0
    assert library.darshan_log_put_exe(log, command.encode()) >= 0
    assert library.darshan_log_put_mounts(log, _A_MOUNT, 1) >= 0  # without one the command line is lost
    assert library.darshan_log_put_namehash(log, None) >= 0
    for module, content in modules.items():
        assert library.darshan_log_put_mod(log, module, content, len(content), _VERSIONS[module]) >= 0
    library.darshan_log_close(log)
    return path


def _library_path() -> str:
    import darshan

    places = Path(darshan.__path__[0]).parent / "darshan.libs"
    return str(next(places.glob("libdarshan-util*")))


def posix_record(number: int, rank: int, **counters: float) -> bytes:
    """One record of the POSIX module, 0 where nothing is given."""
    return _record("POSIX", number, rank, counters)


def stdio_record(number: int, rank: int, **counters: float) -> bytes:
    """One record of the STDIO module, 0 where nothing is given."""
    return _record("STDIO", number, rank, counters)


def _record(module: str, number: int, rank: int, counters: dict[str, float]) -> bytes:
    from darshan.backend import cffi_backend

    whole: list[Any] = cffi_backend.counter_names(module)
    parts: list[Any] = cffi_backend.fcounter_names(module)
    integers = [int(counters.get(name.removeprefix(f"{module}_"), 0)) for name in whole]
    floats = [float(counters.get(name.removeprefix(f"{module}_"), 0)) for name in parts]
    return struct.pack(f"<Qq{len(whole)}q{len(parts)}d", number, rank, *integers, *floats)


def heat_record(number: int, rank: int, bin_s: float, written: list[int], read: list[int]) -> bytes:
    """One record of the HEATMAP module: its bins follow it."""
    bins = len(written)
    return struct.pack(f"<Qqdq2Q{2 * bins}q", number, rank, bin_s, bins, 0, 0, *written, *read)
