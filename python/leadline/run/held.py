"""One study is run, resumed or undone by one process of this host at a time, by whichever copy of its result.

A copy has a journal of its own, whose lock says nothing of the run that goes on with the other. So each holds
a name that follows from the study's places: an abstract socket (unix(7)), which leaves no file and which the
kernel frees when its holder ends, however it does. Another network namespace has names of its own.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from leadline.errors import ResultError
from leadline.run.storage.workspace import workspace_of
from leadline.study.target import Target
from leadline.trusted import believed_accounts

_QUEUE = 4096  # of those who ask; nobody is answered


@contextmanager
def held(study_id: str, targets: Iterable[Target], result: Path) -> Iterator[None]:
    """Hold a study's places for as long as the block lasts. ResultError where another process does.

    What an account without a say in this result holds is passed over: it could keep everybody waiting.
    """
    places = sorted(tuple(map(str, workspace_of(target, study_id))) for target in targets)
    name = f"\0leadline-{hashlib.sha256(json.dumps(places).encode()).hexdigest()[:32]}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as own:
        try:
            own.bind(name)
            own.listen(_QUEUE)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                _refuse(name, study_id, result)
        yield


def _refuse(name: str, study_id: str, result: Path) -> None:
    accounts = set(believed_accounts())
    with suppress(OSError):
        accounts.add(result.stat().st_uid)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(name)
            found = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:  # it has just ended, or does not even listen, as a run does
            return
    pid, uid, _ = struct.unpack("3i", found)
    if uid in accounts:
        who = f"process {pid}" if os.path.exists(f"/proc/{pid}") else "another process"  # noqa: PTH110
        raise ResultError(
            f"the study {study_id} of {result} is being run or undone by {who}, perhaps from a copy of it",
            "nothing was done; wait for that process to end, or end it first",
        )
