"""Whether the dynamic loader will load the tracer into a program: read from the program's own file."""

from __future__ import annotations

import os
import platform
import stat
import struct
from pathlib import Path

ELF_MAGIC = b"\x7fELF"
PROGRAM_INTERPRETER = 3  # PT_INTERP
MACHINES = {0x3E: "x86_64", 0xB7: "aarch64", 0x03: "i386", 0x28: "arm", 0xF3: "riscv64"}
SCRIPTS_DEEP = 4  # the kernel follows as many interpreters


def reason_not_to_preload(executable: Path, *, depth: int = 0) -> str | None:
    """Why LD_PRELOAD has no effect on `executable`, in words; None where it has."""
    try:
        status = executable.stat()
        with executable.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        return f"{executable} cannot be read: {error.strerror}"
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n", 1)[0].split()
        if not words or depth >= SCRIPTS_DEEP:
            return f"{executable} names no interpreter"
        return reason_not_to_preload(Path(os.fsdecode(words[0])), depth=depth + 1)
    return _privileges(executable, status) or _format(executable, head)


def _privileges(executable: Path, status: os.stat_result) -> str | None:
    """What makes the loader ignore LD_PRELOAD, or most of it: the program gains rights."""
    if status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid():
        return f"{executable} is setuid: the loader ignores LD_PRELOAD"
    if status.st_mode & stat.S_ISGID and status.st_mode & stat.S_IXGRP and status.st_gid != os.getegid():
        return f"{executable} is setgid: the loader ignores LD_PRELOAD"
    try:
        capable = bool(os.getxattr(executable, "security.capability"))
    except OSError:
        capable = False
    if capable and os.geteuid() != 0:
        return f"{executable} has file capabilities: the loader ignores LD_PRELOAD"
    return None


def _format(executable: Path, head: bytes) -> str | None:
    if not head.startswith(ELF_MAGIC):
        return None if not head or _is_text(head) else f"{executable} is no ELF program"
    if len(head) < 64 or head[4] != 2 or head[5] != 1:
        return f"{executable} is no 64-bit little-endian program"
    machine = struct.unpack_from("<H", head, 18)[0]
    words = MACHINES.get(machine, f"machine {machine}")
    if words != "x86_64" or platform.machine() != "x86_64":
        return f"{executable} is for {words}: the tracer's library is for x86_64"
    interpreter = _interpreter(executable, head)
    if interpreter is None:
        return f"{executable} is statically linked: no loader, so no LD_PRELOAD"
    if "musl" in Path(interpreter).name:
        return f"{executable} uses musl ({interpreter}): the tracer's library is for glibc"
    return None


def _is_text(head: bytes) -> bool:
    """A script without `#!`, which shells run themselves."""
    return b"\0" not in head[:256]


def _interpreter(executable: Path, head: bytes) -> str | None:
    """The loader that an ELF file names; None in a static one."""
    table, entry_bytes, entries = (
        struct.unpack_from("<Q", head, 32)[0],
        *struct.unpack_from("<HH", head, 54),
    )
    with executable.open("rb") as file:
        file.seek(table)
        headers = file.read(entry_bytes * entries)
        for number in range(len(headers) // max(entry_bytes, 56)):
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", headers, number * entry_bytes)
            if kind == PROGRAM_INTERPRETER:
                file.seek(offset)
                return os.fsdecode(file.read(min(length, 4096)).rstrip(b"\0"))
    return None
