"""`python -m leadline.run.fork_helper SOCKET PARENT`: forks workers, so that none loads Python by itself."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from leadline.run import worker
from leadline.run.kinds import conducted_kind

STREAMS = 3  # of a worker: standard input, output and errors
REQUEST_BYTES_MAX = 4096
_PR_SET_NAME = 15
_NAME = b"leadline-worker"  # as `ps` and the kernel's own messages call it: 15 bytes at most


class WorkerForker:
    """What the command asked for so far: its workers that were not reaped yet, each with where it is told."""

    def __init__(self, control: socket.socket, command: int) -> None:
        self._control, self._command = control, command
        self._told: dict[int, socket.socket] = {}
        self._stops: dict[
            int, list[list[int | None]]
        ] = {}  # of each worker: from when until when, monotonic ns

    def serve(self) -> None:
        """Until the command closes its end, or ends: its children end with this process."""
        polled = select.poll()
        for descriptor in (self._control.fileno(), self._command):
            polled.register(descriptor, select.POLLIN)
        while True:
            if any(descriptor == self._command for descriptor, _ in polled.poll()):
                return
            data, descriptors, _, _ = socket.recv_fds(self._control, REQUEST_BYTES_MAX, STREAMS + 1)
            if not data:
                return
            request = json.loads(data)
            for pid in [pid for pid, told in self._told.items() if _is_alone(told)]:
                self._reap(pid)  # nobody waits for it any more: it may have been stuck
            if "stopped" in request:
                self._tell_stopped(request["stopped"], request["since_ns"], request["until_ns"])
            elif "reap" in request:
                self._reap(request["reap"])
            else:
                self._fork(request["kinds"], descriptors)

    def _fork(self, kinds: Collection[str], descriptors: Sequence[int]) -> None:
        for kind in kinds:
            with suppress(Exception):  # the worker that is to do it says what is wrong
                conducted_kind(kind)
        gc.freeze()  # what is loaded is not gone through, and so not copied, in each worker
        told = socket.socket(fileno=descriptors[STREAMS])
        threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208 - names are all it needs
        if threads > 1:
            for descriptor in descriptors[:STREAMS]:
                os.close(descriptor)
            self._tell(told, {"refused": f"the process that forks it has {threads} threads"})
            told.close()
            return
        own = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become_worker(own, descriptors)
        for descriptor in descriptors[:STREAMS]:
            os.close(descriptor)
        self._told[pid] = told
        self._stops.pop(pid, None)  # of another process that had the number before
        held = os.pidfd_open(pid)  # it is our child and not reaped: the number is its own
        try:
            self._tell(told, {"pid": pid}, held)
        finally:
            os.close(held)

    def _reap(self, pid: int) -> None:
        if pid not in self._told:
            return
        found, status = os.waitpid(pid, os.WNOHANG)
        if found == 0:
            return
        told = self._told.pop(pid)
        self._tell(told, {"code": os.waitstatus_to_exitcode(status)})
        told.close()

    def note_stops(self, *_: object) -> None:
        """The handler of SIGCHLD: which workers were stopped or went on. What ended stays to be reaped."""
        now = time.monotonic_ns()
        with suppress(ChildProcessError):
            while found := os.waitid(os.P_ALL, 0, os.WSTOPPED | os.WCONTINUED | os.WNOHANG):
                stops = self._stops.setdefault(found.si_pid, [])
                if found.si_code == os.CLD_STOPPED:
                    stops.append([now, None])
                elif stops and stops[-1][1] is None:
                    stops[-1][1] = now

    def _tell_stopped(self, pid: int, since_ns: int, until_ns: int) -> None:
        if pid not in self._told:
            return
        self.note_stops()  # the signal may still be on its way
        spans = (
            (start, until_ns if end is None else end) for start, end in self._stops.get(pid, ()) if start
        )
        total = sum(max(min(end, until_ns) - max(start, since_ns), 0) for start, end in spans)
        self._tell(self._told[pid], {"stopped_ns": total})

    @staticmethod
    def _tell(told: socket.socket, words: dict[str, Any], *descriptors: int) -> None:
        with suppress(OSError):  # nobody waits for it any more: it ends when it finds that its input has
            socket.send_fds(told, [json.dumps(words).encode()], list(descriptors))


def _is_alone(told: socket.socket) -> bool:
    polled = select.poll()
    polled.register(told.fileno(), 0)
    return any(events & select.POLLHUP for _, events in polled.poll(0))


def _become_worker(helper: int, descriptors: Sequence[int]) -> NoReturn:
    """In the fork: what a fresh process would have, and nothing of the helper's."""
    code = 1
    try:
        os.setsid()  # Ctrl-C reaches the command alone, which then ends the trial cleanly
        # By this signal, also where whoever started the command had it ignored, as a script's `&` does.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for stream, descriptor in enumerate(descriptors[:STREAMS]):
            os.dup2(descriptor, stream)
        os.closerange(STREAMS, os.sysconf("SC_OPEN_MAX"))
        ctypes.CDLL(None).prctl(_PR_SET_NAME, _NAME)
        worker.main(helper)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def main(arguments: Sequence[str]) -> None:
    """Two arguments: the descriptor of the socket to the command, and the command's process."""
    descriptor, parent = map(int, arguments)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    command = os.pidfd_open(parent)
    if os.getppid() == parent:  # else it was gone before, and the number may be another's
        forker = WorkerForker(socket.socket(fileno=descriptor), command)
        signal.signal(signal.SIGCHLD, forker.note_stops)
        forker.serve()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
