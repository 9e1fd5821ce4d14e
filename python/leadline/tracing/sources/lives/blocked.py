"""What a thread waits for, by what the kernel shows of it: `/proc/PID/task/TID/syscall`.

A thread that is off the CPU and in no system call waits for a page: of a mapped file, of a library, of its
program.
"""

from __future__ import annotations

import platform
from collections.abc import Callable

# In the order in which one thread speaks for its process: idle threads wait for locks.
PAGE, FILE, PEER, ASLEEP, OTHER, LOCK = KINDS = ("page", "file", "peer", "asleep", "other", "lock")
RUNNING = "running"
# Numbers of calls: x86-64's, then those of the kernel's generic table (arm64); None where a table has no
# such call.
_CALLS: dict[str, dict[str, tuple[int | None, int | None]]] = {
    FILE: {
        "open": (2, None),
        "close": (3, 57),
        "stat": (4, None),
        "fstat": (5, 80),
        "lstat": (6, None),
        "mmap": (9, 222),
        "pread64": (17, 67),
        "pwrite64": (18, 68),
        "access": (21, None),
        "msync": (26, 227),
        "sendfile": (40, 71),
        "execve": (59, 221),
        "flock": (73, 32),
        "fsync": (74, 82),
        "fdatasync": (75, 83),
        "truncate": (76, 45),
        "ftruncate": (77, 46),
        "getdents": (78, None),
        "rename": (82, None),
        "mkdir": (83, None),
        "rmdir": (84, None),
        "creat": (85, None),
        "link": (86, None),
        "unlink": (87, None),
        "symlink": (88, None),
        "readlink": (89, None),
        "statfs": (137, 43),
        "sync": (162, 81),
        "io_getevents": (208, 4),
        "getdents64": (217, 61),
        "openat": (257, 56),
        "mkdirat": (258, 34),
        "newfstatat": (262, 79),
        "unlinkat": (263, 35),
        "renameat": (264, 38),
        "linkat": (265, 37),
        "readlinkat": (267, 78),
        "faccessat": (269, 48),
        "sync_file_range": (277, 84),
        "fallocate": (285, 47),
        "preadv": (295, 69),
        "pwritev": (296, 70),
        "syncfs": (306, 267),
        "renameat2": (316, 276),
        "execveat": (322, 281),
        "copy_file_range": (326, 285),
        "preadv2": (327, 286),
        "pwritev2": (328, 287),
        "statx": (332, 291),
        "io_uring_enter": (426, 426),
        "openat2": (437, 437),
        "faccessat2": (439, 439),
    },
    ASLEEP: {
        "pause": (34, None),
        "nanosleep": (35, 101),
        "restart_syscall": (219, 128),
        "clock_nanosleep": (230, 115),
    },
    LOCK: {"semop": (65, 193), "futex": (202, 98), "semtimedop": (220, 192)},
    PEER: {
        "poll": (7, None),
        "select": (23, None),
        "connect": (42, 203),
        "accept": (43, 202),
        "sendto": (44, 206),
        "recvfrom": (45, 207),
        "sendmsg": (46, 211),
        "recvmsg": (47, 212),
        "wait4": (61, 260),
        "msgrcv": (70, 188),
        "epoll_wait": (232, None),
        "mq_timedreceive": (243, 183),
        "waitid": (247, 95),
        "pselect6": (270, 72),
        "ppoll": (271, 73),
        "epoll_pwait": (281, 22),
        "accept4": (288, 242),
        "recvmmsg": (299, 243),
        "sendmmsg": (307, 269),
    },
}
# What their first argument names decides: a file, or a pipe or socket of another program.
_BY_DESCRIPTOR: dict[str, tuple[int, int]] = {
    "read": (0, 63),
    "write": (1, 64),
    "readv": (19, 65),
    "writev": (20, 66),
    "splice": (275, 76),
}
_COLUMN = 0 if platform.machine() == "x86_64" else 1
_KIND_OF = {
    numbers[_COLUMN]: kind
    for kind, calls in _CALLS.items()
    for numbers in calls.values()
    if numbers[_COLUMN] is not None
}
_TRANSFERS = frozenset(numbers[_COLUMN] for numbers in _BY_DESCRIPTOR.values())
# Of the calls on files those whose first argument is the descriptor of the file.
_ON_A_FILE = (
    *("fstat", "pread64", "pwrite64", "sendfile", "flock", "fsync", "fdatasync", "ftruncate", "getdents"),
    *("getdents64", "sync_file_range", "fallocate", "preadv", "pwritev", "syncfs", "copy_file_range"),
    *("preadv2", "pwritev2"),
)
_CALL_ON_A_FILE = {
    numbers[_COLUMN]: name
    for name, numbers in {**_BY_DESCRIPTOR, **{name: _CALLS[FILE][name] for name in _ON_A_FILE}}.items()
    if numbers[_COLUMN] is not None
}


def kind_of(text: str, names: Callable[[int], str]) -> str | None:
    """The kind of wait that a line of `syscall` shows, or RUNNING; None of a thread that ended.

    `names` gives what a descriptor of the process leads to, as its link in `/proc/PID/fd` says.
    """
    words = text.split()
    if not words:
        return None
    if words[0] == RUNNING:
        return RUNNING
    if words[0] == "-1":
        return PAGE if len(words) > 1 and int(words[1], 16) else None  # without a stack it has ended
    number = int(words[0])
    if number not in _TRANSFERS:
        return _KIND_OF.get(number, OTHER)
    name = names(int(words[1], 16))
    if name.startswith(("pipe:", "socket:")):
        return PEER
    return FILE if name.startswith("/") and not name.startswith("/dev/") else OTHER


def call_of(text: str) -> tuple[str, int] | None:
    """The call and the descriptor that a line of `syscall` shows; None of another call, or of none."""
    words = text.split()
    if len(words) < 2 or not words[0].isdecimal() or int(words[0]) not in _CALL_ON_A_FILE:
        return None
    return _CALL_ON_A_FILE[int(words[0])], int(words[1], 16)
